/* SPDX-License-Identifier: BSD-2-Clause */
/* stat_watch.c - see stat_print.h. Knows no source and no table. */
#include "stat_print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/array.h"

#define ENDED_MAX 65536 /* counts that are kept; those of later processes are added up to no more */

struct ended {
	struct ct_hdr *rec; /* a copy: it has a tail */
	struct process proc;
};

struct stat_watch {
	uint64_t interval_ns, last_ns;
	struct ended *ended;
	uint32_t n;
	bool reading, ready, shown;
};

struct stat_watch *stat_watch_open(uint64_t interval_ns)
{
	struct stat_watch *w = calloc(1, sizeof(*w));

	if (w)
		w->interval_ns = interval_ns;
	return w;
}

void stat_watch_close(struct stat_watch *w)
{
	for (uint32_t i = 0; w && i < w->n; i++)
		free(w->ended[i].rec);
	if (w)
		free(w->ended);
	free(w);
}

int stat_watch_event(struct stat_watch *w, const struct event *ev)
{
	struct ct_hdr *copy;

	if (ev->rec->kind != CT_CALL_COUNT)
		return 0;
	w->ready = true;
	if (!(ev->rec->flags & CT_F_LAST) || w->n == ENDED_MAX)
		return 0;
	copy = array_room(w->ended, w->n) ? malloc(ev->rec->size) : NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, ev->rec, ev->rec->size);
	w->ended[w->n++] = (struct ended){ copy, *ev->proc };
	return 0;
}

bool stat_watch_due(struct stat_watch *w, uint64_t now_ns)
{
	if (!w->last_ns)
		w->last_ns = now_ns;
	/* reading the counts may bring the clock here again */
	if (w->reading || now_ns - w->last_ns < w->interval_ns)
		return false;
	w->last_ns = now_ns;
	w->reading = true;
	w->ready = false;
	return true;
}

bool stat_watch_ready(struct stat_watch *w)
{
	return w->ready;
}

void stat_watch_head(struct stat_watch *w, struct out *o)
{
	/* to the upper left, and nothing below it */
	if (o->is_tty)
		out_str(o, "\033[H\033[2J");
	else if (w->shown)
		out_char(o, '\n');
	w->shown = true;
}

int stat_watch_again(struct stat_watch *w, struct book *book)
{
	int err = 0;

	w->reading = false;
	for (uint32_t i = 0; i < w->n && !err; i++) {
		struct event ev = { .rec = w->ended[i].rec, .proc = &w->ended[i].proc };
		int n = book_event(book, &ev);

		err = n < 0 ? n : 0;
	}
	return err;
}
