/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - one row for a completed call, for people:
 *
 *   TIME(ms)   PROCESS         PID        EVENT                DETAILS
 *   1234.018   my_cuda_app     12345      cudaMalloc           size=1048576 bytes,
 *              devPtr=0x7f81dc800000, returned=0 (success), 112.4us
 *
 * A launch has the kernel's name in place of its address, `cudaLaunchKernel  vecAdd(float
 * const*, int), grid=(4096,1,1)`, and a
 * call with a stack has its frames below it. With --enter-exit two rows a call, which together have
 * what the one has: `cudaMalloc size=1048576 bytes`, then `cudaMalloc devPtr=0x7f81dc800000,
 * returned=0 (success), 112.4us`. What a device did has rows of its own:
 *
 *   1234.140   my_cuda_app     12345      [memcpy HtoD]        size=1048576 bytes,
 *              bandwidth=24.8 GB/s, src=pinned, ..., 42.3us
 *
 * --compact: table_compact.h. Nothing that the target wrote reaches the terminal raw. Knows no
 * function by name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../event/device.h"
#include "../../event/scopes/lineage.h"
#include "../../util/io/ended.h"
#include "../../util/utf8.h"
#include "../../flow/about.h"
#include "../../flow/order.h"
#include "../../flow/row.h"
#include "../../flow/sink.h"
#include "table_groups.h"
#include "../../flow/table_text.h"
#include "table_collective.h"
#include "table_gemm.h"
#include "table_compact.h"
#include "table_values.h"

#define TIME_WIDTH 10
#define TIME_US_WIDTH 14
#define TIME_UNIX_WIDTH 17
#define TIME_ISO_WIDTH 27
#define TIME_DAY_WIDTH 8
#define TIME_DAY_US_WIDTH 15
#define AGE_WIDTH 8
#define COMM_WIDTH 15
#define PID_WIDTH 10
#define EVENT_WIDTH 20

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
	time_t iso_s; /* the second that iso_text names, as a date or as a time of day */
	char iso_text[24];
	struct proc_text procs[PROC_CACHE];
	struct texts *kernels, *stacks;
	struct order *order; /* NULL: rows go out as they come */
	bool entries;	     /* entry rows came: the rows at the returns have the rest */
	/* with opts->stuck: the rows of threads that are inside a call */
	struct table_groups *groups;
	struct text made, below, key; /* the row that is being made */
	size_t event_at;	      /* where in the row EVENT begins */
	struct compact compact;	      /* with opts->look.compact */
	uint64_t last_ns;	      /* of the row before, for SINK_TIME_DELTA; 0: none */
	int columns;		      /* rows are cut to so many; 0: they are not */
	bool headed;		      /* the heading was written */
};

/* ---- columns ---- */

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

/* In strace's form: 14:03:59, or 14:03:59.123456. */
static char *put_day(struct table *t, char *p, uint64_t ns, bool us)
{
	time_t s = (time_t)(ns / 1000000000);
	unsigned int part = (unsigned int)(ns % 1000000000 / 1000);

	if (s != t->iso_s) {
		struct tm tm;

		if (!localtime_r(&s, &tm) ||
		    !strftime(t->iso_text, sizeof(t->iso_text), "%H:%M:%S", &tm))
			t->iso_text[0] = '\0';
		t->iso_s = s;
	}
	p = put_str(p, t->iso_text);
	return us ? put_3digits(put_3digits(put_char(p, '.'), part / 1000), part % 1000) : p;
}

static const struct {
	const char *heading;
	int width;
} times[] = {
	[SINK_TIME_MS] = { "TIME(ms)", TIME_WIDTH },
	[SINK_TIME_US] = { "TIME(us)", TIME_US_WIDTH },
	[SINK_TIME_ISO] = { "TIME", TIME_ISO_WIDTH },
	[SINK_TIME_UNIX] = { "TIME", TIME_UNIX_WIDTH },
	[SINK_TIME_DELTA] = { "TIME(+ms)", TIME_WIDTH },
	[SINK_TIME_DAY] = { "TIME", TIME_DAY_WIDTH },
	[SINK_TIME_DAY_US] = { "TIME", TIME_DAY_US_WIDTH },
};

static int time_width(const struct sink_opts *o)
{
	return times[o->look.time].width;
}

/* 1764096000.123456 */
static char *put_unix(char *p, uint64_t ns)
{
	unsigned int us = (unsigned int)(ns % 1000000000 / 1000);

	p = put_char(put_u64(p, ns / 1000000000), '.');
	return put_3digits(put_3digits(p, us / 1000), us % 1000);
}

/* In milliseconds since the row before, which may have begun later: rows come when calls return. */
static char *put_delta(struct table *t, char *p, uint64_t at_ns)
{
	uint64_t before = t->last_ns ? t->last_ns : at_ns, us;

	t->last_ns = at_ns;
	us = (at_ns < before ? before - at_ns : at_ns - before) / 1000;
	if (at_ns < before && us)
		*p++ = '-';
	return put_3digits(put_char(put_u64(p, us / 1000), '.'), (unsigned int)(us % 1000));
}

static char *put_time_text(struct table *t, const struct sink_opts *o, char *p, uint64_t at_ns)
{
	/* a call that was under way when the trace began */
	uint64_t ns = at_ns > o->start_ns ? at_ns - o->start_ns : 0;

	if (o->look.time == SINK_TIME_ISO)
		return put_iso(t, p, at_ns + o->realtime_offset_ns);
	if (o->look.time == SINK_TIME_UNIX)
		return put_unix(p, at_ns + o->realtime_offset_ns);
	if (o->look.time == SINK_TIME_DAY || o->look.time == SINK_TIME_DAY_US)
		return put_day(t, p, at_ns + o->realtime_offset_ns,
			       o->look.time == SINK_TIME_DAY_US);
	if (o->look.time == SINK_TIME_DELTA)
		return put_delta(t, p, at_ns);
	if (o->look.time == SINK_TIME_MS)
		ns /= 1000;
	p = put_char(put_u64(p, ns / 1000), '.');
	return put_3digits(p, (unsigned int)(ns % 1000));
}

static char *put_time(struct table *t, const struct sink_opts *o, char *p, uint64_t at_ns)
{
	return put_char(put_pad(put_time_text(t, o, p, at_ns), p, time_width(o)), ' ');
}

/* A process's name as it may stand in a column: what could steer a terminal becomes '?'. Width
 * in characters. */
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
	/* a record without a process is about the machine */
	begin = put_comm(e->text, proc->pid ? proc->comm : "-");
	p = proc->pid ? put_u64(begin, proc->shown_pid) : put_char(begin, '-');
	p = put_char(put_pad(p, begin, PID_WIDTH), ' ');
	e->len = (uint8_t)(p - e->text);
	return e;
}

/* A number in a column of --compact. */
static char *put_compact_u64(struct table *t, char *p, enum compact_column column, uint64_t v)
{
	char text[PUT_U64_MAX];

	return compact_cell(&t->compact, p, column, text, (size_t)(put_u64(text, v) - text), false);
}

/* Writes how long it took, if that is known and the row does not say it in words; only calls can
 * be slow. */
static char *put_compact_took(struct table *t, const struct sink_opts *o, char *p,
			      const struct ct_hdr *h)
{
	const struct ct_foreign *f = (const struct ct_foreign *)h;
	bool call = h->kind == CT_CALL || (h->kind == CT_FOREIGN && f->kind == CT_CALL);
	uint64_t ns = h->end_ns > h->start_ns ? h->end_ns - h->start_ns : 0;
	bool known = ns;

	if (call)
		known = !(h->flags & (CT_F_UNFINISHED | CT_F_NO_RETURN | CT_F_BEFORE));
	else if (h->kind == CT_SCOPE_END)
		known = !(((const struct ct_scope *)h)->flags &
			  (CT_SCOPE_UNPAIRED | CT_SCOPE_UNFINISHED)) &&
			((const struct ct_scope *)h)->kind != CT_SCOPE_MARK;
	else if (h->kind == CT_ENTER || h->kind == CT_FOREIGN)
		known = false;
	if (!known) /* with the place of the mark */
		return put_char(compact_cell(&t->compact, p, COMPACT_TOOK, "", 0, false), ' ');
	return compact_took(&t->compact, p, ns, call && ns >= COMPACT_SLOW_NS, o->color);
}

static void put_compact_columns(struct table *t, const struct sink_opts *o, const struct event *ev,
				uint64_t at_ns, const char *what, int depth)
{
	const struct process *proc = ev->proc;
	char time[64], event[256], *p = t->w.p, *end = event;
	size_t n = (size_t)(put_time_text(t, o, time, at_ns) - time);
	const char *name;

	p = compact_cell(&t->compact, p, COMPACT_TIME, time, n, true);
	name = compact_process(proc, &n);
	/* a record without a process is about the machine */
	p = proc->pid ? compact_name(&t->compact, p, COMPACT_PROCESS, name, n)
		      : compact_cell(&t->compact, p, COMPACT_PROCESS, "-", 1, false);
	p = proc->pid ? put_compact_u64(t, p, COMPACT_PID, proc->shown_pid)
		      : compact_cell(&t->compact, p, COMPACT_PID, "-", 1, false);
	if (o->look.tid) {
		name = about_thread(ev) ? about_thread(ev) : "-";
		p = put_compact_u64(t, p, COMPACT_TID, about_tid(ev));
		p = compact_name(&t->compact, p, COMPACT_THREAD, name, strlen(name));
	}
	p = put_compact_took(t, o, p, ev->rec);
	for (int i = 0; o->look.nested && i < depth && i < 16; i++)
		end = put_lit(end, "  ");
	n = strnlen(what, sizeof(event) - 64);
	end = put_mem(end, what, n);
	t->w.p = compact_cell(&t->compact, p, COMPACT_EVENT, event, (size_t)(end - event), false);
}

/* Writes everything before DETAILS; `what` stands under EVENT, indented by depth. */
static void put_columns(struct table *t, const struct sink_opts *o, const struct event *ev,
			uint64_t at_ns, const char *what, int depth)
{
	const struct proc_text *proc;
	char *p, *begin;

	if (o->look.compact) {
		put_compact_columns(t, o, ev, at_ns, what, depth);
		return;
	}
	proc = proc_text(t, ev->proc);
	p = o->stuck ? t->w.p : put_time(t, o, t->w.p, at_ns);
	p = put_mem(p, proc->text, proc->len);
	if (o->look.tid) {
		begin = p;
		p = put_u64(p, about_tid(ev));
		p = put_char(put_pad(p, begin, PID_WIDTH), ' ');
		p = put_comm(p, about_thread(ev) ? about_thread(ev) : "-");
	}
	if (o->stuck) {
		begin = p;
		p = table_age(p, ev->rec->end_ns - ev->rec->start_ns, ev->rec->flags & CT_F_BEFORE);
		p = put_char(put_pad(p, begin, AGE_WIDTH), ' ');
	}
	begin = p;
	t->event_at = (size_t)(p - t->w.begin);
	for (int i = 0; o->look.nested && i < depth && i < 16; i++)
		p = put_lit(p, "  ");
	p = put_str(p, what);
	t->w.p = put_char(put_pad(p, begin, EVENT_WIDTH), ' ');
}

static void put_call_columns(struct table *t, const struct sink_opts *o, const struct event *ev,
			     uint64_t at_ns)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;

	/* the scopes around it are rows too */
	put_columns(t, o, ev, at_ns, api_funcs[c->func].name,
		    c->depth + (ev->scope ? ev->scope->depth + 1 : 0));
}

/* ---- rows ---- */

/*
 * The argument that the kernel's name replaces: the first input that is a function and not null.
 * NULL: none. `bare`: the name comes first and without a label, as what is launched does.
 */
static const struct field *kernel_field(const struct ct_call *c, const struct field *f, int n,
					bool *bare)
{
	int open = 0;

	for (int i = 0; i < n; i++) {
		if (f[i].type == FIELD_CLOSE)
			open--;
		else if (f[i].type == FIELD_OPEN && !f[i].absent)
			open++;
		else if (f[i].type == FIELD_FUNC && !f[i].out && !f[i].absent && f[i].u) {
			*bare = !open && (api_funcs[c->func].class == API_LAUNCH ||
					  (f[i].label && !strcmp(f[i].label, "function")));
			return &f[i];
		}
	}
	return NULL;
}

/* NULL: no memory. */
static const struct text *kernel_text(struct table *t, const struct sink_opts *o,
				      const struct kernel_name *k)
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

/* The part of a call that a row shows: with --enter-exit the entry row has the inputs, and the
 * other row what is known at the return. */
enum part { PART_ALL, PART_INPUTS, PART_OUTPUTS };

/* Arguments and outputs, separated by commas. An output that is not there, and what the table
 * gives no label to, is left out. */
static bool put_fields(struct table *t, const struct field *f, int n, const struct named *k,
		       bool per_thread, enum part part, bool compact)
{
	struct row *w = &t->w;
	bool any = k->field && k->bare, first = !any;
	bool list[MAX_OPEN] = { false };
	int skip = 0;

	if (any)
		row_mem(w, k->text->s, k->text->len);
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
		if (skip || (f->absent && f->out) || (f->label && !*f->label) ||
		    (f == k->field && k->bare) ||
		    (part != PART_ALL && !open && f->out != (part == PART_OUTPUTS)) ||
		    open == MAX_OPEN - 1) {
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
		} else if (!compact || !compact_value(w, f)) {
			table_value(w, f, per_thread);
		}
	}
	return any;
}

static void put_result(struct table *t, const struct sink_opts *o, const struct ct_call *c,
		       const struct field *ret)
{
	bool red = o->color && api_failed(c);
	struct row *w = &t->w;

	row_room(w, FIELD_ROOM);
	if (red)
		w->p = put_lit(w->p, RED);
	w->p = put_lit(w->p, "returned=");
	table_value(w, ret, false);
	row_room(w, FIELD_ROOM);
	if (red)
		w->p = put_lit(w->p, PLAIN);
}

/* Whether a call of the function may cause device rows. */
static bool makes_work(uint16_t func)
{
	switch (api_funcs[func].class) {
	case API_LAUNCH:
	case API_COPY:
	case API_SET:
	case API_GRAPH: return true;
	default: return false;
	}
}

/* For a call that was under way when it was shown last. */
static void put_news(struct table *t, const struct ct_hdr *h, bool comma)
{
	bool before = h->flags & CT_F_BEFORE;
	char *p = comma ? put_lit(t->w.p, ", ") : t->w.p;

	if (!(h->flags & CT_F_UNFINISHED))
		p = put_lit(p, "resumed after ");
	else
		p = before ? put_lit(p, "thread ended after ")
			   : put_lit(p, "left without a return after ");
	if (h->flags & (CT_F_BEFORE | CT_F_NO_RETURN))
		p = put_lit(p, "more than ");
	t->w.p = table_age(p, h->end_ns - h->start_ns, false);
}

/* A call that began before the trace: nothing is known of it but that it is there, and perhaps
 * what it launches. */
static void before_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	const struct text *kernel = ev->kernel ? kernel_text(t, o, ev->kernel) : NULL;

	put_call_columns(t, o, ev, ev->rec->start_ns);
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

/* -s: only the beginning of longer strings. */
static int limit_strings(const struct sink_opts *o, struct field *f, int n)
{
	for (int i = 0; o->look.string_max && i < n; i++) {
		if (f[i].type != FIELD_STR || f[i].absent || f[i].str_len <= o->look.string_max)
			continue;
		f[i].str_len = o->look.string_max;
		f[i].cut = true;
	}
	return n;
}

static void whole_call_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	bool entry = c->h.kind == CT_ENTER, unfinished = c->h.flags & CT_F_UNFINISHED;
	bool open_end = entry || (c->h.flags & CT_F_NO_RETURN);
	/* in what was recorded without entries, each call has one row */
	bool exit_row = o->look.enter_exit && !open_end && (t->entries || !o->recorded);
	bool per_thread = c->h.flags & CT_F_PER_THREAD;
	struct field f[EVENT_MAX_FIELDS];
	int n = limit_strings(o, f, event_fields(ev, f, EVENT_MAX_FIELDS));
	const struct field *ret = NULL;
	struct named named = { NULL };
	bool any = false, led = false; /* led: a failure stands before the arguments */

	t->entries |= entry;
	put_call_columns(t, o, ev, exit_row ? c->h.end_ns : c->h.start_ns);
	if (n && !open_end && !unfinished && f[n - 1].name && !strcmp(f[n - 1].name, "returned"))
		ret = &f[--n];
	if (ev->kernel && !exit_row)
		named.field = kernel_field(c, f, n, &named.bare);
	if (named.field)
		named.text = kernel_text(t, o, ev->kernel);
	if (!named.text)
		named.field = NULL;
	if (ret && o->look.compact) {
		led = api_failed(c);
		if (led) {
			put_result(t, o, c, ret);
			t->w.p = put_lit(t->w.p, ", ");
		}
		if (led || (ret->type == FIELD_ERROR && !ret->absent && !ret->i))
			ret = NULL;
	}
	any = put_fields(t, f, n, &named, per_thread,
			 exit_row ? PART_OUTPUTS
			 : entry  ? PART_INPUTS
				  : PART_ALL,
			 o->look.compact);
	if (led && !any)
		t->w.p -= 2;
	any |= led;
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
	} else if (!open_end) {
		if (o->gpu && ev->number && makes_work(c->func)) {
			t->w.p = put_u64(put_lit(any || ret ? put_lit(t->w.p, ", ") : t->w.p,
						 "correlation="),
					 ev->number);
			any = true;
		}
		if (!o->look.compact)
			t->w.p = table_duration(any || ret ? put_lit(t->w.p, ", ") : t->w.p,
						c->h.end_ns - c->h.start_ns);
	}
	/* no row ends in spaces */
	while (t->w.p > t->w.begin && t->w.p[-1] == ' ')
		t->w.p--;
}

static void call_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	if (ev->rec->flags & CT_F_BEFORE)
		before_row(t, o, ev);
	else
		whole_call_row(t, o, ev);
}

/* A name from a file: untrusted bytes. */
static const char *printable(char *text)
{
	for (char *p = text; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			*p = '?';
	return text;
}

/* A stored call of a function that this version does not know: its words are written as they
 * are. */
static void foreign_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_foreign *f = (const struct ct_foreign *)ev->rec;
	char name[256];

	for (int i = 0; i < f->name_len; i++)
		name[i] = ((const char *)&f->words[f->nwords])[i];
	name[f->name_len] = '\0';
	put_columns(t, o, ev, ev->rec->start_ns, printable(name), f->depth);
	row_room(&t->w, FIELD_ROOM);
	t->w.p = put_lit(t->w.p, "words=[");
	for (int i = 0; i < f->nwords; i++)
		t->w.p = put_hex(i ? put_lit(t->w.p, ", ") : t->w.p, f->words[i]);
	t->w.p = put_char(t->w.p, ']');
	if (f->kind == CT_CALL && f->h.flags & CT_F_UNFINISHED)
		t->w.p = put_lit(t->w.p, ", <unfinished ...>");
	else if (f->kind == CT_CALL && !(f->h.flags & CT_F_NO_RETURN))
		t->w.p = put_hex(put_lit(t->w.p, ", returned="), (uint64_t)f->ret);
	else
		return;
	if (!o->look.compact && !(f->h.flags & CT_F_UNFINISHED))
		t->w.p = table_duration(put_lit(t->w.p, ", "), f->h.end_ns - f->h.start_ns);
}

/* Writes device work: TIME is its start on the device. */
static void device_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	char what[32];
	const struct ct_hdr *h = ev->rec;
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);
	struct named none = { NULL };
	const struct text *kernel = ev->kernel ? kernel_text(t, o, ev->kernel) : NULL;
	bool any = kernel;

	if (h->kind == CT_COPY)
		snprintf(what, sizeof(what), "[memcpy %s]",
			 device_copy_kind(((const struct ct_copy *)h)->kind));
	else
		snprintf(what, sizeof(what), "[%s]", record_kinds[h->kind].json);
	put_columns(t, o, ev, h->start_ns, what, 0);
	if (kernel) {
		row_mem(&t->w, kernel->s, kernel->len);
		row_room(&t->w, FIELD_ROOM);
		t->w.p = put_lit(t->w.p, ", ");
	}
	any |= put_fields(t, f, n, &none, false, PART_ALL, o->look.compact);
	row_room(&t->w, FIELD_ROOM);
	if (h->end_ns > h->start_ns && !o->stuck && !o->look.compact) /* a column has it */
		t->w.p = table_duration(any ? put_lit(t->w.p, ", ") : t->w.p,
					h->end_ns - h->start_ns);
}

/* Writes a scope that has ended: TIME is its begin. */
static void scope_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_scope *s = (const struct ct_scope *)ev->rec;
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);
	const struct ct_collective *more = scope_collective(s);
	char func[EVENT_WIDTH * 4];
	struct text name = { 0 };
	struct named none = { NULL };

	if (more) {
		snprintf(func, sizeof(func), "%.*s", s->text_len, s->text);
		put_columns(t, o, ev, s->h.start_ns, printable(func), s->depth);
		table_collective(&t->w, s, more, !o->look.compact);
		return;
	}
	if (scope_gemm(s)) {
		snprintf(func, sizeof(func), "%.*s", s->text_len, s->text);
		put_columns(t, o, ev, s->h.start_ns, printable(func), s->depth);
		table_gemm(&t->w, s, scope_gemm(s), !o->look.compact);
		return;
	}
	put_columns(t, o, ev, s->h.start_ns, scope_word(s), s->depth);
	about_name(&name, o, ev);
	if (!name.bad)
		row_mem(&t->w, name.s, name.len);
	text_free(&name);
	row_room(&t->w, FIELD_ROOM);
	t->w.p = put_lit(t->w.p, ", ");
	if (!put_fields(t, f, n, &none, false, PART_ALL, o->look.compact))
		t->w.p -= 2;
	row_room(&t->w, FIELD_ROOM);
	if (s->flags & CT_SCOPE_UNPAIRED)
		t->w.p = put_lit(t->w.p, ", the start of a range whose end is not known");
	else if (s->flags & CT_SCOPE_UNFINISHED)
		t->w.p = put_lit(t->w.p, ", <unfinished ...>");
	else if (s->kind != CT_SCOPE_MARK && !o->look.compact)
		t->w.p = table_duration(put_lit(t->w.p, ", "), s->h.end_ns - s->h.start_ns);
}

static void lost_row(struct table *t, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_lost *l = (const struct ct_lost *)ev->rec;

	(void)o;
	t->w.p = put_u64(put_lit(t->w.p, "--- "), l->count);
	t->w.p = put_str(t->w.p, l->count == 1 ? " record lost: " : " records lost: ");
	t->w.p = put_lit(put_str(t->w.p, loss_text((enum ct_loss)l->cause)), " ---");
}

typedef void (*row_fn)(struct table *, const struct sink_opts *, const struct event *);

/* What writes the row of a kind; NULL: the table does not show it. */
static row_fn row_of(uint16_t kind)
{
	static const row_fn rows[CT_KIND_END] = {
		[CT_CALL] = call_row,	    [CT_ENTER] = call_row, [CT_SCOPE_END] = scope_row,
		[CT_FOREIGN] = foreign_row, [CT_LOST] = lost_row,
	};

	return kind < CT_KIND_END && rows[kind] ? rows[kind]
	       : kind_is(kind, KIND_DEVICE)	? device_row
						: NULL;
}

/* The row of an event that the table shows, with its end of line. */
static void put_row(struct table *t, const struct sink *s, const struct event *ev)
{
	row_of(ev->rec->kind)(t, s->opts, ev);
	row_room(&t->w, FIELD_ROOM);
	*t->w.p++ = '\n';
}

/* Holds the row of a thread that is inside a call: all threads of processes with the same name that are at the same
 * place share one row, if only the process, the thread and the time differ. */
static int hold_row(struct table *t, const struct sink *s, const struct event *ev)
{
	t->made.len = t->below.len = t->key.len = 0;
	row_begin_text(&t->w, &t->made);
	put_row(t, s, ev);
	row_end(&t->w);
	row_begin_text(&t->w, &t->below);
	if (ev->stack)
		put_stack(t, s->opts, ev->stack);
	row_end(&t->w);
	if (t->made.bad || t->below.bad)
		return -ENOMEM;
	text_mem(&t->key, ev->proc->comm, sizeof(ev->proc->comm));
	text_mem(&t->key, t->made.s + t->event_at, t->made.len - t->event_at);
	if (t->below.len)
		text_mem(&t->key, t->below.s, t->below.len);
	else /* rows of which nothing is known are not the same */
		text_mem(&t->key, &ev->rec->tid, sizeof(ev->rec->tid));
	return t->key.bad ? -ENOMEM
			  : table_groups_add(t->groups, &t->key, ev->proc->shown_pid, about_tid(ev),
					     &t->made, &t->below);
}

/* The row of the event, with the lines of its stack below it. */
static void put_event(struct table *t, const struct sink *s, const struct event *ev)
{
	put_row(t, s, ev);
	if (ev->stack)
		put_stack(t, s->opts, ev->stack);
}

/* The same for a terminal: no line is wider than it. Returns 0 or -ENOMEM. */
static int put_cut(struct table *t, const struct sink *s, const struct event *ev)
{
	t->made.len = 0;
	row_begin_text(&t->w, &t->made);
	put_event(t, s, ev);
	row_end(&t->w);
	if (t->made.bad)
		return -ENOMEM;
	order_begin(t->order, &t->w, s->opts->out);
	compact_cut(&t->w, &t->made, t->columns);
	return 0;
}

/* Each column begins as wide as its heading. */
static void compact_head(struct table *t, const struct sink_opts *o, const char *time)
{
	const struct {
		enum compact_column column;
		const char *text;
		bool shown, right;
	} heads[] = {
		{ COMPACT_TIME, time, true, true },
		{ COMPACT_PROCESS, "PROCESS", true, false },
		{ COMPACT_PID, "PID", true, false },
		{ COMPACT_TID, "TID", o->look.tid, false },
		{ COMPACT_THREAD, "THREAD", o->look.tid, false },
		{ COMPACT_TOOK, "TOOK", true, true },
		{ COMPACT_EVENT, "EVENT", true, false },
	};
	char text[256], *p = text;

	/* as wide as usual values, from the first row on */
	t->compact.widths[COMPACT_TOOK] = 7;
	t->compact.widths[COMPACT_EVENT] = 15;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		if (!heads[i].shown)
			continue;
		p = compact_cell(&t->compact, p, heads[i].column, heads[i].text,
				 strlen(heads[i].text), heads[i].right);
		if (heads[i].column == COMPACT_TOOK) /* the place of the mark */
			*p++ = ' ';
	}
	out_mem(o->out, text, (size_t)(p - text));
	out_str(o->out, "DETAILS\n");
}

static void put_head(struct table *t, const struct sink_opts *opts)
{
	t->headed = true;
	if (opts->look.compact) {
		compact_head(t, opts, times[opts->look.time].heading);
		return;
	}
	if (!opts->stuck)
		out_fmt(opts->out, "%-*s ", time_width(opts), times[opts->look.time].heading);
	out_fmt(opts->out, "%-*s %-*s ", COMM_WIDTH, "PROCESS", PID_WIDTH, "PID");
	if (opts->look.tid)
		out_fmt(opts->out, "%-*s %-*s ", PID_WIDTH, "TID", COMM_WIDTH, "THREAD");
	if (opts->stuck)
		out_fmt(opts->out, "%-*s ", AGE_WIDTH, "FOR");
	out_fmt(opts->out, "%-*s DETAILS\n", EVENT_WIDTH, "EVENT");
}

/* The rows that are held, and the heading before the first. */
static void release(struct table *t, const struct sink_opts *opts)
{
	if (!t->headed)
		put_head(t, opts);
	if (t->groups)
		table_groups_write(t->groups, opts->out);
}

static int table_event(struct sink *s, const struct event *ev)
{
	struct table *t = s->priv;
	const struct ct_hdr *h = ev->rec;
	int err;

	if (!row_of(h->kind))
		return 0;
	if (t->groups && kind_is(h->kind, KIND_CALL) && h->flags & CT_F_PENDING) {
		err = hold_row(t, s, ev);
		return err ? err : 1;
	}
	release(t, s->opts); /* before a row that follows them */
	if (t->columns) {
		err = put_cut(t, s, ev);
		if (err)
			return err;
	} else {
		order_begin(t->order, &t->w, s->opts->out);
		put_event(t, s, ev);
	}
	err = order_end(t->order, &t->w, h);
	if (err)
		return err;
	if (s->opts->out->error)
		return s->opts->out->error;
	return h->kind != CT_LOST;
}

static int table_dump(struct sink *s)
{
	struct table *t = s->priv;

	release(t, s->opts);
	return s->opts->out->error;
}

static int table_tick(struct sink *s, uint64_t now_ns)
{
	struct table *t = s->priv;

	if (s->opts->fit)
		t->columns = out_columns(s->opts->out);
	return order_tick(t->order, now_ns);
}

static int table_open(struct sink *s, const struct sink_opts *opts)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->iso_s = -1;
	s->priv = t;
	s->opts = opts;
	t->kernels = texts_open();
	t->stacks = texts_open();
	t->groups = opts->stuck ? table_groups_open() : NULL;
	if (!t->kernels || !t->stacks || (opts->stuck && !t->groups) || order_open(&t->order, opts))
		return -ENOMEM;
	if (opts->fit)
		t->columns = out_columns(opts->out);
	/* with opts->stuck other lines come before the first row */
	if (!opts->stuck)
		put_head(t, opts);
	return 0;
}

static int table_close(struct sink *s, const struct sink_end *end)
{
	struct table *t = s->priv;
	char how[64];

	if (!t)
		return 0;
	order_flush(t->order);
	/* a row in strace's form; nothing is said of a program that ended well */
	if (end && end->program && *end->program) {
		row_begin(&t->w, s->opts->out);
		t->w.p = put_lit(put_str(put_lit(t->w.p, "+++ "),
					 ended_text(*end->program, how, sizeof(how))),
				 " +++\n");
		row_end(&t->w);
	}
	texts_close(t->kernels);
	texts_close(t->stacks);
	table_groups_close(t->groups);
	order_close(t->order);
	text_free(&t->made);
	text_free(&t->below);
	text_free(&t->key);
	free(t);
	s->priv = NULL;
	return s->opts->out->error;
}

const struct sink_ops sink_table = {
	.name = "table",
	.open = table_open,
	.event = table_event,
	.tick = table_tick,
	.dump = table_dump,
	.close = table_close,
};
