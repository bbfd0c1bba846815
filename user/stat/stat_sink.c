/* SPDX-License-Identifier: BSD-2-Clause */
/* stat_sink.c - prints the sums at the end: the sink behind `cudatrace stat`. The other files of
 * this room make the sums. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../event/memory/account.h"
#include "scopes_print.h"
#include "stat_print.h"
#include "steps_print.h"
#include "../util/msg.h"
#include "../util/option/option.h"
#include "../flow/sink.h"

struct stat_sink {
	const struct stat_options *how;
	struct book *book;
	struct ct_device *device; /* the first device that a record reported */
	struct account memory;	  /* held; only if no call is left out: the sum would be wrong */
	struct out saved;	  /* with --save */
	/* what calls and work were for, with --by range and its like: then there is no book; NULL
	 * otherwise */
	struct scope_sums *scopes;
	struct steps *steps; /* with --by step; NULL otherwise */
	struct stat_watch *watch;
};

/* True if the reader of the output can show block characters. Decided by the environment
 * variables only: a static program has no locales. */
static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *v = getenv(names[i]);

		if (v && *v)
			return strcasestr(v, "UTF-8") || strcasestr(v, "utf8");
	}
	return false;
}

/* The kernel side's sums have histograms if it made some; for records they are made here. */
static struct book *new_book(const struct stat_options *how, const struct sink_opts *opts)
{
	return book_open((enum book_by)how->by, true,
			 !opts->recorded && opts->call_counts_max > BOOK_MAX ? opts->call_counts_max
									     : 0);
}

static int stat_open(struct sink *s, const struct sink_opts *opts)
{
	static const struct stat_options usual = { 0 };
	const struct stat_options *how = opts->own ? opts->own : &usual;
	struct stat_sink *st = calloc(1, sizeof(*st));
	int err;

	s->opts = opts;
	s->priv = st;
	if (!st)
		return -ENOMEM;
	st->how = how;
	st->saved.fd = -1;
	if (how->by == BOOK_BY_STEP) {
		st->steps = steps_open(how->step && strcmp(how->step, "auto") ? how->step : NULL,
				       STEPS_MAX);
		return st->steps ? 0 : -ENOMEM;
	}
	if (book_scopes(how->by)) {
		st->scopes = scope_sums_open(book_scopes(how->by));
		return st->scopes ? 0 : -ENOMEM;
	}
	/* the old file stays until there is something to replace it */
	err = how->save ? out_open(&st->saved, how->save, true) : 0;
	if (err) {
		msg_error("cannot write to %s: %s", how->save, strerror(-err));
		return -EINVAL;
	}
	st->book = new_book(how, opts);
	if (how->watch_ns) {
		st->watch = stat_watch_open(how->watch_ns);
		if (!st->watch)
			return -ENOMEM;
	}
	account_open(&st->memory, 0, NULL, NULL);
	return st->book ? 0 : -ENOMEM;
}

static int keep_device(struct stat_sink *st, const struct ct_hdr *h)
{
	if (st->device || !((const struct ct_device *)h)->max_warps)
		return 0;
	st->device = malloc(h->size);
	if (!st->device)
		return -ENOMEM;
	memcpy(st->device, h, h->size);
	return 0;
}

static int stat_event(struct sink *s, const struct event *ev)
{
	struct stat_sink *st = s->priv;

	if (st->steps)
		return steps_event(st->steps, ev);
	if (st->scopes)
		return scope_sums_event(st->scopes, ev);
	if (ev->rec->kind == CT_DEVICE)
		return keep_device(st, ev->rec);
	/* calls that are counted in the kernel do not report memory: then only CT_MEMORY does,
	 * with --gpu=memory */
	if (s->opts->every_call)
		account_event(&st->memory, ev);
	if (st->watch && stat_watch_event(st->watch, ev))
		return -ENOMEM;
	return book_event(st->book, ev);
}

