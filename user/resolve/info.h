/* SPDX-License-Identifier: BSD-2-Clause */
/* info.h - inside the resolve room: reads from /proc what a process is: its program, arguments,
 * rank and container. */
#ifndef CT_INFO_H
#define CT_INFO_H

#include "../event/event.h"
#include "../proc/target.h"

/* Emits the CT_PROCESS_INFO of the process that `rec` (CT_PROCESS, CT_EXEC) is about. t NULL: the
 * process is gone, and nothing is emitted. Returns 0 or the error of emit. */
int info_of_process(struct target *t, const struct ct_hdr *rec, emit_fn emit, void *ctx);

/* Finds the container's id (64 hex digits) and the pod's uid in the text of /proc/PID/cgroup; "" if
 * there is none. */
#define INFO_CONTAINER 65
#define INFO_POD 37
void info_container(const char *cgroup, char container[INFO_CONTAINER], char pod[INFO_POD]);

#endif
