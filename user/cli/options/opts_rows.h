/* SPDX-License-Identifier: BSD-2-Clause */
/* opts_rows.h - inside opts: the rows that parsing, --help and the completions of shells come from. */
#ifndef CT_OPTS_ROWS_H
#define CT_OPTS_ROWS_H

#include "opts.h"

/* Commands that have much in common. */
/* from programs that run */
#define LIVE (OPTS_TRACE | OPTS_FOLDED | OPTS_RECORD | OPTS_STAT | OPTS_MEM | OPTS_ADVISE)
#define PRINTS (OPTS_TRACE | OPTS_FOLDED | OPTS_REPLAY)
#define ROWS (OPTS_TRACE | OPTS_REPLAY)
#define TRACES (LIVE | OPTS_REPLAY)
#define DEVICE (OPTS_TRACE | OPTS_RECORD | OPTS_STAT | OPTS_ADVISE)
#define STORED (OPTS_REPLAY | OPTS_EXPORT)
#define ONE_BY_ONE (TRACES & ~(OPTS_STAT | OPTS_MEM)) /* each call is sent, and shown */
#define CHOOSES (TRACES & ~OPTS_MEM)		      /* which calls are of interest */
#define ALL                                                                                     \
	(TRACES | OPTS_EXPORT | OPTS_SERVE | OPTS_TOP | OPTS_LIST | OPTS_DOCTOR | OPTS_SCHEMA | \
	 OPTS_STUCK | OPTS_INFO | OPTS_MERGE | OPTS_COUNTERS | OPTS_COMPARE)

#define TOP_INTERVAL_MIN_NS 100000000ULL /* of top, between two screens */

/* A setter: 0, or -EINVAL after one message. `name` is the option as it is called in messages. */
typedef int (*opt_set)(struct opts *, const char *name, const char *val);

struct option_row {
	int letter; /* 0: none */
	/* arg begins with '[': may be left out, and then the setter gets NULL */
	const char *name, *arg;
	opt_set set;
	int cmds;
	const char *def;  /* set before anything is parsed, shown in --help */
	const char *help; /* a newline begins a line of its own */
	/* NULL-terminated: the values that there are; NULL: any, or what `arg` stands for */
	const char *const *words;
};
extern const struct option_row opts_rows[]; /* one without a setter is a heading */
extern const int opts_nrows;

enum opts_given { OPTS_NOT_GIVEN, OPTS_BY_LETTER, OPTS_BY_NAME };
/* Options that contradict each other, and those that would do nothing: of each row its enum
 * opts_given. 0, or -EINVAL after one message. */
int opts_check(const struct opts *, const unsigned char *given);

#endif
