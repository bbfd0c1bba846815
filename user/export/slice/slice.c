/* SPDX-License-Identifier: BSD-2-Clause */
/* slice.c - see slice.h. */
#include <stddef.h>
#include <string.h>

#include "../../event/hole_words.h"
#include "../../event/kinds.h"
#include "slice.h"
#include "work_text.h"

_Static_assert(sizeof(((struct slice *)0)->text) >= WORK_TEXT_MAX, "room for device work's names");

static void slice_category(struct slice *s, const char *category)
{
	s->category = category;
	s->category_len = strlen(category);
}

static void slice_name(struct slice *s, const char *name)
{
	s->name = name;
	s->name_len = strlen(name);
}

/* If the end of a call was not seen, only its begin is known. */
static void slice_in_thread(struct slice *s, const struct ct_hdr *h, uint32_t depth)
{
	s->depth = depth;
	if (!(h->flags & CT_F_NO_RETURN))
		return;
	s->instant = true;
	s->end_ns = s->start_ns;
}

/* ---- what fills in the rest, by the rows' last words ---- */

static void fill_call(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const struct api_func *f = &api_funcs[c->func];

	(void)o;
	slice_in_thread(s, ev->rec, c->depth);
	s->arrow = TIMELINE_FROM;
	slice_category(s, api_domain_name(f->domain));
	slice_name(s, f->name);
}

/* A stored call of a function that this version does not know: its name and its time. */
static void fill_foreign(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_foreign *f = (const struct ct_foreign *)ev->rec;

	(void)o;
	slice_in_thread(s, ev->rec, f->depth);
	s->name = (const char *)&f->words[f->nwords];
	s->name_len = f->name_len;
	s->category = s->name + f->name_len;
	s->category_len = f->domain_len;
}

static void fill_work(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;

	s->no_time = w->h.flags & CT_F_NO_TIME;
	s->device = w->device;
	s->stream = w->stream;
	if (ev->cause && ev->number)
		s->arrow = TIMELINE_TO;
	slice_name(s, w->h.kind == CT_KERNEL ? work_kernel(o, ev->kernel)
					     : work_text(ev->rec, s->text));
}

/* The thread's number; 0, and not that of its process, if the record has no thread. */
static void fill_overhead(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	(void)o;
	s->tid = ev->rec->tid;
	slice_name(s, work_text(ev->rec, s->text));
}

static void fill_marker(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_marker *m = (const struct ct_marker *)ev->rec;

	(void)o;
	s->loose = m->what == CT_MARKER_START_END;
	s->instant = m->what == CT_MARKER_MARK;
	s->name = m->text;
	s->name_len = m->text_len;
}

/* A range or a mark, whose category is its layer. */
static void fill_scope(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_scope *m = (const struct ct_scope *)ev->rec;

	(void)o;
	s->loose = m->flags & CT_SCOPE_ANY_THREAD;
	s->instant = m->kind == CT_SCOPE_MARK;
	s->category = m->text + m->text_len + m->domain_len + m->category_len;
	s->category_len = m->layer_len;
	s->name = s->text;
	s->name_len = about_scope(m, s->text);
}

/* How often a function was called whose calls have no slices, over the time that the numbers are
 * of. */
static void fill_muted(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_muted *m = (const struct ct_muted *)ev->rec;

	(void)o;
	s->name = m->text + m->domain_len;
	s->name_len = m->name_len;
}

static void fill_event(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_event *e = (const struct ct_event *)ev->rec;

	(void)o;
	s->device = e->device;
	s->start_ns = s->end_ns;
	slice_name(s, work_event(e->type));
}

/* What a thread waited for, or who got its CPU. */
static void fill_host(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_host_segment *h = (const struct ct_host_segment *)ev->rec;

	(void)o;
	s->tid = h->h.tid;
	slice_name(s, h->state == CT_HOST_BLOCKED ? host_reason(h->reason) : host_state(h->state));
}

static void fill_hole(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	(void)o;
	slice_name(s, hole_reason(((const struct ct_hole *)ev->rec)->reason));
}

static void fill_lost(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	(void)o, (void)ev;
	slice_name(s, "lost");
}

/* The name that the other outputs have too. */
static void fill_any(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	struct text name = { 0 };

	about_name(&name, o, ev);
	s->name = s->text;
	s->name_len = name.bad ? 0 : name.len < sizeof(s->text) ? name.len : sizeof(s->text) - 1;
	memcpy(s->text, name.s, s->name_len);
	s->text[s->name_len] = '\0';
	text_free(&name);
}

/* ---- the rows ---- */

const struct slice_track_row slice_tracks[SLICE_TRACKS] = {
#define T(id, of, name, stream, page, perfetto, parent, keeps) \
	[SLICE_##id] = { name, stream, perfetto, OF_##of, page, SLICE_##parent, KEEPS_##keeps },
#include "tracks.def"
#undef T
};

static const struct slice_row slice_rows[CT_KIND_END] = {
#define S(kind, track, category, kineto, page, flags, fill) \
	[CT_##kind] = { category, kineto, SLICE_##track, PAGE_##page, flags, fill_##fill },
#include "slices.def"
#undef S
};

const struct slice_row *slice_row(uint16_t kind)
{
	return kind < CT_KIND_END && slice_rows[kind].fill ? &slice_rows[kind] : NULL;
}

enum slice_track slice_track(const struct event *ev)
{
	if (ev->rec->kind == CT_SCOPE_END)
		switch (((const struct ct_scope *)ev->rec)->kind) {
		case CT_SCOPE_COLLECTIVE:
		case CT_SCOPE_COMMUNICATOR: return SLICE_COLLECTIVES;
		case CT_SCOPE_OPERATOR: return SLICE_OPERATORS;
		case CT_SCOPE_GEMM: return SLICE_PRODUCTS;
		}
	return (enum slice_track)slice_rows[ev->rec->kind].track;
}

bool slice_is_shown(const struct ct_hdr *h)
{
	switch (h->kind) {
	case CT_CALL: return !(h->flags & (CT_F_PENDING | CT_F_BEFORE | CT_F_HIDDEN));
	case CT_FOREIGN:
		return ((const struct ct_foreign *)h)->kind == CT_CALL &&
		       !(h->flags & (CT_F_PENDING | CT_F_BEFORE | CT_F_HIDDEN));
	case CT_SCOPE_END: return !(h->flags & CT_F_HIDDEN);
	case CT_HOLE: return h->flags & CT_F_FINAL;
	case CT_HOST_SEGMENT: return ((const struct ct_host_segment *)h)->state < CT_HOST_SAMPLED;
	}
	return true;
}

void slice_of(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	const struct slice_row *row = slice_row(h->kind);

	memset(s, 0, offsetof(struct slice, text));
	if (!row || row->flags & SLICE_PAGE || !slice_is_shown(h))
		return;
	s->start_ns = h->start_ns;
	s->end_ns = h->end_ns;
	s->tid = h->tid ? h->tid : h->pid;
	s->track = slice_track(ev);
	s->row = row->flags & SLICE_ROW;
	s->instant = row->flags & SLICE_INSTANT;
	if (row->category)
		slice_category(s, row->category);
	row->fill(s, o, ev);
}
