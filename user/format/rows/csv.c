/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * csv.c - a row for each record, calls and device work in one table, for spreadsheets and data
 * frames:
 *
 *   type,start_ns,duration_ns,pid,tid,process,name,number,...
 *   call,1234018000,112400,12345,12345,train,cudaLaunchKernel,17,...
 *   kernel,1234120000,8960,12345,,train,"vecAdd(float const*, int)",17,...
 *
 * Cells are quoted as in RFC 4180; a text that a spreadsheet would take as a formula gets a '
 * before it (docs/exports.md). Lines end in a newline alone. A cell without a value is empty.
 * Columns are only ever added at the end. A sample of several metrics is a row for each of them.
 * Calls that were counted in windows have no rows: a row of type muted says how many there were.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/device.h"
#include "../../event/gpus.h"
#include "../../event/muted.h"
#include "../../event/scopes/lineage.h"
#include "../about.h"
#include "../row.h"

enum column {
	TYPE,
	START,
	DURATION,
	PID,
	TID,
	PROCESS,
	NAME,
	NUMBER,
	RESULT,
	BYTES,
	DEVICE,
	CONTEXT,
	STREAM,
	CAUSE,
	CAUSE_START,
	GRID_X,
	GRID_Y,
	GRID_Z,
	BLOCK_X,
	BLOCK_Y,
	BLOCK_Z,
	REGISTERS,
	STATIC_SHARED,
	DYNAMIC_SHARED,
	GRAPH,
	GRAPH_NODE,
	COPY_KIND,
	DEPTH,
	VALUE,
	UNIT,
	FLAGS,
	KERNEL,
	DETAILS,
	STACK,
	PROCESS_ID,
	HOST_PID,
	HOST,
	BOOT,
	RANK,
	GPU,
	GPU_UUID,
	THREAD,
	SCOPE,
	SCOPE_NAME,
	GEMM_M,
	GEMM_N,
	GEMM_K,
	GEMM_BATCH,
	GEMM_A_TYPE,
	GEMM_B_TYPE,
	GEMM_D_TYPE,
	GEMM_FLOP,
	GEMM_TFLOPS,
	GEMM_PEAK_SHARE,
	INPUTS,
	COLUMNS
};
static const char *const titles[COLUMNS] = {
	"type",
	"start_ns",
	"duration_ns",
	"pid",
	"tid",
	"process",
	"name",
	"number",
	"result",
	"size_bytes",
	"device",
	"context",
	"stream",
	"cause",
	"cause_start_ns",
	"grid_x",
	"grid_y",
	"grid_z",
	"block_x",
	"block_y",
	"block_z",
	"registers_per_thread",
	"static_shared_bytes",
	"dynamic_shared_bytes",
	"graph",
	"graph_node",
	"copy_kind",
	"depth",
	"value",
	"unit",
	"flags",
	"kernel",
	"details",
	"stack",
	"process_id",
	"host_pid",
	"host",
	"boot",
	"rank",
	"gpu",
	"gpu_uuid",
	"thread",
	"scope",
	"scope_name",
	"m",
	"n",
	"k",
	"batch",
	"a_type",
	"b_type",
	"d_type",
	"flop",
	"tflops",
	"peak_share",
	"inputs",
};

struct csv {
	struct row w;
	struct text cell;
	enum column at; /* the next one to be written */
};

/* ---- cells ---- */

/* Up to the column, which is in order. */
static void to(struct csv *c, enum column col)
{
	row_room(&c->w, 128);
	for (; c->at < col; c->at++)
		*c->w.p++ = ',';
}

static void put_num(struct csv *c, enum column col, uint64_t v)
{
	to(c, col);
	c->w.p = put_u64(c->w.p, v);
}

static void put_known(struct csv *c, enum column col, uint32_t v)
{
	if (v != CT_UNKNOWN)
		put_num(c, col, v);
}

static void put_quoted(struct csv *c, enum column col, const char *s, size_t n)
{
	/* A spreadsheet would take it as a formula. Numbers do not come here. */
	bool formula = n && memchr("=+-@\t\r", *s, 6);

	to(c, col);
	if (!memchr(s, ',', n) && !memchr(s, '"', n) && !memchr(s, '\n', n) &&
	    !memchr(s, '\r', n)) {
		row_mem(&c->w, "'", formula);
		row_mem(&c->w, s, n);
		return;
	}
	row_room(&c->w, 8);
	*c->w.p++ = '"';
	row_mem(&c->w, "'", formula);
	while (n) {
		const char *quote = memchr(s, '"', n);
		size_t part = quote ? (size_t)(quote - s) + 1 : n;

		row_mem(&c->w, s, part);
		row_room(&c->w, 8);
		if (quote)
			*c->w.p++ = '"';
		s += part;
		n -= part;
	}
	*c->w.p++ = '"';
}

