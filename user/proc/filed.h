/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filed.h - reads memory of a process that was not resident when it was needed, from the file that
 * is mapped there.
 *
 * Wrong data is worse than none. So a page is read from the file only if it had the same contents
 * as the file. That holds for a private mapping of a regular file, on a file system that no user
 * serves, if no page of the mapping was written to (or the page tables show that these pages were
 * not). The file must also still have the version (inode, size, time of change) that it had at that
 * moment, which the kernel side recorded.
 */
#ifndef CT_FILED_H
#define CT_FILED_H

#include "../../wire/cudatrace.h"
#include "target.h"
#include "../../wire/cudatrace.h"

struct filed;
/* Finds the name of a file that a process has mapped recently, by its inode number. False: not
 * known. */
typedef bool (*filed_recent_fn)(void *ctx, uint64_t ino, char *name, size_t size);
/* `recent` may be NULL. Returns NULL if there is no memory. */
struct filed *filed_open(filed_recent_fn recent, void *ctx);
void filed_close(struct filed *); /* takes NULL */

/*
 * Copies up to len bytes that begin `skip` bytes after a->address. t NULL: the process is gone, and
 * only what was read before can be used. Returns the number of bytes, which is less than len at the
 * end of the mapping or of the file, or
 *   -ENOENT     there is no such mapping of a file: nothing is known of the memory
 *   -EREMOTE    the file is on a file system that a user or another machine serves
 *   -ESTALE     the file has changed, or the memory differs from the file
 *   -ESRCH, -ETIMEDOUT, -EBUSY and others as target_open_map().
 */
ssize_t filed_read(struct filed *, struct target *t, const struct ct_absent *a, uint64_t skip,
		   void *buf, size_t len);

/* Closes the files that were not read for a while. */
void filed_idle(struct filed *);

#endif
