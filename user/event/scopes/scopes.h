/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scopes.h - calls of functions of layers become scopes: each gets its id, its parent, its name.
 *
 * Knows no layer by name: what a call says is a part of its function's row (enum api_layer). What
 * a program says is untrusted: what it opens and names is bounded, by process and in all.
 */
#ifndef CT_SCOPES_H
#define CT_SCOPES_H

#include "collectives.h"

struct scopes;
/* `out` takes CT_SCOPE_BEGIN and CT_SCOPE_END records. ask, which may be NULL, is as in collectives.h.
 * ctx is passed to both. NULL: no memory. */
struct scopes *scopes_open(emit_fn out, communicator_fn ask, void *ctx);
void scopes_close(struct scopes *);
/* Takes CT_LAYER_BEGIN and CT_LAYER_END; for CT_EXEC and CT_EXIT it ends what the process has open,
 * other records it ignores. Returns 0, or what `out` returned, or -ENOMEM. */
int scopes_record(struct scopes *, const struct ct_hdr *);
/* Writes the id of the innermost scope around a call into its record, in place of the number that
 * the source gave it. Returns the record to go on with: this one, or a copy that is valid until the
 * next call of a function of this file. */
const struct ct_hdr *scopes_around(struct scopes *, const struct ct_hdr *);
/* Ends all scopes that are still open, as unfinished. The trace has ended. Returns as above. */
int scopes_flush(struct scopes *, uint64_t now_ns);
/* Number of scopes that were not followed, because too many were open or named at a time. */
uint64_t scopes_dropped(const struct scopes *);

#endif
