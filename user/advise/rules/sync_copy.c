/* SPDX-License-Identifier: BSD-2-Clause */
/* sync_copy.c - copies that block the host. */
#include "../rule.h"

/* bytes: such a copy of pageable memory is staged, and the call returns before it is done */
#define SMALL_HTOD 64000

struct sync_copy {
	struct hits hits;
	uint64_t unreported[4096];
};

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
	return c->kind == CT_COPY_DTOD && c->src_device != c->dst_device
		       ? REPORT_PTOP
		       : (uint8_t)report_way_of_copy(c->kind);
}

/* A call that leaves it to the addresses which way it goes (cudaMemcpyDefault) is judged when
 * the device's record comes; if more than UNTOLD such calls are ahead of their records, the
 * older ones are not judged. */
static uint64_t *unreported_at(struct sync_copy *y, uint64_t start_ns)
{
	return &y->unreported[start_ns * 0x9e3779b97f4a7c15ULL >> 52];
}

static int sync_copy_event(void *state, const struct seen *s)
{
	const struct cause *cause = s->ev->cause;
	struct sync_copy *y = state;
	const struct ct_copy *c;

	if (s->call) {
		if (s->traits & TR_ASYNC || s->failed)
			return 0;
		if (s->way == REPORT_UNKNOWN)
			*unreported_at(y, s->h->start_ns) = s->h->start_ns;
		return is_sync_copy(s->way, s->bytes) ? rule_hit(&y->hits, s, s->ns, s->bytes) : 0;
	}
	c = (const struct ct_copy *)s->h;
	if (!cause || !cause->start_ns || *unreported_at(y, cause->start_ns) != cause->start_ns)
		return 0;
	*unreported_at(y, cause->start_ns) = 0;
	if (c->flags & CT_W_ASYNC || cause->end_ns < cause->start_ns ||
	    !is_sync_copy(way_of_record(c), c->bytes))
		return 0;
	return rule_hit(&y->hits, s, rule_cause_ns(s), c->bytes);
}

static void sync_copy_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct sync_copy *y = state;
	struct advise_finding *f;

	if (y->hits.n < 3)
		return;
	f = rule_finding_of(a, &rule_sync_copy, proc, &y->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu copies of %s in all between host and device, or between devices, "
			 "were made by calls that "
			 "return when "
			 "the copy is done: for %s the thread did nothing else.",
			 (unsigned long long)y->hits.n, rule_bytes((double)y->hits.bytes),
			 rule_time((double)y->hits.ns));
}

/* clang-format off */
const struct rule rule_sync_copy = {
	{ "sync-copy", "Copies that block the host", ADVISE_CALLS,
	  "the time that the host was inside these calls",
	  "Use cudaMemcpyAsync with pinned memory on a stream, and wait for it, by an event, only where the "
	  "data is needed." },
	.kinds = KIND(CT_CALL) | KIND(CT_COPY), .traits = TR_COPY, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct sync_copy), .event = sync_copy_event, .end = sync_copy_end, .free = rule_free_hits
};
/* clang-format on */
