/* SPDX-License-Identifier: BSD-2-Clause */
/* batch.h - what top shows, as text for logs: blocks of lines, or JSON, an object a line. */
#ifndef CT_TOP_BATCH_H
#define CT_TOP_BATCH_H

#include "../util/io/out.h"
#include "draw.h"

void batch_text(struct out *, struct top_screen *, struct top_model *, const struct draw_head *);
void batch_json(struct out *, struct top_screen *, struct top_model *, const struct draw_head *);

#endif
