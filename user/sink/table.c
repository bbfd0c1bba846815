/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - one row for a completed call, for people:
 *
 *   TIME(ms)   PROCESS         PID        EVENT                DETAILS
 *   1234.018   my_cuda_app     12345      cudaMalloc           size=1048576 bytes, devPtr=0x7f81dc800000, returned=0 (success), 112.4us
 *
 * A launch has the kernel's name in place of its address, `cudaLaunchKernel  vecAdd(float const*, int), grid=(4096,1,1)`, and a
 * call with a stack has its frames below it. With --enter-exit two rows a call, in the words of the original script:
 * `cudaMalloc size=1048576 bytes`, then `cudaMalloc returned=0 (success)`. Nothing that the target wrote reaches the terminal
 * raw. Knows no function by name.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../util/utf8.h"
#include "row.h"
#include "sink.h"
#include "table_text.h"

#define TIME_WIDTH 10
#define TIME_US_WIDTH 14
#define TIME_ISO_WIDTH 27
#define AGE_WIDTH 8
#define COMM_WIDTH 15
#define PID_WIDTH 10
#define EVENT_WIDTH 20

#define FIELD_ROOM 512 /* anything but strings and flags: a label, a value, punctuation */
#define STR_MAX 2048
#define PROC_CACHE 64 /* a power of two */
#define MAX_OPEN 16   /* structs in structs */

#define RED "\033[31m"
#define PLAIN "\033[0m"

struct proc_text {
	uint32_t pid, shown_pid;
	char comm[CT_COMM_LEN];
	uint8_t len; /* 0: nothing there yet */
	char text[CT_COMM_LEN * 4 + 32];
};

struct table {
	struct row w;
	time_t iso_s; /* the second that iso_text names */
	char iso_text[24];
	struct proc_text procs[PROC_CACHE];
	struct texts *kernels, *stacks;
};

/* ---- values ------------------------------------------------------------------------------------------- */

/* C's escapes; everything beyond ASCII in octal, which cannot run into a digit that follows. 4 bytes of room a byte. */
static char *put_escaped(char *p, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c >= ' ' && c < 0x7f) {
			if (c == '"' || c == '\\')
				*p++ = '\\';
			*p++ = (char)c;
		} else if (c == '\n') {
			p = put_lit(p, "\\n");
		} else if (c == '\t') {
			p = put_lit(p, "\\t");
		} else if (c == '\r') {
			p = put_lit(p, "\\r");
		} else {
			*p++ = '\\';
			*p++ = (char)('0' + (c >> 6));
			*p++ = (char)('0' + (c >> 3 & 7));
			*p++ = (char)('0' + (c & 7));
		}
	}
	return p;
}

static void put_string(struct row *w, const struct field *f)
{
	size_t n = f->str_len < STR_MAX ? f->str_len : STR_MAX;

	row_room(w, n * 4 + FIELD_ROOM);
	*w->p++ = '"';
	w->p = put_escaped(w->p, f->str, n);
	*w->p++ = '"';
	if (f->cut || n < f->str_len)
		w->p = put_lit(w->p, "...");
}

static void put_bytes(struct row *w, const struct field *f)
{
	size_t n = f->str_len < STR_MAX ? f->str_len : STR_MAX;

	row_room(w, n * 2 + FIELD_ROOM);
	for (size_t i = 0; i < n; i++) {
		*w->p++ = "0123456789abcdef"[(unsigned char)f->str[i] >> 4];
		*w->p++ = "0123456789abcdef"[f->str[i] & 15];
	}
	if (f->cut || n < f->str_len)
		w->p = put_lit(w->p, "...");
}

/* 0x5 (cudaStreamNonBlocking|0x4): bits that have no name are never dropped. */
static void put_flags(struct row *w, const struct field *f)
{
	uint64_t left = f->u;
	const char *sep = " (";

	w->p = put_hex(w->p, f->u);
	for (int i = 0; left && f->xlat && i < f->xlat->nrows; i++) {
		uint64_t bits = (uint64_t)f->xlat->rows[i].value;

		if (!bits || (f->u & bits) != bits || !(left & bits))
			continue;
		row_room(w, FIELD_ROOM);
		w->p = put_str(put_str(w->p, sep), f->xlat->rows[i].name);
		left &= ~bits;
		sep = "|";
	}
	if (*sep != '|')
		return;
	row_room(w, FIELD_ROOM);
	if (left)
		w->p = put_hex(put_char(w->p, '|'), left);
	*w->p++ = ')';
}

