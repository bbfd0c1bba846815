/* SPDX-License-Identifier: BSD-2-Clause */
/* slice.c - see slice.h. */
#include <stddef.h>
#include <string.h>

#include "../../event/hole_words.h"
#include "../../event/kinds.h"
#include "work_text.h"
#include "slice.h"

_Static_assert(sizeof(((struct slice *)0)->text) >= WORK_TEXT_MAX, "room for device work's names");

static void called(struct slice *s, const char *category, const char *name)
{
	s->category = category;
	s->category_len = strlen(category);
	s->name = name;
	s->name_len = strlen(name);
}

/* A call comes again when it has returned; for one that began before the trace, the time is not
 * known. */
static bool is_whole(const struct ct_hdr *h)
{
	return !(h->flags & (CT_F_PENDING | CT_F_BEFORE | CT_F_HIDDEN));
}

static void on_thread(struct slice *s, const struct ct_hdr *h)
{
	s->track = SLICE_THREAD;
	if (!(h->flags & CT_F_NO_RETURN))
		return;
	s->instant = true;
	s->end_ns = s->start_ns;
}

static void of_call(struct slice *s, const struct event *ev)
{
	const struct api_func *f = &api_funcs[((const struct ct_call *)ev->rec)->func];

	if (!is_whole(ev->rec))
		return;
	on_thread(s, ev->rec);
	s->row = true;
	called(s, api_domain_name(f->domain), f->name);
}

/* A stored call of a function that this version does not know: its name and its time. */
static void of_foreign(struct slice *s, const struct event *ev)
{
	const struct ct_foreign *f = (const struct ct_foreign *)ev->rec;

	if (f->kind != CT_CALL || !is_whole(ev->rec))
		return;
	on_thread(s, ev->rec);
	s->name = (const char *)&f->words[f->nwords];
	s->name_len = f->name_len;
	s->category = s->name + f->name_len;
	s->category_len = f->domain_len;
}

static void of_work(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;

	s->no_time = w->h.flags & CT_F_NO_TIME;
	s->row = true;
	s->device = w->device;
	s->stream = w->stream;
	s->instant = w->h.kind == CT_MEMORY;
	s->track = w->h.kind == CT_SYNC	     ? SLICE_WAITS
		   : w->h.kind == CT_MEMORY  ? SLICE_MEMORY
		   : w->h.kind == CT_MANAGED ? SLICE_MANAGED
					     : SLICE_STREAM;
	called(s, "device",
	       w->h.kind == CT_KERNEL ? work_kernel(o, ev->kernel) : work_text(ev->rec, s->text));
}

static void of_marker(struct slice *s, const struct ct_marker *m)
{
	s->track = m->what == CT_MARKER_START_END ? SLICE_SPANS : SLICE_RANGES;
	s->instant = m->what == CT_MARKER_MARK;
	called(s, "nvtx", "");
	s->name = m->text;
	s->name_len = m->text_len;
}

/* A range or a mark, whose category is its layer. */
static void of_scope(struct slice *s, const struct ct_scope *m)
{
	if (m->h.flags & CT_F_HIDDEN)
		return;
	s->track = m->flags & CT_SCOPE_ANY_THREAD ? SLICE_SPANS : SLICE_RANGES;
	s->instant = m->kind == CT_SCOPE_MARK;
	s->row = true;
	s->category = m->text + m->text_len + m->domain_len + m->category_len;
	s->category_len = m->layer_len;
	s->name = s->text;
	s->name_len = about_scope(m, s->text);
}

/* How often a function was called whose calls have no slices, over the time that the numbers are
 * of. */
static void of_muted(struct slice *s, const struct ct_muted *m)
{
	s->track = SLICE_MUTED;
	called(s, "muted", "");
	s->name = m->text + m->domain_len;
	s->name_len = m->name_len;
}

static void of_event(struct slice *s, const struct ct_event *e)
{
	s->track = SLICE_EVENTS;
	s->device = e->device;
	s->instant = true;
	s->start_ns = s->end_ns;
	called(s, "event", work_event(e->type));
}

void slice_of(struct slice *s, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	memset(s, 0, offsetof(struct slice, text));
	s->start_ns = h->start_ns;
	s->end_ns = h->end_ns;
	s->tid = h->tid ? h->tid : h->pid;
	switch (h->kind) {
	case CT_CALL: of_call(s, ev); break;
	case CT_FOREIGN: of_foreign(s, ev); break;
	case CT_KERNEL:
	case CT_COPY:
	case CT_SET:
	case CT_SYNC:
	case CT_GRAPH:
	case CT_MEMORY:
	case CT_MANAGED: of_work(s, o, ev); break;
	case CT_OVERHEAD:
		s->track = SLICE_OVERHEAD;
		called(s, "overhead", work_text(h, s->text));
		break;
	case CT_MARKER: of_marker(s, (const struct ct_marker *)h); break;
	case CT_SCOPE_END: of_scope(s, (const struct ct_scope *)h); break;
	case CT_MUTED: of_muted(s, (const struct ct_muted *)h); break;
	case CT_EVENT: of_event(s, (const struct ct_event *)h); break;
	case CT_HOLE:
		if (!(h->flags & CT_F_FINAL))
			break;
		s->track = SLICE_LOST;
		called(s, "not seen", hole_reason(((const struct ct_hole *)h)->reason));
		break;
	case CT_LOST:
		s->track = SLICE_LOST;
		called(s, "lost", "lost");
		break;
	}
}
