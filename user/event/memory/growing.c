/* SPDX-License-Identifier: BSD-2-Clause */
/* growing.c - see growing.h. */
#include "../../api/traits.h"
#include "growing.h"

#define LEAST 64 /* that are left */

const char *growing_word(enum growing_kind kind)
{
	static const char *const words[GROWING_END] = { "streams",
							"events",
							"graphs",
							"modules of device code",
							"pieces of pinned host memory",
							"mappings of memory" };

	return words[kind];
}

enum growing_kind growing_kind_of(const struct ct_call *call, bool *makes)
{
	static const struct {
		uint32_t makes, gives;
		enum growing_kind kind;
	} rows[] = {
		{ TR_STREAM_CREATE, TR_STREAM_DESTROY, GROWING_STREAMS },
		{ TR_EVENT_CREATE, TR_EVENT_DESTROY, GROWING_EVENTS },
		{ TR_GRAPH_CREATE, TR_GRAPH_DESTROY, GROWING_GRAPHS },
		{ TR_LOAD, TR_UNLOAD, GROWING_MODULES },
	};
	uint32_t traits = api_traits(call->func);
	struct api_memory m;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		*makes = traits & rows[i].makes;
		if (*makes || traits & rows[i].gives)
			return rows[i].kind;
	}
	switch (api_memory(call, API_ARCH_HERE, &m)) {
	case API_MEMORY_TAKEN: *makes = true; break;
	case API_MEMORY_FREED: *makes = false; break;
	default: return GROWING_END;
	}
	return m.space == API_SPACE_HOST || m.space == API_SPACE_REGISTERED ? GROWING_PINNED
	       : m.space == API_SPACE_MAPPED				    ? GROWING_MAPPED
									    : GROWING_END;
}

/* The stretch of time that a moment is in. */
static uint64_t growing_bucket_of(struct growing *g, uint64_t at_ns)
{
	uint64_t ns = at_ns > g->first_ns ? at_ns - g->first_ns : 0;

	g->bucket_ns = g->bucket_ns ? g->bucket_ns : 1000;
	while (ns / g->bucket_ns >= GROWING_BUCKETS) {
		for (int k = 0; k < GROWING_END; k++) {
			int64_t *grown = g->of[k].grown;

			for (int i = 0; i < GROWING_BUCKETS; i++)
				grown[i] = i < GROWING_BUCKETS / 2 ? grown[2 * i] + grown[2 * i + 1]
								   : 0;
		}
		g->bucket_ns *= 2;
	}
	return ns / g->bucket_ns;
}

void growing_add(struct growing *g, uint64_t first_ns, uint64_t at_ns, enum growing_kind kind,
		 bool makes)
{
	struct growing_of *of = &g->of[kind];

	if (!g->bucket_ns)
		g->first_ns = first_ns;
	of->made += makes;
	of->given += !makes;
	of->grown[growing_bucket_of(g, at_ns)] += makes ? 1 : -1;
}

bool growing_grows(struct growing *g, uint64_t until_ns, enum growing_kind kind)
{
	const struct growing_of *of = &g->of[kind];
	int64_t quarters[4] = { 0 };
	uint64_t used;

	if (of->given > of->made || of->made - of->given < LEAST || of->given * 2 > of->made)
		return false;
	used = growing_bucket_of(g, until_ns) + 1; /* the buckets cover the process's time now */
	if (used < 4)
		return false;
	for (uint64_t i = 0; i < used; i++)
		quarters[i * 4 / used] += of->grown[i];
	return quarters[0] > 0 && quarters[1] > 0 && quarters[2] > 0 && quarters[3] > 0;
}
