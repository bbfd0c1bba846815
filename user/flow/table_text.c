/* SPDX-License-Identifier: BSD-2-Clause */
/* table_text.c - see table_text.h. All text printed here comes from the target: untrusted bytes. */
#include "table_text.h"

#define NAME_MAX_BYTES 16384
#define FUNCTION_MAX_BYTES 512 /* bytes of a function's name, unless full names are asked for */
#define PATH_MAX_BYTES 4096
#define INDENT "             "

void table_kernel(struct text *t, const struct sink_opts *o, const struct kernel_name *k)
{
	text_plain(t,
		   o->look.mangled	? k->mangled
		   : o->look.full_names ? k->full
					: k->brief,
		   NAME_MAX_BYTES);
	if (k->cut)
		text_str(t, "...");
}

static void table_function(struct text *t, const struct sink_opts *o, const struct stack_frame *f)
{
	text_plain(t, o->look.mangled && f->mangled ? f->mangled : f->function,
		   o->look.full_names || o->look.mangled ? NAME_MAX_BYTES : FUNCTION_MAX_BYTES);
}

static void table_source(struct text *t, const struct sink_opts *o, const struct stack_frame *f)
{
	if (!f->file)
		return;
	text_str(t, " (");
	text_plain(t, o->look.all_frames ? f->file : frame_file(f->kind, f->file), PATH_MAX_BYTES);
	if (f->line) {
		text_str(t, ":");
		text_u64(t, f->line);
	}
	text_str(t, ")");
}

static void table_native(struct text *t, const struct sink_opts *o, const struct stack_frame *f)
{
	if (f->function) {
		table_function(t, o, f);
		text_str(t, "+");
		text_hex(t, f->offset);
		table_source(t, o, f);
		if (f->object) {
			text_str(t, " ");
			text_plain(t, f->object, PATH_MAX_BYTES);
		}
	} else if (f->object) {
		text_str(t, "?? (");
		text_plain(t, f->object, PATH_MAX_BYTES);
		text_str(t, "+");
		text_hex(t, f->address);
		text_str(t, ")");
	} else {
		text_hex(t, f->address);
	}
}

static void table_frame(struct text *t, const struct sink_opts *o, const struct stack_frame *f)
{
	text_str(t, INDENT);
	if (f->kind == CT_FRAME_PYTHON || f->kind == CT_FRAME_INLINED) {
		if (f->function)
			table_function(t, o, f);
		else
			text_str(t, "??");
		table_source(t, o, f);
		text_str(t, f->kind == CT_FRAME_PYTHON ? " [python]" : " [inlined]");
	} else {
		table_native(t, o, f);
	}
	text_str(t, "\n");
}

void table_stack(struct text *t, const struct sink_opts *o, const struct stack *s)
{
	struct stack_view v = stack_view(s, o->look.all_frames);

	for (uint32_t i = 0; i < v.n; i++)
		if (stack_shows(&v, s->frames[i]))
			table_frame(t, o, s->frames[i]);
	if (s->flags & CT_STACK_BROKEN)
		text_str(t, INDENT "(the unwinder found no way further)\n");
	else if (s->flags & CT_STACK_CUT)
		text_str(t, INDENT "...\n");
}
