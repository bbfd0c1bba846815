/* SPDX-License-Identifier: BSD-2-Clause */
/* gaps.c - times in which the GPU starves. */
#include <stdlib.h>

#include "../rule.h"
#include "../../gaps/why.h"
#include "../../util/table/array.h"

#define GAPS_SHARE 0.05 /* of the time from a device's first work to its last */

struct gap {
	uint64_t start_ns, end_ns, before_ns; /* before: length of all gaps before it */
};

/* How much of start..end lies in gaps. */
static uint64_t in_gaps(const struct gap *gaps, size_t n, uint64_t at_ns)
{
	size_t i = array_before(gaps, n, x, x->start_ns < at_ns);
	const struct gap *g = i ? &gaps[i - 1] : NULL;

	return g ? g->before_ns + (at_ns < g->end_ns ? at_ns : g->end_ns) - g->start_ns : 0;
}

static uint64_t end_of(const struct long_call *c)
{
	return c->start_ns + c->ns < c->start_ns ? UINT64_MAX : c->start_ns + c->ns;
}

/* What the host did in the gaps: time in calls by function, of all threads together; time in
 * which there was any. */
struct host {
	uint64_t by_func[CT_MAX_FUNCS];
	uint64_t any_ns, own_ns; /* own: of the profiler */
};

/* CUPTI's own work, which there would be none of without it. */
static bool is_own(uint32_t type)
{
	switch (type & ~(1u << 31)) {
	case 1 << 16:
	case 2 << 16:
	case 3 << 16:
	case 7 << 16:
	case 8 << 16: return true;
	default: return false;
	}
}

static void look_at_host(struct advice *a, const struct advise_process *p, const struct gap *gaps,
			 size_t n, struct host *host)
{
	uint64_t least, until = 0, own_until = 0;
	size_t ncalls;
	const struct long_call *calls = advise_long_calls(a, &ncalls, &least);

	for (size_t i = 0; i < ncalls; i++) {
		const struct long_call *c = &calls[i];
		uint64_t end = end_of(c), from = c->start_ns;

		if (c->proc != p->index)
			continue;
		if (c->type) {
			from = from > own_until ? from : own_until;
			if (!is_own(c->type) || from >= end)
				continue;
			host->own_ns += in_gaps(gaps, n, end) - in_gaps(gaps, n, from);
			own_until = end;
			continue;
		}
		host->by_func[c->func] += in_gaps(gaps, n, end) - in_gaps(gaps, n, from);
		from = from > until ? from : until;
		if (from >= end)
			continue;
		host->any_ns += in_gaps(gaps, n, end) - in_gaps(gaps, n, from);
		until = end;
	}
}

static void say_host(struct text *t, const struct host *host, uint64_t total_ns, uint64_t least_ns)
{
	bool said[CT_MAX_FUNCS] = { false };

	if (!host->any_ns) {
		rule_say(t,
			 " No thread was inside a call of %s or more meanwhile: the host was busy "
			 "with work of its "
			 "own, or idle.",
			 rule_time((double)least_ns));
		return;
	}
	rule_say(t, " Meanwhile the host was inside calls of %s or more for %s:",
		 rule_time((double)least_ns), rule_time((double)host->any_ns));
	for (int k = 0; k < 3; k++) {
		int most = -1;

		for (int i = 0; i < api_nfuncs; i++)
			if (!said[i] && host->by_func[i] &&
			    (most < 0 || host->by_func[i] > host->by_func[most]))
				most = i;
		if (most < 0)
			break;
		said[most] = true;
		rule_say(t, "%s %s %s", k ? "," : "", api_funcs[most].name,
			 rule_time((double)host->by_func[most]));
	}
	rule_say(t, "; for %s it was inside none.",
		 rule_time((double)(total_ns > host->any_ns ? total_ns - host->any_ns : 0)));
}

