/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * html_holes.h - what was not seen, as the timeline page shows it: hatched stretches of time in a row of their own. A kind
 * of record that says such a thing is a row of the table in html_holes.c, of slice/slices.def and of the page's HOLES.
 */
#ifndef CT_HTML_HOLES_H
#define CT_HTML_HOLES_H

#include "../../event/event.h"
#include "../../util/text.h"

struct html_holes {
	/* kinds that had records of their own, with their own times, as bits: what a CT_HOLE says of the same is left out */
	uint32_t own;
};

/* Whether a record that says what was not seen is shown. It is not if other records have said
 * the same already. */
bool html_holes_has(struct html_holes *, const struct ct_hdr *);

struct html_hole {
	uint64_t number; /* number of records, calls, processes or others that were missed; 0: not known */
	bool all; /* while it lasts, any record of its process (without one: of all) may be missing */
};
/* Writes the name. Only for records that are shown as holes. */
struct html_hole html_holes_say(struct text *name, const struct event *);

#endif
