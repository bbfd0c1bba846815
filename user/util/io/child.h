/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * child.h - child processes whose end is waited for by number. A wait for any child
 * (source/launch.c) takes their ends too, and hands them in here, so that no status is lost. Not
 * thread-safe.
 */
#ifndef CT_CHILD_H
#define CT_CHILD_H

#include "../types.h"

/* Right after its fork: somebody will ask for this child's end. Without room for it the end may
 * be lost: see child_ended(). */
void child_expect(pid_t);
/* For code that waits for any child: the end of one, with its wait(2) status. What nobody expects
 * is forgotten. */
void child_took(pid_t, int status);
/* Has it ended? Then *status is that of wait(2), or -1 if it is not known. Does not wait. Once
 * it said true, the child is no longer expected. */
bool child_ended(pid_t, int *status);

#endif
