/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_print_text.c - a ledger for people:
 *
 *   By call site
 *       In use       Peak      Taken   Allocs    Frees  Call site
 *      1.0 MiB    3.0 MiB    3.0 MiB        3        2  fill at app.c:12 (cudaMalloc), process
 *                 1234 app
 *
 *   Leaked 1048576 bytes at 0x7f0000000000 (device 0, cudaMalloc, taken at 0.120 s) when the
 *   process ended: 1234 app
 *       fill app.c:12
 *       main app.c:40
 *
 *   LEAK SUMMARY: 1048576 bytes leaked in 1 allocation
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/text.h"
#include "../util/units.h"
#include "mem_tables.h"

#define STACK_LINES 24 /* of a leak */

static unsigned long long ull(uint64_t v)
{
	return v;
}

static double seconds(const struct mem_about *a, uint64_t at_ns)
{
	return at_ns > a->start_ns ? (double)(at_ns - a->start_ns) / 1e9 : 0;
}

/* Writes untrusted bytes in a form that is safe for a terminal. */
static void plain(struct out *o, const char *s)
{
	struct text t = { 0 };

	text_plain(&t, s, MEM_NAME_BYTES);
	out_mem(o, t.s, t.len);
	text_free(&t);
}

void mem_process_text(struct out *o, const struct ledger *l, uint32_t process)
{
	const struct account_process *p = &l->account.processes[process];

	out_fmt(o, "%u ", p->shown_pid);
	plain(o, p->comm);
}

static void frame(struct out *o, const struct site_frame *f, bool whole)
{
	struct text t = { 0 };

	mem_frame_text(&t, f, whole, text_plain);
	out_mem(o, t.s, t.len);
	text_free(&t);
}

void mem_site_line(struct out *o, const struct ledger *l, uint32_t number)
{
	struct text t = { 0 };

	mem_site_text(&t, sites_get(l->sites, number), text_plain);
	out_mem(o, t.s, t.len);
	text_free(&t);
}

/* Frames of an interpreter are left out, unless there are no others. */
void mem_stack_lines(struct out *o, const struct ledger *l, uint32_t number)
{
	const struct site *s = sites_get(l->sites, number);
	bool all = s->nframes && s->frames[s->first].interpreter;
	uint32_t shown = 0, i;

	for (i = 0; i < s->nframes && shown < STACK_LINES; i++) {
		if (s->frames[i].interpreter && !all)
			continue;
		out_str(o, "      ");
		frame(o, &s->frames[i], true);
		out_char(o, '\n');
		shown++;
	}
	if (s->cut || i < s->nframes)
		out_str(o, "      ...\n");
}

/* The labels of the sites of n rows; NULL: no memory. */
static struct text *site_texts(const struct ledger *l, const struct ledger_row *const *rows,
			       uint32_t n)
{
	struct text *texts = calloc(n + 1, sizeof(*texts));
	uint32_t *numbers = calloc(n + 1, sizeof(*numbers));

	for (uint32_t i = 0; numbers && i < n; i++)
		numbers[i] = rows[i]->site;
	if (numbers && texts)
		mem_site_texts(l->sites, numbers, n, texts, text_plain);
	free(numbers);
	return texts;
}

static void free_texts(struct text *texts, uint32_t n)
{
	for (uint32_t i = 0; texts && i < n; i++)
		text_free(&texts[i]);
	free(texts);
}

static void device_name(struct out *o, uint16_t device)
{
	if (device == LIVE_NO_DEVICE)
		out_str(o, "device not known");
	else
		out_fmt(o, "device %u", device);
}

/* ---- tables ---- */

