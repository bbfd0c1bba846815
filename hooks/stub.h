/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stub.h - the code of one function that its jump, or its gate, leads to. It has three ways: to
 * hooks_entry, where the call is recorded; counting the call by itself, without leaving these two lines of
 * the cache; and counting only calls from code in engine_within. Which one a call takes is one byte, so that it
 * can be changed while threads are anywhere in it. For the agent's own thread.
 */
#ifndef CT_HOOKS_STUB_H
#define CT_HOOKS_STUB_H

#include <linux/types.h>
#include <stdbool.h>

struct stub {
	__u64 at; /* 0: there is none */
	__u64 go; /* within it: executes the function's first instruction, and continues after it */
	__u8 bytes;
	bool wide, folds;		   /* of which kind it is */
	__u8 jump, way, number, otherwise; /* the bytes that differ from way to way, as they are */
	__u8 pad;
};

/* The moved instruction: n bytes (0: none), after which the code at `next` follows. Where disp_at is not 0 a
 * displacement from the instruction's end is there, which leads to `to`. */
struct stub_first {
	const __u8 *bytes;
	unsigned int n, disp_at;
	__u64 to, next;
};

/* How many bytes it needs at s->at: with the way that folds, where that is wanted. 0: the instruction cannot be
 * moved there. */
unsigned int stub_bytes(const struct stub *s, const struct stub_first *first, bool folds);
/* Makes the code at s->at, in so many bytes, which leads to hooks_entry with the function's number. */
void stub_make(struct stub *s, const struct stub_first *first, unsigned int number,
	       unsigned int bytes);
/* From here on calls take the way that the flags say (HOOK_COUNT_IN(), HOOK_FOLDS; 0: to hooks_entry). Writes
 * nothing where they do already. 0 or -errno: then some are left to hooks_entry, or are still counted. */
int stub_lead(struct stub *s, __u32 flags);

#endif
