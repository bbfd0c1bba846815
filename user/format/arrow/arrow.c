/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arrow.c - a row for each record, with the columns of columns.def, as a stream of Apache Arrow. The
 * version of the columns is in the schema's metadata (cudatrace.schema).
 */
#include <errno.h>
#include <stdlib.h>

#include "../about.h"
#include "arrow_ipc.h"

#define BATCH_ROWS 65536

struct arrow {
	struct cells cells;
	struct batch batch;
	struct arrow_body *body;
	uint64_t written_ns; /* when the last batch was written */
};

static int write_batch(struct sink *s)
{
	struct arrow *a = s->priv;
	int err = a->batch.rows ? arrow_batch(s->opts->out, a->body, &a->batch) : 0;

	return err ? err : s->opts->out->error;
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
			err = write_batch(s);
	}
	return err ? err : about_is_call(ev->rec) || kind_is(ev->rec->kind, KIND_DEVICE);
}

/* A live reader gets what there is once a second. */
static int arrow_tick(struct sink *s, uint64_t now_ns)
{
	struct arrow *a = s->priv;

	if (now_ns - a->written_ns < 1000000000ull)
		return 0;
	a->written_ns = now_ns;
	return write_batch(s);
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
	if (!a->body || batch_open(&a->batch, 0))
		return -ENOMEM;
	arrow_schema(opts->out, &a->batch, COLUMNS_VERSION_KEY, COLUMNS_VERSION);
	return 0;
}

static int arrow_close(struct sink *s, const struct sink_end *end)
{
	struct arrow *a = s->priv;
	int err;

	(void)end;
	if (!a)
		return 0;
	err = write_batch(s);
	if (!err)
		arrow_end(s->opts->out);
	batch_close(&a->batch);
	arrow_body_close(a->body);
	text_free(&a->cells.made);
	free(a);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

const struct sink_ops sink_arrow = {
	.name = "arrow",
	.help = "a row for each record, in typed columns (Apache Arrow IPC stream, zstd)",
	.open = arrow_open,
	.event = arrow_event,
	.tick = arrow_tick,
	.close = arrow_close,
};
