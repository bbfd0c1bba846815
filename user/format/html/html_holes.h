/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * html_holes.h - what was not seen, as the timeline page shows it: hatched stretches of time in a row of their own. A kind
 * of record that says such a thing is a row of the table in html_holes.c, a kind of tracks.c and a row of the page's HOLES.
 */
#ifndef CT_HTML_HOLES_H
#define CT_HTML_HOLES_H

#include "../../event/event.h"
#include "../../util/text.h"

/* The numbers that the page uses for them, among those of html.c. */
enum { HTML_LOST = 11, HTML_MUTED = 13, HTML_UNPROBED = 14 };

/* Returns -1 if the record is not of such a kind. */
int html_hole_kind(const struct ct_hdr *);
/* Writes the name, and returns how many records, calls or processes were missed. Only for these kinds. */
uint64_t html_hole(struct text *name, const struct event *);

#endif
