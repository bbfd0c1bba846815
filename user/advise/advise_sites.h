/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * advise_sites.h - the call sites of the calls that a rule counts, by function and stack, in
 * bounded memory; and the texts of stacks, which outlive the table that they come from.
 */
#ifndef CT_ADVISE_SITES_H
#define CT_ADVISE_SITES_H

#include "../event/event.h"
#include "../util/text.h"

#define SITES_MAX 128	/* sites of one rule and process; all further ones share one more */
#define STACKS_MAX 8192 /* different stacks, in all */
#define STACK_FRAMES 12 /* of each, from the innermost on */
#define NATIVE_FRAMES 2 /* inside Python's: if there are more, one line says how many */

struct site {
	uint64_t handle; /* of a kernel, an error's code; 0 */
	uint32_t stack;	 /* of sites_stack_of(); 0: none */
	uint16_t func;	 /* CT_NO_FUNC: none */
	uint16_t pad;
	uint64_t n, ns, bytes;
	uint64_t at_ns, took_ns; /* the longest */
	uint32_t tid;		 /* of the longest; 0: not of one thread */
	char *name;		 /* of a kernel; owned by the hits; NULL: none */
};

struct hits {
	uint64_t n, ns, bytes;
	struct site *sites;
	uint32_t nsites;
	uint8_t buckets[SITES_MAX * 2]; /* index + 1 */
	struct site others;
};

/* Adds `one` (its n, ns, bytes) to its site; a new site gets a copy of `name` as
 * its own name. Returns 0 or -ENOMEM. */
int hits_add(struct hits *, const struct site *one, const char *name);
/* An agent came in meanwhile, inside a call of this thread: the time is none of the call's own. */
void hits_leave_out(struct hits *, uint32_t tid, uint64_t start_ns, uint64_t end_ns);
void hits_free(struct hits *);

struct site_stacks;
struct site_stacks *sites_stacks_open(void);
void sites_stacks_close(struct site_stacks *);
/* All frames are shown, and have whole paths (--all-frames). Before the first stack. */
void sites_stacks_show_all(struct site_stacks *);
/* A number for the stack, by the frames that are shown of it; 0: none, or no room. */
uint32_t sites_stack_of(struct site_stacks *, const struct stack *);
uint32_t sites_stacks_n(const struct site_stacks *);
const struct text *sites_stack_text(const struct site_stacks *, uint32_t); /* NULL: none */

#endif
