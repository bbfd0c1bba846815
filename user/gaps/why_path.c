/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * why_path.c - the critical path of a device's work: from the last work back, always to that which the one
 * before had to wait for: the work before it in its stream, or its launch; and from a thread that waited for
 * the device back to the work that it waited for. Every step divides the time up to the one before it.
 */
#include <stdio.h>

#include "why_inside.h"
#include "../util/table/array.h"

/* Work that could have begun so long ago, by its launch and its stream, waited for other work on the device. */
#define ORDER_NS 20000ULL

struct path {
	const struct why *w;
	struct why_walk *walk;
	const struct why_device *d;
	uint64_t from_ns, at_ns; /* at_ns: what lies behind it is divided */
	size_t place;		 /* of the work that ended at at_ns, where `on_device` */
	const struct why_thread *thread;
	bool on_device;
};

static void until(struct path *p, enum why_kind kind, const char *text, uint64_t ns)
{
	ns = why_most(ns, p->from_ns);
	if (ns >= p->at_ns)
		return;
	why_book_add(p->walk, kind, text, 0, p->at_ns - ns);
	p->at_ns = ns;
}

/* Of the work that ended at a moment or before, the last one that is before `place` in the order of ends; false: none. */
static bool ended_before(const struct why_device *d, uint64_t ns, size_t place, size_t *found)
{
	size_t n = array_before(d->by_end, d->nwork, e, e->ns <= ns);

	while (n &&
	       (d->by_end[n - 1].place == place ||
		(d->by_end[n - 1].ns == d->work[place].end_ns && d->by_end[n - 1].place > place)))
		n--;
	if (n)
		*found = d->by_end[n - 1].place;
	return n > 0;
}

static void to_host(struct path *p, const struct why_work *k)
{
	p->on_device = false;
	p->thread = why_thread_find(&p->w->threads, k->tid);
	p->walk->tid = k->tid;
}

/* Back over a piece of work, to what it waited for. */
static void device_step(struct path *p)
{
	const struct why_device *d = p->d;
	const struct why_work *k = &d->work[p->place];
	const struct why_work *before = d->before[p->place] ? &d->work[d->before[p->place] - 1]
							    : NULL;
	uint64_t launched = 0,
		 free_ns = before && before->end_ns <= k->start_ns ? before->end_ns : 0;
	size_t other = 0;
	char text[WHY_TEXT];
	bool any;

	snprintf(text, sizeof(text), "the GPU works: %s", why_texts_get(&p->w->texts, k->name));
	until(p, WHY_WORK, text, k->start_ns);
	any = ended_before(d, k->start_ns, p->place, &other);
	if (k->call_ns && k->tid)
		launched = why_least(why_launch_end(why_thread_find(&p->w->threads, k->tid), k),
				     k->start_ns);
	else if (!any) {
		until(p, WHY_NOT_LAUNCHED, "the launch was not seen", p->from_ns);
		return;
	}
	if (any && k->start_ns - why_most(launched, free_ns) > ORDER_NS &&
	    d->work[other].end_ns > why_most(launched, free_ns)) {
		until(p, launched ? WHY_LATENCY : WHY_NOT_LAUNCHED,
		      launched ? "launch latency" : "the launch was not seen",
		      d->work[other].end_ns);
		p->place = other;
	} else if (free_ns && free_ns >= launched) {
		until(p, WHY_LATENCY, "launch latency", free_ns);
		p->place = d->before[p->place] - 1;
	} else {
		until(p, WHY_LATENCY, "launch latency", launched);
		to_host(p, k);
	}
}

/* The last wait for the device before a moment that the thread was in when work ended: the work's place. */
static bool wait_before(const struct path *p, size_t *place)
{
	const struct why_thread *t = p->thread;
	size_t i = array_before(t->calls, t->ncalls, c, c->end_ns <= p->at_ns);

	for (; i && t->calls[i - 1].end_ns > p->from_ns; i--) {
		const struct why_call *c = &t->calls[i - 1];
		size_t n;

		if (!c->waits && !c->launches)
			continue;
		n = array_before(p->d->by_end, p->d->nwork, e, e->ns <= c->end_ns);
		for (; n && p->d->by_end[n - 1].ns > c->start_ns; n--) {
			const struct why_work *k = &p->d->work[p->d->by_end[n - 1].place];

			*place = p->d->by_end[n - 1].place;
			/* a call that launches waits for its own work, if for any */
			if (k->pid == t->pid && k->end_ns < p->at_ns &&
			    (c->waits || (k->call_ns == c->start_ns && k->tid == t->tid)))
				return true;
			if (!c->waits)
				break;
		}
	}
	return false;
}

/* Back over what the thread did since it last waited for the device. */
static void host_step(struct path *p)
{
	size_t place;
	uint64_t from = p->from_ns;

	p->on_device = p->thread && wait_before(p, &place);
	if (p->on_device) {
		p->place = place;
		from = why_most(from, p->d->work[place].end_ns);
	}
	if (from < p->at_ns)
		why_walk(p->walk, p->thread, from, p->at_ns, "", 0);
	p->at_ns = from;
}

void why_path(const struct why *w, struct why_walk *walk, const struct why_device *d, uint64_t from,
	      uint64_t to)
{
	struct path p = { .w = w,
			  .walk = walk,
			  .d = d,
			  .from_ns = from,
			  .at_ns = to,
			  .place = d->by_end[d->nwork - 1].place,
			  .on_device = true };

	walk->tid = d->work[p.place].tid;
	while (p.at_ns > from)
		if (p.on_device)
			device_step(&p);
		else
			host_step(&p);
}
