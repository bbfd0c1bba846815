/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_print_blocks.c - the blocks of allocators inside programs, as text and as JSON:
 *
 *   Blocks of PyTorch's allocator in process 1234 python3, on device 0
 *    allocated 1.0 GiB, at most 3.0 GiB at 0.120 s; reserved from CUDA 4.0 GiB, at most 4.0 GiB
 *    2 segments with blocks: 3.0 GiB, of which 2.0 GiB free in 3 stretches; 1 without: 1.0 GiB; the longest free stretch: 1.0 GiB
 *       At peak     Blocks     In use      Taken   Allocs    Frees  Operator at the peak
 *       1.0 GiB          2        0 B    3.0 GiB        6        6  aten::mm
 */
#include <stdlib.h>

#include "../flow/json_text.h"
#include "../util/units.h"
#include "mem_tables.h"

static unsigned long long ull(uint64_t v)
{
	return v;
}

static const char *size_text(char text[32], uint64_t bytes)
{
	return print_bytes(text, 32, (double)bytes);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- text ---- */

/* What n rows are about: the labels of call sites differ where the sites do. NULL: no memory. */
static struct text *labels_of(const struct ledger *l, const struct blocks_row *const *rows,
			      uint32_t n, enum blocks_by by)
{
	struct text *labels = calloc(n + 1, sizeof(*labels));
	uint32_t *sites = calloc(n + 1, sizeof(*sites));

	for (uint32_t i = 0; labels && i < n && by == BLOCKS_BY_OPERATOR; i++) {
		const char *name = blocks_operator(&l->blocks, rows[i]->of);

		text_plain(&labels[i], name ? name : "outside of operators", MEM_NAME_BYTES);
	}
	for (uint32_t i = 0; sites && i < n; i++)
		sites[i] = rows[i]->of;
	if (labels && sites && by == BLOCKS_BY_STACK)
		mem_site_texts(l->sites, sites, n, labels, text_plain);
	free(sites);
	return labels;
}

static struct mem_blocks_row mem_print_blocks_row_of(const struct ledger *l,
						     const struct blocks_row *r)
{
	struct mem_blocks_row row = { .l = l, .r = r };

	row.at_peak = blocks_at_peak(&l->blocks, r, &row.n_at_peak);
	return row;
}

static void table(struct out *o, const struct ledger *l, const struct mem_about *a, uint32_t total,
		  enum blocks_by by)
{
	const struct table t = mem_blocks_table(by);
	const struct blocks_row **rows;
	uint32_t nrows, shown;
	struct text *labels;

	rows = blocks_rows(&l->blocks, total, by, &nrows);
	/* without the layer of operators there is only "outside" */
	if (by == BLOCKS_BY_OPERATOR && !l->blocks.names.n)
		nrows = 0;
	shown = nrows < a->top ? nrows : a->top;
	labels = labels_of(l, rows, shown, by);
	if (nrows)
		table_text_heads(&t, o);
	for (uint32_t i = 0; labels && i < shown; i++) {
		struct mem_blocks_row row = mem_print_blocks_row_of(l, rows[i]);

		row.label = &labels[i];
		table_text_row(&t, o, &row);
		text_free(&labels[i]);
	}
	free(labels);
	if (nrows > a->top)
		out_fmt(o, " and %u more (--top)\n", nrows - a->top);
	free(rows);
}

static void fragments(struct out *o, const struct blocks_frag *f, const char *indent)
{
	char x[32], y[32];

	if (f->segments || f->empty) {
		out_fmt(o, "%s%llu segment%s with blocks: %s, of which %s", indent,
			ull(f->segments), plural(f->segments), size_text(x, f->bytes),
			size_text(y, f->holes_bytes));
		out_fmt(o, " free in %llu stretch%s", ull(f->holes), f->holes == 1 ? "" : "es");
		out_fmt(o, "; %llu without: %s; the longest free stretch: %s\n", ull(f->empty),
			size_text(x, f->empty_bytes), size_text(y, f->largest));
	}
	if (f->outside)
		out_fmt(o, "%s%llu block%s (%s) in segments whose allocation was not seen\n",
			indent, ull(f->outside), plural(f->outside),
			size_text(x, f->outside_bytes));
}

static void mem_print_blocks_missing(struct out *o, const struct blocks_total *t)
{
	char x[32];

	if (t->before)
		out_fmt(o, " %s had been allocated before the trace\n", size_text(x, t->before));
	if (t->unseen_n)
		out_fmt(o, " %llu block%s (%s) taken back that %s not seen given out\n",
			ull(t->unseen_n), plural(t->unseen_n), size_text(x, t->unseen_bytes),
			t->unseen_n == 1 ? "was" : "were");
	if (t->gaps_n)
		out_fmt(o,
			" reports are missing: %llu time%s the allocator's totals did not follow "
			"from those before\n",
			ull(t->gaps_n), plural(t->gaps_n));
	if (t->unfreed_n)
		out_fmt(o, " %llu address%s given out again without being seen taken back\n",
			ull(t->unfreed_n), t->unfreed_n == 1 ? " was" : "es were");
	if (t->odd_n)
		out_fmt(o, " %llu report%s cannot be true\n", ull(t->odd_n), plural(t->odd_n));
	if (t->no_room)
		out_fmt(o, " %llu block%s not counted below: too many exist at a time\n",
			ull(t->no_room), t->no_room == 1 ? " is" : "s are");
}

static void one_total(struct out *o, const struct ledger *l, const struct mem_about *a, uint32_t i)
{
	const struct blocks_total *t = blocks_total(&l->blocks, i);
	struct blocks_frag f = blocks_fragments(&l->blocks, i, &l->account.live);
	char x[32], y[32];

	out_str(o, "Blocks of PyTorch's allocator in process ");
	mem_process_text(o, l, t->process);
	out_fmt(o, ", on device %u\n allocated %s, at most %s", t->device,
		size_text(x, t->allocated), size_text(y, t->peak));
	out_fmt(o, " at %.3f s", (double)mem_since(a, t->peak_ns) / 1e9);
	out_fmt(o, "; reserved from CUDA %s, at most %s\n", size_text(x, t->reserved),
		size_text(y, t->reserved_peak));
	fragments(o, &f, " ");
	mem_print_blocks_missing(o, t);
	if (t->ooms)
		out_fmt(o, " out of memory %llu time%s\n", ull(t->ooms), plural(t->ooms));
	table(o, l, a, i, BLOCKS_BY_OPERATOR);
	table(o, l, a, i, BLOCKS_BY_STACK);
	out_char(o, '\n');
}

void mem_print_blocks(struct out *o, const struct ledger *l, const struct mem_about *a)
{
	for (uint32_t i = 0; i < l->blocks.totals.n && i < a->top; i++)
		one_total(o, l, a, i);
	if (l->blocks.totals.n > a->top)
		out_fmt(o, "Blocks of %zu more allocators (--top)\n\n",
			l->blocks.totals.n - a->top);
}

void mem_print_no_block(struct out *o, const struct ledger *l, const struct mem_about *a,
			const struct blocks_oom *m)
{
	const struct blocks_total *t = blocks_total(&l->blocks, m->total);
	char x[32], y[32];

	out_fmt(o, "PyTorch's allocator is out of memory at %.3f s: ",
		(double)mem_since(a, m->at_ns) / 1e9);
	mem_site_line(o, l, m->site);
	out_fmt(o, "\n  asked for %llu bytes (%s) of device %u, process ", ull(m->asked),
		size_text(x, m->asked), t->device);
	mem_process_text(o, l, t->process);
	out_fmt(o, "\n  allocated %s, reserved from CUDA %s\n", size_text(x, m->allocated),
		size_text(y, m->reserved));
	fragments(o, &m->frag, "  ");
	if (m->frag.before) {
		out_str(o, "  before the longest free stretch beside blocks: ");
		mem_site_line(o, l, m->frag.before);
		out_char(o, '\n');
	}
	if (m->frag.behind) {
		out_str(o, "  behind it: ");
		mem_site_line(o, l, m->frag.behind);
		out_char(o, '\n');
	}
	for (uint32_t i = 0; i < m->holders.n; i++) {
		out_fmt(o, "  %10s in %llu: ", size_text(x, m->holders.most[i].bytes),
			ull(m->holders.most[i].n));
		mem_site_line(o, l, m->holders.most[i].site);
		out_char(o, '\n');
	}
	mem_stack_lines(o, l, m->site);
	out_char(o, '\n');
}

/* ---- JSON ---- */

static void total_head(struct json *j, const struct ledger *l, uint32_t total)
{
	const struct blocks_total *t = blocks_total(&l->blocks, total);

	json_line(j, " ");
	json_open_object(j, NULL);
	json_put_u64(j, "pid", l->account.processes[t->process].shown_pid);
	json_put_str(j, "process", l->account.processes[t->process].comm);
	json_put_u64(j, "device", t->device);
}

static void fragments_json(struct json *j, const struct blocks_frag *f)
{
	json_open_object(j, "segments");
	json_put_u64(j, "with_blocks", f->segments);
	json_put_u64(j, "bytes", f->bytes);
	json_put_u64(j, "in_blocks_bytes", f->used);
	json_put_u64(j, "free_stretches", f->holes);
	json_put_u64(j, "free_bytes", f->holes_bytes);
	json_put_u64(j, "without_blocks", f->empty);
	json_put_u64(j, "without_blocks_bytes", f->empty_bytes);
	json_put_u64(j, "longest_free_bytes", f->largest);
	json_put_u64(j, "site_before", f->before);
	json_put_u64(j, "site_behind", f->behind);
	json_put_u64(j, "unseen", f->outside);
	json_put_u64(j, "unseen_bytes", f->outside_bytes);
	json_end(j);
}

static void rows_json(struct json *j, const struct ledger *l, uint32_t total, enum blocks_by by,
		      const char *name)
{
	const struct table t = mem_blocks_table(by);
	const struct blocks_row **rows;
	uint32_t nrows;

	rows = blocks_rows(&l->blocks, total, by, &nrows);
	json_open_array(j, name);
	for (uint32_t i = 0; i < nrows; i++) {
		const struct mem_blocks_row row = mem_print_blocks_row_of(l, rows[i]);

		table_json_row(&t, j, NULL, &row);
	}
	json_end(j);
	free(rows);
}

static void total_json(struct json *j, const struct ledger *l, const struct mem_about *a,
		       uint32_t i)
{
	const struct blocks_total *t = blocks_total(&l->blocks, i);
	struct blocks_frag f = blocks_fragments(&l->blocks, i, &l->account.live);

	total_head(j, l, i);
	json_put_u64(j, "allocated_bytes", t->allocated);
	json_put_u64(j, "reserved_bytes", t->reserved);
	json_put_u64(j, "peak_bytes", t->peak);
	json_put_u64(j, "peak_ns", t->peak ? mem_since(a, t->peak_ns) : 0);
	json_put_u64(j, "reserved_peak_bytes", t->reserved_peak);
	json_put_u64(j, "before_bytes", t->before);
	json_put_u64(j, "in_use_bytes", t->bytes);
	json_put_u64(j, "live", t->n);
	json_put_u64(j, "taken_bytes", t->taken);
	json_put_u64(j, "allocations", t->taken_n);
	json_put_u64(j, "frees", t->freed_n);
	json_put_u64(j, "unseen_allocations", t->unseen_n);
	json_put_u64(j, "unseen_frees", t->unfreed_n);
	json_put_u64(j, "reports_missing", t->gaps_n);
	json_put_u64(j, "reports_wrong", t->odd_n);
	json_put_u64(j, "not_in_book", t->no_room);
	json_put_u64(j, "out_of_memory", t->ooms);
	fragments_json(j, &f);
	rows_json(j, l, i, BLOCKS_BY_OPERATOR, "by_operator");
	rows_json(j, l, i, BLOCKS_BY_STACK, "by_stack");
	json_end(j);
}

void mem_print_blocks_json(struct json *j, const struct ledger *l, const struct mem_about *a)
{
	json_line(j, "");
	json_open_array(j, "blocks");
	for (uint32_t i = 0; i < l->blocks.totals.n; i++)
		total_json(j, l, a, i);
	json_end(j);
	json_line(j, "");
	json_open_array(j, "blocks_out_of_memory");
	for (uint32_t i = 0; i < l->blocks.nooms; i++) {
		const struct blocks_oom *m = &l->blocks.ooms[i];

		total_head(j, l, m->total);
		json_put_u64(j, "at_ns", mem_since(a, m->at_ns));
		json_put_u64(j, "asked_bytes", m->asked);
		json_put_u64(j, "allocated_bytes", m->allocated);
		json_put_u64(j, "reserved_bytes", m->reserved);
		json_put_u64(j, "site", m->site);
		fragments_json(j, &m->frag);
		mem_print_holders_json(j, &m->holders, "blocks");
		json_end(j);
	}
	json_end(j);
}
