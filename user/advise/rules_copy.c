/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_copy.c - rules about copies and memsets. */
#include "rules.h"

/* bytes: such a copy of pageable memory is staged, and the call returns before it is done */
#define SMALL_HTOD 64000
#define RUN_LEAST 4	/* copies one after the other */
#define RUN_BYTES 16384 /* each at most */
#define RUN_COPIES 100	/* in such runs in all */
#define TRIP_LEAST 10

/* ---- asynchronous in name only ---- */

int pageable_event(void *state, const struct seen *s)
{
	const struct ct_copy *c = (const struct ct_copy *)s->h;
	struct pageable *p = state;
	uint64_t cost = 0;

	if (!(c->flags & CT_W_ASYNC) || (c->src != CT_MEM_PAGEABLE && c->dst != CT_MEM_PAGEABLE))
		return 0;
	/* those are small-readback's */
	if (c->kind == CT_COPY_DTOH && c->bytes <= READBACK_BYTES)
		return 0;
	/* a call that makes several copies took its time once */
	if (s->ev->cause && s->ev->cause->end_ns > s->ev->cause->start_ns &&
	    s->ev->cause->start_ns != p->last_call_ns)
		cost = s->ev->cause->end_ns - s->ev->cause->start_ns;
	p->last_call_ns = s->ev->cause ? s->ev->cause->start_ns : p->last_call_ns;
	p->device_ns += s->ns;
	return rule_hit(&p->hits, s, cost, c->bytes);
}

void pageable_end(void *state, struct advice *a, struct proc *proc)
{
	struct pageable *p = state;
	struct advise_finding *f;

	if (p->hits.n < 3)
		return;
	f = rule_finding_of(a, &rules[RULE_PAGEABLE], proc, &p->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu copies of %s in all were asked for by asynchronous calls, but their "
			 "host memory is pageable: "
			 "the call "
			 "copies through the driver's own buffer and does not return before that "
			 "is done. The host was %s "
			 "in these "
			 "calls; the device took %s for the copies.",
			 (unsigned long long)p->hits.n, rule_bytes((double)p->hits.bytes),
			 rule_time((double)p->hits.ns), rule_time((double)p->device_ns));
}

void pageable_free(void *state)
{
	hits_free(&((struct pageable *)state)->hits);
}

/* ---- synchronous copies ---- */

static bool is_sync_copy(uint8_t way, uint64_t bytes)
{
	switch (way) {
	case REPORT_HTOD: return bytes > SMALL_HTOD;
	case REPORT_DTOH: return bytes > READBACK_BYTES;
	case REPORT_PTOP: return true;
	/* on one device the call does not wait; of copies on the host there is nothing to gain */
	default: return false;
	}
}

static uint8_t way_of_record(const struct ct_copy *c)
{
	switch (c->kind) {
	case CT_COPY_HTOD:
	case CT_COPY_HTOA: return REPORT_HTOD;
	case CT_COPY_DTOH:
	case CT_COPY_ATOH: return REPORT_DTOH;
	case CT_COPY_PTOP: return REPORT_PTOP;
	case CT_COPY_DTOD: return c->src_device != c->dst_device ? REPORT_PTOP : REPORT_DTOD;
	default: return REPORT_UNTOLD;
	}
}

/* A call that leaves it to the addresses which way it goes (cudaMemcpyDefault) is judged when
 * the device's record comes; if more than UNTOLD such calls are ahead of their records, the
 * older ones are not judged. */
static uint64_t *untold_slot(struct sync_copy *y, uint64_t start_ns)
{
	return &y->untold[start_ns * 0x9e3779b97f4a7c15ULL >> 52];
}

int sync_copy_event(void *state, const struct seen *s)
{
	const struct cause *cause = s->ev->cause;
	struct sync_copy *y = state;
	const struct ct_copy *c;

	if (s->call) {
		if (s->traits & TR_ASYNC || s->failed)
			return 0;
		if (s->way == REPORT_UNTOLD)
			*untold_slot(y, s->h->start_ns) = s->h->start_ns;
		return is_sync_copy(s->way, s->bytes) ? rule_hit(&y->hits, s, s->ns, s->bytes) : 0;
	}
	c = (const struct ct_copy *)s->h;
	if (!cause || !cause->start_ns || *untold_slot(y, cause->start_ns) != cause->start_ns)
		return 0;
	*untold_slot(y, cause->start_ns) = 0;
	if (c->flags & CT_W_ASYNC || cause->end_ns < cause->start_ns ||
	    !is_sync_copy(way_of_record(c), c->bytes))
		return 0;
	return rule_hit(&y->hits, s, cause->end_ns - cause->start_ns, c->bytes);
}

void sync_copy_end(void *state, struct advice *a, struct proc *proc)
{
	struct sync_copy *y = state;
	struct advise_finding *f;

	if (y->hits.n < 3)
		return;
	f = rule_finding_of(a, &rules[RULE_SYNC_COPY], proc, &y->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu copies of %s in all between host and device, or between devices, "
			 "were made by calls that "
			 "return when "
			 "the copy is done: for %s the thread did nothing else.",
			 (unsigned long long)y->hits.n, rule_bytes((double)y->hits.bytes),
			 rule_time((double)y->hits.ns));
}

