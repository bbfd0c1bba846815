/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd.h - the commands. Each gets its parsed options and returns the exit status. */
#ifndef CT_CMD_H
#define CT_CMD_H

#include "options/opts.h"

int cmd_trace(const struct opts *);
int cmd_folded(const struct opts *);
int cmd_record(const struct opts *);
int cmd_replay(const struct opts *);
int cmd_export(const struct opts *);
int cmd_info(const struct opts *);
int cmd_merge(const struct opts *);
int cmd_list(const struct opts *);
int cmd_doctor(const struct opts *);
int cmd_schema(const struct opts *);
int cmd_stuck(const struct opts *);
int cmd_counters(const struct opts *);
int cmd_stat(const struct opts *);
int cmd_compare(const struct opts *);
int cmd_mem(const struct opts *);
int cmd_advise(const struct opts *);

/* Whether a command would write over what it reads: true after one message. `out` NULL: standard
 * output. */
bool cmd_overwrites(const char *in, const char *out);

/* Ends a command that printed to `out`: closes it; 0, or 1 after one message. */
int cmd_finish(struct out *out);

#endif
