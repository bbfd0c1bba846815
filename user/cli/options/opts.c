/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts.c - the options that several commands have, as rows (util/option/option.h says what a row
 * is). To add one: a member of struct request and a row; docs/HOWTO.md. Options of only one sink or
 * one command are in its own file. Knows no source and no sink.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "habits.h"
#include "opts_rows.h"
#include "../../api/traits.h"
#include "../../proc/running.h"
#include "../../stages/dump_on.h"
#include "../../export/otlp/otlp.h"
#include "../../util/msg.h"
#include "../../util/parse.h"
#include "../../stages/window.h"

#define OPTION_STRUCT struct opts

#define RING_MIN (64u << 10)
#define RING_MAX (1u << 30)
#define INTERVAL_MIN_NS 100000ULL /* as wire/counters_wire.h has it */
#define DURATION_ADVICE "give a number and its unit, as 1ms, 50us, "

/* ---- values that no type takes apart ---- */

static int add_pid(struct opts *o, const char *name, uint64_t pid)
{
	pid_t *pids;

	for (int i = 0; i < o->ask.npids; i++)
		if (o->ask.pids[i] == (pid_t)pid)
			return 0;
	pids = realloc(o->ask.pids, ((size_t)o->ask.npids + 1) * sizeof(*pids));
	if (!pids) {
		msg_error("%s: no memory", name);
		return -EINVAL;
	}
	o->ask.pids = pids;
	pids[o->ask.npids++] = (pid_t)pid;
	return 0;
}

/* -p NAME: those of the name that run now. */
static int add_named(struct opts *o, const char *name, const char *word)
{
	pid_t *pids;
	int n = running_named(word, &pids), err = 0;

	for (int i = 0; i < n && !err; i++)
		err = add_pid(o, name, (uint64_t)pids[i]);
	if (n > 0)
		free(pids);
	if (n == 0) {
		free(pids);
		msg_error("%s: no process named '%s' runs; give numbers, or --comm for processes "
			  "of a name that begin later",
			  name, word);
	}
	return n > 0 ? err : -EINVAL;
}

static int set_pid(void *options, const char *name, const char *val)
{
	struct opts *o = options;
	/* as `pidof` and `pgrep` print them: commas, spaces, newlines */
	static const char seps[] = ", \t\n";
	const char *at = val + strspn(val, seps);

	do {
		size_t n = strcspn(at, seps);
		char word[17];
		uint64_t pid;

		snprintf(word, sizeof(word), "%.*s", (int)(n < 16 ? n : 16), at);
		if (isalpha((unsigned char)*word) && !(o->ask.command & STORED)) {
			if (add_named(o, name, word))
				return -EINVAL;
		} else if (parse_u64(word, 1, INT32_MAX, &pid)) {
			msg_error("%s: '%s' is not a process id; give numbers, separated by "
				  "commas",
				  name, word);
			return -EINVAL;
		} else if (add_pid(o, name, pid)) {
			return -EINVAL;
		}
		at += n;
		at += strspn(at, seps);
	} while (*at);
	return 0;
}

/* "1/20", "5%" or "0.05". Returns 0 or -EINVAL. */
static int parse_share(const char *val, double *share)
{
	char *end;
	double by;

	if (*val < '0' || *val > '9')
		return -EINVAL;
	*share = strtod(val, &end);
	if (*end == '%' && !end[1]) {
		*share /= 100;
		return 0;
	}
	if (*end == '/' && end[1] >= '0' && end[1] <= '9') {
		by = strtod(end + 1, &end);
		if (by <= 0)
			return -EINVAL;
		*share /= by;
	}
	return *end ? -EINVAL : 0;
}

static int set_duty(void *options, const char *name, const char *val)
{
	struct opts *o = options;

	if (!parse_share(val, &o->ask.duty) && o->ask.duty >= 1 / 500.0 && o->ask.duty <= 0.5)
		return 0;
	msg_error("%s: '%s' is no share of the time from 1/500 to 1/2; give one as 1/20 or 5%%",
		  name, val);
	return -EINVAL;
}

static int set_max_cost(void *options, const char *name, const char *val)
{
	struct opts *o = options;

	o->max_cost_off = !strcmp(val, "off");
	if (o->max_cost_off) {
		o->ask.max_cost = 0;
		return 0;
	}
	if (!parse_share(val, &o->ask.max_cost) && o->ask.max_cost >= 0.001 &&
	    o->ask.max_cost <= 0.5)
		return 0;
	msg_error(
		"%s: '%s' is no share of CPU time from 0.1%% to 50%%, and not off; give one as 1%%",
		name, val);
	return -EINVAL;
}

static int set_events(void *options, const char *name, const char *val)
{
	static const char trace[] = "trace="; /* as strace has it */
	struct opts *o = options;
	char msg[512];

	(void)name;
	o->ask.events_given = true;
	if (!strncmp(val, trace, strlen(trace))) {
		val += strlen(trace);
	} else if (habits_qualifier(val)) {
		msg_error("%s", habits_qualifier(val));
		return -EINVAL;
	}
	if (!select_add(&o->ask.select, val, msg, sizeof(msg)))
		return 0;
	msg_error("%s", msg);
	return -EINVAL;
}

static int set_format(void *options, const char *name, const char *val)
{
	struct opts *o = options;
	char known[256];

	o->ask.format = sinks_find(habits_format(val));
	if (o->ask.format && !(o->ask.format->flags & SINKS_COMMAND))
		return 0;
	msg_error("%s: '%s' is not one of %s", name, val, sinks_names(0, known, sizeof(known)));
	return -EINVAL;
}

static int set_gpu_buffer(void *options, const char *name, const char *val)
{
	struct opts *o = options;
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
	o->ask.agent.buffer_bytes = (uint32_t)bytes & ~4095u;
	o->ask.agent.buffers = (uint32_t)n;
	return 0;
}

static int set_export(void *options, const char *name, const char *val)
{
	struct opts *o = options;
	const struct sinks_row *row = sinks_find(habits_format(val));
	char known[256];

	if (!row || !(row->flags & SINKS_EXPORT)) {
		msg_error("%s: '%s' is not one of %s", name, val,
			  sinks_names(SINKS_EXPORT, known, sizeof(known)));
		return -EINVAL;
	}
	o->ask.format = row;
	o->ask.export = true;
	return 0;
}

