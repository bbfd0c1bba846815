/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_send.c - records go to cudatrace by the socket, many to a message, from the thread
 * that samples and from the one that waits for events. Sampling never waits for a reader: what
 * does not fit is counted.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "helper.h"

#define PATIENCE_MS 1000 /* a message waits so long for room */

static int sock = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t lost[CT_LOSS_END];
static volatile bool gone;
static char batch[COUNTERS_MESSAGE_MAX / 2]; /* well below what a socket takes at once */
static size_t batch_len;

uint64_t clock_ns(int clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

int64_t clock_offset_ns(uint64_t *error_ns)
{
	uint64_t best = UINT64_MAX;
	int64_t offset = 0;

	/* The tightest of a few: an interrupt between two readings is not a clock's step. */
	for (int i = 0; i < 16 && best > 200; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), real = clock_ns(CLOCK_REALTIME);
		uint64_t after = clock_ns(CLOCK_MONOTONIC);

		if (after - before >= best)
			continue;
		best = after - before;
		offset = (int64_t)(real - (before + best / 2));
	}
	*error_ns = best / 2 + 1;
	return offset;
}

void send_open(int fd)
{
	sock = fd;
}

bool send_alive(void)
{
	return !gone;
}

/* 0, -EAGAIN: no room, or another -errno: nobody is there. */
static int counters_send_put(const void *msg, size_t n, int wait_ms)
{
	struct pollfd p = { .fd = sock, .events = POLLOUT };

	for (;;) {
		if (send(sock, msg, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != ENOBUFS) {
			gone = true;
			return -errno;
		}
		if (wait_ms <= 0 || poll(&p, 1, wait_ms) <= 0)
			return -EAGAIN;
		wait_ms = 0;
	}
}

/* ---- records, several to a message; all with the lock held ---- */

/* What is there goes, if there is room. */
static int flush(int wait_ms)
{
	int err = batch_len ? counters_send_put(batch, batch_len, wait_ms) : 0;

	if (err != -EAGAIN)
		batch_len = 0;
	return err;
}

/* False: there is no room for it. */
static bool append(const void *rec, size_t size)
{
	if (batch_len + size > sizeof(batch))
		flush(0);
	if (batch_len + size > sizeof(batch))
		return false;
	memcpy(batch + batch_len, rec, size);
	batch_len += size;
	return true;
}

static void tell_losses(void)
{
	for (uint32_t i = 0; i < CT_LOSS_END; i++) {
		struct ct_lost l = { .h = { .size = sizeof(l), .kind = CT_LOST },
				     .cause = i,
				     .cpu = ~0u,
				     .count = lost[i] };

		if (!lost[i])
			continue;
		l.h.start_ns = l.h.end_ns = clock_ns(CLOCK_MONOTONIC);
		if (!append(&l, sizeof(l)))
			return;
		lost[i] = 0;
	}
}

void send_record(const void *rec)
{
	const struct ct_hdr *h = rec;

	pthread_mutex_lock(&lock);
	tell_losses();
	if (!append(rec, h->size))
		lost[CT_LOSS_AGENT]++;
	pthread_mutex_unlock(&lock);
}

void send_flush(void)
{
	pthread_mutex_lock(&lock);
	flush(0);
	pthread_mutex_unlock(&lock);
}

void send_definition(const void *rec)
{
	const struct ct_hdr *h = rec;

	pthread_mutex_lock(&lock);
	flush(PATIENCE_MS);
	if (!append(rec, h->size))
		lost[CT_LOSS_AGENT]++;
	flush(PATIENCE_MS);
	pthread_mutex_unlock(&lock);
}

void send_lost(uint64_t n, enum ct_loss cause)
{
	pthread_mutex_lock(&lock);
	lost[cause] += n;
	pthread_mutex_unlock(&lock);
}

void send_text(enum counters_level level, const char *fmt, ...)
{
	union {
		struct counters_text t;
		char room[sizeof(struct counters_text) + COUNTERS_TEXT_MAX + 8];
	} m;
	va_list args;
	int n;

	memset(&m, 0, sizeof(m));
	va_start(args, fmt);
	n = vsnprintf(m.t.text, COUNTERS_TEXT_MAX, fmt, args);
	va_end(args);
	n = n < 0 ? 0 : n < COUNTERS_TEXT_MAX ? n : COUNTERS_TEXT_MAX - 1;
	m.t.h.kind = COUNTERS_TEXT;
	m.t.h.size = (__u16)((sizeof(m.t) + (size_t)n + 7) & ~(size_t)7);
	m.t.level = level;
	m.t.len = (__u32)n;
	pthread_mutex_lock(&lock);
	flush(PATIENCE_MS);
	counters_send_put(&m, m.t.h.size, PATIENCE_MS);
	pthread_mutex_unlock(&lock);
}

void send_kind(enum counters_kind kind)
{
	struct ct_hdr h = { .size = sizeof(h), .kind = (__u16)kind };

	h.start_ns = h.end_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&lock);
	flush(PATIENCE_MS);
	tell_losses();
	flush(PATIENCE_MS);
	counters_send_put(&h, sizeof(h), PATIENCE_MS);
	pthread_mutex_unlock(&lock);
}

/* ---- samples ---- */

void sample_begin(union sample *s, const struct device *d, uint64_t start_ns, uint64_t end_ns)
{
	memset(&s->c, 0, sizeof(s->c));
	s->c.h.kind = CT_COUNTER;
	s->c.h.start_ns = start_ns;
	s->c.h.end_ns = end_ns;
	s->c.device = d->index;
}

void sample_add(union sample *s, uint32_t id, double value, uint32_t flags)
{
	struct ct_value *v;

	/* Not a number: the hardware had nothing to divide by, as a hit rate without accesses. */
	if (!id || value != value || value - value != 0 || s->c.n >= COUNTERS_METRICS)
		return;
	v = &s->c.values[s->c.n++];
	v->metric = id;
	v->flags = flags;
	memcpy(&v->bits, &value, sizeof(v->bits));
}

void sample_send(union sample *s)
{
	if (!s->c.n)
		return;
	s->c.h.size = (__u16)(sizeof(s->c) + s->c.n * sizeof(s->c.values[0]));
	send_record(&s->c);
}