static char *put_enum(char *p, const struct field *f, bool bare)
{
	const char *name = f->xlat && !bare ? xlat_name(f->xlat, f->i) : NULL;

	p = put_i64(p, f->i);
	if (!name)
		return p;
	p = put_str(put_lit(p, " ("), xlat_short(f->xlat, name));
	return put_char(p, ')');
}

static char *put_error(char *p, const struct field *f)
{
	const char *name;

	if (!f->i)
		return put_lit(p, "0 (success)");
	p = put_i64(p, f->i);
	name = f->xlat ? xlat_name(f->xlat, f->i) : NULL;
	return name ? put_char(put_str(put_lit(p, " ("), name), ')') : p;
}

static char *put_stream(char *p, uint64_t v, bool per_thread)
{
	p = put_hex(p, v);
	if (v == 1)
		return put_lit(p, " (legacy)");
	if (v == 2 || (!v && per_thread))
		return put_lit(p, " (per-thread)");
	return p;
}

static char *put_dim3(char *p, const uint32_t dim[3])
{
	p = put_u64(put_char(p, '('), dim[0]);
	p = put_u64(put_char(p, ','), dim[1]);
	p = put_u64(put_char(p, ','), dim[2]);
	return put_char(p, ')');
}

static void put_value(struct row *w, const struct field *f, bool per_thread, bool bare)
{
	switch (f->absent ? FIELD_PTR : f->type) {
	case FIELD_INT:
		w->p = put_i64(w->p, f->i);
		break;
	case FIELD_UINT:
		w->p = put_u64(w->p, f->u);
		break;
	case FIELD_SIZE:
		w->p = put_lit(put_u64(w->p, f->u), " bytes");
		break;
	case FIELD_PTR:
	case FIELD_FUNC:
		w->p = put_hex(w->p, f->u);
		break;
	case FIELD_STREAM:
		w->p = put_stream(w->p, f->u, per_thread);
		break;
	case FIELD_ENUM:
		w->p = put_enum(w->p, f, bare);
		break;
	case FIELD_ERROR:
		w->p = put_error(w->p, f);
		break;
	case FIELD_FLAGS:
		put_flags(w, f);
		break;
	case FIELD_BOOL:
		w->p = f->u ? put_lit(w->p, "true") : put_lit(w->p, "false");
		break;
	case FIELD_FLOAT:
		w->p += snprintf(w->p, 40, "%.7g", f->f);
		break;
	case FIELD_DIM3:
		w->p = put_dim3(w->p, f->dim);
		break;
	case FIELD_STR:
		put_string(w, f);
		break;
	case FIELD_BYTES:
		put_bytes(w, f);
		break;
	default:
		*w->p++ = '?';
		break;
	}
}

/* 820ns, 7.1us, 112.4us, 310us, 1.42ms, 2.05s */
static char *put_duration(char *p, uint64_t ns)
{
	uint64_t tenths = (ns + 50) / 100, hundredths;
	const char *unit = "ms";

	if (ns < 1000)
		return put_lit(put_u64(p, ns), "ns");
	if (tenths < 10000) {
		p = put_u64(p, tenths / 10);
		if (tenths % 10)
			p = put_char(put_char(p, '.'), (char)('0' + tenths % 10));
		return put_lit(p, "us");
	}
	hundredths = (ns + 5000) / 10000;
	if (hundredths >= 100000) {
		hundredths = (ns + 5000000) / 10000000;
		unit = "s";
	}
	p = put_u64(p, hundredths / 100);
	if (hundredths % 100) {
		*p++ = '.';
		*p++ = (char)('0' + hundredths % 100 / 10);
		if (hundredths % 10)
			*p++ = (char)('0' + hundredths % 10);
	}
	return put_str(p, unit);
}

/* ---- columns ------------------------------------------------------------------------------------------ */