static int check_metrics(const char *name, const char *val)
{
	if (val[strspn(val, ",")])
		return 0;
	msg_error(
		"%s: '%s' is an empty list; 'cudatrace counters --metrics help' lists the metrics",
		name, val);
	return -EINVAL;
}

static int set_counters(void *options, const char *name, const char *val)
{
	struct opts *o = options;

	o->ask.counters = true;
	o->ask.metrics = val;
	if (!val || strcmp(val, "help"))
		return val ? check_metrics(name, val) : 0;
	msg_error("%s=help: nothing is traced for it; give 'cudatrace counters --metrics help'",
		  name);
	return -EINVAL;
}

/* What NVML has of each process. */
static int set_mem_driver(void *options, const char *name, const char *val)
{
	struct opts *o = options;

	(void)name, (void)val;
	o->ask.counters = true;
	o->ask.metrics = "mem_process";
	o->ask.interval_ns = 100000000;
	return 0;
}

/* ---- texts that others take apart: a wrong one is told now, before anything is set up ---- */

static int check_env(const char *name, const char *val)
{
	if (*val && *val != '=')
		return 0;
	msg_error("%s: '%s' names no variable; give VAR=VAL to set it, VAR to remove it", name,
		  val);
	return -EINVAL;
}

static int check_output(const char *name, const char *val)
{
	if (!*val)
		msg_error("%s: an empty value; give one, or leave %s out", name, name);
	else if (out_is_command(val) && !val[1 + strspn(val + 1, " \t\n")])
		msg_error("%s: there is no command after the '|'; give one, as %s '|jq .'", name,
			  name);
	else
		return 0;
	return -EINVAL;
}

static int check_dump_on(const char *name, const char *val)
{
	(void)name;
	return dump_on_check(val);
}

static int check_otlp(const char *name, const char *val)
{
	(void)name;
	return otlp_config_check(val);
}

/* ---- what fingers type because strace, perf or nsys have it ---- */

/* As strace has it: -t, -tt: the local time of day; -ttt: since the Unix epoch. */
static int set_time_of_day(void *options, const char *name, const char *val)
{
	struct opts *o = options;

	(void)name, (void)val;
	o->times_t++;
	o->ask.look.time = o->times_t == 1   ? SINK_TIME_DAY
			   : o->times_t == 2 ? SINK_TIME_DAY_US
					     : SINK_TIME_UNIX;
	return 0;
}

/* Is the word, perhaps with strace's % or ! before it, a class? */
static bool is_class(const char *word, size_t n)
{
	char text[32];

	for (; n && (*word == '!' || *word == '%'); n--)
		word++;
	snprintf(text, sizeof(text), "%.*s", (int)(n < 31 ? n : 31), word);
	return api_class_parse(text) >= 0;
}

/* nsys: --trace=cuda,nvtx; strace: --trace=%memory */
static int set_nsys_trace(void *options, const char *name, const char *val)
{
	struct opts *o = options;

	for (const char *at = val; *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ",");
		int layer = 0;

		while (api_layer_names[layer] &&
		       (strncmp(api_layer_names[layer], at, n) != 0 || api_layer_names[layer][n]))
			layer++;
		if (api_layer_names[layer]) {
			o->layers |= 1u << layer;
		} else if (is_class(at, n)) {
			return set_events(options, name, val);
		} else if (n != 4 || strncmp(at, "cuda", 4) != 0) {
			msg_error("%s: '%.*s' is not traced here; give cuda, nvtx, nccl, torch, "
				  "cublas or cudnn",
				  name, (int)(n < 32 ? n : 32), at);
			return -EINVAL;
		}
		at += n;
	}
	if (*val && *val != ',')
		return 0;
	msg_error("%s: an empty list; give cuda, or cuda,nvtx", name);
	return -EINVAL;
}

/* strace: --status=failed, which opts_parse.c makes --failed of. */
static int set_status(void *options, const char *name, const char *val)
{
	(void)options, (void)name, (void)val;
	return 0;
}

/* nsys: --force-overwrite=true */
static int set_force(void *options, const char *name, const char *val)
{
	(void)options;
	if (!strcmp(val, "true"))
		return 0;
	if (strcmp(val, "false") != 0)
		msg_error("%s: '%s' is not one of true or false", name, val);
	else
		msg_error("%s=false: a recording that is there becomes FILE.old, and any other "
			  "file is replaced: give -o another name, or leave it out",
			  name);
	return -EINVAL;
}

/* nsys: --stats=true */
static int set_nsys_stats(void *options, const char *name, const char *val)
{
	struct opts *o = options;

	if (strcmp(val, "true") != 0 && strcmp(val, "false") != 0) {
		msg_error("%s: '%s' is not one of true or false", name, val);
		return -EINVAL;
	}
	o->ask.look.counts = *val == 't';
	return 0;
}

/* nsys: --capture-range=cudaProfilerApi */
static int set_nsys_range(void *options, const char *name, const char *val)
{
	static const char profiler[] = "cuda"
				       "ProfilerApi"; /* a word of nsys, no function */
	struct opts *o = options;

	if (!strcmp(val, "none"))
		return 0;
	if (strcmp(val, profiler) != 0) {
		msg_error(!strcmp(val, "nvtx")
				  ? "%s: %s: give --start-on nvtx:NAME --stop-on nvtx:NAME"
				  : "%s: '%s' is not one of cudaProfilerApi or none; --start-on "
				    "and --stop-on begin and end at any call",
			  name, val);
		return -EINVAL;
	}
	o->ask.window.start_on = API_PROFILER_START;
	o->ask.window.stop_on = API_PROFILER_STOP;
	return 0;
}

/* ---- the rows ---- */

/* in the order of enum agent_kind */
#define GPU_KINDS                                                                                \
	"kernel", "memcpy", "memset", "sync", "memory", "overhead", "nvtx", "context", "device", \
		"stream", "runtime", "driver", "um"

/* A heading is a line of --help. What the format leaves no room for, such as columns, `folded`
 * has no option for. */
