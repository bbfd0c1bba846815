/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arrow.c - a row for each record, with the columns of columns.def, as a stream of Apache Arrow. The
 * version of the columns is in the schema's metadata (cudatrace.schema). A thread compresses a batch while the next
 * one is filled.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../util/thread.h"
#include "../../flow/about.h"
#include "arrow_ipc.h"

#define BATCH_ROWS 65536

struct arrow {
	struct cells cells;
	struct batch batch;
	struct worker *worker; /* compresses `full` while `batch` is filled */
	struct batch full;
	struct arrow_body *body;
	struct text bytes; /* what is to be written; it belongs to the worker while the worker runs */
	uint64_t written_ns; /* when the last batch was written */
};

static int pack_batch(void *arg)
{
	struct arrow *a = arg;

	return arrow_batch(&a->bytes, a->body, &a->full);
}

/* Writes what the worker has finished. */
static int write_packed(struct sink *s)
{
	struct arrow *a = s->priv;
	int err = worker_wait(a->worker);

	if (err)
		return err;
	out_mem(s->opts->out, a->bytes.s, a->bytes.len);
	a->bytes.len = 0;
	return s->opts->out->error;
}

/* Hands the rows that there are to the worker. */
static int arrow_hand_over(struct sink *s)
{
	struct arrow *a = s->priv;
	int err = write_packed(s);
	struct batch full = a->batch;

	if (err || !full.rows)
		return err;
	a->batch = a->full;
	a->full = full;
	return worker_begin(a->worker, pack_batch, a);
}

static int arrow_event(struct sink *s, const struct event *ev)
{
	uint32_t n = columns_rows(ev);
	struct arrow *a = s->priv;
	int err = 0;

	if (!n)
		return 0;
	for (uint32_t i = 0; i < n && !err; i++) {
		columns_fill(&a->cells, ev, i);
		err = batch_add(&a->batch, &a->cells);
		if (!err && batch_full(&a->batch, BATCH_ROWS))
			err = arrow_hand_over(s);
	}
	return err ? err : about_is_call(ev->rec) || kind_is(ev->rec->kind, KIND_DEVICE);
}

/* Once a second, writes what there is for a reader of a live trace. */
static int arrow_tick(struct sink *s, uint64_t now_ns)
{
	struct arrow *a = s->priv;
	int err;

	if (now_ns - a->written_ns < 1000000000ull)
		return 0;
	a->written_ns = now_ns;
	err = arrow_hand_over(s);
	return err ? err : write_packed(s);
}

static int arrow_open(struct sink *s, const struct sink_opts *opts)
{
	struct arrow *a = calloc(1, sizeof(*a));

	s->opts = opts;
	s->priv = a;
	if (!a)
		return -ENOMEM;
	a->cells.o = opts;
	a->cells.fields = true;
	a->body = arrow_body_open();
	a->worker = worker_open("ct-columns");
	if (!a->body || !a->worker || batch_open(&a->batch, 0) || batch_open(&a->full, 0))
		return -ENOMEM;
	arrow_schema(&a->bytes, &a->batch, COLUMNS_VERSION_KEY, SINK_NAMES_VERSION);
	return a->bytes.bad ? -ENOMEM : write_packed(s);
}

static int arrow_close(struct sink *s, const struct sink_end *end)
{
	struct arrow *a = s->priv;
	int err = -ENOMEM;

	(void)end;
	if (!a)
		return 0;
	if (a->worker)
		err = arrow_hand_over(s);
	if (!err)
		err = write_packed(s);
	if (!err) {
		arrow_end(&a->bytes);
		err = write_packed(s);
	}
	worker_close(a->worker);
	batch_close(&a->batch);
	batch_close(&a->full);
	arrow_body_close(a->body);
	text_free(&a->bytes);
	text_free(&a->cells.made);
	free(a);
	s->priv = NULL;
	return err;
}

const struct sink_ops sink_arrow = {
	.name = "arrow",
	.open = arrow_open,
	.event = arrow_event,
	.tick = arrow_tick,
	.close = arrow_close,
};
