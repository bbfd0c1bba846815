/* SPDX-License-Identifier: BSD-2-Clause */
/* opts_check.h - for commands that check what the rows of options cannot say. */
#ifndef CT_OPTS_CHECK_H
#define CT_OPTS_CHECK_H

#include "opts.h"

/* A command line: its values, and of each row how it was given (enum opts_given). */
struct opts_line {
	const struct request *o;
	const unsigned char *given;
};

/* A wrong combination: both conditions are true. The text may have %s: the name of the format. */
struct opts_rule {
	bool first, second;
	const char *text;
};

/* True also if the option was given with the value that it has by default. */
bool opts_is_given(const struct opts_line *, const char *option);
/* Returns 0, or -EINVAL after the message of the first combination that is there. */
int opts_judge(const struct opts_line *, const struct opts_rule *, size_t n);

#endif
