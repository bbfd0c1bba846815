/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arrow.c - a row for each record, with typed columns, as a stream of Apache Arrow: pyarrow and
 * polars read it without parsing numbers. The columns are those of csv by their names,
 * with time_unix_ns, and with args: the arguments as JSON. The version of this schema is in its
 * metadata (cudatrace.schema).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/device.h"
#include "../../event/gpus.h"
#include "../../event/muted.h"
#include "../../event/scopes/lineage.h"
#include "../about.h"
#include "../rows/json_fields.h"
#include "arrow_ipc.h"

#define BATCH_ROWS 65536
#define BATCH_TEXT_BYTES (16u << 20)
#define SCHEMA_VERSION "1"

#define COLUMNS_OF(C)                            \
	C(TYPE, "type", TEXT)                    \
	C(START, "start_ns", U64)                \
	C(UNIX, "time_unix_ns", I64)             \
	C(DURATION, "duration_ns", U64)          \
	C(PID, "pid", U64)                       \
	C(TID, "tid", U64)                       \
	C(PROCESS, "process", TEXT)              \
	C(NAME, "name", TEXT)                    \
	C(NUMBER, "number", U64)                 \
	C(RESULT, "result", TEXT)                \
	C(BYTES, "size_bytes", U64)              \
	C(DEVICE, "device", U64)                 \
	C(CONTEXT, "context", U64)               \
	C(STREAM, "stream", U64)                 \
	C(CAUSE, "cause", TEXT)                  \
	C(CAUSE_START, "cause_start_ns", U64)    \
	C(KERNEL, "kernel", TEXT)                \
	C(VALUE, "value", DOUBLE)                \
	C(UNIT, "unit", TEXT)                    \
	C(ARGS, "args", TEXT)                    \
	C(PROCESS_ID, "process_id", U64)         \
	C(HOST_PID, "host_pid", U64)             \
	C(HOST, "host", TEXT)                    \
	C(BOOT, "boot", TEXT)                    \
	C(RANK, "rank", U64)                     \
	C(GPU, "gpu", U64)                       \
	C(GPU_UUID, "gpu_uuid", TEXT)            \
	C(DEPTH, "depth", U64)                   \
	C(FLAGS, "flags", TEXT)                  \
	C(SCOPE, "scope", TEXT)                  \
	C(SCOPE_NAME, "scope_name", TEXT)        \
	C(THREAD, "thread", TEXT)                \
	C(GEMM_M, "m", U64)                      \
	C(GEMM_N, "n", U64)                      \
	C(GEMM_K, "k", U64)                      \
	C(GEMM_BATCH, "batch", U64)              \
	C(GEMM_A_TYPE, "a_type", TEXT)           \
	C(GEMM_B_TYPE, "b_type", TEXT)           \
	C(GEMM_D_TYPE, "d_type", TEXT)           \
	C(GEMM_FLOP, "flop", U64)                \
	C(GEMM_TFLOPS, "tflops", DOUBLE)         \
	C(GEMM_PEAK_SHARE, "peak_share", DOUBLE) \
	C(INPUTS, "inputs", TEXT)

#define C(id, name, type) id,
enum { COLUMNS_OF(C) COLUMNS };
#undef C

struct arrow {
	struct arrow_column cols[COLUMNS];
	struct text cell;
	uint64_t rows, written_ns; /* rows of this batch; when the last one was written */
};

/* Most cells have no value: a column gets those of many rows at once, before its next value. */
static struct arrow_column *column(struct arrow *a, int col)
{
	arrow_null(&a->cols[col], a->rows);
	return &a->cols[col];
}

static void put(struct arrow *a, int col, uint64_t bits)
{
	arrow_put(column(a, col), bits);
}

static void put_known(struct arrow *a, int col, uint32_t v)
{
	if (v != CT_UNKNOWN)
		put(a, col, v);
}

static void put_word(struct arrow *a, int col, const char *s)
{
	if (s)
		arrow_put_text(column(a, col), s, strlen(s));
}

/* What was written into the cell's text; an empty one is no value. */
static void put_cell(struct arrow *a, int col)
{
	if (a->cell.bad)
		a->cols[col].values.bad = true;
	else if (a->cell.len)
		arrow_put_text(column(a, col), a->cell.s, a->cell.len);
	a->cell.len = 0;
}

static void put_untrusted(struct arrow *a, int col, const char *s, size_t max)
{
	text_plain(&a->cell, s ? s : "", max);
	put_cell(a, col);
}

