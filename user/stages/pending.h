/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pending.h - which calls that have not returned were shown already (--unfinished). The source
 * tells of each at every asking; a call is shown once.
 */
#ifndef CT_PENDING_H
#define CT_PENDING_H

#include "../event/event.h"

struct pending_call {
	uint32_t tid, func;
	uint64_t start_ns;
};

struct pending {
	struct pending_call *now, *before; /* of this asking, and of the one before */
	int nnow, nbefore;
};

void pending_begin(struct pending *);
/* True when this call was not told of before. False without memory, too: better a row less than
 * one each time. */
bool pending_is_new(struct pending *, const struct ct_call *);
void pending_close(struct pending *);

#endif
