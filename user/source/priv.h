/* SPDX-License-Identifier: BSD-2-Clause */
/* priv.h - what the tracer is allowed to do, before it tries. */
#ifndef CT_PRIV_H
#define CT_PRIV_H

#include "../util/types.h"

/* The capabilities that tracing needs and this process lacks, as "CAP_BPF, CAP_PERFMON"; "" when none. others: processes
 * of other users, or the whole machine, are to be traced (CAP_SYS_PTRACE). */
const char *priv_missing(bool others, char *buf, size_t size);

/* Checks the same and says what to type. Returns 0 or -EPERM after one message. */
int priv_check(bool others);

/* A thread's process (its tgid) and how it is seen: all from /proc/TID/status. */
struct priv_task {
	pid_t tgid;
	int seccomp;  /* 0 off, 1 strict, 2 filter */
	char comm[16];
};
/* Returns 0, or -ESRCH. */
int priv_task(pid_t tid, struct priv_task *out);

/* True when we are in the initial pid namespace, where our ids are those of the records. */
bool priv_initial_pid_ns(void);

#endif
