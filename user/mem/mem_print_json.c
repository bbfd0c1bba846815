/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_print_json.c - a ledger as one JSON object; docs/memory.md says what its members are.
 * Sites are listed once, and rows refer to them by number.
 */
#include <stdlib.h>

#include "../format/json_text.h"
#include "../util/text.h"
#include "mem_print.h"

static void member(struct text *t, const char *name, uint64_t v)
{
	text_str(t, ",\"");
	text_str(t, name);
	text_str(t, "\":");
	text_u64(t, v);
}

static void member_text(struct text *t, const char *name, const char *s)
{
	text_str(t, ",\"");
	text_str(t, name);
	text_str(t, "\":");
	if (s)
		text_json(t, s, 4096);
	else
		text_str(t, "null");
}

static void member_hex(struct text *t, const char *name, uint64_t v)
{
	text_str(t, ",\"");
	text_str(t, name);
	text_str(t, "\":\"");
	text_hex(t, v);
	text_str(t, "\"");
}

static void device(struct text *t, uint16_t d)
{
	if (d == LIVE_NO_DEVICE)
		member_text(t, "device", NULL);
	else
		member(t, "device", d);
}

/* Writes the text out, so that it stays small. */
static void flush(struct out *o, struct text *t)
{
	out_mem(o, t->s, t->len);
	t->len = 0;
}

static void head(struct text *t, const struct ledger *l, uint32_t process)
{
	text_str(t, "{\"pid\":");
	text_u64(t, l->processes[process].shown_pid);
	member_text(t, "comm", l->processes[process].comm);
}

static uint64_t since(const struct mem_about *a, uint64_t at_ns)
{
	return at_ns > a->start_ns ? at_ns - a->start_ns : 0;
}

static void row(struct text *t, const struct ledger *l, const struct mem_about *a,
		const struct ledger_row *r)
{
	if (r->by == LEDGER_BY_ALL)
		text_str(t, "{\"pid\":null");
	else
		head(t, l, r->process);
	member_text(t, "where", mem_where_name((enum ledger_where)r->where));
	if (r->by == LEDGER_BY_DEVICE || r->by == LEDGER_LEAK)
		device(t, r->device);
	if (r->by == LEDGER_BY_KIND || r->by == LEDGER_LEAK)
		member_text(t, "kind", api_memory_name((enum api_memory_kind)r->kind));
	if (r->by == LEDGER_BY_STACK || r->by == LEDGER_LEAK)
		member(t, "site", r->site);
	if (r->by == LEDGER_BY_LIBRARY)
		member_text(t, "library", r->library);
	if (r->by == LEDGER_LEAK) {
		member(t, "bytes", r->bytes);
		member(t, "allocations", r->n);
		member_text(t, "until", mem_end_name((enum ledger_end)r->end));
		member(t, "taken_ns", since(a, r->first_ns));
		text_str(t, ",\"addresses\":[");
		for (uint64_t i = 0; i < r->n && i < ARRAY_LEN(r->addresses) && r->addresses[i];
		     i++) {
			text_str(t, i ? ",\"" : "\"");
			text_hex(t, r->addresses[i]);
			text_str(t, "\"");
		}
		text_str(t, "]");
	} else {
		member(t, "in_use", r->bytes);
		member(t, "live", r->n);
		member(t, "peak", r->peak);
		member(t, "peak_ns", r->peak ? since(a, r->peak_ns) : 0);
		member(t, "taken", r->taken);
		member(t, "allocations", r->taken_n);
		member(t, "frees", r->freed_n);
	}
	text_str(t, "}");
}

static void rows(struct out *o, struct text *t, const struct ledger *l, const struct mem_about *a,
		 enum ledger_by by, const char *name)
{
	const struct ledger_row **list;
	uint32_t n;

	list = mem_rows(l, by, &n);
	text_str(t, ",\n\"");
	text_str(t, name);
	text_str(t, "\":[");
	for (uint32_t i = 0; i < n; i++) {
		text_str(t, i ? ",\n " : "\n ");
		row(t, l, a, list[i]);
		flush(o, t);
	}
	text_str(t, "]");
	free(list);
}

