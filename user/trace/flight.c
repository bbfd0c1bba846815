/* SPDX-License-Identifier: BSD-2-Clause */
/* flight.c - see flight.h: a queue of compressed blocks. Each block has a copy of its definitions,
 * which is needed when the block is dropped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "defs.h"
#include "encode.h"
#include "flight.h"
#include "writer.h"
#include "../util/table/array.h"

struct kept {
	struct kept *next;
	struct trace_block b; /* the block's head, with its counts and times */
	char *defs;	      /* its definitions, stored one after the other */
	size_t defs_len;
	char body[];
};

struct ring_buf {
	uint64_t last_ns, max_bytes, bytes, crowded;
	struct encoder *encoder;
	struct defs *defs; /* the definitions of the dropped blocks */
	struct numbers *numbers;
	struct kept *first, **end;
	char *now; /* the definitions of the current block */
	size_t now_len, now_cap;
};

struct ring_buf *ring_buf_open(uint64_t last_ns, uint64_t max_bytes)
{
	struct ring_buf *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->last_ns = last_ns;
	r->max_bytes = max_bytes;
	r->end = &r->first;
	r->encoder = encode_open();
	r->defs = defs_open();
	r->numbers = numbers_open();
	if (!r->encoder || !r->defs || !r->numbers) {
		ring_buf_close(r);
		return NULL;
	}
	encode_numbers(r->encoder, r->numbers);
	return r;
}

static int drop_first(struct ring_buf *r)
{
	struct kept *k = r->first;
	int err = 0;

	for (size_t at = 0; at < k->defs_len && !err;) {
		const struct ct_hdr *h = (const struct ct_hdr *)(k->defs + at);

		err = defs_record(r->defs, h);
		at += h->size;
	}
	r->first = k->next;
	if (!r->first)
		r->end = &r->first;
	r->bytes -= sizeof(*k) + k->b.len + k->defs_len;
	free(k->defs);
	free(k);
	return err;
}

void ring_buf_close(struct ring_buf *r)
{
	if (!r)
		return;
	while (r->first) {
		struct kept *k = r->first;

		r->first = k->next;
		free(k->defs);
		free(k);
	}
	encode_close(r->encoder);
	defs_close(r->defs);
	numbers_close(r->numbers);
	free(r->now);
	free(r);
}

static int flight_remember(struct ring_buf *r, const struct ct_hdr *h)
{
	if (!array_fit(r->now, r->now_cap, r->now_len + h->size))
		return -ENOMEM;
	memcpy(r->now + r->now_len, h, h->size);
	r->now_len += h->size;
	return 0;
}

int ring_buf_record(struct ring_buf *r, const struct ct_hdr *h)
{
	int n = encode_record(r->encoder, h), err = 0;

	if (n < 0)
		return 0;
	if (trace_is_definition(h->kind))
		err = flight_remember(r, h);
	return err || !n ? err : ring_buf_flush(r, h->end_ns);
}

int ring_buf_flush(struct ring_buf *r, uint64_t now_ns)
{
	struct trace_block b = { .type = TRACE_DATA };
	const void *body;
	struct kept *k;
	int err = 0;

	if (encode_sums(r->encoder, &b)) {
		err = encode_finish(r->encoder, &body, &b.len);
		k = err ? NULL : malloc(sizeof(*k) + b.len);
		if (!k)
			return err ? err : -ENOMEM;
		k->next = NULL;
		k->b = b;
		memcpy(k->body, body, b.len);
		k->defs = r->now;
		k->defs_len = r->now_len;
		r->now = NULL;
		r->now_len = r->now_cap = 0;
		*r->end = k;
		r->end = &k->next;
		r->bytes += sizeof(*k) + b.len + k->defs_len;
	}
	while (r->first && !err) {
		bool old = r->first->b.last_ns + r->last_ns < now_ns;

		if (!old && (r->bytes <= r->max_bytes || !r->first->next))
			break;
		if (!old)
			r->crowded += r->first->b.records;
		err = drop_first(r);
	}
	return err;
}

static int write_one(void *ctx, const struct ct_hdr *h)
{
	return writer_record(ctx, h);
}

int ring_buf_write(struct ring_buf *r, struct writer *w)
{
	int err = defs_write(r->defs, write_one, w);

	for (const struct kept *k = r->first; k && !err; k = k->next)
		err = writer_block(w, &k->b, k->body);
	return err;
}

uint64_t ring_buf_crowded(const struct ring_buf *r)
{
	return r->crowded;
}

uint64_t ring_buf_unnamed(const struct ring_buf *r)
{
	return defs_dropped(r->defs);
}

uint64_t ring_buf_bytes(const struct ring_buf *r)
{
	return r->bytes;
}
