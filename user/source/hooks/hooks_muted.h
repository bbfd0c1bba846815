/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_muted.h - functions that processes with hooks call so often that their calls are only counted
 * there, each of them, by a few instructions. Notices them (throttle.h), gives them numbers, and makes
 * the records that say how many calls there were (CT_MUTED; where all calls are counted, CT_CALL_COUNT
 * has it). Unlike with probes no call is missed, so the numbers are exact. Knows no socket.
 */
#ifndef CT_HOOKS_MUTED_READER_H
#define CT_HOOKS_MUTED_READER_H

#include "../../flow/plan.h"
#include "hooks_funcs.h"
#include "hooks_ring.h"

struct hooks_muted;

struct hooks_muted *hooks_muted_open(const struct capture_plan *); /* NULL: no memory */
void hooks_muted_close(struct hooks_muted *);
/* Asks whether a process would only count the function's calls; if not, they do not mute the function.
 * Without this each process would. */
void hooks_muted_ask(struct hooks_muted *, bool (*mutes)(void *ctx, uint32_t pid, int func),
		     void *ctx);

/* A call was recorded. Returns the number of its function if this is to be muted from here on, else
 * -1. */
int hooks_muted_call(struct hooks_muted *, const struct ct_call *);
/* The same where calls are counted: a reading of all areas begins; what each process has; the next
 * function that is to be muted, or -1. */
bool hooks_muted_look_due(const struct hooks_muted *, uint64_t now);
void hooks_muted_look(struct hooks_muted *, uint64_t now);
void hooks_muted_look_at(struct hooks_muted *, struct hooks_ring *);
int hooks_muted_looked(struct hooks_muted *);
/* Counts are kept by this key from here on (enum ct_by). Returns whether muting begins or ends. */
bool hooks_muted_count_by(struct hooks_muted *, uint8_t by);

/* The muted functions have the numbers from 0 to n - 1. */
int hooks_muted_n(const struct hooks_muted *);
int hooks_muted_func(const struct hooks_muted *, int number);
/* The message about it to a process that has mapped this. */
void hooks_muted_message(const struct hooks_muted *, int number, const struct hooks_mapped *,
			 struct hooks_mute *);
/* Of functions that have calls without rows; NULL-terminated. */
const char *const *hooks_muted_names(const struct hooks_muted *);

/* What was told of a process: all 0 at first. */
struct hooks_muted_sent {
	uint64_t calls[HOOKS_MUTED], until_ns;
	int stated; /* functions whose rows were stated */
};
/* Is it time to tell of this process? */
bool hooks_muted_due(const struct hooks_muted *, const struct hooks_muted_sent *, uint64_t now);
/* Adds a row (CT_HOLE) for each function that is muted since, before its numbers are known. 0 or -ENOMEM. */
int hooks_muted_state(const struct hooks_muted *, struct hooks_muted_sent *,
		      const struct hooks_ring *, struct hooks_batch *);
/* Adds a CT_MUTED for each function that the process has called since; with `last` the rows end. 0 or -ENOMEM. */
int hooks_muted_tell(struct hooks_muted *, struct hooks_muted_sent *, const struct hooks_ring *,
		     uint64_t now, bool last, struct hooks_batch *);

#endif
