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

#include "../cupti/agent.h"
#include "advise/advise.h"
#include "opts.h"
#include "opts_rows.h"
#include "util/msg.h"
#include "util/parse.h"

#define LONG_ONLY 256
#define RING_MIN (64u << 10)
#define RING_MAX (1u << 30)
#define INTERVAL_MIN_NS 100000ULL /* as cupti/counters_wire.h has it */
#define INTERVAL_MAX_NS 3600000000000ULL
#define TOP_INTERVAL_MIN_NS 100000000ULL


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
	o->events_given = true;
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
	static const char *const fn##_words[] = { __VA_ARGS__, NULL };                                                 \
	static int fn(struct opts *o, const char *name, const char *val)                                               \
	{                                                                                                              \
		int i = one_of(name, val, fn##_words);                                                                 \
                                                                                                                       \
		if (i < 0)                                                                                             \
			return i;                                                                                      \
		o->member = (type)i;                                                                                   \
		stmt;                                                                                                  \
		return 0;                                                                                              \
	}
ONE_OF(set_domain, domain, enum api_domain, (void)0, "runtime", "driver")
ONE_OF(set_weight, weight, enum sink_weight, o->weight_given = true, "calls", "time", "bytes", "gpu")
ONE_OF(set_time, time, enum sink_time, o->time_given = true, "ms", "us", "iso")
ONE_OF(set_source, by_cupti, bool, (void)0, "probes", "cupti")
ONE_OF(set_graph, gpu_graph, uint32_t, (void)0, "node", "graph")
ONE_OF(set_gpu_clock, gpu_clock, uint32_t, (void)0, "auto", "callback", "offset")
ONE_OF(set_by, by, uint8_t, (void)0, "function", "process", "thread", "kernel", "stream", "device", "cgroup")
ONE_OF(set_stat, stat, enum sink_stat, (void)0, "table", "json", "csv")
ONE_OF(set_top_format, stat, enum sink_stat, (void)0, "table", "json")
/* as enum top_sort has them */
ONE_OF(set_sort, sort, uint8_t, (void)0, "pid", "name", "calls", "launches", "api", "sync", "htod", "dtoh", "memory", "failed", "gpu",
       "busy")
ONE_OF(set_advise, advise.format, enum sink_advise_format, (void)0, "text", "json", "markdown")
ONE_OF(set_counters_format, counters_format, enum opts_counters, (void)0, "table", "json", "csv")
ONE_OF(set_compare_format, compare_format, enum compare_format, (void)0, "text", "markdown", "json", "junit")
ONE_OF(set_color, color, enum opts_color, (void)0, "auto", "always", "never")

static int set_format(struct opts *o, const char *name, const char *val)
{
	char known[256];

	o->format = sinks_find(val);
	if (o->format && !(o->format->flags & SINKS_COMMAND))
		return 0;
	msg_error("%s: '%s' is not one of %s", name, val, sinks_names(0, known, sizeof(known)));
	return -EINVAL;
}

static const char *const set_stack_words[] = { "dwarf", "fp", NULL };
static int set_stack(struct opts *o, const char *name, const char *val)
{
	int i = val ? one_of(name, val, set_stack_words) : 0;

	if (i < 0)
		return i;
	o->stack = i ? OPTS_STACK_FP : OPTS_STACK_DWARF;
	return 0;
}

static const char *const set_probe_kind_words[] = { "session", "multi", "tracefs", "perf", NULL };
static int set_probe_kind(struct opts *o, const char *name, const char *val)
{
	if (one_of(name, val, set_probe_kind_words) < 0)
		return -EINVAL;
	o->probe_kind = val;
	return 0;
}

/* ---- the device ---- */

static const struct {
	const char *word;
	uint32_t kinds;
} gpu_kinds[] = {
	{ "kernel", AGENT_KERNEL },   { "memcpy", AGENT_MEMCPY },     { "memset", AGENT_MEMSET },
	{ "sync", AGENT_SYNC },	      { "memory", AGENT_MEMORY },     { "overhead", AGENT_OVERHEAD },
	{ "nvtx", AGENT_NVTX },	      { "context", AGENT_CONTEXT },   { "device", AGENT_DEVICE },
	{ "stream", AGENT_STREAM },   { "runtime", AGENT_RUNTIME_API }, { "driver", AGENT_DRIVER_API },
	{ "um", AGENT_UM },
};

static int set_gpu(struct opts *o, const char *name, const char *val)
{
	uint32_t kinds = 0;

	for (const char *at = val; at && *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ","), i;

		for (i = 0; i < ARRAY_LEN(gpu_kinds); i++)
			if (strlen(gpu_kinds[i].word) == n && !strncmp(gpu_kinds[i].word, at, n))
				break;
		if (i == ARRAY_LEN(gpu_kinds)) {
			msg_error("%s: '%.*s' is no kind of record: kernel, memcpy, memset, sync, memory, overhead, nvtx, context, "
				  "device, stream, runtime, driver or um", name, (int)(n < 40 ? n : 40), at);
			return -EINVAL;
		}
		kinds |= gpu_kinds[i].kinds;
		at += n;
	}
	if (val && !kinds) {
		msg_error("%s: an empty list of kinds", name);
		return -EINVAL;
	}
	o->gpu = true;
	o->gpu_kinds = val ? kinds : AGENT_DEFAULT;
	return 0;
}

static int set_top_gpu(struct opts *o, const char *name, const char *val)
{
	return set_gpu(o, name, val ? val : "kernel,memcpy,memset,memory");
}

static int set_gpu_buffer(struct opts *o, const char *name, const char *val)
{
	const char *comma = strchr(val, ',');
	uint64_t bytes, n = 160;
	char size[32];

	snprintf(size, sizeof(size), "%.*s", comma ? (int)(comma - val) : (int)sizeof(size) - 1, val);
	if (parse_size(size, &bytes) || bytes < 16384 || bytes > 64 << 20 || (comma && parse_u64(comma + 1, 2, 512, &n))) {
		msg_error("%s: '%s' is not SIZE[,COUNT]: a size from 16KiB to 64MiB, a count from 2 to 512", name, val);
		return -EINVAL;
	}
	o->gpu_buffer_bytes = (uint32_t)bytes & ~4095u;
	o->gpu_buffers = (uint32_t)n;
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

static int set_otlp_min(struct opts *o, const char *name, const char *val)
{
	o->otlp_min_given = true;
	if (!parse_duration(val, 0, &o->otlp_min_ns) && o->otlp_min_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no duration; give a number and its unit, as 1ms, 50us, 0s", name, val);
	return -EINVAL;
}

static int set_unfinished(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->unfinished_ns) && o->unfinished_ns && o->unfinished_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time to wait; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_export(struct opts *o, const char *name, const char *val)
{
	const struct sinks_row *row = sinks_find(val);
	char known[256];

	if (!row || !(row->flags & SINKS_EXPORT)) {
		msg_error("%s: '%s' is not one of %s", name, val, sinks_names(SINKS_EXPORT, known, sizeof(known)));
		return -EINVAL;
	}
	o->format = row;
	o->export = true;
	return 0;
}

static int set_device(struct opts *o, const char *name, const char *val)
{
	uint64_t n;

	if (parse_u64(val, 0, INT32_MAX, &n)) {
		msg_error("%s: '%s' is no number of a device; 'cudatrace info' lists them", name, val);
		return -EINVAL;
	}
	o->one_device = true;
	o->device = (uint32_t)n;
	return 0;
}

static int set_delay(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->delay_ns) && o->delay_ns && o->delay_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time to wait; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_from(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->from_ns) && o->from_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time after the recording's begin; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_to(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->to_ns) && o->to_ns && o->to_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time after the recording's begin; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_last(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->last_ns) && o->last_ns >= 1000000000 && o->last_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time from 1s on; give seconds, or 2m", name, val);
	return -EINVAL;
}

static int set_max_size(struct opts *o, const char *name, const char *val)
{
	if (!parse_size(val, &o->max_bytes) && o->max_bytes >= 65536 && o->max_bytes <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no size from 64KiB on; give bytes, or 1GB (10^9), 1GiB (2^30)", name, val);
	return -EINVAL;
}

static int set_rotate(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 1, 9999, &o->rotate))
		return 0;
	msg_error("%s: '%s' is no number of files from 1 to 9999", name, val);
	return -EINVAL;
}