/* Where it was recorded what threads waited for, that is the answer. */
static bool say_causes(struct text *t, const struct why_part *p)
{
	if (!p || !p->idle_ns || !p->known_ns)
		return false;
	rule_say(t, " What it waited for (`cudatrace why FILE` has all of it):");
	for (size_t i = 0; i < p->ncauses && i < 3; i++)
		rule_say(t, "%s %.1f %% of the idle time %s", i ? ";" : "",
			 (double)p->causes[i].ns / (double)p->idle_ns * 100, p->causes[i].text);
	rule_say(t, ".");
	return true;
}

static size_t find_gaps(const struct spans *b, struct gap *gaps, struct hits *h, uint64_t *total_ns)
{
	size_t n = 0;

	for (uint32_t i = 1; i < b->n; i++) {
		uint64_t from = b->at[i - 1].end_ns, ns = b->at[i].start_ns - from;
		struct site one = { .func = b->at[i].kind,
				    .stack = b->at[i].tag,
				    .n = 1,
				    .ns = ns,
				    .at_ns = from,
				    .took_ns = ns };

		if (ns < GAP_NS)
			continue;
		gaps[n++] = (struct gap){ from, b->at[i].start_ns, *total_ns };
		*total_ns += ns;
		hits_add(h, &one, NULL);
	}
	return n;
}

static void gaps_of(struct advice *a, struct advise_process *p, const struct proc_device *d)
{
	struct gap *gaps = malloc((d->busy.n + 1) * sizeof(*gaps)), *longest;
	struct host *host = calloc(1, sizeof(*host));
	struct hits h = { .n = 0 };
	uint64_t total = 0, span, least;
	struct advise_finding *f;
	size_t n, ncalls;

	if (!gaps || !host || !d->busy.n)
		goto out;
	n = find_gaps(&d->busy, gaps, &h, &total);
	span = d->busy.at[d->busy.n - 1].end_ns - d->busy.at[0].start_ns;
	if (!n || (double)total < GAPS_SHARE * (double)span)
		goto out;
	look_at_host(a, p, gaps, n, host);
	f = rule_finding_of(a, &rule_gaps, p, &h);
	if (!f)
		goto out;
	f->one.cost_ns = total > host->own_ns ? total - host->own_ns : 0;
	longest = gaps;
	for (size_t i = 1; i < n; i++)
		if (gaps[i].end_ns - gaps[i].start_ns > longest->end_ns - longest->start_ns)
			longest = &gaps[i];
	rule_say(&f->evidence,
		 "Device %u had nothing of this process to do for %s or more %llu times, %s of the "
		 "%s "
		 "from its first work to its last; "
		 "the longest time was %s.",
		 d->id, rule_time((double)GAP_NS), (unsigned long long)n, rule_time((double)total),
		 rule_time((double)span), rule_time((double)(longest->end_ns - longest->start_ns)));
	if (!say_causes(&f->evidence, advise_causes(a, p, d->id))) {
		advise_long_calls(a, &ncalls, &least);
		say_host(&f->evidence, host, total, least);
	}
	if (host->own_ns)
		rule_say(&f->evidence,
			 " CUPTI's own work took %s of it, which is not part of the "
			 "cost.",
			 rule_time((double)host->own_ns));
out:
	hits_free(&h);
	free(host);
	free(gaps);
}

static void gaps_end(void *state, struct advice *a, struct advise_process *p)
{
	(void)state;
	for (unsigned int i = 0; i < p->ndevices; i++)
		gaps_of(a, p, &p->devices[i]);
}

/* clang-format off */
const struct rule rule_gaps = {
	{ "gpu-gaps", "Times in which the GPU starves", ADVISE_DEVICE,
	  "the length of the gaps, without CUPTI's own work in them",
	  "Prepare the next work while the device is busy with this: load data in other threads, launch "
	  "ahead, wait later. The places below are the calls that ended the gaps." },
	.most = ADVISE_SERIOUS,
	.state_bytes = 1, .end = gaps_end
};
/* clang-format on */
