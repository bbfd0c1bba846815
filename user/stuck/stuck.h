/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck.h - `cudatrace stuck` from beginning to end. */
#ifndef CT_STUCK_H
#define CT_STUCK_H

#include "../cli/options/opts.h"
#include "../source/source.h"

#define STUCK_SOME \
	4 /* the exit status when some thread is inside a call for so long, or a rank absent */
#define STUCK_UNDECIDED 5 /* when none is known to be, but it cannot be told of some thread */

/* Prints the threads that are inside a CUDA call for o->over_ns, once or, with o->watch, until
 * SIGINT. Returns the exit status: 0 for none, STUCK_SOME, STUCK_UNDECIDED, 1 after an error. */
int stuck_run(const struct opts *, const struct source_ops *);

#endif
