/* SPDX-License-Identifier: BSD-2-Clause */
/* html_details.h - the details of a record that the timeline page shows when it is clicked, in
 * addition to its name, place and time. */
#ifndef CT_HTML_DETAILS_H
#define CT_HTML_DETAILS_H

#include "../../flow/sink.h"
#include "../../util/text.h"

/* Appends lines of a key, a tab and a value. stack: the page's number of the stack's text; below
 * 0: none. */
void html_details(struct text *, const struct sink_opts *, const struct event *, int64_t stack);

#endif