/* Writes the file of --save. The printed output does not depend on it. */
static int save(struct stat_sink *st, const struct sink_opts *o, const struct report *r,
		const struct print_about *about)
{
	int err;

	if (!st->how->save)
		return 0;
	if (!r || !about->end->reason || !strcmp(about->end->reason, "error")) {
		out_close(&st->saved);
		return 0;
	}
	err = !o->append && st->saved.is_file && ftruncate(st->saved.fd, 0) ? -errno : 0;
	if (!err)
		print_json(&st->saved, r, about);
	if (err)
		out_close(&st->saved);
	else
		err = out_close(&st->saved);
	if (err)
		msg_error("writing to %s failed: %s", st->how->save, strerror(-err));
	return err;
}

/* Prints the sums by scopes. */
static int scopes_close(struct sink *s)
{
	const struct sink_opts *o = s->opts;
	struct stat_sink *st = s->priv;
	const struct stat_options *how = st->how;

	if (how->form == STAT_JSON)
		scope_sums_json(st->scopes, o->out, book_by_words[how->by]);
	else
		scope_sums_text(st->scopes, o->out, book_by_words[how->by], how->top);
	if (scope_sums_no_room(st->scopes))
		msg_warn("%llu calls and pieces of device work are not in the table: there are too "
			 "many different names",
			 (unsigned long long)scope_sums_no_room(st->scopes));
	scope_sums_close(st->scopes);
	free(st);
	s->priv = NULL;
	return o->out->error;
}

/* Finds the steps and prints them. */
static int steps_end(struct sink *s, const struct sink_end *end)
{
	const struct sink_opts *o = s->opts;
	struct stat_sink *st = s->priv;
	const struct stat_options *how = st->how;
	int err;

	steps_holes(st->steps, end->losses.holes);
	err = steps_finish(st->steps);

	if (!err && how->form == STAT_JSON)
		steps_json(st->steps, o->out);
	else if (!err)
		steps_text(st->steps, o->out, how->top);
	if (steps_no_room(st->steps))
		msg_warn("%llu operators, ranges and pieces of device work are not in the table, "
			 "because there is no room for more: the steps after the first of them are "
			 "left out",
			 (unsigned long long)steps_no_room(st->steps));
	steps_close(st->steps);
	free(st);
	s->priv = NULL;
	return err ? err : o->out->error;
}

/* What the book has, in the form that was asked for. Returns 0 or -errno. */
static int print_tables(struct sink *s, const struct sink_end *end)
{
	const struct sink_opts *o = s->opts;
	struct stat_sink *st = s->priv;
	const struct stat_options *how = st->how;
	struct print_about about = { .title = o->title,
				     .version = o->version,
				     .hist = how->hist,
				     .top = how->top,
				     .color = o->color,
				     .gpu = o->gpu,
				     .memory = o->memory,
				     .end = end,
				     .device = st->device };
	struct report *r;
	int err = 0;

	about.utf8 = is_utf8();
	about.peak_bytes = st->memory.peak[ACCOUNT_DEVICE];
	if (st->book)
		book_leave_entered(st->book);
	r = st->book ? report_make(st->book) : NULL;
	if (r && how->sort != REPORT_BY_TIME)
		report_sort(r, (enum report_order)how->sort);
	if (!r)
		err = -ENOMEM;
	else if (how->form == STAT_JSON)
		print_json(o->out, r, &about);
	else if (how->form == STAT_CSV)
		print_csv(o->out, r, &about);
	else
		print_text(o->out, r, &about);
	if (strcmp(end->reason ? end->reason : "", "running") && save(st, o, r, &about))
		err = err ? err : -EIO;
	report_free(r);
	return err;
}

/* --watch: the sums so far. The counts come anew for it, so the book begins anew after it. */
static int stat_tick(struct sink *s, uint64_t now_ns)
{
	const struct sink_opts *o = s->opts;
	struct stat_sink *st = s->priv;
	struct sink_end end = { .reason = "running" };
	int err;

	if (!st->watch || !stat_watch_due(st->watch, now_ns))
		return 0;
	err = o->refresh(o->refresh_ctx);
	if (!err && stat_watch_ready(st->watch)) {
		o->losses(o->refresh_ctx, &end.losses);
		end.uptime_ns = now_ns - o->start_ns;
		stat_watch_head(st->watch, o->out);
		err = print_tables(s, &end);
	}
	book_close(st->book);
	st->book = new_book(st->how, o);
	if (!err)
		err = st->book ? stat_watch_again(st->watch, st->book) : -ENOMEM;
	return err ? err : out_flush(o->out);
}

