/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apart.h - runs a function in a process of its own, so that what it gives up or changes (privileges,
 * priority, threads, open files) is not missing afterwards. Signals that end programs (SIGINT, SIGTERM, SIGHUP)
 * reach that process, and nobody else: none is lost at its begin or its end, and none goes to a process that
 * has its number later.
 */
#ifndef CT_APART_H
#define CT_APART_H

#include <signal.h>

#include "../types.h"

struct apart {
	sigset_t mask; /* the signal mask as it was */
	sigset_t ours; /* the signals that are handled one by one */
	struct apart_shared *shared;
};

/* The function's result is the exit status; *cut: a signal that only its process got ended it
 * early. */
typedef int apart_fn(void *ctx, bool *cut);

/* Needs a process with a single thread. Returns 0 or -errno. From this call on, signals wait
 * until apart_close(), where those that nobody has handled have their usual effect. */
int apart_open(struct apart *);
/* Returns the exit status, 128 + the signal if one ended the process, or -errno if no process
 * could be made. *cut: a signal came meanwhile, whatever the function did with it; or it came
 * before, and then the function has not run. */
int apart_run(struct apart *, apart_fn *, void *ctx, bool *cut);
void apart_close(struct apart *);

#endif
