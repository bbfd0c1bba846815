/* SPDX-License-Identifier: BSD-2-Clause */
/* info.h - inside the resolve room: what a process is, as /proc tells: its program, arguments,
 * rank, container. */
#ifndef CT_INFO_H
#define CT_INFO_H

#include "../event/event.h"
#include "../proc/target.h"

/* Emits the CT_PROCESS_INFO of the process that `rec` (CT_PROCESS, CT_EXEC) tells of. t NULL: it
 * is gone, nothing is emitted. Returns 0 or emit's. */
int info_of_process(struct target *t, const struct ct_hdr *rec, emit_fn emit, void *ctx);

/* The container's id (64 hex digits) and the pod's uid in the text of /proc/PID/cgroup; "" where
 * there is none. */
#define INFO_CONTAINER 65
#define INFO_POD 37
void info_container(const char *cgroup, char container[INFO_CONTAINER], char pod[INFO_POD]);

#endif
