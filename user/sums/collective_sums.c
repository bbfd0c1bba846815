/* SPDX-License-Identifier: BSD-2-Clause */
/* collective_sums.c - see collective_sums.h. */
#include <errno.h>
#include <stdlib.h>

#include "../event/scopes/moved.h"
#include "../util/units.h"
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

/* GB/s, 10^9 bytes. */
static double rate(double bytes, uint64_t ns)
{
	return ns ? bytes / (double)ns : 0;
}

void collective_sums_heads(struct out *o)
{
	out_fmt(o, " %9s %10s %9s %9s", "Exposed%", "Bytes", "Alg GB/s", "Bus GB/s");
}

void collective_sums_columns(const struct collective_sums *c, struct out *o)
{
	char bytes[32];

	if (c->kernels_ns)
		out_fmt(o, " %9.2f", 100 * (double)c->exposed_ns / (double)c->kernels_ns);
	else
		out_fmt(o, " %9s", "-");
	if (!c->bytes) {
		out_fmt(o, " %10s %9s %9s", "-", "-", "-");
		return;
	}
	out_fmt(o, " %10s %9.2f %9.2f", print_bytes(bytes, sizeof(bytes), (double)c->bytes),
		rate((double)c->bytes, c->moved_ns), rate(c->bus_bytes, c->moved_ns));
}

void collective_sums_json(const struct collective_sums *c, struct json *j)
{
	if (c->kernels_ns)
		json_put_u64(j, "exposed_ns", c->exposed_ns);
	if (!c->bytes)
		return;
	json_put_u64(j, "bytes", c->bytes);
	json_put_u64(j, "min_bytes", c->smallest);
	json_put_u64(j, "max_bytes", c->largest);
	json_put_u64(j, "moved_ns", c->moved_ns);
	json_put_real(j, "alg_gbps", 3, rate((double)c->bytes, c->moved_ns));
	json_put_real(j, "bus_gbps", 3, rate(c->bus_bytes, c->moved_ns));
	json_open_array(j, "sizes");
	for (int i = 1; i < COLLECTIVE_SIZES; i++) {
		if (!c->sizes[i])
			continue;
		json_open_object(j, NULL);
		json_put_u64(j, "from_bytes", 1ULL << (i - 1));
		json_put_u64(j, "count", c->sizes[i]);
		json_end(j);
	}
	json_end(j);
}