/* site: its label, for a row by call site. */
static void write_label(struct out *o, const struct ledger *l, const struct ledger_row *r,
			const struct text *site, bool several)
{
	const char *where = r->where == ACCOUNT_HOST ? ", host memory" : "";

	switch (r->by) {
	case LEDGER_BY_PROCESS:
		mem_process_text(o, l, r->process);
		out_str(o, where);
		return;
	case LEDGER_BY_DEVICE: device_name(o, r->device); break;
	case LEDGER_BY_KIND: out_str(o, api_memory_name((enum api_memory_kind)r->kind)); break;
	case LEDGER_BY_STACK:
		if (site)
			out_mem(o, site->s, site->len);
		else
			mem_site_line(o, l, r->site);
		out_str(o, where);
		break;
	case LEDGER_BY_LIBRARY:
		if (r->library)
			plain(o, r->library);
		else
			out_str(o, "not known");
		out_str(o, where);
		break;
	default: return;
	}
	if (!several)
		return;
	out_str(o, ", process ");
	mem_process_text(o, l, r->process);
}

static uint32_t having(const struct ledger *l)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->account.nprocesses; i++)
		n += l->account.processes[i].used && l->account.processes[i].had;
	return n;
}

void mem_row_label(struct out *o, const struct table_at *at)
{
	static const char *const words[] = { "device memory", "host memory, pinned" };
	const struct mem_table *t = at->ctx;
	const struct mem_row *m = at->row;

	out_str(o, m->indent ? m->indent : "");
	if (m->r->by != LEDGER_BY_ALL) {
		write_label(o, t->l, m->r, m->site, t->several);
		return;
	}
	out_str(o, words[m->r->where]);
	if (m->r->peak)
		out_fmt(o, ", the peak at %.3f s", seconds(t->a, m->r->peak_ns));
}

static void table(struct out *o, const struct ledger *l, const struct mem_about *a,
		  enum ledger_by by)
{
	static const char *const titles[] = { "All",	 "By process",	 "By device",
					      "By kind", "By call site", "By library" };
	const struct mem_table about = { l, a, having(l) > 1 };
	const struct table t = mem_table_of(by, &about);
	const struct ledger_row **rows;
	struct text *sites = NULL;
	uint32_t n, shown;

	rows = mem_rows(l, by, &n);
	if (!rows)
		return;
	shown = n < a->top ? n : a->top;
	if (by == LEDGER_BY_STACK)
		sites = site_texts(l, rows, shown);
	out_fmt(o, "%s\n", titles[by]);
	table_text_heads(&t, o);
	for (uint32_t i = 0; i < shown; i++)
		table_text_row(&t, o,
			       &(struct mem_row){ .r = rows[i], .site = sites ? &sites[i] : NULL });
	free_texts(sites, shown);
	if (n > a->top)
		out_fmt(o, " and %u more (--top)\n", n - a->top);
	out_char(o, '\n');
	free(rows);
}

static void totals(struct out *o, const struct ledger *l, const struct mem_about *a)
{
	const struct mem_table about = { l, a, false };
	const struct table t = mem_table_of(LEDGER_BY_ALL, &about);

	out_str(o, "Memory");
	if (a->title) {
		out_str(o, " of ");
		plain(o, a->title);
	}
	out_char(o, '\n');
	table_text_heads(&t, o);
	for (int w = 0; w <= ACCOUNT_HOST; w++)
		table_text_row(&t, o,
			       &(struct mem_row){ .r = ledger_all(l, (enum account_where)w) });
	out_char(o, '\n');
}

/* ---- what went wrong ---- */

