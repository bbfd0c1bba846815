/* SPDX-License-Identifier: BSD-2-Clause */
/* priv.h - what the tracer is allowed to do, before it tries. */
#ifndef CT_PRIV_H
#define CT_PRIV_H

#include "attach_kind.h"
#include "../../flow/plan.h"

/* The capabilities that tracing needs and this process lacks, as "CAP_BPF, CAP_PERFMON"; "" when
 * none. others: processes of other users, or the whole machine, are to be traced
 * (CAP_SYS_PTRACE). */
const char *priv_missing(bool others, char *buf, size_t size);

/* What this kind of probe needs on this kernel beyond that, and this process lacks.
 * CAP_SYS_ADMIN: to load the programs before Linux 6.13, for uprobes as perf events, for any
 * perf event where the kernel refuses them to CAP_PERFMON (Debian's do with
 * kernel.perf_event_paranoid=3), and to mount tracefs where it is not. CAP_DAC_OVERRIDE: to open
 * tracefs as another user than root. */
const char *priv_missing_for(enum attach_kind, char *buf, size_t size);

/*
 * Gives up what neither the probes nor the plan need from here on, and the right to get more by
 * executing a program. Before there are threads, and behind the fork of what shall have the
 * user's own privileges. The programs are loaded.
 */
void priv_drop(enum attach_kind, const struct capture_plan *);
/* Has the calling thread run before all that has no real-time priority, if that is allowed: others
 * wait for its answers. priv_first_set() gives up, for the calling thread, what priv_drop() has kept
 * for this; priv_first() does so too. */
void priv_first(void);
void priv_first_set(void);

/* Checks the same and says what to type. Returns 0 or -EPERM after one message. */
int priv_check(bool others);

#endif
