/* SPDX-License-Identifier: BSD-2-Clause */
/* opts_rows.h - inside opts: the rows that parsing, --help and the completions of shells come from. */
#ifndef CT_OPTS_ROWS_H
#define CT_OPTS_ROWS_H

#include "opts.h"
#include "../../util/option/option.h"

#define OPTS_ROWS_MAX 256

/* An option, or a heading, and which commands have it: some are shared by several commands, some belong to a format, some to a command or its sink. */
struct opts_row {
	const struct option_row *row;
	int cmds;
	const struct option_set *set; /* whose member it is; NULL: of struct opts */
};
/* In the order of --help; NULL after the last. */
const struct opts_row *opts_row_at(int i);
/* The next option of the command behind *at, which it moves on; -1 is before the first. NULL:
 * there is none. */
const struct option_row *opts_next(enum opts_cmd, int *at);

enum opts_given { OPTS_NOT_GIVEN, OPTS_BY_LETTER, OPTS_BY_NAME };
/* Options that contradict each other, and those that would do nothing: of each row its enum
 * opts_given. 0, or -EINVAL after one message. */
int opts_check(const struct request *, const unsigned char *given);

/* What the name of -o says of the format, if no option says it. 0, or -EINVAL after one message that says what
 * is meant. */
int opts_output(struct opts *, const unsigned char *given);
/* The struct that the member of the row at this place is in. */
void *opts_of_row(struct opts *, int i);

#endif
