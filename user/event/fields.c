/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fields.c - the fields of any record, kind by kind, so that each format is written once and a new
 * kind is added only here. Knows no format.
 */
#include <string.h>

#include "device.h"
#include "hole_words.h"
#include "field_add.h"

static int process_fields(const struct ct_process *p, struct field *out)
{
	struct field *at = out;

	field_add_u(&at, "ppid", FIELD_UINT, p->ppid);
	field_add_u(&at, "uid", FIELD_UINT, p->uid);
	field_add_u(&at, "gid", FIELD_UINT, p->gid);
	field_add_u(&at, "cgroup_id", FIELD_UINT, p->cgroup_id);
	field_add_u(&at, "start_boottime_ns", FIELD_UINT, p->start_boottime_ns);
	return (int)(at - out);
}

static int lost_fields(const struct ct_lost *l, struct field *out)
{
	const char *cause = loss_name(l->cause);
	struct field *at = out;

	field_add_u(&at, "count", FIELD_UINT, l->count);
	field_add_str(&at, "cause", cause, strlen(cause));
	if (l->cpu != ~0u)
		field_add_u(&at, "cpu", FIELD_UINT, l->cpu);
	return (int)(at - out);
}

static int hole_fields(const struct ct_hole *h, struct field *out)
{
	const char *layer = hole_layer(h->layer), *state = hole_state(h->state),
		   *reason = hole_reason(h->reason);
	struct field *at = out;

	field_add_str(&at, "layer", layer, strlen(layer));
	field_add_str(&at, "state", state, strlen(state));
	field_add_str(&at, "reason", reason, strlen(reason));
	if (h->until_ns && h->until_ns != CT_HOLE_OPEN)
		field_add_u(&at, "until_ns", FIELD_UINT, h->until_ns);
	if (h->count)
		field_add_u(&at, "count", FIELD_UINT, h->count);
	if (h->device != CT_UNKNOWN)
		field_add_u(&at, "device", FIELD_UINT, h->device);
	if (h->text_len)
		field_add_str(&at, "text", h->text, strnlen(h->text, h->text_len));
	return (int)(at - out);
}

static int segment_fields(const struct ct_host_segment *s, struct field *out)
{
	const char *state = host_state(s->state), *reason = host_reason(s->reason);
	struct field *at = out;

	field_add_str(&at, "state", state, strlen(state));
	if (s->state == CT_HOST_BLOCKED || s->state == CT_HOST_SAMPLED)
		field_add_str(&at, "reason", reason, strlen(reason));
	if (s->object[0])
		field_add_str(&at, "object", s->object, strnlen(s->object, sizeof(s->object)));
	if (s->wake_ns)
		field_add_u(&at, "woken_ns", FIELD_UINT, s->wake_ns);
	if (s->other_tid)
		field_add_u(&at, "other_tid", FIELD_UINT, s->other_tid);
	if (s->other[0])
		field_add_str(&at, "other", s->other, strnlen(s->other, sizeof(s->other)));
	if (s->syscall >= 0)
		field_add_u(&at, "syscall", FIELD_UINT, (uint64_t)s->syscall);
	return (int)(at - out);
}

static int muted_fields(const struct ct_muted *m, struct field *out)
{
	struct field *at = out;

	field_add_str(&at, "domain", m->text, m->domain_len);
	field_add_u(&at, "counted", FIELD_UINT, m->counted);
	field_add(&at, "estimated", FIELD_INT)->i = m->unseen.calls;
	field_add(&at, "below", FIELD_INT)->i = m->unseen.below;
	field_add(&at, "above", FIELD_INT)->i = m->unseen.above;
	field_add_u(&at, "failed", FIELD_UINT, m->failed);
	field_add_u(&at, "windows", FIELD_UINT, m->windows);
	return (int)(at - out);
}

static int name_fields(const struct ct_name *n, struct field *out)
{
	const char *source = kernel_name_source(n->source);
	struct field *at = out;

	field_add(&at, "handle", FIELD_FUNC)->u = n->handle;
	field_add_str(&at, "name", n->name, strnlen(n->name, n->len));
	at[-1].cut = n->cut;
	at[-1].absent = !n->len;
	field_add_str(&at, "source", source, strlen(source));
	return (int)(at - out);
}

static int frame_fields(const struct ct_frame *f, struct field *out)
{
	static const char *const kinds[] = { "native", "inlined", "python", "unknown" };
	const char *kind = f->kind < ARRAY_LEN(kinds) ? kinds[f->kind] : "unknown", *s = f->strings;
	struct field *at = out;

	field_add_u(&at, "id", FIELD_UINT, f->id);
	field_add_str(&at, "kind", kind, strlen(kind));
	field_add(&at, "address", FIELD_PTR)->u = f->address;
	field_add_str(&at, "function", s, f->function_len);
	field_add_u(&at, "offset", FIELD_UINT, f->offset);
	field_add_str(&at, "file", s + f->function_len, f->file_len);
	field_add_u(&at, "line", FIELD_UINT, f->line);
	field_add_str(&at, "object", s + f->function_len + f->file_len, f->object_len);
	return (int)(at - out);
}

static int stack_fields(const struct ct_stack *s, struct field *out, int max)
{
	struct field *at = out, *list;

	field_add_u(&at, "id", FIELD_UINT, s->id);
	field_add_u(&at, "flags", FIELD_UINT, s->flags);
	list = field_add(&at, "frames", FIELD_OPEN);
	list->is_list = true;
	for (uint32_t i = 0; i < s->nframes; i++) {
		if (at - out >= max - 1) {
			list->cut = true;
			break;
		}
		field_add_u(&at, NULL, FIELD_UINT, s->frames[i]);
	}
	field_add(&at, NULL, FIELD_CLOSE);
	return (int)(at - out);
}

int event_fields(const struct event *ev, struct field *out, int max)
{
	struct field *at = out;

	switch (ev->rec->kind) {
	case CT_CALL:
	case CT_ENTER: return api_decode((const struct ct_call *)ev->rec, API_ARCH_HERE, out, max);
	}
	if (max < 8)
		return 0;
	switch (ev->rec->kind) {
	case CT_PROCESS:
	case CT_EXEC: return process_fields((const struct ct_process *)ev->rec, out);
	case CT_NAME: return name_fields((const struct ct_name *)ev->rec, out);
	case CT_FRAME: return frame_fields((const struct ct_frame *)ev->rec, out);
	case CT_STACK: return stack_fields((const struct ct_stack *)ev->rec, out, max);
	case CT_LOST: return lost_fields((const struct ct_lost *)ev->rec, out);
	case CT_HOLE: return hole_fields((const struct ct_hole *)ev->rec, out);
	case CT_HOST_SEGMENT: return segment_fields((const struct ct_host_segment *)ev->rec, out);
	case CT_MUTED: return muted_fields((const struct ct_muted *)ev->rec, out);
	case CT_FORK:
		field_add_u(&at, "child_pid", FIELD_UINT,
			    ((const struct ct_fork *)ev->rec)->child_pid);
		break;
	case CT_EXIT:
		field_add(&at, "status", FIELD_INT)->i = ((const struct ct_exit *)ev->rec)->status;
		break;
	default: return device_fields(ev, out, max);
	}
	return (int)(at - out);
}
