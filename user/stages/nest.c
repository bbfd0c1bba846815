/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nest.c - see nest.h.
 *
 * Each thread that is inside a call has a heap buffer of whole records. The number of threads and
 * the bytes of each are bounded, because the target controls both: a thread beyond these limits
 * gets its rows in the order of completion. Knows the wire format; knows no sink and no source.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "nest.h"
#include "../util/table/array.h"

#define BUCKETS 4096	   /* a power of two; threads that hold records at one time */
#define PROBES 16	   /* buckets that are tried for one thread */
#define HOLD_MAX (1 << 20) /* bytes held for one thread */

struct held {
	uint32_t tid; /* 0: free */
	uint32_t count;
	uint64_t since_ns; /* end of the first record */
	size_t len, cap;
	char *buf;
};

/* An event in a buffer; the next one follows it. */
struct kept {
	uint32_t number, device, context, stream;
	struct ct_hdr rec; /* its length is rec.size */
};
#define KEPT_HEAD offsetof(struct kept, rec)

struct nest {
	event_fn next;
	void *ctx;
	int nheld; /* buckets in use */
	const struct kept **order;
	size_t order_cap;
	struct held buckets[BUCKETS];
};

struct nest *nest_open(event_fn next, void *ctx)
{
	struct nest *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->next = next;
	n->ctx = ctx;
	return n;
}

void nest_close(struct nest *n)
{
	if (!n)
		return;
	for (int i = 0; i < BUCKETS; i++)
		free(n->buckets[i].buf);
	free(n->order);
	free(n);
}

/* Finds the thread's bucket. With `make` it takes a free bucket for a thread that has none. NULL: there
 * is none. */
static struct held *nest_bucket_of(struct nest *n, uint32_t tid, bool make)
{
	uint32_t at = tid * 2654435761u >> 16;
	struct held *spare = NULL;

	if (!make && !n->nheld)
		return NULL;
	for (int i = 0; i < PROBES; i++) {
		struct held *h = &n->buckets[(at + (uint32_t)i) & (BUCKETS - 1)];

		if (h->tid == tid)
			return h;
		if (!h->tid && !spare)
			spare = h;
	}
	if (!make || !spare)
		return NULL;
	spare->tid = tid;
	n->nheld++;
	return spare;
}

static int depth_of(const struct ct_hdr *h)
{
	return h->kind == CT_CALL || h->kind == CT_ENTER ? ((const struct ct_call *)h)->depth : 0;
}

/* Orders by time of entry; if two are equal, the outer call comes first. */
static int by_entry(const void *pa, const void *pb)
{
	const struct ct_hdr *a = &(*(const struct kept *const *)pa)->rec,
			    *b = &(*(const struct kept *const *)pb)->rec;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return depth_of(a) - depth_of(b);
}

static int nest_hand_on(struct nest *n, const struct kept *k)
{
	struct event ev = { .rec = &k->rec,
			    .number = k->number,
			    .device = k->device,
			    .context = k->context,
			    .stream = k->stream };

	return n->next(n->ctx, &ev);
}

/* Passes on what the bucket holds and frees the bucket. */
static int release(struct nest *n, struct held *h)
{
	size_t count = 0, at = 0;
	int err = 0;

	if (!array_fit(n->order, n->order_cap, h->count))
		return -ENOMEM;
	while (at < h->len) {
		const struct kept *k = (const struct kept *)(h->buf + at);

		n->order[count++] = k;
		at += KEPT_HEAD + k->rec.size;
	}
	qsort(n->order, count, sizeof(*n->order), by_entry);
	h->tid = 0;
	h->len = 0;
	h->count = 0;
	n->nheld--;
	for (size_t i = 0; i < count && !err; i++)
		err = nest_hand_on(n, n->order[i]);
	return err;
}

static int nest_hold(struct held *h, const struct event *ev)
{
	size_t size = KEPT_HEAD + ev->rec->size;
	struct kept head = { .number = ev->number,
			     .device = ev->device,
			     .context = ev->context,
			     .stream = ev->stream };

	if (!array_fit(h->buf, h->cap, h->len + size))
		return -ENOMEM;
	if (!h->len)
		h->since_ns = ev->rec->end_ns;
	memcpy(h->buf + h->len, &head, KEPT_HEAD);
	memcpy(h->buf + h->len + KEPT_HEAD, ev->rec, ev->rec->size);
	h->len += size;
	h->count++;
	return 0;
}

int nest_record(struct nest *n, struct event *ev)
{
	const struct ct_hdr *rec = ev->rec;
	struct held *h;
	int err;

	/* the events that are held may be about a kernel whose name changes here */
	if (rec->kind == CT_NAME && n->nheld && !((const struct ct_name *)rec)->len) {
		err = nest_flush(n, UINT64_MAX);
		if (err)
			return err;
	}
	if (rec->kind != CT_CALL || !rec->tid)
		return n->next(n->ctx, ev);
	h = nest_bucket_of(n, rec->tid, depth_of(rec) > 0);
	if (!h)
		return n->next(n->ctx, ev);
	err = nest_hold(h, ev);
	if (!err && (!depth_of(rec) || h->len > HOLD_MAX))
		err = release(n, h);
	return err;
}

int nest_flush(struct nest *n, uint64_t now_ns)
{
	int err = 0;

	for (int i = 0; i < BUCKETS && n->nheld && !err; i++) {
		struct held *h = &n->buckets[i];

		if (h->tid && (now_ns == UINT64_MAX || h->since_ns + NEST_HOLD_NS <= now_ns))
			err = release(n, h);
	}
	return err;
}
