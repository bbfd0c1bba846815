/* SPDX-License-Identifier: BSD-2-Clause */
/* running.h - the processes of this machine. */
#ifndef CT_RUNNING_H
#define CT_RUNNING_H

#include "../util/types.h"

/* The numbers of all processes, in our pid namespace; the caller frees *list. Returns how many, or
 * -errno. */
int running_pids(pid_t **list);

/* The same of those whose name is this one, as the kernel has it (15 bytes of it), but for ourselves. */
int running_named(const char *name, pid_t **list);

/* A thread, as the kernel describes it. */
struct running_thread {
	pid_t tid;
	char name[16];
	char state;    /* as ps(1) shows it: R runs, S sleeps, D waits for a device, T is stopped */
	char wait[32]; /* where in the kernel it sleeps: "futex_wait_queue"; "" is not known */
};
/* The threads of a process, at most max, the main thread first if it is there. Returns how many, or
 * -errno. */
int running_threads(pid_t pid, struct running_thread *, int max);

#endif