static void put_word(struct csv *c, enum column col, const char *s)
{
	if (s)
		put_quoted(c, col, s, strlen(s));
}

/* What was written into the cell's text. */
static void put_cell(struct csv *c, enum column col)
{
	if (c->cell.len && !c->cell.bad)
		put_quoted(c, col, c->cell.s, c->cell.len);
	c->cell.len = 0;
}

/* ---- kinds ---- */

static void put_result(struct csv *c, const struct ct_call *call)
{
	enum api_ret ret = (enum api_ret)api_funcs[call->func].ret;
	const char *name;

	if (call->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN) || ret != API_RET_STATUS)
		return;
	name = api_error_name(call->func, (int32_t)call->ret);
	if (name)
		put_word(c, RESULT, name);
	else
		put_num(c, RESULT, (uint32_t)call->ret);
}

/* The same of a call of a library for collectives. */
static void put_ret(struct csv *c, const struct ct_scope *s)
{
	const struct ct_collective *more = scope_collective(s);
	const char *name = more ? scope_error(s, more->ret) : NULL;

	if (!more || !(more->flags & CT_COLLECTIVE_RETURNED))
		return;
	if (name)
		put_word(c, RESULT, name);
	else
		put_num(c, RESULT, (uint32_t)more->ret);
}

static void put_kernel(struct csv *c, const struct ct_kernel *k)
{
	for (int i = 0; i < 3; i++)
		put_num(c, GRID_X + i, k->grid[i]);
	for (int i = 0; i < 3; i++)
		put_num(c, BLOCK_X + i, k->block[i]);
	put_num(c, REGISTERS, k->registers);
	put_num(c, STATIC_SHARED, k->static_shared);
	put_num(c, DYNAMIC_SHARED, k->dynamic_shared);
}

static void put_work(struct csv *c, const struct event *ev)
{
	const struct ct_work *work = (const struct ct_work *)ev->rec;

	if (ev->cause && ev->cause->func < api_nfuncs) {
		put_word(c, CAUSE, api_funcs[ev->cause->func].name);
		put_num(c, CAUSE_START, ev->cause->start_ns);
	}
	if (ev->rec->kind == CT_KERNEL)
		put_kernel(c, (const struct ct_kernel *)ev->rec);
	if (work->graph)
		put_num(c, GRAPH, work->graph);
	if (work->graph_node)
		put_num(c, GRAPH_NODE, work->graph_node);
	if (ev->rec->kind == CT_COPY)
		put_word(c, COPY_KIND, device_copy_kind(((const struct ct_copy *)ev->rec)->kind));
}

/* Writes what a product of matrices is, and how fast; and an operator's arguments. */
static void put_product(struct csv *c, const struct event *ev)
{
	struct product p;
	char inputs[INPUTS_MAX];

	if (scope_inputs(ev->rec, inputs)) {
		text_plain(&c->cell, inputs, INPUTS_MAX);
		put_cell(c, INPUTS);
	}
	if (!product_of(ev, &p))
		return;
	if (p.gemm->flags & CT_GEMM_SHAPE) {
		put_num(c, GEMM_M, p.gemm->m);
		put_num(c, GEMM_N, p.gemm->n);
		put_num(c, GEMM_K, p.gemm->k);
	}
	if (p.gemm->batch)
		put_num(c, GEMM_BATCH, p.gemm->batch);
	put_word(c, GEMM_A_TYPE, gemm_type(p.gemm->a_type));
	put_word(c, GEMM_B_TYPE, gemm_type(p.gemm->b_type));
	put_word(c, GEMM_D_TYPE, gemm_type(p.gemm->d_type));
	if (p.flop)
		put_num(c, GEMM_FLOP, p.flop);
	if (p.rate >= 0) {
		to(c, GEMM_TFLOPS);
		c->w.p = put_double(c->w.p, p.rate / 1e12, false);
	}
	if (p.share >= 0) {
		to(c, GEMM_PEAK_SHARE);
		c->w.p = put_double(c->w.p, p.share, false);
	}
}

