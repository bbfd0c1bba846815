/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames.h - gives ids to frames and stacks. Each is sent once, and gets the same id again as long
 * as it is remembered.
 *
 * Remembers at most STACK_TABLE_STACKS stacks and STACK_TABLE_FRAMES frames. Beyond that, the
 * oldest half is forgotten, and gets new ids when it is seen again. A later stage that keeps the
 * same number of the newest ones (event/stacks/stacks.c) knows every id that is used.
 */
#ifndef CT_FRAMES_H
#define CT_FRAMES_H

#include "../../event/event.h"
#include "../../util/table/memo.h"
#include "object.h"

#define FRAMES_MAX 4096 /* frames of one stack, including inlined and Python ones */

struct frames;

/* The frames of one place, innermost first. Their ids are first, first + 1, and so on. */
struct frames_place {
	uint32_t first;
	uint16_t count;
	bool evaluates; /* the place is in CPython's evaluation loop */
};

struct frames *frames_open(emit_fn out, void *ctx); /* NULL: no memory */
void frames_close(struct frames *);		    /* takes NULL */
int frames_error(const struct frames *); /* the error of `out` when it did not take a record */

/* Call this before the first frame of a stack: it makes room, so that no frame is forgotten while
 * the stack is put together. */
void frames_room(struct frames *);
/* Returns the frames of a place in an object. */
struct frames_place frames_native(struct frames *, struct object *, uint64_t address, bool exact);
/* Returns the frame of an address of which nothing is known. */
uint32_t frames_unknown(struct frames *, uint64_t address);
/* Returns a Python frame. function NULL: its code object is not known, and `code` distinguishes it
 * from others. */
uint32_t frames_python(struct frames *, const char *function, const char *file, uint32_t line,
		       uint64_t code);

/* Returns the stack that was remembered for a key; 0: none, or it was forgotten. */
uint32_t frames_recall(struct frames *, struct memo_key);
void frames_remember(struct frames *, struct memo_key, uint32_t stack);
/* Returns the id of a stack. */
uint32_t frames_stack(struct frames *, uint32_t pid, uint64_t time_ns, uint32_t flags,
		      const uint32_t *ids, uint32_t n);

#endif
