/* SPDX-License-Identifier: BSD-2-Clause */
/* chrome_body.c - the contents of an event of the chrome format, in Kineto's form. See chrome.h. */
#include <stdio.h>
#include <string.h>

#include "../../flow/about.h"
#include "../../event/device.h"
#include "../../event/scopes/shapes.h"
#include "chrome.h"
#include "../../render/json_fields.h"
#include "../slice/work_text.h"

#define NAME_BYTES 16384

char *chrome_us(char *p, int64_t ns)
{
	uint64_t v = (uint64_t)ns;

	if (ns < 0) {
		*p++ = '-';
		v = -v;
	}
	p = put_u64(p, v / 1000);
	*p++ = '.';
	return put_3digits(p, (unsigned int)(v % 1000));
}

/* Writes a string in pieces that fit, because json_string() keeps only 2048 bytes. A very long
 * string is cut. */
static void chrome_body_put_name(struct row *w, const char *s, size_t n)
{
	if (n > NAME_BYTES)
		n = text_cut(s, NAME_BYTES);
	row_room(w, JSON_ROOM);
	*w->p++ = '"';
	while (n) {
		size_t part = n > 1024 ? text_cut(s, 1024) : n;

		if (!part)
			part = n > 1024 ? 1024 : n;
		row_room(w, part * 6 + 8);
		w->p = escape_json(w->p, s, part);
		s += part;
		n -= part;
	}
	row_room(w, JSON_ROOM);
	*w->p++ = '"';
}

static void body_begin(struct row *w, const char *category, const char *name, size_t n)
{
	row_room(w, JSON_ROOM);
	w->p = json_word(put_lit(w->p, "\"cat\":"), category);
	w->p = json_next(w->p, "name");
	chrome_body_put_name(w, name, n);
	w->p = put_lit(w->p, ",\"args\":{");
}

static const char *library_category(enum api_domain domain)
{
	const struct api_domain_row *d = &api_domains[domain];

	return d->category ? d->category : d->name;
}

static void put_correlation(struct row *w, uint64_t correlation)
{
	if (correlation)
		w->p = json_next_u64(w->p, "correlation", correlation);
}

/* The innermost scope around the call, or around the call that caused the work. */
static void chrome_body_put_scope(struct row *w, const struct event *ev)
{
	const char *name = about_around(ev);

	if (!name)
		return;
	w->p = json_next(w->p, "scope");
	chrome_body_put_name(w, name, strlen(name));
	row_room(w, JSON_ROOM);
}

static void chrome_body_put_text(struct row *w, const char *key, const char *text)
{
	w->p = put_lit(put_str(put_lit(w->p, ",\""), key), "\":");
	chrome_body_put_name(w, text, strlen(text));
	row_room(w, JSON_ROOM);
}

/* For work of a graph's replay: writes which call was captured. */
static void put_capture(struct row *w, const struct event *ev)
{
	const struct capture *c = ev->capture;

	if (!c)
		return;
	if (c->before) {
		chrome_body_put_text(w, "captured", "before the trace");
		return;
	}
	if (ev->captured_in)
		chrome_body_put_text(w, "captured in", ev->captured_in);
	if (ev->captured_at)
		chrome_body_put_text(w, "captured at", ev->captured_at);
	if (c->number)
		w->p = json_next_u64(w->p, "captured by", c->number);
}

static void put_stack(struct row *w, const struct sink_opts *o, const struct stack *s)
{
	w->p = put_lit(w->p, ",\"stack\":[");
	for (uint32_t i = 0; i < s->nframes; i++) {
		const struct stack_frame *f = s->frames[i];
		const char *name = o->look.mangled && f->mangled ? f->mangled
				   : f->function		 ? f->function
								 : "?";

		if (i)
			*w->p++ = ',';
		chrome_body_put_name(w, name, strlen(name));
	}
	*w->p++ = ']';
}

/* ---- what the kinds add ---- */

