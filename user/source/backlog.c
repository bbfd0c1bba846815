/* SPDX-License-Identifier: BSD-2-Clause */
/* backlog.c - see backlog.h. Knows no record. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backlog.h"

#define CHUNK_BYTES (1u << 20)
#define PUMP_RECORDS 32 /* moved between two looks at the queue's room; one is at most 64 KiB */
#define PUMP_MS 5	/* the ring's wake-ups are batched: a look at least this often */

struct chunk {
	struct chunk *next;
	size_t len, pos; /* bytes used, and handed out; each record is preceded by its size in 8 bytes */
	uint8_t data[CHUNK_BYTES];
};

struct backlog {
	struct ring *ring;
	uint64_t max_bytes;
	pthread_t thread;
	pthread_mutex_t lock; /* of the ring and of all below */
	struct chunk *first, *last;
	uint64_t bytes; /* of all chunks */
	bool stop, no_memory;
};

/* Called with the lock. */
static int append(void *ctx, const void *rec, size_t size)
{
	struct backlog *b = ctx;
	size_t room = sizeof(uint64_t) + ((size + 7) & ~(size_t)7);
	struct chunk *c = b->last;
	uint64_t head = size;

	if (!c || sizeof(c->data) - c->len < room) {
		c = malloc(sizeof(*c));
		if (!c || room > sizeof(c->data)) {
			free(c);
			b->no_memory = true;
			return -ENOMEM;
		}
		c->next = NULL;
		c->len = c->pos = 0;
		if (b->last)
			b->last->next = c;
		else
			b->first = c;
		b->last = c;
		b->bytes += sizeof(*c);
	}
	memcpy(c->data + c->len, &head, sizeof(head));
	memcpy(c->data + c->len + sizeof(head), rec, size);
	c->len += room;
	return 0;
}

/* Called with the lock. */
static void pump(struct backlog *b)
{
	while (b->bytes < b->max_bytes && ring_read(b->ring, PUMP_RECORDS, append, b) == PUMP_RECORDS)
		;
}

static void *run(void *ctx)
{
	struct backlog *b = ctx;
	struct pollfd ready = { .fd = b->ring->map_fd, .events = POLLIN };

	for (;;) {
		bool stop;

		/* readable for as long as there is anything, which the queue may have no room for: a pause in any case */
		poll(&ready, 1, PUMP_MS);
		pthread_mutex_lock(&b->lock);
		stop = b->stop;
		if (!stop)
			pump(b);
		pthread_mutex_unlock(&b->lock);
		if (stop)
			return NULL;
		poll(NULL, 0, 1);
	}
}

struct backlog *backlog_open(struct ring *ring, uint64_t max_bytes)
{
	struct backlog *b = calloc(1, sizeof(*b));
	sigset_t all, before;
	int err;

	if (!b)
		return NULL;
	b->ring = ring;
	b->max_bytes = max_bytes;
	pthread_mutex_init(&b->lock, NULL);
	/* signals are the main thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&b->thread, NULL, run, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		pthread_mutex_destroy(&b->lock);
		free(b);
		return NULL;
	}
	return b;
}

/* The chunk to hand out from: out of the queue, so that records are handed out without the lock. */
static struct chunk *take(struct backlog *b)
{
	struct chunk *c;

	pthread_mutex_lock(&b->lock);
	pump(b);
	c = b->first;
	if (c) {
		b->first = c->next;
		if (!b->first)
			b->last = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	return c;
}

static void give_back(struct backlog *b, struct chunk *c)
{
	pthread_mutex_lock(&b->lock);
	if (c->pos < c->len) {
		c->next = b->first;
		b->first = c;
		if (!b->last)
			b->last = c;
	} else {
		b->bytes -= sizeof(*c);
		free(c);
	}
	pthread_mutex_unlock(&b->lock);
}

long backlog_read(struct backlog *b, long max, int (*fn)(void *ctx, const void *rec, size_t size), void *ctx)
{
	struct chunk *c;
	long n = 0;
	int err = 0;

	while (n < max && !err && (c = take(b))) {
		while (c->pos < c->len && n < max && !err) {
			uint64_t size;

			memcpy(&size, c->data + c->pos, sizeof(size));
			err = fn(ctx, c->data + c->pos + sizeof(size), size);
			c->pos += sizeof(size) + ((size + 7) & ~(uint64_t)7);
			n++;
		}
		give_back(b, c);
	}
	if (!err && b->no_memory)
		err = -ENOMEM;
	return err < 0 ? err : n;
}

void backlog_close(struct backlog *b)
{
	struct chunk *next;

	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	for (struct chunk *c = b->first; c; c = next) {
		next = c->next;
		free(c);
	}
	pthread_mutex_destroy(&b->lock);
	free(b);
}
