/* SPDX-License-Identifier: BSD-2-Clause */
/* column_cells.c - see column_cells.h: what all events have, and what their kinds add. */
#include <math.h>
#include <string.h>

#include "../event/device.h"
#include "../event/gpus.h"
#include "../event/muted.h"
#include "../event/scopes/lineage.h"
#include "../flow/about.h"
#include "column_cells.h"

#define KERNEL_MAX_BYTES 65536
#define FRAME_MAX_BYTES 4096
#define SCOPE_MAX_BYTES 1024
#define PATH_MAX_BYTES 4096

#define BIT(table) (1u << (table))
#define CALLS BIT(COLUMNS_CALLS)
#define KERNELS BIT(COLUMNS_KERNELS)
#define COPIES BIT(COLUMNS_COPIES)
#define SETS BIT(COLUMNS_SETS)
#define COLLECTIVES BIT(COLUMNS_COLLECTIVES)
#define OPERATORS BIT(COLUMNS_OPERATORS)
#define PROCESSES BIT(COLUMNS_PROCESSES)
#define DEVICES BIT(COLUMNS_DEVICES)
#define STACKS BIT(COLUMNS_STACKS)
#define STATES BIT(COLUMNS_STATES)
#define OTHERS BIT(COLUMNS_OTHERS)
#define WORK (KERNELS | COPIES | SETS)
#define SCOPES (BIT(COLUMNS_RANGES) | COLLECTIVES | OPERATORS)
#define EVENTS (CALLS | WORK | SCOPES | PROCESSES | STATES | OTHERS)

const struct column_about column_about[COLUMNS] = {
#define C(id, title, type, tables) { title, COLUMN_##type, tables },
#include "columns.def"
#undef C
};
const char *const column_tables[COLUMN_TABLES_N] = {
#define T(id, title) title,
	COLUMN_TABLES(T)
#undef T
};

/* ---- cells ---- */

struct cell *cells_put(struct cells *c, int col)
{
	c->there[col / 64] |= 1ull << col % 64;
	return &c->cell[col];
}

void cells_uint(struct cells *c, int col, uint64_t v)
{
	*cells_put(c, col) = (struct cell){ .kind = CELL_UINT, .u = v };
}

static void put_known(struct cells *c, int col, uint32_t v)
{
	if (v != CT_UNKNOWN)
		cells_uint(c, col, v);
}

void cells_word(struct cells *c, int col, const char *s)
{
	if (s && *s)
		*cells_put(c, col) = (struct cell){ .kind = CELL_WORD, .s = s };
}

void cells_raw(struct cells *c, int col, const char *s, uint32_t max)
{
	if (s && *s)
		*cells_put(c, col) = (struct cell){ .kind = CELL_RAW, .max = max, .s = s };
}

void cells_made(struct cells *c, int col, size_t from)
{
	if (c->made.bad)
		c->no_room = true;
	else if (c->made.len > from)
		*cells_put(c, col) = (struct cell){ .kind = CELL_MADE,
						    .max = (uint32_t)(c->made.len - from),
						    .u = from };
}

static void put_double(struct cells *c, int col, double v)
{
	*cells_put(c, col) = (struct cell){ .kind = CELL_DOUBLE, .f = v };
}

static void put_signed(struct cells *c, int col, int64_t v)
{
	*cells_put(c, col) = (struct cell){ .kind = CELL_INT, .i = v };
}

static void cells_begin(struct cells *c)
{
	memset(c->there, 0, sizeof(c->there));
	c->made.len = 0;
	c->made.bad = c->no_room = false;
}

/* ---- what all have ---- */