/* Writes what distinguishes the process and the GPU from others with the same numbers; ends the
 * row. */
static void put_identity(struct csv *c, const struct sink_opts *o, const struct event *ev)
{
	const struct process_info *i = ev->rec->pid ? ev->proc->info : NULL;
	const char *host = i && *i->host ? i->host : o->host,
		   *boot = i && *i->boot ? i->boot : o->boot;

	if (ev->rec->pid) {
		put_num(c, PROCESS_ID, process_unique(ev->proc));
		put_num(c, HOST_PID, process_host_pid(ev->proc->pid));
		text_plain(&c->cell, host ? host : "", 256);
		put_cell(c, HOST);
		text_plain(&c->cell, boot ? boot : "", 64);
		put_cell(c, BOOT);
		put_known(c, RANK, i ? i->rank : CT_UNKNOWN);
	}
	if (ev->gpu) {
		put_num(c, GPU, ev->gpu->number);
		put_word(c, GPU_UUID, *ev->gpu->text ? ev->gpu->text : NULL);
	}
	if (ev->thread) {
		text_plain(&c->cell, ev->thread, CT_COMM_LEN);
		put_cell(c, THREAD);
	}
	if (ev->scope_id == CT_SCOPE_UNKNOWN)
		put_word(c, SCOPE, "?");
	else if (ev->scope_id)
		put_num(c, SCOPE, ev->scope_id);
	if (ev->scope) {
		text_plain(&c->cell, ev->scope->name, 1024);
		put_cell(c, SCOPE_NAME);
	}
	put_product(c, ev);
	to(c, COLUMNS - 1);
	*c->w.p++ = '\n';
}

static void put_tail(struct csv *c, const struct sink_opts *o, const struct event *ev)
{
	struct field f[EVENT_MAX_FIELDS];
	int n = ev->rec->kind == CT_COUNTER ? 0 : event_fields(ev, f, EVENT_MAX_FIELDS);

	about_flags(&c->cell, ev->rec);
	put_cell(c, FLAGS);
	if (ev->kernel) {
		text_plain(&c->cell, o->mangled ? ev->kernel->mangled : ev->kernel->full, 65536);
		put_cell(c, KERNEL);
	}
	/* an error has a column of its own */
	if (ev->rec->kind == CT_CALL && n && f[n - 1].name && !strcmp(f[n - 1].name, "returned") &&
	    f[n - 1].type == FIELD_ERROR)
		n--;
	about_fields(&c->cell, f, n);
	put_cell(c, DETAILS);
	if (ev->stack) {
		for (uint32_t i = 0; i < ev->stack->nframes; i++) {
			const struct stack_frame *fr = ev->stack->frames[i];

			text_str(&c->cell, i ? "\n" : "");
			if (fr->function)
				text_plain(&c->cell,
					   o->mangled && fr->mangled ? fr->mangled : fr->function,
					   4096);
			else
				text_hex(&c->cell, fr->address);
			if (fr->file) {
				text_str(&c->cell, " ");
				text_plain(&c->cell, fr->file, 4096);
				text_str(&c->cell, ":");
				text_u64(&c->cell, fr->line);
			}
		}
		put_cell(c, STACK);
	}
	put_identity(c, o, ev);
}

static void put_head(struct csv *c, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	bool work = kind_is(h->kind, KIND_WORK);

	c->at = TYPE;
	put_word(c, TYPE,
		 h->kind == CT_SCOPE_END ? scope_word((const struct ct_scope *)h)
					 : about_kind(h->kind));
	put_num(c, START, h->start_ns);
	if (!(about_is_call(h) && h->flags & (CT_F_NO_RETURN | CT_F_BEFORE)) &&
	    !(work && h->flags & CT_F_NO_TIME))
		put_num(c, DURATION, about_duration_ns(h));
	if (h->pid) {
		put_num(c, PID, ev->proc->shown_pid);
		if (h->tid)
			put_num(c, TID, about_tid(ev));
		text_plain(&c->cell, ev->proc->comm, CT_COMM_LEN);
		put_cell(c, PROCESS);
	}
}

