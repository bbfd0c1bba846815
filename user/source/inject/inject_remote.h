/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_remote.h - one stopped thread of another process: system calls and functions that it is
 * made to call, memory of its process, and letting it go as it was. Knows ptrace(2) and neither
 * what is called nor why. All calls come from one thread of ours; what could not be let go is
 * let go by the kernel when that thread ends.
 */
#ifndef CT_INJECT_REMOTE_H
#define CT_INJECT_REMOTE_H

#include "inject_regs.h"

struct inject_remote {
	pid_t pid, tid;
	bool seized;
	bool stands;  /* in a stop */
	bool changed; /* the thread is not where it was */
	bool gone;    /* it has ended */
	bool masked;  /* signals are held back */
	bool entered; /* the last stop was the entry of a system call */
	struct inject_regs saved;
	uint64_t mask; /* signals that it had blocked */
	uint64_t since_ns;
	uint64_t late; /* signals that came all the same, to be sent again: bits of the numbers */
	int fault;     /* a function that was called crashed: the signal */
	struct inject_code_at code;
	uint64_t stack, stack_bytes; /* ours in the target */
	uint64_t home; /* where its own stack is free for a frame downwards; 0: not known */
	uint64_t sp;   /* of the frame of rt_sigreturn that is in force; 0: none yet */
};

uint64_t inject_now_ns(void); /* CLOCK_MONOTONIC */

/* Seizes and stops a thread. Returns 0 (it stands, its registers are in r->saved), -ESRCH,
 * -EPERM, -EBUSY (traced), -ETIME. What was begun is ended by inject_remote_close(). */
int inject_remote_open(struct inject_remote *, pid_t pid, pid_t tid, int limit_ms);
/* Lets it go, as it was. Returns -ESRCH when it has ended, else 0. */
int inject_remote_close(struct inject_remote *);

/* From here on the thread may be changed; from its first system call on signals are held back. */
int inject_remote_begin(struct inject_remote *);
/* Writes, below top, the frame that everything from now on ends in if we are killed; code.ret is
 * known. */
int inject_remote_arm(struct inject_remote *, uint64_t top);
int inject_remote_write(struct inject_remote *, uint64_t addr, const void *, size_t len);
/* Makes a system call. Returns 0 and its result (-errno of the target's) in *result, or -errno
 * of ours. */
int inject_remote_syscall(struct inject_remote *, int64_t *result, long nr, uint64_t a, uint64_t b,
			  uint64_t c, uint64_t d, uint64_t e, uint64_t f);
/* Calls a function. Returns 0; -ETIME: it waits for a lock and was given up, nothing else may be
 * called; -EFAULT: it crashed (r->fault); or -errno. */
int inject_remote_call(struct inject_remote *, int64_t *result, uint64_t fn, uint64_t a, uint64_t b,
		       int limit_ms);

#endif