static int stat_close(struct sink *s, const struct sink_end *end)
{
	const struct sink_opts *o = s->opts;
	struct stat_sink *st = s->priv;
	int err;

	if (!st)
		return 0;
	if (st->steps)
		return steps_end(s, end);
	if (st->scopes)
		return scopes_close(s);
	if (st->watch)
		stat_watch_head(st->watch, o->out);
	err = print_tables(s, end);
	if (st->book && st->book->no_room)
		msg_warn("%llu calls are not in the tables: there are too many different ones",
			 (unsigned long long)st->book->no_room);
	if (st->book && st->book->unnamed)
		msg_warn("there are too many names of kernels: some launches and kernels are "
			 "counted without a name");
	stat_watch_close(st->watch);
	book_close(st->book);
	account_close(&st->memory);
	free(st->device);
	free(st);
	s->priv = NULL;
	return err ? err : o->out->error;
}

static void stat_wants(const void *own, struct sink_wants *wants)
{
	const struct stat_options *how = own;

	wants->for_programs = how->form != STAT_TABLE;
	wants->files[0] = how->save;
	wants->by = how->by;
	wants->sums = !book_scopes(how->by);
	wants->hist = how->hist;
	wants->layers = book_layers(how->by);
	wants->any_layer = how->by == BOOK_BY_STEP; /* a step is found by any of several */
}

/* Reports of nsys: what prints the same sums. */
static const struct {
	const char *report;
	uint8_t by;
	const char *instead; /* another command; NULL: these sums have it */
} reports[] = {
	{ "cuda_api_sum", BOOK_BY_FUNCTION, NULL },
	{ "cuda_api_gpu_sum", BOOK_BY_FUNCTION, NULL },
	{ "cuda_gpu_sum", BOOK_BY_FUNCTION, NULL },
	{ "cuda_gpu_kern_sum", BOOK_BY_FUNCTION, NULL },
	{ "cuda_gpu_mem_time_sum", BOOK_BY_FUNCTION, NULL },
	{ "cuda_gpu_mem_size_sum", BOOK_BY_FUNCTION, NULL },
	{ "cuda_kern_exec_sum", BOOK_BY_KERNEL, NULL },
	{ "nvtx_sum", BOOK_BY_RANGE, NULL },
	{ "nvtx_pushpop_sum", BOOK_BY_RANGE, NULL },
	{ "nvtx_startend_sum", BOOK_BY_RANGE, NULL },
	{ "nvtx_gpu_proj_sum", BOOK_BY_RANGE, NULL },
	{ "nvtx_kern_sum", BOOK_BY_RANGE, NULL },
	{ "cuda_api_trace", 0, "'cudatrace replay FILE' prints each call" },
	{ "cuda_gpu_trace", 0, "'cudatrace replay FILE' prints each call and what the GPU did" },
	{ "cuda_kern_exec_trace", 0,
	  "'cudatrace replay FILE' prints each call and what the GPU did" },
	{ "nvtx_pushpop_trace", 0, "'cudatrace replay FILE' prints each range" },
	{ "nvtx_gpu_proj_trace", 0,
	  "'cudatrace export --to html FILE' draws ranges and what the GPU did in them" },
	{ "um_sum", 0, "'cudatrace mem FILE' says who holds memory" },
	{ "um_total_sum", 0, "'cudatrace mem FILE' says who holds memory" },
	{ "osrt_sum", 0, "calls of the operating system are not traced: leave it out" },
};

