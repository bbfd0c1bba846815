/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perfetto.c - a trace for Perfetto's viewer and trace processor: a track for each thread, each
 * stream and each counter, arrows from calls to their device work.
 *
 * An event's body is made when the event comes, with the strings that it needs; the timeline
 * holds it until its place on its track is known. What tracks there are is said in
 * perfetto_track.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/gpus.h"
#include "../../util/msg.h"
#include "../../util/option/option.h"
#include "../../flow/about.h"
#include "perfetto.h"
#include "../../util/proto.h"

/* Fields of a TrackEvent's body. */
enum { EVENT_CATEGORY = 3, EVENT_NAME = 10, EVENT_CORRELATION = 52, EVENT_STACK = 56 };

/* ---- what the timeline hands on ---- */

static int span_begins(void *ctx, struct timeline_track *tr, struct timeline_lane *l, int lane,
		       const struct timeline_span *s, const char *bytes, bool arrow)
{
	struct perfetto *pf = ctx;

	perfetto_write_event(&pf->w,
			     s->what == TIMELINE_INSTANT ? PERFETTO_INSTANT : PERFETTO_BEGIN,
			     s->start_ns, perfetto_track_lane(pf, tr, l, lane),
			     arrow ? s->arrow : 0, s->end == TIMELINE_TO, bytes, s->len);
	return pf->w.out->error;
}

static int span_ends(void *ctx, struct timeline_track *tr, struct timeline_lane *l, uint64_t ns)
{
	struct perfetto *pf = ctx;

	(void)tr;
	perfetto_write_event(&pf->w, PERFETTO_END, ns, l->own, 0, false, NULL, 0);
	return pf->w.out->error;
}

static int value_is(void *ctx, struct timeline_track *tr, struct timeline_lane *l,
		    const struct timeline_span *s, const char *bytes, bool late)
{
	struct perfetto *pf = ctx;
	int64_t delta;
	double v;

	if (perfetto_track_kind(&tr->key) == SLICE_IN_USE) {
		/* a late change counts from now on, so that later values are correct */
		memcpy(&delta, bytes, sizeof(delta));
		tr->sum = (int64_t)((uint64_t)tr->sum + (uint64_t)delta);
		perfetto_write_count(&pf->w, l->last_ns, tr->own, tr->sum);
	} else if (late) {
		pf->late++;
	} else {
		memcpy(&v, bytes, sizeof(v));
		perfetto_write_double(&pf->w, s->start_ns, tr->own, v);
	}
	return pf->w.out->error;
}

static const struct timeline_ops timeline_ops = { .begin = span_begins,
						  .end = span_ends,
						  .value = value_is };

/* ---- events ---- */

/* What the two ends of an arrow share. */
static uint64_t arrow_id(const struct event *ev)
{
	uint64_t h = ((uint64_t)ev->rec->pid << 32 | ev->number) * 0x9e3779b97f4a7c15;

	if (!ev->number)
		return 0;
	h = (h ^ h >> 29 ^ ev->proc->start_boottime_ns) * 0x9e3779b97f4a7c15;
	return (h ^ h >> 32) | 1;
}

static char *put_fields(struct perfetto *pf, char *p, const struct event *ev)
{
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);

	return perfetto_args(&pf->w, p, pf->body + sizeof(pf->body) - 1024, f, n);
}

static int perfetto_add_memory(struct perfetto *pf, const struct event *ev)
{
	struct timeline_span s = { .start_ns = ev->rec->end_ns,
				   .end_ns = ev->rec->end_ns,
				   .what = TIMELINE_VALUE,
				   .len = sizeof(int64_t) };
	struct timeline_track *tr;
	uint32_t device;
	int64_t delta;

	if (!inuse_call(pf->inuse, ev, &device, &delta))
		return 0;
	tr = perfetto_track(pf, SLICE_IN_USE, ev->proc, device, 0);
	return tr ? timeline_add(pf->timeline, tr, &s, &delta) : -ENOMEM;
}

