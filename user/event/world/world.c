/* SPDX-License-Identifier: BSD-2-Clause */
/* world.c - see world.h. */
#include <errno.h>
#include <stdlib.h>

#include "world.h"
#include "../device.h"
#include "../gpus.h"
#include "../kernel_counters.h"
#include "../scopes/captures.h"
#include "../scopes/lineage.h"
#include "../scopes/moved.h"
#include "../scopes/peak.h"

struct world {
	struct process_table *procs;
	struct thread_table *threads;
	struct name_table *names;
	struct stack_table *stacks;
	struct metric_table *metrics;
	struct kernel_counters_table *counters;
	struct gpu_table *gpus;
	struct lineage *lineage;
	struct captures *captures;
	struct devices devices;
	bool with_stacks; /* of the event that is described */
	/* the place where a call was made that a graph captured, and of which stack it is; 0: none */
	char captured_at[512];
	uint32_t captured_stack;
};

struct world *world_open(void)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->procs = process_table_open();
	w->threads = thread_table_open();
	w->names = name_table_open();
	w->stacks = stack_table_open();
	w->metrics = metric_table_open();
	devices_open(&w->devices);
	w->counters = kernel_counters_open(&w->devices);
	w->gpus = gpu_table_open();
	w->lineage = lineage_open();
	w->captures = captures_open();
	if (w->procs && w->threads && w->names && w->stacks && w->metrics && w->counters &&
	    w->gpus && w->lineage && w->captures)
		return w;
	world_close(w);
	return NULL;
}

void world_close(struct world *w)
{
	if (!w)
		return;
	devices_close(&w->devices);
	captures_close(w->captures);
	lineage_close(w->lineage);
	gpu_table_close(w->gpus);
	kernel_counters_close(w->counters);
	metric_table_close(w->metrics);
	stack_table_close(w->stacks);
	name_table_close(w->names);
	thread_table_close(w->threads);
	process_table_close(w->procs);
	free(w);
}

struct process_table *world_processes(struct world *w)
{
	return w->procs;
}

int world_arrived(struct world *w, const struct ct_hdr *h)
{
	thread_table_record(w->threads, h);
	return process_table_record(w->procs, h);
}

/* ---- what a table learns ---- */

static int learn_name(struct world *w, const struct event *ev)
{
	return name_table_record(w->names, ev->rec);
}

static int learn_scope(struct world *w, const struct event *ev)
{
	return lineage_record(w->lineage, ev->rec);
}

/* The scopes around a captured call are needed for as long as its graph may be replayed. */
static int learn_capture(struct world *w, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	if (captures_event(w->captures, ev))
		lineage_release(w->lineage, h->pid);
	else if (h->kind == CT_NODE)
		lineage_keep(w->lineage, h->pid, ((const struct ct_work *)h)->scope);
	return 0;
}

static int learn_stack(struct world *w, const struct event *ev)
{
	return stack_table_record(w->stacks, ev->rec);
}

static int learn_metric(struct world *w, const struct event *ev)
{
	return metric_table_record(w->metrics, ev->rec);
}

static int learn_counters(struct world *w, const struct event *ev)
{
	return kernel_counters_record(w->counters, ev->rec);
}

static int learn_devices(struct world *w, const struct event *ev)
{
	return devices_record(&w->devices, ev->rec);
}

static int learn_gpu(struct world *w, const struct event *ev)
{
	gpu_table_record(w->gpus, ev->proc, ev->rec);
	return 0;
}

/* ---- what belongs to an event ---- */

/* The innermost scope of a kind around the launch of a kernel, or around its capture. NULL: none. */
static const struct scope_line *around_kernel(const struct event *ev, enum ct_scope_kind kind)
{
	const uint32_t kinds = 1u << kind;

	return lineage_of_kind(ev->lineage, ev->rec->pid, lineage_from(ev, kinds), kinds,
			       &(bool){ false });
}

/* The product that a kernel computes, or is a part of. */
static void add_product(struct world *w, struct event *ev)
{
	const struct ct_work *k = (const struct ct_work *)ev->rec;

	ev->product = around_kernel(ev, CT_SCOPE_GEMM);
	if (ev->product)
		ev->peak = peak_of(devices_find(&w->devices, k->h.pid, k->device),
				   peak_type(ev->product->gemm,
					     ev->kernel ? ev->kernel->mangled : NULL));
}

static void describe_call(struct world *w, struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;

	ev->kernel = name_table_find(w->names, c);
	if (w->with_stacks)
		ev->stack = stack_table_find(w->stacks, c);
}

static void describe_segment(struct world *w, struct event *ev)
{
	if (w->with_stacks)
		ev->stack = stack_table_get(w->stacks,
					    ((const struct ct_host_segment *)ev->rec)->stack);
}

static void describe_kernel(struct world *w, struct event *ev)
{
	const struct ct_kernel *k = (const struct ct_kernel *)ev->rec;

	ev->kernel = name_table_handle(w->names, ev->rec->pid, k->name);
	ev->counters = kernel_counters_of(w->counters, k);
	ev->bus_bytes = moved_on_bus(around_kernel(ev, CT_SCOPE_COLLECTIVE));
	add_product(w, ev);
}

static void describe_count(struct world *w, struct event *ev)
{
	const struct ct_call_count *c = (const struct ct_call_count *)ev->rec;

	if (c->how == CT_BY_KERNEL)
		ev->kernel = name_table_handle(w->names, ev->rec->pid, c->by);
}

