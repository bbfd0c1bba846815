/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch_tracer.h - the task that is the tracer of a program and its descendants. It interrupts the threads
 * that ask for it, hands out what happens to its tracees, and makes the ptrace(2) calls that it is told to
 * make. Where that is possible it is a process of its own, in our memory: when we are stopped (SIGSTOP), it
 * is not, and lets the threads go that wait for us.
 */
#ifndef CT_LAUNCH_TRACER_H
#define CT_LAUNCH_TRACER_H

#include "launch.h"

struct tracer;

struct tracer_event {
	pid_t tid;
	int status;	   /* as wait(2) has it */
	unsigned long msg; /* of a fork, vfork, clone or exec event: as PTRACE_GETEVENTMSG has it */
	int why;	   /* the thread has stopped because it asked for it; 0: it has not */
	uint64_t number; /* of the event; 0: the end of a child of ours, which waits for no answer */
};

/* process: with a process of its own. NULL: that is not possible. */
struct tracer *tracer_open(const struct launch_ops *, void *ctx, bool process);
/* Its thread group, in our namespace. */
pid_t tracer_pid(const struct tracer *);
/* ptrace(2). Returns 0 or -errno. */
int tracer_call(struct tracer *, int request, pid_t tid, unsigned long addr, unsigned long data);
/* The next event, one at a time. False: there is none now; then *over says whether no child and no tracee
 * is left, or the tracer is gone. */
bool tracer_next(struct tracer *, struct tracer_event *, bool *over);
/* This event has been dealt with; request: what its thread is to do, 0: nothing. Returns 0, or -errno: -ESRCH:
 * it was killed, or it was let go before. */
int tracer_done(struct tracer *, const struct tracer_event *, int request, unsigned long data);
/* Was its thread let go, since we were stopped? */
bool tracer_let_go(const struct tracer *, const struct tracer_event *);
/* Were there more events than find room? Then ends of threads are missing. Says it once. */
bool tracer_overflowed(struct tracer *);
/* Ends it: every tracee goes on where it is. */
void tracer_close(struct tracer *);

#endif
