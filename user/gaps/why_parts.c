/* SPDX-License-Identifier: BSD-2-Clause */
/* why_parts.c - the gaps of each device, or of each launching thread, and their causes. See why_inside.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "why_inside.h"
#include "../event/holes/holes.h"
#include "../util/table/array.h"

#define LATENCY_NS 5000ULL
/* Work that ends on another device lets a stream that waits for it go on after so long at most. */
#define EVENT_NS 50000ULL

/* ---- order ---- */

#define BY(name, type, member)                                                         \
	static int name(const void *a, const void *b)                                  \
	{                                                                              \
		uint64_t x = ((const type *)a)->member, y = ((const type *)b)->member; \
                                                                                       \
		return (x > y) - (x < y);                                              \
	}
BY(by_end, struct why_segment, end_ns)
BY(by_moment, struct why_sample, ns)
BY(by_call, struct why_call, start_ns)

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int by_start(const void *a, const void *b)
{
	const struct why_work *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns > y->start_ns ? 1 : -1;
	return (x->call_ns > y->call_ns) - (x->call_ns < y->call_ns);
}

static int by_ended(const void *a, const void *b)
{
	const struct why_ended *x = a, *y = b;

	return x->ns != y->ns ? (x->ns > y->ns ? 1 : -1)
			      : (x->place > y->place) - (x->place < y->place);
}

static void sort_threads(struct why *w)
{
	chains_each(&w->threads, link)
	{
		struct why_thread *t = (struct why_thread *)link;

		if (t->nsegments)
			qsort(t->segments, t->nsegments, sizeof(*t->segments), by_end);
		if (t->nsamples)
			qsort(t->samples, t->nsamples, sizeof(*t->samples), by_moment);
		if (t->ncalls)
			qsort(t->calls, t->ncalls, sizeof(*t->calls), by_call);
	}
}

static int sort_device(struct why_device *d)
{
	struct why_stream *s;

	hash_map_each(&d->streams, s) if (s->nwaits)
		qsort(s->waits, s->nwaits, sizeof(*s->waits), by_number);
	if (!d->nwork)
		return 0;
	qsort(d->work, d->nwork, sizeof(*d->work), by_start);
	d->before = calloc(d->nwork, sizeof(*d->before));
	d->by_end = calloc(d->nwork, sizeof(*d->by_end));
	if (!d->before || !d->by_end)
		return -ENOMEM;
	for (size_t i = 0; i < d->nwork; i++) {
		s = hash_map_at(&d->streams, d->work[i].stream);
		d->before[i] = s->last;
		s->last = (uint32_t)i + 1;
		d->by_end[i] = (struct why_ended){ d->work[i].end_ns, (uint32_t)i };
	}
	qsort(d->by_end, d->nwork, sizeof(*d->by_end), by_ended);
	return 0;
}

/* ---- a gap ---- */

uint64_t why_launch_end(const struct why_thread *t, const struct why_work *k)
{
	size_t at;

	if (k->call_end_ns || !t)
		return k->call_end_ns ? k->call_end_ns : k->call_ns;
	at = array_before(t->calls, t->ncalls, c, c->start_ns < k->call_ns);
	return at < t->ncalls && t->calls[at].start_ns == k->call_ns ? t->calls[at].end_ns
								     : k->call_ns;
}

static const char *work_word(uint8_t kind)
{
	return kind == CT_COPY	  ? "a copy"
	       : kind == CT_SET	  ? "a set"
	       : kind == CT_GRAPH ? "a graph"
				  : "a kernel";
}

/* Was its stream told to wait for an event, after the work before it in its stream was launched? */
static bool waited(const struct why_device *d, size_t place)
{
	const struct why_work *k = &d->work[place];
	const struct why_stream *s = hash_map_at(&d->streams, k->stream);
	uint64_t from = d->before[place] ? d->work[d->before[place] - 1].call_ns : 0;
	size_t at = array_before(s->waits, s->nwaits, n, *n < from);

	return at < s->nwaits && s->waits[at] <= k->call_ns;
}

