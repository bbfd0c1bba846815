/* SPDX-License-Identifier: BSD-2-Clause */
/* habits.c - see habits.h: the words, as rows. tests/cases/commandline.sh has what each of them does. */
#include "habits.h"

#include <stddef.h>
#include <string.h>

#include "../../util/types.h"

struct habit {
	const char *word, *sentence;
};

/* clang-format off */
static const struct habit options[] = {
	/* strace; where ours is the same there is a row in opts.c */
	{ "-r", "-r: leave out -r; 'cudatrace' and 'cudatrace replay' print the time between two rows" },
	{ "-s", "-s: leave out -s; 'cudatrace' and 'cudatrace replay' print rows, and cut strings" },
	{ "-S", "-S: leave out -S; 'cudatrace -c', 'cudatrace stat' and 'cudatrace top' sort what they print" },
	{ "-T", "-T: this command prints no calls one by one: leave out -T" },
	{ "-y", "-y: kernels and errors are printed by their names: leave out -y" },
	{ "-w", "-w: times are those of the clock, not of the CPU: leave out -w" },
	{ "-P", "-P: calls have no paths; --library PATH traces the functions of one file" },
	{ "--inject", "--inject: cudatrace observes calls and changes none: leave it out" },
	{ "--fault", "--fault: cudatrace observes calls and changes none: leave it out" },
	{ "--signal", "--signal: signals are not traced: leave it out" },
	{ "--daemonize", "--daemonize: leave it out; -p PID traces a program that you start yourself" },
	{ "--detach-on", "--detach-on: give --stop-on, or -d TIME" },
	{ "--columns", "--columns: rows are not aligned at a column; leave it out, or give --compact" },
	/* perf */
	{ "-a", "-a: every process of the machine is traced unless -p PID or a CMD is given: leave out -a" },
	{ "-g", "-g: stacks are taken with -k (--stack=fp: by frame pointers)" },
	{ "--call-graph", "--call-graph: stacks are taken with --stack=dwarf or --stack=fp" },
	{ "--sort", "there is no option --sort here; 'cudatrace stat' and 'cudatrace top' have it" },
	/* nsys */
	{ "--trace", "--trace: leave out --trace; calls of CUDA are traced anyway, -e selects some, --layers nvtx adds ranges, --gpu what the GPU does" },
	{ "--stats", "--stats: leave out --stats; 'cudatrace stat' prints sums alone, and -C of 'cudatrace' after the rows" },
	{ "--capture-range", "--capture-range: give --start-on cudaProfilerStart --stop-on cudaProfilerStop, or nvtx:NAME with both" },
	{ "--capture-range-end", "--capture-range-end: give --stop-on cudaProfilerStop" },
	{ "--sample", "--sample: CPU samples are not taken: leave it out" },
	{ "--backtrace", "--backtrace: stacks are taken with -k" },
	{ "--cudabacktrace", "--cudabacktrace: stacks are taken with -k" },
	{ "--cuda-memory-usage", "--cuda-memory-usage: 'cudatrace mem' says who holds memory" },
	{ "--gpu-metrics-devices", "--gpu-metrics-devices: hardware counters are taken with --counters" },
	{ "--report", "--report: give 'cudatrace stat FILE', which prints the sums of a recording" },
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
	{ "dump", "'dump' is 'cudatrace stuck' here: cudatrace stuck -p PID" },
	{ "start", "'start' is an option here: cudatrace record --start-on WHAT -- CMD" },
	{ "stop", "'stop' is an option here: cudatrace record --stop-on WHAT -- CMD" },
};

/* What stands before the '=' of strace's -e, beside what is the same here. */
static const struct habit qualifiers[] = {
	{ "inject", "-e inject: cudatrace observes calls and changes none: leave it out" },
	{ "fault", "-e fault: cudatrace observes calls and changes none: leave it out" },
	{ "signal", "-e signal: signals are not traced: leave it out" },
	{ "signals", "-e signals: signals are not traced: leave it out" },
	{ "read", "-e read: the bytes that calls copy are not read: leave it out" },
	{ "write", "-e write: the bytes that calls copy are not read: leave it out" },
	{ "abbrev", "-e abbrev: structures are printed whole: leave it out; --compact prints shorter rows" },
	{ "verbose", "-e verbose: structures are printed whole: leave it out" },
	{ "raw", "-e raw: give --format json, which has each value as a number, too" },
	{ "quiet", "-e quiet: give -q, which leaves out all messages except errors and warnings" },
	{ "decode-fds", "-e decode-fds: calls of CUDA have no descriptors: leave it out" },
	{ "trace-fds", "-e trace-fds: calls of CUDA have no descriptors: leave it out" },
	{ "kvm", "-e kvm: virtual machines are not traced: leave it out" },
};

/* Long options that are ours under another name. */
static const struct habit_same same[] = {
	/* strace */
	{ "stack-trace", "stack" },
	{ "stack-traces", "stack" },
	{ "summary", "counts" },
	{ "summary-only", "count-only" },
	{ "summary-sort-by", "sort" },
	{ "follow-forks", "follow" },
	{ "absolute-timestamps", "time-of-day" },
	{ "relative-timestamps", "relative" },
	{ "attach", "pid" },
	{ "failed-only", "failed" },
	{ "successful-only", "succeeded" },
	{ "string-limit", "string-size" },
	{ "output-append-mode", "append" },
	/* nsys */
	{ "type", "to" },
};

/* Formats of nsys export. */
static const struct habit_same formats[] = {
	{ "nsys", "nsys-sqlite" },
	{ "sqlite", "nsys-sqlite" },
	{ "jsonlines", "json" },
	{ "parquetdir", "parquet" },
};
/* clang-format on */

static const char *habits_find(const struct habit *rows, size_t n, const char *word, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(rows[i].word, word, len) && !rows[i].word[len])
			return rows[i].sentence;
	return NULL;
}

const char *habits_option(const char *word)
{
	return habits_find(options, ARRAY_LEN(options), word, strcspn(word, "="));
}

const char *habits_command(const char *word)
{
	return habits_find(commands, ARRAY_LEN(commands), word, strlen(word));
}

const char *habits_qualifier(const char *word)
{
	size_t n = strcspn(word, "=");

	return word[n] ? habits_find(qualifiers, ARRAY_LEN(qualifiers), word, n) : NULL;
}

const struct habit_same *habits_same(int i)
{
	return (size_t)i < ARRAY_LEN(same) ? &same[i] : NULL;
}

const char *habits_format(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].theirs, word))
			return formats[i].ours;
	return word;
}
