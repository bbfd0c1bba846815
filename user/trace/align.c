/* SPDX-License-Identifier: BSD-2-Clause */
/* align.c - see align.h. */
#include "align.h"

void align_clock(struct align *a, const struct ct_clock *c)
{
	if (c->h.pid || (a->n && c->h.start_ns <= a->clocks[a->n - 1].at_ns))
		return;
	if (c->error_ns > a->error_ns)
		a->error_ns = c->error_ns;
	if (a->skipped++ < a->every)
		return;
	a->skipped = 0;
	if (a->n == ALIGN_CLOCKS) {
		for (unsigned int i = 1; i < ALIGN_CLOCKS / 2; i++)
			a->clocks[i] = a->clocks[i * 2];
		a->n = ALIGN_CLOCKS / 2;
		a->every = a->every * 2 + 1;
	}
	a->clocks[a->n].at_ns = c->h.start_ns;
	a->clocks[a->n++].offset_ns = c->realtime_ns - c->h.start_ns;
}

uint64_t align_offset(const struct align *a, uint64_t at_ns)
{
	unsigned int low = 0, high = a->n;
	int64_t step;
	double part;

	if (!a->n)
		return 0;
	/* the last reading at or before it */
	while (high - low > 1) {
		unsigned int mid = (low + high) / 2;

		if (a->clocks[mid].at_ns <= at_ns)
			low = mid;
		else
			high = mid;
	}
	if (at_ns <= a->clocks[low].at_ns || low + 1 == a->n)
		return a->clocks[low].offset_ns;
	step = (int64_t)(a->clocks[low + 1].offset_ns - a->clocks[low].offset_ns);
	part = (double)(at_ns - a->clocks[low].at_ns) /
	       (double)(a->clocks[low + 1].at_ns - a->clocks[low].at_ns);
	return a->clocks[low].offset_ns + (uint64_t)(int64_t)((double)step * part);
}

uint64_t align_time(const struct align *from, const struct align *to, uint64_t at_ns)
{
	uint64_t realtime = at_ns + align_offset(from, at_ns), guess;

	/* the offset must be taken at a time that is not known yet; it changes so slowly that a
	 * second guess is exact enough */
	guess = realtime - align_offset(to, to->n ? to->clocks[0].at_ns : 0);
	guess = realtime - align_offset(to, guess);
	return realtime - align_offset(to, guess);
}

uint64_t align_drift(const struct align *a)
{
	int64_t least = 0, most = 0;

	for (unsigned int i = 1; i < a->n; i++) {
		int64_t d = (int64_t)(a->clocks[i].offset_ns - a->clocks[0].offset_ns);

		least = d < least ? d : least;
		most = d > most ? d : most;
	}
	return (uint64_t)most - (uint64_t)least;
}