static void processes(struct out *o, struct text *t, const struct ledger *l)
{
	bool first = true;

	text_str(t, ",\n\"processes\":[");
	for (uint32_t i = 0; i < l->nprocesses; i++) {
		const struct ledger_process *p = &l->processes[i];

		if (!p->used || !p->had)
			continue;
		text_str(t, first ? "\n " : ",\n ");
		first = false;
		head(t, l, i);
		text_str(t, p->from_start ? ",\"from_start\":true" : ",\"from_start\":false");
		text_str(t, p->ended ? ",\"ended\":true" : ",\"ended\":false");
		member(t, "leaked", p->leaked);
		member(t, "leaked_allocations", p->leaked_n);
		member(t, "out_of_memory", p->oom_n);
		member(t, "failed_allocations", p->failed_n);
		member(t, "double_frees", p->doubles_n);
		member(t, "wrong_frees", p->wrong_n);
		member(t, "invalid_frees", p->invalid_n);
		member(t, "failed_frees", p->failed_frees_n);
		member(t, "unseen_allocations", p->unseen_n);
		member(t, "unseen_frees", p->unfreed_n);
		member(t, "driver_bytes", p->driver_bytes);
		member(t, "driver_peak", p->driver_peak);
		text_str(t, "}");
		flush(o, t);
	}
	text_str(t, "]");
}

static void faults(struct out *o, struct text *t, const struct ledger *l, const struct mem_about *a)
{
	text_str(t, ",\n\"faults\":[");
	for (uint32_t i = 0; i < l->nfaults; i++) {
		const struct ledger_fault *f = &l->faults[i];

		text_str(t, i ? ",\n " : "\n ");
		head(t, l, f->process);
		member_text(t, "what", mem_fault_name((enum ledger_fault_what)f->what));
		member_hex(t, "address", f->address);
		member(t, "count", f->n);
		member(t, "at_ns", since(a, f->at_ns));
		member(t, "site", f->site);
		member(t, "taken_site", f->taken_site);
		member(t, "freed_site", f->freed_site);
		text_str(t, "}");
		flush(o, t);
	}
	text_str(t, "],\n\"out_of_memory\":[");
	for (uint32_t i = 0; i < l->nooms; i++) {
		const struct ledger_oom *m = &l->ooms[i];

		text_str(t, i ? ",\n " : "\n ");
		head(t, l, m->process);
		member(t, "at_ns", since(a, m->at_ns));
		member(t, "asked", m->asked);
		member_text(t, "kind", api_memory_name((enum api_memory_kind)m->kind));
		device(t, m->device);
		member(t, "held", m->held);
		member(t, "held_allocations", m->held_n);
		member(t, "held_host", m->host);
		member(t, "site", m->site);
		text_str(t, ",\"holders\":[");
		for (uint32_t h = 0; h < m->nholders; h++) {
			text_str(t, h ? ",{\"site\":" : "{\"site\":");
			text_u64(t, m->holders[h].site);
			member(t, "bytes", m->holders[h].bytes);
			member(t, "allocations", m->holders[h].n);
			text_str(t, "}");
		}
		text_str(t, "]}");
		flush(o, t);
	}
	text_str(t, "]");
}

static void frame(struct text *t, const struct site_frame *f)
{
	static const char *const kinds[] = { "native", "inlined", "python", "unknown" };

	text_str(t, "{\"kind\":\"");
	text_str(t, kinds[f->kind <= CT_FRAME_UNKNOWN ? f->kind : CT_FRAME_UNKNOWN]);
	text_str(t, "\"");
	member_text(t, "function", f->function);
	member_text(t, "file", f->file);
	member(t, "line", f->line);
	member_text(t, "object", f->object);
	member_hex(t, "address", f->address);
	text_str(t, "}");
}

