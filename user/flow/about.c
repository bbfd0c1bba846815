/* SPDX-License-Identifier: BSD-2-Clause */
/* about.c - see about.h. All strings of a record are untrusted bytes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../event/device.h"
#include "../event/hole_words.h"
#include "../util/put.h"
#include "../event/scopes/lineage.h"
#include "about.h"
#include "table_text.h"

#define STRING_MAX_BYTES 4096
#define MAX_OPEN 16
#define HOST_BYTES 64

const char *about_kind(uint16_t kind)
{
	return kind < CT_KIND_END ? record_kinds[kind].word : NULL;
}

/* ---- names ---- */

/* NULL: the word for the kind is enough. */
static const char *work_name(const struct ct_hdr *h)
{
	switch (h->kind) {
	case CT_KERNEL: return "[kernel]";
	case CT_SET: return "memset";
	case CT_MEMORY:
		return ((const struct ct_memory *)h)->op == CT_MEMORY_FREE ? "device memory free"
									   : "device memory alloc";
	case CT_EVENT: return device_event_type(((const struct ct_event *)h)->type);
	}
	return about_kind(h->kind);
}

/* "memcpy HtoD", "sync stream": two words; the second is left out if it is "unknown". */
static void two_words(struct text *t, const char *first, const char *second)
{
	text_str(t, first);
	if (!strcmp(second, "unknown"))
		return;
	text_str(t, " ");
	text_str(t, second);
}

void about_text(struct text *t, const char *s, size_t n)
{
	char copy[STRING_MAX_BYTES + 1];

	snprintf(copy, sizeof(copy), "%.*s", (int)(n < sizeof(copy) - 1 ? n : sizeof(copy) - 1), s);
	text_plain(t, copy, STRING_MAX_BYTES);
}

size_t about_scope(const struct ct_scope *s, char buf[ABOUT_SCOPE_MAX])
{
	size_t n = strnlen(s->text, s->text_len), room = ABOUT_SCOPE_MAX - sizeof("...");
	bool cut = s->flags & CT_SCOPE_CUT || n > room;

	if (s->flags & CT_SCOPE_UNNAMED)
		return (size_t)snprintf(buf, ABOUT_SCOPE_MAX, "?");
	if (n > room)
		n = text_cut(s->text, room);
	return (size_t)snprintf(buf, ABOUT_SCOPE_MAX, "%.*s%s", (int)n, s->text, cut ? "..." : "");
}

const char *about_around(const struct event *ev)
{
	return ev->scope ? ev->scope->name : ev->scope_id == CT_SCOPE_NONE ? NULL : "?";
}

void about_name(struct text *t, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	const struct ct_marker *m = (const struct ct_marker *)h;
	const struct ct_foreign *foreign = (const struct ct_foreign *)h;
	const struct ct_muted *muted = (const struct ct_muted *)h;
	char scope[ABOUT_SCOPE_MAX];
	const char *name;

	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER: text_str(t, api_funcs[((const struct ct_call *)h)->func].name); return;
	case CT_FOREIGN:
		about_text(t, (const char *)&foreign->words[foreign->nwords], foreign->name_len);
		return;
	case CT_MARKER: about_text(t, m->text, m->text_len); return;
	case CT_SCOPE_BEGIN:
	case CT_SCOPE_END:
		about_text(t, scope, about_scope((const struct ct_scope *)h, scope));
		return;
	case CT_MUTED: about_text(t, muted->text + muted->domain_len, muted->name_len); return;
	case CT_LOST:
		text_str(t, loss_name((enum ct_loss)((const struct ct_lost *)h)->cause));
		return;
	case CT_HOLE: text_str(t, hole_reason(((const struct ct_hole *)h)->reason)); return;
	case CT_COPY:
		two_words(t, "memcpy", device_copy_kind(((const struct ct_copy *)h)->kind));
		return;
	case CT_SYNC:
		two_words(t, "sync", device_sync_type(((const struct ct_sync *)h)->type));
		return;
	case CT_MANAGED:
		two_words(t, "managed", device_managed_kind(((const struct ct_managed *)h)->kind));
		return;
	case CT_OVERHEAD:
		two_words(t, "overhead",
			  device_overhead_kind(((const struct ct_overhead *)h)->type));
		return;
	}
	if (h->kind == CT_KERNEL && ev->kernel) {
		table_kernel(t, o, ev->kernel);
		return;
	}
	name = work_name(h);
	text_str(t, name ? name : "?");
}