void mem_print_oom(struct out *o, const struct ledger *l, const struct mem_about *a,
		   const struct ledger_oom *m)
{
	/* the site that asked, and those that hold */
	struct text names[1 + HOLDERS_MAX] = { { 0 } };
	uint32_t numbers[ARRAY_LEN(names)] = { m->site };
	char text[32];

	for (uint32_t i = 0; i < m->holders.n; i++)
		numbers[1 + i] = m->holders.most[i].site;
	mem_site_texts(l->sites, numbers, 1 + m->holders.n, names, text_plain);
	out_fmt(o, "Out of memory at %.3f s: ", seconds(a, m->at_ns));
	out_mem(o, names[0].s, names[0].len);
	out_fmt(o, " asked for %llu bytes (%s)", ull(m->asked),
		print_bytes(text, sizeof(text), (double)m->asked));
	if (m->device != LIVE_NO_DEVICE)
		out_fmt(o, " of device %u", m->device);
	out_str(o, "\n  process ");
	mem_process_text(o, l, m->process);
	out_fmt(o, " holds %llu bytes (%s) in %llu allocation%s on devices", ull(m->held),
		print_bytes(text, sizeof(text), (double)m->held), ull(m->held_n),
		m->held_n == 1 ? "" : "s");
	if (m->host)
		out_fmt(o, ", %s on the host", print_bytes(text, sizeof(text), (double)m->host));
	out_str(o, m->holders.n ? "; the most by\n" : "\n");
	for (uint32_t i = 0; i < m->holders.n; i++) {
		out_fmt(o, "  %10s in %llu: ",
			print_bytes(text, sizeof(text), (double)m->holders.most[i].bytes),
			ull(m->holders.most[i].n));
		out_mem(o, names[1 + i].s, names[1 + i].len);
		out_char(o, '\n');
	}
	for (uint32_t i = 0; i < ARRAY_LEN(names); i++)
		text_free(&names[i]);
	mem_stack_lines(o, l, m->site);
	out_char(o, '\n');
}

static void fault(struct out *o, const struct ledger *l, const struct mem_about *a,
		  const struct ledger_fault *f)
{
	static const char *const words[] = { "Freed twice", "Freed by a call for other memory",
					     "Freed what is no allocation",
					     "Freed what was not seen taken" };

	out_fmt(o, "%s: 0x%llx", words[f->what], ull(f->address));
	if (f->n > 1)
		out_fmt(o, " and %llu more", ull(f->n - 1));
	if (f->what == LEDGER_WRONG)
		out_fmt(o, " (%s memory)", api_memory_name((enum api_memory_kind)f->kind));
	out_fmt(o, ", at %.3f s, process ", seconds(a, f->at_ns));
	mem_process_text(o, l, f->process);
	out_str(o, "\n  by ");
	mem_site_line(o, l, f->site);
	out_char(o, '\n');
	if (f->freed_site) {
		out_str(o, "  freed first by ");
		mem_site_line(o, l, f->freed_site);
		out_char(o, '\n');
	}
	if (f->taken_site) {
		out_str(o, "  taken by ");
		mem_site_line(o, l, f->taken_site);
		out_char(o, '\n');
	}
}

static void faults(struct out *o, const struct ledger *l, const struct mem_about *a)
{
	uint64_t shown = 0, all = 0;

	for (uint32_t i = 0; i < l->nfaults; i++) {
		/* memory that was taken before the trace is freed during the trace, which is
		 * correct */
		if (l->faults[i].what == LEDGER_UNSEEN &&
		    !l->account.processes[l->faults[i].process].from_start)
			continue;
		fault(o, l, a, &l->faults[i]);
		shown += l->faults[i].n;
	}
	for (uint32_t i = 0; i < l->account.nprocesses; i++) {
		const struct account_process *p = &l->account.processes[i];

		if (p->used)
			all += p->doubles_n + p->wrong_n + p->invalid_n +
			       (p->from_start ? p->unseen_n : 0);
	}
	if (all > shown)
		out_fmt(o, "%llu more frees of this sort\n", ull(all - shown));
	if (all)
		out_char(o, '\n');
}

