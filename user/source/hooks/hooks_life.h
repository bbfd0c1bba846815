/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_life.h - how a process with hooks goes on and ends, and the records about that. No kernel
 * side tells of it: a descriptor of the process does, and /proc. Knows no socket.
 */
#ifndef CT_HOOKS_LIFE_H
#define CT_HOOKS_LIFE_H

#include "hooks_ring.h"

struct hooks_life {
	pid_t pid;
	uid_t uid;		    /* effective; of the process's begin */
	int pidfd;		    /* -1: this kernel has none */
	uint64_t layout[3];	    /* host_layout() */
	bool other;		    /* the process ran another program before (exec), */
	bool replaced;		    /* or runs another one by now */
	uint64_t gone_ns, ended_ns; /* since when it and its connection are gone; 0: not yet */
};

#define HOOKS_STATUS_UNKNOWN (-1)

void hooks_life_open(struct hooks_life *, pid_t);
void hooks_life_close(struct hooks_life *);
/* Has it ended? From then on gone_ns is set. */
bool hooks_life_gone(struct hooks_life *);
/* Does it run another program than it did at hooks_life_open()? */
bool hooks_life_executed(const struct hooks_life *);
/* As wait(2) gives it; HOOKS_STATUS_UNKNOWN. */
int hooks_life_status(const struct hooks_life *);
/* Is it a child of this process, or of the same user? */
bool hooks_life_is_kin(const struct hooks_life *parent, pid_t child, uid_t uid);

/* Adds a CT_PROCESS or CT_EXEC with what /proc says; nothing, when it is gone. 0 or -ENOMEM, as the
 * next ones. */
int hooks_life_tell(struct hooks_batch *, enum ct_kind, pid_t, uint64_t ns);
int hooks_life_fork(struct hooks_batch *, pid_t parent, uint32_t tid, pid_t child, uint64_t ns);
int hooks_life_exit(struct hooks_batch *, pid_t, int status, uint64_t ns);

#endif
