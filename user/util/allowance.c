/* SPDX-License-Identifier: BSD-2-Clause */
/* allowance.c - see allowance.h. */
#include "allowance.h"

#include "now.h"

static uint64_t refilled(const struct allowance *a, const struct allowance_owner *o, uint64_t now)
{
	uint64_t left = o->left_ns + (now - o->at_ns) / a->part;

	return !o->at_ns || left > a->max_ns ? a->max_ns : left;
}

uint64_t *allowance_of(struct allowance *a, uint32_t owner)
{
	struct allowance_owner *place = NULL;
	uint64_t now = now_ns();

	for (int i = 0; i < ALLOWANCE_OWNERS; i++) {
		struct allowance_owner *o = &a->owners[i];

		if (o->at_ns && o->owner == owner) {
			place = o;
			break;
		}
		/* a full allowance may be forgotten: a new one is full too */
		if (!place && refilled(a, o, now) == a->max_ns)
			place = o;
	}
	place = place ? place : &a->others;
	if (place != &a->others && place->owner != owner)
		place->at_ns = 0;
	place->left_ns = refilled(a, place, now);
	place->at_ns = now;
	place->owner = owner;
	return &place->left_ns;
}

void allowance_take(uint64_t *left_ns, uint64_t began_ns)
{
	uint64_t took = now_ns() - began_ns;

	*left_ns = took < *left_ns ? *left_ns - took : 0;
}
