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
enum { HTML_LOST = 11, HTML_MUTED = 13, HTML_UNPROBED = 14, HTML_HOLE = 15 };

struct html_holes {
	/* kinds that had records of their own, with their own times, as bits: what a CT_HOLE says of the same is left out */
	uint32_t own;
};

/* Returns -1 if the record is not shown as a hole. */
int html_holes_kind(struct html_holes *, const struct ct_hdr *);

struct html_hole {
	uint64_t number; /* of records, calls, processes or other things that were missed; 0: not known */
	bool all; /* while it lasts, any record of its process (without one: of all) may be missing */
};
/* Writes the name. Only for records that are shown as holes. */
struct html_hole html_holes_say(struct text *name, const struct event *);

#endif