/* ---- fields ---- */

static void about_put_flags(struct text *t, const struct field *f)
{
	uint64_t left = f->u;
	const struct xlat_row *row;
	int at = 0;
	bool first = true;

	while ((row = xlat_flag(f->xlat, f->u, left, &at))) {
		text_str(t, first ? "" : "|");
		text_str(t, row->name);
		left &= ~(uint64_t)row->value;
		first = false;
	}
	if (!left && !first)
		return;
	text_str(t, first ? "" : "|");
	text_hex(t, left);
}

static void about_put_number(struct text *t, const struct field *f)
{
	char num[64], *end = num;

	switch (f->type) {
	case FIELD_FLOAT:
		end = isfinite(f->f) ? put_double(end, f->f, f->single) : put_lit(end, "?");
		break;
	case FIELD_RATE: /* bytes divided by time: nine digits are more than enough */
		end += snprintf(num, sizeof(num), "%.9g", f->f);
		break;
	case FIELD_DIM3:
		end = put_char(
			put_u64(put_char(put_u64(put_char(put_u64(end, f->dim[0]), ' '), f->dim[1]),
					 ' '),
				f->dim[2]),
			')');
		text_str(t, "(");
		break;
	default: end = put_i64(end, f->i);
	}
	text_mem(t, num, (size_t)(end - num));
}

static void put_value(struct text *t, const struct field *f)
{
	const char *name;

	switch (f->absent ? FIELD_PTR : f->type) {
	case FIELD_UINT: text_u64(t, f->u); break;
	case FIELD_SIZE:
		text_u64(t, f->u);
		text_str(t, " bytes");
		break;
	case FIELD_PTR:
	case FIELD_FUNC:
	case FIELD_STREAM: text_hex(t, f->u); break;
	case FIELD_DURATION:
		text_u64(t, f->u);
		text_str(t, " ns");
		break;
	case FIELD_ENUM:
	case FIELD_WORD:
	case FIELD_ERROR:
		name = f->xlat ? xlat_name(f->xlat, f->i) : NULL;
		if (name)
			text_str(t, f->type == FIELD_ENUM ? xlat_short(f->xlat, name) : name);
		else
			about_put_number(t, f);
		break;
	case FIELD_FLAGS: about_put_flags(t, f); break;
	case FIELD_BOOL: text_str(t, f->u ? "true" : "false"); break;
	case FIELD_INT:
	case FIELD_FLOAT:
	case FIELD_DIM3: about_put_number(t, f); break;
	case FIELD_RATE:
		about_put_number(t, f);
		text_str(t, " bytes/s");
		break;
	case FIELD_STR:
		text_str(t, "\"");
		about_text(t, f->str, f->str_len);
		text_str(t, f->cut ? "\"..." : "\"");
		break;
	case FIELD_BYTES:
		for (uint32_t i = 0; i < f->str_len && i < STRING_MAX_BYTES; i++) {
			text_mem(t, &"0123456789abcdef"[(unsigned char)f->str[i] >> 4], 1);
			text_mem(t, &"0123456789abcdef"[f->str[i] & 15], 1);
		}
		break;
	default: text_str(t, "?");
	}
}

