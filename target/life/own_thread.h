/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own_thread.h - the thread of the hooks: it is started, ended and started again, and does what the peer and the program want of it.
 */
#ifndef CT_HOOKS_OWN_THREAD_H
#define CT_HOOKS_OWN_THREAD_H

#include <linux/types.h>
#include <stdbool.h>

#include "../common/along.h"

extern __u32 thread_tid;   /* of our thread; 0: there is none, or it does not run yet */
extern bool thread_begins; /* there is such a thread, or it is being started */
/* Why our thread must end, and take the hooks off. */
extern struct thread_ends {
	bool sandboxed;	  /* the system calls of all threads are about to be restricted */
	bool to_be_alone; /* the program makes a call that needs a process with one thread */
	bool to_share; /* the program is about to make a child that shares its memory and the areas of its threads */
	bool no_clock;	/* a thread of the program will not be able to take times; this stays */
	bool unnoticed; /* the same, and the thread is so far already */
} thread_ends;
extern bool filter_is_known; /* the program restricts its system calls */
extern bool thread_pausing;  /* our thread must end, and the hooks stay */
/* How the connection, and what was kept, go to our thread; own: it has, or had, a descriptor table of its own. */
extern struct along thread_along;

/* Makes our threads known to the other objects of ours in the process (alone.h): from the constructor. */
void thread_meet(void);
/* Starts the thread of the hooks, which takes the connection of the calling thread over. Its thread id is
 * known only once it runs. Returns 0 or -errno. */
int thread_begin(void *begins);
/* Must the thread of the hooks take the hooks off and end? */
bool thread_must_end(void);
/* Makes the thread of the hooks take the hooks off and end, and waits for that. */
void thread_end(bool *why);
/* The same in a thread that may make no system call, for it has a filter: by memory alone, so that it may take a
 * second. */
void thread_end_in_filter(bool *why);
/*
 * Makes the thread of the hooks end, and waits for that; the hooks stay, and the calling thread, which is the
 * only one of the program, has the descriptors. Returns false if it could not be done so: then the hooks
 * have been taken off.
 */
bool thread_pause(void);
/* Starts the thread again, when the call has returned for which it was ended. */
void thread_resume(void);

#endif
