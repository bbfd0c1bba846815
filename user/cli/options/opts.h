/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts.h - the command line as it is read. What it asks for is a struct request, which is all that
 * the commands see of it.
 */
#ifndef CT_OPTS_H
#define CT_OPTS_H

#include "../../request/request.h"
#include "command.h"

enum opts_compact { OPTS_COMPACT_AUTO, OPTS_COMPACT_ALWAYS, OPTS_COMPACT_NEVER };

/* The command line as it is read: what it asks for, and what only it needs. */
struct opts {
	struct request ask;
	bool help, version; /* print that and do nothing else */
	bool brief;	    /* help: -h */
	uint32_t layers;    /* of --layers; others follow from other options: ask.layers has all */
	bool max_cost_off;  /* --max-cost=off */
	/* serve, top: class query too, which they leave out unless -e says what to count */
	bool queries;
	enum opts_compact compact; /* ask.look.compact follows from it */
	int times_t;		   /* -t: how often it was given */
	bool as_always;		   /* an option of others that asks for what is done anyway */
	int always;		   /* the same, repeatable */
	char *split;		   /* -ff: what ask.output becomes; ours */
};

/*
 * Parses what comes after the command's name: argv[0] is skipped. Returns 0, or -EINVAL after
 * one message. The strings of argv are kept by pointer. opts_free() is safe after a failure.
 */
int opts_parse(struct opts *, enum opts_cmd, int argc, char **argv);
void opts_free(struct opts *);
/* Is this the name of a program that can be started without a -- before it? What is a command, another tool's
 * command or nearly a command is not. */
bool opts_is_program(const char *word);

/*
 * What may stand for the last of the n words after the program's name, one a line; a line that
 * begins with ':' says what the shell completes by itself (:file, :directory, :user, :pid, and
 * `:command N`: of the words after the command's name, words[N] and on are another program's
 * line).
 */
void opts_complete(struct out *, const char *const *words, int n);

/* The help text of a command; the brief one fits a terminal of 24 lines and 80 columns. */
void opts_help(struct out *, enum opts_cmd);
void opts_help_brief(struct out *, enum opts_cmd);

#endif
