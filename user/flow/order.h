/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.h - puts finished rows in the order of time, for the outputs that show rows as they come
 * (table, json).
 *
 * The row of a call comes when the call completes, the row of device work when CUPTI has given its
 * buffer back, which is later. A row's place is the end of what it describes (event_place_ns). Rows
 * are held, as text, until no earlier one can come:
 *
 * - live, for ORDER_HOLD_NS after their end, and until the sources have handed over what ended before
 *   (sink_opts.settled: at most a second). A row that comes later than that is shown at once, behind
 *   later ones.
 * - for a recording, until the source says that what is still to come ended later
 *   (sink_opts.settled). That order is exact.
 *
 * Rows are held only if device work is traced or was recorded; without it calls come in their order
 * and nothing waits. The memory for held rows is bounded: if it is full, the earliest rows are
 * handed on although an earlier one may still come. Knows no format.
 */
#ifndef CT_ORDER_H
#define CT_ORDER_H

#include "row.h"
#include "sink.h"

#define ORDER_HOLD_NS 250000000ULL
#define ORDER_HOLD_BYTES ((size_t)256 << 20) /* of rows */

struct order;

/* Sets *out to NULL if rows need not be held. The options stay the caller's until order_close().
 * Returns 0 or -ENOMEM. */
int order_open(struct order **out, const struct sink_opts *);
/* drops the rows that are held: call order_flush() first. NULL is allowed */
void order_close(struct order *);

/* Begins a row: in the output, or, if there is an order, in a text of its own. order may be
 * NULL. */
void order_begin(struct order *, struct row *, struct out *);
/* Ends the row, which describes this record. The row of a definition is handed on at once.
 * Returns 0, -ENOMEM, or the output's error. */
int order_end(struct order *, struct row *, const struct ct_hdr *);

/* Hands on the rows that need not be held any longer at now_ns (CLOCK_MONOTONIC). Returns 0 or
 * the output's error. NULL is allowed. */
int order_tick(struct order *, uint64_t now_ns);
/* Hands on all rows. Returns as order_tick() does. NULL is allowed. */
int order_flush(struct order *);

#endif
