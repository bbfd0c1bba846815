/* SPDX-License-Identifier: BSD-2-Clause */
/* advise.c - see advise.h: passes events to the rules that want them, and makes a list of their
 * findings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../gaps/why.h"
#include "../event/holes/holes.h"
#include "../event/device.h"
#include "alike.h"
#include "procs.h"
#include "proc_steps.h"
#include "../util/table/array.h"

#define LONG_CALLS_MAX (1u << 19)
#define LONG_CALL_NS 20000ULL	 /* at first; grows when there are more than LONG_CALLS_MAX */
#define SPANS_ALL_MAX 48	 /* struct spans in all */
#define LIVE_ALL_MAX (1u << 20)	 /* live allocations in all */
#define STEPS_ALL_MAX (1u << 20) /* pieces of device work for steps, in all; see steps_open() */
#define DEVICES_KNOWN_MAX 256

struct advice {
	uint64_t wanted; /* bit i: rules[i] */
	uint8_t by_kind[CT_KIND_END][RULES_MAX];
	uint8_t nby_kind[CT_KIND_END];
	struct procs procs;
	struct site_stacks *stacks;
	struct long_call *long_calls;
	size_t nlong;
	uint64_t long_ns;
	bool long_sorted;
	unsigned int nspans, nlive, nsteps;
	struct ct_device devices[DEVICES_KNOWN_MAX];
	unsigned int ndevices;
	struct advise_finding *findings;
	size_t nfindings;
	struct advise_totals totals;
	bool errors_muted;
	const struct holes *holes; /* what was not seen; NULL: not known */
	struct why *why;	   /* from the first host state on; NULL: there is none */
	const struct why_part *parts;
	size_t nparts;
	bool causes_made;
	bool bad; /* there was no memory for a finding */
};

const char *advise_severity_name(enum advise_severity s)
{
	return s == ADVISE_SERIOUS ? "serious" : s == ADVISE_WARNING ? "warning" : "note";
}

/* ---- the rules by name ---- */

const struct advise_rule *advise_rule_at(unsigned int i)
{
	return i < nrules ? &rules[i]->words : NULL;
}

static int rule_index(const char *name, size_t len)
{
	for (unsigned int i = 0; i < nrules; i++)
		if (strlen(rules[i]->words.name) == len &&
		    !strncmp(rules[i]->words.name, name, len))
			return (int)i;
	return -1;
}

const char *advise_rules_bad(const char *list, size_t *len)
{
	for (const char *at = list;; at += *len + 1) {
		*len = strcspn(at, ",");
		if (rule_index(at, *len) < 0)
			return at;
		if (!at[*len])
			return NULL;
	}
}

static uint64_t rules_of(const char *list)
{
	uint64_t set = 0;

	for (const char *at = list; at && *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ",");
		int i = rule_index(at, n);

		set |= i < 0 ? 0 : 1ULL << i;
		at += n;
	}
	return list ? set : ~0ULL;
}

/* ---- life ---- */

struct advice *advise_open(const char *list)
{
	struct advice *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->stacks = sites_stacks_open();
	if (!a->stacks) {
		free(a);
		return NULL;
	}
	a->wanted = rules_of(list);
	a->long_ns = LONG_CALL_NS;
	for (unsigned int i = 0; i < nrules; i++) {
		if (!(a->wanted >> i & 1))
			continue;
		a->totals.rules++;
		for (unsigned int k = 0; k < CT_KIND_END; k++)
			if (rules[i]->kinds >> k & 1)
				a->by_kind[k][a->nby_kind[k]++] = (uint8_t)i;
	}
	return a;
}

void advise_show_all(struct advice *a)
{
	sites_stacks_show_all(a->stacks);
}

void advise_close(struct advice *a)
{
	if (!a)
		return;
	procs_free(&a->procs);
	for (size_t i = 0; i < a->nfindings; i++) {
		struct advise_finding *f = &a->findings[i];

		alike_free(f);
		text_free(&f->comm);
		text_free(&f->evidence);
		for (unsigned int k = 0; k < ADVISE_PLACES; k++) {
			text_free(&f->places[k].name);
			text_free(&f->places[k].stack);
		}
	}
	why_close(a->why);
	free(a->findings);
	free(a->long_calls);
	sites_stacks_close(a->stacks);
	free(a);
}

/* ---- what several rules look at ---- */

