/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.c - one JSON object a line, as docs/schema.json describes it.
 *
 * Numbers are written by hand and what repeats is kept ready: the text of a process, a function,
 * a kernel, a stack. Strings of the target are untrusted bytes: see escape_json(). 64-bit
 * integers stay integers. Knows no function and no kind by name beyond the word for "type".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../../event/device.h"
#include "../../event/gpus.h"
#include "../../event/scopes/lineage.h"
#include "../../util/io/ended.h"
#include "../../flow/about.h"
#include "../../render/json_fields.h"
#include "../../flow/json_text.h"
#include "../../flow/order.h"
#include "../../flow/row.h"
#include "../../flow/sink.h"

#define PROC_CACHE 64 /* a power of two */

#define HOST_BYTES 64

struct proc_text {
	uint32_t pid, unique_pid, rank;
	bool informed;
	char comm[CT_COMM_LEN];
	uint8_t pid_len;
	uint16_t whom_len;
	char pid_text[32];
	/* its name, and what distinguishes it from others */
	char whom_text[(CT_COMM_LEN + 2 * HOST_BYTES) * 6 + 128];
};

struct func_text {
	char *text; /* ,"domain":"runtime","name":"cudaMalloc","args":{ */
	size_t len;
};

struct json_sink {
	struct row w;
	uint64_t rows[CT_KIND_END];
	struct proc_text procs[PROC_CACHE];
	struct func_text funcs[CT_MAX_FUNCS];
	struct texts *kernels, *stacks;
	struct text name;    /* of the kernel that is written */
	struct order *order; /* NULL: lines go out as they come */
};

/* A member that is left out where it is not known. */
static char *put_known_text(char *p, const char *key, const char *s)
{
	size_t n = s ? strnlen(s, HOST_BYTES) : 0;

	return n ? put_char(escape_json(put_str(p, key), s, n), '"') : p;
}

/* Writes what identifies the process besides its pid, which others may have had: its number in
 * the trace and its pid in the initial namespace, if they differ from the pid, its rank, and in
 * merged recordings its host. */
static char *put_whom(char *p, const struct process *proc)
{
	const struct process_info *i = proc->info;

	if (process_unique(proc) != proc->shown_pid)
		p = put_u64(put_lit(p, ",\"process_id\":"), process_unique(proc));
	if (process_host_pid(proc->pid) != proc->shown_pid)
		p = put_u64(put_lit(p, ",\"host_pid\":"), process_host_pid(proc->pid));
	if (i && i->rank != CT_UNKNOWN)
		p = put_u64(put_lit(p, ",\"rank\":"), i->rank);
	p = put_known_text(p, ",\"host\":\"", i ? i->host : NULL);
	return put_known_text(p, ",\"boot\":\"", i ? i->boot : NULL);
}

static const struct proc_text *proc_text(struct json_sink *j, const struct process *proc)
{
	struct proc_text *t = &j->procs[proc->pid & (PROC_CACHE - 1)];
	uint32_t rank = proc->info ? proc->info->rank : CT_UNKNOWN;
	char *p;

	if (t->pid_len && t->pid == proc->pid && t->unique_pid == process_unique(proc) &&
	    t->informed == !!proc->info && t->rank == rank &&
	    !memcmp(t->comm, proc->comm, CT_COMM_LEN))
		return t;
	t->pid = proc->pid;
	t->unique_pid = process_unique(proc);
	t->informed = proc->info;
	t->rank = rank;
	memcpy(t->comm, proc->comm, CT_COMM_LEN);
	p = put_u64(put_lit(t->pid_text, ",\"pid\":"), proc->shown_pid);
	t->pid_len = (uint8_t)(p - t->pid_text);
	p = put_lit(t->whom_text, ",\"process\":\"");
	p = escape_json(p, proc->comm, strnlen(proc->comm, CT_COMM_LEN));
	*p++ = '"';
	t->whom_len = (uint16_t)(put_whom(p, proc) - t->whom_text);
	return t;
}

static const struct func_text *func_text(struct json_sink *j, unsigned int func)
{
	static const struct func_text none = { (char *)",\"args\":{", 9 };
	struct func_text *t = &j->funcs[func];
	const struct api_func *f = &api_funcs[func];
	int n;

	if (t->text)
		return t;
	n = asprintf(&t->text, ",\"domain\":\"%s\",\"name\":\"%s\",\"args\":{",
		     api_domain_name(f->domain), f->name);
	if (n < 0) {
		t->text = NULL;
		return &none;
	}
	t->len = (size_t)n;
	return t;
}

