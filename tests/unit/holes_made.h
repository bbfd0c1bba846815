/* SPDX-License-Identifier: BSD-2-Clause */
/* holes_made.h - rows of what was not seen, for the tests of outputs. The caller closes them. */
#ifndef HOLES_MADE_H
#define HOLES_MADE_H

#include <stdlib.h>

#include "../../user/event/holes/holes.h"

/* Processes that ran, the longest for `ns`, before their calls were seen. */
static inline struct holes *holes_of_unprobed(uint32_t processes, uint32_t ended, uint64_t ns,
					      bool more)
{
	struct ct_unprobed u = { .h = { .size = sizeof(u),
					.kind = CT_UNPROBED,
					.start_ns = 1000000000,
					.end_ns = 1000000000 + ns },
				 .processes = processes,
				 .ended = ended,
				 .more = more };
	struct holes *h = holes_open();

	if (holes_record(h, &u.h, NULL))
		abort();
	return h;
}

/* A number that a source states. */
static inline struct holes *holes_of_number(enum ct_hole_reason reason, uint64_t count)
{
	struct ct_hole r = hole_of(0, CT_HOLE_CALLS, CT_HOLE_REFUSED, reason);
	struct holes *h = holes_open();

	r.count = count;
	if (holes_record(h, &r.h, NULL))
		abort();
	return h;
}

#endif
