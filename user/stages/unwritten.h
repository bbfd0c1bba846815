/* SPDX-License-Identifier: BSD-2-Clause */
/* unwritten.h - records that would have made a row, and whose process has no file: how many of each process. */
#ifndef CT_UNWRITTEN_H
#define CT_UNWRITTEN_H

#include "../event/event.h"
#include "../util/table/hash_map.h"

struct unwritten {
	struct hash_map rows; /* of struct unwritten_row; zeroed: there are none */
};

void unwritten_close(struct unwritten *);
/* Counts a call or a piece of device work. Returns 0 or -ENOMEM. */
int unwritten_add(struct unwritten *, const struct event *);
/* States what has changed since it was stated, as CT_HOLE. Returns 0, or what `show` returned. */
int unwritten_state(struct unwritten *, int (*show)(void *ctx, const struct ct_hdr *), void *ctx);

#endif
