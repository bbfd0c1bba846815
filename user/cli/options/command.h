/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * command.h - a command: its row in commands.def, and what its own file says of it. Which options
 * it has follows from its groups, from rows that name it, and from those of its own.
 */
#ifndef CT_COMMAND_H
#define CT_COMMAND_H

#include "../../flow/sink.h"
#include "commands.def"

struct option_set;
struct request;
struct opts_line;

/* What commands share: groups of options. */
enum command_group {
	G_LIVE = 0x01,	     /* traces programs that run, or starts one after -- */
	G_PRINTS = 0x02,     /* in a form that --format chooses */
	G_ROWS = 0x04,	     /* rows */
	G_DEVICE = 0x08,     /* what the GPU does too */
	G_STORED = 0x10,     /* reads a recording */
	G_EITHER = 0x20,     /* with G_LIVE: a word that no -- comes before is a recording */
	G_ONE_BY_ONE = 0x40, /* each call is sent, and shown */
	G_CHOOSES = 0x80,    /* which calls are of interest: -e and its like */
};

#define COMMAND_INDEX(arg, id, name, groups, words, does) COMMAND_##id,
enum { COMMANDS(COMMAND_INDEX, 0) COMMAND_END };

/* The commands, as bits: which options each has. */
#define COMMAND_BIT(arg, id, name, groups, words, does) OPTS_##id = 1 << COMMAND_##id,
enum opts_cmd { COMMANDS(COMMAND_BIT, 0) };

/* Those of a group. */
#define COMMAND_IN(group, id, name, groups, words, does) | ((groups) & (group) ? OPTS_##id : 0)
enum {
	LIVE = 0 COMMANDS(COMMAND_IN, G_LIVE),
	PRINTS = 0 COMMANDS(COMMAND_IN, G_PRINTS),
	ROWS = 0 COMMANDS(COMMAND_IN, G_ROWS),
	DEVICE = 0 COMMANDS(COMMAND_IN, G_DEVICE),
	STORED = 0 COMMANDS(COMMAND_IN, G_STORED),
	EITHER = 0 COMMANDS(COMMAND_IN, G_EITHER),
	ONE_BY_ONE = 0 COMMANDS(COMMAND_IN, G_ONE_BY_ONE),
	CHOOSES = 0 COMMANDS(COMMAND_IN, G_CHOOSES),
	TRACES = LIVE | OPTS_REPLAY,
	ALL = (1 << COMMAND_END) - 1,
};

/* What the command's own file has of it. */
struct command {
	int (*run)(const struct request *); /* returns the exit status */
	/* of --help: its first lines, what it does, what stands behind the options (NULL: nothing) */
	const char *usage, *about, *after;
	const char *also;	     /* another name; NULL: none */
	const struct sink_ops *sink; /* the sink of its records; NULL: the one that --format names */
	const struct option_set *options; /* of its own, beside the sink's; NULL: none */
	bool words; /* takes words behind the options: `check` looks at them */
	/* What is wrong with the command line as a whole, beside what the rows of its options say:
	 * 0, or -EINVAL after one message; NULL: nothing. */
	int (*check)(const struct opts_line *);
};
#define COMMAND_DECLARE(arg, id, name, groups, words, does) \
	extern const struct command command_##name;
COMMANDS(COMMAND_DECLARE, 0)

struct command_row {
	enum opts_cmd bit;
	const char *name;
	/* of `cudatrace --help`: what stands after the name, and what it does */
	const char *words, *does;
	const struct command *command;
};
/* In the order of commands.def; NULL after the last. */
const struct command_row *command_at(unsigned int i);
const struct command_row *command_of(enum opts_cmd);
/* Finds a command by its name or its other name; NULL: there is none. The command that runs without a word has no
 * name. */
const struct command_row *command_named(const char *word);
/* As it is typed after "cudatrace": " stat", "". */
const char *command_typed(enum opts_cmd);

#endif
