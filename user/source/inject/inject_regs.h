/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_regs.h - what injection needs to know of an architecture: a stopped thread's registers,
 * all of them; how a system call and a function call are set up; how the kernel restarts a
 * system call; what rt_sigreturn(2) reads.
 */
#ifndef CT_INJECT_REGS_H
#define CT_INJECT_REGS_H

#include "inject.h"

#define INJECT_GENERAL_WORDS 40
#define INJECT_SETS 4

/* A register set beyond the general ones. */
struct inject_set {
	int type; /* NT_ */
	void *bytes;
	size_t len;
};

struct inject_regs {
	uint64_t general[INJECT_GENERAL_WORDS]; /* as NT_PRSTATUS has them */
	size_t general_bytes;
	struct inject_set sets[INJECT_SETS];
	int nsets;
};

/* The code that a system call is made with, in the target. */
struct inject_code_at {
	uint64_t syscall; /* a system call instruction */
	/* where a function returns to: makes rt_sigreturn of the frame at sp; 0: none */
	uint64_t ret;
	uint64_t word_at; /* code of ours writes `word` here (errno) before rt_sigreturn */
	uint32_t word;
	bool returns; /* what follows the system call is a return; else it is `ret` */
};

#if defined(__x86_64__)
#define INJECT_RET_BYTES 8 /* of the return address on the stack */
#define INJECT_RED_ZONE 128
#else
#define INJECT_RET_BYTES 0
#define INJECT_RED_ZONE 0
#endif

/* Of a thread that is stopped. Returns 0 or -errno; inject_regs_free() in any case. */
int inject_regs_save(pid_t tid, struct inject_regs *);
/* Puts everything back, in a stop before the return to user mode in which the kernel looks at
 * signals: it then restarts an interrupted system call as it would have. */
int inject_regs_restore(pid_t tid, const struct inject_regs *);
void inject_regs_free(struct inject_regs *);

void inject_regs_thread(const struct inject_regs *, struct inject_thread *);
/* the thread pointer; 0: not known */
uint64_t inject_regs_tls(pid_t tid, const struct inject_regs *);
/* The system call that the stop interrupted; -1: none. */
long inject_regs_syscall(const struct inject_regs *);
/* It has returned EINTR because of the stop, as those do that the kernel never restarts. */
bool inject_regs_eintr(const struct inject_regs *);
/* Changes what is to be put back so that the system call is made anew instead. */
void inject_regs_redo(struct inject_regs *);
/* True if the thread runs 64-bit code. The code that is injected cannot run in a 32-bit program. */
bool inject_regs_native(const struct inject_regs *);
/* True if the thread has a shadow stack: the processor ends a program that returns to an address without having
 * made a call. */
bool inject_regs_shadow(pid_t tid);

/* Makes the system call instruction of `at` the next one; sp is the stack pointer during the call. */
int inject_regs_set_syscall(pid_t tid, const struct inject_regs *, const struct inject_code_at *at,
			    uint64_t sp, long nr, const uint64_t args[6]);
/* Makes the first instruction of the function the next one. sp points to the address that the function returns to.
 * The vector state is set to what the ABI says at a function's entry. */
int inject_regs_set_call(pid_t tid, const struct inject_regs *, const struct inject_code_at *at,
			 uint64_t fn, uint64_t sp, const uint64_t args[6]);
/* Reads, in a system call stop, the call's number, its result (at its end), or what the function returned (at the
 * beginning of rt_sigreturn). */
int inject_regs_get(pid_t tid, long *nr, uint64_t *sp, int64_t *result, int64_t *handed);
/* Replaces, in a system call's entry stop, the call by a harmless one. Afterwards the thread goes on at ip with
 * the stack pointer sp. */
int inject_regs_replace(pid_t tid, uint64_t ip, uint64_t sp);
/* The same in an exit stop. */
int inject_regs_jump(pid_t tid, uint64_t ip, uint64_t sp);
/* Puts back the registers for the case that nobody is there any more: the system call is made anew. */
int inject_regs_restore_plain(pid_t tid, const struct inject_regs *);

/* The frame that rt_sigreturn(2) finds at the stack pointer `*sp`, which this chooses below
 * `top`; mask: the signals that are blocked afterwards. Writes at most size bytes to buf, which
 * belong at the address *at. Returns their number or -E2BIG. */
ssize_t inject_regs_frame(const struct inject_regs *, uint64_t mask, uint64_t top, uint64_t ret,
			  void *buf, size_t size, uint64_t *at, uint64_t *sp);

/* The code that a page of ours in the target has: a system call, then (at *ret) what a function
 * returns to. */
const void *inject_regs_stub(size_t *len, size_t *ret);
/* Looks for a system call that is followed by a return, and for the end of a signal handler, in
 * code. -1: not there. */
ssize_t inject_regs_find_syscall(const uint8_t *code, size_t len);
ssize_t inject_regs_find_sigreturn(const uint8_t *code, size_t len);
/* What ends here may be a call instruction. */
bool inject_regs_is_call(const uint8_t *code, size_t len);
/* Does the code end in a jump to a fixed place? Then how far that is from the code's end. */
bool inject_regs_last_jump(const uint8_t *code, size_t len, int64_t *far);

#endif
