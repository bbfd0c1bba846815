/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inuse.h - device memory in use, as timelines draw it: what each call changes of the account. Memory
 * that was taken before the trace is not known, so giving it back changes nothing.
 */
#ifndef CT_INUSE_H
#define CT_INUSE_H

#include "account.h"

struct inuse {
	struct account account;
	/* what the call that is being handled changes */
	int64_t delta;
	int entries;
	uint32_t device;
};
struct inuse *inuse_open(void); /* NULL: no memory */
void inuse_close(struct inuse *);

/* Handles a call's record. True: the memory in use on `device` (CT_UNKNOWN: not known) changed
 * by *delta bytes. */
bool inuse_call(struct inuse *, const struct event *, uint32_t *device, int64_t *delta);
/* Forgets the memory of a process, when it has ended or runs another program. */
void inuse_forget(struct inuse *, uint32_t pid);
/* Number of allocations that were not counted because there were too many at a time. */
static inline uint64_t inuse_dropped(const struct inuse *u)
{
	return u->account.no_room;
}

#endif
