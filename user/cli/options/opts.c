/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts.c - the command line. One row of options[] is all there is about an option: parsing, its
 * default and --help come from it. To add an option: a member of struct opts, a setter, a row.
 * Knows no source and no sink.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../cupti/agent/agent.h"
#include "../../advise/advise.h"
#include "opts.h"
#include "opts_rows.h"
#include "../../stages/dump_on.h"
#include "../../format/otlp/otlp.h"
#include "../../serve/serve_http.h"
#include "../../util/msg.h"
#include "../../util/parse.h"
#include "../../stages/window.h"

#define RING_MIN (64u << 10)
#define RING_MAX (1u << 30)
#define INTERVAL_MIN_NS 100000ULL /* as cupti/counters/counters_wire.h has it */
#define OTLP_WAIT_MAX_NS 86400000000000ULL
#define INTERVAL_MAX_NS 3600000000000ULL

/* ---- setters ---- */

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
			msg_error("%s: '%s' is no process id; give numbers, separated by commas",
				  name, word);
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
		msg_error("%s: '%s' is no thread id; give a number, as 'ps -T' shows it", name,
			  val);
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
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s",
				      !i	     ? ""
				      : words[i + 1] ? ", "
						     : " or ",
				      words[i]);
	msg_error("%s: '%s' is not one of %s", name, val, known);
	return -EINVAL;
}

