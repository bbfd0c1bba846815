/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * option.h - an option of a command line as a row: its name, its type with bounds, its help.
 * Parsing, the texts of errors, --help and the shells' completion follow from the row. The value
 * goes into a member of a struct: before its rows a file says which struct that is,
 *
 *	#define OPTION_STRUCT struct mem_options
 *	static const struct option_row rows[] = {
 *		{ 0, "top", "N", COUNT(top, 1, 1000000, "rows", NULL), 0, "10", "rows of a table" },
 *
 * Knows no command, no sink and no option.
 */
#ifndef CT_OPTION_H
#define CT_OPTION_H

#include <stddef.h>

#include "../types.h"

enum option_kind {
	OPTION_HEADING, /* not an option: a line of --help */
	OPTION_FLAG,	/* takes no value: a bool */
	OPTION_TIMES,	/* takes no value: an int that counts how often it was given */
	OPTION_CONST,	/* takes no value: the member becomes `value` */
	OPTION_TEXT,	/* const char *, not empty, or what `check` allows */
	OPTION_TEXTS,	/* repeatable: const char **, NULL-terminated; the values are not copied */
	OPTION_DURATION,
	OPTION_SIZE,
	OPTION_COUNT,
	OPTION_ENUM, /* one of `words`: `value` and the word's index */
	OPTION_WORD, /* one of `words`: const char * */
	OPTION_LIST, /* of `words`, separated by commas: the bits 1 << index */
	OPTION_OTHER /* `set` handles it */
};

/* What the shells complete beside `words`, and what the name of the value says (FILE, PID...). */
enum option_offer {
	OPTION_OFFER_NOTHING,
	OPTION_OFFER_OUTPUTS,
	OPTION_OFFER_CLASSES,
	OPTION_OFFER_WINDOW,
	OPTION_OFFER_DUMP
};

struct option_type {
	enum option_kind kind;
	unsigned short at, width; /* offset of the member in its struct */
	/* The least and the largest value; they are part of the message where the value is
	 * another. A DURATION is in nanoseconds, `value` those of a number without a unit; 0: it
	 * needs one. */
	uint64_t min, max, value;
	/* Words for the message: "--runs: 'x' is no number of WHAT; give 1 to 1000", "'x' is no
	 * WHAT from 100us to 1h; HOW". */
	const char *what, *how;
	const char *const *words; /* NULL-terminated */
	const char *
		alone; /* the value may be left out, and this one is used then; NULL: it is needed */
	const char *every; /* of a LIST: a word that means all words; NULL: there is none */
	/* Both return 0, or -EINVAL after one message. `name` is the option as it was given. */
	int (*check)(const char *name, const char *val);
	int (*set)(void *options, const char *name, const char *val);
	enum option_offer offer;
};

/* Which other options an option needs, or excludes. */
struct option_rule {
	/* Names of options, separated by blanks: one of them must be given; excludes: none of
	 * them may be. CMD is a program to start, FILE a recording, format:NAME an output. */
	const char *needs, *excludes;
	const char *text; /* the message; NULL: a message is made of the names */
};

struct option_row {
	int letter; /* 0: none */
	/* arg begins with '[': the value may be left out; NULL: there is none */
	const char *name, *arg;
	struct option_type type;
	int cmds;	 /* bits of the commands that have it; 0: those that have its set */
	const char *def; /* set before anything is parsed, shown in --help */
	/* a newline begins a line of its own; NULL: an option that --help and the shells do not
	 * show */
	const char *help;
	const struct option_rule *rules; /* ended by one without names; NULL: none */
};

/* The options of one owner, a sink or a command: rows, and the struct of their members, which is
 * zeroed before the defaults are set. */
struct option_set {
	const struct option_row *rows;
	unsigned int nrows;
	size_t size;
};

#define OPTION_SET(rows)                                                    \
	{                                                                   \
		rows, sizeof(rows) / sizeof(*(rows)), sizeof(OPTION_STRUCT) \
	}

/* ---- the types, as rows have them ---- */

/* in nanoseconds, for bounds */
#define MILLI 1000000ULL
#define SECOND (1000 * MILLI)
#define HOUR (3600 * SECOND)

#define OPTION_MEMBER(m) .at = offsetof(OPTION_STRUCT, m), .width = sizeof(((OPTION_STRUCT *)0)->m)
#define OPTION_WORDS(...)         \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}
#define OPTION_MAX ((uint64_t)INT64_MAX) /* as a bound: there is none */

#define HEADING()                      \
	{                              \
		.kind = OPTION_HEADING \
	}
#define FLAG(m)                                       \
	{                                             \
		.kind = OPTION_FLAG, OPTION_MEMBER(m) \
	}
#define TIMES(m)                                       \
	{                                              \
		.kind = OPTION_TIMES, OPTION_MEMBER(m) \
	}
#define CONST(m, v)                                                  \
	{                                                            \
		.kind = OPTION_CONST, OPTION_MEMBER(m), .value = (v) \
	}
#define TEXT(m)                                       \
	{                                             \
		.kind = OPTION_TEXT, OPTION_MEMBER(m) \
	}
#define CHECKED(m, fn, ...)                                                       \
	{                                                                         \
		.kind = OPTION_TEXT, OPTION_MEMBER(m), .check = (fn), __VA_ARGS__ \
	}
#define TEXTS(m, fn)                                                  \
	{                                                             \
		.kind = OPTION_TEXTS, OPTION_MEMBER(m), .check = (fn) \
	}
/* from `from` to `to` nanoseconds; bare: what a number without a unit is multiplied by; what it
 * is no, in the message, and what to give instead */
#define DURATION(m, from, to, bare, word, advice, ...)                                 \
	{                                                                              \
		.kind = OPTION_DURATION, OPTION_MEMBER(m), .min = (from), .max = (to), \
		.value = (bare), .what = (word), .how = (advice), __VA_ARGS__          \
	}
#define SIZE(m, from, to, advice, ...)                                                             \
	{                                                                                          \
		.kind = OPTION_SIZE, OPTION_MEMBER(m), .min = (from), .max = (to), .what = "size", \
		.how = (advice), __VA_ARGS__                                                       \
	}
#define COUNT(m, from, to, word, advice)                                            \
	{                                                                           \
		.kind = OPTION_COUNT, OPTION_MEMBER(m), .min = (from), .max = (to), \
		.what = (word), .how = (advice)                                     \
	}
/* the first word is 0, the second 1... */
#define ENUM(m, ...)                                                                      \
	{                                                                                 \
		.kind = OPTION_ENUM, OPTION_MEMBER(m), .words = OPTION_WORDS(__VA_ARGS__) \
	}
#define ENUM_OF(m, list)                                               \
	{                                                              \
		.kind = OPTION_ENUM, OPTION_MEMBER(m), .words = (list) \
	}
/* the first word is `first`; alone: the word that is meant without a value, NULL: it needs one */
#define ENUM_FROM(m, first, without, ...)                                                    \
	{                                                                                    \
		.kind = OPTION_ENUM, OPTION_MEMBER(m), .value = (first), .alone = (without), \
		.words = OPTION_WORDS(__VA_ARGS__)                                           \
	}
#define WORD(m, ...)                                                                      \
	{                                                                                 \
		.kind = OPTION_WORD, OPTION_MEMBER(m), .words = OPTION_WORDS(__VA_ARGS__) \
	}
/* a list of kinds: "--gpu: 'x' is no kind of WORD; give ..." */
#define LIST(m, word, without, ...)                                                        \
	{                                                                                  \
		.kind = OPTION_LIST, OPTION_MEMBER(m), .what = (word), .alone = (without), \
		.words = OPTION_WORDS(__VA_ARGS__)                                         \
	}
#define LIST_OF(m, word, list, ...)                                                     \
	{                                                                               \
		.kind = OPTION_LIST, OPTION_MEMBER(m), .what = (word), .words = (list), \
		__VA_ARGS__                                                             \
	}
#define OTHER(fn, ...)                                         \
	{                                                      \
		.kind = OPTION_OTHER, .set = (fn), __VA_ARGS__ \
	}

#define RULES(...)                            \
	.rules = (const struct option_rule[]) \
	{                                     \
		__VA_ARGS__,                  \
		{                             \
			NULL, NULL, NULL      \
		}                             \
	}
#define NEEDS(names, message)        \
	{                            \
		names, NULL, message \
	}
#define EXCLUDES(names, message)     \
	{                            \
		NULL, names, message \
	}

/*
 * Puts the value into its member; val is NULL if none was given. Returns 0, or -EINVAL after one
 * message. Strings are kept by pointer.
 */
int option_set(const struct option_row *, void *options, const char *name, const char *val);
/* Fills in the options of a set as they are before any is given: zeros and defaults. `options`
 * has set->size bytes. */
void option_defaults(const struct option_set *, void *options);
/* Frees the memory of options of type TEXTS. */
void option_free(const struct option_set *, void *options);

/* "table, json or csv"; returns buf. */
const char *option_words(const char *const *words, char *buf, size_t size);
/* Prints that the word is not one of these, with those that are nearest to it. Returns -EINVAL. */
int option_unknown(const char *name, const char *val, const char *const *words);

#endif
