/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames.h - gives frames and stacks their ids: each is sent once, and found again while it is
 * remembered.
 *
 * Remembers at most STACK_TABLE_STACKS stacks and STACK_TABLE_FRAMES frames; beyond, the oldest
 * half gets new ids when it is seen again. A later stage that keeps as many of the newest ones
 * (event/stacks.c) knows every id that is used.
 */
#ifndef CT_FRAMES_H
#define CT_FRAMES_H

#include "../../event/event.h"
#include "../../util/memo.h"
#include "object.h"

#define FRAMES_MAX 4096 /* of one stack, inlined and Python ones included */

struct frames;

/* The frames of one place, innermost first: ids first, first + 1... */
struct frames_place {
	uint32_t first;
	uint16_t count;
	bool evaluates; /* the place is in CPython's evaluation loop */
};

struct frames *frames_open(emit_fn out, void *ctx); /* NULL: no memory */
void frames_close(struct frames *);		    /* takes NULL */
int frames_error(const struct frames *); /* what `out` answered when it did not take a record */

/* Before the first frame of a stack: makes room, so that nothing of it is forgotten while it is
 * put together. */
void frames_room(struct frames *);
/* A place in an object. */
struct frames_place frames_native(struct frames *, struct object *, uint64_t address, bool exact);
/* An address of which nothing is known. */
uint32_t frames_unknown(struct frames *, uint64_t address);
/* A Python frame; function NULL: its code object is not known, and `code` is what tells it from
 * others. */
uint32_t frames_python(struct frames *, const char *function, const char *file, uint32_t line,
		       uint64_t code);

/* The stack that a key was given for; 0: none, or it was forgotten. */
uint32_t frames_recall(struct frames *, struct memo_key);
void frames_remember(struct frames *, struct memo_key, uint32_t stack);
/* The id of a stack. */
uint32_t frames_stack(struct frames *, uint32_t pid, uint64_t time_ns, uint32_t flags,
		      const uint32_t *ids, uint32_t n);

#endif