static void put_process(struct cells *c, const struct event *ev)
{
	const struct process_info *i = ev->proc->info;

	cells_uint(c, COLUMN_PID, ev->proc->shown_pid);
	if (ev->rec->tid)
		cells_uint(c, COLUMN_TID, about_tid(ev));
	cells_raw(c, COLUMN_PROCESS, ev->proc->comm, CT_COMM_LEN);
	cells_uint(c, COLUMN_PROCESS_ID, process_unique(ev->proc));
	cells_uint(c, COLUMN_HOST_PID, process_host_pid(ev->proc->pid));
	cells_raw(c, COLUMN_HOST, i && *i->host ? i->host : c->o->host, 256);
	cells_raw(c, COLUMN_BOOT, i && *i->boot ? i->boot : c->o->boot, 64);
	put_known(c, COLUMN_RANK, i ? i->rank : CT_UNKNOWN);
}

/* The arguments of the command line, with spaces between them. */
static void put_command_line(struct cells *c, const struct process_info *i)
{
	size_t from = c->made.len,
	       n = i->cmdline_len < PATH_MAX_BYTES ? i->cmdline_len : PATH_MAX_BYTES;

	for (size_t at = 0, len; at < n; at += len + 1) {
		char one[PATH_MAX_BYTES + 1];

		len = strnlen(i->cmdline + at, n - at);
		memcpy(one, i->cmdline + at, len);
		one[len] = '\0';
		text_str(&c->made, at ? " " : "");
		text_plain(&c->made, one, PATH_MAX_BYTES);
	}
	cells_made(c, COLUMN_COMMAND_LINE, from);
}

/* Fills in what a process is, in the rows of the process itself. */
static void put_info(struct cells *c, const struct event *ev)
{
	const struct process_info *i = ev->proc->info;

	if (!i)
		return;
	cells_raw(c, COLUMN_EXECUTABLE, i->exe, PATH_MAX_BYTES);
	cells_raw(c, COLUMN_CONTAINER, i->container, PATH_MAX_BYTES);
	cells_raw(c, COLUMN_POD, i->pod, PATH_MAX_BYTES);
	put_known(c, COLUMN_WORLD_SIZE, i->world_size);
	put_known(c, COLUMN_LOCAL_RANK, i->local_rank);
	if (i->cmdline)
		put_command_line(c, i);
}

/* Fills in the scope around the event. If it is unknown, csv has "?" as its number, and the other outputs have "?"
 * as its name. */
static void column_cells_put_scope(struct cells *c, const struct event *ev)
{
	if (ev->scope_id == CT_SCOPE_UNKNOWN)
		cells_word(c, c->fields ? COLUMN_SCOPE_NAME : COLUMN_SCOPE, "?");
	else if (ev->scope_id)
		cells_uint(c, COLUMN_SCOPE, ev->scope_id);
	if (ev->scope)
		cells_raw(c, COLUMN_SCOPE_NAME, ev->scope->name, SCOPE_MAX_BYTES);
}

static void column_cells_put_head(struct cells *c, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	cells_begin(c);
	cells_word(c, COLUMN_TYPE,
		   h->kind == CT_SCOPE_END ? scope_word((const struct ct_scope *)h)
					   : about_kind(h->kind));
	cells_uint(c, COLUMN_START, h->start_ns);
	if (!(about_is_call(h) && h->flags & (CT_F_NO_RETURN | CT_F_BEFORE)) &&
	    !(kind_is(h->kind, KIND_WORK) && h->flags & CT_F_NO_TIME))
		cells_uint(c, COLUMN_DURATION, about_duration_ns(h));
	if (h->pid)
		put_process(c, ev);
	if (ev->gpu) {
		cells_uint(c, COLUMN_GPU, ev->gpu->number);
		cells_word(c, COLUMN_GPU_UUID, ev->gpu->text);
	}
	cells_raw(c, COLUMN_THREAD, ev->thread, CT_COMM_LEN);
	column_cells_put_scope(c, ev);
	if (c->fields)
		put_signed(c, COLUMN_UNIX, (int64_t)(h->start_ns + c->o->realtime_offset_ns));
}

/* ---- kinds ---- */

static void put_status(struct cells *c, const char *name, int32_t ret)
{
	size_t from = c->made.len;

	if (name) {
		cells_word(c, COLUMN_RESULT, name);
		return;
	}
	text_u64(&c->made, (uint32_t)ret);
	cells_made(c, COLUMN_RESULT, from);
}

