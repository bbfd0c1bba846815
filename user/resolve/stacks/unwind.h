/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.h - finds the addresses of the frames of a stack, from a raw copy of a user stack or from
 * the live stack of a blocked thread.
 *
 * Programs are built without frame pointers, so each frame's caller is found with .eh_frame. Knows
 * address spaces and objects. The only record that it knows is the raw stack, and the only symbols
 * are the names of the functions where threads begin.
 */
#ifndef CT_UNWIND_H
#define CT_UNWIND_H

#include "../../../wire/cudatrace.h"
#include "space.h"
#include "../../../wire/cudatrace.h"

#define UNWIND_MAX 512 /* frames of a stack at most */

struct unwind_frame {
	uint64_t ip;
	/* true: ip is where the frame is; false: ip is a return address, and the call is before
	 * it */
	bool exact;
};

/* Finds the frames of a raw stack, innermost first. target may be NULL: then only the record and
 * the known mappings are used. flags: CT_STACK_*. Returns their number, at most max. */
int unwind_record(struct space *, struct target *, const struct ct_user_stack *,
		  struct unwind_frame *out, int max, uint32_t *flags);

/* A frame with its registers. */
struct unwind_regs {
	uint64_t ip, sp, bp;
	uint64_t lr;	   /* aarch64: link register of the innermost frame */
	uint64_t regs[10]; /* as in struct ct_user_stack; 0: not known */
	bool exact;	   /* about ip, as in struct unwind_frame */
};

/* Finds the frames of a thread with their registers, from the registers that the thread has now,
 * innermost first. copy: len bytes of its stack from regs->sp on; what is beyond them is read from
 * its memory. saved: return addresses that pending return probes replaced, outermost first. Returns
 * their number, at most max. If it is less, out[number].ip is the return address at which no frame was
 * found, or 0. */
int unwind_thread(struct space *, struct target *, const struct unwind_regs *regs, const void *copy,
		  size_t len, const struct ct_saved *saved, int nsaved, struct unwind_regs *out,
		  int max, uint32_t *flags);

#endif
