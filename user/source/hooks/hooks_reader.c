/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_reader.c - see hooks_reader.h. The queue is a list of chunks, which hold segments: what was moved
 * of one block at one time. One lock guards the rings' read positions and the queue; who takes has a chunk
 * of its own, which the lock does not guard.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../util/now.h"
#include "../../util/table/array.h"
#include "../../util/thread.h"
#include "hooks_reader.h"

#define CHUNK_BYTES (256u << 10)
#define SEGMENT_BYTES (40u << 10) /* of one block at a time */
/* Between two looks. A ring of 4 MiB takes more than 1 ms to fill. */
#define BUSY_NS 200000
#define IDLE_NS 1000000
#define YIELD_US 50
/* For one batch: records may come faster than they can be taken, where programs have the processors. */
#define TAKE_NS 100000000ULL
#define TAKE_SEGMENTS 16 /* between two looks at the clock */

struct segment {
	struct hooks_ring *ring; /* NULL: it was removed */
	uint32_t block;
	uint32_t bytes;	   /* that follow: what hooks_ring_move() made */
	uint64_t whole_ns; /* what was written before then is in segments before this one */
};

#define SEGMENT_ROOM (sizeof(struct segment) + HOOKS_PACKED_MAX(HOOKS_RECORD_MAX))
_Static_assert(SEGMENT_ROOM <= SEGMENT_BYTES && SEGMENT_BYTES <= CHUNK_BYTES,
	       "a record of any size fits");

struct chunk {
	struct chunk *next;
	size_t len, pos; /* bytes used, and taken */
	uint64_t data[CHUNK_BYTES / 8];
};

struct ring_place {
	struct hooks_ring *ring;
	uint64_t last; /* the number of its last segment */
	/* its process has ended: of each block what is there is moved once more, of those before `done` it was. A
	 * child may have the memory, and write on and on. */
	bool ends;
	uint32_t done;
};

struct hooks_reader {
	uint64_t max_bytes;
	struct chunk *own; /* of who takes */
	uint64_t taken;	   /* segments */
	uint64_t taken_ns; /* what was written before then was taken */
	int wanted;	   /* atomic: somebody waits for the lock */
	bool threaded;
	pthread_t thread;
	pthread_cond_t wake;
	pthread_mutex_t lock; /* of all below, and of moving */
	struct ring_place *rings;
	size_t nrings;
	struct chunk *first, *final, *spare;
	uint64_t bytes, moved; /* of the queue's chunks; segments */
	uint64_t whole_ns;     /* when a look began after which no ring had anything from before */
	bool stop;
};

/* ---- the lock ---- */

/* The thread would take the lock again before the thread that waits for it has woken up. */
static void lock(struct hooks_reader *r)
{
	__atomic_fetch_add(&r->wanted, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&r->lock);
	__atomic_fetch_sub(&r->wanted, 1, __ATOMIC_RELAXED);
}

static void unlock(struct hooks_reader *r)
{
	pthread_mutex_unlock(&r->lock);
}

/* Lets others have the lock, if there are any. */
static void yield(struct hooks_reader *r)
{
	if (!__atomic_load_n(&r->wanted, __ATOMIC_RELAXED))
		return;
	pthread_mutex_unlock(&r->lock);
	usleep(YIELD_US);
	pthread_mutex_lock(&r->lock);
}

/* ---- moving: with the lock ---- */

static struct chunk *new_chunk(struct hooks_reader *r)
{
	struct chunk *c = r->spare ? r->spare : malloc(sizeof(*c));

	r->spare = NULL;
	if (c) {
		c->next = NULL;
		c->len = c->pos = 0;
	}
	return c;
}

static void put_away(struct hooks_reader *r, struct chunk *c)
{
	if (r->spare)
		free(c);
	else
		r->spare = c;
}

/* The queue's last chunk, with room for a segment. NULL: the queue is full. */
static struct chunk *room(struct hooks_reader *r)
{
	struct chunk *c = r->final;

	if (c && sizeof(c->data) - c->len >= SEGMENT_ROOM)
		return c;
	c = r->bytes + sizeof(*c) <= r->max_bytes ? new_chunk(r) : NULL;
	if (!c)
		return NULL;
	if (r->final)
		r->final->next = c;
	else
		r->first = c;
	r->final = c;
	r->bytes += sizeof(*c);
	return c;
}

/* Some records of a block. Returns the bytes; -1: the queue is full. */
static ssize_t move(struct hooks_reader *r, struct ring_place *p, uint32_t block, bool last)
{
	struct chunk *c = room(r);
	struct segment s = { .ring = p->ring, .block = block, .whole_ns = r->whole_ns };
	size_t most;
	char *to;

	if (!c)
		return -1;
	to = (char *)c->data + c->len;
	most = sizeof(c->data) - c->len - sizeof(s);
	most = most < SEGMENT_BYTES ? most : SEGMENT_BYTES;
	s.bytes = (uint32_t)hooks_ring_move(p->ring, block, last, to + sizeof(s), most);
	if (!s.bytes)
		return 0;
	memcpy(to, &s, sizeof(s));
	c->len += sizeof(s) + s.bytes;
	p->last = ++r->moved;
	return s.bytes;
}

