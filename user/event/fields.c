/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fields.c - the fields of any record, kind by kind, so that a format is written once and a kind is one row set here.
 * Knows no format.
 */
#include <string.h>

#include "event.h"

static struct field *add(struct field **at, const char *name, enum field_type type)
{
	struct field *f = (*at)++;

	memset(f, 0, sizeof(*f));
	f->name = f->label = name;
	f->type = (uint8_t)type;
	return f;
}

static void add_u(struct field **at, const char *name, uint64_t v)
{
	add(at, name, FIELD_UINT)->u = v;
}

static void add_str(struct field **at, const char *name, const char *s, size_t n)
{
	struct field *f = add(at, name, FIELD_STR);

	f->str = s;
	f->str_len = (uint32_t)n;
}

static int process_fields(const struct ct_process *p, struct field *out)
{
	struct field *at = out;

	add_u(&at, "ppid", p->ppid);
	add_u(&at, "uid", p->uid);
	add_u(&at, "gid", p->gid);
	add_u(&at, "cgroup_id", p->cgroup_id);
	add_u(&at, "start_boottime_ns", p->start_boottime_ns);
	return (int)(at - out);
}

static int lost_fields(const struct ct_lost *l, struct field *out)
{
	const char *cause = loss_name(l->cause);
	struct field *at = out;

	add_u(&at, "count", l->count);
	add_str(&at, "cause", cause, strlen(cause));
	if (l->cpu != ~0u)
		add_u(&at, "cpu", l->cpu);
	return (int)(at - out);
}

static int name_fields(const struct ct_name *n, struct field *out)
{
	const char *source = kernel_name_source(n->source);
	struct field *at = out;

	add(&at, "handle", FIELD_FUNC)->u = n->handle;
	add_str(&at, "name", n->name, strnlen(n->name, n->len));
	at[-1].cut = n->cut;
	at[-1].absent = !n->len;
	add_str(&at, "source", source, strlen(source));
	return (int)(at - out);
}

static int frame_fields(const struct ct_frame *f, struct field *out)
{
	static const char *const kinds[] = { "native", "inlined", "python", "unknown" };
	const char *kind = f->kind < ARRAY_LEN(kinds) ? kinds[f->kind] : "unknown", *s = f->strings;
	struct field *at = out;

	add_u(&at, "id", f->id);
	add_str(&at, "kind", kind, strlen(kind));
	add(&at, "address", FIELD_PTR)->u = f->address;
	add_str(&at, "function", s, f->function_len);
	add_u(&at, "offset", f->offset);
	add_str(&at, "file", s + f->function_len, f->file_len);
	add_u(&at, "line", f->line);
	add_str(&at, "object", s + f->function_len + f->file_len, f->object_len);
	return (int)(at - out);
}

static int stack_fields(const struct ct_stack *s, struct field *out, int max)
{
	struct field *at = out, *list;

	add_u(&at, "id", s->id);
	add_u(&at, "flags", s->flags);
	list = add(&at, "frames", FIELD_OPEN);
	list->is_list = true;
	for (uint32_t i = 0; i < s->nframes; i++) {
		if (at - out >= max - 1) {
			list->cut = true;
			break;
		}
		add_u(&at, NULL, s->frames[i]);
	}
	add(&at, NULL, FIELD_CLOSE);
	return (int)(at - out);
}

int event_fields(const struct event *ev, struct field *out, int max)
{
	struct field *at = out;

	switch (ev->rec->kind) {
	case CT_CALL:
	case CT_ENTER:
		return api_decode((const struct ct_call *)ev->rec, API_ARCH_HERE, out, max);
	}
	if (max < 8)
		return 0;
	switch (ev->rec->kind) {
	case CT_PROCESS:
	case CT_EXEC:
		return process_fields((const struct ct_process *)ev->rec, out);
	case CT_NAME:
		return name_fields((const struct ct_name *)ev->rec, out);
	case CT_FRAME:
		return frame_fields((const struct ct_frame *)ev->rec, out);
	case CT_STACK:
		return stack_fields((const struct ct_stack *)ev->rec, out, max);
	case CT_LOST:
		return lost_fields((const struct ct_lost *)ev->rec, out);
	case CT_FORK:
		add_u(&at, "child_pid", ((const struct ct_fork *)ev->rec)->child_pid);
		break;
	case CT_EXIT:
		add(&at, "status", FIELD_INT)->i = ((const struct ct_exit *)ev->rec)->status;
		break;
	}
	return (int)(at - out);
}
