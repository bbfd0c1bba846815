/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts.c - the command line. One row of options[] is all there is about an option: parsing, its default and --help come
 * from it. To add an option: a member of struct opts, a setter, a row. Knows no source and no sink.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opts.h"
#include "util/msg.h"
#include "util/parse.h"

#define LONG_ONLY 256
#define RING_MIN (64u << 10)
#define RING_MAX (1u << 30)

/* A setter: 0, or -EINVAL after one message. `name` is the option as it is called in messages. */
typedef int (*opt_set)(struct opts *, const char *name, const char *val);

/* ---- setters ------------------------------------------------------------------------------------------ */

static int add_pid(struct opts *o, const char *name, uint64_t pid)
{
	pid_t *pids;

	for (int i = 0; i < o->npids; i++)
		if (o->pids[i] == (pid_t)pid)
			return 0;
	pids = realloc(o->pids, ((size_t)o->npids + 1) * sizeof(*pids));
	if (!pids) {
		msg_error("%s: no memory", name);
		return -EINVAL;
	}
	o->pids = pids;
	pids[o->npids++] = (pid_t)pid;
	return 0;
}

static int set_pid(struct opts *o, const char *name, const char *val)
{
	/* as `pidof` and `pgrep` print them: commas, spaces, newlines */
	static const char seps[] = ", \t\n";
	const char *at = val + strspn(val, seps);

	do {
		size_t n = strcspn(at, seps);
		char word[16];
		uint64_t pid;

		snprintf(word, sizeof(word), "%.*s", (int)(n < 15 ? n : 15), at);
		if (parse_u64(word, 1, INT32_MAX, &pid)) {
			msg_error("%s: '%s' is no process id; give numbers, separated by commas", name, word);
			return -EINVAL;
		}
		if (add_pid(o, name, pid))
			return -EINVAL;
		at += n;
		at += strspn(at, seps);
	} while (*at);
	return 0;
}

static int set_tid(struct opts *o, const char *name, const char *val)
{
	uint64_t tid;

	if (parse_u64(val, 1, INT32_MAX, &tid)) {
		msg_error("%s: '%s' is no thread id", name, val);
		return -EINVAL;
	}
	o->tid = (pid_t)tid;
	return 0;
}

static int set_events(struct opts *o, const char *name, const char *val)
{
	char msg[512];

	(void)name;
	if (!select_add(&o->select, val, msg, sizeof(msg)))
		return 0;
	msg_error("%s", msg);
	return -EINVAL;
}

static int one_of(const char *name, const char *val, const char *const *words)
{
	char known[128] = "";
	size_t n = 0;

	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], val))
			return i;
	for (int i = 0; words[i] && n < sizeof(known); i++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
	msg_error("%s: '%s' is not one of %s", name, val, known);
	return -EINVAL;
}

#define ONE_OF(fn, member, type, stmt, ...)                                                                            \
	static int fn(struct opts *o, const char *name, const char *val)                                               \
	{                                                                                                              \
		static const char *const words[] = { __VA_ARGS__, NULL };                                              \
		int i = one_of(name, val, words);                                                                      \
                                                                                                                       \
		if (i < 0)                                                                                             \
			return i;                                                                                      \
		o->member = (type)i;                                                                                   \
		stmt;                                                                                                  \
		return 0;                                                                                              \
	}
ONE_OF(set_domain, domain, enum api_domain, (void)0, "runtime", "driver")
ONE_OF(set_format, format, enum opts_format, (void)0, "table", "json", "folded", "flame")
ONE_OF(set_counters_format, counters_format, enum opts_counters_format, (void)0, "table", "json", "csv")
ONE_OF(set_weight, weight, enum sink_weight, o->weight_given = true, "calls", "time", "bytes")
ONE_OF(set_time, time, enum sink_time, o->time_given = true, "ms", "us", "iso")
ONE_OF(set_color, color, enum opts_color, (void)0, "auto", "always", "never")

static int set_stack(struct opts *o, const char *name, const char *val)
{
	static const char *const words[] = { "dwarf", "fp", NULL };
	int i = val ? one_of(name, val, words) : 0;

	if (i < 0)
		return i;
	o->stack = i ? OPTS_STACK_FP : OPTS_STACK_DWARF;
	return 0;
}