static void describe_name(struct world *w, struct event *ev)
{
	ev->kernel = name_table_handle(w->names, ev->rec->pid,
				       ((const struct ct_name *)ev->rec)->handle);
}

static void describe_counter(struct world *w, struct event *ev)
{
	ev->metrics = w->metrics;
}

/* ---- the kinds ---- */

#define LEARNS_MAX 4

/*
 * Of each kind which tables learn from it, in this order, and what belongs to an event of it beside
 * what all work and all calls have. Of a kind without a row nothing is learned.
 */
static const struct {
	int (*learn[LEARNS_MAX])(struct world *, const struct event *);
	void (*describe)(struct world *, struct event *);
} kinds[CT_KIND_END] = {
	[CT_CALL] = { .describe = describe_call },
	[CT_ENTER] = { .describe = describe_call },
	[CT_KERNEL] = { .describe = describe_kernel },
	[CT_CALL_COUNT] = { .describe = describe_count },
	[CT_NAME] = { { learn_name }, describe_name },
	[CT_COUNTER] = { { learn_counters }, describe_counter },
	[CT_METRIC] = { { learn_metric, learn_counters }, NULL },
	[CT_FRAME] = { { learn_stack }, NULL },
	[CT_STACK] = { { learn_stack }, NULL },
	[CT_SCOPE_BEGIN] = { { learn_scope }, NULL },
	[CT_SCOPE_END] = { { learn_scope }, NULL },
	[CT_NODE] = { { learn_capture }, NULL },
	[CT_DEVICE] = { { learn_devices, learn_counters, learn_gpu }, NULL },
	[CT_PROCESS] = { { learn_name, learn_capture, learn_devices }, NULL },
	[CT_EXEC] = { { learn_name, learn_capture, learn_devices }, NULL },
	[CT_EXIT] = { { learn_name, learn_capture, learn_devices, learn_gpu }, NULL },
	[CT_HOST_SEGMENT] = { .describe = describe_segment },
};

/* The GPU that the record refers to. */
static const struct gpu *gpu_of(struct world *w, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	uint32_t device;

	switch (h->kind) {
	case CT_COUNTER: return gpu_table_machine(w->gpus, ((const struct ct_counter *)h)->device);
	case CT_EVENT: device = ((const struct ct_event *)h)->device; break;
	case CT_DEVICE: device = ((const struct ct_device *)h)->id; break;
	default:
		return kind_is(h->kind, KIND_WORK) ? gpu_table_worked(w->gpus, ev->proc, ev->device)
						   : gpu_table_find(w->gpus, ev->proc, ev->device);
	}
	return h->pid ? gpu_table_find(w->gpus, ev->proc, device)
		      : gpu_table_machine(w->gpus, device);
}

int world_record(struct world *w, struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	int err = 0;

	ev->proc = h->kind == CT_CALL_COUNT
			   ? process_table_find_counted(w->procs, (const struct ct_call_count *)h)
			   : process_table_find(w->procs, h->pid);
	if (!ev->proc)
		return -ENOMEM;
	ev->thread = thread_table_find(w->threads, h->pid, h->tid);
	for (int i = 0; !err && h->kind < CT_KIND_END && i < LEARNS_MAX && kinds[h->kind].learn[i];
	     i++)
		err = kinds[h->kind].learn[i](w, ev);
	ev->gpus = w->gpus;
	ev->gpu = gpu_of(w, ev);
	return err;
}

/* The call that was captured, of what a graph's replay did. */
static void add_capture(struct world *w, struct event *ev)
{
	const struct ct_work *k = (const struct ct_work *)ev->rec;
	const struct scope_line *line;

	ev->capture = captures_find(w->captures, k->h.pid, k->graph_node);
	if (!ev->capture)
		return;
	line = lineage_find(w->lineage, k->h.pid, ev->capture->scope);
	ev->captured_in = line ? line->name : NULL;
	if (w->with_stacks)
		ev->captured_stack = stack_table_get(w->stacks, ev->capture->stack);
	if (!ev->captured_stack)
		return;
	/* the nodes of a graph are often of one place after the other */
	if (w->captured_stack != ev->capture->stack) {
		w->captured_at[0] = '\0';
		stack_place(ev->captured_stack, w->captured_at, sizeof(w->captured_at));
		w->captured_stack = ev->capture->stack;
	}
	ev->captured_at = w->captured_at[0] ? w->captured_at : NULL;
}

void world_describe(struct world *w, struct event *ev, bool stacks)
{
	const struct ct_hdr *h = ev->rec;
	const struct ct_work *k = (const struct ct_work *)h;

	w->with_stacks = stacks;
	ev->lineage = w->lineage;
	ev->scope_id = kind_is(h->kind, KIND_WORK)   ? k->scope
		       : kind_is(h->kind, KIND_CALL) ? call_scope((const struct ct_call *)h)
						     : CT_SCOPE_NONE;
	ev->scope = lineage_find(w->lineage, h->pid, ev->scope_id);
	if (kind_is(h->kind, KIND_WORK)) {
		add_capture(w, ev);
		if (stacks)
			ev->stack = stack_table_get(w->stacks, k->stack);
	}
	if (h->kind < CT_KIND_END && kinds[h->kind].describe)
		kinds[h->kind].describe(w, ev);
}
