/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - which command: the table of them, and nothing else. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "../source/probe/links.h"
#include "../util/io/bounded.h"
#include "../util/io/roomy.h"
#include "../util/msg.h"
#include "../util/parse.h"
#include "../util/io/stdfds.h"

static const struct command {
	const char *name; /* NULL: what runs without a word */
	enum opts_cmd opts;
	int (*run)(const struct opts *);
} commands[] = {
	{ NULL, OPTS_TRACE, cmd_trace },	{ "folded", OPTS_FOLDED, cmd_folded },
	{ "stuck", OPTS_STUCK, cmd_stuck },	{ "record", OPTS_RECORD, cmd_record },
	{ "replay", OPTS_REPLAY, cmd_replay },	{ "export", OPTS_EXPORT, cmd_export },
	{ "info", OPTS_INFO, cmd_info },	{ "merge", OPTS_MERGE, cmd_merge },
	{ "stat", OPTS_STAT, cmd_stat },	{ "compare", OPTS_COMPARE, cmd_compare },
	{ "check", OPTS_COMPARE, cmd_compare }, { "mem", OPTS_MEM, cmd_mem },
	{ "advise", OPTS_ADVISE, cmd_advise },	{ "counters", OPTS_COUNTERS, cmd_counters },
	{ "serve", OPTS_SERVE, cmd_trace },	{ "top", OPTS_TOP, cmd_trace },
	{ "list", OPTS_LIST, cmd_list },	{ "doctor", OPTS_DOCTOR, cmd_doctor },
	{ "schema", OPTS_SCHEMA, cmd_schema },
};

/* "folded, stuck, ..." */
static const char *names(char *buf, size_t size)
{
	size_t n = 0;

	for (size_t i = 1; i < ARRAY_LEN(commands) && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i > 1 ? ", " : "",
				      commands[i].name);
	return buf;
}

static const struct command *command_of(const char *word)
{
	struct parse_nearest near = { .n = 0 };
	char text[128], all[256];

	for (size_t i = 1; i < ARRAY_LEN(commands); i++) {
		if (!strcmp(commands[i].name, word))
			return &commands[i];
		parse_nearest_add(&near, word, commands[i].name);
	}
	if (near.n)
		msg_error("there is no command '%s'%s", word,
			  parse_nearest_text(&near, text, sizeof(text)));
	else if (strchr(word, '/'))
		msg_error("there is no command '%s'; to start a program, write -- before it: "
			  "cudatrace -- %s",
			  word, word);
	else
		msg_error("there is no command '%s' (%s); to start a program, write -- before it: "
			  "cudatrace -- %s",
			  word, names(all, sizeof(all)), word);
	return NULL;
}

/* --help and --version: the only options that do something by themselves. */
static int print_text(const struct opts *o, enum opts_cmd cmd)
{
	struct out out;

	if (out_open(&out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	if (o->help)
		opts_help(&out, cmd);
	else
		out_str(&out, "cudatrace " CT_VERSION "\n");
	return cmd_finish(&out);
}

/* `cudatrace --complete WORD...`: for the shells. The words are what stands after cudatrace, the
 * last one unfinished. */
static int complete(const char *const *words, int n)
{
	const char *names[ARRAY_LEN(commands)];
	const struct command *command = &commands[0];
	struct out out;

	if (out_open(&out, NULL, false))
		return 1;
	for (size_t i = 1; i < ARRAY_LEN(commands); i++) {
		names[i - 1] = commands[i].name;
		if (n > 1 && !strcmp(commands[i].name, words[0]))
			command = &commands[i];
	}
	names[ARRAY_LEN(commands) - 1] = NULL;
	if (command->name)
		opts_complete(&out, command->opts, NULL, words + 1, n - 1);
	else
		opts_complete(&out, command->opts, n == 1 ? names : NULL, words, n);
	return cmd_finish(&out);
}

static int run(int argc, char **argv)
{
	const struct command *command = &commands[0];
	struct opts opts;
	int status = 2;

	stdfds_fill();
	/* a reader that has seen enough, as head(1) has, makes write(2) fail, and is no error:
	 * util/out.h */
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && !strcmp(argv[1], "--complete"))
		return complete((const char *const *)(argv + 2), argc - 2);
	if (argc > 1 && argv[1][0] != '-') {
		command = command_of(argv[1]);
		if (!command)
			return 2;
		argc--;
		argv++;
	}
	if (!opts_parse(&opts, command->opts, argc, argv)) {
		msg_verbose = opts.verbose;
		status = opts.help || opts.version ? print_text(&opts, command->opts)
						   : command->run(&opts);
	}
	opts_free(&opts);
	msg_rest();
	bounded_close();
	/* what the kinds of probes were tried with: an event of tracefs would stay for good */
	links_close_now();
	return status;
}

int main(int argc, char **argv)
{
	return roomy_run(run, argc, argv);
}
