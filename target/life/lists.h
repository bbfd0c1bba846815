/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lists.h - what the peer wants to have hooked, and its other settings.
 */
#ifndef CT_HOOKS_LISTS_H
#define CT_HOOKS_LISTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

extern bool loader_is_hooked; /* the function of the dynamic loader */

/* Reports to the peer that functions were hooked late: some get their hooks only when the loader
 * binds a slot through which they are called. */
void late_say(void);
/* An earlier connection, or the parent, may have left an incomplete list: forgets it. */
void list_begin(void);
/* *last: whether this is the last message of a list. If so, *number is the number of the question
 * that the list answers. */
int list_take(size_t size, bool *last, __u32 *number);
void loader_hook(void);
void specs_take(size_t size);
void python_take(void);
void mute_take(void);

#endif