static void column_cells_put_call(struct cells *c, const struct ct_call *call)
{
	cells_uint(c, COLUMN_DEPTH, call->depth);
	if (!(call->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN)) &&
	    api_funcs[call->func].ret == API_RET_STATUS)
		put_status(c, api_error_name(call->func, (int32_t)call->ret), (int32_t)call->ret);
}

/* The same of a call of a library for collectives. */
static void put_collective(struct cells *c, const struct ct_scope *s)
{
	const struct ct_collective *more = scope_collective(s);

	if (more && more->flags & CT_COLLECTIVE_RETURNED)
		put_status(c, scope_error(s, more->ret), more->ret);
}

static void column_cells_put_kernel(struct cells *c, const struct ct_kernel *k)
{
	for (int i = 0; i < 3; i++) {
		cells_uint(c, COLUMN_GRID_X + i, k->grid[i]);
		cells_uint(c, COLUMN_BLOCK_X + i, k->block[i]);
	}
	cells_uint(c, COLUMN_REGISTERS, k->registers);
	cells_uint(c, COLUMN_STATIC_SHARED, k->static_shared);
	cells_uint(c, COLUMN_DYNAMIC_SHARED, k->dynamic_shared);
}

static void put_capture(struct cells *c, const struct event *ev)
{
	cells_raw(c, COLUMN_CAPTURED_IN, ev->captured_in, SCOPE_MAX_BYTES);
	cells_raw(c, COLUMN_CAPTURED_AT, ev->captured_at, FRAME_MAX_BYTES);
	if (ev->capture && ev->capture->number)
		cells_uint(c, COLUMN_CAPTURED_BY, ev->capture->number);
}

static void put_work(struct cells *c, const struct event *ev)
{
	const struct ct_work *work = (const struct ct_work *)ev->rec;

	if (ev->cause && ev->cause->func < api_nfuncs) {
		cells_word(c, COLUMN_CAUSE, api_funcs[ev->cause->func].name);
		cells_uint(c, COLUMN_CAUSE_START, ev->cause->start_ns);
	}
	if (ev->rec->kind == CT_KERNEL)
		column_cells_put_kernel(c, (const struct ct_kernel *)ev->rec);
	if (work->graph)
		cells_uint(c, COLUMN_GRAPH, work->graph);
	if (work->graph_node)
		cells_uint(c, COLUMN_GRAPH_NODE, work->graph_node);
	if (ev->rec->kind == CT_COPY)
		cells_word(c, COLUMN_COPY_KIND,
			   device_copy_kind(((const struct ct_copy *)ev->rec)->kind));
	put_capture(c, ev);
}

static void column_cells_put_name(struct cells *c, const struct event *ev)
{
	const struct kernel_name *k = ev->kernel;
	size_t from = c->made.len;

	if (ev->rec->kind == CT_CALL) {
		cells_word(c, COLUMN_NAME, api_funcs[((const struct ct_call *)ev->rec)->func].name);
	} else if (ev->rec->kind == CT_KERNEL && k && !k->cut) {
		cells_raw(c, COLUMN_NAME,
			  c->o->look.mangled	  ? k->mangled
			  : c->o->look.full_names ? k->full
						  : k->brief,
			  KERNEL_MAX_BYTES);
	} else if (ev->rec->kind == CT_HOST_SEGMENT) {
		const struct ct_host_segment *h = (const struct ct_host_segment *)ev->rec;

		cells_word(c, COLUMN_TYPE, "host"); /* its kind has no word: only parquet has it */
		cells_word(c, COLUMN_NAME,
			   h->reason ? host_reason(h->reason) : host_state(h->state));
	} else {
		about_name(&c->made, c->o, ev);
		cells_made(c, COLUMN_NAME, from);
	}
}

/* Fills in the calls of a period that have no rows of their own. A negative number corrects an earlier estimate
 * that was too high. */