static int set_rule(struct opts *o, const char *name, const char *val)
{
	struct parse_nearest near = { .n = 0 };
	char word[64], text[256];
	const char *bad;
	size_t len;

	o->advise.rules = val;
	bad = advise_rules_bad(val, &len);
	if (!bad)
		return 0;
	snprintf(word, sizeof(word), "%.*s", (int)(len < 60 ? len : 60), bad);
	for (unsigned int i = 0; advise_rule_at(i); i++)
		parse_nearest_add(&near, word, advise_rule_at(i)->name);
	msg_error("%s: there is no rule '%s'%s", name, word, near.n ? parse_nearest_text(&near, text, sizeof(text)) : "; docs/advice.md and the manual page have them");
	return -EINVAL;
}

static int set_min_cost(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 0, &o->advise.min_cost_ns) && o->advise.min_cost_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no duration; give a number and its unit, as 1ms, 50us, 2s", name, val);
	return -EINVAL;
}

static int set_over(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->over_ns) && o->over_ns >= 1000000 && o->over_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time from 1ms on; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_interval(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->interval_ns) && o->interval_ns >= INTERVAL_MIN_NS &&
	    o->interval_ns <= INTERVAL_MAX_NS)
		return 0;
	msg_error("%s: '%s' is no interval from 100us to 1h; give seconds, or 100ms, 1ms", name, val);
	return -EINVAL;
}

static const char *const set_mem_by_words[] = { "process", "device", "kind", "stack", "library", NULL };
static int set_mem_by(struct opts *o, const char *name, const char *val)
{
	int i = one_of(name, val, set_mem_by_words);

	if (i < 0)
		return i;
	o->mem.by = i + 1; /* enum ledger_by, without its first */
	return 0;
}

static int set_mem_watch(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val ? val : "1", 1000000000, &o->mem.watch_ns) && o->mem.watch_ns >= 10000000 &&
	    o->mem.watch_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no interval from 10ms on; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_mem_html(struct opts *o, const char *name, const char *val)
{
	if (*val) {
		o->mem.html = val;
		return 0;
	}
	msg_error("%s: an empty value", name);
	return -EINVAL;
}

static int set_mem_top(struct opts *o, const char *name, const char *val)
{
	uint64_t n;

	if (parse_u64(val, 1, 1000000, &n)) {
		msg_error("%s: '%s' is no number of rows", name, val);
		return -EINVAL;
	}
	o->mem.top = (uint32_t)n;
	return 0;
}

static int set_otlp_interval(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->otlp_interval_ns) && o->otlp_interval_ns >= INTERVAL_MIN_NS * 1000 &&
	    o->otlp_interval_ns <= INTERVAL_MAX_NS)
		return 0;
	msg_error("%s: '%s' is no interval from 100ms to 1h; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_kernels(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 1, 1000, &o->kernels))
		return 0;
	msg_error("%s: '%s' is no number of kernels from 1 to 1000", name, val);
	return -EINVAL;
}

static int set_processes(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 10, 100000, &o->processes))
		return 0;
	msg_error("%s: '%s' is no number of processes from 10 to 100000", name, val);
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

static int set_fail_if(struct opts *o, const char *name, const char *val)
{
	const char **more = realloc(o->fail_if, ((size_t)o->nfail_if + 1) * sizeof(*more));

	if (!more) {
		msg_error("%s: no memory", name);
		return -EINVAL;
	}
	o->fail_if = more;
	more[o->nfail_if++] = val;
	return 0;
}

static int set_level(struct opts *o, const char *name, const char *val)
{
	char *end;

	o->level = strtod(val, &end);
	if (*val >= '0' && *val <= '9' && !*end && o->level > 0 && o->level < 0.5)
		return 0;
	msg_error("%s: '%s' is no chance between 0 and 0.5, as 0.05", name, val);
	return -EINVAL;
}

static int set_runs(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 1, 1000, &o->runs))
		return 0;
	msg_error("%s: '%s' is no number of runs from 1 to 1000", name, val);
	return -EINVAL;
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
TEXT(set_otlp, otlp)
TEXT(set_comm, comm)
TEXT(set_cgroup, cgroup)
TEXT(set_library, library)
TEXT(set_user, user)
TEXT(set_metrics, metrics)
TEXT(set_chip, chip)
TEXT(set_cupti, cupti)
TEXT(set_listen, listen)
TEXT(set_save, save)
TEXT(set_start_on, start_on)
TEXT(set_stop_on, stop_on)
TEXT(set_dump_on, dump_on)

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
SWITCH(set_batch, batch)
SWITCH(set_counts, counts)
SWITCH(set_mangled, mangled)
SWITCH(set_full_names, full_names)
SWITCH(set_no_python, no_python)
SWITCH(set_counts_only, counts_only)
SWITCH(set_no_return, no_return)
SWITCH(set_strict, strict)
SWITCH(set_hist, hist)
SWITCH(set_mem_json, mem.json)
SWITCH(set_no_stack, no_stack)
SWITCH(set_leak_check, leak_check)
SWITCH(set_advise_fail, advise_fail)
static int set_counters(struct opts *o, const char *name, const char *val)
{
	o->counters = true;
	return val ? set_metrics(o, name, val) : 0;
}

/* What NVML has of each process. */
static int set_mem_driver(struct opts *o, const char *name, const char *val)
{
	(void)name, (void)val;
	o->counters = true;
	o->metrics = "mem_process";
	o->interval_ns = 100000000;
	return 0;
}

SWITCH(set_help, help)
SWITCH(set_version, version)

static int set_stat_json(struct opts *o, const char *name, const char *val)
{
	(void)val;
	return set_stat(o, name, "json");
}

static int set_stat_csv(struct opts *o, const char *name, const char *val)
{
	(void)val;
	return set_stat(o, name, "csv");
}

/* ---- the rows ----------------------------------------------------------------------------------------- */

/* A row without a setter is a heading. What the format leaves no room for, such as columns, `folded` has no option for. */
#define LIVE (OPTS_TRACE | OPTS_FOLDED | OPTS_RECORD | OPTS_STAT | OPTS_MEM | OPTS_ADVISE) /* from programs that run */
#define PRINTS (OPTS_TRACE | OPTS_FOLDED | OPTS_REPLAY)
#define ROWS (OPTS_TRACE | OPTS_REPLAY)
#define TRACES (LIVE | OPTS_REPLAY)
#define DEVICE (OPTS_TRACE | OPTS_RECORD | OPTS_STAT | OPTS_ADVISE)
#define STORED (OPTS_REPLAY | OPTS_EXPORT)
#define ONE_BY_ONE (TRACES & ~(OPTS_STAT | OPTS_MEM)) /* each call is sent, and shown */
#define CHOOSES (TRACES & ~OPTS_MEM) /* which calls are of interest */
#define ALL                                                                                                            \
	(TRACES | OPTS_EXPORT | OPTS_SERVE | OPTS_TOP | OPTS_LIST | OPTS_DOCTOR | OPTS_SCHEMA | OPTS_STUCK | OPTS_INFO | OPTS_MERGE |     \
	 OPTS_COUNTERS | OPTS_COMPARE)
