/* SPDX-License-Identifier: BSD-2-Clause */
/* block_report.c - see block_report.h. */
#include <string.h>

#include "block_report.h"

bool block_report(const struct ct_call *c, struct block_report *said)
{
	struct field args[EVENT_MAX_FIELDS];
	int n = api_layer_reports(&api_funcs[c->func])
			? api_decode(c, API_ARCH_HERE, args, EVENT_MAX_FIELDS)
			: 0;

	memset(said, 0, sizeof(*said));
	for (int i = 0; i < n; i++) {
		const struct field *arg = &args[i];

		if (!arg->name || arg->absent)
			continue;
		if (!strcmp(arg->name, "ptr"))
			said->address = arg->u;
		else if (!strcmp(arg->name, "alloc_size"))
			said->size = (int64_t)arg->u;
		else if (!strcmp(arg->name, "total_allocated"))
			said->allocated = arg->u;
		else if (!strcmp(arg->name, "total_reserved"))
			said->reserved = arg->u;
		else if (!strcmp(arg->name, "device")) {
			said->type = arg->u & 0xff;
			said->device = arg->u >> 8 & 0xff;
		}
	}
	said->no_memory = n && api_funcs[c->func].layer == API_LAYER_NO_MEMORY;
	return n > 0;
}

bool block_report_odd(const struct block_report *s)
{
	uint64_t size = s->size < 0 ? -(uint64_t)s->size : (uint64_t)s->size;

	if (s->allocated >> 60 || s->reserved >> 60)
		return true;
	if (s->no_memory)
		return s->size < 0;
	return s->size == INT64_MIN || size >> 60 || (s->size > 0 && s->allocated < size) ||
	       (s->size && !s->address);
}