static void put_muted(struct cells *c, const struct ct_muted *m)
{
	struct muted_sum sum = { 0 };

	muted_add(&sum, m);
	put_signed(c, COLUMN_VALUE, (int64_t)sum.counted + sum.unseen.calls);
	cells_word(c, COLUMN_UNIT, "calls");
}

static void put_kind(struct cells *c, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	bool work = kind_is(h->kind, KIND_WORK);

	if (about_is_call(h) || work) {
		put_known(c, COLUMN_DEVICE, ev->device);
		put_known(c, COLUMN_CONTEXT, ev->context);
		put_known(c, COLUMN_STREAM, ev->stream);
	}
	if (work)
		put_work(c, ev);
	switch (h->kind) {
	case CT_CALL: column_cells_put_call(c, (const struct ct_call *)h); break;
	case CT_SCOPE_END: put_collective(c, (const struct ct_scope *)h); break;
	case CT_LOST:
		cells_uint(c, COLUMN_VALUE, ((const struct ct_lost *)h)->count);
		cells_word(c, COLUMN_UNIT, c->fields ? "records" : NULL);
		break;
	case CT_HOLE:
		put_known(c, COLUMN_DEVICE, ((const struct ct_hole *)h)->device);
		cells_uint(c, COLUMN_VALUE, ((const struct ct_hole *)h)->count);
		break;
	case CT_EVENT:
		put_known(c, COLUMN_DEVICE, ((const struct ct_event *)h)->device);
		cells_uint(c, COLUMN_VALUE, ((const struct ct_event *)h)->code);
		break;
	case CT_MANAGED:
		if (device_managed_is_size(((const struct ct_managed *)h)->kind))
			cells_uint(c, COLUMN_BYTES, ((const struct ct_managed *)h)->value);
		break;
	case CT_MUTED: put_muted(c, (const struct ct_muted *)h); break;
	}
}

/* Is it the result, which has a column of its own? */
static bool is_result(const struct event *ev, const struct field *f)
{
	const char *title = f->name ? f->name : "";

	return ev->rec->kind == CT_CALL && (f->type == FIELD_ERROR || f->type == FIELD_STR) &&
	       !strcmp(title, "returned");
}

/* The text that a call returned. */
static void column_cells_put_text(struct cells *c, const struct field *f)
{
	char copy[CT_READ_MAX + 1];
	size_t from = c->made.len, n = f->str_len < CT_READ_MAX ? f->str_len : CT_READ_MAX;

	memcpy(copy, f->str, n);
	copy[n] = '\0'; /* text_plain() needs a NUL at the end */
	text_plain(&c->made, copy, n);
	cells_made(c, COLUMN_RESULT, from);
}

static void put_fields(struct cells *c, const struct event *ev)
{
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);
	size_t from;

	if (n && is_result(ev, &f[n - 1]) && f[--n].type == FIELD_STR)
		column_cells_put_text(c, &f[n]);
	columns_fields(c, ev, f, n);
	if (c->fields)
		return;
	from = c->made.len;
	about_fields(&c->made, f, n);
	cells_made(c, COLUMN_DETAILS, from);
}

/* What a product of matrices is, and how fast; and an operator's arguments. */
static void put_product(struct cells *c, const struct event *ev)
{
	char inputs[INPUTS_MAX];
	size_t from = c->made.len;
	struct product p;

	if (scope_inputs(ev->rec, inputs)) {
		text_plain(&c->made, inputs, INPUTS_MAX);
		cells_made(c, COLUMN_INPUTS, from);
	}
	if (!product_of(ev, &p))
		return;
	if (p.gemm->flags & CT_GEMM_SHAPE) {
		cells_uint(c, COLUMN_GEMM_M, p.gemm->m);
		cells_uint(c, COLUMN_GEMM_N, p.gemm->n);
		cells_uint(c, COLUMN_GEMM_K, p.gemm->k);
	}
	if (p.gemm->batch)
		cells_uint(c, COLUMN_GEMM_BATCH, p.gemm->batch);
	cells_word(c, COLUMN_GEMM_A_TYPE, gemm_type(p.gemm->a_type));
	cells_word(c, COLUMN_GEMM_B_TYPE, gemm_type(p.gemm->b_type));
	cells_word(c, COLUMN_GEMM_D_TYPE, gemm_type(p.gemm->d_type));
	if (p.flop)
		cells_uint(c, COLUMN_GEMM_FLOP, p.flop);
	if (p.rate >= 0)
		put_double(c, COLUMN_GEMM_TFLOPS, p.rate / 1e12);
	if (p.share >= 0)
		put_double(c, COLUMN_GEMM_PEAK_SHARE, p.share);
}