/* The innermost scope around a call, or around the call that caused device work. */
static char *perfetto_put_scope(struct perfetto *pf, char *p, const struct event *ev)
{
	const char *name = about_around(ev);

	return name ? perfetto_arg_str(&pf->w, p, "scope", name, strlen(name)) : p;
}

/* Returns the track on which the event lies. Ranges that need not nest are on one track of their
 * process. */
static struct timeline_track *track_of(struct perfetto *pf, const struct event *ev,
				       const struct slice *s)
{
	enum slice_track track = s->loose					 ? SLICE_SPANS
				 : slice_tracks[s->track].parent == SLICE_THREAD ? SLICE_RANGES
										 : s->track;

	switch ((enum slice_of)slice_tracks[track].of) {
	case OF_MACHINE: return perfetto_track(pf, track, NULL, 0, 0);
	case OF_GPU: return perfetto_track(pf, track, NULL, s->device, 0);
	case OF_PROCESS: return perfetto_track(pf, track, ev->proc, 0, 0);
	case OF_THREAD: return perfetto_track(pf, track, ev->proc, s->tid, 0);
	case OF_DEVICE: return perfetto_track(pf, track, ev->proc, s->device, 0);
	case OF_STREAM: break;
	}
	return perfetto_track(pf, track, ev->proc, s->device, s->stream);
}

static char *perfetto_put_call(struct perfetto *pf, char *p, const struct event *ev)
{
	const char *name;

	if (ev->number)
		p = proto_u64(p, EVENT_CORRELATION, ev->number);
	if (ev->stack && !pf->how.stack_args)
		p = proto_u64(p, EVENT_STACK,
			      perfetto_stack_iid(&pf->w, ev->stack, pf->opts->look.mangled));
	if (ev->kernel) {
		name = work_kernel(pf->opts, ev->kernel);
		p = perfetto_arg_str(&pf->w, p, "kernel", name, strlen(name));
	}
	if (ev->rec->flags & CT_F_UNFINISHED)
		p = perfetto_arg_bool(&pf->w, p, "unfinished", true);
	if (ev->number)
		p = perfetto_arg_u64(&pf->w, p, "correlation", ev->number);
	p = perfetto_put_scope(pf, p, ev);
	/* half of the room is for the arguments */
	if (ev->stack && pf->how.stack_args)
		p = perfetto_arg_stack(&pf->w, p, pf->body + sizeof(pf->body) / 2, ev->stack,
				       pf->opts->look.mangled);
	return put_fields(pf, p, ev);
}

static char *put_work(struct perfetto *pf, char *p, const struct event *ev)
{
	if (ev->number)
		p = proto_u64(p, EVENT_CORRELATION, ev->number);
	return put_fields(pf, perfetto_put_scope(pf, p, ev), ev);
}

static char *put_marker(struct perfetto *pf, char *p, const struct ct_marker *m)
{
	if (m->domain_len)
		p = perfetto_arg_str(&pf->w, p, "domain", m->text + m->text_len, m->domain_len);
	if (m->category)
		p = perfetto_arg_u64(&pf->w, p, "category", m->category);
	return p;
}

/* Writes what the trace says of an event beside its category and its name. */
static char *put_details(struct perfetto *pf, char *p, const struct event *ev)
{
	switch (ev->rec->kind) {
	case CT_CALL: return perfetto_put_call(pf, p, ev);
	case CT_FOREIGN: return p;
	case CT_MARKER: return put_marker(pf, p, (const struct ct_marker *)ev->rec);
	}
	return kind_is(ev->rec->kind, KIND_WORK) ? put_work(pf, p, ev) : put_fields(pf, p, ev);
}

