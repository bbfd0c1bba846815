/* SPDX-License-Identifier: BSD-2-Clause */
/* out_command.h - inside out: the command that reads what is written (-o '|COMMAND'). */
#ifndef CT_OUT_COMMAND_H
#define CT_OUT_COMMAND_H

#include "../types.h"

/*
 * Starts `/bin/sh -c COMMAND` with a pipe as its standard input; what else it inherits are our
 * standard output and standard error. It runs as the user who started this program, whatever
 * privileges an executable with a set-user-ID bit gave us: as root under sudo, as a file of -o
 * belongs to root then. SIGINT and SIGQUIT are ignored in it: one that is typed ends the trace,
 * and the command reads the rest of it. Returns the descriptor to write to, and the process in
 * *pid; or -errno.
 */
int out_command_open(const char *command, pid_t *pid);
/* Waits for its end; `stop` as out.h has it, may be NULL. 0: it ended well; -EPIPE: by a pipe of
 * its own, whose reader has seen enough; -ECHILD: by another signal or with a status that is not
 * 0, which is in *status, as wait(2) has it; -EBUSY: it still runs and `stop` says not to wait. */
int out_command_wait(pid_t, const volatile int *stop, int *status);

#endif