/* The work of the same program on another device that ended in from..to, shortly before `to`. */
static const struct why_work *elsewhere(const struct why *w, const struct why_device *d,
					uint32_t pid, uint64_t from, uint64_t to,
					const struct why_device **other)
{
	const struct why_work *last = NULL;

	from = why_most(from, to < EVENT_NS ? 0 : to - EVENT_NS);
	for (unsigned int i = 0; i < w->ndevices; i++) {
		const struct why_device *o = &w->devices[i];
		size_t n = o == d || !o->by_end ? 0
						: array_before(o->by_end, o->nwork, e, e->ns <= to);

		for (; n && o->by_end[n - 1].ns > from; n--) {
			const struct why_work *k = &o->work[o->by_end[n - 1].place];

			if (k->pid != pid || (last && last->end_ns >= k->end_ns))
				continue;
			last = k;
			*other = o;
			break;
		}
	}
	return last;
}

static void between(struct why_walk *walk, enum why_kind kind, const char *text, uint64_t from,
		    uint64_t to)
{
	why_book_add(walk, kind, text, 0, to > from ? to - from : 0);
}

/* The stream waited for another device: what that one did, and before that who launched it. */
static void of_other(const struct why *w, struct why_walk *walk, const struct why_device *other,
		     const struct why_work *k, uint64_t from, uint64_t to)
{
	const struct why_thread *t = why_thread_find(&w->threads, k->tid);
	const char *name = why_texts_get(&w->texts, k->name);
	uint64_t launch = k->call_ns ? k->call_ns : k->start_ns,
		 end = k->call_ns ? why_launch_end(t, k) : launch,
		 host = why_least(why_least(end, k->start_ns), to),
		 begin = why_least(k->start_ns, to);
	char text[WHY_TEXT];

	snprintf(text, sizeof(text), "waits for GPU %u <- ", other->number);
	if (host > from) {
		walk->tid = k->tid;
		why_walk(walk, t, from, host, text, 0);
	}
	snprintf(text, sizeof(text), "waits for GPU %u <- launch latency", other->number);
	between(walk, WHY_LATENCY, text, why_most(from, host), begin);
	snprintf(text, sizeof(text), "waits for GPU %u: %s", other->number, name);
	between(walk, WHY_OTHER_DEVICE, text, why_most(from, begin), to);
}

/* From the launch on. g: the whole gap; early: the launch was over when it began. */
static void of_device_itself(const struct why *w, struct why_walk *walk, const struct why_device *d,
			     const struct why_gap *g, bool early, uint64_t from, uint64_t to)
{
	const struct why_work *k = &d->work[g->work];
	const struct why_work *last = g->work ? &d->work[g->work - 1] : NULL, *away = NULL;
	const struct why_device *other;
	bool brief = g->to_ns - g->from_ns <= LATENCY_NS, event = !brief && waited(d, g->work);
	char text[96];

	if (from >= to)
		return;
	if (event)
		away = elsewhere(w, d, k->pid, g->from_ns, g->to_ns, &other);
	if (away) {
		of_other(w, walk, other, away, from, to);
		return;
	}
	if (early && last && last->call_ns == k->call_ns && last->tid == k->tid) {
		between(walk, WHY_GRAPH, "between the pieces of work of one launch", from, to);
		return;
	}
	if (!early || brief) {
		between(walk, WHY_LATENCY, "launch latency", from, to);
		return;
	}
	snprintf(text, sizeof(text), "%s was launched before, and %s", work_word(k->kind),
		 event ? "its stream waited for an event" : "waited on the device");
	between(walk, WHY_DEVICE, text, from, to);
}

void why_gap_divide(const struct why *w, struct why_walk *walk, const struct why_gaps *gaps,
		    const struct why_gap *g, uint64_t from, uint64_t to)
{
	const struct why_device *d = gaps->device;
	const struct why_work *k = d ? &d->work[g->work] : NULL;
	const struct why_thread *t = d ? why_thread_find(&w->threads, k->tid) : gaps->thread;
	uint64_t begin, end;

	from = why_most(from, g->from_ns);
	to = why_least(to, g->to_ns);
	if (from >= to)
		return;
	walk->tid = d ? k->tid : t->tid;
	if (!d) {
		why_walk(walk, t, from, to, "", 0);
		return;
	}
	if (!k->call_ns || !k->tid) {
		between(walk, WHY_NOT_LAUNCHED, "the launch was not seen", from, to);
		return;
	}
	begin = why_least(why_most(k->call_ns, g->from_ns), g->to_ns);
	end = why_least(why_most(why_launch_end(t, k), begin), g->to_ns);
	if (end <= g->from_ns && k->call_ns < g->from_ns) {
		of_device_itself(w, walk, d, g, true, from, to);
		return;
	}
	if (begin > from)
		why_walk(walk, t, from, why_least(begin, to), "", 0);
	if (why_most(begin, from) < why_least(end, to))
		why_walk(walk, t, why_most(begin, from), why_least(end, to), "", 0);
	of_device_itself(w, walk, d, g, false, why_most(end, from), to);
}

