/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * behind.h - a thread that writes to a descriptor what its owner hands over, in that order, so that the
 * owner does not wait for who reads. What waits is bounded. Knows nothing of what is written.
 */
#ifndef CT_BEHIND_H
#define CT_BEHIND_H

#include "../types.h"

struct behind;

/* fd: stays the caller's. is_file: of a disk, so that no reader can keep a write from ending. NULL: no
 * memory, no descriptor, or no thread. */
struct behind *behind_open(int fd, bool is_file);
/* Copies n bytes. It waits only if more than BEHIND_MOST bytes wait; `stop` as out_wait() has it.
 * Returns 0, or the error of the first write that failed, -errno. */
#define BEHIND_MOST (32 << 20)
int behind_put(struct behind *, const void *, size_t n, const volatile int *stop);
/* So much waits that the owner should hand over no more until behind_fd() is readable, which it also is
 * after an error. */
bool behind_full(const struct behind *);
int behind_fd(const struct behind *);
/* The owner has seen that behind_fd() is readable. */
void behind_seen(struct behind *);
/* -errno of the first write that failed; 0: none has. */
int behind_error(const struct behind *);
/* How many bytes have been written. */
uint64_t behind_written(const struct behind *);
/* Waits until all is written, ends the thread and frees it; `stop` as out_wait() has it. Returns as
 * behind_put(). What was not written by then is dropped. */
int behind_close(struct behind *, const volatile int *stop, uint64_t *written);

#endif