static void put_head(struct arrow *a, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	put_word(a, TYPE,
		 h->kind == CT_SCOPE_END ? scope_word((const struct ct_scope *)h)
					 : about_kind(h->kind));
	put(a, START, h->start_ns);
	put(a, UNIX, h->start_ns + o->realtime_offset_ns);
	if (!(about_is_call(h) && h->flags & (CT_F_NO_RETURN | CT_F_BEFORE)) &&
	    !(kind_is(h->kind, KIND_WORK) && h->flags & CT_F_NO_TIME))
		put(a, DURATION, about_duration_ns(h));
	if (ev->gpu) {
		put(a, GPU, ev->gpu->number);
		put_word(a, GPU_UUID, *ev->gpu->text ? ev->gpu->text : NULL);
	}
	if (ev->thread)
		put_untrusted(a, THREAD, ev->thread, CT_COMM_LEN);
	if (ev->scope_id == CT_SCOPE_UNKNOWN)
		text_str(&a->cell, "?");
	else if (ev->scope_id)
		text_u64(&a->cell, ev->scope_id);
	put_cell(a, SCOPE);
	if (ev->scope)
		put_untrusted(a, SCOPE_NAME, ev->scope->name, 1024);
}

static void put_process(struct arrow *a, const struct sink_opts *o, const struct event *ev)
{
	const struct process_info *i = ev->proc->info;

	if (!ev->rec->pid)
		return;
	put(a, PID, ev->proc->shown_pid);
	if (ev->rec->tid)
		put(a, TID, about_tid(ev));
	put_untrusted(a, PROCESS, ev->proc->comm, CT_COMM_LEN);
	put(a, PROCESS_ID, process_unique(ev->proc));
	put(a, HOST_PID, process_host_pid(ev->proc->pid));
	put_untrusted(a, HOST, i && *i->host ? i->host : o->host, 256);
	put_untrusted(a, BOOT, i && *i->boot ? i->boot : o->boot, 64);
	put_known(a, RANK, i ? i->rank : CT_UNKNOWN);
}

static void put_result(struct arrow *a, const struct ct_call *call)
{
	const char *name;

	if (call->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN) ||
	    api_funcs[call->func].ret != API_RET_STATUS)
		return;
	name = api_error_name(call->func, (int32_t)call->ret);
	if (name)
		text_str(&a->cell, name);
	else
		text_u64(&a->cell, (uint32_t)call->ret);
	put_cell(a, RESULT);
}

static void put_ret(struct arrow *a, const struct ct_scope *s)
{
	const struct ct_collective *more = scope_collective(s);
	const char *name = more ? scope_error(s, more->ret) : NULL;

	if (!more || !(more->flags & CT_COLLECTIVE_RETURNED))
		return;
	if (name)
		text_str(&a->cell, name);
	else
		text_u64(&a->cell, (uint32_t)more->ret);
	put_cell(a, RESULT);
}

static void put_args(struct arrow *a, const struct event *ev)
{
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);
	struct row w;

	row_begin_text(&w, &a->cell);
	w.p = put_char(w.p, '{');
	json_fields(&w, f, n);
	row_room(&w, 1);
	w.p = put_char(w.p, '}');
	row_end(&w);
	put_cell(a, ARGS);
}

static void put_real(struct arrow *a, int col, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put(a, col, bits);
}

/* What a product of matrices is, and how fast; and an operator's arguments. */
static void put_product(struct arrow *a, const struct event *ev)
{
	struct product p;
	char inputs[INPUTS_MAX];

	if (scope_inputs(ev->rec, inputs))
		put_untrusted(a, INPUTS, inputs, INPUTS_MAX);
	if (!product_of(ev, &p))
		return;
	if (p.gemm->flags & CT_GEMM_SHAPE) {
		put(a, GEMM_M, p.gemm->m);
		put(a, GEMM_N, p.gemm->n);
		put(a, GEMM_K, p.gemm->k);
	}
	if (p.gemm->batch)
		put(a, GEMM_BATCH, p.gemm->batch);
	put_word(a, GEMM_A_TYPE, gemm_type(p.gemm->a_type));
	put_word(a, GEMM_B_TYPE, gemm_type(p.gemm->b_type));
	put_word(a, GEMM_D_TYPE, gemm_type(p.gemm->d_type));
	if (p.flop)
		put(a, GEMM_FLOP, p.flop);
	if (p.rate >= 0)
		put_real(a, GEMM_TFLOPS, p.rate / 1e12);
	if (p.share >= 0)
		put_real(a, GEMM_PEAK_SHARE, p.share);
}

static void put_value(struct arrow *a, double value, const char *unit)
{
	put_real(a, VALUE, value);
	put_word(a, UNIT, unit);
}

