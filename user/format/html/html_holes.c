/* SPDX-License-Identifier: BSD-2-Clause */
/* html_holes.c - see html_holes.h. */
#include "../../event/muted.h"
#include "../about.h"
#include "html_holes.h"

static uint64_t lost(struct text *name, const struct event *ev)
{
	const struct ct_lost *l = (const struct ct_lost *)ev->rec;

	text_str(name, "records lost: ");
	text_str(name, loss_text((enum ct_loss)l->cause));
	return l->count;
}

static uint64_t muted(struct text *name, const struct event *ev)
{
	const struct ct_muted *m = (const struct ct_muted *)ev->rec;
	struct muted_sum sum = { 0 };

	text_str(name, "counted only: ");
	about_text(name, m->text + m->domain_len, m->name_len);
	muted_add(&sum, m);
	return muted_calls(&sum);
}

static uint64_t unprobed(struct text *name, const struct event *ev)
{
	const struct ct_unprobed *u = (const struct ct_unprobed *)ev->rec;

	text_str(name, "ran before its probes");
	if (*u->comm) {
		text_str(name, ": ");
		about_text(name, u->comm, sizeof(u->comm));
	}
	return u->processes;
}

static const struct {
	uint16_t kind;
	int as;
	uint64_t (*say)(struct text *name, const struct event *);
} holes[] = {
	{ CT_LOST, HTML_LOST, lost },
	{ CT_MUTED, HTML_MUTED, muted },
	{ CT_UNPROBED, HTML_UNPROBED, unprobed },
};

int html_hole_kind(const struct ct_hdr *h)
{
	for (size_t i = 0; i < ARRAY_LEN(holes); i++)
		if (holes[i].kind == h->kind)
			return holes[i].as;
	return -1;
}

uint64_t html_hole(struct text *name, const struct event *ev)
{
	for (size_t i = 0; i < ARRAY_LEN(holes); i++)
		if (holes[i].kind == ev->rec->kind)
			return holes[i].say(name, ev);
	return 0;
}
