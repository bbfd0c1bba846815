/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * otlp_spans.c - makes spans from events, and assigns them to traces.
 *
 * Each process has one trace at a time. Its root is a span with the process's name, which covers
 * everything in the trace. Below it are the calls that last at least the threshold, and below these
 * their device work. As no viewer opens a million spans, a trace ends after SPANS_MAX spans or
 * TRACE_NS, and the root of the next one has a link to it. Work comes later than its call and
 * belongs to the call's trace, which is found by the call's number. Ids are made from numbers too,
 * so that nothing has to be kept for each call. A call that is shorter than the threshold gets a
 * span if its work is not shorter. Knows no protocol.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../../flow/about.h"
#include "otlp_attrs.h"

#define SPANS_MAX 10000
#define TRACE_NS 60000000000ULL
#define REQUEST_SPANS 512
#define REQUEST_BYTES (512u << 10)
#define PROCESSES 1024 /* with a trace at a time; what others do is dropped and counted */
#define TRACES 64      /* traces of a process for which work can still come */
#define SENT 16384     /* numbers of calls whose span was made for their work; a power of two */

struct trace {
	uint32_t first; /* number of its first call */
	struct otlp_id root;
	uint64_t start_ns, end_ns, spans; /* CLOCK_MONOTONIC */
};

struct otlp_process {
	struct otlp_process *next;
	uint32_t pid;
	uint64_t start_boottime_ns;
	char comm[CT_COMM_LEN];
	bool exited, informed; /* informed: it was described with its information */
	uint64_t key;	       /* of all its ids */
	uint64_t ntraces;      /* begun so far; the current one is the last */
	struct trace traces[TRACES];
	uint32_t *sent;
	uint64_t unnumbered; /* spans whose id is made of no call's number */
	uint32_t highest;    /* number of a call with a span */
	struct text resource, spans;
	uint64_t nspans; /* in `spans` */
};

struct otlp_spans {
	const struct sink_opts *o;
	struct otlp_enc enc;
	uint64_t seed;
	otlp_request_fn request;
	void *ctx;
	struct otlp_process *procs, *last;
	int nprocs;
	uint64_t dropped;
};

/* ---- ids ---- */

static uint64_t otlp_spans_mix(uint64_t a, uint64_t b)
{
	uint64_t h = a + 0x9e3779b97f4a7c15ULL * (b + 1);

	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ULL;
	h = (h ^ h >> 27) * 0x94d049bb133111ebULL;
	h ^= h >> 31;
	return h ? h : 1; /* an id of zeros is none */
}

static void put_id(uint8_t *to, uint64_t v)
{
	memcpy(to, &v, 8);
}

enum id_of { ID_TRACE, ID_TRACE_2, ID_ROOT, ID_CALL, ID_WORK };

/* A number says which call it is; events without one are numbered here. */
static uint64_t id_of(struct otlp_process *p, enum id_of what, uint64_t number)
{
	return otlp_spans_mix(otlp_spans_mix(p->key, what), number);
}

/* ---- processes ---- */

static void make_request(struct otlp_spans *s, struct otlp_process *p)
{
	struct text request = { 0 };

	if (!p->nspans)
		return;
	otlp_put_request(s->enc.json, &p->resource, &p->spans, s->o->version ? s->o->version : "",
			 &request);
	if (request.bad || p->spans.bad || p->resource.bad) {
		s->dropped += p->nspans;
		text_free(&request);
		p->spans.bad = false;
	} else {
		s->request(s->ctx, &request, p->nspans);
	}
	p->spans.len = 0;
	p->nspans = 0;
}

static void otlp_spans_put_text(struct otlp_enc *e, const char *key, const char *s)
{
	if (s && *s)
		otlp_str(e, key, s, strlen(s));
}

static void otlp_spans_describe(struct otlp_spans *s, struct otlp_process *p,
				const struct process *proc)
{
	const struct process_info *info = proc->info;
	const char *slash = info ? strrchr(info->exe, '/') : NULL;
	struct otlp_given given;
	char comm[CT_COMM_LEN + 1] = "";

	memcpy(p->comm, proc->comm, CT_COMM_LEN);
	memcpy(comm, proc->comm, CT_COMM_LEN);
	p->informed = info;
	p->resource.len = 0;
	s->enc.of_resource = true;
	given = otlp_config_resource(&s->enc);
	if (!given.service)
		otlp_spans_put_text(&s->enc, "service.name", comm);
	otlp_int(&s->enc, "process.pid", proc->shown_pid);
	otlp_spans_put_text(&s->enc, "process.executable.name",
			    slash && slash[1] ? slash + 1 : comm);
	if (!given.host)
		otlp_spans_put_text(&s->enc, "host.name",
				    info && *info->host ? info->host : s->o->host);
	if (info) {
		otlp_spans_put_text(&s->enc, "process.executable.path", info->exe);
		otlp_spans_put_text(&s->enc, "container.id", info->container);
		otlp_spans_put_text(&s->enc, "k8s.pod.uid", info->pod);
	}
	if (info && info->rank != CT_UNKNOWN)
		otlp_int(&s->enc, "cudatrace.rank", info->rank);
	otlp_put_resource(&s->enc, &p->resource);
	s->enc.of_resource = false;
}

