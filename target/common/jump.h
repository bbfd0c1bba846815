/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jump.h - the jump at a function's begin: its parts on this processor, and the one byte (aarch64:
 * one instruction) that is written. All functions are for our own thread.
 */
#ifndef CT_HOOKS_JUMP_H
#define CT_HOOKS_JUMP_H

#include "hook.h"
#include "call_stub.h"
#include "code_text.h"

struct jump {
	/* address of the jump: the function's first byte, or the byte after its endbr64; 0: it was
	 * not made */
	__u64 at;
	struct stub stub; /* the code to which the jump leads */
	__u8 was[16];
	/* x86-64: the fifth byte while the hook is on. It may be another encoding with the same
	 * meaning, so that the jump lands elsewhere. */
	__u8 spelled;
	__u8 begins; /* x86-64: if bit i is set, an instruction begins at byte i */
	bool spares; /* jump_spare() has something to do */
	/* x86-64: if bit i is set, there is an extra pad for an int3 on byte i */
	__u8 spared;
	__u8 pad[4];
};

void jump_begin(const struct text_maps *);
/* Makes everything except the jump itself: the pad, which leads to hooks_entry with the number
 * n. */
enum hook_result jump_make(struct jump *, const struct hook_spec *, unsigned int n);
/* Uses free room for what helps but is not required: the stub in place of its pad, and extra pads.
 * It is called after all jumps of a list are made, because it could take the room of their pads,
 * and before calls lead there. */
void jump_spare(struct jump *, const struct hook_spec *, unsigned int n);
/* Frees all parts of the jump. Only if the code that jumps was unmapped. Does nothing for a jump
 * that was not made. */
void jump_free(const struct jump *);
/* Writes the jump's byte, or the original one, unless another program has changed it. Returns 0; 1
 * if it was changed (*found has the byte); or -errno. */
int jump_write(const struct jump *, bool on, __u8 *found);
/* Returns the first byte of a function whose hook is on. */
__u8 jump_byte(void);
__u64 jump_bytes(void);	 /* bytes of memory that are mapped for all jumps */
void jump_release(void); /* frees what engine_reserve() has kept free */

#endif