/* Some records of each block, with a pause for others after each. Returns whether so much was there
 * that a block may soon be full: another look is due at once; *any: whether anything was. */
static bool move_some(struct hooks_reader *r, bool *any)
{
	uint64_t begun_ns = now_ns();
	bool rush = false, behind = false;

	*any = false;
	for (size_t i = 0; i < r->nrings && !r->stop; i++)
		for (uint32_t b = 0; i < r->nrings && !r->rings[i].ends; b++) {
			ssize_t n;

			b = hooks_ring_block(r->rings[i].ring, b);
			if (b == UINT32_MAX)
				break;
			hooks_ring_mark(r->rings[i].ring, b);
			n = move(r, &r->rings[i], b, false);
			if (n < 0)
				return false;
			behind |= hooks_ring_behind(r->rings[i].ring, b);
			if (!n)
				continue;
			*any = true;
			rush |= n > (ssize_t)SEGMENT_BYTES / 2;
			yield(r);
		}
	if (!behind)
		r->whole_ns = begun_ns;
	return rush;
}

/* All of a block: what a ring holds, and no more even if its owner writes on and on. False: the queue is
 * full. */
static bool move_block(struct hooks_reader *r, struct ring_place *p, uint32_t block, bool last)
{
	ssize_t n = 1;

	for (uint64_t all = 0; n > 0 && all < hooks_ring_size(p->ring); all += (uint64_t)n)
		n = move(r, p, block, last);
	return n >= 0;
}

/* behind: set if something stays that had been begun before. */
static bool move_ring(struct hooks_reader *r, struct ring_place *p, bool *behind)
{
	for (uint32_t b = 0; (b = hooks_ring_block(p->ring, b)) != UINT32_MAX; b++) {
		hooks_ring_mark(p->ring, b);
		if (!move_block(r, p, b, false))
			return false;
		*behind |= hooks_ring_behind(p->ring, b);
	}
	return true;
}

/* The same for the last time. */
static bool move_end(struct hooks_reader *r, struct ring_place *p)
{
	p->ends = true;
	while (p->done != UINT32_MAX &&
	       (p->done = hooks_ring_block(p->ring, p->done)) != UINT32_MAX) {
		if (!move_block(r, p, p->done, true))
			return false;
		p->done++;
	}
	return true;
}

/* ---- the thread ---- */

static void await(struct hooks_reader *r, uint64_t ns)
{
	uint64_t until = now_ns() + ns;
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000),
			      .tv_nsec = (long)(until % 1000000000) };

	pthread_cond_timedwait(&r->wake, &r->lock, &t);
}

static void *run(void *ctx)
{
	struct hooks_reader *r = ctx;
	bool any;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		if (!r->nrings)
			pthread_cond_wait(&r->wake, &r->lock);
		else if (!move_some(r, &any) && !r->stop)
			await(r, any ? BUSY_NS : IDLE_NS);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void wake(struct hooks_reader *r)
{
	pthread_cond_signal(&r->wake);
}

struct hooks_reader *hooks_reader_open(uint64_t max_bytes, bool thread)
{
	struct hooks_reader *r = calloc(1, sizeof(*r));
	pthread_condattr_t attr;

	if (!r)
		return NULL;
	/* one chunk there is in any case */
	r->max_bytes = max_bytes < sizeof(struct chunk) ? sizeof(struct chunk) : max_bytes;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &attr);
	pthread_condattr_destroy(&attr);
	r->threaded = thread && !thread_start(&r->thread, "ct-hooks", 0, run, r);
	if (r->threaded == thread)
		return r;
	hooks_reader_close(r);
	return NULL;
}