static int add_slice(struct perfetto *pf, const struct event *ev)
{
	struct timeline_track *tr;
	struct timeline_span span;
	struct slice s;
	char *p = pf->body;
	int err;

	slice_of(&s, pf->opts, ev);
	pf->no_time += s.no_time;
	if (s.track == SLICE_NOWHERE || s.no_time)
		return 0;
	span = (struct timeline_span){ .start_ns = s.start_ns,
				       .end_ns = s.end_ns,
				       .depth = s.depth,
				       .end = s.arrow,
				       .what = s.instant ? TIMELINE_INSTANT : TIMELINE_SPAN };
	if (s.arrow != TIMELINE_NO_ARROW)
		span.arrow = arrow_id(ev);
	if (s.arrow == TIMELINE_TO)
		span.after_ns = ev->cause->end_ns;
	p = proto_u64(p, EVENT_CATEGORY,
		      perfetto_iid(&pf->w, PERFETTO_CATEGORIES, s.category, s.category_len));
	p = proto_u64(p, EVENT_NAME, perfetto_iid(&pf->w, PERFETTO_NAMES, s.name, s.name_len));
	p = put_details(pf, p, ev);
	tr = track_of(pf, ev, &s);
	if (!tr)
		return -ENOMEM;
	span.len = (uint32_t)(p - pf->body);
	perfetto_write_interned(&pf->w);
	err = timeline_add(pf->timeline, tr, &span, pf->body);
	if (!err && ev->rec->kind == CT_CALL)
		err = perfetto_add_memory(pf, ev);
	return err ? err : s.row;
}

static int add_counter(struct perfetto *pf, const struct event *ev)
{
	const struct ct_counter *c = (const struct ct_counter *)ev->rec;
	struct timeline_span s = { .start_ns = c->h.end_ns,
				   .end_ns = c->h.end_ns,
				   .what = TIMELINE_VALUE,
				   .len = sizeof(double) };
	const struct process *proc = c->h.pid ? ev->proc : NULL;

	for (uint32_t i = 0; i < c->n; i++) {
		struct timeline_track *tr;
		int err;

		if (c->values[i].flags & CT_VALUE_SUSPECT)
			continue;
		tr = perfetto_track(pf, SLICE_METRIC, proc, c->device, c->values[i].metric);
		err = tr ? timeline_add(pf->timeline, tr, &s, &c->values[i].bits) : -ENOMEM;
		if (err)
			return err;
	}
	return 0;
}

static int add_device(struct perfetto *pf, const struct event *ev)
{
	const struct ct_device *d = (const struct ct_device *)ev->rec;
	struct timeline_key key = perfetto_track_key(d->h.pid ? SLICE_GPU : SLICE_MACHINE,
						     d->h.pid ? ev->proc : NULL, d->id, 0);
	struct timeline_track *tr = timeline_track(pf->timeline, &key);
	char name[160];

	if (!tr)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%.*s%s%s", (int)(d->name_len < 100 ? d->name_len : 100),
		 d->name, ev->gpu && *ev->gpu->text ? ", " : "", ev->gpu ? ev->gpu->text : "");
	return perfetto_track_tell(pf, tr, name);
}

/* Notes that a process may have another name now. */
static int rename_process(struct perfetto *pf, const struct event *ev)
{
	struct timeline_track *tr = perfetto_track(pf, SLICE_PROCESS, ev->proc, 0, 0);

	if (!tr)
		return -ENOMEM;
	if (!strncmp(tr->name, ev->proc->comm, CT_COMM_LEN))
		return 0;
	tr->introduced = false;
	return perfetto_track_tell(pf, tr, NULL);
}

