/* SPDX-License-Identifier: BSD-2-Clause */
/* allowance.c - see allowance.h. */
#include "allowance.h"

#include "now.h"

uint64_t *allowance_of(struct allowance *a, uint32_t owner)
{
	uint64_t now = now_ns();
	int oldest = 0;

	for (int i = 0; i < ALLOWANCE_OWNERS; i++) {
		uint64_t *left = &a->owners[i].left_ns;

		if (a->owners[i].at_ns && a->owners[i].owner == owner) {
			*left += (now - a->owners[i].at_ns) / a->part;
			*left = *left < a->max_ns ? *left : a->max_ns;
			a->owners[i].at_ns = now;
			return left;
		}
		if (a->owners[i].at_ns < a->owners[oldest].at_ns)
			oldest = i;
	}
	a->owners[oldest].owner = owner;
	a->owners[oldest].at_ns = now;
	a->owners[oldest].left_ns = a->max_ns;
	return &a->owners[oldest].left_ns;
}

void allowance_take(uint64_t *left_ns, uint64_t began_ns)
{
	uint64_t took = now_ns() - began_ns;

	*left_ns = took < *left_ns ? *left_ns - took : 0;
}
