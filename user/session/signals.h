/* SPDX-License-Identifier: BSD-2-Clause */
/* signals.h - delivers signals to the loop as bytes on a descriptor, and says where each one came
 * from. */
#ifndef CT_SIGNALS_H
#define CT_SIGNALS_H

#include <signal.h>

#include "../util/types.h"

struct signals_got {
	int sig;
	/* true: the signal was typed at the terminal, so the whole process group got it. false: it
	 * was sent by kill(2). */
	bool from_kernel;
};

/* 1: a signal is waiting to be read, and long work should pause; 2: long work should end */
extern volatile int signals_pending;

/* Catches SIGINT, SIGTERM, SIGHUP (unless it is ignored, as under nohup) and SIGCHLD. SIGPIPE and
 * SIGXFSZ do not end the program: write(2) returns their error. It installs handlers, not masks or
 * SIG_IGN, so that a program started from here begins with the usual dispositions. Returns the
 * descriptor to wait on, or -errno. */
int signals_open(void);
/* Catches one more signal: SIGUSR1 or SIGUSR2. Without this they end the tracer, as is their
 * default. */
void signals_add(int sig);
/* Call this when nobody calls signals_next() any more. From then on each signal that ends the
 * tracer adds 1 to signals_pending, up to 2. */
void signals_last(void);
/* Takes the next signal; false when there is none. Clears signals_pending. */
bool signals_next(struct signals_got *);
void signals_close(void);

#endif
