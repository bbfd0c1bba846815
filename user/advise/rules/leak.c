/* SPDX-License-Identifier: BSD-2-Clause */
/* leak.c - device memory that is never given back: that grows all the time, or that is left at
 * the process's end. */
#include <errno.h>

#include "../../util/table/hash_map.h"
#include "../rule.h"

#define GROWS_LEAST 8

struct leak_live {
	uint64_t address, bytes;
	uint32_t at_ms; /* after the process's first call */
	uint32_t site;	/* its index */
};
struct leak_site {
	struct site site;
	uint64_t allocated, live, live_bytes;
	uint8_t quarters;
};
struct leak {
	struct hash_map live;
	unsigned int may; /* live ones that fit */
	uint64_t no_room;
	struct leak_site sites[SITES_MAX];
	uint32_t nsites;
};

static void leak_forget(struct leak *l, struct leak_live *m)
{
	struct leak_site *s = &l->sites[m->site];

	s->live--;
	s->live_bytes -= m->bytes;
	hash_map_remove(&l->live, m);
}

static struct leak_site *site(struct leak *l, const struct site *one)
{
	for (uint32_t i = 0; i < l->nsites; i++)
		if (l->sites[i].site.func == one->func && l->sites[i].site.stack == one->stack)
			return &l->sites[i];
	/* the last one is for all that find no room */
	if (l->nsites == SITES_MAX)
		return &l->sites[SITES_MAX - 1];
	l->sites[l->nsites].site = *one;
	l->sites[l->nsites].site.n = 0;
	return &l->sites[l->nsites++];
}

static int leak_add(struct leak *l, const struct seen *s, const struct api_memory *m)
{
	struct leak_live *live = hash_map_find(&l->live, &m->address);
	struct site one = rule_site(s, 0);
	struct leak_site *at;

	if (!l->live.size)
		hash_map_open_of(&l->live, struct leak_live, address, SIZE_MAX);
	/* its end was not seen */
	if (live)
		leak_forget(l, live);
	if (l->live.n == l->may && advise_may_keep_live(s->a, l->may ? 2 * l->may : 256))
		l->may = l->may ? l->may * 2 : 128;
	if (l->live.n == l->may) {
		l->no_room++;
		return 0;
	}
	live = hash_map_get(&l->live, &m->address, &(bool){ false });
	if (!live)
		return -ENOMEM;
	at = site(l, &one);
	at->allocated++;
	at->live++;
	at->live_bytes += m->bytes;
	live->bytes = m->bytes;
	live->at_ms = (uint32_t)((s->h->start_ns - s->p->first_ns) / 1000000);
	live->site = (uint32_t)(at - l->sites);
	return 0;
}

static int leak_event(void *state, const struct seen *s)
{
	struct leak *l = state;
	struct leak_live *live;
	struct api_memory m;

	if (!s->call) { /* another program: all that the one before held is gone */
		hash_map_clear(&l->live);
		for (uint32_t i = 0; i < l->nsites; i++)
			l->sites[i].live = l->sites[i].live_bytes = l->sites[i].allocated = 0;
		return 0;
	}
	if (s->failed)
		return 0;
	switch (api_memory(s->call, API_ARCH_HERE, &m)) {
	case API_MEMORY_TAKEN: return m.space == API_SPACE_DEVICE ? leak_add(l, s, &m) : 0;
	case API_MEMORY_FREED:
		if (m.space == API_SPACE_DEVICE)
			break;
		return 0;
	default: return 0;
	}
	live = hash_map_find(&l->live, &m.address);
	if (live)
		leak_forget(l, live);
	return 0;
}

static bool grows(const struct leak_site *s)
{
	return s->live >= GROWS_LEAST && s->live * 2 >= s->allocated && s->quarters == 0xf;
}

static void add_hits(struct hits *h, const struct leak_site *s)
{
	struct site one = s->site;

	one.n = s->live;
	one.ns = 0;
	one.bytes = s->live_bytes;
	hits_add(h, &one, NULL);
}

static void say_no_room(struct advise_finding *f, const struct leak *l)
{
	if (l->no_room)
		rule_say(&f->evidence,
			 " %llu more allocations were not followed, as there were too many.",
			 (unsigned long long)l->no_room);
}

static void leak_end(void *state, struct advice *a, struct advise_process *proc)
{
	uint64_t span_ms = (proc->last_ns - proc->first_ns) / 1000000 + 1;
	struct hits growing = { .n = 0 }, left = { .n = 0 };
	struct leak *l = state;
	struct advise_finding *f;
	struct leak_live *live;

	hash_map_each(&l->live, live)
	{
		uint64_t quarter = live->at_ms * 4ULL / span_ms;

		l->sites[live->site].quarters |= (uint8_t)(1u << (quarter < 3 ? quarter : 3));
	}
	for (uint32_t i = 0; i < l->nsites; i++) {
		if (grows(&l->sites[i]))
			add_hits(&growing, &l->sites[i]);
		else if (l->sites[i].live)
			add_hits(&left, &l->sites[i]);
	}
	f = growing.n ? rule_finding_of(a, &rule_leak, proc, &growing) : NULL;
	if (f) {
		rule_say(&f->evidence,
			 "%llu allocations of %s in all were made throughout the trace and not "
			 "given back: %s.",
			 (unsigned long long)growing.n, rule_bytes((double)growing.bytes),
			 proc->exited ? "the process ended with them"
				      : "they were held when the trace ended");
		f->severity = ADVISE_WARNING;
		say_no_room(f, l);
	}
	f = left.n && proc->exited ? rule_finding_of(a, &rule_leak, proc, &left) : NULL;
	if (f) {
		rule_say(&f->evidence,
			 "The process ended with %llu allocations of %s in all that it had not "
			 "given back.",
			 (unsigned long long)left.n, rule_bytes((double)left.bytes));
		say_no_room(f, l);
	}
	hits_free(&growing);
	hits_free(&left);
}

static void leak_release(void *state)
{
	hash_map_close(&((struct leak *)state)->live);
}

/* clang-format off */
const struct rule rule_leak = {
	{ "leak", "Device memory that is not given back", ADVISE_CALLS,
	  "no time: memory",
	  "Free it where it is no longer needed; 'cudatrace mem' says more. Allocators that keep memory for "
	  "later, as PyTorch's does, give none back at the end, which is no leak." },
	.kinds = KIND(CT_CALL) | KIND(CT_EXEC), .traits = TR_MEMORY, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct leak), .event = leak_event, .end = leak_end, .free = leak_release
};
/* clang-format on */
