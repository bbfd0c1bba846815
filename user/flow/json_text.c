/* SPDX-License-Identifier: BSD-2-Clause */
/* json_text.c - see json_text.h. All strings are untrusted bytes. */
#include <stdio.h>

#include "../event/holes/holes.h"
#include "json_text.h"

#define NAME_MAX_BYTES 65536
#define PATH_MAX_BYTES 4096

void json_kernel(struct text *t, const struct kernel_name *k)
{
	text_str(t, ",\"kernel\":");
	text_json(t, k->full, NAME_MAX_BYTES);
	text_str(t, ",\"kernel_mangled\":");
	text_json(t, k->mangled, NAME_MAX_BYTES);
	if (k->source) {
		text_str(t, ",\"kernel_source\":\"");
		text_str(t, kernel_name_source(k->source));
		text_str(t, "\"");
	}
	if (k->cut)
		text_str(t, ",\"kernel_cut\":true");
}

static void json_frame(struct text *t, const struct sink_opts *o, const struct stack_frame *f)
{
	static const char *const kinds[] = {
		[CT_FRAME_NATIVE] = "native",
		[CT_FRAME_INLINED] = "inlined",
		[CT_FRAME_PYTHON] = "python",
		[CT_FRAME_UNKNOWN] = "unknown",
	};

	text_str(t, "{");
	if (f->function) {
		text_str(t, "\"function\":");
		text_json(t, o->look.mangled && f->mangled ? f->mangled : f->function,
			  NAME_MAX_BYTES);
		text_str(t, ",");
	}
	if (f->function && f->kind == CT_FRAME_NATIVE) {
		text_str(t, "\"offset_bytes\":");
		text_u64(t, f->offset);
		text_str(t, ",");
	}
	if (f->file) {
		text_str(t, "\"file\":");
		text_json(t, f->file, PATH_MAX_BYTES);
		text_str(t, ",");
	}
	if (f->line) {
		text_str(t, "\"line\":");
		text_u64(t, f->line);
		text_str(t, ",");
	}
	if (f->object) {
		text_str(t, "\"object\":");
		text_json(t, f->object, PATH_MAX_BYTES);
		text_str(t, ",");
	}
	if (f->kind != CT_FRAME_PYTHON) {
		text_str(t, "\"address\":\"");
		text_hex(t, f->address);
		text_str(t, "\",");
	}
	text_str(t, "\"kind\":\"");
	text_str(t, f->kind < ARRAY_LEN(kinds) ? kinds[f->kind] : "unknown");
	text_str(t, "\"}");
}

void json_stack(struct text *t, const struct sink_opts *o, const struct stack *s)
{
	text_str(t, ",\"stack\":[");
	for (uint32_t i = 0; i < s->nframes; i++) {
		if (i)
			text_str(t, ",");
		json_frame(t, o, s->frames[i]);
	}
	text_str(t, "]");
	if (!(s->flags & (CT_STACK_CUT | CT_STACK_BROKEN)))
		return;
	text_str(t, ",\"stack_flags\":[");
	if (s->flags & CT_STACK_CUT)
		text_str(t, s->flags & CT_STACK_BROKEN ? "\"cut\"," : "\"cut\"");
	if (s->flags & CT_STACK_BROKEN)
		text_str(t, "\"broken\"");
	text_str(t, "]");
}

static void json_unprobed(struct json *j, const struct unprobed_sum *u)
{
	if (!unprobed_any(u))
		return;
	json_open_object(j, "unprobed");
	json_put_u64(j, "processes", u->processes);
	json_put_u64(j, "ended", u->ended);
	json_put_u64(j, "max_ns", u->longest_ns);
	json_put_bool(j, "at_least", u->more);
	json_end(j);
}

static void holes_row_member(struct json *j, const struct holes_row *r)
{
	json_open_object(j, NULL);
	json_put_str(j, "reason", hole_reason(r->reason));
	json_put_str(j, "layer", hole_layer(r->layer));
	json_put_str(j, "state", hole_state(r->state));
	if (r->shown_pid)
		json_put_u64(j, "pid", r->shown_pid);
	if (*r->comm)
		json_put_str(j, "comm", r->comm);
	if (r->pid && r->tid)
		json_put_u64(j, "tid", r->tid);
	if (r->device != CT_UNKNOWN)
		json_put_u64(j, "device", r->device);
	if (r->start_ns || r->count_from)
		json_put_u64(j, "from_ns", r->start_ns ? r->start_ns : r->count_from);
	if (r->end_ns && r->end_ns != CT_HOLE_OPEN)
		json_put_u64(j, "until_ns", r->end_ns);
	if (r->count)
		json_put_u64(j, "count", r->count);
	if (r->below || r->above) {
		json_put_u64(j, "error_below", r->below);
		json_put_u64(j, "error_above", r->above);
	}
	if (r->joined)
		json_put_u64(j, "joined", r->joined);
	if (*r->text)
		json_put_str(j, "text", r->text);
	json_end(j);
}

void json_put_holes(struct json *j, const struct holes *l)
{
	/* numbers that had keys of their own before these rows were made */
	static const struct {
		enum ct_hole_reason reason;
		const char *key;
	} numbers[] = {
		{ CT_HOLE_SCOPES_DROPPED, "scopes_dropped" },
		{ CT_HOLE_FILE_REFUSED, "refused_files" },
		{ CT_HOLE_UNHOOKED, "unhooked_functions" },
		{ CT_HOLE_PARTLY_HOOKED, "partly_hooked_functions" },
		{ CT_HOLE_INTERRUPTED, "interrupted_functions" },
	};

	json_unprobed(j, holes_unprobed(l));
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		uint64_t n = holes_number(l, numbers[i].reason);

		if (n)
			json_put_u64(j, numbers[i].key, n);
	}
	if (!holes_rows(l))
		return;
	json_open_array(j, "not_seen");
	for (size_t i = 0; i < holes_rows(l); i++)
		if (!holes_void(holes_row(l, i)))
			holes_row_member(j, holes_row(l, i));
	json_end(j);
}