static int one_event(struct perfetto *pf, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	switch (h->kind) {
	case CT_COUNTER: return add_counter(pf, ev);
	case CT_METRIC: work_metrics_record(pf->metrics, (const struct ct_metric *)h); return 0;
	case CT_CLOCK:
		perfetto_write_clocks(&pf->w, h->start_ns,
				      ((const struct ct_clock *)h)->boottime_ns,
				      ((const struct ct_clock *)h)->realtime_ns);
		return 0;
	case CT_DEVICE: return add_device(pf, ev);
	case CT_EXEC: inuse_forget(pf->inuse, h->pid); return rename_process(pf, ev);
	case CT_THREAD_NAME: return h->tid == h->pid ? rename_process(pf, ev) : 0;
	case CT_EXIT: inuse_forget(pf->inuse, h->pid); return 0;
	default: return add_slice(pf, ev);
	}
}

static int perfetto_event(struct sink *s, const struct event *ev)
{
	struct perfetto *pf = s->priv;
	int err;

	pf->proc = ev->proc;
	pf->gpus = ev->gpus;
	pf->thread = ev->thread;
	/* held events refer to strings by numbers that are about to be reassigned */
	if (perfetto_write_is_full(&pf->w)) {
		err = timeline_flush(pf->timeline);
		if (err)
			return err;
		perfetto_write_state(&pf->w, false);
	}
	err = one_event(pf, ev);
	return err < 0 ? err : s->opts->out->error ? s->opts->out->error : err;
}

static int perfetto_open(struct sink *s, const struct sink_opts *opts)
{
	struct perfetto *pf = calloc(1, sizeof(*pf));

	s->opts = opts;
	s->priv = pf;
	if (!pf)
		return -ENOMEM;
	pf->opts = opts;
	if (opts->own)
		pf->how = *(const struct perfetto_options *)opts->own;
	pf->timeline = timeline_open(&timeline_ops, pf);
	pf->inuse = inuse_open();
	pf->metrics = work_metrics_open();
	if (perfetto_write_open(&pf->w, opts->out) || !pf->timeline || !pf->inuse || !pf->metrics)
		return -ENOMEM;
	perfetto_write_state(&pf->w, true);
	perfetto_write_clocks(&pf->w, opts->start_ns, opts->start_ns + opts->boottime_offset_ns,
			      opts->start_ns + opts->realtime_offset_ns);
	return 0;
}

/* What the trace does not show, in one sentence each. */
static void say_left_out(const struct perfetto *pf)
{
	const struct {
		uint64_t n;
		const char *what;
	} rows[] = {
		{ timeline_no_arrow(pf->timeline), "arrows from calls to device work are not "
						   "drawn: it came too long after its call" },
		{ timeline_dropped(pf->timeline),
		  "spans overlap too many others and are left out" },
		{ pf->no_time, "pieces of device work have no device time and are left out" },
		{ pf->late, "counter samples came too late and are left out" },
		{ inuse_dropped(pf->inuse),
		  "allocations are not counted as memory in use: there are too many at a time" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].n)
			msg_note("perfetto: %llu %s", (unsigned long long)rows[i].n, rows[i].what);
}

static int perfetto_close(struct sink *s, const struct sink_end *end)
{
	struct perfetto *pf = s->priv;
	int err;

	(void)end;
	if (!pf)
		return 0;
	err = pf->timeline ? timeline_flush(pf->timeline) : -ENOMEM;
	if (pf->timeline && pf->inuse)
		say_left_out(pf);
	timeline_close(pf->timeline);
	inuse_close(pf->inuse);
	work_metrics_close(pf->metrics);
	perfetto_write_close(&pf->w);
	free(pf);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

#define OPTION_STRUCT struct perfetto_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "stack-args", NULL, FLAG(stack_args), 0, NULL,
	  "perfetto: write stacks as arguments of the calls, because trace_processor before v53 counts\n"
	  "callstacks as errors",
	  RULES(NEEDS("format:perfetto", "--stack-args is about stacks of perfetto: give that format, or leave it out"),
		NEEDS("stack to", "--stack-args is about stacks with --format perfetto: give -k, or leave it out")) },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_perfetto = {
	.name = "perfetto",
	.options = &options,
	.open = perfetto_open,
	.event = perfetto_event,
	.close = perfetto_close,
};
