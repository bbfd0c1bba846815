/* SPDX-License-Identifier: BSD-2-Clause */
/* why.c - see why.h: keeps what events say of threads and devices, and finds the gaps. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "why_inside.h"
#include "../api/traits.h"
#include "../event/gpus.h"
#include "../util/hash.h"
#include "../util/table/array.h"

#define SEGMENTS_MAX (2u << 20) /* 56 bytes each; samples count too */
#define WORK_MAX (2u << 20)
#define CALLS_MAX (2u << 20)
#define THREADS_MAX 8192
#define DEVICES_MAX 64
/* A shorter call is taken for a part of the code around it, unless it launches. */
#define CALL_NS 10000ULL
#define LATENCY_NS 5000ULL

struct work {
	uint64_t start_ns, end_ns;
	uint64_t call_ns, call_end_ns; /* 0: not known */
	uint32_t tid;
	uint8_t kind;
};

struct device {
	uint64_t key;
	uint32_t number, pid;
	char comm[CT_COMM_LEN];
	struct work *work;
	size_t nwork;
};

struct why {
	struct why_texts texts;
	struct chains threads; /* of struct why_thread */
	struct device devices[DEVICES_MAX];
	unsigned int ndevices;
	struct why_totals totals;
	struct why_part *parts;
	struct why_book *books;
	size_t nparts;
};

const char *why_word(enum why_kind kind)
{
	static const char *const words[WHY_KINDS] = {
		[WHY_RUNNING] = "running",
		[WHY_GC] = "garbage-collection",
		[WHY_PAGE_FAULTS] = "page-faults",
		[WHY_KERNEL] = "kernel-code",
		[WHY_CALL] = "cuda-call",
		[WHY_FILE] = "file",
		[WHY_FILE_SYNC] = "file-sync",
		[WHY_PAGE_READ] = "page-read",
		[WHY_PIPE] = "pipe",
		[WHY_SOCKET] = "socket",
		[WHY_POLL] = "poll",
		[WHY_LOCK] = "lock",
		[WHY_GIL] = "gil",
		[WHY_SLEEP] = "sleep",
		[WHY_CHILD] = "child",
		[WHY_DEVICE_FILE] = "device-file",
		[WHY_SYSTEM_CALL] = "system-call",
		[WHY_THROTTLED] = "throttled",
		[WHY_DISPLACED] = "displaced",
		[WHY_LATE] = "woken-late",
		[WHY_LATENCY] = "launch-latency",
		[WHY_DEVICE] = "device",
		[WHY_NOT_LAUNCHED] = "launch-not-seen",
		[WHY_NOT_TRACED] = "not-traced",
		[WHY_LOST] = "lost",
	};

	return words[kind];
}

/* ---- life ---- */

struct why *why_open(void)
{
	struct why *w = calloc(1, sizeof(*w));

	if (w && why_texts_open(&w->texts)) {
		free(w);
		return NULL;
	}
	return w;
}

void why_close(struct why *w)
{
	if (!w)
		return;
	chains_each(&w->threads, link)
	{
		struct why_thread *t = (struct why_thread *)link;

		chains_remove(&w->threads, link);
		free(t->segments);
		free(t->samples);
		free(t->calls);
		free(t);
	}
	chains_close(&w->threads);
	for (unsigned int i = 0; i < w->ndevices; i++)
		free(w->devices[i].work);
	for (size_t i = 0; i < w->nparts; i++) {
		free(w->parts[i].causes);
		why_book_free(&w->books[i]);
	}
	free(w->parts);
	free(w->books);
	why_texts_close(&w->texts);
	free(w);
}

/* ---- events ---- */

/* The text of foreign bytes. */
static uint32_t text_of(struct why *w, const char *bytes)
{
	struct text plain = { .s = NULL };
	uint32_t number;

	if (!*bytes)
		return 0;
	text_plain(&plain, bytes, 64);
	text_mem(&plain, "", 1);
	number = why_texts_add(&w->texts, plain.bad ? "" : plain.s);
	text_free(&plain);
	return number;
}

/* A thread's name as chains show it. */
static void set_name(struct why *w, struct why_thread *t, const char *bytes)
{
	const char *name = why_texts_get(&w->texts, text_of(w, bytes));
	size_t n = strlen(name);

	n = n < sizeof(t->comm) ? n : text_cut(name, sizeof(t->comm) - 1);
	memcpy(t->comm, name, n);
	t->comm[n] = '\0';
}