static void put_sample(struct csv *c, const struct sink_opts *o, const struct event *ev,
		       const struct ct_value *v)
{
	const struct ct_counter *s = (const struct ct_counter *)ev->rec;
	const struct metric *m = metric_table_find(ev->metrics, v->metric);
	double value;

	put_head(c, ev);
	if (m)
		put_word(c, NAME, m->name);
	else
		put_num(c, NAME, v->metric);
	put_known(c, DEVICE, s->device);
	memcpy(&value, &v->bits, sizeof(value));
	if (isfinite(value)) {
		to(c, VALUE);
		c->w.p = put_double(c->w.p, value, false);
	}
	if (m)
		put_word(c, UNIT, m->unit);
	if (v->flags & CT_VALUE_SUSPECT)
		put_word(c, FLAGS, "suspect");
	put_identity(c, o, ev);
}

/* Writes the calls of a period that have no rows of their own. A negative number corrects an
 * earlier estimate that was too high. */
static void put_muted(struct csv *c, const struct ct_muted *m)
{
	struct muted_sum sum = { 0 };

	muted_add(&sum, m);
	to(c, VALUE);
	c->w.p = put_i64(c->w.p, (int64_t)sum.counted + sum.unseen.calls);
	put_word(c, UNIT, "calls");
}

static void put_row(struct csv *c, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	int64_t bytes = about_bytes(h);

	put_head(c, ev);
	about_name(&c->cell, o, ev);
	put_cell(c, NAME);
	if (ev->number)
		put_num(c, NUMBER, ev->number);
	if (h->kind == CT_CALL)
		put_result(c, (const struct ct_call *)h);
	else if (h->kind == CT_SCOPE_END)
		put_ret(c, (const struct ct_scope *)h);
	if (bytes >= 0)
		put_num(c, BYTES, (uint64_t)bytes);
	if (about_is_call(h) || kind_is(h->kind, KIND_WORK)) {
		put_known(c, DEVICE, ev->device);
		put_known(c, CONTEXT, ev->context);
		put_known(c, STREAM, ev->stream);
	} else if (h->kind == CT_EVENT) {
		put_known(c, DEVICE, ((const struct ct_event *)h)->device);
	}
	if (kind_is(h->kind, KIND_WORK))
		put_work(c, ev);
	if (h->kind == CT_CALL)
		put_num(c, DEPTH, ((const struct ct_call *)h)->depth);
	if (h->kind == CT_LOST)
		put_num(c, VALUE, ((const struct ct_lost *)h)->count);
	else if (h->kind == CT_EVENT)
		put_num(c, VALUE, ((const struct ct_event *)h)->code);
	else if (h->kind == CT_MUTED)
		put_muted(c, (const struct ct_muted *)h);
	put_tail(c, o, ev);
}

/* ---- the sink ---- */

static int csv_event(struct sink *s, const struct event *ev)
{
	const struct ct_counter *samples = (const struct ct_counter *)ev->rec;
	struct csv *c = s->priv;

	if (!about_kind(ev->rec->kind) ||
	    (about_is_call(ev->rec) && ev->rec->flags & CT_F_PENDING) ||
	    (ev->rec->kind == CT_FOREIGN && !about_is_call(ev->rec)))
		return 0;
	row_begin(&c->w, s->opts->out);
	if (ev->rec->kind == CT_COUNTER)
		for (uint32_t i = 0; i < samples->n; i++)
			put_sample(c, s->opts, ev, &samples->values[i]);
	else
		put_row(c, s->opts, ev);
	row_end(&c->w);
	if (s->opts->out->error)
		return s->opts->out->error;
	return about_is_call(ev->rec) || kind_is(ev->rec->kind, KIND_DEVICE);
}

static int csv_open(struct sink *s, const struct sink_opts *opts)
{
	struct csv *c = calloc(1, sizeof(*c));

	s->opts = opts;
	s->priv = c;
	if (!c)
		return -ENOMEM;
	for (int i = 0; i < COLUMNS; i++)
		out_fmt(opts->out, "%s%c", titles[i], i + 1 < COLUMNS ? ',' : '\n');
	return 0;
}

static int csv_close(struct sink *s, const struct sink_end *end)
{
	struct csv *c = s->priv;

	(void)end;
	if (!c)
		return 0;
	text_free(&c->cell);
	free(c);
	s->priv = NULL;
	return s->opts->out->error;
}

const struct sink_ops sink_csv = {
	.name = "csv",
	.help = "a row for each record, calls and device work in one table",
	.open = csv_open,
	.event = csv_event,
	.close = csv_close,
};
