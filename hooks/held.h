/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held.h - memory that calls of this process allocated and that is not freed yet, by address: a call
 * that frees does not say the size. Any thread may use it at any time, and no thread waits. Keys are
 * never 0 or 1; a key of 0 is not there, and is not taken.
 */
#ifndef CT_HOOKS_HELD_H
#define CT_HOOKS_HELD_H

#include <linux/types.h>
#include <stdbool.h>

/* Empties it. 0 or -ENOMEM. */
int held_open(void);
/* Takes a key out. Returns whether it was there, and its bytes. */
bool held_take(__u64 key, __u64 *bytes);
/* Puts a key in; *had: the bytes of the one that was there before, which it replaces. False: there
 * is no room. */
bool held_put(__u64 key, __u64 bytes, __u64 *had);
/* Puts back a key that was taken out. True: it has come again in the meantime, and stays as it is. */
bool held_back(__u64 key, __u64 bytes);

#endif
