/* SPDX-License-Identifier: BSD-2-Clause */
/* test_throttle.c - which functions are noticed as called too often, and what is said of how often that is. */
#include "../../user/source/muted/throttle.h"
#include "unit.h"

#define S 1000000000ULL

static void test_rate(void)
{
	struct throttle *t = throttle_open(20000);

	CHECK(t != NULL);
	CHECK(!throttle_calls(t, 1, 2, 5000, 10 * S));
	CHECK(!throttle_calls(t, 1, 3, 5000, 10 * S));
	CHECK(!throttle_calls(t, 2, 2, 9999, 10 * S));
	/* no time has passed in which they were made */
	CHECK(throttle_calls(t, 1, 2, 5000, 10 * S));
	CHECK_TEXT("more than 20000 times a second", throttle_text(t));
	CHECK(throttle_calls(t, 1, 2, 1, 10 * S - 5));
	CHECK_TEXT("more than 20000 times a second", throttle_text(t));
	CHECK(throttle_calls(t, 2, 2, 1, 10 * S + S / 4));
	CHECK_TEXT("40000 times a second", throttle_text(t));
	/* in the next window they begin anew */
	CHECK(!throttle_calls(t, 2, 2, 9000, 11 * S));
	CHECK(throttle_calls(t, 2, 2, 1000, 11 * S + S / 10));
	CHECK_TEXT("100000 times a second", throttle_text(t));
	/* who looks at sums knows for how long calls were made */
	throttle_is(t, 34567);
	CHECK_TEXT("34567 times a second", throttle_text(t));
	throttle_least(t, 1000);
	throttle_is(t, 999);
	CHECK_TEXT("more than 1000 times a second", throttle_text(t));
	throttle_close(t);
}

int main(void)
{
	RUN(test_rate);
	return unit_end();
}
