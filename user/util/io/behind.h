/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * behind.h - a thread that writes what its owner hands over to a descriptor, in that order, so that
 * the owner does not wait for the reader. The queue is bounded. Knows nothing of what is written.
 */
#ifndef CT_BEHIND_H
#define CT_BEHIND_H

#include "../types.h"

struct behind;

/* fd stays the caller's. is_file: it is a file on a disk, so that no reader can keep a write
 * from ending. Returns NULL if there is no memory, no descriptor or no thread. */
struct behind *behind_open(int fd, bool is_file);
/* Copies n bytes. It waits only if more than BEHIND_MOST bytes wait; `stop` as out_wait() has it.
 * Returns 0, or the error of the first write that failed, -errno. */
#define BEHIND_MOST (32 << 20)
int behind_put(struct behind *, const void *, size_t n, const volatile int *stop);
/* Whether so much waits that the owner should hand over no more until behind_fd() is readable.
 * behind_fd() is also readable after an error. */
bool behind_full(const struct behind *);
int behind_fd(const struct behind *);
/* Tells that the owner has seen that behind_fd() is readable. */
void behind_seen(struct behind *);
/* Returns -errno of the first write that failed; 0 if none has failed. */
int behind_error(const struct behind *);
/* Returns how many bytes have been written. */
uint64_t behind_written(const struct behind *);
/* Waits until all is written, ends the thread and frees it; `stop` as out_wait() has it. Returns as
 * behind_put(). What was not written by then is dropped. */
int behind_close(struct behind *, const volatile int *stop, uint64_t *written);

#endif
