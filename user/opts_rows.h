/* SPDX-License-Identifier: BSD-2-Clause */
/* opts_rows.h - inside opts: the rows that parsing, --help and the completions of shells come from. */
#ifndef CT_OPTS_ROWS_H
#define CT_OPTS_ROWS_H

#include "opts.h"

/* A setter: 0, or -EINVAL after one message. `name` is the option as it is called in messages. */
typedef int (*opt_set)(struct opts *, const char *name, const char *val);

struct option_row {
	int letter; /* 0: none */
	const char *name, *arg; /* arg begins with '[': may be left out, and then the setter gets NULL */
	opt_set set;
	int cmds;
	const char *def; /* set before anything is parsed, shown in --help */
	const char *help; /* a newline begins a line of its own */
	const char *const *words; /* NULL-terminated: the values that there are; NULL: any, or what `arg` stands for */
};
extern const struct option_row opts_rows[]; /* one without a setter is a heading */
extern const int opts_nrows;

#endif