static void notes(struct out *o, const struct ledger *l)
{
	bool any = false;
	char text[32];

	for (uint32_t i = 0; i < l->account.nprocesses; i++) {
		const struct account_process *p = &l->account.processes[i];
		const struct ledger_row *r =
			p->used && p->had ? ledger_of_process(l, i, ACCOUNT_DEVICE) : NULL;
		uint64_t held = r ? r->bytes : 0, peak = r ? r->peak : 0;

		if (!p->used || !p->had)
			continue;
		if (p->driver_bytes) {
			uint64_t now = p->ended ? p->driver_peak : p->driver_bytes,
				 ours = p->ended ? peak : held;

			any = true;
			out_str(o, "Process ");
			mem_process_text(o, l, i);
			out_fmt(o, ": the driver counts %s",
				print_bytes(text, sizeof(text), (double)now));
			out_fmt(o, "%s, this book %s", p->ended ? " at the peak" : "",
				print_bytes(text, sizeof(text), (double)ours));
			out_fmt(o, "; %s are contexts, code%s\n",
				print_bytes(text, sizeof(text),
					    now > ours ? (double)(now - ours) : 0),
				p->from_start
					? " and the driver's own"
					: ", the driver's own and what was taken before the trace");
		}
		if (!p->from_start) {
			any = true;
			out_str(o, "Process ");
			mem_process_text(o, l, i);
			out_fmt(o,
				" was running when the trace began: what it had then is not in the "
				"book; frees of that: %llu\n",
				ull(p->unseen_n));
		}
		if (p->failed_n || p->failed_frees_n || p->oom_n > LEDGER_OOMS || p->unfreed_n) {
			any = true;
			out_str(o, "Process ");
			mem_process_text(o, l, i);
			out_fmt(o,
				": %llu allocations failed for want of memory, %llu for another "
				"reason; %llu frees failed; %llu addresses came again without a "
				"free that was seen\n",
				ull(p->oom_n), ull(p->failed_n), ull(p->failed_frees_n),
				ull(p->unfreed_n));
		}
	}
	if (l->account.odd_sizes) {
		any = true;
		out_fmt(o, "Sizes that cannot be, of 256 TiB or more: %llu; they are in no sum\n",
			ull(l->account.odd_sizes));
	}
	if (any)
		out_char(o, '\n');
}

/* ---- handles ---- */

static void handles(struct out *o, const struct ledger *l, const struct mem_about *a)
{
	struct mem_growth g;
	uint64_t at = 0;
	bool any = false;

	for (; mem_next_growth(l, a, &at, &g); any = true) {
		out_fmt(o, "Growing: %llu %s are left in process ", ull(g.made - g.given),
			growing_word(g.kind));
		mem_process_text(o, l, g.process);
		out_fmt(o, ": %llu were made throughout the trace, and %llu were given back\n",
			ull(g.made), ull(g.given));
		for (uint32_t i = 0; i < g.nmakers && i < a->top; i++) {
			out_fmt(o, "  %llu made by ", ull(g.makers[i].n));
			if (g.makers[i].site)
				mem_site_line(o, l, g.makers[i].site);
			else
				out_str(o, "others");
			out_char(o, '\n');
		}
	}
	if (any)
		out_char(o, '\n');
}

/* ---- leaks ---- */

static void one_leak(struct out *o, const struct ledger *l, const struct mem_about *a,
		     const struct ledger_row *r)
{
	static const char *const ends[] = { "its end", "it ran another program",
					    "its context's end", "its end (which was not seen)" };
	const struct site *s = sites_get(l->sites, r->site);

	out_fmt(o, "Leaked %llu bytes", ull(r->bytes));
	if (r->n > 1)
		out_fmt(o, " in %llu allocations", ull(r->n));
	for (uint64_t i = 0; i < r->n && i < ARRAY_LEN(r->addresses) && r->addresses[i]; i++)
		out_fmt(o, "%s0x%llx", i ? ", " : " at ", ull(r->addresses[i]));
	if (r->n > ARRAY_LEN(r->addresses) && r->addresses[0])
		out_str(o, ", ...");
	out_fmt(o, " (%s", api_memory_name((enum api_memory_kind)r->kind));
	if (r->where == ACCOUNT_DEVICE && r->device != LIVE_NO_DEVICE)
		out_fmt(o, " memory of device %u", r->device);
	else
		out_str(o, " memory");
	if (s->func)
		out_fmt(o, ", %s", s->func);
	out_fmt(o, ", %s at %.3f s), held until %s by process ", r->n > 1 ? "the first" : "taken",
		seconds(a, r->first_ns), ends[r->end]);
	mem_process_text(o, l, r->process);
	out_char(o, '\n');
	mem_stack_lines(o, l, r->site);
}

