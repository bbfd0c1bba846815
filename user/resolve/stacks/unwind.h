/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.h - from a raw copy of a user stack, or a blocked thread's live one, to the addresses of
 * its frames.
 *
 * Programs are built without frame pointers, so each frame's caller is found as .eh_frame says.
 * Knows address spaces and objects; knows no record but the raw stack, and no symbol but the
 * names of where threads begin.
 */
#ifndef CT_UNWIND_H
#define CT_UNWIND_H

#include "space.h"

#define UNWIND_MAX 512 /* frames of a stack at most */

struct unwind_frame {
	uint64_t ip;
	/* ip is where the frame is; else it is a return address, and the call stands before it */
	bool exact;
};

/* Frames of a raw stack, innermost first. target may be NULL: then only what is in the record
 * and in the known mappings is used. flags: CT_STACK_*. Returns their number, at most max. */
int unwind_record(struct space *, struct target *, const struct ct_user_stack *,
		  struct unwind_frame *out, int max, uint32_t *flags);

/* A frame with its registers. */
struct unwind_regs {
	uint64_t ip, sp, bp;
	uint64_t lr;	   /* aarch64: of the innermost frame */
	uint64_t regs[10]; /* as in struct ct_user_stack; 0: not known */
	bool exact;	   /* of ip, as in struct unwind_frame */
};

/* The frames of a thread in full, from the registers that it has now, innermost first. copy: len
 * bytes of its stack from regs->sp on; what is beyond is read from its memory. saved: return
 * addresses that pending return probes replaced, outermost first. Returns their number, at most
 * max. */
int unwind_thread(struct space *, struct target *, const struct unwind_regs *regs, const void *copy,
		  size_t len, const struct ct_saved *saved, int nsaved, struct unwind_regs *out,
		  int max, uint32_t *flags);

#endif
