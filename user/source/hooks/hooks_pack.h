/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_pack.h - records that wait, in a third of their size: of each only the words are kept in
 * which it differs from the one before. A loop that calls one function writes the same record again
 * and again but for its times. Knows no ring.
 */
#ifndef CT_HOOKS_PACK_H
#define CT_HOOKS_PACK_H

#include "../../event/event.h"

/* bytes of any record that comes from hooks */
#define HOOKS_RECORD_MAX (sizeof(struct ct_py_code) + CT_PY_NAME + CT_PY_FILE + CT_PY_TABLE)
#define HOOKS_PACK_WORDS 48 /* of a record; the rest of a longer one is kept as it is */
/* the most bytes that a record of `size` bytes takes */
#define HOOKS_PACKED_MAX(size) (sizeof(uint64_t) + (size))

/* The record before; zeroed at the begin of a run of records, on both sides. */
struct hooks_pack {
	uint64_t before[HOOKS_PACK_WORDS];
};

/* Packs the record that begins with *head (its size is a multiple of 8 and at most HOOKS_RECORD_MAX) and
 * goes on at `rest`, which others may write to meanwhile: each word is read once. Returns the bytes
 * written to `to`, a multiple of 8. */
size_t hooks_pack_put(struct hooks_pack *, void *to, const struct ct_hdr *head, const void *rest);
/* The next record; rec has room for HOOKS_RECORD_MAX bytes. Returns the bytes read of `from`. */
size_t hooks_pack_get(struct hooks_pack *, const void *from, void *rec);

#endif
