/* SPDX-License-Identifier: BSD-2-Clause */
/* html_parts.h - inside the html sink: what is binary in the page, what was not seen, and the details of a record. */
#ifndef CT_HTML_PARTS_H
#define CT_HTML_PARTS_H

#include "../../event/event.h"
#include "../../flow/sink.h"
#include "../../util/io/out.h"
#include "../../util/text.h"

/* ---- binary data for the page's script (html_pack.c): numbers and texts, deflated, as base64 in a <script> element ---- */

/* Appends a number, 7 bits in each byte, the lowest first; the highest bit says that more bytes
 * follow. */
void pack_u64(struct text *, uint64_t);
/* The same for a number that may be negative, in the order 0, -1, 1, -2, ... */
void pack_i64(struct text *, int64_t);
void pack_f64(struct text *, double); /* 8 bytes, little end first */

/* Writes <script type="text/plain" class="CLASS" data-first="FIRST">BASE64</script>. Returns 0,
 * -ENOMEM, -E2BIG or the output's. */
int pack_write(struct out *, const char *class, uint64_t first, const void *data, size_t len);

/* ---- what was not seen (html_holes.c): hatched stretches of time in a row of their own ---- */

struct html_holes {
	/* kinds that had records of their own, with their own times, as bits: what a CT_HOLE says of the same is left out */
	uint32_t own;
};

/* Is the record, which says what was not seen, shown? Not if others said the same already. */
bool html_holes_has(struct html_holes *, const struct ct_hdr *);

struct html_hole {
	uint64_t number; /* of records, calls, processes or other things that were missed; 0: not known */
	bool all; /* while it lasts, any record of its process (without one: of all) may be missing */
};
/* Writes the name. Only for records that are shown as holes. */
struct html_hole html_holes_say(struct text *name, const struct event *);

/* ---- what the page shows when a record is clicked (html_details.c) ---- */

/* Appends lines of a key, a tab and a value. stack: the page's number of the stack's text; below
 * 0: none. */
void html_details(struct text *, const struct sink_opts *, const struct event *, int64_t stack);

#endif
