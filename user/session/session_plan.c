/* SPDX-License-Identifier: BSD-2-Clause */
/* session_plan.c - see session_plan.h. Knows no source beyond the plan. */
#include <errno.h>
#include <string.h>

#include "session_plan.h"
#include "../source/cgroup.h"
#include "../source/host.h"
#include "../source/pids.h"
#include "../sums/book.h"
#include "../util/msg.h"

#define RING_BYTES (16u << 20)
#define RING_STACK_BYTES (64u << 20) /* holds 100 ms of 200 000 stacks a second, at 3 KiB each */
#define RING_LEAST_BYTES (1u << 20)
/* the ring takes at most this part of the memory that this process may take: above RING_BYTES, and below */
#define RING_SHARE 32
#define RING_SMALL_SHARE 16
/* one process may use at most 1/ENTRIES_SHARE of the counters' entries for its kernels */
#define ENTRIES_SHARE 16
#define ENTRIES_LEAST 100
#define FUNCTIONS_EACH 40 /* counter entries for each process of `serve` */

static int plan_pids(struct session_plan *p, const struct request *o)
{
	for (int i = 0; i < o->npids; i++) {
		int err = pids_check(o->pids[i], o->has_tid);

		if (err)
			return err;
	}
	p->capture.pids = o->pids;
	p->capture.npids = o->npids;
	return 0;
}

static int plan_tid(struct session_plan *p, const struct request *o)
{
	struct host_task task;

	if (!o->tid)
		return 0;
	if (!host_initial_pid_ns()) {
		msg_error("-L: thread ids of a pid namespace are not translated; run cudatrace "
			  "outside of the container");
		return -EINVAL;
	}
	if (host_task(o->tid, &task)) {
		msg_error("-L: there is no thread %d; see 'ps -T'", (int)o->tid);
		return -ESRCH;
	}
	if (pids_check(task.tgid, true))
		return -ESRCH;
	for (int i = 0; i < o->npids; i++)
		if (o->pids[i] == task.tgid)
			return 0;
	if (o->npids) {
		msg_error("-L: thread %d belongs to process %d, which -p does not name",
			  (int)o->tid, (int)task.tgid);
		return -EINVAL;
	}
	p->tid_owner = task.tgid;
	p->capture.pids = &p->tid_owner;
	p->capture.npids = 1;
	return 0;
}

/*
 * If a function that uses a kernel is shown, the calls that teach kernels' names are captured too,
 * but not shown. The driver's launches name the kernels that a program registered before the trace
 * began.
 */
static void plan_names(struct session_plan *p, const struct request *o, const struct sink_wants *w)
{
	struct capture_plan *c = &p->capture;

	if (o->look.counts_only || w->no_names ||
	    (o->format->flags & SINKS_COUNTS && !(o->format->flags & SINKS_LIVE) &&
	     w->by != BOOK_BY_KERNEL))
		return;
	for (int i = 0; i < api_nfuncs; i++)
		p->names |= plan_has(c->shown, i) && api_has_kernel(i);
	if (!p->names)
		return;
	api_teaching(c->capture);
	for (int i = 0; i < api_nfuncs && !o->cmd; i++)
		if (api_funcs[i].class == API_LAUNCH && api_domains[api_funcs[i].domain].below &&
		    api_has_kernel(i))
			plan_add(c->capture, i);
}

/* Whether calls of this domain call another library whose calls are folded into them. */
static bool takes_along(const struct api_domain_row *d)
{
	return d->folds && !d->below;
}

static bool records_layer(const struct session_plan *p, int func)
{
	return p->layers >> (api_funcs[func].domain - API_FIRST_LAYER) & 1;
}

/* What allocators inside programs report is shown where single calls are, where memory is booked, and to advise's rules. */
static bool shows_reports(const struct request *o)
{
	return !(o->format->flags & (SINKS_COUNTS | SINKS_FOLDS));
}