#define ONE_OF(fn, member, type, stmt, ...)                              \
	static const char *const fn##_words[] = { __VA_ARGS__, NULL };   \
	static int fn(struct opts *o, const char *name, const char *val) \
	{                                                                \
		int i = one_of(name, val, fn##_words);                   \
                                                                         \
		if (i < 0)                                               \
			return i;                                        \
		o->member = (type)i;                                     \
		stmt;                                                    \
		return 0;                                                \
	}
ONE_OF(set_domain, domain, enum api_domain, (void)0, "runtime", "driver")
ONE_OF(set_weight, weight, enum sink_weight, o->weight_given = true, "calls", "time", "bytes",
       "gpu")
ONE_OF(set_time, time, enum sink_time, o->time_given = true, "ms", "us", "iso")
ONE_OF(set_source, by_cupti, bool, (void)0, "probes", "cupti")
ONE_OF(set_graph, gpu_graph, uint32_t, (void)0, "node", "graph")
ONE_OF(set_gpu_clock, gpu_clock, uint32_t, (void)0, "auto", "callback", "offset")
ONE_OF(set_by, by, uint8_t, (void)0, "function", "process", "thread", "kernel", "stream", "device",
       "cgroup")
ONE_OF(set_stat, stat, enum sink_stat, (void)0, "table", "json", "csv")
ONE_OF(set_top_format, stat, enum sink_stat, (void)0, "table", "json")
/* as enum top_sort has them */
ONE_OF(set_sort, sort, uint8_t, (void)0, "pid", "name", "calls", "launches", "api", "sync", "htod",
       "dtoh", "memory", "failed", "gpu", "busy")
ONE_OF(set_advise, advise.format, enum sink_advise_format, (void)0, "text", "json", "markdown")
ONE_OF(set_counters_format, counters_format, enum opts_counters, (void)0, "table", "json", "csv")
ONE_OF(set_compare_format, compare_format, enum compare_format, (void)0, "text", "markdown", "json",
       "junit")
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
	{ "kernel", AGENT_KERNEL },
	{ "memcpy", AGENT_MEMCPY },
	{ "memset", AGENT_MEMSET },
	{ "sync", AGENT_SYNC },
	{ "memory", AGENT_MEMORY },
	{ "overhead", AGENT_OVERHEAD },
	{ "nvtx", AGENT_NVTX },
	{ "context", AGENT_CONTEXT },
	{ "device", AGENT_DEVICE },
	{ "stream", AGENT_STREAM },
	{ "runtime", AGENT_RUNTIME_API },
	{ "driver", AGENT_DRIVER_API },
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
			msg_error("%s: '%.*s' is no kind of record; give kernel, memcpy, memset, "
				  "sync, memory, overhead, nvtx, "
				  "context, device, stream, runtime, driver or um",
				  name, (int)(n < 40 ? n : 40), at);
			return -EINVAL;
		}
		kinds |= gpu_kinds[i].kinds;
		at += n;
	}
	if (val && !kinds) {
		msg_error("%s: an empty list of kinds; give %s alone, or kinds as kernel,memcpy",
			  name, name);
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

	snprintf(size, sizeof(size), "%.*s", comma ? (int)(comma - val) : (int)sizeof(size) - 1,
		 val);
	if (parse_size(size, &bytes) || bytes < 16384 || bytes > 64 << 20 ||
	    (comma && parse_u64(comma + 1, 2, 512, &n))) {
		msg_error("%s: '%s' is not SIZE[,COUNT]; give a size from 16KiB to 64MiB, a count "
			  "from 2 to 512",
			  name, val);
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
	msg_error("%s: '%s' is no duration; give a number and its unit, as 1ms, 50us, 2s", name,
		  val);
	return -EINVAL;
}

static int set_otlp_min(struct opts *o, const char *name, const char *val)
{
	o->otlp_min_given = true;
	if (!parse_duration(val, 0, &o->otlp_min_ns) && o->otlp_min_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no duration; give a number and its unit, as 1ms, 50us, 0s", name,
		  val);
	return -EINVAL;
}

static int set_otlp_wait(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->otlp_wait_ns) &&
	    o->otlp_wait_ns <= OTLP_WAIT_MAX_NS)
		return 0;
	msg_error("%s: '%s' is no time to wait, up to 24h; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_unfinished(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->unfinished_ns) && o->unfinished_ns &&
	    o->unfinished_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time to wait; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_output(struct opts *o, const char *name, const char *val)
{
	o->output = val;
	if (!*val)
		msg_error("%s: an empty value; give one, or leave %s out", name, name);
	else if (out_is_command(val) && !val[1 + strspn(val + 1, " \t\n")])
		msg_error("%s: no command stands behind the '|'; give one, as %s '|jq .'", name,
			  name);
	else
		return 0;
	return -EINVAL;
}

static int set_export(struct opts *o, const char *name, const char *val)
{
	const struct sinks_row *row = sinks_find(val);
	char known[256];

	if (!row || !(row->flags & SINKS_EXPORT)) {
		msg_error("%s: '%s' is not one of %s", name, val,
			  sinks_names(SINKS_EXPORT, known, sizeof(known)));
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
		msg_error("%s: '%s' is no number of a device; 'cudatrace info' lists them", name,
			  val);
		return -EINVAL;
	}
	o->one_device = true;
	o->device = (uint32_t)n;
	return 0;
}

static int set_delay(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->delay_ns) && o->delay_ns &&
	    o->delay_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time to wait; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_from(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->from_ns) && o->from_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time after the recording's begin; give seconds, or 500ms, 2m",
		  name, val);
	return -EINVAL;
}

static int set_to(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->to_ns) && o->to_ns && o->to_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time after the recording's begin; give seconds, or 500ms, 2m",
		  name, val);
	return -EINVAL;
}

static int set_last(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->last_ns) && o->last_ns >= 1000000000 &&
	    o->last_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time from 1s on; give seconds, or 2m", name, val);
	return -EINVAL;
}

static int set_max_size(struct opts *o, const char *name, const char *val)
{
	if (!parse_size(val, &o->max_bytes) && o->max_bytes >= 65536 && o->max_bytes <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no size from 64KiB on; give bytes, or 1GB (10^9), 1GiB (2^30)", name,
		  val);
	return -EINVAL;
}

static int set_rotate(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 1, 9999, &o->rotate))
		return 0;
	msg_error("%s: '%s' is no number of files; give 1 to 9999", name, val);
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
	msg_error("%s: there is no rule '%s'%s", name, word,
		  near.n ? parse_nearest_text(&near, text, sizeof(text))
			 : "; docs/advice.md and the manual page have them");
	return -EINVAL;
}

