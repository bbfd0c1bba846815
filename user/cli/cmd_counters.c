/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_counters.c - `cudatrace counters`: a line for each GPU and interval. One source, its own
 * small loop. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "counters_print.h"
#include "../util/io/confine.h"
#include "../util/io/loop.h"
#include "../session/signals.h"
#include "../source/counters/counters.h"
#include "../util/msg.h"
#include "../util/option/option.h"
#include "../util/now.h"

struct counters_options {
	const char *chip; /* of --metrics help; NULL: the first GPU's */
	enum counters_format format;
};

#define OPTION_STRUCT struct counters_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "chip", "NAME", TEXT(chip), 0, NULL, "with --metrics help: list the metrics of this chip, such as GH100, whatever GPU is here" },
	{ 0, "format", "NAME", ENUM(format, "table", "json", "csv"), 0, "table", "table, json (an object a line) or csv" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

struct run {
	const struct request *o;
	struct source source;
	struct loop *loop;
	struct out out;
	struct counters_print *print;
	uint64_t rows, start_ns;
	const char *reason;
	int err;
	bool stopping;
};

/* ---- help ---- */

static void help_line(void *ctx, const char *text, size_t len)
{
	out_mem(ctx, text, len);
	out_char(ctx, '\n');
}

static int help(const struct request *o)
{
	const struct counters_options *how = request_own(o, &options);
	struct out out;
	int err;

	if (out_open_output(&out, o->output, false, STDOUT_FILENO))
		return 1;
	err = counters_help(o->agent.cupti, how->chip, help_line, &out);
	return cmd_finish(&out) || err;
}

/* ---- the loop ---- */

static int cmd_counters_emit(void *ctx, const struct ct_hdr *rec)
{
	struct run *r = ctx;
	int n = counters_print_record(r->print, rec);

	if (n < 0)
		return n;
	r->rows += (uint64_t)n;
	return r->o->count && r->rows >= r->o->count ? -ECANCELED : 0;
}

static void on_records(void *ctx)
{
	struct run *r = ctx;
	int err = r->source.ops->drain(&r->source, cmd_counters_emit, r),
	    written = out_sync(&r->out);

	if (!err && !written)
		return;
	if (err == -ECANCELED)
		r->reason = "count";
	else if (err < 0)
		r->err = err;
	loop_stop(r->loop);
}

static void end_run(struct run *r, const char *reason)
{
	r->reason = reason;
	if (r->stopping) {
		loop_stop(r->loop);
		return;
	}
	/* What was sampled until now still comes; then the helper ends, and so do we. */
	r->stopping = true;
	r->source.ops->stop(&r->source);
}

static void on_limit(void *ctx)
{
	end_run(ctx, "duration");
}

static void on_signal(void *ctx)
{
	struct signals_got got;

	while (signals_next(&got))
		if (got.sig != SIGCHLD)
			end_run(ctx, "interrupted");
}

static int trace(struct run *r)
{
	const struct counters_options *how = request_own(r->o, &options);
	struct loop_watch *timer;
	int sig = signals_open(), fd;

	if (sig < 0)
		return sig;
	r->loop = loop_open();
	timer = r->loop ? loop_timer(r->loop, on_limit, r) : NULL;
	if (!timer || !loop_fd(r->loop, sig, on_signal, r) ||
	    r->source.ops->fds(&r->source, &fd, 1) != 1 || !loop_fd(r->loop, fd, on_records, r))
		return -ENOMEM;
	if (r->o->duration_ns)
		loop_timer_set(timer, r->o->duration_ns);
	r->start_ns = now_ns();
	r->print = counters_print_open(&r->out, how->format, r->start_ns);
	if (!r->print)
		return -ENOMEM;
	r->source.ops->start(&r->source);
	/* The records that describe the devices have come already, and no descriptor becomes readable for them. */
	on_records(r);
	return r->err ? r->err : loop_run(r->loop);
}

static int cmd_counters(const struct request *o)
{
	struct capture_plan plan = { .counters_interval_ns = o->interval_ns,
				     .counters_metrics = o->metrics,
				     .cupti = o->agent.cupti };
	struct run r = { .o = o, .source = { .ops = &source_counters }, .reason = "finished" };
	struct sink_end last = { .reason = NULL };
	bool failed = false;
	int err;

	if (o->metrics && !strcmp(o->metrics, "help"))
		return help(o);
	if (out_open_output(&r.out, o->output, false, STDOUT_FILENO))
		return 1;
	err = r.source.ops->open(&r.source, &plan);
	/* the helper runs: from here on we only print what it reads from the driver */
	confine(CONFINE_CHILD);
	confine_drop();
	if (!err)
		err = trace(&r);
	if (!err)
		err = r.err;
	if (err == -ENOMEM)
		msg_error("no memory");
	if (r.source.priv) {
		r.source.ops->losses(&r.source, &last.losses);
		failed = counters_failed(&r.source);
	}
	last.reason = err || failed ? "error" : r.reason;
	last.uptime_ns = now_ns() - r.start_ns;
	last.losses.shown = r.rows;
	counters_print_close(r.print, &last);
	r.source.ops->close(&r.source);
	loop_close(r.loop);
	signals_close();
	return cmd_finish(&r.out) || err || failed;
}

/* clang-format off */
const struct command command_counters = {
	.run = cmd_counters,
	.options = &options,
	.usage = "Usage: cudatrace counters [OPTIONS]\n",
	.about = "\nPrints what the GPUs of this machine do, whichever programs use them: a line for each GPU and interval. It uses CUPTI's\n"
		 "PM sampling (12.6 and newer) if possible, else NVML's GPM, else NVML's utilisation, and says which one it uses.\n",
	.after = "\nExamples:\n"
		 "  cudatrace counters                            ten lines a second, until SIGINT\n"
		 "  cudatrace counters -i 1 -d 60 --format csv -o load.csv\n"
		 "  cudatrace counters -i 1ms --metrics sm,dram,l2_hit\n"
		 "  cudatrace counters --metrics default,sm__inst_executed_realtime.sum.per_second\n"
		 "  cudatrace counters --metrics help --chip GH100\n"
		 "\nA value that cannot be true, such as one over 100 %, is followed by a ?. Exit status: 0; 1 after an error, 2 for a wrong\n"
		 "command line.\n",
};
/* clang-format on */
