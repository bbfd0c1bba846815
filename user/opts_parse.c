/* SPDX-License-Identifier: BSD-2-Clause */
/* opts_parse.c - a command line against the rows: what is said, what contradicts what, what is left. Knows no source and no sink. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opts_rows.h"
#include "util/msg.h"
#include "util/parse.h"

#define LONG_ONLY 256 /* what getopt_long() returns for a row: this and its index */

/* getopt's view of the rows; returns the number of long options. */
static void getopt_tables(enum opts_cmd cmd, struct option *longs, char *shorts)
{
	if (cmd & LIVE)
		*shorts++ = '+'; /* what comes after the first word is CMD's */
	*shorts++ = ':';
	for (size_t i = 0; i < (size_t)opts_nrows; i++) {
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
	if (c >= LONG_ONLY && c < LONG_ONLY + (int)(size_t)opts_nrows)
		return &opts_rows[c - LONG_ONLY];
	for (size_t i = 0; i < (size_t)opts_nrows; i++)
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
	for (size_t i = 0; i < (size_t)opts_nrows; i++) {
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
	struct option longs[(size_t)opts_nrows + 1];
	char shorts[(size_t)opts_nrows * 2 + 3], msg[512];
	int c;

	memset(o, 0, sizeof(*o));
	o->domain = API_DOMAIN_END;
	o->mem.by = -1;
	o->format = sinks_find("table");
	o->argv = argv;
	for (size_t i = 0; i < (size_t)opts_nrows; i++)
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