/* ---- a part ---- */

static int by_length(const void *a, const void *b)
{
	const struct why_cause *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return strcmp(x->text, y->text);
}

struct why_cause *why_causes(const struct why *w, const struct why_part *p, struct why_book *book,
			     size_t *n)
{
	struct why_cause *list = calloc(book->entries.n + 1, sizeof(*list));

	*n = 0;
	if (!list || book->bad) {
		free(list);
		return NULL;
	}
	chains_each(&book->entries, link)
	{
		const struct why_entry *e = (struct why_entry *)link;
		const struct why_thread *t = why_thread_find(&w->threads, e->tid);
		struct why_cause *c = &list[*n];

		if (!e->ns)
			continue;
		++*n;
		*c = (struct why_cause){ .kind = e->kind,
					 .text = why_texts_get(&w->texts, e->text),
					 .line = e->line ? why_texts_get(&w->texts, e->line) : NULL,
					 .ns = e->ns,
					 .sampled_ns = e->sampled_ns,
					 .samples = e->samples,
					 .n = e->n,
					 .pid = t ? t->shown_pid : p->pid };
		memcpy(c->comm, t ? t->process : p->comm, sizeof(c->comm));
	}
	qsort(list, *n, sizeof(*list), by_length);
	return list;
}

static int add_gap(struct why_gaps *gaps, struct why_part *p, uint64_t from, uint64_t to,
		   size_t work)
{
	if (!array_room(gaps->list, gaps->n))
		return -ENOMEM;
	gaps->list[gaps->n++] = (struct why_gap){ from, to, work };
	p->idle_ns += to - from;
	p->gaps++;
	return 0;
}

/* Which of the busy time nothing computed in. */
static void take_class(void *ctx, uint64_t tag, const uint64_t ns[OVERLAP_END])
{
	struct why_part *p = ctx;

	(void)tag;
	p->copies_ns = ns[OVERLAP_COPY];
	p->collectives_ns = ns[OVERLAP_COLLECTIVE];
}

static int classes(const struct why_device *d, struct why_part *p)
{
	struct overlap *o = overlap_open(2 * d->nwork + 4, UINT64_MAX / 4, take_class, p);
	int err = o ? overlap_window(o, 0, 0, p->from_ns, p->to_ns) : -ENOMEM;

	for (size_t i = 0; i < d->nwork && !err; i++)
		err = overlap_work(o, 0, (enum overlap_class)d->work[i].class, d->work[i].start_ns,
				   d->work[i].end_ns);
	err = err ? err : overlap_settle(o);
	overlap_close(o);
	return err;
}

static int gaps_of_device(const struct why_device *d, struct why_part *p, struct why_gaps *gaps)
{
	uint64_t end = d->work[0].start_ns;
	struct why_stream *s;
	int err = 0;

	*p = (struct why_part){
		.is_device = true, .device = d->number, .pid = d->shown_pid, .from_ns = end
	};
	memcpy(p->comm, d->comm, sizeof(p->comm));
	for (size_t i = 0; i < d->nwork && !err; i++) {
		const struct why_work *k = &d->work[i];

		if (k->start_ns > end) {
			err = add_gap(gaps, p, end, k->start_ns, i);
			end = k->start_ns;
		}
		p->busy_ns += k->end_ns > end ? k->end_ns - end : 0;
		end = why_most(end, k->end_ns);
	}
	p->to_ns = end;
	hash_map_each(&d->streams, s) p->least_ns = why_most(p->least_ns, s->busy_ns);
	p->least_ns = why_least(p->least_ns, p->busy_ns);
	return err ? err : classes(d, p);
}

