/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts_parse.c - reads a command line by the rows of options: which are given, which exclude each other,
 * and what remains. Knows no source and no sink.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "habits.h"
#include "opts_rows.h"
#include "../../../wire/agent_wire.h"
#include "../../stages/window.h"
#include "../../util/msg.h"
#include "../../util/parse.h"

#define SERVE_MAX_COST 0.01	     /* of the CPU time of the programs: what is always on */
#define RECORDING "cudatrace.ctrace" /* what record writes by default */
#define COLUMN                                                                                    \
	"-a is every process of the machine, and rows are not aligned at a column: leave out -a " \
	"%s"
#define WIDE 120      /* columns that most rows need */
#define LONG_ONLY 256 /* what getopt_long() returns for a row: this and its index */

static struct option long_option(const char *name, const struct option_row *r, int i)
{
	return (struct option){ name,
				!r->arg		 ? no_argument
				: *r->arg == '[' ? optional_argument
						 : required_argument,
				NULL, LONG_ONLY + i };
}

/* The place of the row that the name, which others have for it, means; -1: there is none. */
static int place_of_same(enum opts_cmd cmd, const struct habit_same *same)
{
	const struct option_row *r;
	int at = -1;

	for (int i = -1; (r = opts_next(cmd, &i));) {
		if (!strcmp(r->name, same->theirs))
			return -1;
		if (!strcmp(r->name, same->ours))
			at = i;
	}
	return at;
}

/* getopt's view of the rows, and of what others call them. */
static void getopt_tables(enum opts_cmd cmd, struct option *longs, char *shorts)
{
	const struct option_row *r;

	if (cmd & LIVE)
		*shorts++ = '+'; /* what comes after the first word is CMD's */
	*shorts++ = ':';
	for (int i = -1; (r = opts_next(cmd, &i));) {
		*longs++ = long_option(r->name, r, i);
		if (!r->letter)
			continue;
		*shorts++ = (char)r->letter;
		/* -k takes none: -kfp would be three letters */
		if (r->arg && *r->arg != '[')
			*shorts++ = ':';
	}
	for (int n = 0; habits_same(n); n++) {
		int i = place_of_same(cmd, habits_same(n));

		if (i >= 0)
			*longs++ = long_option(habits_same(n)->theirs, opts_row_at(i)->row, i);
	}
	*longs = (struct option){ 0 };
	*shorts = '\0';
}

/* The place of the row in the list; -1: there is none. */
static int index_of(enum opts_cmd cmd, int c)
{
	const struct option_row *r;

	if (c >= LONG_ONLY)
		return c - LONG_ONLY;
	for (int i = -1; (r = opts_next(cmd, &i));)
		if (r->letter == c)
			return i;
	return -1;
}

static const struct option_row *opts_parse_row_of(enum opts_cmd cmd, int c)
{
	int i = c ? index_of(cmd, c) : -1;

	return i < 0 ? NULL : opts_row_at(i)->row;
}

/* The option as it was given, but for names that were cut short. */
static const char *spelled(const struct option_row *r, const char *word, char *buf, size_t size)
{
	size_t n = word ? strcspn(word, "=") : 0;

	for (int i = 0; n > 2 && habits_same(i); i++) {
		const char *theirs = habits_same(i)->theirs;

		if (strncmp(word + 2, theirs, n - 2) != 0 || theirs[n - 2])
			continue;
		snprintf(buf, size, "%.*s", (int)n, word);
		return buf;
	}
	if (word && word[0] == '-' && word[1] != '-' && r->letter)
		snprintf(buf, size, "-%c", r->letter);
	else
		snprintf(buf, size, "--%s", r->name);
	return buf;
}

/* The options that begin as the word does, when it is too short to tell which: "--cou". Returns
 * how many. */
static int beginning_with(enum opts_cmd cmd, const char *word, char *text, size_t size)
{
	const struct option_row *r;
	int n = 0;

	text[0] = '\0';
	for (int i = -1; (r = opts_next(cmd, &i));) {
		size_t at = strlen(text);

		if (!r->help || strncmp(r->name, word + 2, strlen(word + 2)))
			continue;
		snprintf(text + at, size - at, "%s--%s", n++ ? ", " : "", r->name);
	}
	return n;
}