/* Captures the functions of layers that were asked for. */
static void plan_layers(struct session_plan *p, const struct request *o)
{
	struct capture_plan *c = &p->capture;

	for (int i = 0; i < api_nfuncs; i++) {
		if (!api_funcs[i].layer)
			continue;
		if (!api_layer_reports(&api_funcs[i])) {
			if (records_layer(p, i))
				plan_add(c->capture, i);
			continue;
		}
		if (o->format->flags & SINKS_MEMORY)
			plan_add(c->shown, i);
		if (!(o->replay || records_layer(p, i)) || !shows_reports(o))
			plan_remove(c->shown, i);
		plan_remove(c->capture, i);
		if (!plan_has(c->shown, i))
			continue;
		plan_add(c->capture, i);
		plan_add(c->named,
			 i); /* if one was missed, the owner of the block would not be known */
	}
}

static bool causes_work(const struct api_func *f)
{
	return f->class == API_LAUNCH || f->class == API_COPY || f->class == API_SET ||
	       f->flags & API_GRAPH_LAUNCH;
}

/* Device work is inside the scopes of the call that caused it. Where both are recorded, the source shows such calls too, though -e
 * leaves them out: the filter drops them later. */
static void plan_causes(struct session_plan *p, const struct request *o, const struct sink_wants *w)
{
	struct capture_plan *c = &p->capture;

	memcpy(p->asked, c->shown, sizeof(p->asked));
	if (!o->gpu || !p->layers || o->select.none || c->count)
		return;
	for (int i = 0; i < api_nfuncs; i++) {
		if (!causes_work(&api_funcs[i]))
			continue;
		plan_add(c->shown, i);
		plan_add(c->capture, i);
	}
	plan_names(p, o, w);
}

/* For sinks about memory: captures and shows all calls that allocate or free memory. */
static void plan_memory(struct session_plan *p, const struct request *o, const struct sink_wants *w)
{
	struct capture_plan *c = &p->capture;

	if (!(o->format->flags & SINKS_MEMORY))
		return;
	memset(c->shown, 0, sizeof(c->shown));
	api_remembering(c->shown);
	if (w->handles)
		api_handling(c->shown);
	memcpy(c->capture, c->shown, sizeof(c->capture));
	memcpy(c->named, c->shown, sizeof(c->named));
}

bool session_plan_places(const struct request *o)
{
	bool shown = !o->look.counts_only &&
		     !(o->format->flags & (SINKS_FOLDS | SINKS_COUNTS | SINKS_NO_PLACES));

	/* calls that the kernel side drops by duration or success do not say which device they set;
	 * without calls there is nothing to place */
	if (o->no_return || o->filter.failed_only || o->filter.succeeded_only ||
	    o->filter.min_duration_ns || o->select.none)
		return false;
	return o->record || shown ||
	       (o->format->flags & SINKS_COUNTS && request_wants(o).by == BOOK_BY_DEVICE);
}

bool session_plan_queries(const struct session_plan *p)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (api_funcs[i].class == API_QUERY && plan_has(p->capture.shown, i))
			return true;
	return false;
}

/* What the kernel side counts calls by, in addition to process and function. */
static uint8_t count_by(uint8_t by)
{
	switch (by) {
	case BOOK_BY_THREAD: return CT_BY_THREAD;
	case BOOK_BY_KERNEL: return CT_BY_KERNEL;
	case BOOK_BY_STREAM: return CT_BY_STREAM;
	case BOOK_BY_CGROUP: return CT_BY_CGROUP;
	default: return CT_BY_FUNCTION;
	}
}

/* A record with a stack is ten times as large as one without. */
static uint32_t ring_bytes(const struct request *o)
{
	uint32_t bytes = o->stack == REQUEST_STACK_NONE ? RING_BYTES : RING_STACK_BYTES;
	uint64_t memory = cgroup_memory_here();

	if (o->ring_bytes)
		return o->ring_bytes;
	while (bytes > RING_LEAST_BYTES &&
	       bytes > memory / (bytes > RING_BYTES ? RING_SHARE : RING_SMALL_SHARE))
		bytes /= 2;
	return bytes;
}

/*
 * Chooses the functions that may be probed for a part of the time only. Functions that allocate or
 * free memory are not among them, because memory can be followed only if all their calls are seen.
 * Functions that wait are not either, because their calls last longer than a window.
 */