/* A call's own arguments are nested one level deeper, because programs that read this take
 * `stream` and `device` for those of device work. */
static void body_call(struct chrome *chrome, const struct event *ev, const struct slice *slice,
		      uint64_t correlation)
{
	const struct sink_opts *o = chrome->opts;
	struct row *w = &chrome->row;
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const struct api_func *f = &api_funcs[c->func];
	struct field fields[EVENT_MAX_FIELDS];
	int n = event_fields(ev, fields, EVENT_MAX_FIELDS);

	body_begin(w, library_category((enum api_domain)f->domain), slice->name, slice->name_len);
	w->p = put_lit(w->p, "\"arguments\":{");
	json_fields(w, fields, n);
	row_room(w, JSON_ROOM);
	*w->p++ = '}';
	put_correlation(w, correlation);
	if (ev->kernel) {
		const char *name = o->look.mangled ? ev->kernel->mangled : ev->kernel->full;

		w->p = json_next(w->p, "kernel");
		chrome_body_put_name(w, name, strlen(name));
	}
	if (c->h.flags & CT_F_UNFINISHED)
		w->p = put_lit(w->p, ",\"unfinished\":true");
	chrome_body_put_scope(w, ev);
	if (ev->stack)
		put_stack(w, o, ev->stack);
	*w->p++ = '}';
}

/* -1 means not known, as in Kineto's own files. */
static char *put_id(char *p, uint32_t id)
{
	return id == CT_UNKNOWN ? put_lit(p, "-1") : put_u64(p, id);
}

/* Writes the context, stream and correlation that all device work has. */
static void put_place(struct row *w, const struct event *ev, uint64_t correlation)
{
	const struct ct_work *work = (const struct ct_work *)ev->rec;

	w->p = put_id(put_lit(w->p, "\"device\":"), ev->gpu ? ev->gpu->number : work->device);
	w->p = put_id(json_next(w->p, "context"), work->context);
	w->p = put_id(json_next(w->p, "stream"), work->stream);
	put_correlation(w, correlation);
	chrome_body_put_scope(w, ev);
}

static char *put_dims(char *p, const uint32_t *d)
{
	*p++ = '[';
	p = put_u64(p, d[0]);
	*p++ = ',';
	p = put_u64(p, d[1]);
	*p++ = ',';
	p = put_u64(p, d[2]);
	*p++ = ']';
	return p;
}

static void chrome_body_put_kernel(struct row *w, const struct chrome_devices *devices,
				   const struct event *ev)
{
	const struct ct_kernel *k = (const struct ct_kernel *)ev->rec;
	struct chrome_load load;

	if (k->queued_ns)
		w->p = json_next_u64(w->p, "queued", k->queued_ns / 1000);
	w->p = json_next_u64(w->p, "registers per thread", k->registers);
	w->p = json_next_u64(w->p, "shared memory", (uint64_t)k->static_shared + k->dynamic_shared);
	if (chrome_devices_load(devices, ev, &load)) {
		w->p += snprintf(w->p, 200,
				 ",\"blocks per SM\":%.6g,\"warps per SM\":%.6g,\"est. achieved "
				 "occupancy %%\":%d",
				 load.blocks, load.warps, load.occupancy);
	}
	w->p = put_dims(json_next(w->p, "grid"), k->grid);
	w->p = put_dims(json_next(w->p, "block"), k->block);
	if (k->cluster[0])
		w->p = put_dims(json_next(w->p, "cluster"), k->cluster);
}

static void chrome_body_put_bytes(struct row *w, const struct ct_work *work, uint64_t bytes)
{
	uint64_t ns = work->h.end_ns - work->h.start_ns;

	w->p = json_next_u64(w->p, "bytes", bytes);
	w->p = json_next(w->p, "memory bandwidth (GB/s)");
	if (ns)
		w->p += snprintf(w->p, 40, "%.6g", (double)bytes / (double)ns);
	else
		w->p = put_lit(w->p, "\"N/A\"");
}