static struct why_thread *thread_of(struct why *w, const struct event *ev, uint32_t tid)
{
	struct why_thread *t = why_thread_find(&w->threads, tid);

	/* its first records may have come before that of its process */
	if (t && t->process[0] == '?')
		snprintf(t->process, sizeof(t->process), "%s", ev->proc->comm);
	if (t || !tid)
		return t;
	if (w->threads.n >= THREADS_MAX) {
		w->totals.no_room++;
		return NULL;
	}
	t = calloc(1, sizeof(*t));
	if (!t || chains_add(&w->threads, &t->link, tid)) {
		free(t);
		w->totals.no_room++;
		return NULL;
	}
	t->tid = tid;
	t->pid = ev->rec->pid;
	t->shown_pid = ev->proc->shown_pid;
	t->shown_tid = process_tid(ev->proc, tid);
	snprintf(t->process, sizeof(t->process), "%s", ev->proc->comm);
	set_name(w, t, ev->thread ? ev->thread : ev->proc->comm);
	w->totals.threads++;
	return t;
}

static int segment(struct why *w, const struct event *ev)
{
	const struct ct_host_segment *h = (const struct ct_host_segment *)ev->rec;
	struct why_thread *t = thread_of(w, ev, h->h.tid);
	uint32_t place;

	w->totals.host = true;
	if (!t)
		return 1;
	if (w->totals.segments + w->totals.samples >= SEGMENTS_MAX) {
		w->totals.no_room++;
		return 1;
	}
	place = why_texts_place(&w->texts, h->stack, ev->stack);
	if (h->comm[0])
		set_name(w, t, h->comm);
	if (h->state == CT_HOST_SAMPLED) {
		if (!array_room(t->samples, t->nsamples))
			return -ENOMEM;
		t->samples[t->nsamples++] = (struct why_sample){ .ns = h->h.start_ns,
								 .place = place,
								 .reason = h->reason };
		w->totals.samples++;
		return 1;
	}
	if (!array_room(t->segments, t->nsegments))
		return -ENOMEM;
	t->segments[t->nsegments++] = (struct why_segment){
		.run_ns = h->run_ns < h->h.start_ns ? h->run_ns : h->h.start_ns,
		.start_ns = h->h.start_ns,
		.end_ns = h->h.end_ns,
		.wake_ns = h->wake_ns,
		.other_tid = h->other_tid,
		.place = place,
		.object = text_of(w, h->object),
		.other = text_of(w, h->other),
		.state = h->state,
		.reason = h->reason < CT_HOST_REASON_END ? h->reason : CT_HOST_OTHER,
		.by = h->by,
	};
	w->totals.segments++;
	return 1;
}

static int call(struct why *w, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	bool launches = api_traits(c->func) & TR_WORK;
	struct why_thread *t;

	if (c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN | CT_F_HIDDEN) || c->depth ||
	    (!launches && c->h.end_ns - c->h.start_ns < CALL_NS))
		return 0;
	t = thread_of(w, ev, c->h.tid);
	if (!t || w->totals.calls >= CALLS_MAX) {
		w->totals.no_room += t != NULL;
		return 1;
	}
	if (!array_room(t->calls, t->ncalls))
		return -ENOMEM;
	t->calls[t->ncalls++] = (struct why_call){ .start_ns = c->h.start_ns,
						   .end_ns = c->h.end_ns,
						   .func = c->func,
						   .launches = launches };
	w->totals.calls++;
	return 1;
}

static struct device *device_of(struct why *w, const struct event *ev, uint32_t number)
{
	uint64_t key = ev->gpu ? (uint64_t)1 << 32 | ev->gpu->number
			       : hash_number((uint64_t)ev->rec->pid << 32 | number);
	struct device *d = w->devices;

	for (unsigned int i = 0; i < w->ndevices; i++, d++)
		if (d->key == key)
			return d;
	if (w->ndevices == DEVICES_MAX)
		return NULL;
	w->ndevices++;
	d->key = key;
	d->number = ev->gpu ? ev->gpu->number : number;
	d->pid = ev->proc->shown_pid;
	snprintf(d->comm, sizeof(d->comm), "%s", ev->proc->comm);
	return d;
}

