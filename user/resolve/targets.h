/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * targets.h - inside the resolve room: keeps the processes that are being read. Each is opened
 * once, when it is first needed.
 */
#ifndef CT_TARGETS_H
#define CT_TARGETS_H

#include "../event/event.h"
#include "../proc/target.h"

struct targets;
/* procs is used to look up numbers and start times. closing() is called before a target is closed.
 * NULL: no memory. */
struct targets *targets_open(struct process_table *procs, void (*closing)(void *ctx, uint32_t pid),
			     void *ctx);
void targets_close(struct targets *); /* takes NULL; closing() is not called */
/* Returns the process. NULL: it is gone, or it must not be read. now_ns: the time of the newest
 * record. Valid until the next call. */
struct target *targets_get(struct targets *, uint32_t pid, uint64_t now_ns);
/* Whether the process that is open under the number, if any, is the one that the record
 * describes. */
bool targets_same(struct targets *, const struct ct_process *);
/* Call this when the process became another program, or its number was reused: what is open is the
 * old one. */
void targets_drop(struct targets *, uint32_t pid);
/* Call this when the process ended: it is closed after its last records were handled. */
void targets_exited(struct targets *, uint32_t pid, uint64_t now_ns);
/* To be called now and then: closes those that ended a while ago. */
void targets_tidy(struct targets *, uint64_t now_ns);

#endif