const struct option_row opts_rows[] = {
	{ .name = "What to trace", .cmds = TRACES | OPTS_SERVE | OPTS_TOP },
	{ 'p', "pid", "PID", set_pid, STORED, NULL, "processes of the recording only; a comma list, repeatable" },
	{ 'p', "pid", "PID", set_pid, LIVE | OPTS_SERVE | OPTS_TOP | OPTS_DOCTOR | OPTS_STUCK, NULL,
	  "processes that run already; a comma list, repeatable; ends when the last of them does" },
	{ 'f', "follow", NULL, set_follow, LIVE | OPTS_SERVE | OPTS_TOP, NULL, "the children of the traced processes too" },
	{ 't', "thread", "TID", set_tid, ONE_BY_ONE | OPTS_EXPORT, NULL, "one thread only" },
	{ 0, "cgroup", "PATH", set_cgroup, LIVE | OPTS_SERVE | OPTS_TOP, NULL,
	  "processes of this cgroup (v2) and of those below it; PATH may begin at the cgroup root" },
	{ 0, "comm", "GLOB", set_comm, TRACES | OPTS_SERVE | OPTS_TOP | OPTS_EXPORT, NULL, "processes of this name" },
	{ 0, "library", "PATH", set_library, LIVE | OPTS_SERVE | OPTS_TOP | OPTS_STUCK, NULL, "functions of this file only" },
	{ 0, "domain", "NAME", set_domain, CHOOSES | OPTS_SERVE | OPTS_TOP | OPTS_LIST | OPTS_EXPORT, NULL, "one API only: runtime or driver",
	  set_domain_words },
	{ 'u', "user", "USER", set_user, LIVE, NULL, "run CMD as this user (a name or a number)" },
	{ 'E', "env", "VAR[=VAL]", set_env, LIVE, NULL, "set VAR in CMD's environment, or remove it; repeatable" },

	{ .name = "What to show", .cmds = TRACES | OPTS_SERVE | OPTS_TOP },
	{ 0, "over", "TIME", set_over, OPTS_STUCK, "1s", "threads that are inside a call for longer than this: 5, 500ms, 2m" },
	{ 0, "watch", NULL, set_watch, OPTS_STUCK, NULL,
	  "look again every second, until SIGINT; print what is new, and what has gone on" },
	{ 'e', "events", "LIST", set_events, CHOOSES | OPTS_SERVE | OPTS_TOP | OPTS_LIST | OPTS_EXPORT, NULL,
	  "classes, names and globs, separated by commas; !WORD takes out; repeatable\n"
	  "'default' is everything but internal, 'all' is everything\n"
	  "a list that begins with ! takes out of default" },
	{ 0, "failed", NULL, set_failed, (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL, "calls that returned an error" },
	{ 0, "min-duration", "TIME", set_min_duration, (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL, "calls that took at least this long: 1ms, 50us" },
	{ 0, "min-size", "SIZE", set_min_size, (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL,
	  "calls that move or allocate at least this much: 1MB (10^6), 1MiB or 1M (2^20)" },
	{ 0, "unfinished", "TIME", set_unfinished, OPTS_TRACE | OPTS_RECORD, NULL,
	  "calls that have not returned after so long (5, 500ms) too, at once; and again when they do" },
	{ 0, "nested", NULL, set_nested, OPTS_TRACE | OPTS_RECORD | OPTS_REPLAY, NULL,
	  "driver calls made inside runtime calls too, indented below them" },
	{ 0, "enter-exit", NULL, set_enter_exit, OPTS_TRACE | OPTS_RECORD | OPTS_REPLAY, NULL, "two rows a call, the first at its entry" },
	{ 0, "keep-chatty", NULL, set_keep_chatty, LIVE & CHOOSES & ~(OPTS_STAT | OPTS_ADVISE), NULL,
	  "never mute a query (cudaGetDevice and its like) that is called very often" },

	{ 'k', "stack", "[=HOW]", set_stack, OPTS_MEM, "dwarf",
	  "how stacks are taken: dwarf, unwound by .eh_frame from a copy of up to 16 KiB of them,\n"
	  "or fp: frame pointers, cheaper, for programs built with them", set_stack_words },
	{ 0, "no-stack", NULL, set_no_stack, OPTS_MEM, NULL, "no stacks: call sites are the functions called" },
	{ 'k', "stack", "[=HOW]", set_stack, ONE_BY_ONE, NULL,
	  "the user stack under each row: dwarf (what -k alone means), unwound by .eh_frame from a\n"
	  "copy of up to 16 KiB of it, or fp: frame pointers, cheaper, for programs built with them", set_stack_words },
	{ 0, "no-python", NULL, set_no_python, (LIVE & ~OPTS_STAT) | OPTS_STUCK, NULL, "stacks of native frames only, without Python's" },
	{ 0, "mangled", NULL, set_mangled, PRINTS | OPTS_STUCK | OPTS_EXPORT, NULL, "names of kernels and functions as the compiler made them" },
	{ 0, "full-names", NULL, set_full_names, PRINTS | OPTS_STUCK | OPTS_EXPORT, NULL,
	  "names of kernels with all template arguments and parameters" },

	{ .name = "What the GPU does", .cmds = DEVICE | OPTS_TOP },
	{ 0, "gpu", "[=KINDS]", set_gpu, DEVICE, NULL,
	  "kernels, copies and more with the device's own times, by CUPTI inside the program: kernel,\n"
	  "memcpy, memset, sync, memory, overhead, nvtx, context, device, stream, runtime, driver, um;\n"
	  "--gpu alone means kernel,memcpy,memset,overhead" },
	{ 0, "gpu", "[=KINDS]", set_top_gpu, OPTS_TOP, NULL,
	  "the time on the GPU and the device memory taken too, by CUPTI inside the programs;\n"
	  "--gpu alone means kernel,memcpy,memset,memory" },
	{ 0, "graph", "LEVEL", set_graph, DEVICE | OPTS_TOP, "node",
	  "of CUDA graphs each node, or each graph as a whole, which costs less: node or graph", set_graph_words },
	{ 0, "source", "NAME", set_source, DEVICE, "probes",
	  "where calls are seen: probes (the kernel's uprobes; needs root), or cupti: by CUPTI inside\n"
	  "the program, without root", set_source_words },
	{ 0, "cupti", "PATH", set_cupti, DEVICE | OPTS_TOP, NULL,
	  "the libcupti to use where the program has not loaded one" },
	{ 0, "gpu-buffer", "SIZE[,N]", set_gpu_buffer, DEVICE | OPTS_TOP, "256KiB,160", "CUPTI's buffers in the program's memory, at most" },
	{ 0, "gpu-clock", "WAY", set_gpu_clock, DEVICE | OPTS_TOP, "auto",
	  "how device times come onto the clock of the calls: callback (CUPTI reads that clock), offset\n"
	  "(the distance of its own is measured), or what suits CUPTI's version", set_gpu_clock_words },
	{ 0, "counters", "[=LIST]", set_counters, OPTS_TRACE | OPTS_RECORD | OPTS_STAT | OPTS_TOP, NULL,
	  "the hardware counters of the GPUs too, and XID errors; LIST: as 'cudatrace counters' has\n"
	  "it for --metrics" },
	{ 'i', "interval", "TIME", set_interval, OPTS_COUNTERS | OPTS_TRACE | OPTS_RECORD | OPTS_STAT, "100ms", "of the counters, between two samples: 1 (second), 100ms, 1ms; from 100us on" },
	{ 0, "metrics", "LIST", set_metrics, OPTS_COUNTERS, NULL,
	  "which: names of cudatrace or CUPTI, separated by commas; 'default' is the usual ones,\n"
	  "'help' lists them" },
	{ 0, "chip", "NAME", set_chip, OPTS_COUNTERS, NULL, "with --metrics help: of this chip, as GH100, whatever GPU is here" },
	{ 0, "cupti", "PATH", set_cupti, OPTS_COUNTERS, NULL, "this libcupti.so, or the one in this directory" },

	{ .name = "Output", .cmds = TRACES | OPTS_TOP },
	{ 'o', "output", "FILE", set_output, PRINTS | OPTS_STUCK | OPTS_STAT | OPTS_MEM | OPTS_ADVISE | OPTS_COUNTERS | OPTS_COMPARE | OPTS_TOP, NULL,
	  "write to FILE; compressed when its name ends in .gz" },
	{ 'o', "output", "FILE", set_output, OPTS_RECORD, "cudatrace.ctrace",
	  "the recording; %p is the pid, %h the host, %q{VAR} a variable; what is there\nbecomes FILE.old" },
	{ 'o', "output", "FILE", set_output, OPTS_MERGE, NULL, "the merged recording; what is there becomes FILE.old" },
	{ 'o', "output", "FILE", set_output, OPTS_EXPORT, NULL,
	  "the file to write, - is standard output; without it named after the recording and FORMAT" },
	{ 0, "to", "FORMAT", set_export, OPTS_EXPORT, NULL,
	  "perfetto, chrome, nsys-sqlite, otlp-json, html (a timeline as one page), csv, json,\n"
	  "speedscope, folded or flame: all that --format has but the table" },
	{ 0, "device", "N", set_device, OPTS_EXPORT, NULL,
	  "what concerns this device, as its process numbers it; calls that concern none too" },
	{ 0, "max-size", "SIZE", set_max_size, OPTS_RECORD, NULL,
	  "end when the file has this size: 1GB (10^9), 1GiB (2^30); with --rotate begin another,\n"
	  "with --last: of memory [256MiB]" },
	{ 0, "rotate", "N", set_rotate, OPTS_RECORD, NULL,
	  "files of --max-size: FILE is the newest, FILE.1 the one before; N of them are kept" },
	{ 0, "last", "TIME", set_last, OPTS_RECORD, NULL,
	  "keep the last 30s (or 5m) in memory, and write them when something of --dump-on happens" },
	{ 0, "dump-on", "LIST", set_dump_on, OPTS_RECORD, NULL,
	  "what makes --last write, separated by commas: failed (a call), end, signal (SIGUSR2),\n"
	  "or functions as GLOBs [signal]" },
	{ 'A', "append", NULL, set_append, PRINTS | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "add to FILE" },
	{ 0, "format", "NAME", set_format, ROWS, "table",
	  "table, json, csv, html (a timeline as one page), perfetto (for ui.perfetto.dev),\n"
	  "chrome (JSON as PyTorch's profiler writes it; with %p in FILE a file for each\n"
	  "process), nsys-sqlite (as Nsight Systems exports it), otlp-json (OpenTelemetry\n"
	  "spans), cupti (the lines that CUPTI's samples print), or, which imply -k: folded (a\n"
	  "line for each stack with its weight), flame (a flame graph of them as one page),\n"
	  "speedscope" },
	{ 0, "format", "NAME", set_format, OPTS_FOLDED, "folded", "folded, flame (a flame graph as one HTML page) or speedscope\n(a file for it)" },
	{ 0, "format", "NAME", set_format, OPTS_STUCK, "table", "table or json" },
	{ 0, "format", "NAME", set_counters_format, OPTS_COUNTERS, "table", "table, json (an object a line) or csv",
	  set_counters_format_words },
	{ 0, "weight", "UNIT", set_weight, PRINTS | OPTS_EXPORT, "calls",
	  "what a stack weighs in folded, flame and speedscope: calls, time (in the calls, in\n"
	  "microseconds), bytes (that they move or allocate), or gpu (the time, in nanoseconds, of\n"
	  "what the device did for them)", set_weight_words },
	{ 0, "time", "UNIT", set_time, ROWS, "ms", "ms or us since the start, or iso: the time of day (UTC)", set_time_words },
	{ 0, "tid", NULL, set_tid_column, ROWS, NULL, "a column with the thread" },
	{ 'c', "count-only", NULL, set_counts_only, ROWS, NULL, "no rows: counts and times by function at the end" },
	{ 'C', "counts", NULL, set_counts, ROWS, NULL, "counts and times by function after the rows" },
	{ 0, "otlp", "URL", set_otlp, ROWS | OPTS_RECORD, NULL,
	  "push spans to an OpenTelemetry collector too, as http://127.0.0.1:4318; env: where\n"
	  "OTEL_EXPORTER_OTLP_ENDPOINT says" },
	{ 0, "otlp-min", "TIME", set_otlp_min, ROWS | OPTS_RECORD, "100us", "calls and device work shorter than this are no spans" },
	{ 0, "color", "WHEN", set_color, ROWS | OPTS_TOP, "auto", "auto, always or never", set_color_words },

	{ .name = "What to print", .cmds = OPTS_STAT },
	{ 0, "by", "WHAT", set_by, OPTS_STAT, "function",
	  "what calls are told apart by: function, process, thread, kernel, stream,\ndevice or cgroup", set_by_words },
	{ 0, "hist", NULL, set_hist, OPTS_STAT, NULL, "histograms of the durations, a column an octave" },
	{ 0, "format", "NAME", set_stat, OPTS_STAT, "table", "table, json or csv", set_stat_words },
	{ 0, "json", NULL, set_stat_json, OPTS_STAT, NULL, "the same as --format json" },
	{ 0, "csv", NULL, set_stat_csv, OPTS_STAT, NULL, "the same as --format csv" },

	{ 0, "save", "FILE", set_save, OPTS_STAT, NULL,
	  "the sums as JSON in FILE too, for 'cudatrace compare'; with -A added to what is there,\nas one run more" },
	{ 0, "runs", "N", set_runs, OPTS_STAT, NULL, "run CMD so often, and print and save each run by itself" },
	{ 0, "fail-if", "EXPR", set_fail_if, OPTS_COMPARE, NULL,
	  "a condition that makes the exit status 1; repeatable: cudaMalloc.calls>+10%, sync.time>+5ms,\n"
	  "total_api_time>+3%, kernel(vecAdd*).avg>+10%, failed>0, launches!=+0; without any:\n"
	  "total_api_time, sync_time and kernel_time by 5%, failed_calls by one" },
	{ 0, "level", "P", set_level, OPTS_COMPARE, "0.05", "the chance of a false alarm that is put up with, in all conditions together" },
	{ 0, "format", "NAME", set_compare_format, OPTS_COMPARE, "text", "text, markdown, json or junit", set_compare_format_words },
	{ .name = "What to print", .cmds = OPTS_MEM },
	{ 0, "by", "WHAT", set_mem_by, OPTS_MEM, NULL,
	  "one table: by process, device, kind, stack, or library (the file whose code made the\ncall)", set_mem_by_words },
	{ 0, "top", "N", set_mem_top, OPTS_MEM, "10", "rows of a table, and call sites that leak" },
	{ 0, "json", NULL, set_mem_json, OPTS_MEM, NULL, "all of it as one JSON object" },
	{ 0, "html", "FILE", set_mem_html, OPTS_MEM, NULL, "write a picture too: memory over time by call site, as one page for a browser" },
	{ 0, "watch", "[=TIME]", set_mem_watch, OPTS_MEM, NULL, "what grows, each second, or each TIME: 10, 500ms" },
	{ 0, "driver", NULL, set_mem_driver, OPTS_MEM, NULL,
	  "what the driver counts for each process too (by NVML), ten times a second: what of it is\nnot in the book" },
	{ 0, "leak-check", NULL, set_leak_check, OPTS_MEM, NULL, "exit with status 4 if anything was leaked" },

	{ .name = "What to print", .cmds = OPTS_ADVISE },
	{ 0, "format", "NAME", set_advise, OPTS_ADVISE, "text", "text, json or markdown", set_advise_words },
	{ 0, "rule", "LIST", set_rule, OPTS_ADVISE, NULL, "these rules only, separated by commas: sync-copy, leak, ..." },
	{ 0, "min-cost", "TIME", set_min_cost, OPTS_ADVISE, NULL, "no findings that cost less than this: 1ms, 50us, 2s" },
	{ 0, "fail", NULL, set_advise_fail, OPTS_ADVISE, NULL, "exit with status 1 if there is a warning, or worse" },

	{ .name = "What to show live", .cmds = OPTS_TOP },
	{ 'i', "interval", "TIME", set_interval, OPTS_TOP, "1s", "between two refreshes, and of the counters: 2 (seconds), 500ms; from 100ms on" },
	{ 0, "sort", "KEY", set_sort, OPTS_TOP, "api", "by pid, name, calls, launches, api, sync, htod, dtoh, memory, failed, gpu or busy", set_sort_words },
	{ 'b', "batch", NULL, set_batch, OPTS_TOP, NULL, "blocks of text one after the other, for logs; needs no terminal" },
	{ 'n', "count", "N", set_count, OPTS_TOP, NULL, "with --batch: stop after N blocks" },
	{ 0, "format", "NAME", set_top_format, OPTS_TOP, "table", "with --batch: table, or json (an object a line)", set_top_format_words },

	{ .name = "What to serve", .cmds = OPTS_SERVE },
	{ 0, "listen", "ADDR:PORT", set_listen, OPTS_SERVE, "127.0.0.1:19400", "where Prometheus asks; [ADDR] for IPv6, :PORT for all addresses" },
	{ 0, "hist", NULL, set_hist, OPTS_SERVE, NULL, "histograms of the calls' durations too, by class" },
	{ 0, "kernels", "N", set_kernels, OPTS_SERVE, NULL,
	  "launches by the kernel's name too, of the N kernels launched most; the rest is \"other\"" },
	{ 0, "processes", "N", set_processes, OPTS_SERVE, "10000",
	  "that the counts have room for, with 40 functions each: about 8 KiB of kernel memory\nfor each" },
	{ 0, "counters", "[=LIST]", set_counters, OPTS_SERVE, NULL,
	  "what the GPUs do too, by hardware counters; LIST: as 'cudatrace counters' has it for\n--metrics" },
	{ 'i', "interval", "TIME", set_interval, OPTS_SERVE, "1s", "of the counters, between two samples; a scrape gets the last one" },
	{ 0, "cupti", "PATH", set_cupti, OPTS_SERVE, NULL, "this libcupti.so for the counters, or the one in this directory" },
	{ 0, "otlp", "URL", set_otlp, OPTS_SERVE, NULL,
	  "push the metrics to an OpenTelemetry collector too, as http://127.0.0.1:4318; env: where\n"
	  "OTEL_EXPORTER_OTLP_ENDPOINT says" },
	{ 0, "otlp-interval", "TIME", set_otlp_interval, OPTS_SERVE, "60s", "between two pushes" },

	{ .name = "From when until when", .cmds = TRACES },
	{ 0, "from", "TIME", set_from, STORED | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "what began after this time of the recording: 10, 500ms, 2m" },
	{ 0, "to", "TIME", set_to, OPTS_REPLAY | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "what began before it" },
	{ 0, "until", "TIME", set_to, OPTS_EXPORT, NULL, "what began before this time of the recording" },
	{ 0, "delay", "TIME", set_delay, LIVE & CHOOSES & ~OPTS_STAT, NULL, "show nothing until so much time has passed" },
	{ 0, "start-on", "WHAT", set_start_on, LIVE & CHOOSES & ~OPTS_STAT, NULL,
	  "show nothing until WHAT: cudaProfilerStart (any function or GLOB), GLOB:N (its Nth call),\n"
	  "or signal (SIGUSR1)" },
	{ 0, "stop-on", "WHAT", set_stop_on, LIVE & CHOOSES & ~OPTS_STAT, NULL,
	  "stop at WHAT: likewise, signal is SIGUSR2; goes on at the next --start-on, if that can be" },
	{ 'd', "duration", "TIME", set_duration, LIVE | OPTS_COUNTERS | OPTS_TOP, NULL, "stop after so many seconds (also 1.5, 500ms, 2m)" },
	{ 'n', "count", "N", set_count, ONE_BY_ONE | OPTS_COUNTERS, NULL, "stop after N rows" },

	{ .name = "How to trace", .cmds = TRACES | OPTS_SERVE | OPTS_TOP },
	{ 0, "no-return", NULL, set_no_return, LIVE & CHOOSES & ~OPTS_ADVISE, NULL,
	  "probe entries only: for sandboxed (seccomp) programs, and for those that throw\n"
	  "exceptions through calls; results, durations and outputs are not known then" },
	{ 0, "ring-size", "SIZE", set_ring, LIVE | OPTS_SERVE | OPTS_TOP | OPTS_STUCK, "16MiB", "of the buffer between kernel and tracer" },
	{ 0, "probe-kind", "KIND", set_probe_kind, LIVE | OPTS_SERVE | OPTS_TOP | OPTS_DOCTOR | OPTS_STUCK, NULL,
	  "session, multi, tracefs or perf instead of the best that this kernel has", set_probe_kind_words },
	{ 0, "strict", NULL, set_strict, TRACES | OPTS_EXPORT, NULL, "exit with status 3 if anything was lost" },

	{ .name = "Other", .cmds = ALL },
	{ 'v', "verbose", NULL, set_verbose, ALL, NULL,
	  "say more; twice: libbpf's words too" },
	{ 'V', "version", NULL, set_version, ALL, NULL, "print the version" },
	{ 'h', "help", NULL, set_help, ALL, NULL, "print this text" },
};
const int opts_nrows = ARRAY_LEN(opts_rows);

/* ---- parsing ------------------------------------------------------------------------------------------ */

/* getopt's view of the rows; returns the number of long options. */
static void getopt_tables(enum opts_cmd cmd, struct option *longs, char *shorts)
{
	if (cmd & LIVE)
		*shorts++ = '+'; /* what comes after the first word is CMD's */
	*shorts++ = ':';
	for (size_t i = 0; i < ARRAY_LEN(opts_rows); i++) {
		const struct option_row *r = &opts_rows[i];

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
	if (c >= LONG_ONLY && c < LONG_ONLY + (int)ARRAY_LEN(opts_rows))
		return &opts_rows[c - LONG_ONLY];
	for (size_t i = 0; i < ARRAY_LEN(opts_rows); i++)
		if (opts_rows[i].set && opts_rows[i].letter == c)
			return &opts_rows[i];
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

/* The command as it is typed after cudatrace, with a blank before it; "": the trace. */
static const char *typed(enum opts_cmd cmd)
{
	static const struct {
		enum opts_cmd cmd;
		const char *word;
	} words[] = {
		{ OPTS_FOLDED, " folded" }, { OPTS_STUCK, " stuck" }, { OPTS_RECORD, " record" }, { OPTS_REPLAY, " replay" },
		{ OPTS_EXPORT, " export" }, { OPTS_INFO, " info" }, { OPTS_MERGE, " merge" }, { OPTS_STAT, " stat" },
		{ OPTS_COMPARE, " compare" }, { OPTS_MEM, " mem" }, { OPTS_ADVISE, " advise" }, { OPTS_COUNTERS, " counters" },
		{ OPTS_SERVE, " serve" }, { OPTS_TOP, " top" }, { OPTS_LIST, " list" }, { OPTS_DOCTOR, " doctor" },
		{ OPTS_SCHEMA, " schema" },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (words[i].cmd == cmd)
			return words[i].word;
	return "";
}

static int bad_option(enum opts_cmd cmd, int c, const char *word)
{
	const struct option_row *r = c == ':' && optopt ? row_of(optopt) : NULL;
	struct parse_nearest near = { .n = 0 };
	char name[64], text[256];

	if (r) {
		msg_error("%s needs a value (%s); see 'cudatrace%s --help'", spelled(r, word, name, sizeof(name)), r->arg, typed(cmd));
		return -EINVAL;
	}
	if (strncmp(word, "--", 2)) {
		msg_error("there is no option -%c; see 'cudatrace%s --help'", optopt, typed(cmd));
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	r = row_of(optopt);
	if (r && optopt >= LONG_ONLY) {
		msg_error("--%s takes no value", r->name);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_LEN(opts_rows); i++) {
		char candidate[64];

		if (!opts_rows[i].set || !(opts_rows[i].cmds & (int)cmd))
			continue;
		snprintf(candidate, sizeof(candidate), "--%s", opts_rows[i].name);
		parse_nearest_add(&near, name, candidate);
	}
	if (near.n)
		msg_error("there is no option %s%s", name, parse_nearest_text(&near, text, sizeof(text)));
	else
		msg_error("there is no option %s; see 'cudatrace%s --help'", name, typed(cmd));
	return -EINVAL;
}

/* What contradicts what, and why: { both true } is an error. */
static int contradictions(const struct opts *o)
{
	const char *name = o->format->ops->name;
	bool folds = o->format->flags & SINKS_FOLDS, rows = o->format->flags & SINKS_ROWS;
	bool json = o->format->ops == &sink_json, spans = o->otlp || o->format->ops == &sink_otlp_json;
	bool agent = o->gpu || o->by_cupti;
	const struct {
		bool first, second;
		const char *text; /* %s: the name of the format */
	} rules[] = {
		{ o->npids, o->cmd, "-p traces processes that run already and CMD starts one: give one of the two" },
		{ o->tid, o->cmd, "-t traces a thread that runs already and CMD starts a program: give one of the two" },
		{ o->user, !o->cmd, "-u says as whom CMD runs: give a CMD after --" },
		{ o->env, !o->cmd, "-E changes CMD's environment: give a CMD after --" },
		{ o->runs, !o->cmd, "--runs says how often CMD is run: give a CMD after --" },
		{ o->append, !o->output && !o->save, "-A adds to the FILE of -o: give -o FILE" },
		{ o->gpu, !o->cmd && !o->npids, "--gpu is about programs that the agent is in: give a CMD after --, or -p PID" },
		{ o->by_cupti, !o->cmd && !o->npids,
		  "--source=cupti is about programs that the agent is in: give a CMD after --, or -p PID" },
		{ o->gpu_graph, !agent, "--graph is about what the GPU does: give --gpu" },
		{ o->gpu_clock, !agent, "--gpu-clock is about what the GPU does: give --gpu" },
		{ o->cupti, !agent && !o->counters, "--cupti says which libcupti is used, and nothing here uses one: give --gpu" },
		{ o->by_cupti, o->stack && !folds, "CUPTI's callbacks have no stacks: leave out -k, or --source=cupti" },
		{ o->by_cupti, folds, "CUPTI's callbacks have no stacks: leave out --source=cupti" },
		{ o->by_cupti, o->no_return || o->unfinished_ns || o->library,
		  "--no-return, --unfinished and --library are about probes: leave them out, or --source=cupti" },
		{ o->counts, o->counts_only, "-C prints counts after the rows and -c instead of them: give one of the two" },
		{ o->counts || o->counts_only, json,
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
		{ json, o->time_given, "--time is for the table: JSON has ts_ns and dur_ns" },
		{ json, o->color == OPTS_COLOR_ALWAYS, "--color is for the table: JSON has none" },
		{ o->mangled, o->full_names,
		  "--mangled prints names as the compiler made them and --full-names what they mean: give one of the two" },
		{ o->counts_only, o->stack && !folds, "-c prints no rows: leave out -k" },
		{ o->no_python, !o->stack && !folds, "--no-python is about stacks: give -k" },
		{ o->weight_given, !folds, "--weight is what a stack weighs, and %s adds none up: give folded, flame or speedscope" },
		{ !rows, o->counts || o->counts_only, "-c and -C print a table: leave out --format %s" },
		{ !rows, o->enter_exit, "--format %s has each call once: leave out --enter-exit" },
		{ !rows, o->unfinished_ns, "--format %s has each call once: leave out --unfinished" },
		{ folds, o->nested, "--format %s would count a call and the calls inside it: leave out --nested" },
		{ !rows, o->time_given, "--time is for the table: --format %s has its own times, or none" },
		{ !rows, o->tid_column, "--tid is for the table: leave it out" },
		{ !rows, o->color == OPTS_COLOR_ALWAYS, "--color is for the table: leave it out" },
		{ o->weight == SINK_WEIGHT_TIME, o->no_return, "--no-return knows no durations: leave out --weight time" },
		{ o->format->flags & SINKS_WHOLE, o->append, "--format %s writes a whole file: leave out -A" },
		{ o->otlp_min_given, !spans, "--otlp-min says which calls become spans: give --otlp URL or --format otlp-json" },
		{ o->no_return, spans, "--no-return knows no durations, which spans have: leave out --otlp and otlp-json" },
		{ o->format->flags & SINKS_PATH, !o->output && !o->export, "--format %s writes a file: give -o FILE" },
		{ o->mem.json, o->mem.by >= 0, "--json has all tables: leave out --by" },
		{ o->rotate, !o->max_bytes, "--rotate begins a file whenever one has its size: give --max-size" },
		{ o->last_ns, o->rotate, "--last keeps in memory what --rotate would write: give one of the two" },
		{ o->dump_on, !o->last_ns, "--dump-on says when memory is written: give --last" },
		{ o->start_on, o->delay_ns, "--delay and --start-on both say when it begins: give one of the two" },
		{ o->gpu && o->gpu_graph && o->npids,
		  "--graph graph can end a program that has graphs already: leave it out, or start the program after --" },
		{ o->no_return, o->start_on || o->stop_on, "--no-return sees no call complete: leave out --start-on and --stop-on" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (!rules[i].first || !rules[i].second)
			continue;
		msg_error(rules[i].text, name);
		return -EINVAL;
	}
	return 0;
}

/* The words of the commands that read recordings. */
static int files(struct opts *o, enum opts_cmd cmd)
{
	char known[256];

	if (cmd != OPTS_MERGE && o->nargs > 1 && o->args[1][0] == '-') {
		msg_error("'%s' comes after the recording: write options before it", o->args[1]);
		return -EINVAL;
	}
	if (cmd != OPTS_MERGE && o->nargs != 1) {
		msg_error(o->nargs ? "'%s' is one word too many; give one recording" : "give a recording: what 'cudatrace record' wrote",
			  o->nargs ? o->args[1] : "");
		return -EINVAL;
	}
	if (cmd == OPTS_MERGE && (o->nargs < 2 || !o->output)) {
		msg_error("give two recordings or more, and -o FILE for what they make together");
		return -EINVAL;
	}
	if (o->replay && o->to_ns && o->to_ns <= o->from_ns) {
		msg_error(o->export ? "--until lies before --from" : "--to lies before --from");
		return -EINVAL;
	}
	if (cmd == OPTS_EXPORT && !o->export) {
		msg_error("--to is missing: the format to write, one of %s", sinks_names(SINKS_EXPORT, known, sizeof(known)));
		return -EINVAL;
	}
	o->file = o->args[0];
	return o->replay ? contradictions(o) : 0;
}

/* top's own rules. */
static int live(const struct opts *o)
{
	if (o->interval_ns < TOP_INTERVAL_MIN_NS) {
		msg_error("-i: the screen is refreshed at most ten times a second: give 100ms or more");
		return -EINVAL;
	}
	if (!o->batch && (o->count || o->output || o->stat != SINK_STAT_TEXT)) {
		msg_error("%s is for blocks of text: give --batch", o->count ? "-n" : o->output ? "-o" : "--format");
		return -EINVAL;
	}
	return 0;
}

/* What is left after the options: CMD after --, or the words of a command that takes any. */
static int rest(struct opts *o, enum opts_cmd cmd, int argc, char **argv)
{
	bool dashes = optind > 1 && !strcmp(argv[optind - 1], "--");
	char known[256];

	o->record = cmd == OPTS_RECORD;
	/* a word that is no program's is a recording */
	o->replay = cmd & STORED || (cmd & (OPTS_STAT | OPTS_MEM | OPTS_ADVISE) && optind < argc && !dashes);
	if (cmd & LIVE && !o->replay) {
		if (optind < argc && !dashes) {
			msg_error("what is '%s'? To start a program, write -- before it: cudatrace%s [OPTIONS] -- %s",
				  argv[optind], typed(cmd), argv[optind]);
			return -EINVAL;
		}
		if (dashes && optind == argc) {
			msg_error("-- without a command to start after it");
			return -EINVAL;
		}
		if (optind < argc)
			o->cmd = argv + optind;
		if (cmd == OPTS_FOLDED && !(o->format->flags & SINKS_FOLDS)) {
			msg_error("'cudatrace folded' adds up stacks: give --format %s, or leave out 'folded'",
				  sinks_names(SINKS_FOLDS, known, sizeof(known)));
			return -EINVAL;
		}
		return contradictions(o);
	}
	o->args = (const char *const *)(argv + optind);
	o->nargs = argc - optind;
	if (cmd == OPTS_STUCK && !(o->format->flags & SINKS_ROWS)) {
		msg_error("'cudatrace stuck' prints rows: give --format table or json");
		return -EINVAL;
	}
	if (o->chip && (!o->metrics || strcmp(o->metrics, "help"))) {
		msg_error("--chip says whose metrics are listed: give --metrics help");
		return -EINVAL;
	}
	if (cmd == OPTS_TOP && live(o))
		return -EINVAL;
	if (o->replay || cmd & (OPTS_INFO | OPTS_MERGE))
		return files(o, cmd);
	if (cmd == OPTS_COMPARE) {
		if (o->nargs > 1)
			return 0;
		msg_error("give two files or more: BASE, and what is compared with it; 'cudatrace stat --save' and 'cudatrace record' make them");
		return -EINVAL;
	}
	if (cmd == OPTS_SERVE && o->hist && o->comm) {
		msg_error("--hist counts durations of all processes together: leave out --comm");
		return -EINVAL;
	}
	if (cmd != OPTS_LIST && o->nargs) {
		msg_error("'%s' is one word too many; see 'cudatrace%s --help'", argv[optind], typed(cmd));
		return -EINVAL;
	}
	return 0;
}

int opts_parse(struct opts *o, enum opts_cmd cmd, int argc, char **argv)
{
	struct option longs[ARRAY_LEN(opts_rows) + 1];
	char shorts[ARRAY_LEN(opts_rows) * 2 + 3], msg[512];
	int c;

	memset(o, 0, sizeof(*o));
	o->domain = API_DOMAIN_END;
	o->mem.by = -1;
	o->format = sinks_find("table");
	o->argv = argv;
	for (size_t i = 0; i < ARRAY_LEN(opts_rows); i++)
		if (opts_rows[i].def && opts_rows[i].cmds & (int)cmd)
			opts_rows[i].set(o, opts_rows[i].name, opts_rows[i].def);
	o->time_given = o->weight_given = o->otlp_min_given = false;
	getopt_tables(cmd, longs, shorts);
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	for (;;) {
		int at = optind ? optind : 1;
		const struct option_row *r;
		char name[64];

		/* words between the options are passed over, where they may stand there */
		while (!(cmd & LIVE) && at < argc - 1 && (argv[at][0] != '-' || !argv[at][1]))
			at++;
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
	if (cmd & (OPTS_STAT | OPTS_SERVE | OPTS_TOP | OPTS_MEM | OPTS_ADVISE))
		o->format = sinks_find(cmd == OPTS_STAT ? "stat" : cmd == OPTS_TOP ? "top" : cmd == OPTS_MEM ? "mem" : cmd == OPTS_ADVISE ? "advise" : "serve");
	if (o->no_stack)
		o->stack = OPTS_STACK_NONE;
	if (rest(o, cmd, argc, argv))
		return -EINVAL;
	if (o->format && o->format->flags & SINKS_FOLDS && !o->stack)
		o->stack = OPTS_STACK_DWARF;
	if (o->format && o->format->flags & SINKS_NESTED && !o->no_return)
		o->nested = true;
	return 0;
}

const char *opts_title(const struct opts *o, char *buf, size_t size)
{
	size_t n = 0;

	if (o->replay) {
		const char *slash = strrchr(o->file, '/');

		snprintf(buf, size, "%s", slash && slash[1] ? slash + 1 : o->file);
		return buf;
	}
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
	free(o->fail_if);
	o->pids = NULL;
	o->env = NULL;
	o->fail_if = NULL;
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
	  "       cudatrace record [OPTIONS] [-- CMD...]   store a trace instead of printing it\n"
	  "       cudatrace replay [OPTIONS] FILE          print a stored one: same options\n"
	  "       cudatrace export --to FORMAT FILE        a stored one as a file for another program\n"
	  "       cudatrace info FILE                      what a stored one holds\n"
	  "       cudatrace merge -o FILE A B...           stored ones of several hosts or ranks as one\n"
	  "       cudatrace stat [OPTIONS] [-- CMD...]     what the calls came to: counts, times, bytes\n"
	  "       cudatrace compare BASE NEW...            two runs, or series of them: what changed\n"
	  "       cudatrace check BASE NEW...              the same\n"
	  "       cudatrace mem [-p PID | -- CMD | FILE]   who holds device memory, the peak, and leaks\n"
	  "       cudatrace advise [OPTIONS] FILE          what the program could do better, and what it costs\n"
	  "       cudatrace counters [-i TIME]             what the GPUs do: a line each interval, like vmstat\n"
	  "       cudatrace top [-p PID]                   who calls what, live\n"
	  "       cudatrace serve [--listen ADDR:PORT]     the same for Prometheus, for good\n"
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
	{ OPTS_RECORD,
	  "Usage: cudatrace record [OPTIONS]                  every process of this machine\n"
	  "       cudatrace record [OPTIONS] -p PID[,PID...]  processes that run already\n"
	  "       cudatrace record [OPTIONS] -- CMD [ARG...]  start a program and record it from its first call\n"
	  "\nStores a trace in a file, to be printed by 'cudatrace replay' as often and in as many forms as wanted. Whenever and\n"
	  "however it ends, what was written until a second before can be read.\n",
	  "\nExamples:\n"
	  "  cudatrace record -o app.ctrace -- ./app\n"
	  "  cudatrace record --start-on cudaProfilerStart --stop-on cudaProfilerStop -- python3 train.py\n"
	  "  cudatrace record --max-size 1GB --rotate 5 -p 1234\n"
	  "  cudatrace record --last 30s --dump-on failed   what led to the first failing call of the machine\n" },
	{ OPTS_REPLAY,
	  "Usage: cudatrace replay [OPTIONS] FILE\n"
	  "\nPrints a recording as the trace itself would have been printed with the same options.\n",
	  "\nExamples:\n"
	  "  cudatrace replay app.ctrace\n"
	  "  cudatrace replay -e memory --from 10 --to 12.5 app.ctrace\n"
	  "  cudatrace replay -c app.ctrace\n" },
	{ OPTS_EXPORT,
	  "Usage: cudatrace export [OPTIONS] --to FORMAT FILE\n"
	  "\nWrites a recording as a file for another program: a table for data frames, a timeline page for a browser, stacks for\n"
	  "flame graph programs. All that the recording holds, also calls inside others and stacks, unless the options choose.\n",
	  "\nExamples:\n"
	  "  cudatrace export --to html app.ctrace             app.html, to be opened in a browser\n"
	  "  cudatrace export --to csv -o - app.ctrace | head\n"
	  "  cudatrace export --to speedscope --weight gpu --from 10 --until 12.5 app.ctrace\n"
	  "  cudatrace export --to folded --weight gpu --device 0 app.ctrace\n" },
	{ OPTS_INFO,
	  "Usage: cudatrace info FILE\n"
	  "\nSays what a recording holds: host, versions, clocks, processes, counts, losses, and what of it cannot be read.\n"
	  "Exit status: 0, also when its end was cut off; 3 when something in it is damaged; 1 when it cannot be read at all.\n",
	  "" },
	{ OPTS_MERGE,
	  "Usage: cudatrace merge -o FILE A B...\n"
	  "\nMakes one recording of several: of the ranks of a job, or of several hosts, whose times are brought to the clock of the\n"
	  "first by what each says of its own; how well that can be known is printed.\n",
	  "" },
	{ OPTS_STAT,
	  "Usage: cudatrace stat [OPTIONS]                   every process of this machine\n"
	  "       cudatrace stat [OPTIONS] -p PID[,PID...]   processes that run already\n"
	  "       cudatrace stat [OPTIONS] -- CMD [ARG...]   start a program and count from its first call\n"
	  "       cudatrace stat [OPTIONS] FILE              what a recording's calls came to\n"
	  "\nCounts calls in the kernel, where nothing crosses to cudatrace call by call, and prints at the end what they came to:\n"
	  "calls, failures, times, bytes by function; bytes by direction; launches; the time spent waiting.\n",
	  "\nExamples:\n"
	  "  cudatrace stat -p 1234 -d 10\n"
	  "  cudatrace stat --by process -d 5                who calls what, of the whole machine\n"
	  "  cudatrace stat --by kernel -e launch -- ./app\n"
	  "  cudatrace stat --hist -e sync -p 1234\n"
	  "  cudatrace stat --json -o base.json -- ./app     for programs, and to compare with later\n" },
	{ OPTS_TOP,
	  "Usage: cudatrace top [OPTIONS]\n"
	  "\nShows what the processes of this machine, or those chosen, ask of their GPUs, live: calls, launches and bytes a second, the\n"
	  "share of time in the API and in waits, failures. Calls are counted in the kernel, where nothing crosses to cudatrace call\n"
	  "by call. Enter: a process's functions, k: its kernels, t: its threads, ?: all keys, q: end.\n",
	  "\nExamples:\n"
	  "  cudatrace top\n"
	  "  cudatrace top --counters -i 2\n"
	  "  cudatrace top --gpu -p 1234                   with the time on the GPU\n"
	  "  cudatrace top --batch -n 60 --format json -o top.jsonl\n" },
	{ OPTS_COMPARE,
	  "Usage: cudatrace compare [OPTIONS] BASE NEW...\n"
	  "       cudatrace check [OPTIONS] BASE NEW...     the same\n"
	  "\nSays what changed from BASE to NEW, files of 'cudatrace stat --save' or recordings, and whether that is more than noise\n"
	  "where the files hold several runs (--runs). Several NEW: each against BASE.\n",
	  "\nExamples:\n"
	  "  cudatrace stat --runs 10 --save base.json -- ./app\n"
	  "  cudatrace compare base.json new.json\n"
	  "  cudatrace check --fail-if 'total_api_time>+3%' --fail-if 'failed>0' --format junit -o report.xml base.json new.json\n"
	  "\nExit status: 0; 1 when a condition is true, a regression; 2 for a wrong command line, a file that cannot be read, or a\n"
	  "condition about a number that the files do not have.\n" },
	{ OPTS_MEM,
	  "Usage: cudatrace mem [OPTIONS]                   every process of this machine\n"
	  "       cudatrace mem [OPTIONS] -p PID[,PID...]   processes that run already\n"
	  "       cudatrace mem [OPTIONS] -- CMD [ARG...]   start a program and book from its first call\n"
	  "       cudatrace mem [OPTIONS] FILE              of a recording\n"
	  "\nKeeps a book of the memory that programs have from CUDA: what is held and what was held at most, by process, device,\n"
	  "kind and call site; what was never freed; frees that went wrong; who held what when memory ran out.\n",
	  "\nExamples:\n"
	  "  cudatrace mem -- ./app\n"
	  "  cudatrace mem --leak-check -- ./tests          status 4 if memory was leaked\n"
	  "  cudatrace mem --watch=5 -p 1234                what grows\n"
	  "  cudatrace mem --by stack --top 50 app.ctrace\n" },
	{ OPTS_ADVISE,
	  "Usage: cudatrace advise [OPTIONS] FILE              of a recording\n"
	  "       cudatrace advise [OPTIONS] -p PID -d SEC     of processes that run already\n"
	  "       cudatrace advise [OPTIONS] -- CMD [ARG...]   start a program and look at all it does\n"
	  "\nPrints what a program could do better, by rules, with the evidence, the cost and what to do, the most costly first.\n"
	  "Recordings tell most when they were made with --gpu and -k.\n",
	  "\nExamples:\n"
	  "  cudatrace record --gpu -k -o app.ctrace -- ./app && cudatrace advise app.ctrace\n"
	  "  cudatrace advise --gpu -k -p 1234 -d 10\n"
	  "  cudatrace advise --fail --min-cost 10ms --format markdown app.ctrace   for CI\n"
	  "\nExit status: 0 whatever was found, or that of CMD; with --fail 1 when there is a warning or worse; 1 after an error,\n"
	  "2 for a wrong command line.\n" },
	{ OPTS_SERVE,
	  "Usage: cudatrace serve [OPTIONS]\n"
	  "\nCounts the calls of all processes of this machine, or of those chosen, in the kernel, and gives the sums to Prometheus:\n"
	  "GET /metrics, in the text format 0.0.4 or as OpenMetrics 1.0.0; GET /healthz and /readyz.\n",
	  "\nExamples:\n"
	  "  cudatrace serve\n"
	  "  cudatrace serve --listen :19400 --counters --kernels 20\n" },
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
		for (size_t i = 0; i < ARRAY_LEN(opts_rows); i++) {
			if (!(opts_rows[i].cmds & (int)cmd))
				continue;
			if (opts_rows[i].set)
				help_row(out, &opts_rows[i]);
			else if (cmd & TRACES)
				out_fmt(out, "\n%s:\n", opts_rows[i].name);
		}
		out_str(out, texts[t].after);
		if (!(cmd & TRACES) || cmd == OPTS_MEM)
			continue; /* no -e */
		out_str(out, "\nClasses:");
		for (int c = 0; c < API_CLASS_END; c++)
			out_fmt(out, " %s", api_class_name((enum api_class)c));
		out_char(out, '\n');
	}
}
