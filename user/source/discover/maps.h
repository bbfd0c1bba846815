/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps.h - inside discover: which files processes have mapped for execution, and how to get at
 * such a file.
 */
#ifndef CT_MAPS_H
#define CT_MAPS_H

#include <errno.h>
#include <sys/stat.h>

#include "../../util/types.h"
#include "../../../wire/cudatrace.h"

struct ct_vma; /* wire/control.h */

/* One mapping. `pid` is in our namespace (ns_pid is not used any more). A negative return stops. */
typedef int (*maps_fn)(void *ctx, const struct ct_vma *);

/* Lists the executable file mappings of a process (pid 0: of all processes), by the iterator
 * program, or, with prog_fd -1, from /proc. A process that is gone or ends meanwhile is no
 * error. Returns their number or -errno (fn's too). -EAGAIN: it takes too long to list the process,
 * or its user has had his share of our time; with pid 0, fn has seen those of all others. */
int maps_read(int prog_fd, pid_t pid, maps_fn fn, void *ctx);

/* Is it that we lack descriptors or memory? It says nothing of a process, and may be over soon. */
static inline bool maps_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/* The processes that were left out when maps_read() of all returned -EAGAIN; of many, the last
 * ones. Returns their number. */
#define MAPS_UNLISTED 32
int maps_unlisted(const pid_t **);

/* The file behind a mapping, through the process: also when it was deleted, and in another mount
 * namespace. The caller closes. -EPERM, -ENOENT (the process or mapping is gone), -EINVAL (no
 * regular file), -EAGAIN (as above). */
int maps_open(const struct ct_vma *);
/* fstat(2) of that file without opening it, as far as this machine knows it: a file server is not
 * asked. 0 or -errno. */
int maps_stat(const struct ct_vma *, struct stat *);
/* Is the mapping still there? True where that cannot be known. */
bool maps_there(const struct ct_vma *);
/* Its name as the process sees it, into buf; "" when it cannot be had. */
void maps_name(const struct ct_vma *, char *buf, size_t len);

/* Processes are traced that the user did not choose: each user's have an allowance of our time,
 * except root's and our own user's. Without this call everybody is waited for up to the limit. */
void maps_impatient(bool);
/* A worker calls it when it begins to list a process (0: all). NULL, except in tests. */
extern void (*maps_begins)(pid_t pid);

/* A device number as ct_vma has it. */
uint64_t maps_dev(dev_t);

#endif
