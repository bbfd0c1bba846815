/* SPDX-License-Identifier: BSD-2-Clause */
/* handles.c - streams, events, graphs, modules and host memory of which there are more and more:
 * they are made throughout the trace, and most of them are never given back. */
#include "../rule.h"

#define HANDLES_LEAST 64
#define BUCKETS 16 /* of time; when they are full, two become one */

enum handle { STREAMS, EVENTS, GRAPHS, MODULES, PINNED, MAPPED, KINDS };

struct handles_of {
	uint64_t made, given;
	int64_t grown[BUCKETS]; /* made minus given back in each stretch of time */
	struct hits hits;
};
struct handles {
	uint64_t bucket_ns;
	struct handles_of of[KINDS];
};

/* Which handles a call makes or gives back; KINDS: none. */
static enum handle kind_of(const struct seen *s, bool *makes)
{
	static const struct {
		uint32_t makes, gives;
		enum handle kind;
	} rows[] = {
		{ TR_STREAM_CREATE, TR_STREAM_DESTROY, STREAMS },
		{ TR_EVENT_CREATE, TR_EVENT_DESTROY, EVENTS },
		{ TR_GRAPH_CREATE, TR_GRAPH_DESTROY, GRAPHS },
		{ TR_LOAD, TR_UNLOAD, MODULES },
	};
	struct api_memory m;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		*makes = s->traits & rows[i].makes;
		if (*makes || s->traits & rows[i].gives)
			return rows[i].kind;
	}
	switch (api_memory(s->call, API_ARCH_HERE, &m)) {
	case API_MEMORY_TAKEN: *makes = true; break;
	case API_MEMORY_FREED: *makes = false; break;
	default: return KINDS;
	}
	return m.space == API_SPACE_HOST || m.space == API_SPACE_REGISTERED ? PINNED
	       : m.space == API_SPACE_MAPPED				    ? MAPPED
									    : KINDS;
}

/* The stretch of time that a moment is in, counted from the process's first call. */
static uint64_t bucket_of(struct handles *h, uint64_t ns)
{
	h->bucket_ns = h->bucket_ns ? h->bucket_ns : 1000;
	while (ns / h->bucket_ns >= BUCKETS) {
		for (int k = 0; k < KINDS; k++) {
			int64_t *g = h->of[k].grown;

			for (int i = 0; i < BUCKETS; i++)
				g[i] = i < BUCKETS / 2 ? g[2 * i] + g[2 * i + 1] : 0;
		}
		h->bucket_ns *= 2;
	}
	return ns / h->bucket_ns;
}

static int event(void *state, const struct seen *s)
{
	struct handles *h = state;
	struct handles_of *of;
	enum handle kind;
	bool makes;

	if (!s->call) { /* another program: it has none of them */
		for (int k = 0; k < KINDS; k++) {
			hits_free(&h->of[k].hits);
			h->of[k] = (struct handles_of){ .made = 0 };
		}
		return 0;
	}
	kind = s->failed ? KINDS : kind_of(s, &makes);
	if (kind == KINDS)
		return 0;
	of = &h->of[kind];
	of->made += makes;
	of->given += !makes;
	of->grown[bucket_of(h, s->h->start_ns - s->p->first_ns)] += makes ? 1 : -1;
	return makes ? rule_hit(&of->hits, s, 0, 0) : 0;
}

/* In each quarter of the process's time there came to be more of them. */
static bool grows(const struct handles *h, const struct handles_of *of, uint64_t span_ns)
{
	uint64_t used = h->bucket_ns ? span_ns / h->bucket_ns + 1 : 0;
	int64_t quarters[4] = { 0 };

	if (of->given > of->made || of->made - of->given < HANDLES_LEAST ||
	    of->given * 2 > of->made || used > BUCKETS || used < 4)
		return false;
	for (uint64_t i = 0; i < used; i++)
		quarters[i * 4 / used] += of->grown[i];
	return quarters[0] > 0 && quarters[1] > 0 && quarters[2] > 0 && quarters[3] > 0;
}

static void end(void *state, struct advice *a, struct advise_process *proc)
{
	static const char *const words[KINDS] = { "streams",
						  "events",
						  "graphs",
						  "modules of device code",
						  "pieces of pinned host memory",
						  "mappings of memory" };
	struct handles *h = state;

	/* for the buckets to cover the process's time */
	bucket_of(h, proc->last_ns - proc->first_ns);
	for (int k = 0; k < KINDS; k++) {
		struct handles_of *of = &h->of[k];
		struct advise_finding *f;

		if (!grows(h, of, proc->last_ns - proc->first_ns))
			continue;
		f = rule_finding_of(a, &rule_handles, proc, &of->hits);
		if (!f)
			continue;
		f->n = of->made - of->given;
		f->severity = ADVISE_WARNING;
		rule_say(&f->evidence,
			 "%llu %s were made throughout the trace, and %llu were given back: %llu "
			 "are "
			 "left.",
			 (unsigned long long)of->made, words[k], (unsigned long long)of->given,
			 (unsigned long long)f->n);
	}
}

static void release(void *state)
{
	struct handles *h = state;

	for (int k = 0; k < KINDS; k++)
		hits_free(&h->of[k].hits);
}

/* clang-format off */
const struct rule rule_handles = {
	{ "growing-handles", "Handles of which there are more and more", ADVISE_CALLS,
	  "no known time: each takes memory of the host and of the driver",
	  "Destroy, unload or free them where they are no longer needed, or make them once and use them again." },
	.kinds = KIND(CT_CALL) | KIND(CT_EXEC),
	.traits = TR_STREAM_CREATE | TR_STREAM_DESTROY | TR_EVENT_CREATE | TR_EVENT_DESTROY | TR_GRAPH_CREATE |
		  TR_GRAPH_DESTROY | TR_LOAD | TR_UNLOAD | TR_MEMORY | TR_ALLOC | TR_FREE,
	.most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct handles), .event = event, .end = end, .free = release
};
/* clang-format on */
