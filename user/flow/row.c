/* SPDX-License-Identifier: BSD-2-Clause */
/* row.c - see row.h. */
#include "row.h"

/* A row for which there is no memory is written here. Nobody reads it. */
static char nowhere[ROW_ROOM];

void row_begin_text(struct row *w, struct text *t)
{
	char *p = t->bad ? NULL : text_room(t, ROW_ROOM);

	w->out = NULL;
	w->text = t;
	w->p = w->begin = p ? p : nowhere;
	w->end = w->p + ROW_ROOM;
}
