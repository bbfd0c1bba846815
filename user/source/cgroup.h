/* SPDX-License-Identifier: BSD-2-Clause */
/* cgroup.h - cgroups (v2): the id that the kernel knows one by, and how much memory one may take. */
#ifndef CT_CGROUP_H
#define CT_CGROUP_H

#include "../util/types.h"

/* path: a directory of the cgroup2 mount, or a path below its root as /proc/PID/cgroup shows it.
 * Returns 0, or -errno after one message. */
int cgroup_id(const char *path, uint64_t *id);
/* The least memory.max of the cgroup that the file `self` names (as /proc/self/cgroup does) and
 * of those above it, up to the mount `root`; version 1's memory.limit_in_bytes below
 * `root`/memory likewise. UINT64_MAX: there is no limit, or it is not known. */
uint64_t cgroup_memory_max(const char *root, const char *self);
/* The memory, in bytes, that this process may take: the machine's, or what its cgroup allows,
 * whichever is less. */
uint64_t cgroup_memory_here(void);
/* `want` bytes, or less where they are more than a quarter of that: for records that wait. The program
 * may be in the same cgroup. */
uint64_t cgroup_memory_part(uint64_t want);
/* `want` things of so many bytes each, or as many as fit one of so many parts of the memory that this
 * process may take; not less than one. */
uint32_t cgroup_memory_fit(uint32_t want, size_t each, unsigned int parts);

#endif