static int set_probe_kind(struct opts *o, const char *name, const char *val)
{
	static const char *const words[] = { "session", "multi", "tracefs", "perf", NULL };

	if (one_of(name, val, words) < 0)
		return -EINVAL;
	o->probe_kind = val;
	return 0;
}

static int set_duration(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->duration_ns) && o->duration_ns)
		return 0;
	msg_error("%s: '%s' is no time to trace for; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_min_duration(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 0, &o->min_duration_ns) && o->min_duration_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no duration; give a number and its unit, as 1ms, 50us, 2s", name, val);
	return -EINVAL;
}

static int set_unfinished(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->unfinished_ns) && o->unfinished_ns && o->unfinished_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time to wait; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_over(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->over_ns) && o->over_ns >= 1000000 && o->over_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time from 1ms on; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

#define INTERVAL_MIN_NS 100000ULL /* as cupti/counters_wire.h has it */
#define INTERVAL_MAX_NS 3600000000000ULL
static int set_interval(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->interval_ns) && o->interval_ns >= INTERVAL_MIN_NS &&
	    o->interval_ns <= INTERVAL_MAX_NS)
		return 0;
	msg_error("%s: '%s' is no interval from 100us to 1h; give seconds, or 100ms, 1ms", name, val);
	return -EINVAL;
}

static int set_min_size(struct opts *o, const char *name, const char *val)
{
	if (!parse_size(val, &o->min_size_bytes) && o->min_size_bytes <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no size; give bytes, or 1MB (10^6), 1MiB (2^20)", name, val);
	return -EINVAL;
}

static int set_ring(struct opts *o, const char *name, const char *val)
{
	uint64_t v, bytes = RING_MIN;

	if (parse_size(val, &v) || v < RING_MIN || v > RING_MAX) {
		msg_error("%s: '%s' is no size from 64KiB to 1GiB", name, val);
		return -EINVAL;
	}
	while (bytes < v)
		bytes *= 2;
	o->ring_bytes = (uint32_t)bytes;
	return 0;
}

static int set_count(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 1, UINT64_MAX, &o->count))
		return 0;
	msg_error("%s: '%s' is no number of rows", name, val);
	return -EINVAL;
}

static int set_env(struct opts *o, const char *name, const char *val)
{
	const char **env;

	if (!*val || *val == '=') {
		msg_error("%s: '%s' names no variable; give VAR=VAL to set it, VAR to remove it", name, val);
		return -EINVAL;
	}
	env = realloc(o->env, ((size_t)o->nenv + 2) * sizeof(*env));
	if (!env) {
		msg_error("%s: no memory", name);
		return -EINVAL;
	}
	o->env = env;
	env[o->nenv++] = val;
	env[o->nenv] = NULL;
	return 0;
}

static int set_verbose(struct opts *o, const char *name, const char *val)
{
	(void)name, (void)val;
	o->verbose++;
	return 0;
}

#define TEXT(fn, member)                                                                                               \
	static int fn(struct opts *o, const char *name, const char *val)                                               \
	{                                                                                                              \
		if (!*val) {                                                                                           \
			msg_error("%s: an empty value", name);                                                         \
			return -EINVAL;                                                                                \
		}                                                                                                      \
		o->member = val;                                                                                       \
		return 0;                                                                                              \
	}
TEXT(set_output, output)
TEXT(set_comm, comm)
TEXT(set_cgroup, cgroup)
TEXT(set_library, library)
TEXT(set_user, user)
TEXT(set_metrics, metrics)
TEXT(set_chip, chip)
TEXT(set_cupti, cupti)

#define SWITCH(fn, member)                                                                                             \
	static int fn(struct opts *o, const char *name, const char *val)                                               \
	{                                                                                                              \
		(void)name, (void)val;                                                                                 \
		o->member = true;                                                                                      \
		return 0;                                                                                              \
	}
SWITCH(set_follow, follow)
SWITCH(set_append, append)
SWITCH(set_tid_column, tid_column)
SWITCH(set_failed, failed)
SWITCH(set_nested, nested)
SWITCH(set_enter_exit, enter_exit)
SWITCH(set_keep_chatty, keep_chatty)
SWITCH(set_watch, watch)
SWITCH(set_counts, counts)
SWITCH(set_mangled, mangled)
SWITCH(set_full_names, full_names)
SWITCH(set_no_python, no_python)
SWITCH(set_counts_only, counts_only)
SWITCH(set_no_return, no_return)
SWITCH(set_strict, strict)
SWITCH(set_help, help)
SWITCH(set_version, version)

