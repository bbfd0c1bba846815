/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts_check.c - what is wrong with a command line as a whole, each of whose options is right:
 * options that contradict each other, and options that would be taken and do nothing. Whatever
 * is given has an effect or is refused. What concerns one option is a rule in its row, and what concerns
 * one command is in the command's file. Knows no source and no sink.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "opts_check.h"
#include "opts_rows.h"
#include "../../stages/window.h"
#include "../../util/msg.h"

/* How the option was given, also when with the value that it has by itself; NULL: it was not. */
static const char *given_as(const struct opts_line *l, const char *option)
{
	static char name[64];

	const struct option_row *r;

	for (int i = -1; (r = opts_next(l->o->command, &i));) {
		if (!l->given[i] || strcmp(r->name, option))
			continue;
		if (l->given[i] == OPTS_BY_LETTER)
			snprintf(name, sizeof(name), "-%c", r->letter);
		else
			snprintf(name, sizeof(name), "--%s", r->name);
		return name;
	}
	return NULL;
}

bool opts_is_given(const struct opts_line *l, const char *option)
{
	return given_as(l, option) != NULL;
}

int opts_judge(const struct opts_line *l, const struct opts_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!rules[i].first || !rules[i].second)
			continue;
		msg_error(rules[i].text, l->o->format->ops->name);
		return -EINVAL;
	}
	return 0;
}

/* ---- what the rows say ---- */

/* Says whether one of the names is given. CMD is a program to start, FILE a recording, format:NAME an output. */
static bool any_given(const struct opts_line *l, const char *names)
{
	for (const char *at = names; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		if (!strncmp(name, "format:", 7) ? !strcmp(name + 7, l->o->format->ops->name)
		    : !strcmp(name, "CMD")	 ? l->o->cmd != NULL
		    : !strcmp(name, "FILE")	 ? l->o->replay
						 : opts_is_given(l, name))
			return true;
		at += n;
	}
	return false;
}

static int judge_row(const struct opts_line *l, const struct option_row *r)
{
	for (const struct option_rule *rule = r->rules; rule && (rule->needs || rule->excludes);
	     rule++) {
		const char *names = rule->needs ? rule->needs : rule->excludes;

		if (any_given(l, names) == !rule->needs) {
			if (rule->text)
				msg_error("%s", rule->text);
			else
				msg_error(rule->needs ? "--%s does nothing without --%.*s: give "
							"that too, or leave it out"
						      : "--%s and --%.*s: give one of the two",
					  r->name, (int)strcspn(names, " "), names);
			return -EINVAL;
		}
	}
	return 0;
}

static int of_rows_given(const struct opts_line *l)
{
	const struct option_row *r;
	int err = 0;

	for (int i = -1; !err && (r = opts_next(l->o->command, &i));)
		err = l->given[i] ? judge_row(l, r) : 0;
	return err;
}

/* ---- layers ---- */

/* A layer whose functions -e names must be recorded, or -e would show nothing of it. */
static int of_layers(const struct opts_line *l)
{
	const struct request *o = l->o;
	uint32_t missing = o->select.layers & ~o->layers;
	uint32_t awaited = window_layer(o->window.start_on) | window_layer(o->window.stop_on);

	if (!(o->select.either_layer & o->layers))
		missing |= o->select.either_layer;
	if (awaited && !(o->command & (OPTS_TRACE | OPTS_RECORD))) {
		msg_error("--start-on and --stop-on wait for ranges (%s:NAME) only in 'cudatrace' "
			  "and 'cudatrace record': record the program, and give this command the "
			  "recording",
			  api_layer_names[__builtin_ctz(awaited)]);
		return -EINVAL;
	}
	if (awaited && o->source == REQUEST_SOURCE_CUPTI) {
		msg_error("--start-on and --stop-on wait for %s:NAME by probes or hooks: leave out "
			  "--source=cupti",
			  api_layer_names[__builtin_ctz(awaited)]);
		return -EINVAL;
	}
	if (o->layers && opts_is_given(l, "layers") && o->source == REQUEST_SOURCE_CUPTI) {
		msg_error("--layers records with probes or hooks: leave out --source=cupti");
		return -EINVAL;
	}
	if (o->command == OPTS_SERVE && o->layers & ~(1u << (API_NCCL - API_FIRST_LAYER))) {
		msg_error("of the layers, the metrics of serve have only collectives: give "
			  "--layers nccl");
		return -EINVAL;
	}
	if (o->replay || o->export || o->command == OPTS_LIST || !missing)
		return 0;
	msg_error("-e or --domain names functions that are not calls of CUDA: they are recorded "
		  "only with --layers %s, by cudatrace and cudatrace record",
		  api_layer_names[__builtin_ctz(missing)]);
	return -EINVAL;
}