/* {"type":"call","start_ns":1,"duration_ns":2,"pid":3,"tid":4,"process":"x" */
static void json_put_head(struct json_sink *j, const char *type, const struct event *ev, bool dur)
{
	const struct proc_text *t = proc_text(j, ev->proc);
	char *p = j->w.p;

	p = put_str(put_lit(p, "{\"type\":\""), type);
	p = put_u64(put_lit(p, "\",\"start_ns\":"), ev->rec->start_ns);
	if (dur)
		p = put_u64(put_lit(p, ",\"duration_ns\":"), ev->rec->end_ns - ev->rec->start_ns);
	p = put_mem(p, t->pid_text, t->pid_len);
	p = put_u64(put_lit(p, ",\"tid\":"), about_tid(ev));
	j->w.p = put_mem(p, t->whom_text, t->whom_len);
	if (!ev->thread)
		return;
	j->w.p = put_lit(j->w.p, ",\"thread\":");
	json_string(&j->w, ev->thread, strnlen(ev->thread, CT_COMM_LEN));
	row_room(&j->w, JSON_ROOM);
}

static void put_result(struct row *w, const struct field *ret, int64_t value)
{
	const char *name;

	w->p = put_lit(w->p, ",\"ret\":");
	if (ret->type == FIELD_STR) { /* the text that the returned address points to */
		w->p = put_char(put_hex(put_char(w->p, '"'), (uint64_t)value), '"');
		w->p = put_lit(w->p, ",\"result\":");
		json_value(w, ret);
		return;
	}
	if (ret->type != FIELD_ERROR) {
		json_value(w, ret);
		return;
	}
	w->p = put_i64(w->p, ret->i);
	name = ret->xlat ? xlat_name(ret->xlat, ret->i) : NULL;
	w->p = put_lit(w->p, ",\"result\":");
	/* as the column: the number if it has no name */
	w->p = name ? json_word(w->p, name)
		    : put_char(put_u64(put_char(w->p, '"'), (uint32_t)ret->i), '"');
}

/* Names the arguments of which there was more than could be captured. */
static void put_cut(struct row *w, const struct field *f, int n)
{
	bool first = true;

	for (int i = 0; i < n; i++) {
		if (!f[i].cut || !f[i].name)
			continue;
		row_room(w, JSON_ROOM);
		w->p = first ? put_lit(w->p, ",\"cut\":[") : put_lit(w->p, ",");
		w->p = json_word(w->p, f[i].name);
		first = false;
	}
	if (!first)
		*w->p++ = ']';
}

static void json_put_kernel(struct json_sink *j, const struct kernel_name *k)
{
	uint64_t key = texts_key(k, k->source << 1 | k->cut);
	const struct text *text = texts_find(j->kernels, key, k->mangled);
	struct text *made;

	if (!text) {
		made = texts_add(j->kernels, key, k->mangled);
		if (!made)
			return;
		json_kernel(made, k);
		text = made;
	}
	if (!text->bad)
		row_mem(&j->w, text->s, text->len);
}

/* The name of a kernel that ran, as the column `name` has it: usually without its parameters. */
static void put_kernel_name(struct json_sink *j, const struct sink_opts *o, const struct event *ev)
{
	j->name.len = 0;
	about_name(&j->name, o, ev);
	j->w.p = put_lit(j->w.p, ",\"name\":");
	json_string(&j->w, j->name.bad ? "" : j->name.s, j->name.bad ? 0 : j->name.len);
	row_room(&j->w, JSON_ROOM);
}

static void put_stack(struct json_sink *j, const struct sink_opts *o, const struct stack *stack)
{
	const struct text *text = texts_find(j->stacks, stack->id, NULL);
	struct text *made;

	if (!text) {
		made = texts_add(j->stacks, stack->id, NULL);
		if (!made)
			return;
		json_stack(made, o, stack);
		text = made;
	}
	if (!text->bad)
		row_mem(&j->w, text->s, text->len);
}

/* A number that may not be known. */
static char *put_known(char *p, const char *key, uint32_t v)
{
	return v == CT_UNKNOWN ? p : put_u64(put_str(p, key), v);
}

