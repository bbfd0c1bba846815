/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_allowance.c - allowances of many owners: none is renewed by coming with others.
 */
#include "../../user/util/allowance.h"
#include "unit.h"

#define MAX_NS 1000000000ULL
#define NEVER 1000000000U /* comes back so slowly that a test does not see it */

static struct allowance a;

static uint64_t take_all(uint32_t owner)
{
	uint64_t *left = allowance_of(&a, owner), had = *left;

	*left = 0;
	return had;
}

static void test_kept(void)
{
	a = (struct allowance){ .max_ns = MAX_NS, .part = NEVER };
	for (uint32_t i = 0; i < ALLOWANCE_OWNERS; i++)
		CHECK_EQ(MAX_NS, take_all(i));
	/* one of those who find no place has all of what these share */
	CHECK_EQ(MAX_NS, take_all(1000));
	for (uint32_t i = 1001; i < 1100; i++)
		CHECK(take_all(i) < MAX_NS / 1000);
	for (uint32_t i = 0; i < ALLOWANCE_OWNERS; i++)
		CHECK(take_all(i) < MAX_NS / 1000);
}

static void test_full_again(void)
{
	/* what is taken is back after a nanosecond: all are full again at once */
	a = (struct allowance){ .max_ns = 1, .part = 1 };
	for (uint32_t i = 0; i < 10 * ALLOWANCE_OWNERS; i++)
		CHECK_EQ(1, take_all(i));
	CHECK_EQ(0, a.others.at_ns);
}

static void test_of_zero(void)
{
	a = (struct allowance){ .max_ns = MAX_NS, .part = NEVER };
	CHECK_EQ(MAX_NS, take_all(0));
	CHECK(take_all(0) < MAX_NS / 1000);
	CHECK_EQ(MAX_NS, take_all(7));
}

int main(void)
{
	RUN(test_kept);
	RUN(test_full_again);
	RUN(test_of_zero);
	return unit_end();
}
