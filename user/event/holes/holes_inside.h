/* SPDX-License-Identifier: BSD-2-Clause */
/* holes_inside.h - what holes.c and holes_text.c share: the state. */
#ifndef CT_HOLES_INSIDE_H
#define CT_HOLES_INSIDE_H

#include "../../util/table/hash_map.h"
#include "holes.h"

struct holes {
	struct holes_row *rows;
	size_t n, nopen; /* nopen: rows that go on */
	struct hash_map index, groups;
	uint64_t homeless; /* rows for which there was no place, and no other row to join them with */
	struct unprobed_sum unprobed;
};

/* When the row begins; 0: not known. */
static inline uint64_t holes_begin(const struct holes_row *r)
{
	return r->start_ns ? r->start_ns : r->count_from;
}

#endif
