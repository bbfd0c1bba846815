/* SPDX-License-Identifier: BSD-2-Clause */
/* hang_stacks.h - the stacks of all threads of processes, native and Python's, as text. No thread is stopped. */
#ifndef CT_HANG_STACKS_H
#define CT_HANG_STACKS_H

#include "../../source/source.h"
#include "../../util/io/out.h"
#include "../stuck_look.h"
#include "../stuck_stack.h"
#include "endings.h"

struct objects;

/* rows: the threads that are inside calls. It takes no new thread once until_ns (CLOCK_MONOTONIC) is over, and
 * says so in the text. Returns 0 or -errno. */
int hang_stacks(struct source *, struct objects *, const pid_t *pids, int npids,
		const struct stuck_row *rows, size_t nrows, uint64_t until_ns, struct out *);

/* The threads of a process that a signal ended, as they were then; of the stacks those that know() was called for. */
void hang_stacks_ended(struct stuck_stacks *, const struct ended_process *, struct out *);

#endif
