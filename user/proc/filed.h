/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filed.h - memory of a process that was not resident when it was wanted, read from the file that
 * is mapped there.
 *
 * Wrong is worse than none. A page is taken from the file only if it held what is in the file: a
 * private mapping of a regular file, on a file system that no user serves, of which no page was
 * written to (or, by the page tables, not these); and only if the file is still of the version
 * that it had at that moment (inode, size, time of change), which the kernel side noted.
 */
#ifndef CT_FILED_H
#define CT_FILED_H

#include "target.h"

struct filed;
/* The name of a file that a process has mapped lately, by its inode's number. False: not known. */
typedef bool (*filed_recent_fn)(void *ctx, uint64_t ino, char *name, size_t size);
/* recent NULL: there is nobody to ask. NULL: no memory. */
struct filed *filed_open(filed_recent_fn recent, void *ctx);
void filed_close(struct filed *); /* takes NULL */

/*
 * Copies up to len bytes from `skip` bytes behind a->address on. t NULL: the process is gone; what
 * was read before may do. Returns their number, less than len at the end of the mapping or of the
 * file, or
 *   -ENOENT     there is no such mapping of a file: nothing is known of the memory
 *   -EREMOTE    the file is on a file system that a user or another machine serves
 *   -ESTALE     the file is not any more what it was, or the memory is not what is in the file
 *   -ESRCH, -ETIMEDOUT, -EBUSY and others as target_open_map().
 */
ssize_t filed_read(struct filed *, struct target *t, const struct ct_absent *a, uint64_t skip,
		   void *buf, size_t len);

/* Closes what was not read for a while. */
void filed_idle(struct filed *);

#endif