static char *put_iso(struct table *t, char *p, uint64_t ns)
{
	time_t s = (time_t)(ns / 1000000000);
	unsigned int us = (unsigned int)(ns % 1000000000 / 1000);

	if (s != t->iso_s) {
		struct tm tm;

		gmtime_r(&s, &tm);
		if (!strftime(t->iso_text, sizeof(t->iso_text), "%Y-%m-%dT%H:%M:%S", &tm))
			t->iso_text[0] = '\0';
		t->iso_s = s;
	}
	p = put_char(put_str(p, t->iso_text), '.');
	p = put_3digits(p, us / 1000);
	return put_char(put_3digits(p, us % 1000), 'Z');
}

static int time_width(const struct sink_opts *o)
{
	return o->time == SINK_TIME_MS ? TIME_WIDTH : o->time == SINK_TIME_US ? TIME_US_WIDTH : TIME_ISO_WIDTH;
}

static char *put_time(struct table *t, const struct sink_opts *o, char *p, uint64_t at_ns)
{
	/* a call that was under way when the trace began */
	uint64_t ns = at_ns > o->start_ns ? at_ns - o->start_ns : 0;
	char *begin = p;

	if (o->time == SINK_TIME_ISO) {
		p = put_iso(t, p, at_ns + o->realtime_offset_ns);
	} else {
		if (o->time == SINK_TIME_MS)
			ns /= 1000;
		p = put_char(put_u64(p, ns / 1000), '.');
		p = put_3digits(p, (unsigned int)(ns % 1000));
	}
	return put_char(put_pad(p, begin, time_width(o)), ' ');
}

/* 250ms, 12.3s, 2m13s, 1h02m, 3d04h; with > when it is the least that it can be */
static char *put_age(char *p, uint64_t ns, bool least)
{
	uint64_t s = ns / 1000000000, rest = s % 60;
	const char *units = "ms";

	if (least)
		*p++ = '>';
	if (!s)
		return put_lit(put_u64(p, ns / 1000000), "ms");
	if (s < 60)
		return put_lit(put_u64(put_char(put_u64(p, s), '.'), ns / 100000000 % 10), "s");
	s /= 60;
	if (s >= 60) {
		rest = s % 60;
		s /= 60;
		units = "hm";
	}
	if (s >= 24 && *units == 'h') {
		rest = s % 24;
		s /= 24;
		units = "dh";
	}
	p = put_char(put_u64(p, s), units[0]);
	p = put_char(put_char(p, (char)('0' + rest / 10)), (char)('0' + rest % 10));
	return put_char(p, units[1]);
}

/* A process's name as it may stand in a column: what could steer a terminal becomes '?'. Width in characters. */
static char *put_comm(char *p, const char *comm)
{
	size_t n = strnlen(comm, CT_COMM_LEN);
	int width = 0;

	while (n) {
		uint32_t code;
		int len = utf8_next(comm, n, &code);

		if (len && utf8_is_safe(code)) {
			p = put_mem(p, comm, (size_t)len);
		} else {
			*p++ = '?';
			len = len ? len : 1;
		}
		comm += len;
		n -= (size_t)len;
		width++;
	}
	for (; width < COMM_WIDTH; width++)
		*p++ = ' ';
	return put_char(p, ' ');
}

static const struct proc_text *proc_text(struct table *t, const struct process *proc)
{
	struct proc_text *e = &t->procs[proc->pid & (PROC_CACHE - 1)];
	char *p, *begin;

	if (e->len && e->pid == proc->pid && e->shown_pid == proc->shown_pid &&
	    !memcmp(e->comm, proc->comm, CT_COMM_LEN))
		return e;
	e->pid = proc->pid;
	e->shown_pid = proc->shown_pid;
	memcpy(e->comm, proc->comm, CT_COMM_LEN);
	begin = put_comm(e->text, proc->comm);
	p = put_char(put_pad(put_u64(begin, proc->shown_pid), begin, PID_WIDTH), ' ');
	e->len = (uint8_t)(p - e->text);
	return e;
}

/* Everything before DETAILS. */
/* The name of a function that this version does not have, as a file has it: untrusted bytes. */
static char *put_foreign_name(char *p, const struct ct_foreign *f)
{
	const char *name = (const char *)&f->words[f->nwords];

	for (unsigned int i = 0; i < f->name_len; i++)
		*p++ = name[i] > ' ' && name[i] < 0x7f ? name[i] : '?';
	return p;
}