static void put_span(struct otlp_spans *s, struct otlp_process *p, const struct otlp_span *span)
{
	otlp_put_span(&s->enc, span, &p->spans);
	if (++p->nspans >= REQUEST_SPANS || p->spans.len >= REQUEST_BYTES)
		make_request(s, p);
}

static uint64_t epoch(const struct otlp_spans *s, uint64_t ns)
{
	return ns + s->o->realtime_offset_ns;
}

static struct trace *current(struct otlp_process *p)
{
	return &p->traces[(p->ntraces - 1) % TRACES];
}

/* Writes the root of the current trace, which is complete. */
static void end_trace(struct otlp_spans *s, struct otlp_process *p)
{
	struct otlp_span span = { .name = p->comm };
	struct trace *t;

	if (!p->ntraces || !current(p)->spans)
		return;
	t = current(p);
	span.id = t->root;
	span.start_ns = epoch(s, t->start_ns);
	span.end_ns = epoch(s, t->end_ns);
	if (p->ntraces > 1)
		span.link = &p->traces[(p->ntraces - 2) % TRACES].root;
	otlp_int(&s->enc, "cudatrace.part", (int64_t)p->ntraces);
	otlp_int(&s->enc, "cudatrace.spans", (int64_t)t->spans);
	put_span(s, p, &span);
	t->spans = 0;
}

static void begin_trace(struct otlp_process *p, uint64_t start_ns, uint32_t number)
{
	struct trace *t = &p->traces[p->ntraces % TRACES];

	*t = (struct trace){ .first = number, .start_ns = start_ns, .end_ns = start_ns };
	put_id(t->root.trace, id_of(p, ID_TRACE, p->ntraces));
	put_id(t->root.trace + 8, id_of(p, ID_TRACE_2, p->ntraces));
	put_id(t->root.span, id_of(p, ID_ROOT, p->ntraces));
	p->ntraces++;
}

static void free_process(struct otlp_spans *s, struct otlp_process *p)
{
	end_trace(s, p);
	make_request(s, p);
	text_free(&p->resource);
	text_free(&p->spans);
	free(p->sent);
	free(p);
}

/* Makes room by removing a process that has ended. */
static bool evict(struct otlp_spans *s)
{
	for (struct otlp_process **at = &s->procs; *at; at = &(*at)->next) {
		struct otlp_process *p = *at;

		if (!p->exited)
			continue;
		*at = p->next;
		if (s->last == p)
			s->last = NULL;
		free_process(s, p);
		s->nprocs--;
		return true;
	}
	return false;
}

static struct otlp_process *process_find(struct otlp_spans *s, uint32_t pid)
{
	if (s->last && s->last->pid == pid)
		return s->last;
	for (struct otlp_process *p = s->procs; p; p = p->next)
		if (p->pid == pid)
			return s->last = p;
	return NULL;
}

static struct otlp_process *otlp_spans_process_of(struct otlp_spans *s, const struct process *proc)
{
	struct otlp_process *p = process_find(s, proc->pid);

	/* the number of a process that has ended may now be another's */
	if (p && (p->start_boottime_ns == proc->start_boottime_ns || !proc->start_boottime_ns)) {
		if (!memcmp(p->comm, proc->comm, CT_COMM_LEN)) {
			if (proc->info && !p->informed) {
				make_request(s, p);
				otlp_spans_describe(s, p, proc);
			}
			return p;
		}
		/* another program: another resource, from the next trace on */
		end_trace(s, p);
		make_request(s, p);
		otlp_spans_describe(s, p, proc);
		p->ntraces = 0;
		p->highest = 0;
		free(p->sent);
		p->sent = NULL;
		p->key = otlp_spans_mix(p->key, 0);
		return p;
	}
	if (p) {
		p->exited = true;
		p->pid = 0;
		s->last = NULL;
	}
	if (s->nprocs == PROCESSES && !evict(s))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = proc->pid;
	p->start_boottime_ns = proc->start_boottime_ns;
	p->key = otlp_spans_mix(otlp_spans_mix(s->seed, proc->pid), proc->start_boottime_ns);
	otlp_spans_describe(s, p, proc);
	p->next = s->procs;
	s->procs = p;
	s->nprocs++;
	return s->last = p;
}

/* ---- traces ---- */

/* Begins a new trace if the current one is full or old. Its first call is newer than all calls
 * of the one before. */
