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

#define COLUMN(name, value)                                                        \
	static struct cell name(const struct table_at *at)                         \
	{                                                                          \
		const struct ledger_row *r = ((const struct mem_row *)at->row)->r; \
		const struct mem_table *t = at->ctx;                               \
                                                                                   \
		(void)t;                                                           \
		return value;                                                      \
	}

static struct cell device_cell(uint16_t device)
{
	return device == LIVE_NO_DEVICE ? cell_string(NULL) : cell_number(device);
}

COLUMN(mem_where, cell_string(mem_where_name((enum account_where)r->where)))
COLUMN(mem_device, device_cell(r->device))
COLUMN(mem_kind, cell_string(api_memory_name((enum api_memory_kind)r->kind)))
COLUMN(mem_until, cell_string(mem_end_name((enum ledger_end)r->end)))
COLUMN(mem_first_taken, cell_number(mem_since(t->a, r->first_ns)))
COLUMN(mem_peak_at, cell_number(r->peak ? mem_since(t->a, r->peak_ns) : 0))

static void put_process(struct json *j, const struct table_at *at)
{
	const struct ledger_row *r = ((const struct mem_row *)at->row)->r;
	const struct account_process *p =
		&((const struct mem_table *)at->ctx)->l->account.processes[r->process];

	if (r->by == LEDGER_BY_ALL) {
		json_put_null(j, "pid");
		return;
	}
	json_put_u64(j, "pid", p->shown_pid);
	json_put_str(j, "process", p->comm);
}

static void put_addresses(struct json *j, const struct table_at *at)
{
	const struct ledger_row *r = ((const struct mem_row *)at->row)->r;

	json_open_array(j, "addresses");
	for (uint64_t i = 0; i < r->n && i < ARRAY_LEN(r->addresses) && r->addresses[i]; i++)
		json_put_hex(j, NULL, r->addresses[i]);
	json_end(j);
}

static const char *show_growth(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct ledger_row *r = ((const struct mem_row *)at->row)->r;
	bool less = r->bytes < r->marked;

	*buf = less ? '-' : '+';
	print_bytes(buf + 1, TABLE_CELL - 1,
		    (double)(less ? r->marked - r->bytes : r->bytes - r->marked));
	return buf;
}

#define OF(of) TABLE_THROUGH(struct mem_row, r, struct ledger_row, of)
/* clang-format off */
static const struct table_column columns[] = {
	{ .text = 9, .write = mem_row_label, .put = put_process },
	{ .key = "where", .get = mem_where },
	{ .key = "device", .needs = HAS_DEVICE, .get = mem_device },
	{ .key = "kind", .needs = HAS_KIND, .get = mem_kind },
	{ .key = "site", .needs = HAS_SITE, OF(site) },
	{ .key = "library", .needs = HAS_LIBRARY, OF(library) },
	{ .key = "bytes", .needs = LEAKS, OF(bytes) },
	{ .key = "allocations", .needs = LEAKS, OF(n) },
	{ .key = "until", .needs = LEAKS, .get = mem_until },
	{ .key = "taken_ns", .needs = LEAKS, .get = mem_first_taken },
	{ .needs = LEAKS, .put = put_addresses },
	{ .key = "in_use_bytes", .head = "In use", .text = 1, .width = 10, .unit = TABLE_BYTES, .unless = LEAKS, OF(bytes) },
	{ .key = "live", .unless = LEAKS | WATCH, OF(n) },
	{ .key = "peak_bytes", .head = "Peak", .text = 2, .width = 10, .unit = TABLE_BYTES, .unless = LEAKS, OF(peak) },
	{ .key = "peak_ns", .unless = LEAKS | WATCH, .get = mem_peak_at },
	{ .key = "taken_bytes", .head = "Taken", .text = 3, .width = 10, .unit = TABLE_BYTES, .unless = LEAKS | WATCH, OF(taken) },
	{ .key = "allocations", .head = "Allocs", .text = 4, .width = 8, .unless = LEAKS | WATCH, OF(taken_n) },
	{ .key = "frees", .head = "Frees", .text = 5, .width = 8, .unless = LEAKS | WATCH, OF(freed_n) },
	{ .head = "Grew", .text = 6, .width = 11, .needs = WATCH, .show = show_growth },
	{ .key = "before_bytes", .needs = WATCH, OF(marked) },
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

#define BLOCKS_COLUMN(name, value)                         \
	static struct cell name(const struct table_at *at) \
	{                                                  \
		const struct mem_blocks_row *b = at->row;  \
                                                           \
		return value;                              \
	}

BLOCKS_COLUMN(blocks_of_operator, cell_string(blocks_operator(&b->l->blocks, b->r->of)))
BLOCKS_COLUMN(blocks_label, cell_bytes(b->label->s, b->label->len, true))

#define BLOCKS(of) TABLE_THROUGH(struct mem_blocks_row, r, struct blocks_row, of)
/* clang-format off */
static const struct table_column blocks_columns[] = {
	{ .key = "site", .needs = BY_SITE, BLOCKS(of) },
	{ .key = "operator", .unless = BY_SITE, .get = blocks_of_operator },
	{ .key = "at_peak_bytes", .head = "At peak", .text = 1, .width = 10, .unit = TABLE_BYTES, TABLE_AT(struct mem_blocks_row, at_peak) },
	{ .key = "blocks_at_peak", .head = "Blocks", .text = 2, .width = 8, TABLE_AT(struct mem_blocks_row, n_at_peak) },
	{ .key = "in_use_bytes", .head = "In use", .text = 3, .width = 10, .unit = TABLE_BYTES, BLOCKS(bytes) },
	{ .key = "live", BLOCKS(n) },
	{ .key = "taken_bytes", .head = "Taken", .text = 4, .width = 10, .unit = TABLE_BYTES, BLOCKS(taken) },
	{ .key = "allocations", .head = "Allocs", .text = 5, .width = 8, BLOCKS(taken_n) },
	{ .key = "frees", .head = "Frees", .text = 6, .width = 8, BLOCKS(freed_n) },
	{ .head = "Call site", .text = 7, .needs = BY_SITE, .get = blocks_label },
	{ .head = "Operator", .text = 7, .unless = BY_SITE, .get = blocks_label },
};
/* clang-format on */

struct table mem_blocks_table(enum blocks_by by)
{
	return (struct table)TABLE_OF(blocks_columns, by == BLOCKS_BY_STACK ? BY_SITE : 0, NULL);
}
