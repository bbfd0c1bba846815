/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pending.h - remembers which calls that have not returned were already shown (--unfinished). The
 * source reports all of them each time it is asked; each call is shown once.
 */
#ifndef CT_PENDING_H
#define CT_PENDING_H

#include "../event/event.h"

struct pending_call {
	uint32_t tid, func;
	uint64_t start_ns;
};

struct pending {
	struct pending_call *now, *before; /* the calls reported this time, and the time before */
	int nnow, nbefore;
};

void pending_begin(struct pending *);
/* Returns true if this call was not reported the time before. Returns false also when there is no
 * memory: one missing row is better than one row each time. */
bool pending_is_new(struct pending *, const struct ct_call *);
void pending_close(struct pending *);

#endif