static void turn_trace(struct otlp_spans *s, struct otlp_process *p, uint64_t start_ns)
{
	struct trace *t = p->ntraces ? current(p) : NULL;

	if (t && t->spans < SPANS_MAX && start_ns < t->start_ns + TRACE_NS)
		return;
	if (t)
		end_trace(s, p);
	begin_trace(p, start_ns, t ? p->highest + 1 : 0);
}

/* The trace of the call with that number: the last one that began with it or before it. */
static struct trace *trace_of(struct otlp_process *p, uint32_t number)
{
	uint64_t oldest = p->ntraces > TRACES ? p->ntraces - TRACES : 0;

	for (uint64_t i = p->ntraces; number && i > oldest; i--)
		if (p->traces[(i - 1) % TRACES].first <= number)
			return &p->traces[(i - 1) % TRACES];
	return current(p);
}

static void add_span(struct trace *t, uint64_t start_ns, uint64_t end_ns)
{
	t->spans++;
	t->start_ns = start_ns < t->start_ns ? start_ns : t->start_ns;
	t->end_ns = end_ns > t->end_ns ? end_ns : t->end_ns;
}

/* Marks that the call has its span. Returns whether it had one before. A call that a later one
 * replaced counts as having one. */
static bool had_span(struct otlp_process *p, uint32_t number)
{
	uint32_t *at;
	bool had;

	if (!p->sent)
		p->sent = calloc(SENT, sizeof(*p->sent));
	if (!p->sent)
		return true;
	at = &p->sent[number & (SENT - 1)];
	had = *at >= number;
	if (!had)
		*at = number;
	if (number > p->highest)
		p->highest = number;
	return had;
}

/* ---- events ---- */

static int span_of_call(struct otlp_spans *s, struct otlp_process *p, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct otlp_span span = { .name = api_funcs[c->func].name, .failed = api_failed(c) };
	struct trace *t;

	if (!p->ntraces || ev->number > p->highest || !ev->number)
		turn_trace(s, p, c->h.start_ns);
	if (ev->number && had_span(p, ev->number))
		return 0;
	t = trace_of(p, ev->number);
	span.id = t->root;
	put_id(span.id.span,
	       ev->number ? id_of(p, ID_CALL, ev->number) : id_of(p, ID_WORK, ++p->unnumbered));
	memcpy(span.parent, t->root.span, 8);
	span.start_ns = epoch(s, c->h.start_ns);
	span.end_ns = epoch(s, c->h.end_ns);
	if (span.failed)
		span.message = api_error_name(c->func, (int32_t)c->ret);
	otlp_call_attrs(&s->enc, ev);
	add_span(t, c->h.start_ns, c->h.end_ns);
	put_span(s, p, &span);
	return 1;
}

/* The span of a call that was too short for one of its own. */
static int short_call(struct otlp_spans *s, struct otlp_process *p, struct trace *t,
		      const struct event *ev)
{
	const struct cause *cause = ev->cause;
	struct otlp_span span = { .id = t->root };

	if (had_span(p, ev->number))
		return 0;
	put_id(span.id.span, id_of(p, ID_CALL, ev->number));
	memcpy(span.parent, t->root.span, 8);
	span.name = cause->func < api_nfuncs ? api_funcs[cause->func].name : "call";
	span.start_ns = epoch(s, cause->start_ns);
	span.end_ns = epoch(s, cause->end_ns);
	otlp_cause_attrs(&s->enc, ev);
	add_span(t, cause->start_ns, cause->end_ns);
	put_span(s, p, &span);
	return 1;
}

static int span_of_work(struct otlp_spans *s, struct otlp_process *p, const struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;
	bool caused = ev->number && ev->cause;
	struct otlp_span span = { 0 };
	struct trace *t;
	char name[64];
	int n = 0;

	/* work of a call that has a span belongs to that span's trace, even if the trace is full */
	if (!p->ntraces || !caused || ev->number > p->highest)
		turn_trace(s, p, caused ? ev->cause->start_ns : w->h.start_ns);
	t = trace_of(p, caused ? ev->number : 0);
	if (caused)
		n = short_call(s, p, t, ev);
	span.id = t->root;
	put_id(span.id.span, id_of(p, ID_WORK, ++p->unnumbered));
	if (caused)
		put_id(span.parent, id_of(p, ID_CALL, ev->number));
	else
		memcpy(span.parent, t->root.span, 8);
	span.start_ns = epoch(s, w->h.start_ns);
	span.end_ns = epoch(s, w->h.end_ns);
	span.name = otlp_work_attrs(&s->enc, ev, name, sizeof(name));
	add_span(t, w->h.start_ns, w->h.end_ns);
	put_span(s, p, &span);
	return n + 1;
}

/* How often a function was called whose calls have no spans: a span over the stretch of time
 * that the numbers are of. */
