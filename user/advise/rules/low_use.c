/* SPDX-License-Identifier: BSD-2-Clause */
/* low_use.c - a GPU that is mostly idle. */
#include "../rule.h"

#define CHUNKS 30
#define LOW_SHARE 0.5 /* busy less than that: a low chunk */
#define LOW_CHUNKS 10 /* so many of them */
#define LOW_SPAN_NS 10000000ULL
#define LOW_WORK 30 /* spans and more */

struct chunks {
	uint64_t begin_ns;
	double width_ns;
	double busy[CHUNKS], gap[CHUNKS]; /* gap: in gaps that gpu-gaps counts */
};

static void spread(const struct chunks *c, double *into, uint64_t start_ns, uint64_t end_ns,
		   double amount)
{
	double from = (double)(start_ns - c->begin_ns) / c->width_ns,
	       to = (double)(end_ns - c->begin_ns) / c->width_ns;
	double length = to - from;

	for (int i = from < CHUNKS ? (int)from : CHUNKS - 1; i < CHUNKS && i < to; i++) {
		double low = from > i ? from : i, high = to < i + 1 ? to : i + 1;

		if (length <= 0)
			into[i] += amount;
		else if (high > low)
			into[i] += amount * (high - low) / length;
	}
}

static void low_use_of(struct advice *a, struct advise_process *p, const struct proc_device *d)
{
	const struct spans *b = &d->busy;
	unsigned int low = 0, worst = 0, first = CHUNKS, last = 0;
	double idle = 0, busy = 0;
	struct advise_finding *f;
	struct chunks c = { 0 };
	uint64_t span, gap;

	if (b->n < LOW_WORK)
		return;
	c.begin_ns = b->at[0].start_ns;
	span = b->at[b->n - 1].end_ns - c.begin_ns;
	if (span < LOW_SPAN_NS)
		return;
	c.width_ns = (double)span / CHUNKS;
	for (uint32_t i = 0; i < b->n; i++) {
		spread(&c, c.busy, b->at[i].start_ns, b->at[i].end_ns, (double)b->at[i].busy_ns);
		gap = i ? b->at[i].start_ns - b->at[i - 1].end_ns : 0;
		if (gap >= GAP_NS)
			spread(&c, c.gap, b->at[i - 1].end_ns, b->at[i].start_ns, (double)gap);
	}
	for (unsigned int i = 0; i < CHUNKS; i++) {
		busy += c.busy[i];
		worst = c.busy[i] < c.busy[worst] ? i : worst;
		if (c.busy[i] >= LOW_SHARE * c.width_ns)
			continue;
		low++;
		first = i < first ? i : first;
		last = i;
		if (c.width_ns - c.busy[i] - c.gap[i] > 0)
			idle += c.width_ns - c.busy[i] - c.gap[i];
	}
	if (low < LOW_CHUNKS || idle < 1)
		return;
	f = rule_finding(a, &rule_low_use, p);
	if (!f)
		return;
	f->one.n = low;
	f->one.cost_ns = (uint64_t)(idle + 0.5);
	text_str(&f->places[0].name, "the least busy part");
	f->places[0].n = 1;
	f->places[0].cost_ns =
		(uint64_t)(c.width_ns - c.busy[worst] > 0 ? c.width_ns - c.busy[worst] : 0);
	f->places[0].at_ns = c.begin_ns + (uint64_t)(c.width_ns * worst);
	f->places[0].took_ns = (uint64_t)c.width_ns;
	f->nplaces = 1;
	rule_say(&f->evidence,
		 "Of %d equal parts of the %s from the first work of device %u to its last, %u had "
		 "it "
		 "busy for less than %.0f %% of the "
		 "time, all of them between part %u and part %u; the least busy one %.1f %%, the "
		 "whole "
		 "%.1f %%.",
		 CHUNKS, rule_time((double)span), d->id, low, LOW_SHARE * 100, first + 1, last + 1,
		 c.busy[worst] / c.width_ns * 100, busy / (double)span * 100);
}

static void low_use_end(void *state, struct advice *a, struct advise_process *p)
{
	(void)state;
	for (unsigned int i = 0; i < p->ndevices; i++)
		low_use_of(a, p, &p->devices[i]);
}

/* clang-format off */
const struct rule rule_low_use = {
	{ "low-utilisation", "The GPU is mostly idle", ADVISE_DEVICE,
	  "the idle time in these parts, without the gaps that gpu-gaps counts",
	  "Many short gaps: launch more at once (graphs, larger batches), use several streams, see "
	  "launch-bound and sync-after-launch." },
	.most = ADVISE_SERIOUS,
	.state_bytes = 1, .end = low_use_end
};
/* clang-format on */