/* ---- options that belong to another one ---- */

static int needs(const struct opts_line *l)
{
	const struct request *o = l->o;
	bool works = o->npids || o->cmd; /* on processes that are chosen */
	bool help = o->metrics && !strcmp(o->metrics, "help");
	/* -i belongs to other options than --counters too */
	bool rests = o->command == OPTS_TOP || o->command == OPTS_COUNTERS;
	const struct opts_rule rules[] = {
		{ opts_is_given(l, "follow"), !works && !o->tid && !o->replay,
		  o->command & LIVE ? "-f is about the children of the processes of -p, or of CMD: "
				      "give one of them, or leave it out"
				    : "-f is about the children of the processes of -p: give -p "
				      "PID, or leave it out" },
		{ o->no_follow, !o->cmd && !o->replay,
		  "--no-follow is about the children of CMD: give a CMD after --" },
		{ o->no_follow, opts_is_given(l, "follow"),
		  "-f asks for the children of CMD and --no-follow for none: give one of the two" },
		{ o->no_follow, o->gpu || o->source == REQUEST_SOURCE_CUPTI,
		  "--no-follow is about probes and hooks, and the agent is in CMD's children too: "
		  "leave it out, or --gpu and --source=cupti" },
		{ o->host, !works,
		  "--host records what a program waits for: give -p PID, or a program after --" },
		{ opts_is_given(l, "interval"), !o->counters && !rests,
		  "-i says how often the counters are read: give --counters" },
		{ opts_is_given(l, "chip"), !help,
		  "--chip says whose metrics are listed: give --metrics help" },
		{ help, opts_is_given(l, "interval"),
		  "--metrics help lists metrics and reads none: leave out -i" },
		{ help, opts_is_given(l, "duration"),
		  "--metrics help lists metrics and reads none: leave out -d" },
		{ help, opts_is_given(l, "count"),
		  "--metrics help lists metrics and reads none: leave out -n" },
		{ help, opts_is_given(l, "format"),
		  "--metrics help prints a list for people: leave out --format" },
		{ o->agent.cupti, o->command & (OPTS_TOP | OPTS_SERVE) && !o->gpu && !o->counters,
		  o->command == OPTS_TOP ? "--cupti says which libcupti is used, and nothing here "
					   "uses one: give --gpu or --counters"
					 : "--cupti says which libcupti is used, and nothing here "
					   "uses one: give --counters" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* With -e none there is no call that an option could be about. */
static int of_no_calls(const struct opts_line *l)
{
	static const char *const of_calls[] = {
		"domain", "failed",    "unfinished", "nested",	    "enter-exit", "no-return",
		"stack",  "no-python", "library",    "keep-chatty", "duty",	  "max-cost",
		"source", "hist",      "kernels",    "processes",
	};
	const struct request *o = l->o;
	bool stored = o->replay || o->export;
	const struct opts_rule rules[] = {
		{ o->command & (OPTS_TOP | OPTS_ADVISE | OPTS_LIST), true,
		  "-e none leaves no call, and this command is about calls: leave it out" },
		{ o->format && o->format->flags & SINKS_FOLDS, true,
		  "-e none leaves no call, and --format %s adds up the stacks of calls: leave one "
		  "of the two out" },
		{ !o->gpu && !o->counters, !stored,
		  "-e none leaves only what devices do: give --gpu or --counters" },
	};

	if (!o->select.none)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(of_calls); i++) {
		if (!opts_is_given(l, of_calls[i]))
			continue;
		msg_error("%s concerns calls, and -e none shows none: leave out one of the two",
			  given_as(l, of_calls[i]));
		return -EINVAL;
	}
	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* ---- a program that runs, or a recording ---- */

/* stat, mem and advise take either, and have the options of both. */
static int of_one_kind(const struct opts_line *l)
{
	static const char *const live[] = {
		"follow",    "no-follow", "cgroup",    "library",   "user",	  "env",
		"no-python", "gpu",	  "graph",     "source",    "cupti",	  "gpu-buffer",
		"gpu-clock", "counters",  "interval",  "driver",    "delay",	  "start-on",
		"stop-on",   "duration",  "no-return", "ring-size", "probe-kind", "runs",
		"stack",     "watch",
	};
	static const char *const stored[] = { "from", "until", "to" };
	const struct request *o = l->o;

	for (size_t i = 0; i < ARRAY_LEN(live) && o->replay; i++) {
		if (!opts_is_given(l, live[i]))
			continue;
		if (!strcmp(live[i], "gpu")) {
			msg_error("--gpu is for running programs, and '%s' is a recording, whose "
				  "device work is always shown: leave --gpu out",
				  o->file);
			return -EINVAL;
		}
		msg_error("%s is for running programs, and '%s' is a recording: leave one of the "
			  "two out",
			  given_as(l, live[i]), o->file);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_LEN(stored) && !o->replay; i++) {
		if (!opts_is_given(l, stored[i]))
			continue;
		msg_error("%s is a time of a recording: give the FILE of one, or leave it out",
			  given_as(l, stored[i]));
		return -EINVAL;
	}
	return 0;
}

static int of_stored(const struct opts_line *l)
{
	const struct request *o = l->o;

	if (o->to_ns && o->to_ns <= o->from_ns) {
		msg_error("%s lies before --from: give a later time",
			  opts_is_given(l, "until") ? "--until" : "--to");
		return -EINVAL;
	}
	return 0;
}

/* ---- what contradicts what ---- */

/* Each source sees some programs only, and has some options only. */
static int of_sources(const struct opts_line *l)
{
	const struct request *o = l->o;
	bool folds = o->format->flags & SINKS_FOLDS;
	bool by_cupti = o->source == REQUEST_SOURCE_CUPTI,
	     by_hooks = o->source == REQUEST_SOURCE_HOOKS;
	bool agent = o->gpu || by_cupti;
	const struct opts_rule rules[] = {
		{ o->gpu, !o->cmd && !o->npids,
		  "--gpu is about programs that the agent is in: give a CMD after --, or -p PID" },
		{ by_cupti, !o->cmd && !o->npids,
		  "--source=cupti is about programs that the agent is in: give a CMD after --, or "
		  "-p PID" },
		{ by_hooks, !o->cmd && !o->npids,
		  "--source=hooks is about programs that its code is put into: give a CMD after "
		  "--, or -p PID" },
		{ by_hooks, o->stack == REQUEST_STACK_FP,
		  "--source=hooks copies stacks to unwind them: give -k without =fp" },
		{ by_hooks, o->library || o->cgroup,
		  "--library and --cgroup are about probes: leave them out, or --source=hooks" },
		{ by_hooks, opts_is_given(l, "probe-kind"),
		  "--probe-kind is about probes: leave it out, or --source=hooks" },
		{ o->agent.cupti, !agent && !o->counters,
		  "--cupti says which libcupti is used, and nothing here uses one: give --gpu" },
		{ by_cupti, o->stack && !folds,
		  "CUPTI's callbacks have no stacks: leave out -k, or --source=cupti" },
		{ by_cupti, folds, "CUPTI's callbacks have no stacks: leave out --source=cupti" },
		{ by_cupti, o->no_return || o->unfinished_ns || o->library,
		  "--no-return, --unfinished and --library are about probes: leave them out, or "
		  "--source=cupti" },
		{ by_cupti, opts_is_given(l, "follow"),
		  "--source=cupti sees CMD's children by itself, and those of -p not at all: leave "
		  "out -f" },
		{ by_cupti, o->cgroup,
		  "--cgroup is about probes: leave it out, or --source=cupti" },
		{ by_cupti, o->keep_chatty,
		  "--source=cupti mutes nothing: leave out --keep-chatty" },
		{ o->complete, o->source != REQUEST_SOURCE_AUTO,
		  "--complete-calls is about hooks and probes beside each other: give "
		  "--source=auto" },
		{ o->source != REQUEST_SOURCE_PROBES, o->duty > 0 || o->max_cost > 0,
		  "--duty and --max-cost are about probes: leave them out, or --source" },
		{ by_cupti, opts_is_given(l, "ring-size"),
		  "--ring-size is about probes: leave it out, or --source=cupti" },
		{ by_cupti, opts_is_given(l, "probe-kind"),
		  "--probe-kind is about probes: leave it out, or --source=cupti" },
		{ o->no_return, o->probe_kind && !strcmp(o->probe_kind, "session"),
		  "--probe-kind session has return probes: with --no-return use multi" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* Options about rows do nothing where no rows, or rows for programs, are printed. */
static int of_rows(const struct opts_line *l)
{
	const struct request *o = l->o;
	bool folds = o->format->flags & SINKS_FOLDS;
	bool json = o->format->flags & SINKS_ROWS && !(o->format->flags & SINKS_TEXT);
	const struct opts_rule rules[] = {
		{ o->look.counts || o->look.counts_only, json,
		  "-c and -C print a table: leave out --format json, or count the rows of a JSON "
		  "file afterwards" },
		{ json, opts_is_given(l, "time"),
		  "--time is for the table: JSON has start_ns and duration_ns" },
		{ json, o->look.string_max, "-s is for the table: JSON has strings whole" },
		{ json, o->color == REQUEST_COLOR_ALWAYS,
		  "--color is for the table: JSON has none" },
		{ o->look.counts_only, o->stack && !folds, "-c prints no rows: leave out -k" },
		{ o->no_python, !o->stack && !folds, "--no-python is about stacks: give -k" },
		{ o->no_python, o->stack == REQUEST_STACK_PYTHON,
		  "--stack=python takes Python's frames alone: leave out --no-python" },
		{ o->look.counts_only, o->color == REQUEST_COLOR_ALWAYS,
		  "-c prints no rows: leave out --color" },
		{ json, o->look.tid,
		  "--tid is for the table: JSON has the thread in each line; leave it out" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* Each format has some options only. */
static int of_forms(const struct opts_line *l)
{
	const struct request *o = l->o;
	bool folds = o->format->flags & SINKS_FOLDS, rows = o->format->flags & SINKS_ROWS;
	bool spans = o->spans.url || o->format->flags & SINKS_SPANS,
	     trace = o->command & (OPTS_TRACE | OPTS_FOLDED);
	const struct opts_rule rules[] = {
		{ o->look.compact,
		  !(o->format->flags & SINKS_ROWS && o->format->flags & SINKS_TEXT),
		  "--compact is for the table: leave it out" },
		{ opts_is_given(l, "weight"), !folds,
		  "--weight is what a stack weighs, and %s adds none up: give folded, flame or "
		  "speedscope" },
		{ opts_is_given(l, "stack-of"), !folds,
		  "--stack-of is about the frames of a stack, and %s has none: give folded, flame "
		  "or speedscope" },
		{ o->look.stack_of_scopes != 0, opts_is_given(l, "stack"),
		  "--stack-of range has ranges for frames: leave it out, or -k" },
		{ !rows, o->look.counts || o->look.counts_only,
		  "-c and -C print a table: leave out --format %s" },
		{ !rows, o->look.enter_exit,
		  "--format %s has each call once: leave out --enter-exit" },
		{ !rows, o->unfinished_ns,
		  "--format %s has each call once: leave out --unfinished" },
		{ folds, o->look.nested,
		  "--format %s would count a call and the calls inside it: leave out --nested" },
		{ !rows, opts_is_given(l, "time"),
		  "--time is for the table: --format %s has its own times, or none" },
		{ o->look.string_max, !rows || o->look.counts_only,
		  "-s cuts strings of the table: leave it out" },
		{ o->follow > 1 && trace, !o->output,
		  "-ff gives each process a file: give -o FILE, which becomes FILE.PID" },
		{ o->one_each, o->look.counts || o->look.counts_only,
		  "-c and -C count all processes together: leave them out, or the %%p of -o" },
		{ o->one_each, o->counters,
		  "hardware counters are of no process: leave out --counters, or the %%p of -o" },
		{ o->gpu, o->look.time == SINK_TIME_DELTA,
		  "what the GPU did comes in another order than calls: leave out -r, or --gpu" },
		{ !rows && !folds, o->look.tid,
		  "--tid is for the table, folded, flame and speedscope: leave it out" },
		{ !rows, o->color == REQUEST_COLOR_ALWAYS,
		  "--color is for the table: leave it out" },
		{ o->look.weight == SINK_WEIGHT_TIME, o->no_return,
		  "--no-return knows no durations: leave out --weight time" },
		{ o->format->flags & SINKS_WHOLE, o->append,
		  "--format %s writes a whole file: leave out -A" },
		{ opts_is_given(l, "otlp-min"), !spans,
		  "--otlp-min says which calls become spans: give --otlp URL or --format "
		  "otlp-json" },
		{ o->no_return, spans,
		  "--no-return knows no durations, which spans have: leave out --otlp and "
		  "otlp-json" },
		{ o->format->flags & SINKS_PATH, !o->output && !o->export,
		  "--format %s writes a file: give -o FILE" },
		{ trace && !o->gpu, o->look.weight == SINK_WEIGHT_GPU,
		  "--weight gpu is the time of what the GPU does: give --gpu" },
		{ folds && o->filter.failed_only, o->look.weight == SINK_WEIGHT_GPU,
		  "--weight gpu is the time of what the GPU does, and calls that fail have it do "
		  "nothing: leave out --failed" },
		{ folds && o->filter.failed_only, o->look.weight == SINK_WEIGHT_BYTES,
		  "--weight bytes leaves out calls that failed: leave out --failed" },
		{ o->look.mangled && !o->stack && !o->export, o->format->flags & SINKS_READABLE,
		  "--mangled is about stacks with --format %s: give -k, or leave it out" },
		{ trace && o->counters, !(o->format->flags & SINKS_COUNTERS),
		  "--format %s has no counters: leave out --counters" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* Some of what the agent records can only be asked for before a program has begun. */
static int of_times(const struct opts_line *l)
{
	const struct request *o = l->o;
	const struct opts_rule rules[] = {
		{ o->gpu && o->agent.graphs, o->npids,
		  "--graph graph can end a program that has graphs already: leave it out, or start "
		  "the program after --" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* Output goes to a file, a command or standard output; if CMD uses standard output, it goes to standard
 * error. Not every form may go to each of these. */
static int of_output(const struct opts_line *l)
{
	const struct request *o = l->o;
	bool command = out_is_command(o->output),
	     stream = command || (o->output && !strcmp(o->output, "-"));
	bool recording = o->command & (OPTS_RECORD | OPTS_MERGE);
	bool text = o->format->flags & SINKS_TEXT && !request_wants(o).for_programs;
	const struct opts_rule rules[] = {
		{ recording, stream,
		  "-o: a recording is a file, which no command and no standard output can be: give "
		  "a name" },
		{ o->format->flags & SINKS_PATH, stream,
		  "-o: what %s writes is a file, which no command and no standard output can be: "
		  "give a name" },
		{ o->format->flags & SINKS_SPLITS && command, command && strstr(o->output, "%p"),
		  "-o: %%p is for a file for each process, and a command reads them all: leave it "
		  "out" },
		{ o->append, command, "-A adds to a file, and -o names a command: leave out -A" },
		{ o->cmd && !o->output && !recording, !text,
		  "standard output is CMD's own, with which a form for programs must not mix: give "
		  "-o FILE, or a command that reads it, as -o '|jq .' (-o - is standard output all "
		  "the same)" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

int opts_check(const struct request *o, const unsigned char *given)
{
	struct opts_line l = { .o = o, .given = given };
	int err = o->command & EITHER ? of_one_kind(&l) : 0;

	if (!err)
		err = of_rows_given(&l);
	if (!err)
		err = of_layers(&l);
	if (!err)
		err = needs(&l);
	if (!err)
		err = of_no_calls(&l);
	if (!err && command_of(o->command)->command->check)
		err = command_of(o->command)->command->check(&l);
	if (!err && o->replay)
		err = of_stored(&l);
	if (!err)
		err = of_times(&l);
	if (!err && o->command & (LIVE | STORED))
		err = of_sources(&l);
	if (!err && o->command & (LIVE | STORED))
		err = of_rows(&l);
	if (!err && o->command & (LIVE | STORED))
		err = of_forms(&l);
	return err ? err : of_output(&l);
}