/* ---- the rows ----------------------------------------------------------------------------------------- */

struct option_row {
	int letter; /* 0: none */
	const char *name, *arg; /* arg begins with '[': may be left out, and then the setter gets NULL */
	opt_set set;
	int cmds;
	const char *def; /* set before anything is parsed, shown in --help */
	const char *help; /* a newline begins a line of its own */
};

/* A row without a setter is a heading. What the format leaves no room for, such as columns, `folded` has no option for. */
#define TRACES (OPTS_TRACE | OPTS_FOLDED)
#define ALL (TRACES | OPTS_LIST | OPTS_DOCTOR | OPTS_SCHEMA | OPTS_STUCK | OPTS_COUNTERS)
static const struct option_row options[] = {
	{ .name = "What to trace", .cmds = TRACES },
	{ 'p', "pid", "PID", set_pid, TRACES | OPTS_DOCTOR | OPTS_STUCK, NULL,
	  "processes that run already; a comma list, repeatable; ends when the last of them does" },
	{ 'f', "follow", NULL, set_follow, TRACES, NULL, "the children of the traced processes too" },
	{ 't', "thread", "TID", set_tid, TRACES, NULL, "one thread only" },
	{ 0, "cgroup", "PATH", set_cgroup, TRACES, NULL,
	  "processes of this cgroup (v2) and of those below it; PATH may begin at the cgroup root" },
	{ 0, "comm", "GLOB", set_comm, TRACES, NULL, "processes of this name" },
	{ 0, "library", "PATH", set_library, TRACES | OPTS_STUCK, NULL, "functions of this file only" },
	{ 0, "domain", "NAME", set_domain, TRACES | OPTS_LIST, NULL, "one API only: runtime or driver" },
	{ 'u', "user", "USER", set_user, TRACES, NULL, "run CMD as this user (a name or a number)" },
	{ 'E', "env", "VAR[=VAL]", set_env, TRACES, NULL, "set VAR in CMD's environment, or remove it; repeatable" },

	{ .name = "What to show", .cmds = TRACES },
	{ 0, "over", "TIME", set_over, OPTS_STUCK, "1s", "threads that are inside a call for longer than this: 5, 500ms, 2m" },
	{ 0, "watch", NULL, set_watch, OPTS_STUCK, NULL,
	  "look again every second, until SIGINT; print what is new, and what has gone on" },
	{ 'e', "events", "LIST", set_events, TRACES | OPTS_LIST, NULL,
	  "classes, names and globs, separated by commas; !WORD takes out; repeatable\n"
	  "'default' is everything but internal, 'all' is everything\n"
	  "a list that begins with ! takes out of default" },
	{ 0, "failed", NULL, set_failed, TRACES, NULL, "calls that returned an error" },
	{ 0, "min-duration", "TIME", set_min_duration, TRACES, NULL, "calls that took at least this long: 1ms, 50us" },
	{ 0, "min-size", "SIZE", set_min_size, TRACES, NULL,
	  "calls that move or allocate at least this much: 1MB (10^6), 1MiB or 1M (2^20)" },
	{ 0, "unfinished", "TIME", set_unfinished, OPTS_TRACE, NULL,
	  "calls that have not returned after so long (5, 500ms) too, at once; and again when they do" },
	{ 0, "nested", NULL, set_nested, OPTS_TRACE, NULL,
	  "driver calls made inside runtime calls too, indented below them" },
	{ 0, "enter-exit", NULL, set_enter_exit, OPTS_TRACE, NULL, "two rows a call, the first at its entry" },
	{ 0, "keep-chatty", NULL, set_keep_chatty, TRACES, NULL,
	  "never mute a query (cudaGetDevice and its like) that is called very often" },

	{ 'k', "stack", "[=HOW]", set_stack, TRACES, NULL,
	  "the user stack under each row: dwarf (what -k alone means), unwound by .eh_frame from a\n"
	  "copy of up to 16 KiB of it, or fp: frame pointers, cheaper, for programs built with them" },
	{ 0, "no-python", NULL, set_no_python, TRACES | OPTS_STUCK, NULL, "stacks of native frames only, without Python's" },
	{ 0, "mangled", NULL, set_mangled, TRACES | OPTS_STUCK, NULL, "names of kernels and functions as the compiler made them" },
	{ 0, "full-names", NULL, set_full_names, TRACES | OPTS_STUCK, NULL,
	  "names of kernels with all template arguments and parameters" },

	{ 'i', "interval", "TIME", set_interval, OPTS_COUNTERS, "100ms", "between two samples: 1 (second), 100ms, 1ms; from 100us on" },
	{ 0, "metrics", "LIST", set_metrics, OPTS_COUNTERS, NULL,
	  "which: names of cudatrace or CUPTI, separated by commas; 'default' is the usual ones,\n"
	  "'help' lists them" },
	{ 0, "chip", "NAME", set_chip, OPTS_COUNTERS, NULL, "with --metrics help: of this chip, as GH100, whatever GPU is here" },
	{ 0, "cupti", "PATH", set_cupti, OPTS_COUNTERS, NULL, "this libcupti.so, or the one in this directory" },

	{ .name = "Output", .cmds = TRACES },
	{ 'o', "output", "FILE", set_output, TRACES | OPTS_STUCK | OPTS_COUNTERS, NULL, "write to FILE" },
	{ 'A', "append", NULL, set_append, TRACES, NULL, "add to FILE" },
	{ 0, "format", "NAME", set_format, OPTS_TRACE, "table",
	  "table, json, folded (a line for each stack with its weight, at the end) or flame (a flame\n"
	  "graph of them as one HTML page); the latter two imply -k" },
	{ 0, "format", "NAME", set_format, OPTS_FOLDED, "folded", "folded, or flame: a flame graph as one HTML page" },
	{ 0, "format", "NAME", set_format, OPTS_STUCK, "table", "table or json" },
	{ 0, "format", "NAME", set_counters_format, OPTS_COUNTERS, "table", "table, json (an object a line) or csv" },
	{ 0, "weight", "UNIT", set_weight, TRACES, "calls",
	  "what a stack weighs in folded and flame: calls, time (in the calls, in microseconds), or\n"
	  "bytes (that they move or allocate)" },
	{ 0, "time", "UNIT", set_time, OPTS_TRACE, "ms", "ms or us since the start, or iso: the time of day (UTC)" },
	{ 0, "tid", NULL, set_tid_column, OPTS_TRACE, NULL, "a column with the thread" },
	{ 'c', "count-only", NULL, set_counts_only, OPTS_TRACE, NULL, "no rows: counts and times by function at the end" },
	{ 'C', "counts", NULL, set_counts, OPTS_TRACE, NULL, "counts and times by function after the rows" },
	{ 0, "color", "WHEN", set_color, OPTS_TRACE, "auto", "auto, always or never" },

	{ .name = "Until when", .cmds = TRACES },
	{ 'd', "duration", "TIME", set_duration, TRACES | OPTS_COUNTERS, NULL, "stop after so many seconds (also 1.5, 500ms, 2m)" },
	{ 'n', "count", "N", set_count, TRACES | OPTS_COUNTERS, NULL, "stop after N rows" },

	{ .name = "How to trace", .cmds = TRACES },
	{ 0, "no-return", NULL, set_no_return, TRACES, NULL,
	  "probe entries only: for sandboxed (seccomp) programs, and for those that throw\n"
	  "exceptions through calls; results, durations and outputs are not known then" },
	{ 0, "ring-size", "SIZE", set_ring, TRACES | OPTS_STUCK, "16MiB", "of the buffer between kernel and tracer" },
	{ 0, "probe-kind", "KIND", set_probe_kind, TRACES | OPTS_DOCTOR | OPTS_STUCK, NULL,
	  "session, multi, tracefs or perf instead of the best that this kernel has" },
	{ 0, "strict", NULL, set_strict, TRACES, NULL, "exit with status 3 if anything was lost" },

	{ .name = "Other", .cmds = ALL },
	{ 'v', "verbose", NULL, set_verbose, ALL, NULL,
	  "say more; twice: libbpf's words too" },
	{ 'V', "version", NULL, set_version, ALL, NULL, "print the version" },
	{ 'h', "help", NULL, set_help, ALL, NULL, "print this text" },
};

