/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd.h - what the commands share: each is a struct command of options/command.h. */
#ifndef CT_CMD_H
#define CT_CMD_H

#include "options/opts.h"

/* Functions that several commands run. */
int cmd_trace(const struct request *);
int cmd_replay(const struct request *);

/* True, after one message, if a command would overwrite its input. `out` NULL: standard
 * output. */
bool cmd_overwrites(const char *in, const char *out);

/* Opens the recording where it is standard input ("-"), which is copied if it cannot be read at any place: then
 * file_fd is its descriptor, which stays open. Any other one is left for its reader. Returns 0, or -1 after one
 * message. */
int cmd_open_stdin(struct request *);

/* Ends a command that printed to `out`: closes it; 0, or 1 after one message. */
int cmd_finish(struct out *out);

/* Call it last in each process that ran a command. */
void cmd_leave(void);

/* Returns the message with which a check refuses a process, and does not print it; NULL: the check does not refuse
 * it. Valid until the next call. *err: what the check returned. */
const char *cmd_refusal(int (*check)(pid_t), pid_t pid, int *err);

/* What doctor has found out about this machine. */
struct json;
struct doctor_facts {
	bool btf, ring, privileged, probes;
};
/* Prints a verdict for each feature. */
void doctor_features(struct out *, struct json *, const struct doctor_facts *);

#endif