static void put_sync(struct row *w, const struct ct_sync *s)
{
	w->p = json_next_word(w->p, "cuda_sync_kind", work_sync_type(s->type));
	if (s->type != CT_SYNC_EVENT && s->type != CT_SYNC_STREAM_WAIT)
		return;
	w->p = put_id(json_next(w->p, "wait_on_stream"), s->w.stream);
	w->p = put_lit(w->p, ",\"wait_on_cuda_event_record_corr_id\":-1");
	w->p = put_id(json_next(w->p, "wait_on_cuda_event_id"), s->event);
}

static void body_work(struct chrome *c, const struct event *ev, const struct slice *s,
		      uint64_t correlation)
{
	const struct ct_work *work = (const struct ct_work *)ev->rec;
	const char *name = s->name;
	size_t len = s->name_len;
	struct row *w = &c->row;

	if (work->h.kind == CT_KERNEL) {
		name = !ev->kernel	       ? "kernel"
		       : c->opts->look.mangled ? ev->kernel->mangled
					       : ev->kernel->full;
		len = strlen(name);
	}
	body_begin(w, slice_row(work->h.kind)->kineto, name, len);
	put_place(w, ev, correlation);
	if (work->graph) {
		w->p = json_next_u64(w->p, "graph id", work->graph);
		w->p = json_next_u64(w->p, "graph node id", work->graph_node);
		put_capture(w, ev);
	}
	if (work->h.kind == CT_KERNEL)
		chrome_body_put_kernel(w, c->devices, ev);
	else if (work->h.kind == CT_COPY)
		chrome_body_put_bytes(w, work, ((const struct ct_copy *)work)->bytes);
	else if (work->h.kind == CT_SET)
		chrome_body_put_bytes(w, work, ((const struct ct_set *)work)->bytes);
	else if (work->h.kind == CT_SYNC)
		put_sync(w, (const struct ct_sync *)work);
	*w->p++ = '}';
}

static void body_foreign(struct chrome *c, const struct event *ev, const struct slice *s,
			 uint64_t correlation)
{
	enum api_domain domain = api_domain_find(s->category, s->category_len);

	(void)correlation;
	body_begin(&c->row,
		   domain < API_DOMAIN_END ? library_category(domain)
					   : slice_row(ev->rec->kind)->kineto,
		   s->name, s->name_len);
	*c->row.p++ = '}';
}

static void body_overhead(struct chrome *c, const struct event *ev, const struct slice *s,
			  uint64_t correlation)
{
	(void)correlation;
	body_begin(&c->row, slice_row(ev->rec->kind)->kineto, s->name, s->name_len);
	*c->row.p++ = '}';
}

static void put_tensor(struct row *w, const struct shape *shape, bool first)
{
	row_room(w, 256);
	w->p = put_str(w->p, first ? "[" : ",[");
	for (int i = 0; i < shape->rank; i++)
		w->p = put_u64(i ? put_char(w->p, ',') : w->p, shape->sizes[i]);
}

/* The shapes and types of an operator's arguments, in torch.profiler's form: an empty list for
 * an argument that is no tensor or is not known, and a list of lists for several tensors. */
static void put_inputs(struct row *w, const struct ct_scope *s)
{
	char from[INPUTS_MAX];
	size_t len = scope_inputs(&s->h, from);
	const char *at = from, *end = from + len;
	struct shape shape, one;

	if (!len)
		return;
	w->p = put_lit(w->p, "\"Input Dims\":[");
	for (bool first = true; shapes_next(&at, end, &shape); first = false) {
		put_tensor(w, &shape, first);
		for (bool begins = true;
		     shape.list && shapes_next(&shape.list, shape.list_end, &one); begins = false) {
			put_tensor(w, &one, begins);
			*w->p++ = ']';
		}
		row_room(w, JSON_ROOM);
		*w->p++ = ']';
	}
	at = from;
	w->p = put_lit(w->p, "],\"Input type\":[");
	for (bool first = true; shapes_next(&at, end, &shape); first = false) {
		row_room(w, JSON_ROOM);
		w->p = json_word(first ? w->p : put_char(w->p, ','), shape.type);
	}
	row_room(w, JSON_ROOM);
	w->p = put_lit(w->p, "],");
}