static void put_about(struct arrow *a, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	const struct ct_lost *lost = (const struct ct_lost *)h;
	int64_t bytes = about_bytes(h);
	struct muted_sum sum = { 0 };

	about_name(&a->cell, o, ev);
	put_cell(a, NAME);
	if (ev->number)
		put(a, NUMBER, ev->number);
	if (h->kind == CT_CALL)
		put_result(a, (const struct ct_call *)h);
	else if (h->kind == CT_SCOPE_END)
		put_ret(a, (const struct ct_scope *)h);
	if (bytes >= 0)
		put(a, BYTES, (uint64_t)bytes);
	if (about_is_call(h) || kind_is(h->kind, KIND_WORK)) {
		put_known(a, DEVICE, ev->device);
		put_known(a, CONTEXT, ev->context);
		put_known(a, STREAM, ev->stream);
	}
	if (h->kind == CT_EVENT)
		put_known(a, DEVICE, ((const struct ct_event *)h)->device);
	if (kind_is(h->kind, KIND_WORK) && ev->cause && ev->cause->func < api_nfuncs) {
		put_word(a, CAUSE, api_funcs[ev->cause->func].name);
		put(a, CAUSE_START, ev->cause->start_ns);
	}
	if (ev->kernel)
		put_untrusted(a, KERNEL, o->mangled ? ev->kernel->mangled : ev->kernel->full,
			      65536);
	if (h->kind == CT_EVENT)
		put_value(a, ((const struct ct_event *)h)->code, NULL);
	if (h->kind == CT_LOST)
		put_value(a, (double)lost->count, "records");
	if (h->kind == CT_MUTED) {
		muted_add(&sum, (const struct ct_muted *)h);
		put_value(a, (double)((int64_t)sum.counted + sum.unseen.calls), "calls");
	}
	if (h->kind == CT_CALL)
		put(a, DEPTH, ((const struct ct_call *)h)->depth);
	about_flags(&a->cell, h);
	put_cell(a, FLAGS);
	put_args(a, ev);
	put_product(a, ev);
}

static void put_sample(struct arrow *a, const struct event *ev, const struct ct_value *v)
{
	const struct metric *m = metric_table_find(ev->metrics, v->metric);
	double value;

	if (m)
		text_str(&a->cell, m->name);
	else
		text_u64(&a->cell, v->metric);
	put_cell(a, NAME);
	put_word(a, UNIT, m ? m->unit : NULL);
	put_known(a, DEVICE, ((const struct ct_counter *)ev->rec)->device);
	put_word(a, FLAGS, v->flags & CT_VALUE_SUSPECT ? "suspect" : NULL);
	memcpy(&value, &v->bits, sizeof(value));
	if (isfinite(value))
		put(a, VALUE, v->bits);
}

static int write_batch(struct sink *s)
{
	struct arrow *a = s->priv;
	int err;

	for (int i = 0; i < COLUMNS; i++)
		column(a, i);
	err = a->rows ? arrow_batch(s->opts->out, a->cols, COLUMNS) : 0;
	a->rows = 0;
	return err ? err : s->opts->out->error;
}

static int end_row(struct sink *s)
{
	struct arrow *a = s->priv;
	bool full = ++a->rows == BATCH_ROWS;

	for (int i = 0; i < COLUMNS; i++)
		full |= a->cols[i].values.len >= BATCH_TEXT_BYTES;
	return full ? write_batch(s) : 0;
}

static int arrow_event(struct sink *s, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	const struct ct_counter *samples = (const struct ct_counter *)h;
	uint32_t n = h->kind == CT_COUNTER ? samples->n : 1;
	struct arrow *a = s->priv;
	int err;

	if (!about_kind(h->kind) || (about_is_call(h) && h->flags & CT_F_PENDING) ||
	    (h->kind == CT_FOREIGN && !about_is_call(h)))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		put_head(a, s->opts, ev);
		put_process(a, s->opts, ev);
		if (h->kind == CT_COUNTER)
			put_sample(a, ev, &samples->values[i]);
		else
			put_about(a, s->opts, ev);
		err = end_row(s);
		if (err)
			return err;
	}
	return about_is_call(h) || kind_is(h->kind, KIND_DEVICE);
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
	static const struct arrow_column cols[COLUMNS] = {
#define C(id, title, kind) { .name = title, .type = ARROW_##kind },
		COLUMNS_OF(C)
#undef C
	};
	struct arrow *a = calloc(1, sizeof(*a));

	s->opts = opts;
	s->priv = a;
	if (!a)
		return -ENOMEM;
	memcpy(a->cols, cols, sizeof(cols));
	arrow_schema(opts->out, a->cols, COLUMNS, "cudatrace.schema", SCHEMA_VERSION);
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
	for (int i = 0; i < COLUMNS; i++)
		arrow_free(&a->cols[i]);
	text_free(&a->cell);
	free(a);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

const struct sink_ops sink_arrow = {
	.name = "arrow",
	.help = "a row for each record, in typed columns (Apache Arrow IPC stream)",
	.open = arrow_open,
	.event = arrow_event,
	.tick = arrow_tick,
	.close = arrow_close,
};
