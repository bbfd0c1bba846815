/* SPDX-License-Identifier: BSD-2-Clause */
/* roundtrip.c - data that goes to the host and back. */
#include "../rule.h"

#define TRIP_LEAST 10

struct trip {
	uint64_t host, bytes, ns;
};
struct roundtrip {
	struct hits hits;
	struct trip trips[64];
	uint32_t next;
};

static int roundtrip_event(void *state, const struct seen *s)
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

static void roundtrip_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct roundtrip *r = state;
	struct advise_finding *f;

	if (r->hits.n < TRIP_LEAST)
		return;
	f = rule_finding_of(a, &rule_roundtrip, proc, &r->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu times the bytes that a copy had brought to the host, %s in all, "
			 "were copied from the same place in the same size back to a device. "
			 "Whether the host changed them in between cannot be seen.",
			 (unsigned long long)r->hits.n, rule_bytes((double)r->hits.bytes));
}

/* clang-format off */
const struct rule rule_roundtrip = {
	{ "host-roundtrip", "Data that goes to the host and back", ADVISE_CALLS,
	  "the time in both calls; of asynchronous ones only until they return",
	  "Leave the data on the device, or copy from device to device (cudaMemcpyPeer between two)." },
	/* a pinned buffer that is filled anew each time looks the same: what the host
	 * did with it cannot be seen */
	.kinds = KIND(CT_CALL), .traits = TR_LINEAR, .most = ADVISE_NOTE,
	.state_bytes = sizeof(struct roundtrip), .event = roundtrip_event, .end = roundtrip_end, .free = rule_free_hits
};
/* clang-format on */
