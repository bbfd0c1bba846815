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