void about_fields(struct text *t, const struct field *f, int n)
{
	bool list[MAX_OPEN] = { false };
	int open = 0, skip = 0;
	bool first = true;

	for (int i = 0; i < n; i++, f++) {
		if (f->type == FIELD_CLOSE) {
			if (skip)
				skip--;
			else if (open)
				text_str(t, list[open--] ? "]" : "}");
			first = false;
			continue;
		}
		if (skip || open == MAX_OPEN - 1) {
			skip += f->type == FIELD_OPEN && !f->absent;
			continue;
		}
		if (f->absent && f->out)
			continue; /* its value is not known */
		text_str(t, first ? "" : ", ");
		first = false;
		if (!list[open] && f->name) {
			text_str(t, f->name);
			text_str(t, "=");
		}
		if (f->type != FIELD_OPEN || f->absent) {
			put_value(t, f);
			continue;
		}
		list[++open] = f->is_list;
		text_str(t, f->is_list ? "[" : "{");
		first = true;
	}
	for (; open; open--)
		text_str(t, list[open] ? "]" : "}");
}

/* ---- numbers ---- */

int64_t about_bytes(const struct ct_hdr *h)
{
	const struct ct_collective *more;

	switch (h->kind) {
	case CT_CALL:
		return h->flags & CT_F_BEFORE ? -1
					      : api_size((const struct ct_call *)h, API_ARCH_HERE);
	case CT_COPY: return (int64_t)((const struct ct_copy *)h)->bytes;
	case CT_SET: return (int64_t)((const struct ct_set *)h)->bytes;
	case CT_MEMORY: return (int64_t)((const struct ct_memory *)h)->bytes;
	case CT_SCOPE_END:
		more = scope_collective((const struct ct_scope *)h);
		return more && more->bytes ? (int64_t)more->bytes : -1;
	}
	return -1;
}

bool about_is_call(const struct ct_hdr *h)
{
	return h->kind == CT_CALL ||
	       (h->kind == CT_FOREIGN && ((const struct ct_foreign *)h)->kind == CT_CALL);
}

bool about_is_hidden(const struct ct_hdr *h)
{
	return h->flags & CT_F_HIDDEN && (h->kind == CT_CALL || h->kind == CT_SCOPE_END);
}

void about_flags(struct text *t, const struct ct_hdr *h)
{
	static const struct {
		uint16_t flag;
		bool work;
		const char *word;
	} words[] = {
		{ CT_F_UNFINISHED, false, "unfinished" }, { CT_F_NO_RETURN, false, "no_return" },
		{ CT_F_PER_THREAD, false, "per_thread" }, { CT_F_BEFORE, false, "before" },
		{ CT_F_BY_SCAN, false, "by_scan" },	  { CT_F_INFERRED, true, "inferred" },
		{ CT_F_NO_TIME, true, "no_time" },
	};
	bool call = about_is_call(h), work = kind_is(h->kind, KIND_WORK);

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (!(h->flags & words[i].flag) || !(words[i].work ? work : call))
			continue;
		text_str(t, t->len ? " " : "");
		text_str(t, words[i].word);
	}
	if (h->kind == CT_FOREIGN)
		text_str(t, t->len ? " unknown_function" : "unknown_function");
}

uint64_t about_duration_ns(const struct ct_hdr *h)
{
	if (about_is_call(h) && h->flags & (CT_F_NO_RETURN | CT_F_BEFORE))
		return 0;
	if (kind_is(h->kind, KIND_WORK) && h->flags & CT_F_NO_TIME)
		return 0;
	return h->end_ns > h->start_ns ? h->end_ns - h->start_ns : 0;
}

uint32_t about_tid(const struct event *ev)
{
	return ev->rec->tid ? process_tid(ev->proc, ev->rec->tid) : 0;
}

void about_whom(struct text *t, const struct process *p)
{
	if (p->info && *p->info->host) {
		text_str(t, " on ");
		text_plain(t, p->info->host, HOST_BYTES);
	}
	if (p->nth < 2)
		return;
	text_str(t, " #");
	text_u64(t, p->nth);
}

const char *about_thread(const struct event *ev)
{
	return ev->rec->tid && ev->rec->tid == ev->rec->pid ? ev->proc->comm : ev->thread;
}