static void forget_short(struct advice *a)
{
	while (a->nlong > LONG_CALLS_MAX / 2) {
		size_t n = 0;

		/* a hostile trace may have only calls of the greatest length */
		a->long_ns = a->long_ns >> 62 ? UINT64_MAX : a->long_ns * 2;
		for (size_t i = 0; i < a->nlong; i++)
			if (a->long_calls[i].ns >= a->long_ns)
				a->long_calls[n++] = a->long_calls[i];
		a->nlong = n;
	}
}

static int add_long(struct advice *a, const struct advise_process *p, const struct ct_hdr *h,
		    uint64_t ns, uint16_t func, uint32_t type)
{
	if (a->nlong == LONG_CALLS_MAX)
		forget_short(a);
	if (ns < a->long_ns)
		return 0;
	if (!array_room(a->long_calls, a->nlong))
		return -ENOMEM;
	a->long_calls[a->nlong++] =
		(struct long_call){ h->start_ns, ns, type, h->tid, func, (uint16_t)p->index };
	return 0;
}

static int by_start(const void *pa, const void *pb)
{
	const struct long_call *a = pa, *b = pb;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

const struct long_call *advise_long_calls(struct advice *a, size_t *n, uint64_t *least_ns)
{
	if (!a->long_sorted && a->nlong)
		qsort(a->long_calls, a->nlong, sizeof(*a->long_calls), by_start);
	a->long_sorted = true;
	*n = a->nlong;
	*least_ns = a->long_ns;
	return a->long_calls;
}

/* What threads waited for is in few recordings: only then what explains gaps is kept. */
static int learn_cause(struct advice *a, const struct event *ev)
{
	int err;

	if (!a->why && ev->rec->kind != CT_HOST_SEGMENT)
		return 0;
	a->why = a->why ? a->why : why_open();
	err = a->why ? why_event(a->why, ev) : -ENOMEM;
	return err < 0 ? err : 0;
}

const struct why_part *advise_causes(struct advice *a, const struct advise_process *p,
				     uint32_t device)
{
	if (a->why && !a->causes_made) {
		a->parts = why_finish(a->why, a->holes, &a->nparts);
		a->bad |= !a->parts;
	}
	a->causes_made = true;
	for (size_t i = 0; a->parts && i < a->nparts; i++)
		if (a->parts[i].is_device && a->parts[i].pid == p->shown &&
		    (a->parts[i].device == device || a->nparts == 1))
			return &a->parts[i];
	return NULL;
}

bool advise_may_keep_spans(struct advice *a, unsigned int n)
{
	if (a->nspans + n > SPANS_ALL_MAX)
		return false;
	a->nspans += n;
	return true;
}

bool advise_may_keep_live(struct advice *a, unsigned int n)
{
	if (a->nlive + n > LIVE_ALL_MAX)
		return false;
	a->nlive += n;
	return true;
}

bool advise_may_keep_steps(struct advice *a, unsigned int n)
{
	if (a->nsteps + n > STEPS_ALL_MAX)
		return false;
	a->nsteps += n;
	return true;
}

static struct proc_device *device_of(struct advice *a, struct advise_process *p, uint32_t id)
{
	struct proc_device *d;

	for (unsigned int i = 0; i < p->ndevices; i++)
		if (p->devices[i].id == id)
			return &p->devices[i];
	if (p->ndevices == DEVICES_MAX || !advise_may_keep_spans(a, 1))
		return NULL;
	d = array_add(p->devices, p->ndevices);
	if (d)
		d->id = id;
	return d;
}

static int add_busy(struct advice *a, struct advise_process *p, const struct seen *s)
{
	struct proc_device *d;

	if (s->h->kind == CT_SYNC || s->h->kind == CT_MEMORY || s->h->kind == CT_MANAGED ||
	    s->h->flags & CT_F_NO_TIME)
		return 0;
	d = device_of(a, p, s->work->device);
	if (!d) {
		a->totals.no_room++;
		return 0;
	}
	return spans_add(&d->busy, s->h->start_ns, s->h->end_ns,
			 s->ev->cause ? s->ev->cause->func : CT_NO_FUNC,
			 sites_stack_of(a->stacks, s->ev->stack));
}

static void learn_device(struct advice *a, const struct ct_device *d)
{
	for (unsigned int i = 0; i < a->ndevices; i++)
		if (a->devices[i].h.pid == d->h.pid && a->devices[i].id == d->id) {
			memcpy(&a->devices[i], d, sizeof(*d));
			return;
		}
	if (a->ndevices < DEVICES_KNOWN_MAX)
		memcpy(&a->devices[a->ndevices++], d, sizeof(*d));
}

const struct ct_device *advise_device(const struct advice *a, uint32_t pid, uint32_t id)
{
	for (unsigned int i = 0; i < a->ndevices; i++)
		if (a->devices[i].h.pid == pid && a->devices[i].id == id)
			return &a->devices[i];
	return NULL;
}

void advise_holes(struct advice *a, const struct holes *holes)
{
	a->holes = holes;
}

void advise_muted(struct advice *a, const char *const *names)
{
	for (; names && *names; names++)
		a->errors_muted |= strstr(*names, "LastError") != NULL;
}

bool advise_errors_muted(const struct advice *a)
{
	return a->errors_muted;
}

struct site_stacks *advise_stacks(struct advice *a)
{
	return a->stacks;
}

/* ---- events ---- */

/* False: no rule can use it. */
static bool look_at_call(struct seen *s)
{
	const struct ct_call *c = (const struct ct_call *)s->h;

	if (c->func < api_nfuncs && api_traits(c->func) & TR_REPORT) {
		s->call = c;
		s->traits = TR_REPORT;
		return !(c->h.flags & CT_F_HIDDEN);
	}
	if (c->func >= api_nfuncs || c->depth ||
	    c->h.flags & (CT_F_HIDDEN | CT_F_PENDING | CT_F_UNFINISHED | CT_F_NO_RETURN))
		return false;
	s->call = c;
	s->traits = api_traits(c->func);
	s->failed = api_failed(c);
	if (s->traits & TR_COPY)
		s->way = (uint8_t)report_way_of(api_call_way(c));
	if (s->traits & (TR_COPY | TR_SET)) {
		int64_t bytes = api_size(c, API_ARCH_HERE);

		s->bytes = (uint64_t)bytes < CT_SIZE_MOST ? (uint64_t)bytes : 0;
		s->a->totals.odd_sizes += !s->failed && (uint64_t)bytes >= CT_SIZE_MOST;
	}
	return true;
}

static void look_at_time(struct advise_process *p, const struct ct_hdr *h)
{
	if (!h->start_ns || h->end_ns < h->start_ns)
		return;
	if (!p->first_ns || h->start_ns < p->first_ns)
		p->first_ns = h->start_ns;
	if (h->end_ns > p->last_ns)
		p->last_ns = h->end_ns;
}

static void leave_out(const struct rule *r, void *state, const struct ct_hdr *h)
{
	unsigned int n = r->free == rule_free_hits ? 1 : r->nhits;
	struct hits *hits = state ? (struct hits *)((char *)state + r->hits_at) : NULL;

	for (unsigned int i = 0; i < n && hits; i++)
		hits_leave_out(&hits[i], h->tid, h->start_ns, h->end_ns);
}

/* An agent has come into the process, inside a call that comes later, or that rules have counted. */
static void entered(struct advice *a, struct advise_process *p, const struct ct_hdr *h)
{
	if (h->end_ns <= h->start_ns || p->nentered == ENTERED_MAX)
		return;
	p->entered[p->nentered++] = (struct entered_one){ h->start_ns, h->end_ns, h->tid };
	for (unsigned int i = 0; i < nrules; i++)
		leave_out(rules[i], p->state[i], h);
	for (size_t i = 0; i < a->nlong; i++) {
		struct long_call *c = &a->long_calls[i];

		if (c->proc == p->index && c->tid == h->tid && c->start_ns <= h->start_ns &&
		    h->end_ns <= c->start_ns + c->ns)
			c->ns -= h->end_ns - h->start_ns;
	}
}

/* The state that is kept for all rules. */
static int advise_look(struct advice *a, struct seen *s)
{
	struct advise_process *p = s->p;

	if (s->traits & TR_REPORT)
		return 0;
	if (s->h->kind == CT_ENTERED)
		entered(a, p, s->h);
	if (s->call) {
		a->totals.calls++;
		a->totals.have |= ADVISE_CALLS;
		p->ncalls++;
		look_at_time(p, s->h);
		s->t = procs_thread(&a->procs, p, s->h->tid);
		if (!s->t)
			return a->procs.threads.n >= THREADS_MAX ? -ENOSPC : -ENOMEM;
		return add_long(a, p, s->h, s->ns, s->call->func, 0);
	}
	if (s->h->kind == CT_OVERHEAD)
		return add_long(a, p, s->h, s->ns, CT_NO_FUNC,
				((const struct ct_overhead *)s->h)->type | 1u << 31);
	if (!s->work)
		return 0;
	a->totals.work++;
	if (s->h->kind == CT_MEMORY || s->h->kind == CT_MANAGED || s->h->kind == CT_SYNC)
		return 0;
	p->nwork++;
	a->totals.have |= ADVISE_DEVICE;
	if (!(s->h->flags & CT_F_NO_TIME))
		look_at_time(p, s->h);
	return add_busy(a, p, s);
}

static void *state_of(struct advise_process *p, unsigned int i)
{
	if (!p->state[i])
		p->state[i] = calloc(1, rules[i]->state_bytes);
	return p->state[i];
}

static int to_rules(struct advice *a, const struct seen *s)
{
	unsigned int kind = s->h->kind;

	for (unsigned int k = 0; k < a->nby_kind[kind]; k++) {
		unsigned int i = a->by_kind[kind][k];
		void *state;
		int err;

		if (s->call && !(rules[i]->traits & s->traits))
			continue;
		state = state_of(s->p, i);
		err = state ? rules[i]->event(state, s) : -ENOMEM;
		if (err)
			return err;
	}
	return 0;
}

/* Stores what the next call of a thread or process is compared with. All rules saw this one. */
static void after_call(const struct seen *s)
{
	struct thread *t = s->t;
	bool waits = s->traits & TR_SYNC || (s->traits & TR_COPY && !(s->traits & TR_ASYNC));

	if (s->traits & TR_WORK && !s->failed) {
		t->work++;
		s->p->serial++;
		t->small = s->traits & TR_COPY && s->way == REPORT_DTOH;
		t->small_bytes = s->bytes;
	}
	if (waits && !s->failed) {
		t->work = 0;
		t->small = false;
	}
	if (s->traits & TR_SYNC && !s->failed) {
		t->waited = true;
		t->wait_serial = s->p->serial;
		t->wait_func = s->call->func;
		t->wait_word = s->call->nwords && api_funcs[s->call->func].nargs ? s->call->words[0]
										 : 0;
		t->wait_device = s->ev->device;
	}
}

int advise_event(struct advice *a, const struct event *ev)
{
	struct seen s = { .a = a, .ev = ev, .h = ev->rec };
	int err = learn_cause(a, ev);

	if (err)
		return err;
	switch (ev->rec->kind) {
	case CT_DEVICE: learn_device(a, (const struct ct_device *)ev->rec); return 0;
	case CT_CALL:
		if (!look_at_call(&s))
			return 0;
		break;
	case CT_OVERHEAD:
	case CT_ENTERED:
	case CT_CONTEXT:
	case CT_STREAM:
	case CT_EXEC:
	case CT_EXIT: break;
	case CT_SCOPE_END: s.scope = (const struct ct_scope *)ev->rec; break;
	default:
		if (!kind_is(ev->rec->kind, KIND_WORK))
			return 0;
		s.work = (const struct ct_work *)ev->rec;
	}
	s.ns = s.h->end_ns > s.h->start_ns && !(s.work && s.h->flags & CT_F_NO_TIME)
		       ? s.h->end_ns - s.h->start_ns
		       : 0;
	s.p = procs_find(&a->procs, ev);
	if (!s.p) {
		a->totals.no_room++;
		return a->procs.n == PROCS_MAX ? 0 : -ENOMEM;
	}
	if (s.call)
		s.ns = rule_own_ns(s.p, s.h->tid, s.h->start_ns, s.h->end_ns);
	if (ev->rec->kind == CT_EXIT)
		s.p->exited = true;
	err = advise_look(a, &s);
	if (err == -ENOSPC) {
		a->totals.no_room++;
		return 0;
	}
	err = err ? err : to_rules(a, &s);
	if (s.t && !err)
		after_call(&s);
	return err ? err : s.call || s.work || s.scope;
}

/* ---- findings ---- */

struct advise_finding *advise_finding_new(struct advice *a)
{
	struct advise_finding *f = array_add(a->findings, a->nfindings);

	a->bad |= !f;
	return f;
}

static int by_finding(const void *pa, const void *pb)
{
	const struct advise_finding *a = pa, *b = pb;

	if (a->one.cost_ns != b->one.cost_ns)
		return a->one.cost_ns < b->one.cost_ns ? 1 : -1;
	if (a->one.bytes != b->one.bytes)
		return a->one.bytes < b->one.bytes ? 1 : -1;
	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	return a->one.pid < b->one.pid ? -1 : a->one.pid > b->one.pid;
}

/* Share and severity, for the span that rule_finding() left in the share. */
static void weigh(struct advise_finding *f)
{
	const struct rule *r = rules[rule_index(f->rule->name, strlen(f->rule->name))];
	enum advise_severity by_share;

	/* times of several threads may add up to more than there was */
	f->one.share = f->one.share <= 0 ? 0
		       : f->one.share < (double)f->one.cost_ns
			       ? 1
			       : (double)f->one.cost_ns / f->one.share;
	by_share = f->one.share >= 0.1	  ? ADVISE_SERIOUS
		   : f->one.share >= 0.01 ? ADVISE_WARNING
					  : ADVISE_NOTE;
	/* the rule may have set a lower bound */
	if (f->severity < by_share)
		f->severity = by_share;
	if (f->severity < r->least)
		f->severity = (enum advise_severity)r->least;
	if (f->severity > r->most)
		f->severity = (enum advise_severity)r->most;
}

/* The busy times of a device in order. What was not seen is no gap. */
static int advise_settle(const struct advice *a, const struct advise_process *p,
			 struct proc_device *d)
{
	struct holes_stretch *unseen;
	size_t n = holes_stretches(a->holes, p->pid, HOLES_OF_TIME, &unseen);
	int err = spans_settle(&d->busy);

	if (!err)
		spans_fill(&d->busy, unseen, n);
	free(unseen);
	return err;
}

const struct advise_finding *advise_finish(struct advice *a, uint64_t min_cost_ns, size_t *n)
{
	static const struct advise_finding none;
	size_t shown = 0, kept;

	for (uint32_t k = 0; k < a->procs.n; k++) {
		struct advise_process *p = a->procs.at[k];

		if (p->last_ns - p->first_ns > a->totals.span_ns)
			a->totals.span_ns = p->last_ns - p->first_ns;
		a->totals.processes += p->ncalls || p->nwork;
		for (unsigned int i = 0; i < p->ndevices; i++)
			a->bad |= advise_settle(a, p, &p->devices[i]) != 0;
		proc_steps_holes(p, a->holes);
		for (unsigned int i = 0; i < nrules; i++) {
			void *state = a->wanted >> i & 1 && rules[i]->end ? state_of(p, i) : NULL;

			if (state && (p->ncalls || p->nwork))
				rules[i]->end(state, a, p);
		}
		a->totals.steps_no_room += proc_steps_no_room(p);
		proc_steps_close(p->steps);
		p->steps = NULL;
	}
	if (a->bad)
		return NULL;
	for (size_t i = 0; i < a->nfindings; i++)
		weigh(&a->findings[i]);
	if (a->nfindings)
		qsort(a->findings, a->nfindings, sizeof(*a->findings), by_finding);
	kept = alike_join(a->findings, a->nfindings, &a->procs, &a->bad);
	if (a->bad)
		return NULL;
	/* findings without a time come last, and are kept */
	for (size_t i = 0; i < kept; i++) {
		struct advise_finding f = a->findings[i];

		if (f.one.cost_ns && f.one.cost_ns < min_cost_ns)
			continue;
		a->findings[i] = a->findings[shown];
		a->findings[shown++] = f;
	}
	*n = shown;
	return a->findings ? a->findings : &none;
}

void advise_totals(const struct advice *a, struct advise_totals *t)
{
	*t = a->totals;
	t->stacks = sites_stacks_n(a->stacks);
}

bool advise_wanted(const struct advice *a, const struct advise_rule *r)
{
	int i = rule_index(r->name, strlen(r->name));

	return i >= 0 && a->wanted >> i & 1;
}

bool advise_checked(const struct advice *a, const struct advise_rule *r)
{
	return advise_wanted(a, r) && (a->totals.have & r->needs) == r->needs;
}