static int work(struct why *w, const struct event *ev)
{
	const struct ct_work *k = (const struct ct_work *)ev->rec;
	struct device *d;

	if (k->h.flags & CT_F_NO_TIME) {
		w->totals.no_time++;
		return 1;
	}
	d = w->totals.work < WORK_MAX ? device_of(w, ev, k->device) : NULL;
	if (!d) {
		w->totals.no_room++;
		return 1;
	}
	if (!array_room(d->work, d->nwork))
		return -ENOMEM;
	d->work[d->nwork++] =
		(struct work){ .start_ns = k->h.start_ns,
			       .end_ns = k->h.end_ns,
			       .call_ns = ev->cause ? ev->cause->start_ns : k->call_ns,
			       .call_end_ns = ev->cause ? ev->cause->end_ns : 0,
			       .tid = ev->cause ? ev->cause->tid : k->h.tid,
			       .kind = (uint8_t)k->h.kind };
	w->totals.work++;
	return 1;
}

int why_event(struct why *w, const struct event *ev)
{
	uint16_t kind = ev->rec->kind;

	return kind == CT_HOST_SEGMENT	  ? segment(w, ev)
	       : kind == CT_CALL	  ? call(w, ev)
	       : kind_is(kind, KIND_BUSY) ? work(w, ev)
					  : 0;
}

void why_totals(const struct why *w, struct why_totals *t)
{
	*t = w->totals;
}

/* ---- the end ---- */

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

