/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allowance.h - how long the main loop may wait on behalf of each owner (the number of a user): a
 * certain time at once, and in the long run a certain part of all time. Knows no domain.
 */
#ifndef CT_ALLOWANCE_H
#define CT_ALLOWANCE_H

#include "types.h"

/* Owners whose allowances are not full are never forgotten, so nobody gets a new allowance by
 * coming with many other owners. Owners for whom there is no place share one allowance. */
#define ALLOWANCE_OWNERS 64

struct allowance_owner {
	uint32_t owner;
	uint64_t left_ns, at_ns; /* at_ns 0: nobody has this place */
};

/* A zeroed struct means that nobody has waited yet. */
struct allowance {
	/* Set by the user of this struct: how long at once, and which part of the time (20: a
	 * twentieth). */
	uint64_t max_ns;
	unsigned int part;
	struct allowance_owner owners[ALLOWANCE_OWNERS], others;
};

/* What is left of an owner's allowance, in ns. The caller subtracts the time that it waited. Valid
 * until the next call. */
uint64_t *allowance_of(struct allowance *, uint32_t owner);
/* Subtracts the time since began_ns (CLOCK_MONOTONIC) from what allowance_of() returned. */
void allowance_take(uint64_t *left_ns, uint64_t began_ns);

#endif
