/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.h - from a raw copy of a user stack, or a blocked thread's live one, to the addresses of its frames.
 *
 * Programs are built without frame pointers, so each frame's caller is found as .eh_frame says. Knows address spaces and
 * objects; knows no record but the raw stack, and no symbol but the names of where threads begin.
 */
#ifndef CT_UNWIND_H
#define CT_UNWIND_H

#include "space.h"

#define UNWIND_MAX 512 /* frames of a stack at most */

struct unwind_frame {
	uint64_t ip;
	bool exact; /* ip is where the frame is; else it is a return address, and the call stands before it */
};

/* A thread's registers. */
struct unwind_regs {
	uint64_t ip, sp, bp;
	uint64_t regs[10]; /* as in struct ct_user_stack */
	bool exact;	   /* of ip, as in struct unwind_frame */
	bool only_ip_sp;   /* bp and regs are not known */
};

/* Frames of a raw stack, innermost first. target may be NULL: then only what is in the record and in the known mappings
 * is used. flags: CT_STACK_*. Returns their number, at most max. */
int unwind_record(struct space *, struct target *, const struct ct_user_stack *, struct unwind_frame *out, int max,
		  uint32_t *flags);

/* The same of a thread that is not running now, with the stack read from its memory. saved, nsaved: return addresses that
 * pending return probes replaced, outermost first. */
int unwind_live(struct space *, struct target *, const struct unwind_regs *, const struct ct_saved *saved, int nsaved,
		struct unwind_frame *out, int max, uint32_t *flags);

#endif
