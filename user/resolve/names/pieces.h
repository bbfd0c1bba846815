/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pieces.h - inside the resolve room: puts a long string together again, of which a call's
 * record has the beginning and CT_MORE records that came before it have the rest.
 */
#ifndef CT_PIECES_H
#define CT_PIECES_H

#include "../../util/types.h"

struct pieces;
struct pieces *pieces_open(void); /* NULL: no memory */
void pieces_close(struct pieces *);
/* Records were lost: what is there may belong to a call that is never coming. */
void pieces_drop(struct pieces *);
/* One piece. A piece for which there is no memory is as one that got lost. */
void pieces_add(struct pieces *, const struct ct_more *);
/*
 * The string of read `read` of the call, of which the call's record has `head`. Returns all that
 * is there without a gap, at most CT_NAME_MAX bytes, valid until the next call; *cut tells
 * whether it is the whole. The pieces are used up.
 */
const char *pieces_join(struct pieces *, const struct ct_call *, uint8_t read, const char *head,
			uint32_t *len, bool *cut);

#endif
