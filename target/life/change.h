/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * change.h - one change of the hooks at a time, and what a thread of the program must keep as it was while it does more for us than
 * to ring.
 */
#ifndef CT_HOOKS_CHANGE_H
#define CT_HOOKS_CHANGE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "../common/sys.h"

extern pid_t hooks_pid; /* of this process */

/* While a thread of the program does more for us than to ring: no handler of the program runs there, which
 * could find our descriptors or fork, nothing cancels the thread, and errno stays. */
struct quiet {
	sigset_t signals;
	int cancel, errno_was;
};

bool change_try(void);
void change_ends(void);
void change_nap(void);
void change_begins(void);
void quiet_begins(struct quiet *q);
void quiet_ends(const struct quiet *q);
/* Returns false in a child that has its parent's memory (vfork()) or that libc does not know of:
 * what it does to itself must not change its parent's hooks. */
bool is_own_process(void);

#endif
