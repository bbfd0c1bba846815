/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scope_sums.h - what calls and device work were for: sums by the names of the scopes that they are
 * inside of, for `stat --by range` and its like.
 *
 * Exclusive: each call and each piece of device work counts for the innermost scope of the asked
 * kinds around it, for the row "none" if there is no such scope, and for "unknown" if that is not
 * known. So the rows add up to all there is. Inclusive: it counts for each scope around it.
 * Knows no format beyond text and JSON.
 */
#ifndef CT_SCOPE_SUMS_H
#define CT_SCOPE_SUMS_H

#include "../event/event.h"
#include "../util/io/out.h"

struct scope_sums;
/* kinds: bits 1 << enum ct_scope_kind. NULL: no memory. */
struct scope_sums *scope_sums_open(uint32_t kinds);
void scope_sums_close(struct scope_sums *);
/* Returns 1 if the event was counted, 0 if it is of no kind that is counted, or -ENOMEM. */
int scope_sums_event(struct scope_sums *, const struct event *);
/* Calls and device work for which there was no row, because there are too many names. */
uint64_t scope_sums_no_room(const struct scope_sums *);
/* word: what the rows are, "range". most: rows, of the text; 0: all. */
void scope_sums_text(struct scope_sums *, struct out *, const char *word, uint64_t most);
void scope_sums_json(struct scope_sums *, struct out *, const char *word);

#endif