static void put_columns(struct table *t, const struct sink_opts *o, const struct event *ev, uint64_t at_ns)
{
	const struct ct_foreign *foreign = ev->rec->kind == CT_FOREIGN ? (const struct ct_foreign *)ev->rec : NULL;
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const struct proc_text *proc = proc_text(t, ev->proc);
	char *p = o->stuck ? t->w.p : put_time(t, o, t->w.p, at_ns), *begin;

	p = put_mem(p, proc->text, proc->len);
	if (o->tid) {
		begin = p;
		p = put_u64(p, ev->rec->tid == ev->proc->pid ? ev->proc->shown_pid : ev->rec->tid);
		p = put_char(put_pad(p, begin, PID_WIDTH), ' ');
	}
	if (o->stuck) {
		begin = p;
		p = put_age(p, ev->rec->end_ns - ev->rec->start_ns, ev->rec->flags & CT_F_BEFORE);
		p = put_char(put_pad(p, begin, AGE_WIDTH), ' ');
	}
	begin = p;
	for (int i = 0; o->nested && i < (foreign ? foreign->depth : c->depth) && i < 16; i++)
		p = put_lit(p, "  ");
	p = foreign ? put_foreign_name(p, foreign) : put_str(p, api_funcs[c->func].name);
	t->w.p = put_char(put_pad(p, begin, EVENT_WIDTH), ' ');
}

/* ---- rows --------------------------------------------------------------------------------------------- */

/*
 * The argument that the kernel's name stands for: the first input that is a function and not null. NULL: none. `bare`: the
 * name comes first and without a label, as what is launched does.
 */
static const struct field *kernel_field(const struct ct_call *c, const struct field *f, int n, bool *bare)
{
	int open = 0;

	for (int i = 0; i < n; i++) {
		if (f[i].type == FIELD_CLOSE)
			open--;
		else if (f[i].type == FIELD_OPEN && !f[i].absent)
			open++;
		else if (f[i].type == FIELD_FUNC && !f[i].out && !f[i].absent && f[i].u) {
			*bare = !open && (api_funcs[c->func].class == API_LAUNCH || (f[i].label && !strcmp(f[i].label, "function")));
			return &f[i];
		}
	}
	return NULL;
}

/* NULL: no memory. */
static const struct text *kernel_text(struct table *t, const struct sink_opts *o, const struct kernel_name *k)
{
	uint64_t key = texts_key(k, k->cut);
	const struct text *text = texts_find(t->kernels, key, k->mangled);
	struct text *made;

	if (text)
		return text;
	made = texts_add(t->kernels, key, k->mangled);
	if (made)
		table_kernel(made, o, k);
	return made;
}

static void put_stack(struct table *t, const struct sink_opts *o, const struct stack *stack)
{
	const struct text *text = texts_find(t->stacks, stack->id, NULL);
	struct text *made;

	if (!text) {
		made = texts_add(t->stacks, stack->id, NULL);
		if (!made)
			return;
		table_stack(made, o, stack);
		text = made;
	}
	row_mem(&t->w, text->s, text->len);
}

/* The kernel's name in a row. */
struct named {
	const struct field *field; /* whose place it takes; NULL: there is no name */
	const struct text *text;
	bool bare;
};

/*
 * Arguments and outputs, separated by commas. An output that is not there, and what the table gives no label to, is left
 * out. entry: of the short entry row, those marked as brief only (if any is) and numbers without names.
 */
