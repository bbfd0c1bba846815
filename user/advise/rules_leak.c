/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_leak.c - device memory that is never given back: that grows all the time, or that is
 * left at the process's end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

#define GROWS_LEAST 8

static uint32_t slot_of(const struct leak *l, uint64_t address)
{
	uint32_t at = (uint32_t)(address * 0x9e3779b97f4a7c15ULL >> 36);

	while (l->live[at & (l->cap - 1)].site && l->live[at & (l->cap - 1)].address != address)
		at++;
	return at & (l->cap - 1);
}

/* 1: there is no room for more. */
static int grow(struct leak *l, struct advice *a)
{
	struct live *old = l->live;
	uint32_t n = l->cap;

	if (!advise_may_keep_live(a, n ? n : 256))
		return 1;
	l->cap = n ? n * 2 : 256;
	l->live = calloc(l->cap, sizeof(*l->live));
	if (!l->live) {
		l->live = old;
		l->cap = n;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		if (old[i].site)
			l->live[slot_of(l, old[i].address)] = old[i];
	free(old);
	return 0;
}

/* What comes after it in its run of slots may have to move into its place. */
static void forget(struct leak *l, uint32_t at)
{
	struct leak_site *s = &l->sites[l->live[at].site - 1];

	s->live--;
	s->live_bytes -= l->live[at].bytes;
	l->live[at].site = 0;
	l->nlive--;
	for (uint32_t i = (at + 1) & (l->cap - 1); l->live[i].site; i = (i + 1) & (l->cap - 1)) {
		struct live moved = l->live[i];

		l->live[i].site = 0;
		l->live[slot_of(l, moved.address)] = moved;
	}
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

static int add(struct leak *l, const struct seen *s, const struct api_memory *m)
{
	struct site one = rule_site(s, 0);
	int full = (l->nlive + 1) * 2 > l->cap ? grow(l, s->a) : 0;
	struct leak_site *at;
	uint32_t slot;

	if (full < 0)
		return full;
	slot = l->cap ? slot_of(l, m->address) : 0;
	/* its end was not seen */
	if (l->cap && l->live[slot].site)
		forget(l, slot);
	if (full && (l->nlive + 1) * 2 > l->cap) {
		l->no_room++;
		return 0;
	}
	slot = slot_of(l, m->address);
	at = site(l, &one);
	at->allocated++;
	at->live++;
	at->live_bytes += m->bytes;
	l->live[slot] = (struct live){ m->address, m->bytes,
				       (uint32_t)((s->h->start_ns - s->p->first_ns) / 1000000),
				       (uint32_t)(at - l->sites) + 1 };
	l->nlive++;
	return 0;
}

int leak_event(void *state, const struct seen *s)
{
	struct leak *l = state;
	struct api_memory m;
	uint32_t slot;

	if (!s->call) { /* another program: all that the one before held is gone */
		for (uint32_t i = 0; i < l->cap; i++)
			l->live[i].site = 0;
		for (uint32_t i = 0; i < l->nsites; i++)
			l->sites[i].live = l->sites[i].live_bytes = l->sites[i].allocated = 0;
		l->nlive = 0;
		return 0;
	}
	if (s->failed)
		return 0;
	switch (api_memory(s->call, API_ARCH_HERE, &m)) {
	case API_MEMORY_TAKEN: return m.space == API_SPACE_DEVICE ? add(l, s, &m) : 0;
	case API_MEMORY_FREED:
		if (m.space == API_SPACE_DEVICE)
			break;
		return 0;
	default: return 0;
	}
	slot = l->cap ? slot_of(l, m.address) : 0;
	if (l->cap && l->live[slot].site)
		forget(l, slot);
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

void leak_end(void *state, struct advice *a, struct proc *proc)
{
	uint64_t span_ms = (proc->last_ns - proc->first_ns) / 1000000 + 1;
	struct hits growing = { .n = 0 }, left = { .n = 0 };
	struct leak *l = state;
	struct advise_finding *f;

	for (uint32_t i = 0; i < l->cap; i++) {
		uint64_t quarter = l->live[i].at_ms * 4ULL / span_ms;

		if (l->live[i].site)
			l->sites[l->live[i].site - 1].quarters |=
				(uint8_t)(1u << (quarter < 3 ? quarter : 3));
	}
	for (uint32_t i = 0; i < l->nsites; i++) {
		if (grows(&l->sites[i]))
			add_hits(&growing, &l->sites[i]);
		else if (l->sites[i].live)
			add_hits(&left, &l->sites[i]);
	}
	f = growing.n ? rule_finding_of(a, &rules[RULE_LEAK], proc, &growing) : NULL;
	if (f) {
		rule_say(&f->evidence,
			 "%llu allocations of %s in all were made throughout the trace and not "
			 "given "
			 "back: %s.",
			 (unsigned long long)growing.n, rule_bytes((double)growing.bytes),
			 proc->exited ? "the process ended with them"
				      : "they were held when the trace ended");
		f->severity = ADVISE_WARNING;
		say_no_room(f, l);
	}
	f = left.n && proc->exited ? rule_finding_of(a, &rules[RULE_LEAK], proc, &left) : NULL;
	if (f) {
		rule_say(&f->evidence,
			 "The process ended with %llu allocations of %s in all that it had not "
			 "given "
			 "back.",
			 (unsigned long long)left.n, rule_bytes((double)left.bytes));
		say_no_room(f, l);
	}
	hits_free(&growing);
	hits_free(&left);
}

void leak_free(void *state)
{
	free(((struct leak *)state)->live);
}
