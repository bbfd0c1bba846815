/* SPDX-License-Identifier: BSD-2-Clause */
/* cgroup.h - the id that the kernel knows a cgroup (v2) by. */
#ifndef CT_CGROUP_H
#define CT_CGROUP_H

#include "../util/types.h"

/* path: a directory of the cgroup2 mount, or a path below its root as /proc/PID/cgroup shows it. Returns 0, or -errno
 * after one message. */
int cgroup_id(const char *path, uint64_t *id);

#endif