static bool put_fields(struct row *w, const struct field *f, int n, const struct named *k, bool per_thread, bool entry)
{
	bool brief = false, any = k->field && k->bare, first = !any;
	bool list[MAX_OPEN] = { false };
	int skip = 0;

	if (any)
		row_mem(w, k->text->s, k->text->len);
	for (int i = 0; entry && i < n; i++)
		brief |= f[i].brief;
	for (int i = 0, open = 0; i < n; i++, f++) {
		if (f->type == FIELD_CLOSE) {
			if (skip) {
				skip--;
			} else if (open) {
				row_room(w, FIELD_ROOM);
				*w->p++ = list[open--] ? ']' : '}';
				first = false;
			}
			continue;
		}
		if (skip || (f->absent && f->out) || (f->label && !*f->label) || (f == k->field && k->bare) ||
		    (entry && !open && (f->out || (brief && !f->brief))) || open == MAX_OPEN - 1) {
			skip += f->type == FIELD_OPEN && !f->absent;
			continue;
		}
		row_room(w, FIELD_ROOM);
		if (!first)
			w->p = put_lit(w->p, ", ");
		if (f->name)
			w->p = put_char(put_str(w->p, f->label ? f->label : f->name), '=');
		first = false;
		any = true;
		if (f->type == FIELD_OPEN && !f->absent) {
			*w->p++ = f->is_list ? '[' : '{';
			list[++open] = f->is_list;
			first = true;
		} else if (f == k->field) {
			row_mem(w, k->text->s, k->text->len);
		} else {
			put_value(w, f, per_thread, entry);
		}
	}
	return any;
}

static void put_result(struct table *t, const struct sink_opts *o, const struct ct_call *c, const struct field *ret)
{
	bool red = o->color && api_failed(c);
	struct row *w = &t->w;

	row_room(w, FIELD_ROOM);
	if (red)
		w->p = put_lit(w->p, RED);
	w->p = put_lit(w->p, "returned=");
	put_value(w, ret, false, false);
	row_room(w, FIELD_ROOM);
	if (red)
		w->p = put_lit(w->p, PLAIN);
}

/* Of a call that was under way when it was shown last. */
static void put_news(struct table *t, const struct ct_hdr *h, bool comma)
{
	bool before = h->flags & CT_F_BEFORE;
	char *p = comma ? put_lit(t->w.p, ", ") : t->w.p;

	if (!(h->flags & CT_F_UNFINISHED))
		p = put_lit(p, "resumed after ");
	else
		p = before ? put_lit(p, "thread ended after ") : put_lit(p, "left without a return after ");
	if (h->flags & (CT_F_BEFORE | CT_F_NO_RETURN))
		p = put_lit(p, "more than ");
	t->w.p = put_age(p, h->end_ns - h->start_ns, false);
}

/* A call that began before the trace: nothing is known of it but that it is there, and perhaps what it launches. */
static void before_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	const struct text *kernel = ev->kernel ? kernel_text(t, o, ev->kernel) : NULL;

	put_columns(t, o, ev, ev->rec->start_ns);
	if (kernel) {
		row_mem(&t->w, kernel->s, kernel->len);
		row_room(&t->w, FIELD_ROOM);
		t->w.p = put_lit(t->w.p, ", ");
	}
	if (!o->stuck)
		t->w.p = put_lit(t->w.p, "<unfinished ...> ");
	if (!o->stuck || ev->rec->flags & CT_F_PENDING)
		t->w.p = put_lit(t->w.p, "began before the trace");
	else
		put_news(t, ev->rec, false);
	if (ev->rec->flags & CT_F_BY_SCAN)
		t->w.p = put_lit(t->w.p, " [by scan]");
}

static void call_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	bool entry = c->h.kind == CT_ENTER, unfinished = c->h.flags & CT_F_UNFINISHED;
	bool open_end = entry || (c->h.flags & CT_F_NO_RETURN), exit_row = o->enter_exit && !open_end;
	bool per_thread = c->h.flags & CT_F_PER_THREAD;
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);
	const struct field *ret = NULL;
	struct named named = { NULL };
	bool any = false;

	put_columns(t, o, ev, exit_row ? c->h.end_ns : c->h.start_ns);
	if (n && !open_end && !unfinished && f[n - 1].name && !strcmp(f[n - 1].name, "returned"))
		ret = &f[--n];
	if (ev->kernel)
		named.field = kernel_field(c, f, n, &named.bare);
	if (named.field)
		named.text = kernel_text(t, o, ev->kernel);
	if (!named.text)
		named.field = NULL;
	if (!exit_row)
		any = put_fields(&t->w, f, n, &named, per_thread, entry);
	row_room(&t->w, FIELD_ROOM);
	if (any && (ret || (unfinished && !o->stuck)))
		t->w.p = put_lit(t->w.p, ", ");
	if (ret)
		put_result(t, o, c, ret);
	if (o->stuck) {
		if (!(c->h.flags & CT_F_PENDING))
			put_news(t, &c->h, any || ret);
	} else if (unfinished) {
		t->w.p = put_lit(t->w.p, "<unfinished ...>");
	} else if (!open_end && !exit_row) {
		t->w.p = put_duration(any || ret ? put_lit(t->w.p, ", ") : t->w.p, c->h.end_ns - c->h.start_ns);
	}
	/* no row ends in spaces */
	while (t->w.p > t->w.begin && t->w.p[-1] == ' ')
		t->w.p--;
}

