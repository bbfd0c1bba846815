/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * targets.h - inside the resolve room: the processes that are being read, each opened once, when
 * it is first needed.
 */
#ifndef CT_TARGETS_H
#define CT_TARGETS_H

#include "../event/event.h"
#include "../proc/target.h"

struct targets;
/* procs is asked for numbers and start times. closing() is told before a target is closed. NULL:
 * no memory. */
struct targets *targets_open(struct process_table *procs, void (*closing)(void *ctx, uint32_t pid),
			     void *ctx);
void targets_close(struct targets *); /* takes NULL; closing() is not called */
/* The process; NULL: it is gone, or not to be read. now_ns: the newest record's time. Valid
 * until the next call. */
struct target *targets_get(struct targets *, uint32_t pid, uint64_t now_ns);
/* Is the one that is open under the number, if any, the process that the record tells of? */
bool targets_same(struct targets *, const struct ct_process *);
/* It became another program, or its number another process's: what is open is the old one. */
void targets_drop(struct targets *, uint32_t pid);
/* It ended: it is closed when its last records are through. */
void targets_exited(struct targets *, uint32_t pid, uint64_t now_ns);

#endif
