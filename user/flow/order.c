/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.c - see order.h.
 *
 * Texts are held instead of events, because an event's names, process and stack are valid only at
 * the moment at which it comes. The rows are a binary heap: the earliest one is the first. Of rows
 * with the same place, the one that came first is handed on first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/array.h"
#include "../util/msg.h"
#include "order.h"

#define TICK_ROWS 65536 /* of one order_tick(): the loop has other things to do too */

struct held {
	uint64_t place_ns, nth; /* nth: in the order in which the rows came */
	char *text;
	size_t len;
};

struct order {
	const struct sink_opts *opts;
	struct text row; /* that is being written */
	struct held *rows;
	size_t nrows;
	size_t bytes;	    /* held */
	uint64_t nth;	    /* rows so far */
	uint64_t call_ns;   /* place of the latest call */
	uint64_t handed_ns; /* place of the latest row that was handed on */
	bool overfull;	    /* rows had to be handed on too early */
	bool reported;
};

int order_open(struct order **out, const struct sink_opts *opts)
{
	*out = NULL;
	if (!opts->gpu || opts->stuck)
		return 0;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->opts = opts;
	return 0;
}

void order_close(struct order *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->nrows; i++)
		free(o->rows[i].text);
	free(o->rows);
	text_free(&o->row);
	free(o);
}

/* ---- the heap ---- */

static bool is_before(const struct held *a, const struct held *b)
{
	return a->place_ns != b->place_ns ? a->place_ns < b->place_ns : a->nth < b->nth;
}

static int order_push(struct order *o, const struct held *h)
{
	size_t at = o->nrows;

	if (!array_room(o->rows, o->nrows))
		return -ENOMEM;
	for (; at && is_before(h, &o->rows[(at - 1) / 2]); at = (at - 1) / 2)
		o->rows[at] = o->rows[(at - 1) / 2];
	o->rows[at] = *h;
	o->nrows++;
	o->bytes += sizeof(*h) + h->len;
	return 0;
}

static struct held order_pop(struct order *o)
{
	struct held first = o->rows[0], last = o->rows[--o->nrows];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= o->nrows)
			break;
		if (child + 1 < o->nrows && is_before(&o->rows[child + 1], &o->rows[child]))
			child++;
		if (!is_before(&o->rows[child], &last))
			break;
		o->rows[at] = o->rows[child];
		at = child;
	}
	if (o->nrows)
		o->rows[at] = last;
	o->bytes -= sizeof(first) + first.len;
	INVARIANT(o->nrows ? !is_before(&o->rows[0], &first) : !o->bytes);
	return first;
}

/* ---- rows ---- */

/* The rows of a recording are expected to be in order. One message says that some cannot be. */
static void tell_late(struct order *o, const struct held *h)
{
	if (!o->opts->recorded || !o->overfull || o->reported || h->place_ns >= o->handed_ns)
		return;
	o->reported = true;
	msg_warn("some rows are out of time order: more than %zu MiB of other rows lie between "
		 "them and their place",
		 ORDER_HOLD_BYTES >> 20);
}

static void write_held(struct order *o, const struct held *h)
{
	tell_late(o, h);
	if (h->place_ns > o->handed_ns)
		o->handed_ns = h->place_ns;
	out_mem(o->opts->out, h->text, h->len);
	free(h->text);
}

static void order_hand_on(struct order *o)
{
	struct held h = order_pop(o);

	write_held(o, &h);
}

/* With --nested a call's row stands above those of the calls inside it, though it ended later:
 * calls keep the order in which they come. */
static uint64_t order_place_of(struct order *o, const struct ct_hdr *h)
{
	uint64_t ns = event_place_ns(h);

	if (!o->opts->look.nested || h->kind != CT_CALL || h->flags & CT_F_PENDING)
		return ns;
	if (ns > o->call_ns)
		o->call_ns = ns;
	return o->call_ns;
}

void order_begin(struct order *o, struct row *w, struct out *out)
{
	if (!o) {
		row_begin(w, out);
		return;
	}
	o->row.len = 0;
	row_begin_text(w, &o->row);
}

int order_end(struct order *o, struct row *w, const struct ct_hdr *h)
{
	struct held held;
	int err;

	row_end(w);
	if (!o)
		return 0;
	if (o->row.bad)
		return -ENOMEM;
	held = (struct held){ .place_ns = order_place_of(o, h),
			      .nth = o->nth++,
			      .len = o->row.len };
	if (!held.place_ns) {
		out_mem(o->opts->out, o->row.s, o->row.len);
		return out_error(o->opts->out);
	}
	held.text = malloc(held.len ? held.len : 1);
	if (!held.text)
		return -ENOMEM;
	memcpy(held.text, o->row.s, held.len);
	err = order_push(o, &held);
	if (err) {
		free(held.text);
		return err;
	}
	for (; o->bytes > ORDER_HOLD_BYTES; o->overfull = true)
		order_hand_on(o);
	return out_error(o->opts->out);
}

/* What ended before this can have no earlier row behind it: CUPTI has given out what it had then, and the sources
 * have handed over what they have. */
static uint64_t live_until(const struct order *o, uint64_t now_ns)
{
	uint64_t held_ns = now_ns > ORDER_HOLD_NS ? now_ns - ORDER_HOLD_NS : 0,
		 settled_ns = held_ns;

	if (o->nrows && o->opts->settled)
		settled_ns = o->opts->settled(o->opts->refresh_ctx);
	return settled_ns < held_ns ? settled_ns : held_ns;
}

int order_tick(struct order *o, uint64_t now_ns)
{
	uint64_t until_ns;

	if (!o)
		return 0;
	if (o->opts->recorded)
		until_ns = o->nrows && o->opts->settled ? o->opts->settled(o->opts->refresh_ctx)
							: 0;
	else
		until_ns = live_until(o, now_ns);
	for (int n = 0; n < TICK_ROWS && o->nrows && o->rows[0].place_ns <= until_ns; n++)
		order_hand_on(o);
	return out_error(o->opts->out);
}

static int order_compare(const void *a, const void *b)
{
	return is_before(a, b) ? -1 : 1;
}

/* A million rows are sorted several times faster than they are taken out of the heap one by one. */
int order_flush(struct order *o)
{
	if (o && o->nrows)
		qsort(o->rows, o->nrows, sizeof(*o->rows), order_compare);
	for (size_t i = 0; o && i < o->nrows; i++)
		write_held(o, &o->rows[i]);
	if (o)
		o->nrows = o->bytes = 0;
	return o ? out_error(o->opts->out) : 0;
}