static void plan_duty(struct capture_plan *c, const struct request *o)
{
	uint64_t memory[PLAN_WORDS] = { 0 };

	if (!c->count)
		return;
	c->duty = o->duty;
	c->max_cost = o->max_cost;
	c->max_cost_optional = o->max_cost_ours;
	if (c->duty <= 0 && c->max_cost <= 0)
		return;
	/* top and serve count every call unless an option says otherwise */
	c->keep_chatty = false;
	api_remembering(memory);
	for (int i = 0; i < api_nfuncs; i++)
		if (!plan_has(memory, i) && api_funcs[i].class != API_MEMORY &&
		    api_funcs[i].class != API_SYNC)
			plan_add(c->on_duty, i);
}

/* Plans which processes and threads are traced. */
static int plan_whom(struct session_plan *p, const struct request *o)
{
	struct capture_plan *c = &p->capture;
	int err = o->replay ? 0 : plan_pids(p, o);

	if (!err && !o->replay)
		err = plan_tid(p, o);
	if (!err && o->cgroup)
		err = cgroup_id(o->cgroup, &c->cgroup_id);
	c->one_thread = o->tid != 0;
	c->follow = o->cmd ? !o->no_follow : o->follow > 0;
	c->cmd = o->cmd;
	c->user = o->user;
	c->env = (char *const *)o->env;
	c->library = o->library;
	return err;
}

/* Plans which functions are probed, which are shown, and which begin or end the window. */
static void plan_functions(struct session_plan *p, const struct request *o,
			   const struct sink_wants *w, const struct window *window)
{
	struct capture_plan *c = &p->capture;

	memcpy(c->shown, o->select.shown, sizeof(c->shown));
	memcpy(c->capture, o->select.shown, sizeof(c->capture));
	memcpy(c->named, o->select.named, sizeof(c->named));
	/* A function that is excluded with -e also excludes the calls that it makes to the library
	 * below: it is still probed, so that those calls are folded into it. Queries are an
	 * exception: they are excluded because their probes are costly. */
	for (int i = 0; i < api_nfuncs && o->domain == API_DOMAIN_END && !o->look.nested; i++)
		if (plan_has(o->select.removed, i) &&
		    takes_along(&api_domains[api_funcs[i].domain]) &&
		    api_funcs[i].class != API_QUERY && api_funcs[i].class != API_INTERNAL)
			plan_add(c->capture, i);
	p->layers = o->layers;
	c->inlined = api_layers_inlined(p->layers);
	c->shapes = o->shapes;
	plan_names(p, o, w);
	plan_memory(p, o, w);
	plan_layers(p, o);
	if (session_plan_places(o))
		api_placing(c->capture);
	if (window) {
		window_rows(window, c->capture);
		window_rows(window, c->named);
		window_rows(window, c->awaited);
	}
}

/* Plans which calls are recorded, and what is recorded of each. */
static void plan_calls(struct capture_plan *c, const struct request *o, const struct sink_wants *w,
		       const struct window *window)
{
	c->stack = o->stack == REQUEST_STACK_DWARF ? PLAN_STACK_COPY
		   : o->stack == REQUEST_STACK_AUTO
			   ? o->no_python ? PLAN_STACK_COPY : PLAN_STACK_AUTO
		   : o->stack == REQUEST_STACK_FP     ? PLAN_STACK_ADDRESSES
		   : o->stack == REQUEST_STACK_PYTHON ? PLAN_STACK_PYTHON
						      : PLAN_STACK_NONE;
	c->threads = w->threads;
	/* of calls that are under way */
	if (w->threads)
		c->stack = PLAN_STACK_COPY;
	c->python = c->stack && !o->no_python && !w->threads;
	c->enter = o->look.enter_exit;
	c->nested = o->look.nested;
	c->no_return = o->no_return;
	c->filter = o->filter;
	/* this filter applies also to the calls that begin or end the window */
	if (window)
		c->filter.min_size_bytes = 0;
	/* otherwise failed calls would be missing */
	c->keep_chatty = o->keep_chatty || o->filter.failed_only || o->filter.succeeded_only ||
			 o->look.counts_only || o->format->flags & SINKS_EVERY_CALL ||
			 book_scopes(w->by);
	c->complete = o->complete;
	c->calls_by_agent = o->source == REQUEST_SOURCE_CUPTI;
	c->ring_bytes = ring_bytes(o);
	c->probe_kind = o->probe_kind;
}