/* clang-format off */
static const struct option_row before[] = {
	{ .type = HEADING(), .name = "What to trace", .cmds = TRACES | OPTS_SERVE | OPTS_TOP },
	{ 'p', "pid", "PID", OTHER(set_pid), STORED, NULL, "show only these processes of the recording; a comma list, repeatable" },
	{ 'p', "pid", "PID", OTHER(set_pid), OPTS_DOCTOR, NULL, "say what can be traced in these processes, too; a comma list, repeatable" },
	{ 'p', "pid", "PID", OTHER(set_pid), LIVE | OPTS_SERVE | OPTS_TOP | OPTS_STUCK, NULL,
	  "look at these running processes: a comma list, repeatable; ends when the last of them ends;\n"
	  "a NAME means all processes that have this name now",
	  RULES(EXCLUDES("CMD", "-p traces processes that run already and CMD starts one: give one of the two")) },
	{ 'f', "follow", NULL, TIMES(ask.follow), LIVE, NULL,
	  "with -p: trace their children too; with CMD children are always traced, unless --no-follow;\n"
	  "-ff -o FILE: write a file for each process, FILE.PID" },
	{ 0, "no-follow", NULL, FLAG(ask.no_follow), LIVE, NULL, "with CMD: do not trace its children" },
	{ 'f', "follow", NULL, TIMES(ask.follow), OPTS_SERVE | OPTS_TOP, NULL, "with -p: count the calls of their children too" },
	{ 'L', "thread", "TID", COUNT(ask.tid, 1, INT32_MAX, "thread id", "give a number, as 'ps -T' shows it"), ONE_BY_ONE | OPTS_EXPORT, NULL, "only this thread",
	  RULES(EXCLUDES("CMD", "-L traces a thread that runs already and CMD starts a program: give one of the two"),
		EXCLUDES("follow", "-L traces a thread alone: leave out -f")) },
	{ 0, "cgroup", "PATH", TEXT(ask.cgroup), LIVE | OPTS_SERVE | OPTS_TOP, NULL,
	  "only processes in this cgroup (v2) or below it; PATH may begin at the cgroup root" },
	{ 0, "comm", "GLOB", TEXT(ask.comm), (TRACES & ~OPTS_WATCH) | OPTS_SERVE | OPTS_TOP | OPTS_EXPORT, NULL, "only processes whose name matches" },
	{ 0, "library", "PATH", TEXT(ask.library), LIVE | OPTS_SERVE | OPTS_TOP | OPTS_STUCK, NULL, "only functions of this file" },
	{ 0, "domain", "NAME", ENUM_OF(ask.domain, api_domain_names), CHOOSES | OPTS_SERVE | OPTS_TOP | OPTS_LIST | OPTS_EXPORT, NULL,
	  "only functions of this library ('Libraries' below)" },
	{ 'u', "user", "USER", TEXT(ask.user), LIVE, NULL, "run CMD as this user (a name or a number)",
	  RULES(NEEDS("CMD", "-u says as whom CMD runs: give a CMD after --")) },
	{ 'E', "env", "VAR[=VAL]", TEXTS(ask.env, check_env), LIVE, NULL, "set VAR in CMD's environment; without =VAL remove it; repeatable",
	  RULES(NEEDS("CMD", "-E changes CMD's environment: give a CMD after --")) },

	{ .type = HEADING(), .name = "What to show", .cmds = (TRACES & ~(OPTS_WHY | OPTS_WATCH)) | OPTS_SERVE | OPTS_TOP },
	{ 'e', "events", "LIST", OTHER(set_events, .offer = OPTION_OFFER_CLASSES), CHOOSES | OPTS_SERVE | OPTS_TOP | OPTS_LIST | OPTS_EXPORT, NULL,
	  "the functions: classes, libraries, names and globs, separated by commas; repeatable\n"
	  "!WORD leaves WORD out; a list that begins with ! leaves it out of 'default'\n"
	  "'default' is every class except internal, 'all' is every class\n"
	  "'none' selects no call: with --gpu or --counters, only what the devices do is shown" },
	{ 0, "layers", "LIST", LIST_OF(layers, "layer", api_layer_names, .every = "all"), OPTS_TRACE | OPTS_RECORD | OPTS_STAT | OPTS_ADVISE | OPTS_MEM | OPTS_SERVE, NULL,
	  "record what the work of the program is for, too: nvtx (its ranges and marks),\n"
	  "nccl (its collectives), torch (PyTorch's operators), cublas (matrix products),\n"
	  "cudnn (convolutions), allocator (the blocks of PyTorch's memory allocator), or all",
	  RULES(EXCLUDES("no-return", "--no-return sees no returns, and --layers needs them: give one of the two")) },
	{ 0, "shapes", NULL, FLAG(ask.shapes), OPTS_TRACE | OPTS_RECORD, NULL,
	  "with --layers torch: record the shapes and types of operators' tensors, too",
	  RULES(NEEDS("layers", "--shapes is about PyTorch's operators: give --layers torch")) },
	{ 'Z', "failed", NULL, FLAG(ask.filter.failed_only), (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL, "only calls that failed",
	  RULES(EXCLUDES("gpu", "--failed shows calls alone, and nothing of what the GPU does: leave out --gpu")) },
	{ 'z', "succeeded", NULL, FLAG(ask.filter.succeeded_only), (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL, "only calls that succeeded",
	  RULES(EXCLUDES("failed", "-z shows calls that succeeded and -Z those that failed: give one of the two"),
		EXCLUDES("no-return", "--no-return knows no results: leave out --succeeded"),
		EXCLUDES("duty max-cost", "--succeeded looks at each call: leave out --duty and --max-cost"),
		EXCLUDES("enter-exit", "--enter-exit prints calls before their results are known: leave out --succeeded")) },
	{ 0, "min-duration", "TIME", DURATION(ask.filter.min_duration_ns, 0, OPTION_MAX, 0, "duration", DURATION_ADVICE "2s"), (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL, "only calls that took at least this long: 1ms, 50us" },
	{ 0, "min-size", "SIZE", SIZE(ask.filter.min_size_bytes, 0, OPTION_MAX, "give bytes, or 1MB (10^6), 1MiB (2^20)"), (CHOOSES & ~OPTS_ADVISE) | OPTS_EXPORT, NULL,
	  "only calls that move or allocate at least this much: 1MB (10^6), 1MiB or 1M (2^20)" },
	{ 0, "unfinished", "TIME", DURATION(ask.unfinished_ns, 1, OPTION_MAX, SECOND, "time to wait", "give seconds, or 500ms, 2m"), OPTS_TRACE | OPTS_RECORD, NULL,
	  "show calls that have not returned after this long (5, 500ms), and again when they return" },
	{ 0, "nested", NULL, FLAG(ask.look.nested), OPTS_TRACE | OPTS_RECORD | OPTS_REPLAY, NULL,
	  "show driver calls made inside runtime calls too, indented below them" },
	{ 0, "enter-exit", NULL, FLAG(ask.look.enter_exit), OPTS_TRACE | OPTS_RECORD | OPTS_REPLAY, NULL, "print two rows for each call: arguments at entry; outputs, result and duration at return",
	  RULES(EXCLUDES("failed", "--enter-exit prints calls before their results are known: leave out --failed"),
		EXCLUDES("min-duration", "--enter-exit prints calls before their durations are known: leave out --min-duration")) },
	{ 0, "keep-chatty", NULL, FLAG(ask.keep_chatty), LIVE & CHOOSES & ~OPTS_ADVISE, NULL,
	  "record each call of queries (cudaGetDevice and similar) that are called very often;\n"
	  "without this option, such calls are counted in short windows, and their number is an\n"
	  "estimate (with --source=hooks each of them is counted)" },
	{ 0, "duty", "SHARE", OTHER(set_duty), OPTS_STAT | OPTS_TOP | OPTS_SERVE, NULL,
	  "probe functions that are called more than 1000 times a second only for this share of the\n"
	  "time, 1/500 to 1/2; their numbers are estimates, which begin with ~. Calls that handle\n"
	  "memory or wait, and functions named one by one with -e, are counted one by one",
	  RULES(EXCLUDES("keep-chatty failed min-size FILE", NULL)) },
	{ 0, "max-cost", "SHARE", OTHER(set_max_cost), OPTS_STAT | OPTS_TOP | OPTS_SERVE, NULL,
	  "limit what the probes cost to this share of the programs' CPU time, 0.1% to 50%; if they\n"
	  "cost more, functions that are called often are probed only for a part of the time (--duty);\n"
	  "off: no limit; serve has 1% unless --duty is given",
	  RULES(EXCLUDES("keep-chatty failed min-size FILE", NULL)) },
	{ 0, "queries", NULL, FLAG(queries), OPTS_SERVE | OPTS_TOP, NULL,
	  "count the calls of class query too (cudaGetDevice and similar); without this option they\n"
	  "are not probed, because their probes can double the time of a training step",
	  RULES(EXCLUDES("events", "-e says which functions are counted: add 'query' to its list, and leave out --queries")) },

	{ 'k', "stack", "[=HOW]", ENUM_FROM(ask.stack, REQUEST_STACK_DWARF, "dwarf", "dwarf", "fp", "python", "auto"), OPTS_MEM | OPTS_FOLDED, "auto",
	  "how to read stacks: dwarf, fp, python or auto. dwarf copies up to 16 KiB of a stack and\n"
	  "unwinds it by .eh_frame; fp follows frame pointers, which costs less, in programs built\n"
	  "with them; python reads only Python's frames; auto is python for threads that run Python,\n"
	  "else dwarf" },
	{ 0, "no-stack", NULL, FLAG(ask.no_stack), OPTS_MEM | OPTS_ADVISE, NULL, "record no stacks: call sites are the functions called",
	  RULES(EXCLUDES("stack", "--no-stack takes no stacks: leave out --stack"),
		EXCLUDES("no-python", "--no-stack takes no stacks: leave out --no-python")) },
	{ 'k', "stack", NULL, CONST(ask.stack, REQUEST_STACK_DWARF), OPTS_REPLAY, NULL, "print the user stack under each row, if it was recorded" },
	{ 'k', "stack", "[=HOW]", ENUM_FROM(ask.stack, REQUEST_STACK_DWARF, "dwarf", "dwarf", "fp", "python", "auto"), ONE_BY_ONE & LIVE & ~OPTS_FOLDED, NULL,
	  "record the user stack of each call, too; HOW is dwarf (the default), fp, python or auto.\n"
	  "dwarf copies up to 16 KiB of the stack and unwinds it by .eh_frame; fp follows frame\n"
	  "pointers, which costs less, in programs built with them; python reads only Python's\n"
	  "frames, which costs less too; auto is python for threads that run Python, else dwarf" },
	{ 0, "no-python", NULL, FLAG(ask.no_python), (LIVE & ~(OPTS_STAT | OPTS_WHY | OPTS_WATCH)) | OPTS_STUCK, NULL, "show only native frames in stacks, without Python's" },
	{ 0, "all-frames", NULL, FLAG(ask.look.all_frames), PRINTS | OPTS_MEM | OPTS_ADVISE | OPTS_STUCK | OPTS_EXPORT, NULL,
	  "show all frames of stacks, also those of the Python interpreter, of what calls compiled code\n"
	  "for it, and of libc before main(), and the whole paths of Python's packages" },
	{ 0, "mangled", NULL, FLAG(ask.look.mangled), PRINTS | OPTS_STUCK | OPTS_EXPORT, NULL, "show names of kernels and functions as the compiler made them",
	  RULES(EXCLUDES("full-names", "--mangled prints names as the compiler made them and --full-names what they mean: give one of the two")) },
	{ 0, "full-names", NULL, FLAG(ask.look.full_names), PRINTS | OPTS_STUCK | OPTS_EXPORT, NULL,
	  "show names of kernels with all template arguments and parameters" },

	{ .type = HEADING(), .name = "What the GPU does", .cmds = DEVICE | OPTS_FOLDED | OPTS_TOP },
	{ 0, "gpu", "[=KINDS]", LIST(ask.agent.kinds, "record", "kernel,memcpy,memset,overhead", GPU_KINDS), DEVICE | OPTS_FOLDED, NULL,
	  "record what the GPU did, with the device's own times, by CUPTI inside the program. KINDS:\n"
	  "kernel, memcpy, memset, sync, memory, overhead, nvtx, context, device, stream, runtime,\n"
	  "driver, um; --gpu alone means kernel,memcpy,memset,overhead" },
	{ 0, "gpu", "[=KINDS]", LIST(ask.agent.kinds, "record", "kernel,memcpy,memset,memory", GPU_KINDS), OPTS_TOP, NULL,
	  "show the time on the GPU and the allocated device memory too, by CUPTI inside the programs;\n"
	  "--gpu alone means kernel,memcpy,memset,memory" },
	{ 0, "graph", "LEVEL", ENUM(ask.agent.graphs, "node", "graph"), DEVICE | OPTS_FOLDED | OPTS_TOP, "node",
	  "record each node of CUDA graphs (node), or only each graph, which costs less (graph)",
	  RULES(NEEDS("gpu", "--graph is about what the GPU does: give --gpu")) },
	{ 0, "source", "NAME", ENUM(ask.source, "probes", "cupti", "hooks", "auto"), DEVICE | OPTS_TOP | OPTS_SERVE | OPTS_MEM, "probes",
	  "how calls are recorded: probes, cupti, hooks or auto. probes: by uprobes of the kernel,\n"
	  "needs root; cupti: by CUPTI inside the program, without root; hooks: by code put into\n"
	  "the program, without root, at a fraction of the cost of probes; auto: by hooks, and by\n"
	  "probes where hooks cannot be put on, if that is permitted" },
	{ 0, "complete-calls", NULL, FLAG(ask.complete), (DEVICE & ~OPTS_WATCH) | OPTS_TOP | OPTS_SERVE | OPTS_MEM, NULL,
	  "with --source=auto: give a process to probes, which cost it more, if hooks would see\n"
	  "only a part of the calls of some functions (PyTorch's operators, with -p)" },
	{ 0, "cupti", "PATH", TEXT(ask.agent.cupti), DEVICE | OPTS_FOLDED | OPTS_TOP, NULL,
	  "use this libcupti if the program has not loaded one" },
	{ 0, "gpu-buffer", "SIZE[,N]", OTHER(set_gpu_buffer), DEVICE | OPTS_FOLDED | OPTS_TOP, "256KiB,160", "CUPTI's buffers in the program's memory: the size of one, and how many at most",
	  RULES(NEEDS("gpu", "--gpu-buffer is about what the GPU does: give --gpu")) },
	{ 0, "gpu-clock", "WAY", ENUM(ask.agent.clock, "auto", "callback", "offset"), DEVICE | OPTS_FOLDED | OPTS_TOP, "auto",
	  "how to convert device times to the clock of the calls: callback (CUPTI reads that clock),\n"
	  "offset (the difference to CUPTI's own clock is measured), or auto (CUPTI's version\n"
	  "decides)",
	  RULES(NEEDS("gpu", "--gpu-clock is about what the GPU does: give --gpu")) },
	{ 0, "host", NULL, FLAG(ask.host), OPTS_RECORD, NULL,
	  "record what the threads of the processes wait for, too, for 'cudatrace why' and timelines" },
	{ 0, "counters", "[=LIST]", OTHER(set_counters), OPTS_TRACE | OPTS_RECORD | OPTS_STAT | OPTS_TOP, NULL,
	  "record the hardware counters of the GPUs too, and XID errors; LIST: the metrics, as for\n"
	  "--metrics of 'cudatrace counters'" },
	{ 'i', "interval", "TIME", DURATION(ask.interval_ns, INTERVAL_MIN_NS, HOUR, SECOND, "interval", "give seconds, or 100ms, 1ms"), OPTS_TRACE | OPTS_RECORD | OPTS_STAT, "100ms",
	  "with --counters: the time between samples: 1 (second), 100ms, 1ms; at least 100us" },
	{ 'i', "interval", "TIME", DURATION(ask.interval_ns, INTERVAL_MIN_NS, HOUR, SECOND, "interval", "give seconds, or 100ms, 1ms"), OPTS_COUNTERS, "100ms", "the time between samples: 1 (second), 100ms, 1ms; at least 100us" },
	{ 0, "metrics", "LIST", CHECKED(ask.metrics, check_metrics), OPTS_COUNTERS, NULL,
	  "the metrics: names of cudatrace or CUPTI, separated by commas; 'default' means the usual\n"
	  "ones, 'help' lists them" },
	{ 0, "cupti", "PATH", TEXT(ask.agent.cupti), OPTS_COUNTERS, NULL, "use this libcupti.so, or the one in this directory" },

	{ .type = HEADING(), .name = "Output", .cmds = TRACES | OPTS_TOP },
	{ 'o', "output", "FILE", CHECKED(ask.output, check_output), (PRINTS | OPTS_STAT | OPTS_MEM | OPTS_ADVISE | OPTS_WHY | OPTS_WATCH) & LIVE, NULL,
	  "write to FILE (compressed if its name ends in .gz; x.html, x.csv and the like say the\n"
	  "format, too), to a command such as '|jq .', or to standard output (-). Without -o, output\n"
	  "for people goes to standard output, but with CMD to standard error, because standard output\n"
	  "belongs to CMD" },
	{ 'o', "output", "FILE", CHECKED(ask.output, check_output), OPTS_REPLAY | OPTS_STUCK | OPTS_COUNTERS | OPTS_COMPARE | OPTS_TOP, NULL,
	  "write to FILE (compressed if its name ends in .gz), or to a command such as '|jq .'" },
	{ 'o', "output", "FILE", CHECKED(ask.output, check_output), OPTS_RECORD, "cudatrace.ctrace",
	  "the recording to write: %p is the pid, %h the host, %q{VAR} an environment variable;\n"
	  "an existing file is renamed to FILE.old" },
	{ 'o', "output", "FILE", CHECKED(ask.output, check_output), OPTS_MERGE, NULL, "the merged recording to write; an existing file is renamed to FILE.old" },
	{ 'o', "output", "FILE", CHECKED(ask.output, check_output), OPTS_EXPORT, NULL,
	  "the file to write, or - for standard output; its end says the format, if --to does not;\n"
	  "without -o the recording and FORMAT give its name" },
	{ 0, "to", "FORMAT", OTHER(set_export, .offer = OPTION_OFFER_OUTPUTS), OPTS_EXPORT, NULL,
	  "perfetto, chrome, nsys-sqlite, otlp-json, html (a timeline as one page), csv, arrow,\n"
	  "parquet (columns for data frames), memory-viz (for PyTorch's viewer of its allocator),\n"
	  "json, cupti, speedscope, folded or flame: every value of --format except table" },
	{ 0, "device", "N", COUNT(ask.device, 0, INT32_MAX, "number of a device", "'cudatrace info' lists them"), OPTS_EXPORT, NULL,
	  "only what concerns this device, as its process numbers it, and calls that concern no device" },
	{ 0, "max-size", "SIZE", SIZE(ask.store.max_bytes, 64 << 10, OPTION_MAX, "give bytes, or 1GB (10^9), 1GiB (2^30)"), OPTS_RECORD, NULL,
	  "end before the file is larger than this: 1GB (10^9), 1GiB (2^30); with --rotate begin\n"
	  "another file; with --last: the size of the memory [256MiB]" },
	{ 0, "rotate", "N", COUNT(ask.store.rotate, 1, 9999, "files", NULL), OPTS_RECORD, NULL,
	  "keep N files of --max-size: FILE is the newest, FILE.1 the one before",
	  RULES(NEEDS("max-size", "--rotate begins a file whenever one has its size: give --max-size"),
		EXCLUDES("last", "--last keeps in memory what --rotate would write: give one of the two")) },
	{ 0, "last", "TIME", DURATION(ask.store.last_ns, SECOND, OPTION_MAX, SECOND, "time", "give seconds, or 2m"), OPTS_RECORD, NULL,
	  "keep the last 30s (or 5m) in memory, and write them when something of --dump-on happens" },
	{ 0, "dump-on", "LIST", CHECKED(ask.dump_on, check_dump_on, .offer = OPTION_OFFER_DUMP), OPTS_RECORD, NULL,
	  "when --last writes, separated by commas: failed (a call failed), end, signal (SIGUSR2), or\n"
	  "a GLOB (one of these functions was called) [signal]",
	  RULES(NEEDS("last", "--dump-on says when memory is written: give --last")) },
	{ 'A', "append", NULL, FLAG(ask.append), PRINTS | OPTS_STAT | OPTS_MEM | OPTS_ADVISE | OPTS_WHY | OPTS_WATCH, NULL, "add to FILE",
	  RULES(NEEDS("output save", "-A adds to the FILE of -o: give -o FILE")) },
	{ 0, "format", "NAME", OTHER(set_format, .offer = OPTION_OFFER_OUTPUTS), ROWS, "table",
	  "table, json, csv, arrow, parquet (columns for data frames), html (a timeline as one page),\n"
	  "perfetto (for ui.perfetto.dev), chrome (JSON as PyTorch's profiler writes it; with %p\n"
	  "in FILE a file for each process), nsys-sqlite (as Nsight Systems exports it),\n"
	  "otlp-json (OpenTelemetry spans), cupti (the lines that CUPTI's samples print). These\n"
	  "imply -k: memory-viz (blocks of PyTorch's allocator, for its own viewer), folded (a line\n"
	  "for each stack with its weight), flame (a flame graph as one page), speedscope" },
	{ 0, "format", "NAME", OTHER(set_format, .offer = OPTION_OFFER_OUTPUTS), OPTS_FOLDED, "folded", "folded, flame (a flame graph as one HTML page) or\nspeedscope (a file for that viewer)" },
	{ 0, "format", "NAME", OTHER(set_format, .offer = OPTION_OFFER_OUTPUTS), OPTS_STUCK, "table", "table or json" },
	{ 0, "weight", "UNIT", ENUM(ask.look.weight, "calls", "time", "bytes", "gpu"), PRINTS | OPTS_EXPORT, "calls",
	  "what a stack weighs in folded, flame and speedscope: calls, time (in the calls, in\n"
	  "microseconds), bytes (that they move or allocate), or gpu (the time in nanoseconds of the\n"
	  "device work that they caused)" },
	{ 0, "stack-of", "WHAT", ENUM(ask.look.stack_of_scopes, "callers", "range"), OPTS_FOLDED | OPTS_EXPORT, "callers",
	  "the frames of folded, flame and speedscope: callers (functions), or range (the ranges that\n"
	  "the program named with NVTX)" },
	{ 0, "time", "UNIT", ENUM(ask.look.time, "ms", "us", "iso", "unix", "delta", "day", "day-us"), ROWS, "ms",
	  "how to print times: ms or us since the start, iso (date and time, UTC), unix (seconds\n"
	  "since 1970), delta (ms since the row before), or day and day-us (the local time of day,\n"
	  "in seconds or microseconds)" },
	{ 't', "time-of-day", NULL, OTHER(set_time_of_day), ROWS, NULL, "print the local time of day: the same as --time day; -tt is the same as --time day-us,\n"
	  "-ttt as --time unix" },
	{ 'r', "relative", NULL, CONST(ask.look.time, SINK_TIME_DELTA), ROWS, NULL, "the same as --time delta" },
	{ 's', "string-size", "N", COUNT(ask.look.string_max, 1, 4096, "bytes", NULL), ROWS, NULL, "print only the first N bytes of longer strings" },
	{ 0, "tid", NULL, FLAG(ask.look.tid), PRINTS | OPTS_EXPORT, NULL,
	  "add a column with the thread; in folded, flame and speedscope a frame for each thread" },
	{ 0, "compact", "[=WHEN]", ENUM_FROM(compact, OPTS_COMPACT_AUTO, "always", "auto", "always", "never"), ROWS, "auto",
	  "print shorter rows for people: narrow columns, the name from the command line, the duration\n"
	  "(with ! from 10ms on) before the arguments, short sizes, results only of calls that failed;\n"
	  "a row is not wider than the terminal; auto: on a terminal of less than 120 columns",
	  RULES(EXCLUDES("count-only", "-c prints no rows: leave out --compact")) },
	{ 'c', "count-only", NULL, FLAG(ask.look.counts_only), ROWS, NULL, "print no rows, but counts and times by function at the end",
	  RULES(EXCLUDES("enter-exit", "-c prints no rows: leave out --enter-exit"),
		EXCLUDES("unfinished", "-c prints no rows: leave out --unfinished"),
		EXCLUDES("time", "-c prints no rows: leave out --time"),
		EXCLUDES("tid", "-c prints no rows: leave out --tid"),
		EXCLUDES("mangled full-names", "-c prints no kernels' names: leave out --mangled and --full-names"),
		EXCLUDES("counters", "-c counts calls and what they cause: leave out --counters")) },
	{ 'C', "counts", NULL, FLAG(ask.look.counts), ROWS, NULL, "print counts and times by function after the rows",
	  RULES(EXCLUDES("count-only", "-C prints counts after the rows and -c instead of them: give one of the two")) },
	{ 'S', "sort", "KEY", ENUM(ask.look.counts_by, "time", "calls", "errors", "name"), ROWS, "time", "the order of the counts of -c and -C: by time, calls, errors or name",
	  RULES(NEEDS("counts count-only stats", "-S is the order of the counts of -c and -C: give one of them")) },
	{ 0, "otlp", "URL", CHECKED(ask.spans.url, check_otlp), ROWS | OPTS_RECORD, NULL,
	  "push spans to this OpenTelemetry collector, too: http://127.0.0.1:4318; the word env means\n"
	  "the URL in OTEL_EXPORTER_OTLP_ENDPOINT" },
	{ 0, "otlp-min", "TIME", DURATION(ask.spans.min_ns, 0, OPTION_MAX, 0, "duration", DURATION_ADVICE "0s"), ROWS | OPTS_RECORD, "100us", "make no spans of calls and device work that are shorter than this" },
	{ 0, "otlp-wait", "TIME", DURATION(ask.spans.wait_ns, 0, 24 * HOUR, SECOND, "time to wait", "give seconds, or 500ms, 2m"), (ROWS | OPTS_RECORD) & LIVE, "2s",
	  "how long to wait at the end for a busy collector: 5 (seconds), 500ms, 2m",
	  RULES(NEEDS("otlp", "--otlp-wait is the time that a collector is waited for: give --otlp URL")) },
	{ 0, "otlp-wait", "TIME", DURATION(ask.spans.wait_ns, 0, 24 * HOUR, SECOND, "time to wait", "give seconds, or 500ms, 2m"), OPTS_REPLAY, "60s",
	  "how long to wait for a collector that takes no spans: 10 (seconds), 5m; spans that are not\n"
	  "sent then are lost, and the exit status is 1",
	  RULES(NEEDS("otlp", "--otlp-wait is the time that a collector is waited for: give --otlp URL")) },
	{ 0, "color", "WHEN", ENUM(ask.color, "auto", "always", "never"), ROWS | OPTS_TOP, "auto", "auto, always or never" },

	{ .type = HEADING(), .name = "What to print", .cmds = OPTS_STAT },

	{ .type = HEADING(), .name = "What to print", .cmds = OPTS_MEM },

	{ .type = HEADING(), .name = "What to print", .cmds = OPTS_ADVISE | OPTS_WHY | OPTS_WATCH },

	{ .type = HEADING(), .name = "What to show live", .cmds = OPTS_TOP },

	{ .type = HEADING(), .name = "What to serve", .cmds = OPTS_SERVE },
};

/*
 * Options of strace, perf and nsys that ask for what others here do, or for what is done anyway.
 * They have no help: --help, the manual and completions show ours.
 */
static const struct option_row foreign[] = {
	{ 'T', "syscall-times", NULL, FLAG(as_always), ROWS, NULL, NULL },
	{ 'y', "decode-fds", NULL, TIMES(always), ROWS, NULL, NULL },
	{ 'a', "all-cpus", NULL, FLAG(as_always), LIVE, NULL, NULL,
	  RULES(EXCLUDES("CMD pid", "-a is every process of the machine: leave it out, or -p and CMD")) },
	{ 0, "trace", "LIST", OTHER(set_nsys_trace), OPTS_TRACE | OPTS_RECORD, NULL, NULL },
	{ 0, "status", "SET", OTHER(set_status), CHOOSES | OPTS_SERVE | OPTS_TOP | OPTS_EXPORT, NULL, NULL },
	{ 0, "force-overwrite", "BOOL", OTHER(set_force), LIVE | OPTS_REPLAY | OPTS_EXPORT | OPTS_MERGE, NULL, NULL },
	{ 0, "stats", "BOOL", OTHER(set_nsys_stats), OPTS_TRACE, NULL, NULL },
	{ 0, "capture-range", "WHAT", OTHER(set_nsys_range), OPTS_TRACE | OPTS_RECORD, NULL, NULL,
	  RULES(EXCLUDES("start-on stop-on delay", "--capture-range says when it begins and ends: leave out --start-on, --stop-on and --delay")) },
};

/* Here stand those of the sinks and of the commands. */

static const struct option_row after[] = {
	{ 'i', "interval", "TIME", DURATION(ask.interval_ns, INTERVAL_MIN_NS, HOUR, SECOND, "interval", "give seconds, or 100ms, 1ms"), OPTS_TOP, "1s",
	  "the time between two refreshes, and between samples of the counters: 2 (seconds), 500ms;\n"
	  "at least 100ms" },
	{ 'n', "count", "N", COUNT(ask.count, 1, OPTION_MAX, "rows", NULL), OPTS_TOP, NULL, "with --batch: stop after N blocks" },
	{ 0, "counters", "[=LIST]", OTHER(set_counters), OPTS_SERVE, NULL,
	  "serve hardware counters of the GPUs too; LIST: the metrics, as for --metrics of 'cudatrace\n"
	  "counters'" },
	{ 'i', "interval", "TIME", DURATION(ask.interval_ns, INTERVAL_MIN_NS, HOUR, SECOND, "interval", "give seconds, or 100ms, 1ms"), OPTS_SERVE, "1s", "with --counters: the time between two samples; a scrape gets the last one" },
	{ 0, "cupti", "PATH", TEXT(ask.agent.cupti), OPTS_SERVE, NULL, "with --counters: use this libcupti.so, or the one in this directory" },
	{ 0, "otlp", "URL", CHECKED(ask.spans.url, check_otlp), OPTS_SERVE, NULL,
	  "push the metrics to this OpenTelemetry collector, too: http://127.0.0.1:4318; the word env\n"
	  "means the URL in OTEL_EXPORTER_OTLP_ENDPOINT" },
	{ 0, "driver", NULL, OTHER(set_mem_driver), OPTS_MEM, NULL,
	  "read ten times a second how much memory each process has by the driver's count (NVML), and\n"
	  "print how much of it cudatrace has not seen" },
	{ .type = HEADING(), .name = "Start and end", .cmds = TRACES },
	{ 0, "from", "TIME", DURATION(ask.from_ns, 0, OPTION_MAX, SECOND, "time after the recording's begin", "give seconds, or 500ms, 2m"), STORED | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "only what began after this time of the recording: 10 (seconds), 500ms, 2m" },
	{ 0, "until", "TIME", DURATION(ask.to_ns, 1, OPTION_MAX, SECOND, "time after the recording's begin", "give seconds, or 500ms, 2m"), STORED | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "only what began before this time of the recording" },
	{ 0, "to", "TIME", DURATION(ask.to_ns, 1, OPTION_MAX, SECOND, "time after the recording's begin", "give seconds, or 500ms, 2m"), OPTS_REPLAY | OPTS_STAT | OPTS_MEM | OPTS_ADVISE, NULL, "the same as --until" },
	{ 0, "delay", "TIME", DURATION(ask.window.delay_ns, 1, OPTION_MAX, SECOND, "time to wait", "give seconds, or 500ms, 2m"), LIVE & CHOOSES & ~OPTS_STAT, NULL, "show nothing until this much time has passed" },
	{ 0, "start-on", "WHAT", CHECKED(ask.window.start_on, window_check, .offer = OPTION_OFFER_WINDOW), LIVE & CHOOSES & ~OPTS_STAT, NULL,
	  "show nothing until WHAT: cudaProfilerStart (any function or GLOB), GLOB:N (its Nth call),\n"
	  "nvtx:NAME (a range or a mark begins), or signal (SIGUSR1)",
	  RULES(EXCLUDES("delay", "--delay and --start-on both say when it begins: give one of the two")) },
	{ 0, "stop-on", "WHAT", CHECKED(ask.window.stop_on, window_check, .offer = OPTION_OFFER_WINDOW), LIVE & CHOOSES & ~OPTS_STAT, NULL,
	  "stop at WHAT, as for --start-on; nvtx:NAME: when the range ends; signal: SIGUSR2. Showing\n"
	  "begins again at the next --start-on, if one can come" },
	{ 'd', "duration", "TIME", DURATION(ask.duration_ns, 1, OPTION_MAX, SECOND, "time to trace for", "give seconds, or 500ms, 2m"), LIVE | OPTS_COUNTERS | OPTS_TOP, NULL, "stop after this many seconds (also 1.5, 500ms, 2m)" },
	{ 'n', "count", "N", COUNT(ask.count, 1, OPTION_MAX, "rows", NULL), ONE_BY_ONE | OPTS_COUNTERS, NULL, "stop after N rows" },

	{ .type = HEADING(), .name = "How to trace", .cmds = TRACES | OPTS_SERVE | OPTS_TOP },
	{ 0, "no-return", NULL, FLAG(ask.no_return), LIVE & CHOOSES & ~OPTS_ADVISE, NULL,
	  "probe only entries: for sandboxed (seccomp) programs, and for programs that throw\n"
	  "exceptions through calls; results, durations and outputs are not known then",
	  RULES(EXCLUDES("failed", "--no-return knows no results: leave out --failed"),
		EXCLUDES("min-duration", "--no-return knows no durations: leave out --min-duration"),
		EXCLUDES("counts count-only", "--no-return knows no durations: leave out -c and -C"),
		EXCLUDES("enter-exit", "--no-return sees no returns: leave out --enter-exit"),
		EXCLUDES("unfinished", "--no-return sees no call under way: leave out --unfinished"),
		EXCLUDES("nested", "--no-return cannot tell which call is inside which: leave out --nested"),
		EXCLUDES("start-on stop-on", "--no-return sees no call complete: leave out --start-on and --stop-on")) },
	{ 0, "ring-size", "SIZE", SIZE(ask.ring_bytes, RING_MIN, RING_MAX, NULL), LIVE | OPTS_SERVE | OPTS_TOP | OPTS_STUCK, NULL,
	  "the size of the buffer between kernel and tracer [16MiB, with stacks 64MiB]" },
	{ 0, "probe-kind", "KIND", WORD(ask.probe_kind, "session", "multi", "tracefs", "perf"), LIVE | OPTS_SERVE | OPTS_TOP | OPTS_DOCTOR | OPTS_STUCK, NULL,
	  "use probes of this kind, session, multi, tracefs or perf, instead of the best that the\n"
	  "kernel has" },
	{ 0, "strict", NULL, FLAG(ask.strict), TRACES | OPTS_EXPORT, NULL, "exit with status 3 if anything was lost, a library was refused, a\nfunction had no hook, or processes ran before their calls were seen" },

	{ .type = HEADING(), .name = "Other", .cmds = ALL },
	{ 'v', "verbose", NULL, TIMES(ask.verbose), ALL, NULL,
	  "print more messages; given twice, print those of libbpf too" },
	{ 'q', "quiet", NULL, FLAG(ask.quiet), ALL, NULL, "print no messages except errors and warnings",
	  RULES(EXCLUDES("verbose", "-q prints fewer messages and -v more: give one of the two")) },
	{ 'V', "version", NULL, FLAG(version), ALL, NULL, "print the version" },
	{ 'h', "help", NULL, FLAG(help), ALL, NULL, "print this text; -h prints only the most used options" },
};
/* clang-format on */

/* ---- all of them in one list ---- */

static struct opts_row list[OPTS_ROWS_MAX];
static int nlist;

static void add(const struct option_row *rows, size_t n, int cmds, const struct option_set *set)
{
	for (size_t i = 0; i < n && nlist < OPTS_ROWS_MAX; i++)
		list[nlist++] =
			(struct opts_row){ &rows[i], rows[i].cmds ? rows[i].cmds : cmds, set };
}

static void add_set(const struct option_set *set, int cmds)
{
	if (set)
		add(set->rows, set->nrows, cmds, set);
}

/* Those of the formats, and those that a command or its sink has for itself. */
static void add_sets(void)
{
	for (unsigned int i = 0; sinks_at(i); i++)
		if (!(sinks_at(i)->flags & SINKS_COMMAND))
			add_set(sinks_at(i)->ops->options, ROWS | OPTS_EXPORT);
	for (unsigned int i = 0; command_at(i); i++) {
		const struct command *c = command_at(i)->command;

		if (c->sink)
			add_set(c->sink->options, (int)command_at(i)->bit);
		add_set(c->options, (int)command_at(i)->bit);
	}
}

const struct opts_row *opts_row_at(int i)
{
	if (!nlist) {
		add(before, ARRAY_LEN(before), 0, NULL);
		add_sets();
		add(after, ARRAY_LEN(after), 0, NULL);
		add(foreign, ARRAY_LEN(foreign), 0, NULL);
	}
	return i < nlist ? &list[i] : NULL;
}

const struct option_row *opts_next(enum opts_cmd cmd, int *at)
{
	const struct opts_row *r;

	while ((r = opts_row_at(++*at)))
		if (r->cmds & (int)cmd && r->row->type.kind != OPTION_HEADING)
			return r->row;
	return NULL;
}
