/* SPDX-License-Identifier: BSD-2-Clause */
/* habits.c - see habits.h: the words, as rows. */
#include "habits.h"

#include <stddef.h>
#include <string.h>

#include "../../util/types.h"

struct habit {
	const char *word, *sentence;
};

/* clang-format off */
static const struct habit options[] = {
	/* strace */
	{ "-ff", "-ff: rows of all processes go to one place, and the column PID tells them apart: give -f with -p PID; children of a CMD are traced anyway" },
	{ "-ttt", "-ttt: the time of day is printed as a date: give -t, or --format json, whose times are in nanoseconds" },
	{ "-r", "-r: the time between two rows is not printed: give --time us, the microseconds since the start" },
	{ "-T", "-T: each row ends with the time that the call took: leave out -T" },
	{ "-y", "-y: kernels and errors are printed by their names: leave out -y" },
	{ "-yy", "-yy: kernels and errors are printed by their names: leave out -yy" },
	{ "-z", "-z: there is no filter for calls that succeeded; -Z (--failed) shows those that failed" },
	{ "-s", "-s: the length of strings cannot be set: leave out -s" },
	{ "-S", "-S: give --sort, which 'cudatrace stat' has" },
	{ "-w", "-w: times are those of the clock, not of the CPU: leave out -w" },
	{ "-P", "-P: calls have no paths; --library PATH traces the functions of one file" },
	/* perf */
	{ "-a", "-a: every process of the machine is traced unless -p PID or a CMD is given: leave out -a" },
	{ "-g", "-g: stacks are taken with -k (--stack=fp: by frame pointers)" },
	{ "--call-graph", "--call-graph: stacks are taken with --stack=dwarf or --stack=fp" },
	{ "--sort", "there is no option --sort here; 'cudatrace stat' and 'cudatrace top' have it" },
	/* nsys */
	{ "--trace", "--trace: calls of CUDA are traced anyway; -e selects some, and --gpu=kernel,memcpy,memset,nvtx adds ranges of NVTX" },
	{ "--stats", "--stats: -C prints sums after the rows, 'cudatrace stat' prints sums alone" },
	{ "--capture-range", "--capture-range: give --start-on cudaProfilerStart --stop-on cudaProfilerStop, or nvtx:NAME with both" },
	{ "--capture-range-end", "--capture-range-end: give --stop-on cudaProfilerStop" },
	{ "--sample", "--sample: CPU samples are not taken: leave it out" },
	{ "--backtrace", "--backtrace: stacks are taken with -k" },
	{ "--cudabacktrace", "--cudabacktrace: stacks are taken with -k" },
	{ "--cuda-memory-usage", "--cuda-memory-usage: 'cudatrace mem' says who holds memory" },
	{ "--gpu-metrics-devices", "--gpu-metrics-devices: hardware counters are taken with --counters" },
	{ "--force-overwrite", "--force-overwrite: what is there becomes FILE.old: leave it out" },
	{ "--export", "--export: 'cudatrace export --to FORMAT FILE' writes a recording for another program" },
};

static const struct habit commands[] = {
	{ "profile", "'profile' is 'cudatrace record' here: cudatrace record --gpu -- CMD" },
	{ "trace", "'trace' is what cudatrace does without a word: cudatrace -- CMD, or cudatrace -p PID" },
	{ "attach", "'attach' is -p here: cudatrace -p PID" },
	{ "report", "'report' is 'cudatrace stat' here: cudatrace stat FILE" },
	{ "stats", "'stats' is 'cudatrace stat' here: cudatrace stat FILE" },
	{ "script", "'script' is 'cudatrace replay' here: cudatrace replay FILE" },
	{ "analyze", "'analyze' is 'cudatrace advise' here: cudatrace advise FILE" },
	{ "diff", "'diff' is 'cudatrace compare' here: cudatrace compare BASE NEW" },
	{ "launch", "'launch' is '--' here: cudatrace -- CMD" },
};
/* clang-format on */

static const char *find(const struct habit *rows, size_t n, const char *word, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(rows[i].word, word, len) && !rows[i].word[len])
			return rows[i].sentence;
	return NULL;
}

const char *habits_option(const char *word)
{
	return find(options, ARRAY_LEN(options), word, strcspn(word, "="));
}

const char *habits_command(const char *word)
{
	return find(commands, ARRAY_LEN(commands), word, strlen(word));
}
