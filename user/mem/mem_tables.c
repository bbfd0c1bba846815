/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_tables.c - see mem_tables.h. docs/memory.md says what the members of JSON are. */
#include <stdio.h>

#include "../util/units.h"
#include "mem_tables.h"

/* What a table has. */
#define HAS_DEVICE 1u
#define HAS_KIND 2u
#define HAS_SITE 4u
#define HAS_LIBRARY 8u
#define LEAKS 16u
#define WATCH 32u

#define COLUMN(name, value)                                                    \
	static struct cell name(const void *row, const void *ctx)              \
	{                                                                      \
		const struct ledger_row *r = ((const struct mem_row *)row)->r; \
		const struct mem_table *t = ctx;                               \
                                                                               \
		(void)t;                                                       \
		return value;                                                  \
	}

static struct cell device_cell(uint16_t device)
{
	return device == LIVE_NO_DEVICE ? cell_string(NULL) : cell_number(device);
}

COLUMN(mem_where, cell_string(mem_where_name((enum account_where)r->where)))
COLUMN(mem_device, device_cell(r->device))
COLUMN(mem_kind, cell_string(api_memory_name((enum api_memory_kind)r->kind)))
COLUMN(mem_site, cell_number(r->site))
COLUMN(mem_library, cell_string(r->library))
COLUMN(mem_bytes, cell_number(r->bytes))
COLUMN(mem_n, cell_number(r->n))
COLUMN(mem_until, cell_string(mem_end_name((enum ledger_end)r->end)))
COLUMN(mem_first_taken, cell_number(mem_since(t->a, r->first_ns)))
COLUMN(mem_peak, cell_number(r->peak))
COLUMN(mem_peak_at, cell_number(r->peak ? mem_since(t->a, r->peak_ns) : 0))
COLUMN(mem_taken, cell_number(r->taken))
COLUMN(mem_allocations, cell_number(r->taken_n))
COLUMN(mem_frees, cell_number(r->freed_n))
COLUMN(mem_before, cell_number(r->marked))

static void put_process(struct json *j, const void *row, const void *ctx)
{
	const struct ledger_row *r = ((const struct mem_row *)row)->r;
	const struct account_process *p =
		&((const struct mem_table *)ctx)->l->account.processes[r->process];

	if (r->by == LEDGER_BY_ALL) {
		json_put_null(j, "pid");
		return;
	}
	json_put_u64(j, "pid", p->shown_pid);
	json_put_str(j, "process", p->comm);
}

static void put_addresses(struct json *j, const void *row, const void *ctx)
{
	const struct ledger_row *r = ((const struct mem_row *)row)->r;

	(void)ctx;
	json_open_array(j, "addresses");
	for (uint64_t i = 0; i < r->n && i < ARRAY_LEN(r->addresses) && r->addresses[i]; i++)
		json_put_hex(j, NULL, r->addresses[i]);
	json_end(j);
}

static const char *show_growth(const void *row, const void *ctx, char buf[TABLE_CELL])
{
	const struct ledger_row *r = ((const struct mem_row *)row)->r;
	bool less = r->bytes < r->marked;

	(void)ctx;
	*buf = less ? '-' : '+';
	print_bytes(buf + 1, TABLE_CELL - 1,
		    (double)(less ? r->marked - r->bytes : r->bytes - r->marked));
	return buf;
}

/* clang-format off */
static const struct table_column columns[] = {
	{ .text = 9, .write = mem_row_label, .put = put_process },
	{ .key = "where", .get = mem_where },
	{ .key = "device", .needs = HAS_DEVICE, .get = mem_device },
	{ .key = "kind", .needs = HAS_KIND, .get = mem_kind },
	{ .key = "site", .needs = HAS_SITE, .get = mem_site },
	{ .key = "library", .needs = HAS_LIBRARY, .get = mem_library },
	{ .key = "bytes", .needs = LEAKS, .get = mem_bytes },
	{ .key = "allocations", .needs = LEAKS, .get = mem_n },
	{ .key = "until", .needs = LEAKS, .get = mem_until },
	{ .key = "taken_ns", .needs = LEAKS, .get = mem_first_taken },
	{ .needs = LEAKS, .put = put_addresses },
	{ .key = "in_use_bytes", .head = "In use", .text = 1, .width = 10, .unit = TABLE_BYTES, .unless = LEAKS, .get = mem_bytes },
	{ .key = "live", .unless = LEAKS | WATCH, .get = mem_n },
	{ .key = "peak_bytes", .head = "Peak", .text = 2, .width = 10, .unit = TABLE_BYTES, .unless = LEAKS, .get = mem_peak },
	{ .key = "peak_ns", .unless = LEAKS | WATCH, .get = mem_peak_at },
	{ .key = "taken_bytes", .head = "Taken", .text = 3, .width = 10, .unit = TABLE_BYTES, .unless = LEAKS | WATCH, .get = mem_taken },
	{ .key = "allocations", .head = "Allocs", .text = 4, .width = 8, .unless = LEAKS | WATCH, .get = mem_allocations },
	{ .key = "frees", .head = "Frees", .text = 5, .width = 8, .unless = LEAKS | WATCH, .get = mem_frees },
	{ .head = "Grew", .text = 6, .width = 11, .needs = WATCH, .show = show_growth },
	{ .key = "before_bytes", .needs = WATCH, .get = mem_before },
};
/* clang-format on */

