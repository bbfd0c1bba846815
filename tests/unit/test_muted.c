/* SPDX-License-Identifier: BSD-2-Clause */
/* test_muted.c - what people are told of numbers that are estimates. */
#include <string.h>

#include "../../user/event/muted.h"
#include "unit.h"

static void says(const char *want, uint64_t number, int64_t calls, int64_t below, int64_t above)
{
	const struct ct_estimated e = { calls, below, above };
	char text[64], margin[64], both[160];

	snprintf(both, sizeof(both), "%s%s", muted_number(text, sizeof(text), number, &e),
		 muted_margin(margin, sizeof(margin), number, &e));
	CHECK_TEXT(want, both);
}

static void test_texts(void)
{
	says("300000", 300000, 0, 0, 0);
	says("~288500 ±2 %", 288500, 200000, 5770, 5770);
	says("~288500 ±0.1 %", 288500, 100, 288, 288);
	/* counted one by one, in the process */
	says("288500", 288500, 288000, 0, 0);
	/* nothing is known but that there were more */
	says(">=670960 (at most 153206119)", 700000, 100000, 29040, 152506119);
	says(">=428370 (at most 6000000)", 428370, 0, 0, 5571630);
	says(">=428370 (at most 6000000)", 461000, 32630, 32630, 5539000);
	/* as far downwards: the number may be wrong by that, and is no bound */
	says("~1000 ±80 %", 1000, 900, 800, 800);
	says("~1000 ±51 %", 1000, 900, 300, 510);
	says("~1000 ±90 %", 1000, 900, 900, 600);
	says(">=100 (at most 2100)", 1000, 900, 900, 1100);
	/* what a file claims */
	says(">=0 (at most 9223372036854775807)", 0, INT64_MIN, INT64_MIN, INT64_MAX);
	says("7", 7, 1, INT64_MIN, INT64_MIN);
}

/* Numbers of several records are added up, and stay within a word whatever they are. */
static void test_sums(void)
{
	struct muted_sum sum = { 0 };
	struct ct_muted m = {
		.counted = 100, .failed = 3, .timed = 100, .ns = 5000, .unseen = { 1000, 50, 60 }
	};

	muted_add(&sum, &m);
	m.unseen = (struct ct_estimated){ -200, -10, 5 };
	muted_add(&sum, &m);
	CHECK(muted_calls(&sum) == 200 + 800 && muted_error(&sum.unseen) == 65 &&
	      muted_ns(&sum) == 50 * 1000);
	CHECK(muted_at_least(muted_calls(&sum), &sum.unseen) == 960);
	m = (struct ct_muted){ .counted = UINT64_MAX,
			       .ns = UINT64_MAX,
			       .timed = 1,
			       .unseen = { INT64_MAX, INT64_MIN, INT64_MAX } };
	for (int i = 0; i < 100; i++)
		muted_add(&sum, &m);
	CHECK(muted_calls(&sum) <= (uint64_t)1 << 61 && muted_ns(&sum) <= (uint64_t)1 << 60);
	CHECK(muted_at_least(muted_calls(&sum), &sum.unseen) <= muted_calls(&sum));
}

int main(void)
{
	RUN(test_texts);
	RUN(test_sums);
	return unit_end();
}