static void leaks(struct out *o, const struct ledger *l, const struct mem_about *a)
{
	const struct ledger_row **rows;
	uint64_t bytes = 0, n = 0, missing = mem_missing(l, a);
	uint32_t nrows;

	for (uint32_t i = 0; i < l->account.nprocesses; i++) {
		if (!l->account.processes[i].used)
			continue;
		bytes += l->account.processes[i].leaked;
		n += l->account.processes[i].leaked_n;
	}
	rows = mem_rows(l, LEDGER_LEAK, &nrows);
	for (uint32_t i = 0; i < nrows && i < a->top; i++)
		one_leak(o, l, a, rows[i]);
	if (nrows > a->top)
		out_fmt(o, "and %u more call sites that leak (--top)\n", nrows - a->top);
	free(rows);
	out_fmt(o, "%sLEAK SUMMARY: ", nrows ? "\n" : "");
	if (missing)
		out_fmt(o,
			"not known, because %llu record%s missing; of what is there, %llu bytes in "
			"%llu allocation%s were not freed\n",
			ull(missing), missing == 1 ? " is" : "s are", ull(bytes), ull(n),
			n == 1 ? "" : "s");
	else
		out_fmt(o, "%llu bytes leaked in %llu allocation%s\n", ull(bytes), ull(n),
			n == 1 ? "" : "s");
}

void mem_print_text(struct out *o, const struct ledger *l, const struct mem_about *a)
{
	if (a->by >= 0) {
		table(o, l, a, (enum ledger_by)a->by);
	} else {
		totals(o, l, a);
		table(o, l, a, LEDGER_BY_PROCESS);
		table(o, l, a, LEDGER_BY_DEVICE);
		table(o, l, a, LEDGER_BY_KIND);
		table(o, l, a, LEDGER_BY_STACK);
	}
	mem_print_blocks(o, l, a);
	faults(o, l, a);
	notes(o, l);
	handles(o, l, a);
	leaks(o, l, a);
}

/* ---- growth ---- */

#define GROWERS 5

static int grew_more(const void *a, const void *b)
{
	const struct ledger_row *x = *(const struct ledger_row *const *)a,
				*y = *(const struct ledger_row *const *)b;
	int64_t dx = (int64_t)(x->bytes - x->marked), dy = (int64_t)(y->bytes - y->marked);

	return dx != dy ? (dx > dy ? -1 : 1) : x < y ? -1 : x > y;
}

void mem_print_watch(struct out *o, const struct ledger *l, const struct mem_about *a,
		     uint64_t now_ns)
{
	struct mem_table about = { l, a, false };
	const struct table t = mem_table_of(MEM_WATCH, &about);
	const struct ledger_row **rows;
	struct text *sites;
	uint32_t n, grown = 0;

	out_fmt(o, "%.1f s\n", seconds(a, now_ns));
	table_text_heads(&t, o);
	rows = mem_rows(l, LEDGER_BY_PROCESS, &n);
	for (uint32_t i = 0, shown = 0; i < n && shown < a->top; i++) {
		if (!rows[i]->bytes && !rows[i]->marked)
			continue;
		shown++;
		table_text_row(&t, o, &(struct mem_row){ .r = rows[i] });
	}
	free(rows);
	about.several = having(l) > 1;
	rows = mem_rows(l, LEDGER_BY_STACK, &n);
	if (rows)
		qsort(rows, n, sizeof(*rows), grew_more);
	while (grown < n && grown < GROWERS && rows[grown]->bytes > rows[grown]->marked)
		grown++;
	sites = site_texts(l, rows, grown);
	for (uint32_t i = 0; i < grown; i++)
		table_text_row(&t, o,
			       &(struct mem_row){ .r = rows[i],
						  .site = sites ? &sites[i] : NULL,
						  .indent = "  " });
	free_texts(sites, grown);
	free(rows);
	out_char(o, '\n');
}
