/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger_rows.c - see ledger_rows.h. */
#include <errno.h>
#include <stdlib.h>

#include "ledger_rows.h"
#include "../util/table/array.h"

#define ROWS_MAX (1u << 18)

/* Where a row is. */
struct row_place {
	struct row_key {
		uint64_t library;
		uint32_t process, site;
		uint16_t device;
		uint8_t by, where, kind, end, pad[2];
	} key;
	uint32_t at;
};

int ledger_index_open(struct ledger *l)
{
	struct ledger_index *x = calloc(1, sizeof(*x));

	l->index = x;
	if (!x)
		return -ENOMEM;
	hash_map_open_of(&x->rows, struct row_place, key,
			 l->opts.rows_max && l->opts.rows_max < ROWS_MAX ? l->opts.rows_max
									 : ROWS_MAX);
	return 0;
}

void ledger_index_close(struct ledger *l)
{
	if (!l->index)
		return;
	hash_map_close(&l->index->rows);
	free(l->index);
}

/* ---- rows ---- */

static struct row_key ledger_rows_key_of(const struct ledger_row *r)
{
	return (struct row_key){ .library = (uintptr_t)r->library,
				 .process = r->process,
				 .site = r->site,
				 .device = r->device,
				 .by = r->by,
				 .where = r->where,
				 .kind = r->kind,
				 .end = r->end };
}

const struct ledger_row *ledger_row_find(const struct ledger *l, const struct ledger_row *key)
{
	const struct row_key k = ledger_rows_key_of(key);
	const struct row_place *p = hash_map_look(&l->index->rows, &k);

	return p ? &l->rows[p->at] : NULL;
}

struct ledger_row *ledger_row(struct ledger *l, const struct ledger_row *key)
{
	const struct row_key k = ledger_rows_key_of(key);
	struct row_place *p = hash_map_look(&l->index->rows, &k);

	if (p)
		return &l->rows[p->at];
	p = array_room(l->rows, l->nrows) ? hash_map_get(&l->index->rows, &k, &(bool){ false })
					  : NULL;
	if (!p) {
		l->no_row++;
		return NULL;
	}
	p->at = l->nrows;
	l->rows[l->nrows] = *key;
	return &l->rows[l->nrows++];
}

struct ledger_freed *ledger_freed_at(struct ledger *l, uint32_t process, uint8_t space,
				     uint64_t address)
{
	/* the same in each run: of two that have the same place, only the later one is remembered */
	uint64_t h = (address ^ 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;

	h = (h ^ h >> 32 ^ ((uint64_t)process << 8 | space)) * 0xff51afd7ed558ccdULL;
	return &l->index->freed[(h ^ h >> 32) & (FREED_MAX - 1)];
}
