/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backlog.c - see backlog.h. Knows no record.
 *
 * The reader has a chunk of its own, which it fills from the queue, or, when that is empty,
 * straight from the ring: a copy of 16 KiB at a time stays in the nearest cache, and while its
 * records are handed out the ring is free for the thread.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backlog.h"
#include "../../util/thread.h"

#define CHUNK_BYTES (128u << 10)
#define OWN_BYTES (16u << 10)
#define EARLY_MS 5 /* the ring's wake-ups are batched: a look at least this often */
/* between two looks; three quarters of 16 MiB take longer to come, however many CPUs send */
#define LATE_MS 10
#define IDLE_MS 90 /* the same while the ring is empty, unless it wakes us */
/* with this part of the ring full, so soon after it was emptied, there is no time for a pause */
#define RUSH_SHARE 16
/* Records come nearly in the order of the ends of what they are about: a thread may lose its processor between the
 * end of a call and its record. */
#define ORDER_NS 20000000ULL

struct chunk {
	struct chunk *next;
	size_t len, pos; /* bytes used, and handed out; records as ring_take() makes them */
	uint8_t data[CHUNK_BYTES];
};

_Static_assert(RING_TAKEN(BACKLOG_RECORD_MAX) <= CHUNK_BYTES,
	       "a record of any size fits into a chunk");

struct backlog {
	struct ring *ring;
	uint64_t max_bytes;
	enum backlog_when when;
	struct chunk *own; /* the reader's */
	pthread_t thread;
	pthread_mutex_t lock; /* of the ring and of all below */
	struct chunk *first, *last, *spare;
	uint64_t bytes; /* of the queue's chunks */
	bool stop;
	int stop_fd; /* readable: stop */
};

static struct chunk *new_chunk(struct backlog *b)
{
	struct chunk *c = b->spare ? b->spare : malloc(sizeof(*c));

	b->spare = NULL;
	if (c) {
		c->next = NULL;
		c->len = c->pos = 0;
	}
	return c;
}

static void put_away(struct backlog *b, struct chunk *c)
{
	if (b->spare)
		free(c);
	else
		b->spare = c;
}

/* Some records from the ring to the queue; called with the lock. False: there are none, or there
 * is no room. */
static bool move(struct backlog *b)
{
	struct chunk *c = b->last;
	size_t n = c ? ring_take(b->ring, c->data + c->len, sizeof(c->data) - c->len) : 0;

	if (n) {
		c->len += n;
		return true;
	}
	c = b->bytes < b->max_bytes ? new_chunk(b) : NULL;
	if (!c)
		return false;
	c->len = ring_take(b->ring, c->data, sizeof(c->data));
	if (!c->len) {
		put_away(b, c);
		return false;
	}
	if (b->last)
		b->last->next = c;
	else
		b->first = c;
	b->last = c;
	b->bytes += sizeof(*c);
	return true;
}

/* Until the next look; called with the lock, which others have meanwhile. */
static void await_look(struct backlog *b)
{
	struct pollfd fds[2] = { { .fd = b->stop_fd, .events = POLLIN },
				 { .fd = b->ring->map_fd, .events = POLLIN } };
	bool empty = !ring_filled(b->ring);

	pthread_mutex_unlock(&b->lock);
	if (b->when == BACKLOG_EARLY || empty)
		poll(fds, 2, b->when == BACKLOG_EARLY ? EARLY_MS : IDLE_MS);
	/* readable for as long as there is anything, which others may be about to take: a pause
	 * in any case */
	poll(fds, 1, b->when == BACKLOG_EARLY ? 1 : LATE_MS);
	pthread_mutex_lock(&b->lock);
}

/* Has so much come since the ring was emptied that there is no time for a pause? Not when the
 * queue had no room. */
static bool is_rush(const struct backlog *b, bool had_room)
{
	return b->when == BACKLOG_EARLY && had_room &&
	       ring_filled(b->ring) >= b->ring->size / RUSH_SHARE;
}

static void *run(void *ctx)
{
	struct backlog *b = ctx;
	bool more = false;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		if (!is_rush(b, more))
			await_look(b);
		if (b->stop)
			break;
		if (b->when == BACKLOG_LATE && ring_filled(b->ring) < b->ring->size / 4)
			continue;
		more = true;
		while (!b->stop && ring_filled(b->ring) && (more = move(b))) {
			/* the reader's turn, if it waits */
			pthread_mutex_unlock(&b->lock);
			pthread_mutex_lock(&b->lock);
		}
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static void end_reading(struct backlog *b)
{
	struct chunk *next;

	for (struct chunk *c = b->first; c; c = next) {
		next = c->next;
		free(c);
	}
	free(b->spare);
	free(b->own);
	if (b->stop_fd >= 0)
		close(b->stop_fd);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

struct backlog *backlog_open(struct ring *ring, enum backlog_when when, uint64_t max_bytes)
{
	struct backlog *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->ring = ring;
	b->when = when;
	b->max_bytes = max_bytes;
	pthread_mutex_init(&b->lock, NULL);
	b->stop_fd = eventfd(0, EFD_CLOEXEC);
	b->own = new_chunk(b);
	if (b->stop_fd < 0 || !b->own || thread_start(&b->thread, "ct-backlog", 0, run, b)) {
		end_reading(b);
		return NULL;
	}
	return b;
}

/* More records for the reader. False: there are none. */
static bool refill(struct backlog *b)
{
	struct chunk *c;

	pthread_mutex_lock(&b->lock);
	c = b->first;
	if (c) {
		b->first = c->next;
		if (!b->first)
			b->last = NULL;
		b->bytes -= sizeof(*c);
		put_away(b, b->own);
		b->own = c;
	} else {
		b->own->pos = 0;
		b->own->len = ring_take(b->ring, b->own->data, OWN_BYTES);
		if (!b->own->len) /* for one that is larger */
			b->own->len = ring_take(b->ring, b->own->data, sizeof(b->own->data));
	}
	pthread_mutex_unlock(&b->lock);
	return b->own->len;
}

long backlog_read(struct backlog *b, long max, int (*fn)(void *ctx, const void *rec, size_t size),
		  void *ctx)
{
	long n = 0;
	int err = 0;

	while (n < max && !err) {
		struct chunk *c = b->own;
		const void *rec;
		uint64_t size;

		if (c->pos == c->len) {
			if (!refill(b))
				break;
			continue;
		}
		memcpy(&size, c->data + c->pos, sizeof(size));
		rec = c->data + c->pos + sizeof(size);
		c->pos += RING_TAKEN(size);
		err = fn(ctx, rec, size);
		n++;
	}
	return err < 0 ? err : n;
}

unsigned long backlog_mark(const struct backlog *b)
{
	return ring_end(b->ring);
}

uint64_t backlog_complete(struct backlog *b, unsigned long mark, uint64_t asked_ns,
			  uint64_t last_ns, uint64_t before)
{
	uint64_t ns = last_ns > ORDER_NS ? last_ns - ORDER_NS : 0;
	bool reached;

	pthread_mutex_lock(&b->lock);
	reached = !b->first && b->own->pos == b->own->len && (long)(b->ring->pos - mark) >= 0;
	pthread_mutex_unlock(&b->lock);
	ns = reached ? asked_ns : ns;
	return ns > before ? ns : before;
}

void backlog_close(struct backlog *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_mutex_unlock(&b->lock);
	eventfd_write(b->stop_fd, 1);
	pthread_join(b->thread, NULL);
	end_reading(b);
}