/* ---- parsing ------------------------------------------------------------------------------------------ */

/* getopt's view of the rows; returns the number of long options. */
static void getopt_tables(enum opts_cmd cmd, struct option *longs, char *shorts)
{
	*shorts++ = '+'; /* what comes after the first word is CMD's */
	*shorts++ = ':';
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const struct option_row *r = &options[i];

		if (!r->set || !(r->cmds & (int)cmd))
			continue;
		*longs++ = (struct option){ r->name,
					    !r->arg ? no_argument : *r->arg == '[' ? optional_argument : required_argument,
					    NULL, LONG_ONLY + (int)i };
		if (!r->letter)
			continue;
		*shorts++ = (char)r->letter;
		/* -k takes none: -kfp would be three letters */
		if (r->arg && *r->arg != '[')
			*shorts++ = ':';
	}
	*longs = (struct option){ 0 };
	*shorts = '\0';
}

static const struct option_row *row_of(int c)
{
	if (c >= LONG_ONLY && c < LONG_ONLY + (int)ARRAY_LEN(options))
		return &options[c - LONG_ONLY];
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].set && options[i].letter == c)
			return &options[i];
	return NULL;
}

static const char *spelled(const struct option_row *r, const char *word, char *buf, size_t size)
{
	if (word && word[0] == '-' && word[1] != '-' && r->letter)
		snprintf(buf, size, "-%c", r->letter);
	else
		snprintf(buf, size, "--%s", r->name);
	return buf;
}

