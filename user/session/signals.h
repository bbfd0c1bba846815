/* SPDX-License-Identifier: BSD-2-Clause */
/* signals.h - signals as readable bytes for the loop, with their origin. */
#ifndef CT_SIGNALS_H
#define CT_SIGNALS_H

#include <signal.h>

#include "../util/types.h"

struct signals_got {
	int sig;
	/* typed at the terminal, where the whole process group gets it; else sent by kill(2) */
	bool from_kernel;
};

/* something is to be read: long work should come to a pause; 2: to its end */
extern volatile int signals_pending;

/* Catches SIGINT, SIGTERM, SIGHUP (unless ignored, as nohup has it) and SIGCHLD, and survives
 * SIGPIPE and SIGXFSZ, of which write(2) tells. Handlers, not masks or SIG_IGN: a program that
 * is started from here begins with the usual dispositions. Returns the descriptor to wait on, or
 * -errno. */
int signals_open(void);
/* Another one: SIGUSR1, SIGUSR2. Without this they end the tracer, as is their way. */
void signals_add(int sig);
/* From here on nobody asks for the next one: a signal that ends the tracer is added to
 * signals_pending, up to 2. */
void signals_last(void);
/* The next one; false when there is none. Clears signals_pending. */
bool signals_next(struct signals_got *);
void signals_close(void);

#endif
