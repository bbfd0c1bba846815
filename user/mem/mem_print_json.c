/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_print_json.c - a ledger as one JSON object; docs/memory.md says what its members are.
 * Sites are listed once, and rows refer to them by number.
 */
#include <stdlib.h>

#include "../flow/json_text.h"
#include "mem_tables.h"

static void device(struct json *j, uint16_t d)
{
	if (d == LIVE_NO_DEVICE)
		json_put_null(j, "device");
	else
		json_put_u64(j, "device", d);
}

static void process_head(struct json *j, const struct ledger *l, uint32_t process)
{
	json_open_object(j, NULL);
	json_put_u64(j, "pid", l->account.processes[process].shown_pid);
	json_put_str(j, "process", l->account.processes[process].comm);
}

static void rows(struct json *j, const struct ledger *l, const struct mem_about *a,
		 enum ledger_by by, const char *name)
{
	const struct mem_table about = { l, a, false };
	const struct table t = mem_table_of(by, &about);
	const struct ledger_row **list;
	uint32_t n;

	list = mem_rows(l, by, &n);
	json_line(j, "");
	json_open_array(j, name);
	for (uint32_t i = 0; i < n; i++)
		table_json_row(&t, j, " ", &(struct mem_row){ .r = list[i] });
	json_end(j);
	free(list);
}

static void mem_print_json_processes(struct json *j, const struct ledger *l)
{
	json_line(j, "");
	json_open_array(j, "processes");
	for (uint32_t i = 0; i < l->account.nprocesses; i++) {
		const struct account_process *p = &l->account.processes[i];

		if (!p->used || !p->had)
			continue;
		json_line(j, " ");
		process_head(j, l, i);
		json_put_bool(j, "from_start", p->from_start);
		json_put_bool(j, "ended", p->ended);
		json_put_u64(j, "leaked_bytes", p->leaked);
		json_put_u64(j, "leaked_allocations", p->leaked_n);
		json_put_u64(j, "out_of_memory", p->oom_n);
		json_put_u64(j, "failed_allocations", p->failed_n);
		json_put_u64(j, "double_frees", p->doubles_n);
		json_put_u64(j, "wrong_frees", p->wrong_n);
		json_put_u64(j, "invalid_frees", p->invalid_n);
		json_put_u64(j, "failed_frees", p->failed_frees_n);
		json_put_u64(j, "unseen_allocations", p->unseen_n);
		json_put_u64(j, "unseen_frees", p->unfreed_n);
		json_put_u64(j, "driver_bytes", p->driver_bytes);
		json_put_u64(j, "driver_peak_bytes", p->driver_peak);
		json_end(j);
	}
	json_end(j);
}

void mem_print_holders_json(struct json *j, const struct holders *h, const char *counted)
{
	json_open_array(j, "holders");
	for (uint32_t i = 0; i < h->n; i++) {
		json_open_object(j, NULL);
		json_put_u64(j, "site", h->most[i].site);
		json_put_u64(j, "bytes", h->most[i].bytes);
		json_put_u64(j, counted, h->most[i].n);
		json_end(j);
	}
	json_end(j);
}

static void faults(struct json *j, const struct ledger *l, const struct mem_about *a)
{
	json_line(j, "");
	json_open_array(j, "faults");
	for (uint32_t i = 0; i < l->nfaults; i++) {
		const struct ledger_fault *f = &l->faults[i];

		json_line(j, " ");
		process_head(j, l, f->process);
		json_put_str(j, "what", mem_fault_name((enum ledger_fault_what)f->what));
		json_put_hex(j, "address", f->address);
		json_put_u64(j, "count", f->n);
		json_put_u64(j, "at_ns", mem_since(a, f->at_ns));
		json_put_u64(j, "site", f->site);
		json_put_u64(j, "taken_site", f->taken_site);
		json_put_u64(j, "freed_site", f->freed_site);
		json_end(j);
	}
	json_end(j);
	json_line(j, "");
	json_open_array(j, "out_of_memory");
	for (uint32_t i = 0; i < l->nooms; i++) {
		const struct ledger_oom *m = &l->ooms[i];

		json_line(j, " ");
		process_head(j, l, m->process);
		json_put_u64(j, "at_ns", mem_since(a, m->at_ns));
		json_put_u64(j, "asked_bytes", m->asked);
		json_put_str(j, "kind", api_memory_name((enum api_memory_kind)m->kind));
		device(j, m->device);
		json_put_u64(j, "held_bytes", m->held);
		json_put_u64(j, "held_allocations", m->held_n);
		json_put_u64(j, "held_host_bytes", m->host);
		json_put_u64(j, "site", m->site);
		mem_print_holders_json(j, &m->holders, "allocations");
		json_end(j);
	}
	json_end(j);
}

