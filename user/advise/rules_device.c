/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_device.c - rules about when devices were busy and when not, and about the default stream. */
#include <stdlib.h>
#include <string.h>

#include "rules.h"

#define GAP_NS 1000000ULL
#define GAPS_SHARE 0.05 /* of the time from a device's first work to its last */
#define CHUNKS 30
#define LOW_SHARE 0.5 /* busy less than that: a low chunk */
#define LOW_CHUNKS 10 /* so many of them */
#define LOW_SPAN_NS 10000000ULL
#define LOW_WORK 30 /* spans and more */
#define STREAM_TURNS 10

/* ---- gaps ---- */

struct gap {
	uint64_t start_ns, end_ns, before_ns; /* before: length of all gaps before it */
};

/* How much of start..end lies in gaps. */
static uint64_t in_gaps(const struct gap *gaps, size_t n, uint64_t at_ns)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (gaps[mid].start_ns < at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return 0;
	low--;
	return gaps[low].before_ns +
	       ((at_ns < gaps[low].end_ns ? at_ns : gaps[low].end_ns) - gaps[low].start_ns);
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

static void look_at_host(struct advice *a, const struct proc *p, const struct gap *gaps, size_t n,
			 struct host *host)
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

static void gaps_of(struct advice *a, struct proc *p, const struct proc_device *d)
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
	f = rule_finding_of(a, &rules[RULE_GAPS], p, &h);
	if (!f)
		goto out;
	f->cost_ns = total > host->own_ns ? total - host->own_ns : 0;
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
	advise_long_calls(a, &ncalls, &least);
	say_host(&f->evidence, host, total, least);
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

void gaps_end(void *state, struct advice *a, struct proc *p)
{
	(void)state;
	for (unsigned int i = 0; i < p->ndevices; i++)
		gaps_of(a, p, &p->devices[i]);
}

/* ---- low utilisation ---- */

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

static void low_use_of(struct advice *a, struct proc *p, const struct proc_device *d)
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
	f = rule_finding(a, &rules[RULE_LOW_USE], p);
	if (!f)
		return;
	f->n = low;
	f->cost_ns = (uint64_t)(idle + 0.5);
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

void low_use_end(void *state, struct advice *a, struct proc *p)
{
	(void)state;
	for (unsigned int i = 0; i < p->ndevices; i++)
		low_use_of(a, p, &p->devices[i]);
}

/* ---- the default stream ---- */

/* CUpti_ActivityStreamFlag: waits for the null stream, as it does for it */
#define STREAM_DEFAULT 1

static struct stream_use *use_of(struct default_stream *d, uint32_t context)
{
	for (unsigned int i = 0; i < d->ncontexts; i++)
		if (d->contexts[i].context == context)
			return &d->contexts[i];
	if (d->ncontexts == ARRAY_LEN(d->contexts))
		return NULL;
	d->contexts[d->ncontexts].context = context;
	return &d->contexts[d->ncontexts++];
}

int default_stream_event(void *state, const struct seen *s)
{
	struct default_stream *d = state;
	const struct stream_flags *flags;
	struct stream_use *u;

	if (s->h->kind == CT_CONTEXT) {
		const struct ct_context *c = (const struct ct_context *)s->h;

		u = use_of(d, c->id);
		if (u) {
			u->null_stream = c->null_stream;
			u->told = true;
		}
		return 0;
	}
	if (s->h->kind == CT_STREAM) {
		const struct ct_stream *c = (const struct ct_stream *)s->h;

		d->streams[c->id % ARRAY_LEN(d->streams)] =
			(struct stream_flags){ c->id, c->flags };
		return 0;
	}
	u = use_of(d, s->work->context);
	if (!u || !u->told || s->h->flags & CT_F_NO_TIME)
		return 0;
	if (!u->kept && !u->refused) {
		u->kept = advise_may_keep_spans(s->a, 2);
		u->refused = !u->kept;
	}
	if (u->refused)
		return 0;
	if (s->work->stream == u->null_stream) {
		u->nnull++;
		return spans_add(&u->null, s->h->start_ns, s->h->end_ns,
				 s->ev->cause ? s->ev->cause->func : CT_NO_FUNC,
				 sites_stack_of(advise_stacks(s->a), s->ev->stack));
	}
	flags = &d->streams[s->work->stream % ARRAY_LEN(d->streams)];
	if (flags->id != s->work->stream || flags->flags != STREAM_DEFAULT)
		return 0;
	u->nothers++;
	return spans_add(&u->others, s->h->start_ns, s->h->end_ns, CT_NO_FUNC, 0);
}

/* The null stream's spans that begin after other streams' work and are followed by more of it. */
static void find_turns(struct stream_use *u, struct hits *h)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < u->null.n; i++) {
		const struct span *s = &u->null.at[i];
		struct site one = { .func = s->kind,
				    .stack = s->tag,
				    .n = 1,
				    .ns = s->busy_ns,
				    .at_ns = s->start_ns,
				    .took_ns = s->end_ns - s->start_ns };

		while (k < u->others.n && u->others.at[k].start_ns < s->start_ns)
			k++;
		if (k && k < u->others.n)
			hits_add(h, &one, NULL);
	}
}

void default_stream_end(void *state, struct advice *a, struct proc *p)
{
	struct default_stream *d = state;

	for (unsigned int i = 0; i < d->ncontexts; i++) {
		struct stream_use *u = &d->contexts[i];
		struct hits h = { .n = 0 };
		struct advise_finding *f;

		if (spans_settle(&u->null) || spans_settle(&u->others))
			continue;
		find_turns(u, &h);
		f = h.n >= STREAM_TURNS ? rule_finding_of(a, &rules[RULE_DEFAULT_STREAM], p, &h)
					: NULL;
		if (f)
			rule_say(&f->evidence,
				 "In context %u, %llu times work of the default stream, %s in all, "
				 "came between work of "
				 "other streams that wait for it "
				 "and that it waits for: while it ran, none of theirs could. The "
				 "default stream had %llu "
				 "pieces of work, they had "
				 "%llu.",
				 u->context, (unsigned long long)h.n, rule_time((double)h.ns),
				 (unsigned long long)u->nnull, (unsigned long long)u->nothers);
		hits_free(&h);
	}
}

void default_stream_free(void *state)
{
	struct default_stream *d = state;

	for (unsigned int i = 0; i < d->ncontexts; i++) {
		spans_free(&d->contexts[i].null);
		spans_free(&d->contexts[i].others);
	}
}
