/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contexts.h - the context tracker: on which device, context and stream a call works, as far as
 * records report it. It uses calls that say which device or context is a thread's current one, and
 * the agent's CT_CONTEXT and CT_STREAM records, which give the numbers of handles.
 */
#ifndef CT_CONTEXTS_H
#define CT_CONTEXTS_H

#include "../event.h"

struct contexts;
struct contexts *contexts_open(void); /* NULL: no memory */
void contexts_close(struct contexts *);
/* Learns from calls, CT_CONTEXT and CT_STREAM; other records are ignored. Returns 0 or -ENOMEM. */
int contexts_record(struct contexts *, const struct ct_hdr *);
/* A kernel that the thread launched ran on this device and context. If nothing else is known
 * about the thread, these are its current ones. Returns 0 or -ENOMEM. */
int contexts_worked(struct contexts *, uint32_t pid, uint32_t tid, uint32_t device,
		    uint32_t context);
/* The process begins, and every call of it will come. So a thread that chooses no device uses
 * the runtime's default. Returns 0 or -ENOMEM. */
int contexts_began(struct contexts *, uint32_t pid);
/* The device of a context that was reported, by CUPTI's number of the context; CT_UNKNOWN: not
 * known. */
uint32_t contexts_device_of(const struct contexts *, uint32_t pid, uint32_t context);
/* Records were lost: the current device and context of each thread are not known until they are
 * reported again. */
void contexts_lost(struct contexts *);
/* Forgets a process that has become another one. */
void contexts_forget(struct contexts *, uint32_t pid);
/* Sets device, context and stream of a call's event, each to CT_UNKNOWN if it is not known. Call
 * it before the call is given to contexts_record(): a call works on what was current when it
 * began. */
void contexts_find(struct contexts *, struct event *);
size_t contexts_bytes(const struct contexts *);

#endif
