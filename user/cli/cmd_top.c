/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_top.c - `cudatrace top`: a trace that is shown live, by counts. */
#include "cmd.h"
#include "options/opts_check.h"
#include "../top/draw.h"
#include "../top/model.h"
#include "../top/top_options.h"

#define INTERVAL_MIN_NS 100000000ULL /* between two screens */

static int cmd_top_check(const struct opts_line *l)
{
	const struct request *o = l->o;
	const struct top_options *how = request_own(o, sink_top.options);
	const struct opts_rule rules[] = {
		{ o->interval_ns < INTERVAL_MIN_NS, true,
		  "-i: the screen is refreshed at most ten times a second: give 100ms or more" },
		{ !how->batch, o->count, "-n is for blocks of text: give --batch" },
		{ !how->batch, o->output, "-o is for blocks of text: give --batch" },
		{ !how->batch, opts_is_given(l, "format"),
		  "--format is for blocks of text: give --batch" },
		{ how->batch, o->color == REQUEST_COLOR_ALWAYS,
		  "--batch prints no colors: leave out --color" },
		{ o->gpu, !o->npids, "--gpu is about programs that the agent is in: give -p PID" },
		{ !o->gpu, how->sort == TOP_BY_GPU || how->sort == TOP_BY_BUSY,
		  "--sort gpu and busy are about what the GPU does: give --gpu" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* If there is no terminal to draw on, the command fails before it looks for files and attaches probes. */
static int cmd_top_run(const struct request *o)
{
	const struct top_options *how = request_own(o, sink_top.options);

	return !how->batch && draw_check() ? 1 : cmd_trace(o);
}

/* clang-format off */
const struct command command_top = {
	.run = cmd_top_run,
	.check = cmd_top_check,
	.sink = &sink_top,
	.usage = "Usage: cudatrace top [OPTIONS]\n",
	.about = "\nShows live what the processes of this machine, or selected ones, do with their GPUs: calls, launches and bytes a second,\n"
		 "the share of time in the API and in waits, failures. The kernel counts the calls; no event is sent for each call.\n"
		 "Keys: Enter shows a process's functions, k its kernels, t its threads, ? all keys; q ends.\n"
		 "Queries (cudaGetDevice and similar) are not counted, unless --queries or -e selects them.\n",
	.after = "\nExamples:\n"
		 "  cudatrace top\n"
		 "  cudatrace top --counters -i 2\n"
		 "  cudatrace top --gpu -p 1234                   with the time on the GPU\n"
		 "  cudatrace top --batch -n 60 --format json -o top.jsonl\n",
};
/* clang-format on */
