/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger_rows.h - inside the ledger: its rows, and what was freed lately. */
#ifndef CT_LEDGER_ROWS_H
#define CT_LEDGER_ROWS_H

#include "ledger.h"

/* What was freed recently, by address: it shows that memory is freed twice. */
#define FREED_MAX (1u << 15)
struct ledger_freed {
	uint64_t address; /* 0: none */
	uint32_t process, taken_site, freed_site;
	uint8_t space, kind;
};

struct ledger_index {
	struct hash_map rows;
	uint32_t site; /* of the record that is being handled */
	struct ledger_freed freed[FREED_MAX];
};

int ledger_index_open(struct ledger *);
void ledger_index_close(struct ledger *);

/* Finds or makes a row by its key (by, where, kind, end, device, process, site, library). NULL:
 * no room, which is counted. */
struct ledger_row *ledger_row(struct ledger *, const struct ledger_row *key);
const struct ledger_row *ledger_row_find(const struct ledger *, const struct ledger_row *key);
struct ledger_freed *ledger_freed_at(struct ledger *, uint32_t process, uint8_t space,
				     uint64_t address);

/* Notes a free that went wrong. kind: kind of the memory; sites: where it was taken and freed
 * before, 0: not known. */
void ledger_fault(struct ledger *, enum ledger_fault_what, const struct account_call *,
		  uint8_t kind, uint32_t taken_site, uint32_t freed_site);
/* An allocation that failed. */
void ledger_not_taken(struct ledger *, const struct account_call *, const struct api_memory *,
		      uint16_t device);

#endif
