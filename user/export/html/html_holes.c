/* SPDX-License-Identifier: BSD-2-Clause */
/* html_holes.c - see html_holes.h. */
#include "../../event/hole_words.h"
#include "../../event/muted.h"
#include "../../flow/about.h"
#include "html_holes.h"

static struct html_hole hole_of_lost(struct text *name, const struct event *ev)
{
	const struct ct_lost *l = (const struct ct_lost *)ev->rec;

	text_str(name, "records lost: ");
	text_str(name, loss_text((enum ct_loss)l->cause));
	return (struct html_hole){ .number = l->count, .all = true };
}

static struct html_hole hole_of_muted(struct text *name, const struct event *ev)
{
	const struct ct_muted *m = (const struct ct_muted *)ev->rec;
	struct muted_sum sum = { 0 };

	text_str(name, "counted only: ");
	about_text(name, m->text + m->domain_len, m->name_len);
	muted_add(&sum, m);
	return (struct html_hole){ .number = muted_calls(&sum) };
}

/* The process is not among those of the trace: its start was not seen either. */
static struct html_hole hole_of_unprobed(struct text *name, const struct event *ev)
{
	const struct ct_unprobed *u = (const struct ct_unprobed *)ev->rec;

	text_str(name, "ran before its probes");
	if (*u->comm) {
		text_str(name, ": ");
		about_text(name, u->comm, sizeof(u->comm));
	}
	return (struct html_hole){ .number = u->processes };
}

/* Writes the name: "calls not seen: no hooks" */
static struct html_hole hole_of_hole(struct text *name, const struct event *ev)
{
	const struct ct_hole *h = (const struct ct_hole *)ev->rec;
	const struct hole_why *why = hole_why(h->reason);

	text_str(name, hole_layer(h->layer));
	text_str(name, " not seen: ");
	for (const char *p = why->word; *p; p++)
		text_mem(name, *p == '_' ? " " : p, 1);
	if (h->text_len) {
		text_str(name, ", ");
		about_text(name, h->text, h->text_len);
	}
	return (struct html_hole){ .number = h->count,
				   .all = why->flags & HOLES_ALL &&
					  (h->h.pid || why->per == HOLES_COUNT) };
}

/* reason: of a CT_HOLE that says the same at the end; 0: none. */
static const struct {
	uint16_t kind, reason;
	struct html_hole (*say)(struct text *name, const struct event *);
} holes[] = {
	{ CT_LOST, CT_HOLE_RECORDS, hole_of_lost },
	{ CT_MUTED, CT_HOLE_THROTTLED, hole_of_muted },
	{ CT_UNPROBED, CT_HOLE_UNPROBED, hole_of_unprobed },
	{ CT_HOLE, 0, hole_of_hole },
};

/* Whether it is a row from the end of the trace, about something that had no records of its own. */
static bool is_news(const struct html_holes *t, const struct ct_hole *h)
{
	for (size_t i = 0; i < ARRAY_LEN(holes); i++)
		if (t->own & 1u << i && holes[i].reason == h->reason)
			return false;
	return h->h.flags & CT_F_FINAL;
}

bool html_holes_has(struct html_holes *t, const struct ct_hdr *h)
{
	for (size_t i = 0; i < ARRAY_LEN(holes); i++) {
		if (holes[i].kind != h->kind)
			continue;
		if (h->kind == CT_HOLE && !is_news(t, (const struct ct_hole *)h))
			return false;
		if (holes[i].reason)
			t->own |= 1u << i;
		return true;
	}
	return false;
}

struct html_hole html_holes_say(struct text *name, const struct event *ev)
{
	for (size_t i = 0; i < ARRAY_LEN(holes); i++)
		if (holes[i].kind == ev->rec->kind)
			return holes[i].say(name, ev);
	return (struct html_hole){ 0 };
}
