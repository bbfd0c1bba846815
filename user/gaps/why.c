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
#define STEPS_WORK (1u << 20) /* see steps_open() */
#define STREAMS_MAX 65536
#define WAITS_MAX (1u << 20)
/* A shorter call is taken for a part of the code around it, unless it launches. */
#define CALL_NS 10000ULL

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
		[WHY_OTHER_DEVICE] = "other-device",
		[WHY_GRAPH] = "graph",
		[WHY_WORK] = "device-work",
	};

	return words[kind];
}

/* ---- life ---- */

struct why *why_open(void)
{
	struct why *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->steps = steps_open(NULL, STEPS_WORK);
	if (w->steps && !why_texts_open(&w->texts))
		return w;
	why_close(w);
	return NULL;
}

static void close_device(struct why_device *d)
{
	struct why_stream *s;

	hash_map_each(&d->streams, s) free(s->waits);
	hash_map_close(&d->streams);
	free(d->work);
	free(d->before);
	free(d->by_end);
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
		close_device(&w->devices[i]);
	for (size_t i = 0; i < w->nparts; i++) {
		free(w->parts[i].causes);
		free(w->parts[i].path);
		why_book_free(&w->books[i]);
		why_book_free(&w->paths[i]);
	}
	free(w->parts);
	free(w->books);
	free(w->paths);
	steps_close(w->steps);
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
						   .launches = launches,
						   .waits = api_traits(c->func) & TR_SYNC };
	w->totals.calls++;
	return 1;
}

static struct why_device *device_of(struct why *w, const struct event *ev, uint32_t number)
{
	uint64_t key = ev->gpu ? (uint64_t)1 << 32 | ev->gpu->number
			       : hash_number((uint64_t)ev->rec->pid << 32 | number);
	struct why_device *d = w->devices;

	for (unsigned int i = 0; i < w->ndevices; i++, d++)
		if (d->key == key)
			return d;
	if (w->ndevices == WHY_DEVICES)
		return NULL;
	w->ndevices++;
	d->key = key;
	d->number = ev->gpu ? ev->gpu->number : number;
	d->pid = ev->rec->pid;
	d->shown_pid = ev->proc->shown_pid;
	snprintf(d->comm, sizeof(d->comm), "%s", ev->proc->comm);
	hash_map_open_of(&d->streams, struct why_stream, key, STREAMS_MAX);
	return d;
}

static struct why_stream *stream_of(struct why_device *d, const struct ct_work *k)
{
	struct why_stream_key key = { k->h.pid, k->context, k->stream };
	bool made;

	return hash_map_get(&d->streams, &key, &made);
}

/* What a piece of work is called. */
static uint32_t work_name(struct why *w, const struct event *ev)
{
	return text_of(w, ev->kernel		      ? ev->kernel->brief
			  : ev->rec->kind == CT_COPY  ? "a copy"
			  : ev->rec->kind == CT_SET   ? "a set"
			  : ev->rec->kind == CT_GRAPH ? "a graph"
						      : "a kernel");
}

static int work(struct why *w, const struct event *ev)
{
	const struct ct_work *k = (const struct ct_work *)ev->rec;
	struct why_device *d;
	struct why_stream *s;

	if (k->h.flags & CT_F_NO_TIME) {
		w->totals.no_time++;
		return 1;
	}
	d = w->totals.work < WORK_MAX ? device_of(w, ev, k->device) : NULL;
	s = d ? stream_of(d, k) : NULL;
	if (!s) {
		w->totals.no_room++;
		return 1;
	}
	if (!array_room(d->work, d->nwork))
		return -ENOMEM;
	s->busy_ns += k->h.end_ns - k->h.start_ns;
	d->work[d->nwork++] = (struct why_work){
		.start_ns = k->h.start_ns,
		.end_ns = k->h.end_ns,
		.call_ns = ev->cause ? ev->cause->start_ns : k->call_ns,
		.call_end_ns = ev->cause ? ev->cause->end_ns : 0,
		.pid = k->h.pid,
		.tid = ev->cause ? ev->cause->tid : k->h.tid,
		.stream = (uint32_t)((size_t)((char *)s - d->streams.items) / sizeof(*s)),
		.name = work_name(w, ev),
		.kind = (uint8_t)k->h.kind,
		.class = (uint8_t)steps_class(ev),
	};
	w->totals.work++;
	return 1;
}

/* A stream was told to wait for an event. */
static int wait_of_stream(struct why *w, const struct event *ev)
{
	const struct ct_sync *y = (const struct ct_sync *)ev->rec;
	struct why_device *d = y->type == CT_SYNC_STREAM_WAIT ? device_of(w, ev, y->w.device)
							      : NULL;
	struct why_stream *s = d ? stream_of(d, &y->w) : NULL;

	if (!s)
		return 0;
	if (s->nwaits >= WAITS_MAX) {
		w->totals.no_room++;
		return 1;
	}
	if (!array_room(s->waits, s->nwaits))
		return -ENOMEM;
	s->waits[s->nwaits++] = y->w.h.start_ns;
	return 1;
}

int why_event(struct why *w, const struct event *ev)
{
	uint16_t kind = ev->rec->kind;
	int step = steps_event(w->steps, ev), used;

	if (step < 0)
		return step;
	used = kind == CT_HOST_SEGMENT	  ? segment(w, ev)
	       : kind == CT_CALL	  ? call(w, ev)
	       : kind == CT_SYNC	  ? wait_of_stream(w, ev)
	       : kind_is(kind, KIND_BUSY) ? work(w, ev)
					  : 0;
	return used ? used : step;
}

void why_totals(const struct why *w, struct why_totals *t)
{
	*t = w->totals;
}