static int bad_option(enum opts_cmd cmd, int c, const char *word)
{
	const struct option_row *r = c == ':' && optopt ? row_of(optopt) : NULL;
	struct parse_nearest near = { .n = 0 };
	char name[64], text[256];

	if (r) {
		msg_error("%s needs a value (%s); see 'cudatrace --help'", spelled(r, word, name, sizeof(name)), r->arg);
		return -EINVAL;
	}
	if (strncmp(word, "--", 2)) {
		msg_error("there is no option -%c; see 'cudatrace --help'", optopt);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	r = row_of(optopt);
	if (r && optopt >= LONG_ONLY) {
		msg_error("--%s takes no value", r->name);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		char candidate[64];

		if (!options[i].set || !(options[i].cmds & (int)cmd))
			continue;
		snprintf(candidate, sizeof(candidate), "--%s", options[i].name);
		parse_nearest_add(&near, name, candidate);
	}
	if (near.n)
		msg_error("there is no option %s%s", name, parse_nearest_text(&near, text, sizeof(text)));
	else
		msg_error("there is no option %s; see 'cudatrace --help'", name);
	return -EINVAL;
}

/* What contradicts what, and why: { both true } is an error. */
static int contradictions(const struct opts *o)
{
	bool folds = o->format == OPTS_FORMAT_FOLDED || o->format == OPTS_FORMAT_FLAME;
	const struct {
		bool first, second;
		const char *text;
	} rules[] = {
		{ o->npids, o->cmd, "-p traces processes that run already and CMD starts one: give one of the two" },
		{ o->tid, o->cmd, "-t traces a thread that runs already and CMD starts a program: give one of the two" },
		{ o->user, !o->cmd, "-u says as whom CMD runs: give a CMD after --" },
		{ o->env, !o->cmd, "-E changes CMD's environment: give a CMD after --" },
		{ o->append, !o->output, "-A adds to the FILE of -o: give -o FILE" },
		{ o->counts, o->counts_only, "-C prints counts after the rows and -c instead of them: give one of the two" },
		{ o->counts || o->counts_only, o->format == OPTS_FORMAT_JSON,
		  "-c and -C print a table: leave out --format json, or count the rows of a JSON file afterwards" },
		{ o->counts_only, o->enter_exit, "-c prints no rows: leave out --enter-exit" },
		{ o->no_return, o->failed, "--no-return knows no results: leave out --failed" },
		{ o->no_return, o->min_duration_ns, "--no-return knows no durations: leave out --min-duration" },
		{ o->no_return, o->counts || o->counts_only, "--no-return knows no durations: leave out -c and -C" },
		{ o->no_return, o->enter_exit, "--no-return sees no returns: leave out --enter-exit" },
		{ o->no_return, o->unfinished_ns, "--no-return sees no call under way: leave out --unfinished" },
		{ o->counts_only, o->unfinished_ns, "-c prints no rows: leave out --unfinished" },
		{ o->no_return, o->nested, "--no-return cannot tell which call is inside which: leave out --nested" },
		{ o->enter_exit, o->failed, "--enter-exit prints calls before their results are known: leave out --failed" },
		{ o->enter_exit, o->min_duration_ns,
		  "--enter-exit prints calls before their durations are known: leave out --min-duration" },
		{ o->format == OPTS_FORMAT_JSON, o->time_given, "--time is for the table: JSON has ts_ns and dur_ns" },
		{ o->format == OPTS_FORMAT_JSON, o->color == OPTS_COLOR_ALWAYS, "--color is for the table: JSON has none" },
		{ o->mangled, o->full_names,
		  "--mangled prints names as the compiler made them and --full-names what they mean: give one of the two" },
		{ o->counts_only, o->stack && !folds, "-c prints no rows: leave out -k" },
		{ o->no_python, !o->stack && !folds, "--no-python is about stacks: give -k" },
		{ o->weight_given, !folds, "--weight is what a stack weighs: give --format folded or --format flame" },
		{ folds, o->counts || o->counts_only, "--format folded and flame print stacks, not counts: leave out -c and -C" },
		{ folds, o->enter_exit, "--format folded and flame print no rows: leave out --enter-exit" },
		{ folds, o->unfinished_ns, "--format folded and flame print no rows: leave out --unfinished" },
		{ folds, o->nested, "--format folded and flame would count a call and the calls inside it: leave out --nested" },
		{ folds, o->time_given, "--format folded and flame print no times: leave out --time" },
		{ folds, o->tid_column, "--format folded and flame print no rows: leave out --tid" },
		{ folds, o->color == OPTS_COLOR_ALWAYS, "--color is for the table: leave it out" },
		{ o->weight == SINK_WEIGHT_TIME, o->no_return, "--no-return knows no durations: leave out --weight time" },
		{ o->format == OPTS_FORMAT_FLAME, o->append, "--format flame writes a whole page: leave out -A" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (!rules[i].first || !rules[i].second)
			continue;
		msg_error("%s", rules[i].text);
		return -EINVAL;
	}
	return 0;
}

/* What is left after the options: CMD after --, or the words of a command that takes any. */
static int rest(struct opts *o, enum opts_cmd cmd, int argc, char **argv)
{
	bool dashes = optind > 1 && !strcmp(argv[optind - 1], "--");

	if (cmd & TRACES) {
		if (optind < argc && !dashes) {
			msg_error("what is '%s'? To start a program, write -- before it: cudatrace%s [OPTIONS] -- %s",
				  argv[optind], cmd == OPTS_FOLDED ? " folded" : "", argv[optind]);
			return -EINVAL;
		}
		if (dashes && optind == argc) {
			msg_error("-- without a command to start after it");
			return -EINVAL;
		}
		if (optind < argc)
			o->cmd = argv + optind;
		if (cmd == OPTS_FOLDED && o->format < OPTS_FORMAT_FOLDED) {
			msg_error("'cudatrace folded' adds up stacks: give --format folded or flame, or leave out 'folded'");
			return -EINVAL;
		}
		return contradictions(o);
	}
	o->args = (const char *const *)(argv + optind);
	o->nargs = argc - optind;
	if (cmd == OPTS_STUCK && o->format > OPTS_FORMAT_JSON) {
		msg_error("'cudatrace stuck' prints rows: give --format table or json");
		return -EINVAL;
	}
	if (o->chip && (!o->metrics || strcmp(o->metrics, "help"))) {
		msg_error("--chip says whose metrics are listed: give --metrics help");
		return -EINVAL;
	}
	if (cmd != OPTS_LIST && o->nargs) {
		msg_error("'%s' is one word too many; see 'cudatrace --help'", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

int opts_parse(struct opts *o, enum opts_cmd cmd, int argc, char **argv)
{
	struct option longs[ARRAY_LEN(options) + 1];
	char shorts[ARRAY_LEN(options) * 2 + 3], msg[512];
	int c;

	memset(o, 0, sizeof(*o));
	o->domain = API_DOMAIN_END;
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].def && options[i].cmds & (int)cmd)
			options[i].set(o, options[i].name, options[i].def);
	o->time_given = o->weight_given = false;
	getopt_tables(cmd, longs, shorts);
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	for (;;) {
		int at = optind ? optind : 1;
		const struct option_row *r;
		char name[64];

		c = getopt_long(argc, argv, shorts, longs, NULL);
		if (c < 0)
			break;
		if (c == '?' || c == ':')
			return bad_option(cmd, c, argv[at]);
		r = row_of(c);
		if (r->set(o, spelled(r, argv[at], name, sizeof(name)), optarg))
			return -EINVAL;
	}
	if (o->help || o->version)
		return 0;
	if (select_finish(&o->select, o->domain, msg, sizeof(msg))) {
		msg_error("%s", msg);
		return -EINVAL;
	}
	if (rest(o, cmd, argc, argv))
		return -EINVAL;
	if (o->format >= OPTS_FORMAT_FOLDED && !o->stack)
		o->stack = OPTS_STACK_DWARF;
	return 0;
}

const char *opts_title(const struct opts *o, char *buf, size_t size)
{
	size_t n = 0;

	snprintf(buf, size, "%s", o->cmd ? "" : o->npids ? "process" : "all processes");
	n = strlen(buf);
	for (int i = 0; o->cmd && o->cmd[i] && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? " " : "", o->cmd[i]);
	for (int i = 0; i < o->npids && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%d", i ? ", " : o->npids > 1 ? "es " : " ", (int)o->pids[i]);
	return buf;
}

void opts_free(struct opts *o)
{
	free(o->pids);
	free(o->env);
	o->pids = NULL;
	o->env = NULL;
}

/* ---- help --------------------------------------------------------------------------------------------- */

#define HELP_COLUMN 28

static const struct {
	enum opts_cmd cmd;
	const char *usage, *after;
} texts[] = {
	{ OPTS_TRACE,
	  "Usage: cudatrace [OPTIONS]                      every process of this machine\n"
	  "       cudatrace [OPTIONS] -p PID[,PID...]      processes that run already\n"
	  "       cudatrace [OPTIONS] -- CMD [ARG...]      start a program and trace it from its first call\n"
	  "       cudatrace folded [OPTIONS] [-- CMD...]   the stacks of the calls, added up: for flame graphs\n"
	  "       cudatrace stuck [-p PID]                 the threads that are inside a CUDA call now, and where\n"
	  "       cudatrace counters [-i TIME]             what the GPUs do: a line each interval, like vmstat\n"
	  "       cudatrace list [GLOB...]                 the functions known: domain, class, arguments\n"
	  "       cudatrace doctor [-p PID]                what can be traced here, what cannot, and why\n"
	  "       cudatrace schema                         the JSON Schema of --format json\n"
	  "\nPrints the calls that programs make to CUDA's runtime and driver, with arguments, results and durations.\n",
	  "\nExamples:\n"
	  "  cudatrace -p 1234 -e memory,launch            what process 1234 allocates and launches\n"
	  "  cudatrace -p $(pidof python3) -d 10 -c        ten seconds of it, counted by function\n"
	  "  cudatrace --failed                            every failing call of the machine\n"
	  "  cudatrace -e '!query' -o trace.txt -- ./app   a program from its first call, without queries\n"
	  "  cudatrace -e 'cudaMemcpy*' --min-size 1MB     large copies\n"
	  "  cudatrace -k -e sync -p 1234                  where it waits, and who makes it wait\n"
	  "  cudatrace --format json -- ./app | jq .api    one JSON object a line\n"
	  "  cudatrace --format flame -o f.html -- ./app   a flame graph to open in a browser\n"
	  "\nExit status: that of CMD (128 + signal if one ended it); without CMD 0; 1 after an error, 2 for a wrong command\n"
	  "line, 3 with --strict when records were lost. SIGINT goes to CMD, and tracing goes on until CMD ends; a second\n"
	  "SIGINT within a second detaches and leaves CMD running, as the end of -d and -n does. SIGTERM and SIGHUP are passed\n"
	  "on to CMD and end the trace when it ends, or after a second.\n" },
	{ OPTS_FOLDED,
	  "Usage: cudatrace folded [OPTIONS]                   every process of this machine\n"
	  "       cudatrace folded [OPTIONS] -p PID[,PID...]   processes that run already\n"
	  "       cudatrace folded [OPTIONS] -- CMD [ARG...]   start a program and trace it from its first call\n"
	  "\nAdds up the calls by the stacks they are made from, and prints at the end a line for each, outermost function first,\n"
	  "with its weight: what flame graph programs read. With --format flame the flame graph itself, as a page for a browser.\n",
	  "\nExamples:\n"
	  "  cudatrace folded -p 1234 -d 10 -o stacks.txt\n"
	  "  cudatrace folded -e sync --weight time --format flame -o waits.html -- ./app\n"
	  "  cudatrace folded -e memory --weight bytes -- ./app\n" },
	{ OPTS_LIST,
	  "Usage: cudatrace list [OPTIONS] [GLOB...]\n"
	  "\nPrints the functions known: domain, class, name, arguments. Several GLOBs: what any of them matches.\n",
	  "\nExamples:\n"
	  "  cudatrace list 'cuMem*'\n"
	  "  cudatrace list -e launch --domain driver\n" },
	{ OPTS_DOCTOR,
	  "Usage: cudatrace doctor [OPTIONS]\n"
	  "\nSays what this kernel and these privileges allow, and, for a process, which CUDA libraries it has, which functions\n"
	  "can be traced, by what route, and what cannot be seen and why.\n",
	  "" },
	{ OPTS_STUCK,
	  "Usage: cudatrace stuck [OPTIONS]\n"
	  "\nPrints the threads that are inside a CUDA call for longer than a second, or --over: which call, since when, its\n"
	  "arguments and the stack that led to it. A call that began before cudatrace is told from the thread's own stack: FOR is\n"
	  "then the least that it can be, as >1.0s, and the arguments are not known. No thread is stopped for it.\n",
	  "\nExamples:\n"
	  "  cudatrace stuck                               of every process of this machine\n"
	  "  cudatrace stuck -p 1234 --over 10s\n"
	  "  cudatrace stuck -p 1234 --watch               until SIGINT: what hangs, and when it goes on\n"
	  "\nExit status: 4 when there are such threads (with --watch: at the last look), 0 when there are none, 1 after an error,\n"
	  "2 for a wrong command line.\n" },
	{ OPTS_COUNTERS,
	  "Usage: cudatrace counters [OPTIONS]\n"
	  "\nPrints what the GPUs of this machine do, whichever programs use them: a line for each GPU and interval. By CUPTI's PM\n"
	  "sampling (12.6 and newer) where that can be had, else by NVML's GPM, else by NVML's utilisation; it says which.\n",
	  "\nExamples:\n"
	  "  cudatrace counters                            ten lines a second, until SIGINT\n"
	  "  cudatrace counters -i 1 -d 60 --format csv -o load.csv\n"
	  "  cudatrace counters -i 1ms --metrics sm,dram,l2_hit\n"
	  "  cudatrace counters --metrics default,sm__inst_executed_realtime.sum.per_second\n"
	  "  cudatrace counters --metrics help --chip GH100\n"
	  "\nA value that cannot be true, as one over 100 %, has a ? behind it. Exit status: 0; 1 after an error, 2 for a wrong\n"
	  "command line.\n" },
	{ OPTS_SCHEMA,
	  "Usage: cudatrace schema\n"
	  "\nPrints the JSON Schema (draft 2020-12) of the lines of --format json.\n",
	  "" },
};

static void help_row(struct out *out, const struct option_row *r)
{
	const char *line = r->help;
	char head[64];
	int n;

	n = snprintf(head, sizeof(head), "  %s%c%s--%s%s%s", r->letter ? "-" : " ", r->letter ? r->letter : ' ',
		     r->letter ? ", " : "  ", r->name, r->arg && *r->arg != '[' ? " " : "", r->arg ? r->arg : "");
	out_str(out, head);
	if (n >= HELP_COLUMN) {
		out_char(out, '\n');
		n = 0;
	}
	for (; n < HELP_COLUMN; n++)
		out_char(out, ' ');
	while (*line) {
		size_t len = strcspn(line, "\n");

		out_mem(out, line, len);
		line += len;
		if (*line) {
			line++;
			out_fmt(out, "\n%*s", HELP_COLUMN, "");
		}
	}
	if (r->def)
		out_fmt(out, " [%s]", r->def);
	out_char(out, '\n');
}

void opts_help(struct out *out, enum opts_cmd cmd)
{
	for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
		if (texts[t].cmd != cmd)
			continue;
		out_str(out, texts[t].usage);
		if (!(cmd & TRACES))
			out_str(out, "\nOptions:\n");
		for (size_t i = 0; i < ARRAY_LEN(options); i++) {
			if (!(options[i].cmds & (int)cmd))
				continue;
			if (options[i].set)
				help_row(out, &options[i]);
			else if (cmd & TRACES)
				out_fmt(out, "\n%s:\n", options[i].name);
		}
		out_str(out, texts[t].after);
		if (!(cmd & TRACES))
			continue;
		out_str(out, "\nClasses:");
		for (int c = 0; c < API_CLASS_END; c++)
			out_fmt(out, " %s", api_class_name((enum api_class)c));
		out_char(out, '\n');
	}
}
