/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject.h - puts a shared object into a process that runs, and calls one function of it there.
 *
 * One thread is stopped, and only one, where it holds no lock of the allocator, the loader or libc
 * and where a stop is not seen by the program; it calls dlopen and the function on a stack that is
 * made for it, and goes on as if nothing had been. Nothing is written into the target's files and
 * code, nor to its stacks above the red zone. If we are killed meanwhile the kernel lets the thread
 * run on, and what it was made to do ends in rt_sigreturn(2), which puts back its registers and its
 * signal mask: the object then stays loaded and idle, with what was made for it. This is not so for
 * a thread whose own stack is not certain to have room for a signal's frame, in the two system
 * calls that make and give back the other stack (some 100 us each): killed there, we take the
 * program with us.
 *
 * Not put back: what dlerror(3) would have said to the thread.
 *
 * Knows ptrace(2), ELF files and signals' frames; nothing of CUDA, of the agent or of records.
 * The calls block, at most for their limits; nobody else in our process may wait(2) for all
 * children meanwhile.
 */
#ifndef CT_INJECT_H
#define CT_INJECT_H

#include "../../proc/target.h"

/* A stopped thread's registers, as far as its stack is found by them. */
struct inject_thread {
	pid_t pid, tid;
	uint64_t ip, sp, bp, lr;
	uint64_t regs[10]; /* as in struct ct_user_stack */
};

struct inject_what {
	const char *name; /* for messages: "the agent", "the hooks" */
	const void *so; /* the shared object; it has a name of its own among memfds by its bytes */
	size_t so_bytes;
	/* int symbol(const char *): called after dlopen, and must return soon */
	const char *symbol;
	/* its argument; "fd=N" in it becomes the number of the target's end of the socketpair */
	const char *how;
	int sock_type; /* SOCK_SEQPACKET, SOCK_STREAM */
	int limit_ms;  /* for finding a safe point, and again for each of the calls */
	/* Whether the process is so far that the object may come: inject_check_cuda(). NULL: any
	 * time. */
	bool (*ready)(void *ctx, struct target *);
	/* The addresses of a thread's frames, innermost first. Returns their number, at most
	 * max; *lost_sp is 0 when the thread's first frame was reached, else the stack pointer
	 * beyond which nothing is known. NULL: nothing is known. */
	int (*frames)(void *ctx, struct target *, const struct inject_thread *, uint64_t *ips,
		      int max, uint64_t *lost_sp);
	void *ctx;
	/* Called every few milliseconds until it is done, by the thread that waits for it; NULL: nothing is. */
	void (*meanwhile)(void *ctx);
	void *meanwhile_ctx;
};

struct inject_result {
	/* our end, close-on-exec, the peer checked; -1 unless 0 was returned */
	int sock;
	int answer;	     /* what the function returned */
	bool reused;	     /* the object was there already */
	pid_t tid;	     /* the thread that was used */
	int tries;	     /* threads stopped until one was at a safe point, that one included */
	uint64_t stopped_ns; /* how long it was held */
};

/* Returns 0, or -errno after one message: -EPERM (not allowed), -ESRCH (it ended), -EBUSY
 * (traced by another), -ENOEXEC (cannot load objects, or of another architecture), -EAGAIN (not
 * ready, or no safe point within the limit), -ETIME (a call did not return within the limit),
 * -EACCES (something forbids memfds or executable mappings), -ELIBBAD (dlopen failed), -EPROTO
 * (the function returned non-zero: result->answer). */
int inject_run(pid_t pid, const struct inject_what *, struct inject_result *);

#endif
