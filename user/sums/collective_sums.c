/* SPDX-License-Identifier: BSD-2-Clause */
/* collective_sums.c - see collective_sums.h. */
#include <errno.h>
#include <stdlib.h>

#include "../event/scopes/moved.h"
#include "collective_sums.h"

int collective_sums_add(struct collective_sums *c, const struct scope_line *line, uint64_t ns,
			bool first)
{
	double bus;
	uint64_t bytes = moved_bytes(line, &bus);

	if (!c->sizes)
		c->sizes = calloc(COLLECTIVE_SIZES, sizeof(*c->sizes));
	if (!c->sizes)
		return -ENOMEM;
	c->moved_ns += ns;
	if (!first || !bytes)
		return 0;
	c->smallest = !c->bytes || bytes < c->smallest ? bytes : c->smallest;
	c->largest = bytes > c->largest ? bytes : c->largest;
	c->bytes += bytes;
	c->bus_bytes += bus * (double)bytes;
	c->sizes[64 - __builtin_clzll(bytes)]++;
	return 0;
}

void collective_sums_free(struct collective_sums *c)
{
	free(c->sizes);
	c->sizes = NULL;
}