/* ---- rows ---- */

static void put_sample(struct cells *c, const struct event *ev, const struct ct_value *v)
{
	const struct metric *m = metric_table_find(ev->metrics, v->metric);
	size_t from = c->made.len;
	double value;

	if (m) {
		cells_word(c, COLUMN_NAME, m->name);
	} else {
		text_u64(&c->made, v->metric);
		cells_made(c, COLUMN_NAME, from);
	}
	put_known(c, COLUMN_DEVICE, ((const struct ct_counter *)ev->rec)->device);
	memcpy(&value, &v->bits, sizeof(value));
	if (isfinite(value))
		put_double(c, COLUMN_VALUE, value);
	cells_word(c, COLUMN_UNIT, m ? m->unit : NULL);
	if (v->flags & CT_VALUE_SUSPECT)
		cells_word(c, COLUMN_FLAGS, "suspect");
}

uint32_t columns_rows(const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	if (!about_kind(h->kind) || (h->kind == CT_HOLE && !(h->flags & CT_F_FINAL)) ||
	    (about_is_call(h) && h->flags & CT_F_PENDING) ||
	    (h->kind == CT_FOREIGN && !about_is_call(h)))
		return 0;
	return h->kind == CT_COUNTER ? ((const struct ct_counter *)h)->n : 1;
}

static void column_cells_put_flags(struct cells *c, const struct ct_hdr *h)
{
	struct text flags = { 0 };

	about_flags(&flags, h);
	if (flags.len || flags.bad) {
		size_t from = c->made.len;

		text_mem(&c->made, flags.s, flags.len);
		c->made.bad |= flags.bad;
		cells_made(c, COLUMN_FLAGS, from);
	}
	text_free(&flags);
}

void columns_fill(struct cells *c, const struct event *ev, uint32_t n)
{
	const struct ct_hdr *h = ev->rec;
	int64_t bytes;

	column_cells_put_head(c, ev);
	if (h->kind == CT_COUNTER) {
		put_sample(c, ev, &((const struct ct_counter *)h)->values[n]);
		return;
	}
	column_cells_put_name(c, ev);
	if (ev->number)
		cells_uint(c, COLUMN_NUMBER, ev->number);
	bytes = about_bytes(h);
	if (bytes >= 0)
		cells_uint(c, COLUMN_BYTES, (uint64_t)bytes);
	put_kind(c, ev);
	column_cells_put_flags(c, h);
	if (ev->kernel)
		cells_raw(c, COLUMN_KERNEL,
			  c->o->look.mangled ? ev->kernel->mangled : ev->kernel->full,
			  KERNEL_MAX_BYTES);
	if (ev->stack) {
		*cells_put(c, COLUMN_STACK) =
			(struct cell){ .kind = CELL_STACK, .stack = ev->stack };
		cells_uint(c, COLUMN_STACK_ID, ev->stack->id);
	}
	put_product(c, ev);
	put_fields(c, ev);
	if (c->fields && h->pid && columns_table(ev) == COLUMNS_PROCESSES)
		put_info(c, ev);
}

void columns_process(struct cells *c, const struct event *ev)
{
	cells_begin(c);
	cells_word(c, COLUMN_TYPE, "info");
	cells_uint(c, COLUMN_START, ev->rec->start_ns);
	put_signed(c, COLUMN_UNIX, (int64_t)(ev->rec->start_ns + c->o->realtime_offset_ns));
	put_process(c, ev);
	put_info(c, ev);
}