static int bad_option(enum opts_cmd cmd, int c, const char *word)
{
	const struct option_row *r = c == ':' ? opts_parse_row_of(cmd, optopt) : NULL;
	struct parse_nearest near = { .n = 0 };
	char name[64], text[256];

	if (r) {
		msg_error("%s needs a value (%s); see 'cudatrace%s --help'",
			  spelled(r, word, name, sizeof(name)), r->arg, command_typed(cmd));
		return -EINVAL;
	}
	if (strncmp(word, "--", 2) && word[1] == 't' && word[2] >= '0' && word[2] <= '9') {
		msg_error("-t prints the time of day; give -L %s for one thread", word + 2);
		return -EINVAL;
	}
	if (strncmp(word, "--", 2) && word[1] == 'a' && word[2] >= '0' && word[2] <= '9') {
		msg_error(COLUMN, word + 2);
		return -EINVAL;
	}
	if (strncmp(word, "--", 2) && optopt == 't' && index_of(cmd, 'L') >= 0) {
		msg_error("there is no option -t here; give -L TID for one thread");
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "-%c", optopt);
	if (habits_option(strncmp(word, "--", 2) ? name : word)) {
		msg_error("%s", habits_option(strncmp(word, "--", 2) ? name : word));
		return -EINVAL;
	}
	if (strncmp(word, "--", 2)) {
		msg_error("there is no option -%c; see 'cudatrace%s --help'", optopt,
			  command_typed(cmd));
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	r = optopt >= LONG_ONLY ? opts_parse_row_of(cmd, optopt) : NULL;
	if (r) {
		msg_error("--%s takes no value: leave out what follows the =", r->name);
		return -EINVAL;
	}
	if (beginning_with(cmd, name, text, sizeof(text)) > 1) {
		msg_error("%s can mean several options, %s: write the whole name", name, text);
		return -EINVAL;
	}
	for (int i = -1; (r = opts_next(cmd, &i));) {
		char candidate[64];

		if (!r->help)
			continue;
		snprintf(candidate, sizeof(candidate), "--%s", r->name);
		parse_nearest_add(&near, name, candidate);
	}
	if (near.n)
		msg_error("there is no option %s%s", name,
			  parse_nearest_text(&near, text, sizeof(text)));
	else
		msg_error("there is no option %s; see 'cudatrace%s --help'", name,
			  command_typed(cmd));
	return -EINVAL;
}

/* The words of the commands that read recordings; without one, what record wrote here. */
static int files(struct opts *o, enum opts_cmd cmd)
{
	char known[256];
	bool usual = !o->ask.nargs && cmd & (STORED | OPTS_INFO) && !access(RECORDING, F_OK);

	if (cmd != OPTS_MERGE && o->ask.nargs > 1 && o->ask.args[1][0] == '-') {
		msg_error("'%s' comes after the recording: write options before it",
			  o->ask.args[1]);
		return -EINVAL;
	}
	if (cmd != OPTS_MERGE && o->ask.nargs != 1 && !usual) {
		msg_error(o->ask.nargs ? "'%s' is one word too many; give one recording"
				       : "no recording is given: name a file that 'cudatrace "
					 "record' wrote",
			  o->ask.nargs ? o->ask.args[1] : "");
		return -EINVAL;
	}
	if (cmd == OPTS_MERGE && (o->ask.nargs < 2 || !o->ask.output)) {
		msg_error("give two or more recordings, and -o FILE for the merged one");
		return -EINVAL;
	}
	if (cmd == OPTS_EXPORT && !o->ask.export) {
		msg_error("--to is missing: the format to write, one of %s",
			  sinks_names(SINKS_EXPORT, known, sizeof(known)));
		return -EINVAL;
	}
	o->ask.file = usual ? RECORDING : o->ask.args[0];
	return 0;
}

/* The name of the option that the word is, if its value may be left out and then stands behind a
 * '='; NULL: it is not. */
static const char *takes_value(enum opts_cmd cmd, const char *word)
{
	const struct option_row *r;

	for (int i = -1; (r = opts_next(cmd, &i));) {
		char letter[3] = { '-', (char)r->letter };

		if (!r->arg || *r->arg != '[')
			continue;
		if ((r->letter && !strcmp(word, letter)) ||
		    (!strncmp(word, "--", 2) && !strcmp(word + 2, r->name)))
			return r->name;
	}
	return NULL;
}

/* `-t 1234`, `-t cuda,nvtx`, `-a 80`, `-f true CMD`: letters that have a value elsewhere and none here. True
 * after one message. */
static bool is_value(const char *option, const char *word, bool more)
{
	bool number = word[strspn(word, "0123456789")] == '\0';
	bool layers = strchr(word, ',') || !strcmp(word, "cuda");
	bool truth = !strcmp(word, "true") || !strcmp(word, "false");

	if (!strcmp(option, "-t") && number)
		msg_error("-t prints the time of day; give -L %s for one thread", word);
	else if (!strcmp(option, "-t") && layers)
		msg_error("%s", habits_option("--trace"));
	else if (!strcmp(option, "-a") && number)
		msg_error(COLUMN, word);
	else if (!strcmp(option, "-f") && truth && more)
		msg_error("-f is about children here; give --force-overwrite=%s, or leave out -f "
			  "%s: a recording that is there becomes FILE.old",
			  word, word);
	else
		return false;
	return true;
}

/* May the kernel execute the file? A recording may have the mode of a program too, as all files of
 * some file systems have. */
static bool begins_as_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char magic[4] = "";
	ssize_t n;

	if (fd < 0) /* one that may be executed but not read is no recording */
		return errno == EACCES;
	n = pread(fd, magic, sizeof(magic), 0);
	close(fd);
	return (n == 4 && !memcmp(magic, "\177ELF", 4)) || (n >= 2 && !memcmp(magic, "#!", 2));
}

