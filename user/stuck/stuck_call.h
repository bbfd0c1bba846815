/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck_call.h - finds the CUDA call that a thread is in, only from its stack: for calls whose begin no probe saw.
 *
 * Three signs make a call certain, all between a frame and its caller as an unwinder found them:
 * the frame's code is a function of the table; or the caller's return address is behind a
 * call instruction whose target is such a function, which has then passed control on by a jump; or,
 * where that instruction has its target in a register (libffi, which ctypes uses, calls so), there
 * is one such function whose code has a jump to the frame's function.
 * If the unwinder could not find the frames, or functions of several names jump there, the result is
 * a guess and marked as one. Knows no way
 * of unwinding, and reads no memory itself. Its input is untrusted.
 */
#ifndef CT_STUCK_CALL_H
#define CT_STUCK_CALL_H

#include "../source/bpf/snapshot.h"

/* A frame, innermost first. */
struct stuck_frame {
	uint64_t ip, sp;
	bool exact; /* ip is where the frame is; else a return address: the call is before it */
	/* where the function begins that ip is in; 0: not known. It is asked for only where
	 * stuck_call_enters() is true. */
	uint64_t begin;
};

struct stuck_call {
	uint16_t func;
	bool per_thread;
	bool by_scan; /* a guess */
	int caller;   /* index of the caller's frame; -1: not known */
	uint64_t ip;  /* the return address of the call; 0: not known */
	/* the caller's stack pointer after the return; if ip is not known, an address below it, which the
	 * call's own calls do not lie above */
	uint64_t sp;
};

/* Copies exactly len bytes of the process's memory; 0, or -errno. */
typedef int (*stuck_read_fn)(void *ctx, uint64_t addr, void *buf, size_t len);

/* Whether a function of the table begins at an address. */
bool stuck_call_begins(const struct snapshot_process *, uint64_t addr);
/* Whether a frame is CUDA's code and its caller is the program's. */
bool stuck_call_enters(const struct snapshot_process *, const struct stuck_frame *frame,
		       const struct stuck_frame *caller);

/* The outermost call that the frames show. Calls of functions that call the program back do not
 * count: the thread executes the program's code then. Functions of class internal count if there is
 * no other call. */
bool stuck_call_of_frames(struct stuck_call *, const struct snapshot_process *,
			  const struct stuck_frame *, int n, stuck_read_fn, void *ctx);

/* The same from the words of a stack from address sp on, for the part that an unwinder did not
 * reach. */
bool stuck_call_by_scan(struct stuck_call *, const struct snapshot_process *, uint64_t sp,
			const uint8_t *stack, size_t len, stuck_read_fn, void *ctx);

#endif
