/* SPDX-License-Identifier: BSD-2-Clause */
/* launch_child.h - the child of launch.c until its execve(2): which file, as which user, with
 * which environment. */
#ifndef CT_LAUNCH_CHILD_H
#define CT_LAUNCH_CHILD_H

#include "../../util/types.h"

struct launch_child {
	pid_t pid;
	int fd; /* a byte sent here lets it exec; what comes is an errno */
};

/* Forks a child that takes on the user (NULL: stays) and waits for launch_child_go(); if we die
 * it ends. What env means is in plan.h. Returns 0, or -errno after one message; then there is no
 * child. */
int launch_child_fork(struct launch_child *, char *const cmd[], const char *user,
		      char *const env[]);
int launch_child_go(const struct launch_child *);
/* Once the child has ended and never exec'd: the errno of its execve(2), 0 if something else
 * ended it. */
int launch_child_exec_error(const struct launch_child *);
void launch_child_close(struct launch_child *); /* the socket; the child is the caller's */

#endif
