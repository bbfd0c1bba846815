/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * where.h - on which device, context and stream a call works, as far as records told: calls that
 * say which device or context is a thread's current one, and the agent's CT_CONTEXT and
 * CT_STREAM, which give handles their numbers.
 */
#ifndef CT_WHERE_H
#define CT_WHERE_H

#include "../event.h"

struct where;
struct where *where_open(void); /* NULL: no memory */
void where_close(struct where *);
/* Learns from calls, CT_CONTEXT and CT_STREAM; other records are ignored. Returns 0 or -ENOMEM. */
int where_record(struct where *, const struct ct_hdr *);
/* A kernel that the thread launched ran there: where nothing was told of the thread, that is
 * what is current. Returns 0 or -ENOMEM. */
int where_worked(struct where *, uint32_t pid, uint32_t tid, uint32_t device, uint32_t context);
/* The process begins, and every call of it will come: a thread that chooses no device has the
 * runtime's default. Returns 0 or -ENOMEM. */
int where_began(struct where *, uint32_t pid);
/* The device of a context that was told of, by CUPTI's number; CT_UNKNOWN: not known. */
uint32_t where_device_of(const struct where *, uint32_t pid, uint32_t context);
/* Records were lost: what is current in a thread is not known until it is told again. */
void where_lost(struct where *);
/* The process has become another one. */
void where_forget(struct where *, uint32_t pid);
/* Sets device, context and stream of a call's event: to CT_UNKNOWN what is not known. The call
 * was not given to where_record() yet: what it works on is what was current when it began. */
void where_find(struct where *, struct event *);
size_t where_bytes(const struct where *);

#endif