static int set_min_cost(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 0, &o->advise.min_cost_ns) && o->advise.min_cost_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no duration; give a number and its unit, as 1ms, 50us, 2s", name,
		  val);
	return -EINVAL;
}

static int set_over(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->over_ns) && o->over_ns >= 1000000 &&
	    o->over_ns <= INT64_MAX)
		return 0;
	msg_error("%s: '%s' is no time from 1ms on; give seconds, or 500ms, 2m", name, val);
	return -EINVAL;
}

static int set_interval(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->interval_ns) &&
	    o->interval_ns >= INTERVAL_MIN_NS && o->interval_ns <= INTERVAL_MAX_NS)
		return 0;
	msg_error("%s: '%s' is no interval from 100us to 1h; give seconds, or 100ms, 1ms", name,
		  val);
	return -EINVAL;
}

static const char *const set_mem_by_words[] = { "process", "device",  "kind",
						"stack",   "library", NULL };
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
	if (!parse_duration(val ? val : "1", 1000000000, &o->mem.watch_ns) &&
	    o->mem.watch_ns >= 10000000 && o->mem.watch_ns <= INT64_MAX)
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
	msg_error("%s: an empty value; give one, or leave %s out", name, name);
	return -EINVAL;
}

static int set_mem_top(struct opts *o, const char *name, const char *val)
{
	uint64_t n;

	if (parse_u64(val, 1, 1000000, &n)) {
		msg_error("%s: '%s' is no number of rows; give 1 to 1000000", name, val);
		return -EINVAL;
	}
	o->mem.top = (uint32_t)n;
	return 0;
}

static int set_otlp_interval(struct opts *o, const char *name, const char *val)
{
	if (!parse_duration(val, 1000000000, &o->otlp_interval_ns) &&
	    o->otlp_interval_ns >= INTERVAL_MIN_NS * 1000 && o->otlp_interval_ns <= INTERVAL_MAX_NS)
		return 0;
	msg_error("%s: '%s' is no interval from 100ms to 1h; give seconds, or 500ms, 2m", name,
		  val);
	return -EINVAL;
}

static int set_kernels(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 1, 1000, &o->kernels))
		return 0;
	msg_error("%s: '%s' is no number of kernels; give 1 to 1000", name, val);
	return -EINVAL;
}

static int set_processes(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 10, 100000, &o->processes))
		return 0;
	msg_error("%s: '%s' is no number of processes; give 10 to 100000", name, val);
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
		msg_error("%s: '%s' is no size; give one from 64KiB to 1GiB", name, val);
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
	msg_error("%s: '%s' is no number of rows; give 1 or more", name, val);
	return -EINVAL;
}