/* Writes which GPU the device is, because two processes may use one number for two GPUs. */
static char *put_gpu(char *p, const struct event *ev)
{
	return ev->gpu && *ev->gpu->text
		       ? put_char(put_str(put_lit(p, ",\"gpu_uuid\":\""), ev->gpu->text), '"')
		       : p;
}

/* Writes what a call works on, and its number, which its device work has too. */
static char *put_place(char *p, const struct event *ev)
{
	p = put_known(p, ",\"device\":", ev->device);
	p = put_known(p, ",\"context\":", ev->context);
	p = put_known(p, ",\"stream\":", ev->stream);
	p = put_gpu(p, ev);
	return ev->number ? put_u64(put_lit(p, ",\"correlation\":"), ev->number) : p;
}

/* Writes the innermost scope around a call or the call that caused device work. */
static void json_put_scope(struct json_sink *j, const struct event *ev)
{
	struct row *w = &j->w;

	row_room(w, JSON_ROOM);
	if (ev->scope_id == CT_SCOPE_UNKNOWN)
		w->p = put_lit(w->p, ",\"scope_unknown\":true");
	else if (ev->scope_id)
		w->p = put_u64(put_lit(w->p, ",\"scope\":"), ev->scope_id);
	if (!ev->scope)
		return;
	w->p = put_lit(w->p, ",\"scope_name\":");
	json_string(w, ev->scope->name, strlen(ev->scope->name));
	row_room(w, JSON_ROOM);
}

static void call_line(struct json_sink *j, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const struct func_text *t = func_text(j, c->func);
	bool entry = c->h.kind == CT_ENTER, open_end = c->h.flags & CT_F_NO_RETURN,
	     before = c->h.flags & CT_F_BEFORE;
	struct field f[EVENT_MAX_FIELDS];
	struct row *w = &j->w;
	int n = before ? 0 : event_fields(ev, f, EVENT_MAX_FIELDS);
	const struct field *ret = NULL;

	if (n && f[n - 1].name && !entry && !open_end && !(c->h.flags & CT_F_UNFINISHED) &&
	    !strcmp(f[n - 1].name, "returned"))
		ret = &f[--n];
	json_put_head(j,
		      entry			  ? "enter"
		      : c->h.flags & CT_F_PENDING ? "pending"
						  : "call",
		      ev, !entry && !open_end && !before);
	w->p = put_mem(w->p, t->text, t->len);
	json_fields(w, f, n);
	row_room(w, JSON_ROOM);
	*w->p++ = '}';
	if (ev->kernel)
		json_put_kernel(j, ev->kernel);
	row_room(w, JSON_ROOM);
	if (ret)
		put_result(w, ret, c->ret);
	put_cut(w, f, n);
	row_room(w, JSON_ROOM);
	if ((c->h.flags & (CT_F_UNFINISHED | CT_F_PENDING)) == CT_F_UNFINISHED)
		w->p = put_lit(w->p, ",\"unfinished\":true");
	if (c->h.flags & CT_F_PER_THREAD)
		w->p = put_lit(w->p, ",\"per_thread\":true");
	if (before)
		w->p = put_lit(w->p, ",\"before\":true");
	if (c->h.flags & CT_F_BY_SCAN)
		w->p = put_lit(w->p, ",\"by_scan\":true");
	if (o->stuck)
		w->p = put_u64(put_lit(w->p, ",\"for_ns\":"), c->h.end_ns - c->h.start_ns);
	if (c->depth)
		w->p = put_u64(put_lit(w->p, ",\"depth\":"), c->depth);
	w->p = put_place(w->p, ev);
	json_put_scope(j, ev);
	if (ev->stack)
		put_stack(j, o, ev->stack);
}

