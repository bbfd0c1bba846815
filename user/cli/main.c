/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - which command, and nothing else. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "options/habits.h"
#include "options/pager.h"
#include "../source/built.h"
#include "../util/self/roomy.h"
#include "../util/msg.h"
#include "../util/parse.h"
#include "../util/io/stdfds.h"

/* "folded, stuck, ..." */
static const char *main_names(char *buf, size_t size)
{
	size_t n = 0;

	for (unsigned int i = 1; command_at(i) && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i > 1 ? ", " : "",
				      command_at(i)->name);
	return buf;
}

static void say_unknown(const char *word)
{
	struct parse_nearest near = { .n = 0 };
	char text[128], all[256];

	if (habits_command(word)) {
		msg_error("%s", habits_command(word));
		return;
	}
	for (unsigned int i = 1; command_at(i); i++)
		parse_nearest_add(&near, word, command_at(i)->name);
	if (near.n)
		msg_error("there is no command '%s'%s", word,
			  parse_nearest_text(&near, text, sizeof(text)));
	else
		msg_error("there is no command '%s' (%s); to start a program, write -- before it: "
			  "cudatrace -- %s",
			  word, main_names(all, sizeof(all)), word);
}

static void help_text(struct out *out, const void *ctx)
{
	opts_help(out, *(const enum opts_cmd *)ctx);
}

/* --help and --version: these options need no command. */
static int print_text(const struct opts *o, enum opts_cmd cmd)
{
	char text[512];
	struct out out;

	if (o->help && !o->brief)
		return pager_print(help_text, &cmd);
	if (out_open(&out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	if (o->help) {
		opts_help_brief(&out, cmd);
	} else {
		built_text(text, sizeof(text));
		out_str(&out, text);
	}
	return cmd_finish(&out);
}

/* `cudatrace --complete WORD...`: for the shells. The words are what stands after cudatrace, the
 * last one unfinished. */
static int main_complete(const char *const *words, int n)
{
	struct out out;

	if (out_open(&out, NULL, false))
		return 1;
	opts_complete(&out, words, n);
	return cmd_finish(&out);
}

/* `cudatrace help [COMMAND]` is `cudatrace [COMMAND] --help`. Returns the exit status. */
static int help(const char *word)
{
	const struct command_row *command = word ? command_named(word) : command_at(0);
	const struct opts opts = { .help = true };

	if (command)
		return print_text(&opts, command->bit);
	say_unknown(word);
	return 2;
}

static int main_run(int argc, char **argv)
{
	const struct command_row *command = command_at(0);
	struct opts opts;
	int status = 2;

	stdfds_fill();
	/* a reader that has seen enough, as head(1) has, makes write(2) fail, and is no error:
	 * util/out.h */
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && !strcmp(argv[1], "--complete"))
		return main_complete((const char *const *)(argv + 2), argc - 2);
	if (argc > 1 && argc < 4 && !strcmp(argv[1], "help"))
		return help(argv[2]);
	/* a program's name, or its path, begins its command line; any other word is a command of ours */
	if (argc > 1 && argv[1][0] != '-' && !strchr(argv[1], '/') && !opts_is_program(argv[1])) {
		command = command_named(argv[1]);
		if (!command) {
			say_unknown(argv[1]);
			return 2;
		}
		argc--;
		argv++;
	}
	if (!msg_debug_parse(getenv("CUDATRACE_DEBUG")))
		return 2;
	if (!opts_parse(&opts, command->bit, argc, argv)) {
		msg_verbose = opts.ask.verbose;
		msg_quiet = opts.ask.quiet;
		status = opts.help || opts.version ? print_text(&opts, command->bit)
						   : command->command->run(&opts.ask);
	}
	opts_free(&opts);
	cmd_leave();
	return status;
}

int main(int argc, char **argv)
{
	return roomy_run(main_run, argc, argv);
}