static void sites(struct out *o, struct text *t, const struct ledger *l)
{
	text_str(t, ",\n\"sites\":[");
	for (uint32_t i = 0; i < sites_n(l->sites); i++) {
		const struct site *s = sites_get(l->sites, i);

		text_str(t, i ? ",\n {\"site\":" : "\n {\"site\":");
		text_u64(t, i);
		member_text(t, "api", s->func);
		member_text(t, "library", s->library);
		text_str(t, s->cut ? ",\"cut\":true,\"stack\":[" : ",\"cut\":false,\"stack\":[");
		for (uint32_t f = 0; f < s->nframes; f++) {
			if (f)
				text_str(t, ",");
			frame(t, &s->frames[f]);
		}
		text_str(t, "]}");
		flush(o, t);
	}
	text_str(t, "]");
}

void mem_print_json(struct out *o, const struct ledger *l, const struct mem_about *a)
{
	char unprobed[JSON_UNPROBED_MAX] = "";
	struct text t = { 0 };

	text_str(&t, "{\"type\":\"memory\",\"version\":");
	text_json(&t, a->version ? a->version : "", 64);
	member_text(&t, "title", a->title);
	member_text(&t, "reason", a->end ? a->end->reason : NULL);
	member(&t, "lost", a->end ? losses_total(&a->end->losses) : 0);
	if (a->end)
		json_unprobed(unprobed, sizeof(unprobed), &a->end->losses.unprobed);
	text_str(&t, unprobed);
	member(&t, "not_in_book", l->no_room);
	member(&t, "not_in_rows", l->no_row + sites_no_room(l->sites));
	text_str(&t, mem_missing(l, a) ? ",\"leaks_known\":false" : ",\"leaks_known\":true");
	processes(o, &t, l);
	rows(o, &t, l, a, LEDGER_BY_ALL, "all");
	rows(o, &t, l, a, LEDGER_BY_PROCESS, "by_process");
	rows(o, &t, l, a, LEDGER_BY_DEVICE, "by_device");
	rows(o, &t, l, a, LEDGER_BY_KIND, "by_kind");
	rows(o, &t, l, a, LEDGER_BY_STACK, "by_stack");
	rows(o, &t, l, a, LEDGER_BY_LIBRARY, "by_library");
	rows(o, &t, l, a, LEDGER_LEAK, "leaks");
	faults(o, &t, l, a);
	sites(o, &t, l);
	text_str(&t, "}\n");
	flush(o, &t);
	text_free(&t);
}

/* A line for each interval. */
void mem_print_watch_json(struct out *o, const struct ledger *l, const struct mem_about *a,
			  uint64_t now_ns)
{
	const struct ledger_row **list;
	struct text t = { 0 };
	bool first = true;
	uint32_t n;

	text_str(&t, "{\"type\":\"watch\",\"at_ns\":");
	text_u64(&t, since(a, now_ns));
	text_str(&t, ",\"by_process\":[");
	list = mem_rows(l, LEDGER_BY_PROCESS, &n);
	for (uint32_t i = 0; i < n; i++) {
		if (!list[i]->bytes && !list[i]->marked)
			continue;
		if (!first)
			text_str(&t, ",");
		first = false;
		head(&t, l, list[i]->process);
		member_text(&t, "where", mem_where_name((enum ledger_where)list[i]->where));
		member(&t, "in_use", list[i]->bytes);
		member(&t, "peak", list[i]->peak);
		member(&t, "before", list[i]->marked);
		text_str(&t, "}");
		flush(o, &t);
	}
	free(list);
	text_str(&t, "],\"driver\":[");
	for (uint32_t i = 0, any = 0; i < l->nprocesses; i++) {
		if (!l->processes[i].used || l->processes[i].ended || !l->processes[i].driver_bytes)
			continue;
		text_str(&t, any++ ? "," : "");
		head(&t, l, i);
		member(&t, "bytes", l->processes[i].driver_bytes);
		text_str(&t, "}");
	}
	text_str(&t, "]}\n");
	flush(o, &t);
	text_free(&t);
}
