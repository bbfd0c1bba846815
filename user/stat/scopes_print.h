/* SPDX-License-Identifier: BSD-2-Clause */
/* scopes_print.h - sums by scopes as text for people, and as JSON. */
#ifndef CT_SCOPES_PRINT_H
#define CT_SCOPES_PRINT_H

#include "../sums/scope_sums.h"
#include "../util/io/out.h"

/* word: what the rows are, "range". most: rows, of the text; 0: all. */
void scope_sums_text(struct scope_sums *, struct out *, const char *word, uint64_t most);
void scope_sums_json(struct scope_sums *, struct out *, const char *word);

#endif
