/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps.h - inside discover: which files processes have mapped for execution, and how to get at
 * such a file.
 */
#ifndef CT_MAPS_H
#define CT_MAPS_H

#include <sys/stat.h>

#include "../../util/types.h"

/* One mapping. `pid` is in our namespace (ns_pid is not used any more). A negative return stops. */
typedef int (*maps_fn)(void *ctx, const struct ct_vma *);

/* Lists the executable file mappings of a process (pid 0: of all processes), by the iterator
 * program, or, with prog_fd -1, from /proc. A process that is gone or ends meanwhile is no
 * error. Returns their number or -errno (fn's too). */
int maps_read(int prog_fd, pid_t pid, maps_fn fn, void *ctx);

/* The file behind a mapping, through the process: also when it was deleted, and in another mount
 * namespace. The caller closes. -EPERM, -ENOENT (the process or mapping is gone), -EINVAL (no
 * regular file). */
int maps_open(const struct ct_vma *);
/* fstat(2) of that file without opening it. 0 or -errno. */
int maps_stat(const struct ct_vma *, struct stat *);
/* Is the mapping still there? True where that cannot be known. */
bool maps_there(const struct ct_vma *);
/* Its name as the process sees it, into buf; "" when it cannot be had. */
void maps_name(const struct ct_vma *, char *buf, size_t len);

/* A device number as ct_vma has it. */
uint64_t maps_dev(dev_t);

#endif
