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

#endif