static int set_env(struct opts *o, const char *name, const char *val)
{
	const char **env;

	if (!*val || *val == '=') {
		msg_error("%s: '%s' names no variable; give VAR=VAL to set it, VAR to remove it",
			  name, val);
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
	msg_error("%s: '%s' is no chance between 0 and 0.5; give one as 0.05", name, val);
	return -EINVAL;
}

static int set_runs(struct opts *o, const char *name, const char *val)
{
	if (!parse_u64(val, 1, 1000, &o->runs))
		return 0;
	msg_error("%s: '%s' is no number of runs; give 1 to 1000", name, val);
	return -EINVAL;
}

static int set_verbose(struct opts *o, const char *name, const char *val)
{
	(void)name, (void)val;
	o->verbose++;
	return 0;
}

#define TEXT(fn, member)                                                                        \
	static int fn(struct opts *o, const char *name, const char *val)                        \
	{                                                                                       \
		if (!*val) {                                                                    \
			msg_error("%s: an empty value; give one, or leave %s out", name, name); \
			return -EINVAL;                                                         \
		}                                                                               \
		o->member = val;                                                                \
		return 0;                                                                       \
	}
TEXT(set_comm, comm)
TEXT(set_cgroup, cgroup)
TEXT(set_library, library)
TEXT(set_user, user)
TEXT(set_chip, chip)
TEXT(set_cupti, cupti)
TEXT(set_save, save)

/* Values that others take apart: a wrong one is told now, as a wrong command line, and not when
 * all has been set up. */
#define CHECKED(fn, member, check)                                       \
	static int fn(struct opts *o, const char *name, const char *val) \
	{                                                                \
		o->member = val;                                         \
		(void)name;                                              \
		return check;                                            \
	}
CHECKED(set_start_on, start_on, window_check("--start-on", val))
CHECKED(set_stop_on, stop_on, window_check("--stop-on", val))
CHECKED(set_dump_on, dump_on, dump_on_check(val))
CHECKED(set_listen, listen, serve_http_check(val))
CHECKED(set_otlp, otlp, otlp_config_check(val))

static int set_metrics(struct opts *o, const char *name, const char *val)
{
	o->metrics = val;
	if (val[strspn(val, ",")])
		return 0;
	msg_error(
		"%s: '%s' is an empty list; 'cudatrace counters --metrics help' lists the metrics",
		name, val);
	return -EINVAL;
}

#define SWITCH(fn, member)                                               \
	static int fn(struct opts *o, const char *name, const char *val) \
	{                                                                \
		(void)name, (void)val;                                   \
		o->member = true;                                        \
		return 0;                                                \
	}
SWITCH(set_follow, follow)
SWITCH(set_no_follow, no_follow)
SWITCH(set_append, append)
SWITCH(set_tid_column, tid_column)
SWITCH(set_failed, failed)
SWITCH(set_nested, nested)
SWITCH(set_enter_exit, enter_exit)
SWITCH(set_keep_chatty, keep_chatty)
SWITCH(set_queries, queries)
SWITCH(set_watch, watch)
SWITCH(set_batch, batch)
SWITCH(set_counts, counts)
SWITCH(set_mangled, mangled)
SWITCH(set_all_tables, all_tables)
SWITCH(set_stack_args, stack_args)
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
	if (!val || strcmp(val, "help"))
		return val ? set_metrics(o, name, val) : 0;
	msg_error("%s=help: nothing is traced for it; give 'cudatrace counters --metrics help'",
		  name);
	return -EINVAL;
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

/* ---- the rows ---- */

/* A row without a setter is a heading. What the format leaves no room for, such as columns,
 * `folded` has no option for. */
/* clang-format off */
const struct option_row opts_rows[] = {
	{ .name = "What to trace", .cmds = TRACES | OPTS_SERVE | OPTS_TOP },
	{ 'p', "pid", "PID", set_pid, STORED, NULL, "processes of the recording only; a comma list, repeatable" },
	{ 'p', "pid", "PID", set_pid, OPTS_DOCTOR, NULL, "what can be traced of these processes too; a comma list, repeatable" },
	{ 'p', "pid", "PID", set_pid, LIVE | OPTS_SERVE | OPTS_TOP | OPTS_STUCK, NULL,
	  "processes that run already; a comma list, repeatable; ends when the last of them does" },
	{ 'f', "follow", NULL, set_follow, LIVE, NULL, "with -p: their children too; with CMD that is so unless --no-follow says otherwise" },
	{ 0, "no-follow", NULL, set_no_follow, LIVE, NULL, "with CMD: without its children" },
	{ 'f', "follow", NULL, set_follow, OPTS_SERVE | OPTS_TOP, NULL, "with -p: their children too" },
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
	  "a list that begins with ! takes out of default\n"
	  "'none' is no call: with --gpu or --counters, only what the devices do" },
	{ 0, "failed", NULL, set_failed, (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL, "calls that failed" },
	{ 0, "min-duration", "TIME", set_min_duration, (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL, "calls that took at least this long: 1ms, 50us" },
	{ 0, "min-size", "SIZE", set_min_size, (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL,
	  "calls that move or allocate at least this much: 1MB (10^6), 1MiB or 1M (2^20)" },
	{ 0, "unfinished", "TIME", set_unfinished, OPTS_TRACE | OPTS_RECORD, NULL,
	  "calls that have not returned after so long (5, 500ms) too, at once; and again when they do" },
	{ 0, "nested", NULL, set_nested, OPTS_TRACE | OPTS_RECORD | OPTS_REPLAY, NULL,
	  "driver calls made inside runtime calls too, indented below them" },
	{ 0, "enter-exit", NULL, set_enter_exit, OPTS_TRACE | OPTS_RECORD | OPTS_REPLAY, NULL, "two rows a call: arguments at its entry; outputs, result and duration at its return" },
	{ 0, "keep-chatty", NULL, set_keep_chatty, LIVE & CHOOSES & ~OPTS_ADVISE, NULL,
	  "each call of a query (cudaGetDevice and its like) that is called very often:\n"
	  "without this its calls are counted in short windows, and their number is an estimate" },
	{ 0, "queries", NULL, set_queries, OPTS_SERVE | OPTS_TOP, NULL,
	  "count the calls of class query too (cudaGetDevice and its like);\n"
	  "without this they are not probed: their probes can double the time of a training step" },

	{ 'k', "stack", "[=HOW]", set_stack, OPTS_MEM | OPTS_FOLDED, "dwarf",
	  "how stacks are taken: dwarf, unwound by .eh_frame from a copy of up to 16 KiB of them,\n"
	  "or fp: frame pointers, cheaper, for programs built with them", set_stack_words },
	{ 0, "no-stack", NULL, set_no_stack, OPTS_MEM, NULL, "no stacks: call sites are the functions called" },
	{ 'k', "stack", NULL, set_stack, OPTS_REPLAY, NULL, "the user stack under each row, where it was recorded" },
	{ 'k', "stack", "[=HOW]", set_stack, ONE_BY_ONE & LIVE & ~OPTS_FOLDED, NULL,
	  "the user stack of each call too: dwarf (what -k alone means), unwound by .eh_frame from a\n"
	  "copy of up to 16 KiB of it, or fp: frame pointers, cheaper, for programs built with them", set_stack_words },
	{ 0, "no-python", NULL, set_no_python, (LIVE & ~OPTS_STAT) | OPTS_STUCK, NULL, "stacks of native frames only, without Python's" },
	{ 0, "mangled", NULL, set_mangled, PRINTS | OPTS_STUCK | OPTS_EXPORT, NULL, "names of kernels and functions as the compiler made them" },
	{ 0, "full-names", NULL, set_full_names, PRINTS | OPTS_STUCK | OPTS_EXPORT, NULL,
	  "names of kernels with all template arguments and parameters" },

	{ .name = "What the GPU does", .cmds = DEVICE | OPTS_FOLDED | OPTS_TOP },
	{ 0, "gpu", "[=KINDS]", set_gpu, DEVICE | OPTS_FOLDED, NULL,
	  "kernels, copies and more with the device's own times, by CUPTI inside the program: kernel,\n"
	  "memcpy, memset, sync, memory, overhead, nvtx, context, device, stream, runtime, driver, um;\n"
	  "--gpu alone means kernel,memcpy,memset,overhead" },
	{ 0, "gpu", "[=KINDS]", set_top_gpu, OPTS_TOP, NULL,
	  "the time on the GPU and the device memory taken too, by CUPTI inside the programs;\n"
	  "--gpu alone means kernel,memcpy,memset,memory" },
	{ 0, "graph", "LEVEL", set_graph, DEVICE | OPTS_FOLDED | OPTS_TOP, "node",
	  "of CUDA graphs each node, or each graph as a whole, which costs less: node or graph", set_graph_words },
	{ 0, "source", "NAME", set_source, DEVICE, "probes",
	  "where calls are seen: probes (the kernel's uprobes; needs root), or cupti: by CUPTI inside\n"
	  "the program, without root", set_source_words },
	{ 0, "cupti", "PATH", set_cupti, DEVICE | OPTS_FOLDED | OPTS_TOP, NULL,
	  "the libcupti to use where the program has not loaded one" },
	{ 0, "gpu-buffer", "SIZE[,N]", set_gpu_buffer, DEVICE | OPTS_FOLDED | OPTS_TOP, "256KiB,160", "CUPTI's buffers in the program's memory: the size of one, and how many at most" },
	{ 0, "gpu-clock", "WAY", set_gpu_clock, DEVICE | OPTS_FOLDED | OPTS_TOP, "auto",
	  "how device times come onto the clock of the calls: callback (CUPTI reads that clock), offset\n"
	  "(the distance of its own is measured), or what suits CUPTI's version", set_gpu_clock_words },
	{ 0, "counters", "[=LIST]", set_counters, OPTS_TRACE | OPTS_RECORD | OPTS_STAT | OPTS_TOP, NULL,
	  "the hardware counters of the GPUs too, and XID errors; LIST: as 'cudatrace counters' has\n"
	  "it for --metrics" },
	{ 'i', "interval", "TIME", set_interval, OPTS_TRACE | OPTS_RECORD | OPTS_STAT, "100ms",
	  "with --counters: between two samples: 1 (second), 100ms, 1ms; from 100us on" },
	{ 'i', "interval", "TIME", set_interval, OPTS_COUNTERS, "100ms", "between two samples: 1 (second), 100ms, 1ms; from 100us on" },
	{ 0, "metrics", "LIST", set_metrics, OPTS_COUNTERS, NULL,
	  "which: names of cudatrace or CUPTI, separated by commas; 'default' is the usual ones,\n"
	  "'help' lists them" },
	{ 0, "chip", "NAME", set_chip, OPTS_COUNTERS, NULL, "with --metrics help: of this chip, as GH100, whatever GPU is here" },
	{ 0, "cupti", "PATH", set_cupti, OPTS_COUNTERS, NULL, "this libcupti.so, or the one in this directory" },

	{ .name = "Output", .cmds = TRACES | OPTS_TOP },
	{ 'o', "output", "FILE", set_output, (PRINTS | OPTS_STAT | OPTS_MEM | OPTS_ADVISE) & LIVE, NULL,
	  "write to FILE (compressed when its name ends in .gz), to a command as '|jq .', or to\n"
	  "standard output: -. Without -o what is for people goes to standard error when CMD is\n"
	  "started, since standard output is CMD's, else to standard output" },
	{ 'o', "output", "FILE", set_output, OPTS_REPLAY | OPTS_STUCK | OPTS_COUNTERS | OPTS_COMPARE | OPTS_TOP, NULL,
	  "write to FILE (compressed when its name ends in .gz), or to a command as '|jq .'" },
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
	  "end before the file is larger than this: 1GB (10^9), 1GiB (2^30); with --rotate begin\n"
	  "another, with --last: of memory [256MiB]" },
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
	{ 0, "all-tables", NULL, set_all_tables, ROWS | OPTS_EXPORT, NULL,
	  "nsys-sqlite: tables without rows too, for queries that fail without them" },
	{ 0, "stack-args", NULL, set_stack_args, ROWS | OPTS_EXPORT, NULL,
	  "perfetto: stacks as arguments of the calls; trace_processor before v53 counts a stack\n"
	  "that is a callstack as an error" },
	{ 0, "time", "UNIT", set_time, ROWS, "ms", "ms or us since the start, or iso: the time of day (UTC)", set_time_words },
	{ 0, "tid", NULL, set_tid_column, PRINTS | OPTS_EXPORT, NULL,
	  "a column with the thread; in folded, flame and speedscope a frame for each thread" },
	{ 'c', "count-only", NULL, set_counts_only, ROWS, NULL, "no rows: counts and times by function at the end" },
	{ 'C', "counts", NULL, set_counts, ROWS, NULL, "counts and times by function after the rows" },
	{ 0, "otlp", "URL", set_otlp, ROWS | OPTS_RECORD, NULL,
	  "push spans to an OpenTelemetry collector too, as http://127.0.0.1:4318; env: where\n"
	  "OTEL_EXPORTER_OTLP_ENDPOINT says" },
	{ 0, "otlp-min", "TIME", set_otlp_min, ROWS | OPTS_RECORD, "100us", "calls and device work shorter than this are no spans" },
	{ 0, "otlp-wait", "TIME", set_otlp_wait, (ROWS | OPTS_RECORD) & LIVE, "2s",
	  "at the end, for a collector that takes no spans: seconds, or 500ms, 2m" },
	{ 0, "otlp-wait", "TIME", set_otlp_wait, OPTS_REPLAY, "60s",
	  "for a collector that takes no spans: 10, 5m; what it has not got then is lost,\nand the exit status is 1" },
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
	{ 0, "leak-check", NULL, set_leak_check, OPTS_MEM, NULL, "exit with status 4 if anything was leaked, 5 if that is not known because records were lost" },

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
	{ 0, "listen", "ADDR:PORT", set_listen, OPTS_SERVE, "127.0.0.1:19400", "where Prometheus asks; [ADDR] for IPv6, :PORT for all addresses; or unix:PATH" },
	{ 0, "hist", NULL, set_hist, OPTS_SERVE, NULL, "histograms of the calls' durations too, by class" },
	{ 0, "kernels", "N", set_kernels, OPTS_SERVE, NULL,
	  "launches by the kernel's name too, of the N kernels launched most; the rest is \"other\"" },
	{ 0, "processes", "N", set_processes, OPTS_SERVE, "10000",
	  "that the counts have room for, with 40 functions each: about 8 KiB of kernel memory\nfor each" },
	{ 0, "counters", "[=LIST]", set_counters, OPTS_SERVE, NULL,
	  "what the GPUs do too, by hardware counters; LIST: as 'cudatrace counters' has it for\n--metrics" },
	{ 'i', "interval", "TIME", set_interval, OPTS_SERVE, "1s", "with --counters: between two samples; a scrape gets the last one" },
	{ 0, "cupti", "PATH", set_cupti, OPTS_SERVE, NULL, "this libcupti.so for --counters, or the one in this directory" },
	{ 0, "otlp", "URL", set_otlp, OPTS_SERVE, NULL,
	  "push the metrics to an OpenTelemetry collector too, as http://127.0.0.1:4318; env: where\n"
	  "OTEL_EXPORTER_OTLP_ENDPOINT says" },
	{ 0, "otlp-interval", "TIME", set_otlp_interval, OPTS_SERVE, "60s", "between two pushes of --otlp" },

	{ .name = "From when until when", .cmds = TRACES },
	{ 0, "from", "TIME", set_from, STORED | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "what began after this time of the recording: 10, 500ms, 2m" },
	{ 0, "until", "TIME", set_to, STORED | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "what began before this time of the recording" },
	{ 0, "to", "TIME", set_to, OPTS_REPLAY | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "the same as --until" },
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
	{ 0, "ring-size", "SIZE", set_ring, LIVE | OPTS_SERVE | OPTS_TOP | OPTS_STUCK, NULL,
	  "of the buffer between kernel and tracer, instead of 16MiB, or 64MiB when stacks are taken" },
	{ 0, "probe-kind", "KIND", set_probe_kind, LIVE | OPTS_SERVE | OPTS_TOP | OPTS_DOCTOR | OPTS_STUCK, NULL,
	  "session, multi, tracefs or perf instead of the best that this kernel has", set_probe_kind_words },
	{ 0, "strict", NULL, set_strict, TRACES | OPTS_EXPORT, NULL, "exit with status 3 if anything was lost, a library was refused, or\nprocesses ran before their calls were seen" },

	{ .name = "Other", .cmds = ALL },
	{ 'v', "verbose", NULL, set_verbose, ALL, NULL,
	  "say more; twice: libbpf's words too" },
	{ 'V', "version", NULL, set_version, ALL, NULL, "print the version" },
	{ 'h', "help", NULL, set_help, ALL, NULL, "print this text" },
};
/* clang-format on */

const int opts_nrows = ARRAY_LEN(opts_rows);
