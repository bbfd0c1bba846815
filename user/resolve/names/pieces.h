/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pieces.h - inside the resolve room: joins the parts of a long string. A call's record has its
 * beginning, and CT_MORE records that came before the call's record have the rest.
 */
#ifndef CT_PIECES_H
#define CT_PIECES_H

#include "../../util/types.h"
#include "../../../wire/cudatrace.h"

struct pieces;
struct pieces *pieces_open(void); /* NULL: no memory */
void pieces_close(struct pieces *);
/* Call this after records were lost: what is kept may belong to a call whose record never comes. */
void pieces_drop(struct pieces *);
/* Adds one piece. If there is no memory for it, it counts as lost. */
void pieces_add(struct pieces *, const struct ct_more *);
/*
 * Joins the string of read `read` of the call; the call's record has its beginning, `head`. Returns
 * the string up to the first gap, at most CT_NAME_MAX bytes, valid until the next call. *cut: the
 * string is not complete. The pieces are dropped.
 */
const char *pieces_join(struct pieces *, const struct ct_call *, uint8_t read, const char *head,
			uint32_t *len, bool *cut);

#endif
