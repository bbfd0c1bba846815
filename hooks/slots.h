/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.h - hooks a function without a jump at its begin: other code calls it through words that the
 * dynamic loader has filled in with its address (slots), and these are led to the function's gate, which
 * is code of ours. Calls that need no such word are not seen: calls inside the library that the linker
 * has bound, and pointers that dlsym() and the like gave out. docs/hooks.md says why a slot may be written
 * while threads call through it. For the agent's own thread.
 */
#ifndef CT_HOOKS_SLOTS_H
#define CT_HOOKS_SLOTS_H

#include <linux/types.h>
#include <stdbool.h>

#include "stub.h"
#include "text.h"

struct gate {
	__u64 to;	  /* the function; 0: there is no gate */
	__u64 pad;	  /* its address, but for the sixth byte */
	struct stub stub; /* where the pad leads */
	unsigned int on;  /* slots that lead here */
	bool wanted;	  /* the owner's: slots are to lead here */
};

/* Makes the gate of the function with the number n; no slot leads to it yet. 0; 1: there is no room; or -errno: the
 * process may not write to its memory in this way. */
int gate_make(struct gate *, __u64 function, unsigned int n);
/* Gives it back, with what is known of its slots, where the function has been unmapped. */
void gate_free(struct gate *);

/* No slot will lead here any more, but its code stays: the program may have kept a pointer to it. */
void gate_leave(struct gate *);

/* The gate for the function at this address, or NULL. */
typedef struct gate *(*slots_gate_fn)(__u64 function);

/*
 * Finds the slots that hold addresses of functions with gates, in all objects, or only in those that
 * were not mapped at the last call. Nothing is written.
 */
void slots_find(const struct text_maps *, bool all, slots_gate_fn);
/* Leads the slots that were found to their gates, where these are wanted, but those whose function is
 * not bound yet and cannot be foreseen. -errno: the process may not write to its memory in this way. */
int slots_put_on(const struct text_maps *);
/* Once a second: has the loader written to slots that were not bound when they were found? Then these are
 * led to their gates by slots_put_on(). */
bool slots_changed(void);
/* Each slot that still leads to this gate (NULL: to any) gets its former word. */
void slots_take_off(const struct text_maps *, struct gate *);

#endif