/* A stored call of a function that this version does not know: its words, and nothing made of them. */
static void foreign_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_foreign *f = (const struct ct_foreign *)ev->rec;

	put_columns(t, o, ev, ev->rec->start_ns);
	row_room(&t->w, FIELD_ROOM);
	t->w.p = put_lit(t->w.p, "words=[");
	for (int i = 0; i < f->nwords; i++)
		t->w.p = put_hex(i ? put_lit(t->w.p, ", ") : t->w.p, f->words[i]);
	t->w.p = put_char(t->w.p, ']');
	if (f->kind == CT_CALL && f->h.flags & CT_F_UNFINISHED)
		t->w.p = put_lit(t->w.p, ", <unfinished ...>");
	else if (f->kind == CT_CALL && !(f->h.flags & CT_F_NO_RETURN))
		t->w.p = put_duration(put_lit(put_hex(put_lit(t->w.p, ", returned="), (uint64_t)f->ret), ", "),
				      f->h.end_ns - f->h.start_ns);
}

static int table_event(struct sink *s, const struct event *ev)
{
	struct table *t = s->priv;
	const struct ct_hdr *h = ev->rec;
	bool call = h->kind == CT_CALL || h->kind == CT_ENTER, foreign = h->kind == CT_FOREIGN;

	if (!call && !foreign && h->kind != CT_LOST)
		return 0;
	row_begin(&t->w, s->opts->out);
	if (call && h->flags & CT_F_BEFORE) {
		before_row(t, s->opts, ev);
	} else if (call) {
		call_row(t, s->opts, ev);
	} else if (foreign) {
		foreign_row(t, s->opts, ev);
	} else {
		const struct ct_lost *l = (const struct ct_lost *)h;

		t->w.p = put_u64(put_lit(t->w.p, "--- "), l->count);
		t->w.p = put_str(t->w.p, l->count == 1 ? " record lost: " : " records lost: ");
		t->w.p = put_lit(put_str(t->w.p, loss_text((enum ct_loss)l->cause)), " ---");
	}
	row_room(&t->w, FIELD_ROOM);
	*t->w.p++ = '\n';
	if (call && ev->stack)
		put_stack(t, s->opts, ev->stack);
	row_end(&t->w);
	if (s->opts->out->error)
		return s->opts->out->error;
	return call || foreign;
}

static int table_open(struct sink *s, const struct sink_opts *opts)
{
	static const char *const time_name[] = { "TIME(ms)", "TIME(us)", "TIME" };
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->iso_s = -1;
	s->priv = t;
	s->opts = opts;
	t->kernels = texts_open();
	t->stacks = texts_open();
	if (!t->kernels || !t->stacks)
		return -ENOMEM;
	if (!opts->stuck)
		out_fmt(opts->out, "%-*s ", time_width(opts), time_name[opts->time]);
	out_fmt(opts->out, "%-*s %-*s ", COMM_WIDTH, "PROCESS", PID_WIDTH, "PID");
	if (opts->tid)
		out_fmt(opts->out, "%-*s ", PID_WIDTH, "TID");
	if (opts->stuck)
		out_fmt(opts->out, "%-*s ", AGE_WIDTH, "FOR");
	out_fmt(opts->out, "%-*s DETAILS\n", EVENT_WIDTH, "EVENT");
	return 0;
}

static int table_close(struct sink *s, const struct sink_end *end)
{
	struct table *t = s->priv;

	(void)end;
	if (!t)
		return 0;
	texts_close(t->kernels);
	texts_close(t->stacks);
	free(t);
	s->priv = NULL;
	return s->opts->out->error;
}

const struct sink_ops sink_table = {
	.name = "table",
	.help = "one row for a completed call",
	.open = table_open,
	.event = table_event,
	.close = table_close,
};
