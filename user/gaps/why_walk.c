/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * why_walk.c - divides a stretch of a thread's time by what the thread did, and where it waited for another
 * thread by what that one did. See why_inside.h. Each function below divides what it is given without rest.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "why_inside.h"
#include "../api/api.h"
#include "../util/hash.h"
#include "../util/table/array.h"

struct why_thread *why_thread_find(const struct chains *threads, uint32_t tid)
{
	return tid ? (struct why_thread *)chains_find(threads, tid) : NULL;
}

/* ---- the book ---- */

static struct why_entry *entry_of(struct why_walk *w, enum why_kind kind, const char *text)
{
	uint32_t number = why_texts_add(w->texts, text);
	uint64_t hash = hash_number((uint64_t)kind << 32 | number);
	struct why_entry *e = (struct why_entry *)chains_find(&w->book->entries, hash);

	while (e && (e->kind != kind || e->text != number))
		e = (struct why_entry *)chains_again(&e->link);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e || chains_add(&w->book->entries, &e->link, hash)) {
		w->book->bad = true;
		free(e);
		return NULL;
	}
	e->kind = kind;
	e->text = number;
	e->tid = w->tid;
	return e;
}

void why_book_add(struct why_walk *w, enum why_kind kind, const char *text, uint32_t line,
		  uint64_t ns)
{
	struct why_entry *e = ns ? entry_of(w, kind, text) : NULL;

	if (!e)
		return;
	e->line = line;
	e->ns += ns;
	e->n++;
}

/* prefix: the chain up to here, which ends with " <- " or is empty. */
static void add(struct why_walk *w, enum why_kind kind, const char *prefix, uint32_t place,
		uint64_t ns, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static void add(struct why_walk *w, enum why_kind kind, const char *prefix, uint32_t place,
		uint64_t ns, const char *fmt, ...)
{
	char what[WHY_TEXT], text[2 * WHY_TEXT];
	const char *at = why_texts_get(w->texts, place);
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	snprintf(text, sizeof(text), "%s%s%s%s", prefix, what, *at ? " at " : "", at);
	why_book_add(w, kind, text, place, ns);
}

/* ---- on the CPU ---- */

static void pool_count(struct why_walk *w, struct why_pool *p, const struct why_sample *s)
{
	for (size_t i = 0; i < p->ncounts; i++)
		if (p->counts[i].place == s->place && p->counts[i].reason == s->reason) {
			p->counts[i].n++;
			return;
		}
	if (!array_room(p->counts, p->ncounts)) {
		w->book->bad = true;
		return;
	}
	p->counts[p->ncounts++] =
		(struct why_count){ .place = s->place, .reason = s->reason, .n = 1 };
}

static struct why_pool *pool_of(struct why_walk *w, const struct why_thread *t, const char *prefix)
{
	uint32_t number = why_texts_add(w->texts, prefix);
	uint64_t hash = hash_number((uint64_t)t->tid << 32 | number);
	struct why_pool *p = (struct why_pool *)chains_find(&w->book->pools, hash);

	while (p && (p->thread != t || p->prefix != number))
		p = (struct why_pool *)chains_again(&p->link);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || chains_add(&w->book->pools, &p->link, hash)) {
		w->book->bad = true;
		free(p);
		return NULL;
	}
	p->thread = t;
	p->prefix = number;
	p->tid = w->tid;
	return p;
}

/* The program's own time: samples of all such stretches together say what it did. */
static void own_code(struct why_walk *w, const struct why_thread *t, uint64_t from, uint64_t to,
		     const char *prefix)
{
	struct why_pool *p = from < to ? pool_of(w, t, prefix) : NULL;
	size_t low = 0, high = t->nsamples;

	if (!p)
		return;
	p->ns += to - from;
	p->n++;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (t->samples[mid].ns < from)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < t->nsamples && t->samples[low].ns < to; low++)
		pool_count(w, p, &t->samples[low]);
}

