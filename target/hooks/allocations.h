/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocations.h - a table, by address, of the memory that calls of this process have allocated and not
 * freed. It is needed because a call that frees does not say the size. Any thread may use it at any
 * time, and no thread waits. Keys are never 0 or 1; a key of 0 is never found and never added.
 */
#ifndef CT_HOOKS_HELD_H
#define CT_HOOKS_HELD_H

#include <linux/types.h>
#include <stdbool.h>

/* Empties it. 0 or -ENOMEM. */
int held_open(void);
/* Removes a key. Returns whether it was in the table, and its bytes. */
bool held_take(__u64 key, __u64 *bytes);
/* Adds a key; *had: the bytes of an earlier entry with this key, which it replaces. Returns false
 * if there is no room. */
bool held_put(__u64 key, __u64 bytes, __u64 *had);
/* Adds a removed key again. Returns true if the key has been added meanwhile; then that entry stays
 * as it is. */
bool held_back(__u64 key, __u64 bytes);

#endif
