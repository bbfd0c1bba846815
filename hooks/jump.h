/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jump.h - the jump at a function's begin: its parts on this processor, and the one byte (aarch64:
 * one instruction) that is written. For the agent's own thread.
 */
#ifndef CT_HOOKS_JUMP_H
#define CT_HOOKS_JUMP_H

#include "engine.h"
#include "stub.h"
#include "text.h"

struct jump {
	/* where it is written: the function's first byte, or behind its endbr64; 0: it was not made */
	__u64 at;
	struct stub stub; /* what it leads to */
	__u8 was[16];
	/* x86-64: the fifth byte while the hook is on. It may be another encoding with the same
	 * meaning, so that the jump lands elsewhere. */
	__u8 spelled;
	__u8 begins; /* x86-64: bit i: an instruction begins at the byte i */
	bool spares; /* jump_spare() has something to do */
	/* x86-64: bit i: there is an extra pad, for an int3 on the byte i */
	__u8 spared;
	__u8 pad[4];
};

void jump_begin(const struct text_maps *);
/* Makes everything except the jump itself: the pad, which leads to hooks_entry with the number
 * n. */
enum hook_result jump_make(struct jump *, const struct hook_spec *, unsigned int n);
/* Uses room that helps but is not required: for the stub beside its pad, and for extra pads. Called after all
 * jumps of a list are made, because it could take the room of their pads, and before calls are led to it. */
void jump_spare(struct jump *, const struct hook_spec *, unsigned int n);
/* Gives back all of it, where the code that jumps has been unmapped. A jump that was not made is
 * left alone. */
void jump_free(const struct jump *);
/* Writes the jump's byte, or the original one, unless another program has changed it. Returns 0; 1:
 * it was changed (the byte is in *found); or -errno. */
int jump_write(const struct jump *, bool on, __u8 *found);
/* The first byte while it is on. */
__u8 jump_byte(void);
__u64 jump_bytes(void);	 /* of memory mapped for all of them */
void jump_release(void); /* what engine_reserve() has kept free */

#endif