static int set_report(void *options, const char *name, const char *val)
{
	struct stat_options *o = options;

	for (const char *at = val; *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ","), i = 0;

		while (i < ARRAY_LEN(reports) &&
		       (strncmp(reports[i].report, at, n) != 0 || reports[i].report[n]))
			i++;
		if (i == ARRAY_LEN(reports)) {
			msg_error("%s: '%.*s' is no report that is known here: leave out --report, "
				  "without which all sums are printed, or give --by",
				  name, (int)(n < 40 ? n : 40), at);
			return -EINVAL;
		}
		if (reports[i].instead) {
			msg_error("%s %s: %s", name, reports[i].report, reports[i].instead);
			return -EINVAL;
		}
		o->by = reports[i].by ? reports[i].by : o->by;
		at += n;
	}
	if (*val && *val != ',')
		return 0;
	msg_error("%s: an empty value; give one, or leave %s out", name, name);
	return -EINVAL;
}

#define OPTION_STRUCT struct stat_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "by", "WHAT", ENUM_OF(by, book_by_words), 0, "function",
	  "group calls by function, process, thread, kernel, stream, device or cgroup; or group calls\n"
	  "and device work by what they were for: range (NVTX), collective (NCCL), operator (PyTorch)\n"
	  "or gemm (cuBLAS, cuDNN); or by step, with what the GPU did in each; or by class: what\n"
	  "kernels do" },
	{ 0, "hist", NULL, FLAG(hist), 0, NULL, "print histograms of the durations: a column for each power of two" },
	{ 0, "format", "NAME", ENUM(form, "table", "json", "csv"), 0, "table", "table, json or csv" },
	{ 0, "json", NULL, CONST(form, STAT_JSON), 0, NULL, "the same as --format json",
	  RULES(EXCLUDES("csv", NULL), EXCLUDES("format", "--json and --csv are forms of --format: give one of them")) },
	{ 0, "csv", NULL, CONST(form, STAT_CSV), 0, NULL, "the same as --format csv",
	  RULES(EXCLUDES("format", "--json and --csv are forms of --format: give one of them")) },
	{ 0, "save", "FILE", TEXT(save), 0, NULL,
	  "write the sums to FILE too, as JSON, for 'cudatrace compare'; with -A add them to FILE as\n"
	  "one more run" },
	{ 0, "runs", "N", COUNT(runs, 1, 1000, "runs", NULL), 0, NULL, "run CMD this many times; print and save each run by itself",
	  RULES(NEEDS("CMD", "--runs says how often CMD is run: give a CMD after --")) },
	{ 'S', "sort", "KEY", ENUM(sort, "time", "calls", "failed", "avg", "max", "bytes", "name"), 0, "time",
	  "sort rows by time, calls, failed, avg, max, bytes or name" },
	{ 0, "top", "N", COUNT(top, 1, 1000000, "rows", NULL), 0, NULL, "print only the first N rows of a table; the total is that of all rows",
	  RULES(EXCLUDES("json csv", "--top is only for tables: leave it out, because JSON and CSV always have all rows")) },
	{ 0, "watch", "[=TIME]", DURATION(watch_ns, 100 * MILLI, HOUR, SECOND, "interval", "give seconds, or 500ms, 2m", .alone = "1s"), 0, NULL,
	  "print the sums so far every second, or every TIME, in place on a terminal; and at the end",
	  RULES(EXCLUDES("FILE", "--watch is for running programs: leave it out"),
		EXCLUDES("json csv hist save", "--watch prints tables for people: leave the other options out"),
		EXCLUDES("gpu counters layers min-size runs", "--watch prints what the kernel counts: leave the other options out")) },
	{ 0, "report", "LIST", OTHER(set_report), 0, NULL, NULL,
	  RULES(EXCLUDES("by", "--report says how calls are grouped, and so does --by: give one of the two")) },
	{ 0, "step", "NAME", TEXT(step), 0, "auto",
	  "with --by step: what a step is. NAME is a glob for the names of ranges; auto means ranges\n"
	  "ProfilerStep#N, else optimizers' steps, else the period of operators or of launches" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_stat = {
	.name = "stat",
	.open = stat_open,
	.event = stat_event,
	.tick = stat_tick,
	.close = stat_close,
	.options = &options,
	.wants = stat_wants,
};
