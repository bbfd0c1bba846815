/* SPDX-License-Identifier: BSD-2-Clause */
/* json_text.c - see json_text.h. All strings are untrusted bytes. */
#include <stdio.h>

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

static void frame(struct text *t, const struct sink_opts *o, const struct stack_frame *f)
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
		frame(t, o, s->frames[i]);
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

size_t json_unprobed(char *buf, size_t size, const struct unprobed_sum *u)
{
	*buf = '\0';
	if (!unprobed_any(u))
		return 0;
	return (size_t)snprintf(
		buf, size,
		",\"unprobed\":{\"processes\":%llu,\"ended\":%llu,\"max_ns\":%llu,\"at_least\":%s}",
		(unsigned long long)u->processes, (unsigned long long)u->ended,
		(unsigned long long)u->longest_ns, u->more ? "true" : "false");
}

void json_unprobed_member(struct json *j, const struct unprobed_sum *u)
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