/* A record whose members are its fields. */
static void fields_line(struct json_sink *j, const struct sink_opts *o, const struct event *ev)
{
	uint16_t kind = ev->rec->kind;
	const char *type = kind == CT_SCOPE_END	      ? scope_word((const struct ct_scope *)ev->rec)
			   : kind_is(kind, KIND_WORK) ? about_kind(kind)
						      : kind_json(kind);
	bool of_machine = !ev->rec->pid && kind != CT_LOST;
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);

	if (kind == CT_LOST || of_machine) {
		j->w.p = put_str(put_lit(j->w.p, "{\"type\":\""), type);
		j->w.p = put_u64(put_lit(j->w.p, "\",\"start_ns\":"), ev->rec->start_ns);
		if (kind == CT_COUNTER || kind == CT_LOST)
			j->w.p = put_u64(put_lit(j->w.p, ",\"duration_ns\":"),
					 about_duration_ns(ev->rec));
	} else {
		json_put_head(j, type, ev, kind_is(kind, KIND_TIMED));
	}
	if (kind == CT_KERNEL)
		put_kernel_name(j, o, ev);
	if (ev->kernel)
		json_put_kernel(j, ev->kernel);
	row_room(&j->w, JSON_ROOM);
	if (n)
		*j->w.p++ = ',';
	json_fields(&j->w, f, n);
	row_room(&j->w, JSON_ROOM);
	j->w.p = put_gpu(j->w.p, ev);
	json_put_scope(j, ev);
	if (ev->stack)
		put_stack(j, o, ev->stack);
}

/* A stored call of a function that this version does not know: its words are written as they
 * are. */
static void foreign_line(struct json_sink *j, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_foreign *f = (const struct ct_foreign *)ev->rec;
	const char *name = (const char *)&f->words[f->nwords];
	bool returned = f->kind == CT_CALL && !(f->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN));
	struct row *w = &j->w;

	(void)o;
	json_put_head(j, "foreign", ev, returned);
	w->p = put_lit(w->p, ",\"domain\":");
	json_string(w, name + f->name_len, f->domain_len);
	w->p = put_lit(w->p, ",\"name\":");
	json_string(w, name, f->name_len);
	row_room(w, JSON_ROOM);
	w->p = put_str(put_lit(w->p, ",\"why\":"),
		       f->why == CT_FOREIGN_CHANGED ? "\"changed\"" : "\"unknown\"");
	w->p = put_lit(w->p, ",\"words\":[");
	for (int i = 0; i < f->nwords; i++)
		w->p = put_char(put_hex(put_lit(i ? put_char(w->p, ',') : w->p, "\""), f->words[i]),
				'"');
	w->p = put_char(w->p, ']');
	if (returned)
		w->p = put_char(put_hex(put_lit(w->p, ",\"ret\":\""), (uint64_t)f->ret), '"');
}

/* Calls that have no lines of their own. Numbers are of this stretch, and add up. */
static void muted_line(struct json_sink *j, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_muted *m = (const struct ct_muted *)ev->rec;
	struct row *w = &j->w;

	(void)o;
	json_put_head(j, "muted", ev, true);
	w->p = put_lit(w->p, ",\"domain\":");
	json_string(w, m->text, m->domain_len);
	w->p = put_lit(w->p, ",\"name\":");
	json_string(w, m->text + m->domain_len, m->name_len);
	row_room(w, JSON_ROOM);
	w->p = put_u64(put_lit(w->p, ",\"counted\":"), m->counted);
	w->p = put_i64(put_lit(w->p, ",\"estimated\":"), m->unseen.calls);
	w->p = put_i64(put_lit(w->p, ",\"error\":"),
		       m->unseen.below > m->unseen.above ? m->unseen.below : m->unseen.above);
	w->p = put_i64(put_lit(w->p, ",\"below\":"), m->unseen.below);
	w->p = put_i64(put_lit(w->p, ",\"above\":"), m->unseen.above);
	w->p = put_u64(put_lit(w->p, ",\"failed\":"), m->failed);
	w->p = put_u64(put_lit(w->p, ",\"counted_ns\":"), m->ns);
	w->p = put_u64(put_lit(w->p, ",\"windows\":"), m->windows);
}

static int json_event(struct sink *s, const struct event *ev)
{
	static void (*const lines[CT_KIND_END])(struct json_sink *, const struct sink_opts *,
						const struct event *) = {
		[CT_CALL] = call_line,
		[CT_ENTER] = call_line,
		[CT_FOREIGN] = foreign_line,
		[CT_MUTED] = muted_line,
	};
	struct json_sink *j = s->priv;
	uint16_t kind = ev->rec->kind;
	bool call = kind_is(kind, KIND_CALL);
	int err;

	if (!kind_json(kind) || (kind == CT_HOLE && ev->rec->flags & CT_F_FINAL))
		return 0;
	order_begin(j->order, &j->w, s->opts->out);
	(lines[kind] ? lines[kind] : fields_line)(j, s->opts, ev);
	row_room(&j->w, 2);
	j->w.p = put_lit(j->w.p, "}\n");
	err = order_end(j->order, &j->w, ev->rec);
	if (err)
		return err;
	if (!call || !(ev->rec->flags & CT_F_PENDING))
		j->rows[kind]++;
	if (s->opts->out->error)
		return s->opts->out->error;
	return kind_is(kind, KIND_CALL | KIND_DEVICE) || kind == CT_FOREIGN;
}

