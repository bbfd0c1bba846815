/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_stop.h - which thread to stop, and whether it stands where it may be made to call dlopen.
 */
#ifndef CT_INJECT_STOP_H
#define CT_INJECT_STOP_H

#include "inject_code.h"
#include "inject_remote.h"

struct inject_place {
	pid_t pid;
	struct target *target;
	const struct inject_code *code;
	const struct inject_what *what;
	int tries;
	pid_t tid;	 /* the last one that was stopped or looked at, 0: none, and */
	const char *why; /* where it was */
	bool in_futex;	 /* it waits by futex(2) */
};

/* Stops threads, one at a time, until one is at a safe point. Returns 0 (it stands), -EAGAIN
 * (none within the limit), or what inject_remote_open() returned. inject_remote_close() in any
 * case. */
int inject_stop(struct inject_remote *, struct inject_place *);

#endif
