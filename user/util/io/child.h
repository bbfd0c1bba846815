/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * child.h - child processes whose ends are waited for by number. Code that waits for any child
 * (source/launch.c) gets their ends too, and hands them in here, so that no status is lost. Not
 * thread-safe.
 */
#ifndef CT_CHILD_H
#define CT_CHILD_H

#include "../types.h"

/* To be called right after the fork: says that the end of this child will be asked for. If there
 * is no room to note it the end may be lost: see child_ended(). */
void child_expect(pid_t);
/* For code that waits for any child: hands in the end of one, with its wait(2) status. The end
 * of a child that nobody expects is forgotten. */
void child_took(pid_t, int status);
/* Returns whether the child has ended; then *status is that of wait(2), or -1 if it is not
 * known. Does not wait. After it has returned true, the child is no longer expected. */
bool child_ended(pid_t, int *status);

#endif