static int span_of_muted(struct otlp_spans *s, struct otlp_process *p, const struct event *ev)
{
	struct otlp_span span = { 0 };
	char name[sizeof("muted ") + 4 * 256];
	struct trace *t;

	if (!p->ntraces)
		begin_trace(p, ev->rec->start_ns, 0);
	t = current(p);
	span.id = t->root;
	put_id(span.id.span, id_of(p, ID_WORK, ++p->unnumbered));
	memcpy(span.parent, t->root.span, 8);
	span.start_ns = epoch(s, ev->rec->start_ns);
	span.end_ns = epoch(s, ev->rec->start_ns + about_duration_ns(ev->rec));
	span.name = otlp_muted_attrs(&s->enc, ev, name, sizeof(name));
	add_span(t, ev->rec->start_ns, ev->rec->start_ns + about_duration_ns(ev->rec));
	put_span(s, p, &span);
	return 1;
}

/* A range or a mark: below the process's root, as calls are. A range comes after the calls in it,
 * which have their spans already. */
static int span_of_scope(struct otlp_spans *s, struct otlp_process *p, const struct event *ev)
{
	struct otlp_span span = { 0 };
	char name[ABOUT_SCOPE_MAX];
	struct trace *t;

	turn_trace(s, p, ev->rec->start_ns);
	t = current(p);
	span.id = t->root;
	put_id(span.id.span, id_of(p, ID_WORK, ++p->unnumbered));
	memcpy(span.parent, t->root.span, 8);
	span.start_ns = epoch(s, ev->rec->start_ns);
	span.end_ns = epoch(s, ev->rec->end_ns);
	about_scope((const struct ct_scope *)ev->rec, name);
	span.name = name;
	otlp_scope_attrs(&s->enc, ev);
	add_span(t, ev->rec->start_ns, ev->rec->end_ns);
	put_span(s, p, &span);
	return 1;
}

typedef int (*span_fn)(struct otlp_spans *, struct otlp_process *, const struct event *);

/* What makes the span of a kind; NULL: it has none. */
static span_fn span_of(uint16_t kind)
{
	static const span_fn spans[CT_KIND_END] = {
		[CT_CALL] = span_of_call,
		[CT_MUTED] = span_of_muted,
		[CT_SCOPE_END] = span_of_scope,
	};

	return kind < CT_KIND_END && spans[kind] ? spans[kind]
	       : kind_is(kind, KIND_BUSY)	 ? span_of_work
						 : NULL;
}

bool otlp_spans_wants(const struct otlp_spans *s, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	if (h->kind == CT_MUTED || h->kind == CT_EXIT)
		return true;
	return span_of(h->kind) && !about_is_hidden(h) &&
	       h->end_ns - h->start_ns >= s->o->spans.min_ns &&
	       !(h->flags & (h->kind == CT_CALL	       ? CT_F_PENDING | CT_F_NO_RETURN | CT_F_BEFORE
			     : h->kind == CT_SCOPE_END ? 0
						       : CT_F_NO_TIME));
}

int otlp_spans_event(struct otlp_spans *s, const struct event *ev)
{
	struct otlp_process *p;

	if (ev->rec->kind == CT_EXIT) {
		p = process_find(s, ev->rec->pid);
		if (p)
			p->exited = true;
		return 0;
	}
	p = otlp_spans_process_of(s, ev->proc);
	if (!p) {
		s->dropped++;
		return 0;
	}
	return span_of(ev->rec->kind)(s, p, ev);
}

void otlp_spans_flush(struct otlp_spans *s, bool all)
{
	for (struct otlp_process *p = s->procs; p; p = p->next) {
		if (all)
			end_trace(s, p);
		make_request(s, p);
	}
}

uint64_t otlp_spans_dropped(const struct otlp_spans *s)
{
	return s->dropped;
}

struct otlp_spans *otlp_spans_open(const struct sink_opts *o, bool json, bool random_ids,
				   otlp_request_fn request, void *ctx)
{
	struct otlp_spans *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->o = o;
	s->enc.json = json;
	s->request = request;
	s->ctx = ctx;
	/* a file says the same each time it is made; what is pushed meets the traces of others */
	s->seed = otlp_spans_mix(o->start_ns, o->realtime_offset_ns);
	if (random_ids && getrandom(&s->seed, sizeof(s->seed), 0) < 0)
		s->seed = otlp_spans_mix(s->seed, (uint64_t)(uintptr_t)s);
	return s;
}

void otlp_spans_close(struct otlp_spans *s)
{
	struct otlp_process *p = s ? s->procs : NULL, *next;

	for (; p; p = next) {
		next = p->next;
		text_free(&p->resource);
		text_free(&p->spans);
		free(p->sent);
		free(p);
	}
	if (s)
		text_free(&s->enc.attrs);
	free(s);
}
