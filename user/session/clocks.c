/* SPDX-License-Identifier: BSD-2-Clause */
/* clocks.c - see clocks.h. */
#include <time.h>

#include "clocks.h"
#include "../util/now.h"

/* Reads the other clocks between two readings of CLOCK_MONOTONIC. It does so several times and
 * keeps the try in which the two readings are closest. */
void clocks_read(struct ct_clock *c)
{
	*c = (struct ct_clock){ .h = { .size = sizeof(*c), .kind = CT_CLOCK },
				.error_ns = UINT64_MAX };
	for (int i = 0; i < 5; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), realtime = clock_ns(CLOCK_REALTIME),
			 boottime, after;

		boottime = clock_ns(CLOCK_BOOTTIME);
		after = clock_ns(CLOCK_MONOTONIC);
		if (after - before >= c->error_ns)
			continue;
		c->error_ns = after - before;
		c->h.start_ns = c->h.end_ns = before + (after - before) / 2;
		c->realtime_ns = realtime;
		c->boottime_ns = boottime;
	}
}
