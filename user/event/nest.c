/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nest.c - see nest.h.
 *
 * Each thread that is inside a call has a heap buffer of whole records. The number of threads and the bytes of each are
 * bounded, because both come from outside: whoever exceeds them gets its rows in the order of completion.
 * Knows the wire; no sink, no source.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nest.h"

#define SLOTS 4096	   /* a power of two; threads that hold records at one time */
#define PROBES 16	   /* slots that a thread may end up in */
#define HOLD_MAX (1 << 20) /* bytes held for one thread */

struct held {
	uint32_t tid; /* 0: free */
	uint32_t count;
	uint64_t since_ns; /* end of the first record */
	size_t len, cap;
	char *buf;
};

struct nest {
	emit_fn next;
	void *ctx;
	int nheld; /* slots in use */
	const struct ct_hdr **order;
	size_t order_cap;
	struct held slots[SLOTS];
};

struct nest *nest_open(emit_fn next, void *ctx)
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
	for (int i = 0; i < SLOTS; i++)
		free(n->slots[i].buf);
	free(n->order);
	free(n);
}

/* The thread's slot; with `make`, a free one when it has none yet. NULL: none. */
static struct held *slot_of(struct nest *n, uint32_t tid, bool make)
{
	uint32_t at = tid * 2654435761u >> 16;
	struct held *spare = NULL;

	if (!make && !n->nheld)
		return NULL;
	for (int i = 0; i < PROBES; i++) {
		struct held *h = &n->slots[(at + (uint32_t)i) & (SLOTS - 1)];

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

/* By time of entry; of two at one moment the outer first. */
static int by_entry(const void *pa, const void *pb)
{
	const struct ct_hdr *a = *(const struct ct_hdr *const *)pa, *b = *(const struct ct_hdr *const *)pb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return depth_of(a) - depth_of(b);
}

/* Hands on what the slot holds, and `last` (may be NULL) with it, and frees the slot. */
static int release(struct nest *n, struct held *h, const struct ct_hdr *last)
{
	size_t count = 0, at = 0;
	int err = 0;

	if (h->count + 1 > n->order_cap) {
		const struct ct_hdr **order = realloc(n->order, (h->count + 64) * 2 * sizeof(*order));

		if (!order)
			return -ENOMEM;
		n->order = order;
		n->order_cap = (h->count + 64) * 2;
	}
	while (at < h->len) {
		const struct ct_hdr *rec = (const struct ct_hdr *)(h->buf + at);

		n->order[count++] = rec;
		at += rec->size;
	}
	if (last)
		n->order[count++] = last;
	qsort(n->order, count, sizeof(*n->order), by_entry);
	h->tid = 0;
	h->len = 0;
	h->count = 0;
	n->nheld--;
	for (size_t i = 0; i < count; i++) {
		int e = n->next(n->ctx, n->order[i]);

		/* -EINTR only asks for a pause: the rest goes on all the same */
		if (e && e != -EINTR)
			return e;
		err = e ? e : err;
	}
	return err;
}

static int hold(struct held *h, const struct ct_hdr *rec)
{
	if (h->len + rec->size > h->cap) {
		size_t cap = h->cap ? h->cap * 2 : 4096;
		char *buf = realloc(h->buf, cap);

		if (!buf)
			return -ENOMEM;
		h->buf = buf;
		h->cap = cap;
	}
	if (!h->len)
		h->since_ns = rec->end_ns;
	memcpy(h->buf + h->len, rec, rec->size);
	h->len += rec->size;
	h->count++;
	return 0;
}

int nest_record(struct nest *n, const struct ct_hdr *rec)
{
	struct held *h;
	int err;

	/* what is held may be about the kernel that goes by another name from here on */
	if (rec->kind == CT_NAME && n->nheld && !((const struct ct_name *)rec)->len) {
		err = nest_flush(n, UINT64_MAX);
		if (err && err != -EINTR)
			return err;
	}
	if (rec->kind != CT_CALL || !rec->tid)
		return n->next(n->ctx, rec);
	if (!depth_of(rec)) {
		h = slot_of(n, rec->tid, false);
		return h ? release(n, h, rec) : n->next(n->ctx, rec);
	}
	h = slot_of(n, rec->tid, true);
	if (!h)
		return n->next(n->ctx, rec);
	err = hold(h, rec);
	if (!err && h->len > HOLD_MAX)
		err = release(n, h, NULL);
	return err;
}

int nest_flush(struct nest *n, uint64_t now_ns)
{
	int err = 0;

	for (int i = 0; i < SLOTS && n->nheld; i++) {
		struct held *h = &n->slots[i];
		int e;

		if (!h->tid || (now_ns != UINT64_MAX && h->since_ns + NEST_HOLD_NS > now_ns))
			continue;
		e = release(n, h, NULL);
		if (e && e != -EINTR)
			return e;
		err = e ? e : err;
	}
	return err;
}
