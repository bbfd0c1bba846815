/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inuse.h - device memory in use, from the calls that take it and give it back, joined by address.
 * Memory that was taken before the trace is not known, so giving it back changes nothing. Knows no
 * format.
 */
#ifndef CT_INUSE_H
#define CT_INUSE_H

#include "../../event/event.h"

struct inuse;
struct inuse *inuse_open(void); /* NULL: no memory */
void inuse_close(struct inuse *);

/* Handles a call's record. True: the memory in use on `device` (CT_UNKNOWN: not known) changed
 * by *delta bytes. */
bool inuse_call(struct inuse *, const struct event *, uint32_t *device, int64_t *delta);
/* Forgets the memory of a process, when it has ended or runs another program. */
void inuse_forget(struct inuse *, uint32_t pid);
/* Number of allocations that were not counted because there were too many at a time. */
uint64_t inuse_dropped(const struct inuse *);

#endif