static int json_open(struct sink *s, const struct sink_opts *opts)
{
	struct json_sink *j = calloc(1, sizeof(*j));

	s->opts = opts;
	s->priv = j;
	if (!j)
		return -ENOMEM;
	j->kernels = texts_open();
	j->stacks = texts_open();
	out_fmt(opts->out,
		"{\"type\":\"schema\",\"schema\":\"cudatrace-trace\",\"version\":%s,\"cudatrace\":"
		"\"%s\",\"start_ns\":%llu}\n",
		SINK_NAMES_VERSION, opts->version ? opts->version : "",
		(unsigned long long)opts->start_ns);
	return j->kernels && j->stacks ? order_open(&j->order, opts) : -ENOMEM;
}

static int json_tick(struct sink *s, uint64_t now_ns)
{
	return order_tick(((struct json_sink *)s->priv)->order, now_ns);
}

static void end_muted(struct json *o, const struct sink_end *end)
{
	const struct muted_sum *m = &end->muted_calls;

	json_open_array(o, "muted");
	for (int i = 0; end->muted && end->muted[i]; i++)
		json_put_str(o, NULL, end->muted[i]);
	json_end(o);
	if (!muted_calls(m))
		return;
	json_put_u64(o, "muted_calls", muted_calls(m));
	json_put_u64(o, "estimated", muted_unseen(&m->unseen));
	json_put_u64(o, "error", muted_error(&m->unseen));
	if (muted_is_floor(muted_calls(m), &m->unseen))
		json_put_u64(o, "at_least", muted_at_least(muted_calls(m), &m->unseen));
}

static void end_line(const struct json_sink *j, struct json *o, const struct sink_end *end)
{
	const struct losses *l = &end->losses;
	char how[32];

	json_open_object(o, NULL);
	json_put_str(o, "type", "end");
	json_put_str(o, "reason", end->reason);
	json_put_u64(o, "calls", j->rows[CT_CALL]);
	if (end->matched || end->unmatched) {
		json_put_u64(o, "matched", end->matched);
		json_put_u64(o, "unmatched", end->unmatched);
		json_put_u64(o, "inferred", end->inferred);
		if (end->unscoped)
			json_put_u64(o, "scope_unknown", end->unscoped);
	}
	json_put_u64(o, "seen", l->calls);
	json_put_u64(o, "folded", l->folded);
	json_put_u64(o, "filtered", l->filtered);
	json_put_u64(o, "unfinished", l->unfinished);
	json_open_object(o, "lost");
	for (int i = 0; i < CT_LOSS_END; i++)
		json_put_u64(o, loss_name((enum ct_loss)i), l->lost[i]);
	json_end(o);
	json_put_holes(o, l->holes);
	if (l->scopes_unbegun)
		json_put_u64(o, "scopes_unbegun", l->scopes_unbegun);
	end_muted(o, end);
	json_put_u64(o, "uptime_ns", end->uptime_ns);
	if (end->program && WIFSIGNALED(*end->program))
		json_put_str(o, "killed_by",
			     ended_signal(WTERMSIG(*end->program), how, sizeof(how)));
	else if (end->program)
		json_put_u64(o, "exit_status", (uint64_t)WEXITSTATUS(*end->program));
	json_end(o);
	out_char(o->out, '\n');
}

static int json_close(struct sink *s, const struct sink_end *end)
{
	struct json_sink *j = s->priv;
	struct json o;

	if (!j)
		return 0;
	order_flush(j->order);
	o = json_to(s->opts->out);
	end_line(j, &o, end);
	for (int i = 0; i < CT_MAX_FUNCS; i++)
		free(j->funcs[i].text);
	texts_close(j->kernels);
	texts_close(j->stacks);
	text_free(&j->name);
	order_close(j->order);
	free(j);
	s->priv = NULL;
	return s->opts->out->error;
}

const struct sink_ops sink_json = {
	.name = "json",
	.open = json_open,
	.event = json_event,
	.tick = json_tick,
	.close = json_close,
};