/* Says whether a word with a slash begins CMD, at a place where a recording may stand too. */
static bool is_program(enum opts_cmd cmd, const char *word)
{
	return strchr(word, '/') &&
	       (!(cmd & EITHER) || (!access(word, X_OK) && begins_as_program(word)));
}

bool opts_is_program(const char *word)
{
	struct parse_nearest near = { .n = 0 };
	const char *at = getenv("PATH");
	struct stat st;
	char path[4096];

	if (strchr(word, '/') || !*word || *word == '-' || command_named(word) ||
	    habits_command(word))
		return false;
	for (unsigned int i = 1; command_at(i); i++)
		parse_nearest_add(&near, word, command_at(i)->name);
	for (; at && !near.n; at = *at ? at + 1 : NULL) {
		size_t n = strcspn(at, ":");

		if (snprintf(path, sizeof(path), "%.*s/%s", n ? (int)n : 1, n ? at : ".", word) <
			    (int)sizeof(path) &&
		    !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
			return true;
		at += n;
	}
	return false;
}

/* What is left after the options: CMD after --, or the words of a command that takes any. */
static int rest(struct opts *o, enum opts_cmd cmd, int argc, char **argv)
{
	bool dashes = optind > 1 && !strcmp(argv[optind - 1], "--");
	char known[256];

	o->ask.record = cmd == OPTS_RECORD;
	dashes |= optind < argc && cmd & LIVE && is_program(cmd, argv[optind]);
	/* at a place where a recording may stand, a word means a file of that name if there is one */
	dashes |= optind < argc && cmd & EITHER && access(argv[optind], F_OK) &&
		  opts_is_program(argv[optind]);
	/* a word that names no program names a recording */
	o->ask.replay = cmd & STORED || (cmd & EITHER && optind < argc && !dashes);
	if (cmd & LIVE && !o->ask.replay) {
		if (optind < argc && !dashes && cmd == OPTS_TRACE && command_named(argv[optind])) {
			msg_error("'%s' is a command, which comes first: cudatrace %s [OPTIONS]",
				  argv[optind], argv[optind]);
			return -EINVAL;
		}
		if (optind < argc && !dashes &&
		    is_value(argv[optind - 1], argv[optind], optind + 1 < argc))
			return -EINVAL;
		if (optind < argc && !dashes && takes_value(cmd, argv[optind - 1])) {
			msg_error("'%s' belongs to no option: write --%s=%s, or to start a program "
				  "-- before it",
				  argv[optind], takes_value(cmd, argv[optind - 1]), argv[optind]);
			return -EINVAL;
		}
		if (optind < argc && !dashes && !opts_is_program(argv[optind])) {
			msg_error("what is '%s'? To start a program, write -- before it: "
				  "cudatrace%s [OPTIONS] -- %s",
				  argv[optind], command_typed(cmd), argv[optind]);
			return -EINVAL;
		}
		if (dashes && optind == argc) {
			msg_error("-- without a command to start after it: write one, or leave out "
				  "--");
			return -EINVAL;
		}
		if (optind < argc)
			o->ask.cmd = argv + optind;
		if (cmd == OPTS_FOLDED && !(o->ask.format->flags & SINKS_FOLDS)) {
			msg_error("'cudatrace folded' adds up stacks: give --format %s, or leave "
				  "out 'folded'",
				  sinks_names(SINKS_FOLDS, known, sizeof(known)));
			return -EINVAL;
		}
		return 0;
	}
	o->ask.args = (const char *const *)(argv + optind);
	o->ask.nargs = argc - optind;
	if (o->ask.replay || cmd & (OPTS_INFO | OPTS_MERGE))
		return files(o, cmd);
	if (o->ask.nargs && !command_of(cmd)->command->words) {
		msg_error("'%s' is one word too many; see 'cudatrace%s --help'", argv[optind],
			  command_typed(cmd));
		return -EINVAL;
	}
	return 0;
}

/* The options of the command's own, and of the formats that it has. */
static int open_sets(struct opts *o)
{
	const struct opts_row *r;

	for (int i = 0; (r = opts_row_at(i)); i++) {
		if (!r->set || !(r->cmds & (int)o->ask.command) || request_own(&o->ask, r->set) ||
		    o->ask.nown == REQUEST_SETS_MAX)
			continue;
		o->ask.own[o->ask.nown].set = r->set;
		o->ask.own[o->ask.nown].options = calloc(1, r->set->size);
		if (!o->ask.own[o->ask.nown++].options) {
			msg_error("not enough memory to start");
			return -EINVAL;
		}
	}
	return 0;
}

/* The layers that are recorded: those of --layers, and those that other options need. */
static uint32_t needed_layers(const struct opts *o)
{
	const struct request *ask = &o->ask;
	struct sink_wants wants = request_wants(ask);
	uint32_t layers = o->layers;

	/* frames that are ranges need the layer of ranges */
	if (ask->look.stack_of_scopes)
		layers |= api_layer(API_NVTX);
	if (!(wants.any_layer && layers))
		layers |= wants.layers;
	if (ask->format->flags & SINKS_BLOCKS || wants.blocks)
		layers |= api_layer(API_ALLOCATOR);
	/* what begins or ends the window may be a scope */
	return layers | window_layer(ask->window.start_on) | window_layer(ask->window.stop_on);
}

/* Has each process an output of its own: is there a %p in the FILE of -o? */
static bool is_one_each(const struct request *ask)
{
	return ask->command & (OPTS_TRACE | OPTS_FOLDED | OPTS_REPLAY) && ask->output &&
	       !out_is_command(ask->output) && strstr(ask->output, "%p") &&
	       !(ask->format->flags & SINKS_PATH);
}

/* Fills in what follows from the options. */
static void conclude(struct opts *o, const unsigned char *given)
{
	uint32_t bytes = o->ask.ring_bytes;
	int i = -1;

	if (command_of(o->ask.command)->command->sink)
		o->ask.format = sinks_find(command_of(o->ask.command)->command->sink->name);
	o->ask.layers = needed_layers(o);
	if (o->ask.agent.kinds & AGENT_NVTX && api_layers_inlined(o->ask.layers)) {
		msg_note("--layers nvtx records the ranges: --gpu=nvtx is left out, so that none "
			 "is shown twice");
		o->ask.agent.kinds &= ~AGENT_NVTX;
	}
	o->ask.gpu = o->ask.agent.kinds != 0;
	o->ask.look.compact = o->compact == OPTS_COMPACT_ALWAYS;
	if (o->ask.look.time == SINK_TIME_DAY || o->ask.look.time == SINK_TIME_DAY_US)
		tzset(); /* a session gives up the right to open the file of the time zone */
	/* strace: -ff -o FILE */
	if (o->ask.follow > 1 && o->ask.command & (OPTS_TRACE | OPTS_FOLDED) && o->ask.output &&
	    !out_is_command(o->ask.output) && strcmp(o->ask.output, "-") &&
	    !strstr(o->ask.output, "%p") && asprintf(&o->split, "%s.%%p", o->ask.output) > 0)
		o->ask.output = o->split;
	o->ask.one_each = is_one_each(&o->ask);
	for (o->ask.ring_bytes = bytes ? 4096 : 0; o->ask.ring_bytes < bytes;)
		o->ask.ring_bytes *= 2;
	for (const struct option_row *r; (r = opts_next(o->ask.command, &i));) {
		o->ask.one_device |= given[i] && !strcmp(r->name, "device");
	}
	if (o->ask.no_stack || o->ask.look.stack_of_scopes)
		o->ask.stack = REQUEST_STACK_NONE;
}

void *opts_of_row(struct opts *o, int i)
{
	const struct option_set *set = opts_row_at(i)->set;

	return set ? request_own(&o->ask, set) : o;
}

/* Notes that an option was given in another tool's words. Returns its place; -1: the command does not have it. */
static int gives(enum opts_cmd cmd, unsigned char *given, const char *name)
{
	const struct option_row *r;

	for (int i = -1; (r = opts_next(cmd, &i));) {
		if (strcmp(r->name, name))
			continue;
		given[i] = OPTS_BY_NAME;
		return i;
	}
	return -1;
}

/* `-e status=failed` and `--status=failed` are --failed, those of successful --succeeded. Returns 0, or -EINVAL after one message. */
static int by_status(struct opts *o, unsigned char *given, const char *option, const char *status)
{
	const char *ours = !strcmp(status, "successful") ? "succeeded" : "failed";
	int i;

	if (strcmp(status, "failed") && strcmp(status, "unsuccessful") &&
	    strcmp(status, "successful") != 0) {
		msg_error("%s=%s: give %s=failed or %s=successful", option, status,
			  strncmp(option, "-e ", 3) ? option : option + 3,
			  strncmp(option, "-e ", 3) ? option : option + 3);
		return -EINVAL;
	}
	i = gives(o->ask.command, given, ours);
	if (i < 0) {
		msg_error("%s=%s: 'cudatrace%s' has no --%s: leave it out", option, status,
			  command_typed(o->ask.command), ours);
		return -EINVAL;
	}
	return option_set(opts_row_at(i)->row, opts_of_row(o, i), ours, NULL);
}

/* Stores the value of one option in its struct. Returns 0, or -EINVAL after one message. */
static int set_option(struct opts *o, int i, const char *name, unsigned char *given)
{
	static const char status[] = "status=";
	const struct option_row *r = opts_row_at(i)->row;

	if (!strcmp(r->name, "events") && !strncmp(optarg, status, strlen(status)))
		return by_status(o, given, "-e status", optarg + strlen(status));
	if (!strcmp(r->name, "status"))
		return by_status(o, given, "--status", optarg);
	given[i] = name[1] == '-' ? OPTS_BY_NAME : OPTS_BY_LETTER;
	o->brief |= r->letter == 'h' && name[1] != '-';
	if (!strcmp(r->name, "time-of-day") || !strcmp(r->name, "relative"))
		gives(o->ask.command, given, "time");
	if (!strcmp(r->name, "trace") && o->ask.command & (OPTS_TRACE | OPTS_RECORD))
		gives(o->ask.command, given, "layers");
	return option_set(r, opts_of_row(o, i), name, optarg);
}

/* Would rows for people be broken by the terminal that they go to? */
static bool is_narrow(const struct opts *o)
{
	struct winsize size;

	return o->ask.command & ROWS && o->ask.format->flags & SINKS_TEXT && !o->ask.output &&
	       !o->ask.look.counts_only &&
	       !ioctl(o->ask.cmd ? STDERR_FILENO : STDOUT_FILENO, TIOCGWINSZ, &size) &&
	       size.ws_col && size.ws_col < WIDE;
}

int opts_parse(struct opts *o, enum opts_cmd cmd, int argc, char **argv)
{
	char shorts[OPTS_ROWS_MAX * 2 + 3], name[64], msg[512];
	unsigned char given[OPTS_ROWS_MAX] = { OPTS_NOT_GIVEN };
	struct option longs[OPTS_ROWS_MAX * 2];
	const struct option_row *r;
	int c;

	memset(o, 0, sizeof(*o));
	o->ask.command = cmd;
	o->ask.has_tid = cmd & (OPTS_TRACE | OPTS_FOLDED | OPTS_RECORD | OPTS_ADVISE);
	o->ask.domain = API_DOMAIN_END;
	o->ask.format = sinks_find("table");
	o->ask.argv = argv;
	if (open_sets(o))
		return -EINVAL;
	for (int i = -1; (r = opts_next(cmd, &i));)
		if (r->def)
			option_set(r, opts_of_row(o, i), r->name, r->def);
	getopt_tables(cmd, longs, shorts);
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	for (;;) {
		int at = optind ? optind : 1, i;

		/* words between the options are passed over, where they may stand there */
		while (!(cmd & LIVE) && at < argc - 1 && (argv[at][0] != '-' || !argv[at][1]))
			at++;
		c = getopt_long(argc, argv, shorts, longs, NULL);
		if (c < 0)
			break;
		if (c == '?' || c == ':')
			return bad_option(cmd, c, argv[at]);
		i = index_of(cmd, c);
		r = opts_row_at(i)->row;
		spelled(r, argv[at], name, sizeof(name));
		if (set_option(o, i, name, given))
			return -EINVAL;
	}
	if (o->help || o->version)
		return 0;
	/* serve, top and watch run for long and must cost little. Most calls are queries, which say nothing
	 * of what the GPU is asked for */
	if (cmd & (OPTS_SERVE | OPTS_TOP | OPTS_WATCH) && !o->ask.events_given && !o->queries &&
	    select_add(&o->ask.select, "!query", msg, sizeof(msg)))
		return -EINVAL;
	if (cmd & OPTS_SERVE && !o->max_cost_off && o->ask.max_cost <= 0 && o->ask.duty <= 0 &&
	    o->ask.source == REQUEST_SOURCE_PROBES) {
		o->ask.max_cost = SERVE_MAX_COST;
		o->ask.max_cost_ours = true;
	}
	if (select_finish(&o->ask.select, o->ask.domain, msg, sizeof(msg))) {
		msg_error("%s", msg);
		return -EINVAL;
	}
	if (cmd != OPTS_LIST)
		o->ask.scopes = select_scopes(&o->ask.select);
	if (opts_output(o, given))
		return -EINVAL;
	conclude(o, given);
	if (rest(o, cmd, argc, argv) || opts_check(&o->ask, given))
		return -EINVAL;
	if (o->ask.format->flags & (SINKS_FOLDS | SINKS_BLOCKS) && !o->ask.stack)
		o->ask.stack = REQUEST_STACK_AUTO;
	if (o->compact == OPTS_COMPACT_AUTO && is_narrow(o))
		o->ask.look.compact = true;
	if (o->ask.format->flags & SINKS_NESTED && !o->ask.no_return)
		o->ask.look.nested = true;
	return 0;
}

void opts_free(struct opts *o)
{
	for (int i = 0; i < o->ask.nown; i++) {
		option_free(o->ask.own[i].set, o->ask.own[i].options);
		free(o->ask.own[i].options);
	}
	o->ask.nown = 0;
	free(o->ask.pids);
	free(o->ask.env);
	free(o->split);
	o->split = NULL;
	o->ask.pids = NULL;
	o->ask.env = NULL;
}