/* Plans what is counted where calls are seen, instead of sending records. */
static void plan_counts(struct capture_plan *c, const struct request *o, const struct sink_wants *w)
{
	unsigned int flags = o->format->flags;

	/* the device of a call follows from the single calls before it; a size may take more than
	 * one word */
	c->count = flags & SINKS_COUNTS && !o->filter.min_size_bytes && w->by != BOOK_BY_DEVICE &&
		   !book_scopes(w->by) && !o->replay && o->source != REQUEST_SOURCE_CUPTI;
	plan_duty(c, o);
	c->count_by = flags & SINKS_LIVE ? CT_BY_ASKED : count_by(w->by);
	/* a map of histograms has no room for ten thousand processes */
	if (!o->no_return && (w->hist || !(flags & (SINKS_DAEMON | SINKS_LIVE))))
		c->hist = flags & SINKS_DAEMON ? CT_HIST_BY_FUNCTION : CT_HIST_BY_KEY;
	c->sizes = flags & SINKS_DAEMON;
	/* holds only if every allocation is seen, and whether it succeeded */
	c->memory = c->count && !o->no_return && !o->filter.failed_only &&
		    !o->filter.succeeded_only && !o->filter.min_duration_ns;
	/* room for about ten thousand processes of forty functions each, if any process may be
	 * traced */
	c->call_counts_max = w->processes ? (uint32_t)w->processes * FUNCTIONS_EACH
			     : !o->cmd && !o->npids && !(flags & SINKS_LIVE) ? 1 << 19
									     : 0;
	/* among many processes, no single one may use up all entries with the kernels that it
	 * makes */
	c->call_counts_each = flags & SINKS_DAEMON && c->call_counts_max
				      ? c->call_counts_max / ENTRIES_SHARE + ENTRIES_LEAST
				      : 0;
}

/* Plans what is recorded of the devices' work. */
static void plan_devices(struct capture_plan *c, const struct request *o)
{
	c->device = o->agent;
	c->host = o->host;
	c->counters_interval_ns = o->counters ? o->interval_ns : 0;
	c->counters_metrics = o->metrics;
	c->counters_optional = o->format->flags & SINKS_DAEMON;
	c->cupti = o->agent.cupti;
}

/* Plans which recording is read and which files are written. */
static void plan_files(struct capture_plan *c, const struct request *o, const struct sink_wants *w)
{
	c->file = o->file;
	c->file_fd = o->file_fd;
	c->from_ns = o->from_ns;
	c->to_ns = o->to_ns ? o->to_ns : UINT64_MAX;
	c->kernel_log = w->threads;
	c->opens_files = o->one_each || o->record || w->threads || w->files[0] || w->files[1] ||
			 (o->output && o->format->flags & (SINKS_PATH | SINKS_SPLITS));
}

/* Sets the filter: which of the records are shown. */
static void plan_filter(struct session_plan *p, const struct request *o)
{
	p->filter = (struct filter){
		.shown = p->asked,
		.calls = o->filter,
		.comm_glob = o->comm,
		.tid = (uint32_t)o->tid,
		.one_device = o->one_device,
		.device = o->device,
		.nested = o->look.nested,
		.scopes = o->scopes,
		.by_process = o->record || o->format->flags & SINKS_MEMORY,
		.counted = p->capture.count,
		.pids = o->replay ? o->pids : NULL,
		.npids = o->replay ? o->npids : 0,
		.foreign = !o->events_given && o->domain == API_DOMAIN_END,
		.stores = o->record,
		.definitions = o->record || o->format->flags & SINKS_DEFINITIONS,
	};
}

int session_plan(struct session_plan *p, const struct request *o, const struct window *window)
{
	const struct sink_wants w = request_wants(o);
	int err;

	memset(p, 0, sizeof(*p));
	err = plan_whom(p, o);
	if (err)
		return err;
	plan_functions(p, o, &w, window);
	plan_calls(&p->capture, o, &w, window);
	plan_counts(&p->capture, o, &w);
	plan_causes(p, o, &w);
	plan_devices(&p->capture, o);
	plan_files(&p->capture, o, &w);
	plan_filter(p, o);
	return 0;
}
