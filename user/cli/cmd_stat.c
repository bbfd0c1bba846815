/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_stat.c - `cudatrace stat`: a trace that only counts. The options say all of it but how often. */
#include <string.h>

#include "cmd.h"
#include "options/opts_check.h"
#include "../session/session.h"
#include "../stat/stat_print.h"
#include "../util/msg.h"
#include "../util/whole/apart.h"

static int one_run(void *ctx, bool *cut)
{
	int status = cmd_trace(ctx);

	*cut = session_interrupted();
	cmd_leave();
	return status;
}

/*
 * Each run is one of its own, with sums of its own, one after the other in the files. It is also a process of
 * its own: a trace gives up its privileges once it has started, and the next CMD would begin without them.
 */
static int run_again(const struct request *o, uint64_t runs)
{
	struct request one = *o;
	struct apart apart;
	int status = 0, err = apart_open(&apart);
	bool cut = false;

	if (err) {
		msg_error("tracing cannot be started: %s", strerror(-err));
		return 1;
	}
	for (uint64_t i = 0; i < runs && !status && !cut; i++) {
		msg_note("run %llu of %llu", (unsigned long long)i + 1, (unsigned long long)runs);
		one.append = o->append || i;
		status = apart_run(&apart, one_run, &one, &cut);
		if (status < 0)
			msg_error("run %llu cannot be started: %s", (unsigned long long)i + 1,
				  strerror(-status));
		else if ((status || cut) && i + 1 < runs)
			msg_warn("run %llu ended %s: the others are left out",
				 (unsigned long long)i + 1,
				 status ? "with an error" : "before its time");
		if (status < 0 || (!status && cut && i + 1 < runs))
			status = 1;
	}
	apart_close(&apart);
	return status;
}

static int cmd_stat(const struct request *o)
{
	const struct stat_options *how = request_own(o, sink_stat.options);

	if (o->replay)
		return cmd_replay(o);
	return how->runs > 1 ? run_again(o, how->runs) : cmd_trace(o);
}

/* The words of --by for which book_scopes() answers. */
#define SCOPES BOOK_SCOPE_WORDS("and")

static int cmd_stat_check(const struct opts_line *l)
{
	const struct request *o = l->o;
	const struct stat_options *how = request_own(o, sink_stat.options);
	bool passes = !o->replay &&
		      (o->filter.failed_only || o->filter.min_duration_ns || o->no_return);
	const struct opts_rule rules[] = {
		{ o->source == REQUEST_SOURCE_HOOKS, how->by == BOOK_BY_CGROUP,
		  "--source=hooks knows no cgroups: leave out --by cgroup" },
		{ o->source == REQUEST_SOURCE_CUPTI, how->by == BOOK_BY_CGROUP,
		  "--source=cupti knows no cgroups: leave out --by cgroup" },
		{ book_scopes(how->by) != 0, o->source == REQUEST_SOURCE_CUPTI && !o->replay,
		  "--by " SCOPES " need the layers, which are recorded by probes or hooks: leave "
		  "out --source=cupti" },
		{ book_scopes(how->by) != 0, o->no_return,
		  "--no-return sees no returns, and --by " SCOPES
		  " need them: give one of the two" },
		{ book_scopes(how->by) != 0, how->form == STAT_CSV,
		  "--by " SCOPES " have tables and JSON: leave out --csv" },
		{ book_scopes(how->by) != 0, how->save != NULL,
		  "--save keeps sums of functions and kernels: leave it out, or --by" },
		{ book_scopes(how->by) != 0, how->hist,
		  "--hist is of functions and kernels: leave it out, or --by" },
		{ book_scopes(how->by) != 0, o->duty > 0 || o->max_cost > 0,
		  "--by " SCOPES " look at each call, and --duty and --max-cost at a part of them: "
		  "leave them out" },
		{ o->layers != 0, !o->replay && !book_scopes(how->by),
		  "the sums of stat are of CUDA's calls: give --by " BOOK_SCOPE_WORDS(
			  "or") " with --layers" },
		{ o->duty > 0 || o->max_cost > 0, how->by == BOOK_BY_DEVICE,
		  "--by device looks at each call, and --duty and --max-cost at a part of them: "
		  "leave them out" },
		{ opts_is_given(l, "step"), how->by != BOOK_BY_STEP,
		  "--step says what a step is: give --by step" },
		{ opts_is_given(l, "watch"),
		  book_scopes(how->by) || how->by == BOOK_BY_DEVICE || how->by == BOOK_BY_KERNEL,
		  "--watch prints what the kernel counts of functions, processes, threads, streams "
		  "and cgroups: leave it out, or --by" },
		{ opts_is_given(l, "watch"), how->form != STAT_TABLE,
		  "--watch prints tables for people: leave out --format" },
		{ how->top > 0, how->form != STAT_TABLE,
		  "--top is only for tables: leave it out, because JSON and CSV always have all "
		  "rows" },
		{ opts_is_given(l, "watch"), o->source == REQUEST_SOURCE_CUPTI,
		  "--watch prints what the kernel counts: leave out --source=cupti" },
		{ how->hist, o->no_return, "--no-return knows no durations: leave out --hist" },
		{ how->hist, how->form == STAT_CSV && !how->save,
		  "--hist is of tables and of JSON: leave it out, or --csv" },
		{ opts_is_given(l, "by") && passes, how->by == BOOK_BY_DEVICE,
		  "--by device follows the device through all calls: leave out --failed, "
		  "--min-duration and --no-return" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* clang-format off */
const struct command command_stat = {
	.run = cmd_stat,
	.check = cmd_stat_check,
	.sink = &sink_stat,
	.usage = "Usage: cudatrace stat [OPTIONS]                   every process of this machine\n"
		 "       cudatrace stat [OPTIONS] -p PID[,PID...]   processes that run already\n"
		 "       cudatrace stat [OPTIONS] -- CMD [ARG...]   a program from its first call\n"
		 "       cudatrace stat [OPTIONS] FILE              of a recording\n",
	.about = "\nLets the kernel count the calls, without an event for each call, and prints the sums at the end:\n"
		 "calls, failures, times and bytes by function; bytes by direction; launches; the time spent waiting.\n",
	.after = "\nExamples:\n"
		 "  cudatrace stat -p 1234 -d 10\n"
		 "  cudatrace stat --by process -d 5                who calls what, of the whole machine\n"
		 "  cudatrace stat --by kernel -e launch -- ./app\n"
		 "  cudatrace stat --hist -e sync -p 1234\n"
		 "  cudatrace stat --json -o base.json -- ./app     for other programs, and for compare\n",
};
/* clang-format on */
