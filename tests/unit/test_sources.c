/* SPDX-License-Identifier: BSD-2-Clause */
/* test_sources.c - what source.h promises of each source, tried with those that need no target:
 * a drain that is to pause returns between two records, and the next one goes on behind it. */
#include "../../user/source/source.h"
#include "unit.h"

struct taker {
	bool paused;
	uint64_t every;	  /* pause after so many records; 0: never */
	uint64_t n, sums; /* records, and what tells them apart */
};

static int take(void *ctx, const struct ct_hdr *rec)
{
	struct taker *t = ctx;

	t->n++;
	t->sums = t->sums * 31 + rec->kind + rec->start_ns + rec->size;
	t->paused = t->every && !(t->n % t->every);
	return 0;
}

/* Drains a recording; returns how many drains it took, 0 after an error. */
static uint64_t drains(const char *path, struct taker *t)
{
	struct capture_plan plan = { .file = path, .to_ns = UINT64_MAX };
	struct source s = { .ops = &source_replay, .paused = &t->paused };
	uint64_t n = 0;
	int err;

	if (!CHECK(!s.ops->open(&s, &plan) && !s.ops->start(&s)))
		return 0;
	do {
		uint64_t before = t->n;

		t->paused = false;
		err = s.ops->drain(&s, take, t);
		n++;
		/* the record after which it was asked to pause is the last one */
		CHECK(!t->every || t->n - before <= t->every + 1);
		CHECK(err == 1 || (t->every && err == 0));
	} while (!err);
	s.ops->stop(&s);
	s.ops->close(&s);
	return err == 1 ? n : 0;
}

static void test_pause(void)
{
	static const char *const files[] = { "tests/traces/calls.ctrace",
					     "tests/traces/two.ctrace" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct taker all = { .every = 0 }, each = { .every = 1 }, some = { .every = 7 };

		CASE_ROW("%s", files[i]);
		CHECK_EQ(1, drains(files[i], &all));
		CHECK(all.n > 10);
		CHECK(drains(files[i], &each) > all.n / 2);
		CHECK_EQ(all.n, each.n);
		CHECK(each.sums == all.sums);
		CHECK(drains(files[i], &some) >= all.n / 8);
		CHECK_EQ(all.n, some.n);
		CHECK(some.sums == all.sums);
	}
}

int main(void)
{
	RUN(test_pause);
	return unit_end();
}
