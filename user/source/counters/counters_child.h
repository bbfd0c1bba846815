/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_child.h - the helper process that reads the counters: started from memory, ended and
 * reaped. Knows nothing of what it says.
 */
#ifndef CT_COUNTERS_CHILD_H
#define CT_COUNTERS_CHILD_H

#include "../../util/types.h"

struct counters_child {
	pid_t pid;
	int pidfd;  /* -1: the kernel has none (before 5.3) */
	int fd;	    /* our end of the socket; -1: none */
	bool ended; /* and reaped */
	int status; /* as wait(2) has it, once ended; -1: it is not known */
};

/* Starts the helper; argv[COUNTERS_ARG_FD] is filled in. argv needs room for it, and ends with
 * NULL. Returns 0, or -errno after one message. */
int counters_child_open(struct counters_child *, char *argv[]);
/* Asks it to end: what it still has to say can be read until end of file. */
void counters_child_stop(struct counters_child *);
/* Whether it has ended; waits for it for so long. */
bool counters_child_wait(struct counters_child *, int ms);
/* Ends it in any case. Safe on a struct whose open failed. */
void counters_child_close(struct counters_child *);

/* The helper's program, in this one (counters_image.c). */
extern const char counters_image_begin[], counters_image_end[];

#endif