static void growing(struct json *j, const struct ledger *l, const struct mem_about *a)
{
	struct mem_growth g;
	uint64_t at = 0;

	json_line(j, "");
	json_open_array(j, "growing_handles");
	while (mem_next_growth(l, a, &at, &g)) {
		json_line(j, " ");
		process_head(j, l, g.process);
		json_put_str(j, "what", growing_word(g.kind));
		json_put_u64(j, "made", g.made);
		json_put_u64(j, "given_back", g.given);
		json_put_u64(j, "left", g.made - g.given);
		json_open_array(j, "makers");
		for (uint32_t i = 0; i < g.nmakers; i++) {
			json_open_object(j, NULL);
			json_put_u64(j, "site", g.makers[i].site);
			json_put_u64(j, "made", g.makers[i].n);
			json_end(j);
		}
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

static void frame(struct json *j, const struct site_frame *f)
{
	static const char *const kinds[] = { "native", "inlined", "python", "unknown" };

	json_open_object(j, NULL);
	json_put_str(j, "kind", kinds[f->kind <= CT_FRAME_UNKNOWN ? f->kind : CT_FRAME_UNKNOWN]);
	json_put_str(j, "function", f->function);
	json_put_str(j, "file", f->file);
	json_put_u64(j, "line", f->line);
	json_put_str(j, "object", f->object);
	json_put_hex(j, "address", f->address);
	json_end(j);
}

static void sites(struct json *j, const struct ledger *l)
{
	json_line(j, "");
	json_open_array(j, "sites");
	for (uint32_t i = 0; i < sites_n(l->sites); i++) {
		const struct site *s = sites_get(l->sites, i);

		json_line(j, " ");
		json_open_object(j, NULL);
		json_put_u64(j, "site", i);
		json_put_str(j, "name", s->func);
		json_put_str(j, "library", s->library);
		json_put_bool(j, "cut", s->cut);
		json_open_array(j, "stack");
		for (uint32_t f = 0; f < s->nframes; f++)
			frame(j, &s->frames[f]);
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

static void all_rows(struct json *j, const struct ledger *l, const struct mem_about *a)
{
	rows(j, l, a, LEDGER_BY_ALL, "all");
	rows(j, l, a, LEDGER_BY_PROCESS, "by_process");
	rows(j, l, a, LEDGER_BY_DEVICE, "by_device");
	rows(j, l, a, LEDGER_BY_KIND, "by_kind");
	rows(j, l, a, LEDGER_BY_STACK, "by_stack");
	rows(j, l, a, LEDGER_BY_LIBRARY, "by_library");
	rows(j, l, a, LEDGER_LEAK, "leaks");
}

void mem_print_json(struct out *o, const struct ledger *l, const struct mem_about *a)
{
	struct json j = json_to(o);

	json_open_object(&j, NULL);
	json_put_str(&j, "type", "memory");
	json_put_str(&j, "schema", "cudatrace-memory");
	json_put_u64(&j, "version", 2);
	json_put_str(&j, "cudatrace", a->version ? a->version : "");
	json_put_str(&j, "title", a->title);
	json_put_str(&j, "reason", a->end ? a->end->reason : NULL);
	json_put_u64(&j, "lost", a->end ? losses_total(&a->end->losses) : 0);
	if (a->end)
		json_put_holes(&j, a->end->losses.holes);
	json_put_u64(&j, "not_in_book", l->account.no_room);
	json_put_u64(&j, "not_in_rows", l->no_row + l->blocks.no_row + sites_no_room(l->sites));
	if (l->account.odd_sizes)
		json_put_u64(&j, "impossible_sizes", l->account.odd_sizes);
	json_put_bool(&j, "leaks_known", !mem_missing(l, a));
	mem_print_json_processes(&j, l);
	all_rows(&j, l, a);
	faults(&j, l, a);
	growing(&j, l, a);
	mem_print_blocks_json(&j, l, a);
	sites(&j, l);
	json_end(&j);
	out_char(o, '\n');
}

/* A line for each interval. */
void mem_print_watch_json(struct out *o, const struct ledger *l, const struct mem_about *a,
			  uint64_t now_ns)
{
	const struct mem_table about = { l, a, false };
	const struct table t = mem_table_of(MEM_WATCH, &about);
	const struct ledger_row **list;
	struct json j = json_to(o);
	uint32_t n;

	json_open_object(&j, NULL);
	json_put_str(&j, "type", "watch");
	json_put_u64(&j, "at_ns", mem_since(a, now_ns));
	json_open_array(&j, "by_process");
	list = mem_rows(l, LEDGER_BY_PROCESS, &n);
	for (uint32_t i = 0; i < n; i++) {
		if (!list[i]->bytes && !list[i]->marked)
			continue;
		table_json_row(&t, &j, NULL, &(struct mem_row){ .r = list[i] });
	}
	free(list);
	json_end(&j);
	json_open_array(&j, "driver");
	for (uint32_t i = 0; i < l->account.nprocesses; i++) {
		if (!l->account.processes[i].used || l->account.processes[i].ended ||
		    !l->account.processes[i].driver_bytes)
			continue;
		process_head(&j, l, i);
		json_put_u64(&j, "bytes", l->account.processes[i].driver_bytes);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	out_char(o, '\n');
}