struct table mem_table_of(unsigned int by, const struct mem_table *about)
{
	static const uint8_t has[] = { [LEDGER_BY_DEVICE] = HAS_DEVICE,
				       [LEDGER_BY_KIND] = HAS_KIND,
				       [LEDGER_BY_STACK] = HAS_SITE,
				       [LEDGER_BY_LIBRARY] = HAS_LIBRARY,
				       [LEDGER_LEAK] = HAS_DEVICE | HAS_KIND | HAS_SITE | LEAKS };

	return (struct table)TABLE_OF(columns, by == MEM_WATCH ? WATCH : has[by], about);
}

/* ---- blocks ---- */

#define BY_SITE 1u

#define BLOCKS_COLUMN(name, value)                                \
	static struct cell name(const void *row, const void *ctx) \
	{                                                         \
		const struct mem_blocks_row *b = row;             \
                                                                  \
		(void)ctx;                                        \
		return value;                                     \
	}

BLOCKS_COLUMN(blocks_site, cell_number(b->r->of))
BLOCKS_COLUMN(blocks_of_operator, cell_string(blocks_operator(&b->l->blocks, b->r->of)))
BLOCKS_COLUMN(blocks_peak, cell_number(b->at_peak))
BLOCKS_COLUMN(blocks_n_at_peak, cell_number(b->n_at_peak))
BLOCKS_COLUMN(blocks_bytes, cell_number(b->r->bytes))
BLOCKS_COLUMN(blocks_live, cell_number(b->r->n))
BLOCKS_COLUMN(blocks_taken, cell_number(b->r->taken))
BLOCKS_COLUMN(blocks_allocations, cell_number(b->r->taken_n))
BLOCKS_COLUMN(blocks_frees, cell_number(b->r->freed_n))
BLOCKS_COLUMN(blocks_label, cell_bytes(b->label->s, b->label->len, true))

/* clang-format off */
static const struct table_column blocks_columns[] = {
	{ .key = "site", .needs = BY_SITE, .get = blocks_site },
	{ .key = "operator", .unless = BY_SITE, .get = blocks_of_operator },
	{ .key = "at_peak_bytes", .head = "At peak", .text = 1, .width = 10, .unit = TABLE_BYTES, .get = blocks_peak },
	{ .key = "blocks_at_peak", .head = "Blocks", .text = 2, .width = 8, .get = blocks_n_at_peak },
	{ .key = "in_use_bytes", .head = "In use", .text = 3, .width = 10, .unit = TABLE_BYTES, .get = blocks_bytes },
	{ .key = "live", .get = blocks_live },
	{ .key = "taken_bytes", .head = "Taken", .text = 4, .width = 10, .unit = TABLE_BYTES, .get = blocks_taken },
	{ .key = "allocations", .head = "Allocs", .text = 5, .width = 8, .get = blocks_allocations },
	{ .key = "frees", .head = "Frees", .text = 6, .width = 8, .get = blocks_frees },
	{ .head = "Call site", .text = 7, .needs = BY_SITE, .get = blocks_label },
	{ .head = "Operator", .text = 7, .unless = BY_SITE, .get = blocks_label },
};
/* clang-format on */

struct table mem_blocks_table(enum blocks_by by)
{
	return (struct table)TABLE_OF(blocks_columns, by == BLOCKS_BY_STACK ? BY_SITE : 0, NULL);
}