static int by_start(const void *a, const void *b)
{
	const struct work *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns > y->start_ns ? 1 : -1;
	return (x->call_ns > y->call_ns) - (x->call_ns < y->call_ns);
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

/* The end of a launch, by the thread's calls where the join did not keep it. */
static uint64_t launch_end(const struct why_thread *t, const struct work *k)
{
	size_t low = 0, high = t ? t->ncalls : 0;

	if (k->call_end_ns)
		return k->call_end_ns;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (t->calls[mid].start_ns < k->call_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return t && low < t->ncalls && t->calls[low].start_ns == k->call_ns ? t->calls[low].end_ns
									    : k->call_ns;
}

static const char *work_word(uint8_t kind)
{
	return kind == CT_COPY	  ? "a copy"
	       : kind == CT_SET	  ? "a set"
	       : kind == CT_GRAPH ? "a graph"
				  : "a kernel";
}

/* One gap, which a piece of work ends. */
static void gap(struct why *w, struct why_walk *walk, uint64_t from, uint64_t to,
		const struct work *k)
{
	const struct why_thread *t = why_thread_find(&w->threads, k->tid);
	uint64_t begin, end;
	char text[64];

	walk->tid = k->tid;
	if (!k->call_ns || !k->tid) {
		why_book_add(walk, WHY_NOT_LAUNCHED, "the launch was not seen", 0, to - from);
		return;
	}
	begin = k->call_ns < from ? from : k->call_ns < to ? k->call_ns : to;
	end = launch_end(t, k);
	end = end < begin ? begin : end < to ? end : to;
	if (end <= from && k->call_ns < from) {
		bool brief = to - from <= LATENCY_NS;

		snprintf(text, sizeof(text), "%s was launched before, and waited on the device",
			 work_word(k->kind));
		why_book_add(walk, brief ? WHY_LATENCY : WHY_DEVICE,
			     brief ? "launch latency" : text, 0, to - from);
		return;
	}
	why_walk(walk, t, from, begin, "", 0);
	why_walk(walk, t, begin, end, "", 0);
	why_book_add(walk, WHY_LATENCY, "launch latency", 0, to - end);
}

static int by_length(const void *a, const void *b)
{
	const struct why_cause *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return strcmp(x->text, y->text);
}

static int close_part(struct why *w, struct why_walk *walk, struct why_part *p)
{
	why_book_close_pools(walk);
	p->causes = calloc(walk->book->entries.n + 1, sizeof(*p->causes));
	if (!p->causes || walk->book->bad)
		return -ENOMEM;
	chains_each(&walk->book->entries, link)
	{
		const struct why_entry *e = (struct why_entry *)link;
		const struct why_thread *t = why_thread_find(&w->threads, e->tid);
		struct why_cause *c = &p->causes[p->ncauses];

		if (!e->ns)
			continue;
		p->ncauses++;
		*c = (struct why_cause){ .kind = e->kind,
					 .text = why_texts_get(&w->texts, e->text),
					 .line = e->line ? why_texts_get(&w->texts, e->line) : NULL,
					 .ns = e->ns,
					 .sampled_ns = e->sampled_ns,
					 .samples = e->samples,
					 .n = e->n,
					 .pid = t ? t->shown_pid : p->pid };
		memcpy(c->comm, t ? t->process : p->comm, sizeof(c->comm));
		p->known_ns += why_known(c->kind) ? c->ns : 0;
	}
	qsort(p->causes, p->ncauses, sizeof(*p->causes), by_length);
	return 0;
}

static int of_device(struct why *w, struct device *d, struct why_part *p, struct why_walk *walk)
{
	uint64_t end;

	*p = (struct why_part){ .is_device = true, .device = d->number, .pid = d->pid };
	memcpy(p->comm, d->comm, sizeof(p->comm));
	if (!d->nwork) /* there was no memory for the first of it */
		return close_part(w, walk, p);
	qsort(d->work, d->nwork, sizeof(*d->work), by_start);
	p->from_ns = end = d->work[0].start_ns;
	for (size_t i = 0; i < d->nwork; i++) {
		const struct work *k = &d->work[i];

		if (k->start_ns > end) {
			gap(w, walk, end, k->start_ns, k);
			p->idle_ns += k->start_ns - end;
			p->gaps++;
			end = k->start_ns;
		}
		p->busy_ns += k->end_ns > end ? k->end_ns - end : 0;
		end = k->end_ns > end ? k->end_ns : end;
	}
	p->to_ns = end;
	return close_part(w, walk, p);
}

/* Without device work: what lies between the launches of a thread. */
static int of_thread(struct why *w, const struct why_thread *t, struct why_part *p,
		     struct why_walk *walk)
{
	uint64_t end = 0;

	*p = (struct why_part){ .device = t->shown_tid, .pid = t->shown_pid };
	memcpy(p->comm, t->comm, sizeof(p->comm));
	walk->tid = t->tid;
	for (size_t i = 0; i < t->ncalls; i++) {
		const struct why_call *c = &t->calls[i];

		if (!c->launches)
			continue;
		if (!p->from_ns)
			p->from_ns = end = c->start_ns;
		if (c->start_ns > end) {
			why_walk(walk, t, end, c->start_ns, "", 0);
			p->idle_ns += c->start_ns - end;
			p->gaps++;
			end = c->start_ns;
		}
		p->busy_ns += c->end_ns > end ? c->end_ns - end : 0;
		end = c->end_ns > end ? c->end_ns : end;
	}
	p->to_ns = end;
	return close_part(w, walk, p);
}

static bool launches(const struct why_thread *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->ncalls && n < 2; i++)
		n += t->calls[i].launches;
	return n == 2;
}

const struct why_part *why_finish(struct why *w, size_t *n)
{
	size_t most = w->ndevices;
	int err = 0;

	sort_threads(w);
	if (!w->ndevices)
		chains_each(&w->threads, link) most += launches((struct why_thread *)link);
	w->parts = calloc(most + 1, sizeof(*w->parts));
	w->books = calloc(most + 1, sizeof(*w->books));
	*n = 0;
	if (!w->parts || !w->books)
		return NULL;
	for (unsigned int i = 0; i < w->ndevices && !err; i++) {
		struct why_walk walk = { .texts = &w->texts,
					 .threads = &w->threads,
					 .book = &w->books[w->nparts] };

		err = of_device(w, &w->devices[i], &w->parts[w->nparts++], &walk);
	}
	if (!w->ndevices)
		chains_each(&w->threads, link)
		{
			const struct why_thread *t = (struct why_thread *)link;
			struct why_walk walk = { .texts = &w->texts,
						 .threads = &w->threads,
						 .book = &w->books[w->nparts] };

			if (!err && launches(t))
				err = of_thread(w, t, &w->parts[w->nparts++], &walk);
		}
	*n = w->nparts;
	return err ? NULL : w->parts;
}
