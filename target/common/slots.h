/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.h - hooks a function without a jump at its begin. Other code calls the function through
 * words in which the dynamic loader has stored its address (slots). We change these words, so that
 * they lead to the function's gate, which is code of ours. Calls that use no such word are not
 * seen: calls inside the library that the linker has bound, and calls through pointers from dlsym()
 * and similar functions. docs/hooks.md says why a slot may be written while threads call through
 * it. All functions are for our own thread.
 */
#ifndef CT_HOOKS_SLOTS_H
#define CT_HOOKS_SLOTS_H

#include <linux/types.h>
#include <stdbool.h>

#include "call_stub.h"
#include "code_text.h"

struct gate {
	__u64 to;	  /* address of the function; 0: there is no gate */
	__u64 pad;	  /* an address that differs from the function's only in the sixth byte */
	struct stub stub; /* the code to which the pad leads */
	unsigned int on;  /* number of slots that lead to this gate */
	bool wanted;	  /* set by the owner: slots should lead to this gate */
};

/* Makes the gate of the function with the number n; no slot leads to it yet. Returns 0; 1 if there
 * is no room; or -errno if the process may not write to its memory in this way. */
int gate_make(struct gate *, __u64 function, unsigned int n);
/* Frees the gate and the data about its slots. Only for a function that was unmapped. */
void gate_free(struct gate *);

/* From now on no slot leads to this gate, but its code stays, because the program may have kept a
 * pointer to it. */
void gate_leave(struct gate *);

/* Returns the gate for the function at this address, or NULL. */
typedef struct gate *(*slots_gate_fn)(__u64 function);
/* Calls f for each function that has one. */
typedef void (*slots_each_fn)(void (*f)(void *ctx, __u64 function), void *ctx);

/* Which slots are looked at, of objects that were mapped at the last call: none, those of calls, which the loader may not have filled
 * in yet, or all. Of other objects all are. */
enum slots_scope { SLOTS_NEW, SLOTS_CALLS, SLOTS_ALL };

/* Finds the slots that hold addresses of functions with gates. Nothing is written. */
void slots_find(const struct text_maps *, enum slots_scope, slots_gate_fn, slots_each_fn);
/* Was this address in an object that was mapped at the last call? */
bool slots_searched(__u64 address);
/* Makes the slots that were found lead to their gates, if these are wanted. Slots that are not
 * bound yet, and for which it is not certain to which function they will be bound, are left out.
 * Returns -errno if the process may not write to its memory in this way. */
int slots_put_on(const struct text_maps *);
/* Called once a second. Returns whether the loader has written to slots that were not bound when
 * they were found. slots_put_on() then makes these lead to their gates. */
bool slots_changed(void);
/* Restores the former word of each slot that still leads to this gate (NULL: to any gate). */
void slots_take_off(const struct text_maps *, struct gate *);

#endif