/* Without device work: what lies between the launches of a thread. */
static int gaps_of_thread(const struct why_thread *t, struct why_part *p, struct why_gaps *gaps)
{
	uint64_t end = 0;
	int err = 0;

	*p = (struct why_part){ .device = t->shown_tid, .pid = t->shown_pid };
	memcpy(p->comm, t->comm, sizeof(p->comm));
	for (size_t i = 0; i < t->ncalls && !err; i++) {
		const struct why_call *c = &t->calls[i];

		if (!c->launches)
			continue;
		if (!p->from_ns)
			p->from_ns = end = c->start_ns;
		if (c->start_ns > end) {
			err = add_gap(gaps, p, end, c->start_ns, 0);
			end = c->start_ns;
		}
		p->busy_ns += c->end_ns > end ? c->end_ns - end : 0;
		end = why_most(end, c->end_ns);
	}
	p->to_ns = end;
	return err;
}

/* A part, of which d or t is given. */
static int make_part(struct why *w, const struct why_device *d, const struct why_thread *t)
{
	struct why_part *p = &w->parts[w->nparts];
	struct why_walk walk = { .texts = &w->texts,
				 .threads = &w->threads,
				 .book = &w->books[w->nparts] };
	struct why_gaps gaps = { .device = d, .thread = t };
	int err = d ? gaps_of_device(d, p, &gaps) : gaps_of_thread(t, p, &gaps);

	for (size_t i = 0; i < gaps.n && !err; i++)
		why_gap_divide(w, &walk, &gaps, &gaps.list[i], 0, UINT64_MAX);
	why_book_close_pools(&walk);
	p->causes = err ? NULL : why_causes(w, p, walk.book, &p->ncauses);
	for (size_t i = 0; i < p->ncauses; i++)
		p->known_ns += why_known(p->causes[i].kind) ? p->causes[i].ns : 0;
	if (d && !err) {
		walk.book = &w->paths[w->nparts];
		why_path(w, &walk, d, p->from_ns, p->to_ns);
		why_book_close_pools(&walk);
		p->path = why_causes(w, p, walk.book, &p->npath);
	}
	w->nparts++;
	if (!err && (!p->causes || (d && !p->path)))
		err = -ENOMEM;
	if (!err)
		err = why_steps_find(w, &gaps, d ? d->pid : t->pid, p);
	free(gaps.list);
	return err;
}

static bool launches(const struct why_thread *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->ncalls && n < 2; i++)
		n += t->calls[i].launches;
	return n == 2;
}

/* Those with the longest time between launches first. */
static int by_launches(const void *a, const void *b)
{
	const struct why_thread *x = *(struct why_thread *const *)a,
				*y = *(struct why_thread *const *)b;

	if (x->ncalls != y->ncalls)
		return x->ncalls < y->ncalls ? 1 : -1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int make_thread_parts(struct why *w, struct why_thread **list)
{
	size_t n = 0;
	int err = 0;

	chains_each(&w->threads, link) if (launches((struct why_thread *)link))
		list[n++] = (struct why_thread *)link;
	qsort(list, n, sizeof(struct why_thread *), by_launches);
	for (size_t i = 0; i < n && i < WHY_THREADS && !err; i++)
		err = make_part(w, NULL, list[i]);
	w->totals.threads_left_out = n > WHY_THREADS ? n - WHY_THREADS : 0;
	return err;
}

const struct why_part *why_finish(struct why *w, const struct holes *holes, size_t *n)
{
	struct why_thread **list = calloc(w->threads.n + 1, sizeof(struct why_thread *));
	size_t most = why_most(WHY_THREADS, WHY_DEVICES);
	int err;

	*n = 0;
	w->parts = calloc(most, sizeof(*w->parts));
	w->books = calloc(most, sizeof(*w->books));
	w->paths = calloc(most, sizeof(*w->paths));
	steps_holes(w->steps, holes);
	err = list && w->parts && w->books && w->paths ? steps_finish(w->steps) : -ENOMEM;
	if (!err)
		sort_threads(w);
	for (unsigned int i = 0; i < w->ndevices && !err; i++)
		err = sort_device(&w->devices[i]);
	for (unsigned int i = 0; i < w->ndevices && !err; i++)
		if (w->devices[i].nwork)
			err = make_part(w, &w->devices[i], NULL);
	if (!w->nparts && !err)
		err = make_thread_parts(w, list);
	free(list);
	*n = w->nparts;
	return err ? NULL : w->parts;
}