static void body_scope(struct chrome *c, const struct event *ev, const struct slice *slice,
		       uint64_t correlation)
{
	struct field fields[EVENT_MAX_FIELDS];
	int n = event_fields(ev, fields, EVENT_MAX_FIELDS);
	const struct ct_scope *s = (const struct ct_scope *)ev->rec;
	bool is_operator = s->kind == CT_SCOPE_OPERATOR;
	const char *name = slice->name;
	size_t len = slice->name_len;
	const char *dot = is_operator ? memchr(name, '.', len) : NULL;
	struct row *w = &c->row;

	(void)correlation;
	/* as in torch.profiler, the overload is not part of an operator's name */
	body_begin(w, is_operator ? "cpu_op" : slice_row(CT_SCOPE_END)->kineto, name,
		   dot ? (size_t)(dot - name) : len);
	if (is_operator)
		w->p = put_lit(put_u64(put_lit(w->p, "\"External id\":"), s->id), ",");
	if (dot) {
		w->p = put_lit(w->p, "\"overload\":");
		chrome_body_put_name(w, dot + 1, len - (size_t)(dot + 1 - name));
		*w->p++ = ',';
	}
	if (is_operator)
		put_inputs(w, s);
	/* the first field is the name */
	json_fields(w, fields + 1, n - 1);
	row_room(w, JSON_ROOM);
	*w->p++ = '}';
}

static void body_marker(struct chrome *c, const struct event *ev, const struct slice *s,
			uint64_t correlation)
{
	const struct ct_marker *m = (const struct ct_marker *)ev->rec;
	struct row *w = &c->row;

	(void)correlation;
	body_begin(w, slice_row(ev->rec->kind)->kineto, s->name, s->name_len);
	if (m->domain_len) {
		w->p = put_lit(w->p, "\"domain\":");
		chrome_body_put_name(w, m->text + m->text_len, m->domain_len);
	}
	*w->p++ = '}';
}

/* A kind that Kineto does not have: its fields. */
static void body_any(struct chrome *c, const struct event *ev, const struct slice *s,
		     uint64_t correlation)
{
	struct field fields[EVENT_MAX_FIELDS];
	int n = event_fields(ev, fields, EVENT_MAX_FIELDS);
	struct row *w = &c->row;

	(void)correlation;
	body_begin(w, slice_row(ev->rec->kind)->kineto, s->name, s->name_len);
	json_fields(w, fields, n);
	row_room(w, JSON_ROOM);
	*w->p++ = '}';
}

void chrome_body(struct chrome *c, const struct event *ev, const struct slice *s,
		 uint64_t correlation)
{
	static void (*const bodies[CT_KIND_END])(struct chrome *, const struct event *,
						 const struct slice *, uint64_t) = {
		[CT_CALL] = body_call,	       [CT_FOREIGN] = body_foreign,
		[CT_OVERHEAD] = body_overhead, [CT_SCOPE_END] = body_scope,
		[CT_MARKER] = body_marker,
	};
	uint16_t kind = ev->rec->kind;

	if (bodies[kind])
		bodies[kind](c, ev, s, correlation);
	else if (kind_is(kind, KIND_WORK))
		body_work(c, ev, s, correlation);
	else
		body_any(c, ev, s, correlation);
}

void chrome_step_body(struct row *w, const struct steps_of *p, const struct step *one)
{
	char name[48];
	int n = snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)one->number);

	body_begin(w, "user_annotation", name, (size_t)n);
	w->p = json_word(put_lit(w->p, "\"found_by\":"), steps_how_word(p->how));
	if (p->period)
		w->p += snprintf(w->p, 64, ",\"confidence\":%.4f", p->confidence);
	*w->p++ = '}';
}