/* The first call that ends behind a moment. Calls inside calls are not there. */
static size_t call_at(const struct why_thread *t, uint64_t ns)
{
	size_t low = 0, high = t->ncalls;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (t->calls[mid].end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void running(struct why_walk *w, const struct why_thread *t, uint64_t from, uint64_t to,
		    const char *prefix)
{
	for (size_t i = call_at(t, from); from < to; i++) {
		uint64_t start = i < t->ncalls ? t->calls[i].start_ns : UINT64_MAX, end;

		if (start >= to) {
			own_code(w, t, from, to, prefix);
			return;
		}
		if (start > from)
			own_code(w, t, from, start, prefix);
		from = start > from ? start : from;
		end = t->calls[i].end_ns < to ? t->calls[i].end_ns : to;
		if (end > from)
			add(w, WHY_CALL, prefix, 0, end - from, "inside %s",
			    api_funcs[t->calls[i].func].name);
		from = end > from ? end : from;
	}
}

/* Which words a sample has. */
static enum why_kind kind_of_sample(uint8_t reason)
{
	return reason == CT_HOST_GC	    ? WHY_GC
	       : reason == CT_HOST_FAULTING ? WHY_PAGE_FAULTS
	       : reason == CT_HOST_SYSCALL  ? WHY_KERNEL
					    : WHY_RUNNING;
}

static const char *sample_words(enum why_kind kind)
{
	return kind == WHY_GC		 ? "garbage collection"
	       : kind == WHY_PAGE_FAULTS ? "page faults"
	       : kind == WHY_KERNEL	 ? "kernel code of a system call"
					 : "running";
}

enum why_kind why_pool_text(const struct why_walk *w, const struct why_pool *p, char *text,
			    size_t size, uint32_t *place)
{
	const char *prefix = why_texts_get(w->texts, p->prefix), *at;
	const struct why_count *most = NULL;
	enum why_kind kind;

	for (size_t i = 0; i < p->ncounts; i++)
		most = !most || p->counts[i].n > most->n ? &p->counts[i] : most;
	*place = most ? most->place : 0;
	at = why_texts_get(w->texts, *place);
	kind = most ? kind_of_sample(most->reason) : WHY_RUNNING;
	if (most)
		snprintf(text, size, "%s%s%s%s", prefix, sample_words(kind), *at ? " " : "", at);
	else
		snprintf(text, size, "%srunning %s", prefix, p->thread->comm);
	return kind;
}

static void divide(struct why_walk *w, const struct why_pool *p)
{
	const char *prefix = why_texts_get(w->texts, p->prefix);
	uint64_t all = 0, left = p->ns, left_n = p->n;

	w->tid = p->tid;
	for (size_t i = 0; i < p->ncounts; i++)
		all += p->counts[i].n;
	if (!all) {
		add(w, WHY_RUNNING, prefix, 0, p->ns, "running %s, too briefly for a sample",
		    p->thread->comm);
		return;
	}
	for (size_t i = 0; i < p->ncounts; i++) {
		const struct why_count *c = &p->counts[i];
		enum why_kind kind = kind_of_sample(c->reason);
		uint64_t ns = i + 1 == p->ncounts
				      ? left
				      : (uint64_t)((double)p->ns * (double)c->n / (double)all);
		char text[2 * WHY_TEXT];
		const char *at = why_texts_get(w->texts, c->place);
		struct why_entry *e;

		ns = ns < left ? ns : left;
		left -= ns;
		snprintf(text, sizeof(text), "%s%s%s%s", prefix, sample_words(kind), *at ? " " : "",
			 *at ? at : "");
		e = entry_of(w, kind, text);
		if (!e)
			continue;
		e->line = c->place;
		e->ns += ns;
		e->sampled_ns += ns;
		e->samples += c->n;
		e->n += i ? 0 : left_n;
	}
}

void why_book_close_pools(struct why_walk *w)
{
	chains_each(&w->book->pools, link) divide(w, (struct why_pool *)link);
}

void why_book_free(struct why_book *b)
{
	chains_each(&b->pools, link)
	{
		chains_remove(&b->pools, link);
		free(((struct why_pool *)link)->counts);
		free(link);
	}
	chains_each(&b->entries, link)
	{
		chains_remove(&b->entries, link);
		free(link);
	}
	chains_close(&b->pools);
	chains_close(&b->entries);
}

/* ---- off the CPU ---- */

static const struct wait_row {
	uint8_t kind;
	bool chains; /* whoever ended it is asked why it took so long */
	const char *words;
} waits[CT_HOST_REASON_END] = {
	[CT_HOST_OTHER] = { WHY_SYSTEM_CALL, true, "in a system call" },
	[CT_HOST_FILE] = { WHY_FILE, false, "file" },
	[CT_HOST_PIPE] = { WHY_PIPE, true, "waits for a pipe" },
	[CT_HOST_SOCKET] = { WHY_SOCKET, true, "waits for a socket" },
	[CT_HOST_POLL] = { WHY_POLL, true, "waits in poll" },
	[CT_HOST_LOCK] = { WHY_LOCK, true, "waits for a lock" },
	[CT_HOST_GIL] = { WHY_GIL, true, "waits for the GIL" },
	[CT_HOST_SLEEP] = { WHY_SLEEP, false, "sleeps" },
	[CT_HOST_FAULT] = { WHY_PAGE_READ, false, "reads a page of a mapped file" },
	[CT_HOST_CHILD] = { WHY_CHILD, true, "waits for the end of a process" },
	[CT_HOST_SYNC] = { WHY_FILE_SYNC, false, "writes a file to disk (fsync)" },
	[CT_HOST_DEVICE] = { WHY_DEVICE_FILE, false, "waits for a device file" },
};

static bool on_path(const struct why_walk *w, const struct why_thread *t, int depth)
{
	for (int i = 0; i <= depth; i++)
		if (w->path[i] == t)
			return true;
	return false;
}

/* The chain goes on in the thread that ended the wait. The way over Python's lock is not said behind the
 * first thread: what its holder did is. */
static void follow(struct why_walk *w, const struct why_segment *s, const struct why_thread *by,
		   uint64_t from, uint64_t to, const char *prefix, int depth)
{
	const char *at = why_texts_get(w->texts, s->place);
	char more[WHY_TEXT];
	int n;

	if (s->reason == CT_HOST_GIL && depth)
		n = snprintf(more, sizeof(more), "%s", prefix);
	else
		n = snprintf(more, sizeof(more), "%s%s%s%s <- %s: ", prefix, waits[s->reason].words,
			     *at ? " at " : "", at, by->comm);
	if ((size_t)n >= sizeof(more))
		strcpy(more + text_cut(more, sizeof(more) - sizeof("... ")), "... ");
	why_walk(w, by, from, to, more, depth + 1);
}

/* A wait, up to the moment when it was over. Inside a call of CUDA it is the call's. */
static void blocked(struct why_walk *w, const struct why_thread *t, const struct why_segment *s,
		    uint64_t from, uint64_t to, const char *prefix, int depth)
{
	size_t call = call_at(t, s->start_ns);
	const struct wait_row *row = &waits[s->reason];
	const struct why_thread *by = why_thread_find(w->threads, s->other_tid);
	const char *object = why_texts_get(w->texts, s->object),
		   *other = why_texts_get(w->texts, s->other);
	bool thread = s->by == CT_HOST_BY_THREAD || (s->reason == CT_HOST_GIL && s->other_tid);

	if (from >= to)
		return;
	if (call < t->ncalls && t->calls[call].start_ns <= s->start_ns)
		add(w, WHY_CALL, prefix, 0, to - from, "inside %s",
		    api_funcs[t->calls[call].func].name);
	else if (row->chains && thread && by && depth < WHY_DEPTH && !on_path(w, by, depth))
		follow(w, s, by, from, to, prefix, depth);
	else if (s->reason == CT_HOST_FILE)
		add(w, row->kind, prefix, s->place, to - from, "reads or writes %s",
		    *object ? object : "a file");
	else if (row->chains && thread && by)
		add(w, row->kind, prefix, s->place, to - from, "%s, in turn with %s", row->words,
		    by->comm);
	else if (row->chains && thread && *other)
		add(w, row->kind, prefix, s->place, to - from, "%s, ended by %s", row->words,
		    other);
	else if (row->chains && s->by == CT_HOST_BY_INTERRUPT && s->reason == CT_HOST_LOCK)
		add(w, row->kind, prefix, s->place, to - from, "%s until its time was over",
		    row->words);
	else
		add(w, row->kind, prefix, s->place, to - from, "%s%s%s", row->words,
		    *object ? " " : "", object);
}

static void off(struct why_walk *w, const struct why_thread *t, const struct why_segment *s,
		uint64_t from, uint64_t to, const char *prefix, int depth)
{
	uint64_t wake = s->wake_ns && s->wake_ns < s->end_ns ? s->wake_ns : s->end_ns;

	if (from >= to)
		return;
	if (s->state == CT_HOST_THROTTLED) {
		add(w, WHY_THROTTLED, prefix, 0, to - from, "ready, no CPU: throttled by cpu.max");
		return;
	}
	if (s->state == CT_HOST_READY) {
		add(w, WHY_DISPLACED, prefix, 0, to - from, "ready, no CPU: displaced by %s",
		    why_texts_get(w->texts, s->other));
		return;
	}
	wake = wake < from ? from : wake;
	blocked(w, t, s, from, wake < to ? wake : to, prefix, depth);
	if (wake < to)
		add(w, WHY_LATE, prefix, 0, to - wake, "ready, no CPU: woken and not yet on one");
}

/* ---- a thread ---- */

/* The first segment that ends behind a moment. */
static size_t segment_at(const struct why_thread *t, uint64_t ns)
{
	size_t low = 0, high = t->nsegments;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (t->segments[mid].end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void why_walk(struct why_walk *w, const struct why_thread *t, uint64_t from, uint64_t to,
	      const char *prefix, int depth)
{
	size_t i = t ? segment_at(t, from) : 0;

	if (!t || !t->nsegments) {
		add(w, WHY_NOT_TRACED, prefix, 0, to > from ? to - from : 0, "thread not traced");
		return;
	}
	w->path[depth] = t;
	for (; i < t->nsegments && from < to; i++) {
		const struct why_segment *s = &t->segments[i];

		if (s->run_ns > from) {
			uint64_t end = least(s->run_ns, to);

			if (i)
				add(w, WHY_LOST, prefix, 0, end - from, "records lost");
			else
				add(w, WHY_NOT_TRACED, prefix, 0, end - from, "thread not traced");
			from = end;
		}
		if (s->start_ns > from) {
			uint64_t end = least(s->start_ns, to);

			running(w, t, from, end, prefix);
			from = end;
		}
		if (from < to && s->end_ns > from) {
			uint64_t end = least(s->end_ns, to);

			off(w, t, s, from, end, prefix, depth);
			from = end;
		}
		w->path[depth] = t;
	}
	if (from < to)
		add(w, WHY_NOT_TRACED, prefix, 0, to - from, "thread not traced");
	w->path[depth] = NULL;
}