void columns_device(struct cells *c, const struct event *ev)
{
	cells_begin(c);
	if (ev->rec->pid)
		put_process(c, ev);
	if (ev->gpu) {
		cells_uint(c, COLUMN_GPU, ev->gpu->number);
		cells_word(c, COLUMN_GPU_UUID, ev->gpu->text);
	}
	put_fields(c, ev);
}

void columns_frame(struct cells *c, const struct stack *s, uint32_t frame)
{
	static const char *const languages[] = {
		[CT_FRAME_NATIVE] = "native", [CT_FRAME_INLINED] = "inlined", [CT_FRAME_PYTHON] = "python"
	};
	const struct stack_frame *f = s->frames[frame];

	cells_begin(c);
	cells_uint(c, COLUMN_STACK_ID, s->id);
	cells_uint(c, COLUMN_FRAME, frame);
	cells_raw(c, COLUMN_FUNCTION, c->o->look.mangled && f->mangled ? f->mangled : f->function,
		  FRAME_MAX_BYTES);
	cells_raw(c, COLUMN_FILE, f->file, FRAME_MAX_BYTES);
	if (f->line)
		cells_uint(c, COLUMN_LINE, f->line);
	cells_raw(c, COLUMN_OBJECT, f->object, FRAME_MAX_BYTES);
	if (f->address)
		cells_uint(c, COLUMN_ADDRESS, f->address);
	if (f->kind < ARRAY_LEN(languages))
		cells_word(c, COLUMN_LANGUAGE, languages[f->kind]);
}

enum column_table columns_table(const struct event *ev)
{
	const char *word;

	switch (ev->rec->kind) {
	case CT_CALL: return COLUMNS_CALLS;
	case CT_FOREIGN: return COLUMNS_CALLS;
	case CT_KERNEL: return COLUMNS_KERNELS;
	case CT_COPY: return COLUMNS_COPIES;
	case CT_SET: return COLUMNS_SETS;
	case CT_MARKER: return COLUMNS_RANGES;
	case CT_PROCESS:
	case CT_EXEC:
	case CT_FORK:
	case CT_EXIT: return COLUMNS_PROCESSES;
	case CT_DEVICE: return COLUMNS_DEVICES;
	case CT_HOST_SEGMENT: return COLUMNS_STATES;
	case CT_SCOPE_END:
		word = scope_word((const struct ct_scope *)ev->rec);
		return !strcmp(word, "range") || !strcmp(word, "mark") ? COLUMNS_RANGES
		       : !strcmp(word, "collective")		       ? COLUMNS_COLLECTIVES
		       : !strcmp(word, "operator")		       ? COLUMNS_OPERATORS
								       : COLUMNS_OTHERS;
	default: return COLUMNS_OTHERS;
	}
}

bool columns_stack_new(uint8_t *marks, const struct stack *s)
{
	uint8_t bit = (uint8_t)(1u << s->id % 8);
	bool is_new = s->id >= COLUMNS_STACKS_MAX || !(marks[s->id / 8] & bit);

	if (s->id < COLUMNS_STACKS_MAX)
		marks[s->id / 8] |= bit;
	return is_new;
}

void columns_stack(struct text *t, const struct sink_opts *o, const struct stack *s)
{
	for (uint32_t i = 0; i < s->nframes; i++) {
		const struct stack_frame *f = s->frames[i];

		text_str(t, i ? "\n" : "");
		if (f->function)
			text_plain(t, o->look.mangled && f->mangled ? f->mangled : f->function,
				   FRAME_MAX_BYTES);
		else
			text_hex(t, f->address);
		if (f->file) {
			text_str(t, " ");
			text_plain(t, f->file, FRAME_MAX_BYTES);
			text_str(t, ":");
			text_u64(t, f->line);
		}
	}
}