void sync_copy_free(void *state)
{
	hits_free(&((struct sync_copy *)state)->hits);
}

/* ---- synchronous memsets: of device memory the call does not wait, of host and managed memory it does ---- */

int sync_set_event(void *state, const struct seen *s)
{
	const struct ct_set *c = (const struct ct_set *)s->h;
	const struct cause *cause = s->ev->cause;

	if (c->flags & CT_W_ASYNC || (c->memory != CT_MEM_PINNED && c->memory != CT_MEM_MANAGED &&
				      c->memory != CT_MEM_MANAGED_STATIC))
		return 0;
	return rule_hit(state, s,
			cause && cause->end_ns > cause->start_ns ? cause->end_ns - cause->start_ns
								 : 0,
			c->bytes);
}

void sync_set_end(void *state, struct advice *a, struct proc *proc)
{
	struct hits *h = state;
	struct advise_finding *f;

	if (h->n < 3)
		return;
	f = rule_finding_of(a, &rules[RULE_SYNC_SET], proc, h);
	if (f)
		rule_say(&f->evidence,
			 "%llu memsets of %s in all of pinned or managed memory were made by calls "
			 "that "
			 "wait for them, "
			 "for %s.",
			 (unsigned long long)h->n, rule_bytes((double)h->bytes),
			 rule_time((double)h->ns));
}

void hits_state_free(void *state)
{
	hits_free(state);
}

/* ---- many small copies ---- */

int small_copies_event(void *state, const struct seen *s)
{
	struct small_copies *m = state;
	struct thread *t = s->t;
	struct site one;

	/* what stands between two copies ends the row of them */
	if (!(s->traits & TR_COPY) || s->failed || !s->bytes || s->bytes > RUN_BYTES) {
		t->run_n = 0;
		return 0;
	}
	if (t->run_n && (t->run_func != s->call->func || t->run_way != s->way))
		t->run_n = 0;
	t->run_func = s->call->func;
	t->run_way = s->way;
	t->run_n++;
	t->run_ns = t->run_n == 1 ? 0 : t->run_ns + s->ns;
	t->run_bytes = t->run_n == 1 ? s->bytes : t->run_bytes + s->bytes;
	if (t->run_n < RUN_LEAST)
		return 0;
	one = rule_site(s, 0);
	one.ns = s->ns;
	one.bytes = s->bytes;
	if (t->run_n == RUN_LEAST) {
		m->runs++;
		one.n = RUN_LEAST;
		one.ns = t->run_ns; /* of all but the first, which a copy of all would take too */
		one.bytes = t->run_bytes;
	}
	return hits_add(&m->hits, &one, NULL);
}

void small_copies_end(void *state, struct advice *a, struct proc *proc)
{
	struct small_copies *m = state;
	struct advise_finding *f;

	if (m->hits.n < RUN_COPIES)
		return;
	f = rule_finding_of(a, &rules[RULE_SMALL_COPIES], proc, &m->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu copies, of %s on average, came one after the other in %llu rows of "
			 "%d or more by the same "
			 "call and in the "
			 "same direction, with nothing launched and nothing waited for in between.",
			 (unsigned long long)m->hits.n,
			 rule_bytes((double)m->hits.bytes / (double)m->hits.n),
			 (unsigned long long)m->runs, RUN_LEAST);
}

void small_copies_free(void *state)
{
	hits_free(&((struct small_copies *)state)->hits);
}

/* ---- to the host and back ---- */

int roundtrip_event(void *state, const struct seen *s)
{
	struct roundtrip *r = state;
	uint64_t dst, src;

	if (s->failed || s->call->nwords < 2 || s->bytes <= READBACK_BYTES)
		return 0;
	dst = s->call->words[0];
	src = s->call->words[1];
	if (s->way == REPORT_DTOH) {
		struct trip *t = &r->trips[r->next++ % ARRAY_LEN(r->trips)];

		*t = (struct trip){ .host = dst, .bytes = s->bytes, .ns = s->ns };
		return 0;
	}
	if (s->way != REPORT_HTOD)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(r->trips); i++) {
		struct trip *t = &r->trips[i];

		if (t->host != src || t->bytes != s->bytes)
			continue;
		t->bytes = 0;
		return rule_hit(&r->hits, s, s->ns + t->ns, s->bytes);
	}
	return 0;
}

void roundtrip_end(void *state, struct advice *a, struct proc *proc)
{
	struct roundtrip *r = state;
	struct advise_finding *f;

	if (r->hits.n < TRIP_LEAST)
		return;
	f = rule_finding_of(a, &rules[RULE_ROUNDTRIP], proc, &r->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu times the bytes that a copy had brought to the host, %s in all, "
			 "were copied from the same "
			 "place in the same "
			 "size back to a device. Whether the host changed them in between cannot "
			 "be seen.",
			 (unsigned long long)r->hits.n, rule_bytes((double)r->hits.bytes));
}

void roundtrip_free(void *state)
{
	hits_free(&((struct roundtrip *)state)->hits);
}