void hooks_reader_close(struct hooks_reader *r)
{
	struct chunk *next;

	if (!r)
		return;
	if (r->threaded) {
		lock(r);
		r->stop = true;
		wake(r);
		unlock(r);
		pthread_join(r->thread, NULL);
	}
	for (struct chunk *c = r->first; c; c = next) {
		next = c->next;
		free(c);
	}
	free(r->spare);
	free(r->own);
	free(r->rings);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* ---- rings that come and go ---- */

static struct ring_place *place_of(struct hooks_reader *r, const struct hooks_ring *ring)
{
	for (size_t i = 0; i < r->nrings; i++)
		if (r->rings[i].ring == ring)
			return &r->rings[i];
	return NULL;
}

int hooks_reader_add(struct hooks_reader *r, struct hooks_ring *ring)
{
	struct ring_place *p;

	lock(r);
	p = place_of(r, ring);
	if (!p) {
		p = array_add(r->rings, r->nrings);
		if (p)
			p->ring = ring;
		wake(r);
	}
	unlock(r);
	return p ? 0 : -ENOMEM;
}

static void forget(struct chunk *c, const struct hooks_ring *ring)
{
	struct segment s;

	for (size_t at = c->pos; at < c->len; at += sizeof(s) + s.bytes) {
		char *here = (char *)c->data + at;

		memcpy(&s, here, sizeof(s));
		if (s.ring != ring)
			continue;
		s.ring = NULL;
		memcpy(here, &s, sizeof(s));
	}
}

void hooks_reader_remove(struct hooks_reader *r, struct hooks_ring *ring)
{
	struct ring_place *p;

	lock(r);
	p = place_of(r, ring);
	if (p && p->last > r->taken) {
		if (r->own)
			forget(r->own, ring);
		for (struct chunk *c = r->first; c; c = c->next)
			forget(c, ring);
	}
	if (p)
		*p = r->rings[--r->nrings];
	unlock(r);
}

/* ---- taking ---- */

/* The first chunk. A new one stays empty if it was made for a block in which nothing was. */
static struct chunk *filled(const struct hooks_reader *r)
{
	return r->first && r->first->len ? r->first : NULL;
}

/* Another chunk to take from. If the queue has none, the rings are looked at, once. */
static bool refill(struct hooks_reader *r, bool *looked)
{
	struct chunk *c;

	lock(r);
	if (!filled(r) && !*looked) {
		uint64_t begun_ns = now_ns();
		bool behind = false;

		*looked = true; /* at all of it, if there was room in the queue */
		for (size_t i = 0; i < r->nrings; i++)
			*looked &= r->rings[i].ends || move_ring(r, &r->rings[i], &behind);
		if (*looked && !behind)
			r->whole_ns = begun_ns;
	}
	c = filled(r);
	if (c) {
		r->first = c->next;
		if (!r->first)
			r->final = NULL;
		r->bytes -= sizeof(*c);
		if (r->own)
			put_away(r, r->own);
		r->own = c;
	}
	unlock(r);
	return c != NULL;
}

/* One segment. 1: it was taken; 0: there is none; or -ENOMEM. */
static int take_segment(struct hooks_reader *r, struct hooks_batch *batch, bool *looked)
{
	struct segment s;
	const char *from;
	int err = 0;

	if ((!r->own || r->own->pos == r->own->len) && !refill(r, looked))
		return 0;
	from = (const char *)r->own->data + r->own->pos;
	memcpy(&s, from, sizeof(s));
	if (s.ring)
		err = hooks_ring_take(s.ring, s.block, from + sizeof(s), s.bytes, batch);
	r->own->pos += sizeof(s) + s.bytes;
	r->taken++;
	r->taken_ns = s.whole_ns;
	return err == -ENOMEM ? err : 1;
}

uint64_t hooks_reader_complete(struct hooks_reader *r)
{
	uint64_t ns;

	lock(r);
	ns = r->taken != r->moved ? r->taken_ns : r->nrings ? r->whole_ns : now_ns();
	unlock(r);
	return ns;
}

int hooks_reader_read(struct hooks_reader *r, struct hooks_batch *batch)
{
	uint64_t until = now_ns() + TAKE_NS;
	bool looked = false;
	int n = 1;

	for (unsigned int i = 1; n > 0 && !hooks_batch_full(batch); i++) {
		n = take_segment(r, batch, &looked);
		if (i % TAKE_SEGMENTS == 0 && now_ns() > until)
			break;
	}
	return n;
}

int hooks_reader_last(struct hooks_reader *r, struct hooks_ring *ring, struct hooks_batch *batch)
{
	bool whole = false, looked = true;

	while (!whole) {
		struct ring_place *p;
		uint64_t until;
		int n = 1;

		lock(r);
		p = place_of(r, ring);
		whole = !p || move_end(r, p);
		/* the queue was full: what is taken makes room */
		until = !whole ? r->moved : p ? p->last : 0;
		unlock(r);
		while (n > 0 && r->taken < until) {
			if (hooks_batch_full(batch))
				return 1;
			n = take_segment(r, batch, &looked);
		}
		if (n < 0)
			return n;
	}
	return 0;
}

static int move_rest(void *ctx, struct hooks_ring *ring, uint32_t block)
{
	struct hooks_reader *r = ctx;
	struct ring_place *p;
	bool whole;

	lock(r);
	p = place_of(r, ring);
	whole = !p || move_block(r, p, block, true);
	unlock(r);
	return whole ? 0 : 1;
}

int hooks_reader_sweep(struct hooks_reader *r, struct hooks_ring *ring,
		       struct hooks_batch *under_way)
{
	return hooks_ring_sweep(ring, move_rest, r, under_way);
}
