/* SPDX-License-Identifier: BSD-2-Clause */
/* moved.c - see moved.h. */
#include "moved.h"

uint64_t moved_bytes(const struct scope_line *c, double *bus)
{
	double n = c->ranks;

	*bus = 1;
	if (!c->bytes || (c->ranks == CT_UNKNOWN && c->how != CT_COLLECTIVE_ROOTED &&
			  c->how != CT_COLLECTIVE_PEER))
		return 0;
	switch (c->how) {
	case CT_COLLECTIVE_WHOLE: *bus = n ? 2 * (n - 1) / n : 0; return c->bytes;
	case CT_COLLECTIVE_PARTS:
		*bus = n ? (n - 1) / n : 0;
		return c->bytes > UINT64_MAX / (c->ranks ? c->ranks : 1) ? 0 : c->bytes * c->ranks;
	case CT_COLLECTIVE_ROOTED:
	case CT_COLLECTIVE_PEER: return c->bytes;
	default: return 0;
	}
}

double moved_on_bus(const struct scope_line *line)
{
	double bus;

	if (!line || line->members > 1)
		return 0;
	return (double)moved_bytes(line, &bus) * bus;
}
