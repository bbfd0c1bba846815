/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_stub.h - the code of one function to which its jump, or its gate, leads. A call can take one of
 * three ways through it: to hooks_entry, where the call is recorded; the stub counts the call by
 * itself, and the code stays within two cache lines; or the stub counts only calls from code in
 * engine_within. One byte selects the way, so it can be changed while threads are anywhere in the
 * stub. All functions are for our own thread.
 */
#ifndef CT_HOOKS_STUB_H
#define CT_HOOKS_STUB_H

#include <linux/types.h>
#include <stdbool.h>

struct stub {
	__u64 at; /* address of the stub; 0: there is none */
	__u64 go; /* the part that executes the first instruction, and continues after it */
	__u8 bytes;
	bool wide, folds;		   /* its kind (stub_x86.c) */
	__u8 jump, way, number, otherwise; /* the current values of the bytes that select the way */
	__u8 pad;
};

/* The moved instruction: n bytes (0: none); the code continues at `next`. If disp_at is not 0, the
 * byte with this number begins a displacement, from the end of the instruction to `to`. */
struct stub_first {
	const __u8 *bytes;
	unsigned int n, disp_at;
	__u64 to, next;
};

/* Returns how many bytes the stub needs at s->at (folds: with the way that folds), or 0 if the
 * instruction cannot be moved there. */
unsigned int stub_bytes(const struct stub *s, const struct stub_first *first, bool folds);
/* Makes the code at s->at in the given number of bytes. It leads to hooks_entry with the function's
 * number. */
void stub_make(struct stub *s, const struct stub_first *first, unsigned int number,
	       unsigned int bytes);
/* From now on calls take the way that the flags say (HOOK_COUNT_IN(), HOOK_FOLDS; 0: to
 * hooks_entry). Writes nothing if they do so already. Returns 0 or -errno; after an error some
 * calls may still go to hooks_entry, or may still be counted. */
int stub_lead(struct stub *s, __u32 flags);

#endif
