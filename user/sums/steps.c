/* SPDX-License-Identifier: BSD-2-Clause */
/* steps.c - see steps.h. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "../event/holes/holes.h"
#include "../event/registry.h"
#include "../api/traits.h"
#include "../event/scopes/peak.h"
#include "../util/parse.h"
#include "../util/table/array.h"
#include "../util/table/hash_map.h"
#include "period.h"
#include "steps.h"

#define NAMES_MAX 65536
#define PRODUCTS_MAX 4194304 /* products whose FLOP were counted */
#define PROCS_MAX 4096
#define CAME_MAX 4096
#define STAYS_NS 5000000000ULL /* the last records of a process come later than its end */
#define PROFILER "ProfilerStep#"
#define OPTIMIZER "Optimizer.step#"

/* Begins with its key. */
struct name {
	uint64_t hash;
	char *text;
};

struct work {
	uint64_t start_ns, end_ns;
	uint32_t proc; /* its place in procs */
	uint32_t name; /* place in names + 1; 0: none */
	uint8_t class; /* enum overlap_class */
	bool kernel;
	float least_ns; /* of the product that begins with it; negative: not known */
	double flop;	/* of this product; 0: none begins */
};

/* A product whose FLOP are counted. */
struct product {
	uint32_t proc, id;
	uint32_t number; /* of the call that launched its kernels: a graph is launched again */
};

/* An operator or a launch. */
struct mark {
	struct beat beat;
	uint32_t proc, tid, name;
	bool launch;
};

/* A range that may be a step. */
struct range {
	uint64_t start_ns, end_ns, number, hash; /* hash: of its name */
	uint32_t proc, tid;
	uint8_t how; /* enum steps_how */
};

/* An agent came into the process. */
struct came {
	uint64_t start_ns, end_ns;
	uint32_t pid;
};

/* The process that has a number now. */
struct stepping {
	struct registered r;
	uint32_t place; /* in procs, + 1; 0: none yet */
};

/* What the one before did stays: it may have had steps. */
static void renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	struct stepping *p = item;

	(void)ctx;
	if (registry_other(p->r.start_boottime_ns, p->r.exited, (const struct ct_process *)h))
		p->place = 0;
}

static const struct registry_rules rules = {
	.size = sizeof(struct stepping),
	.most = PROCS_MAX,
	.stays_ns = STAYS_NS,
	.exec = renewed,
};

struct steps {
	const char *name;
	struct registry pids; /* of struct stepping */
	struct hash_map names, products;
	struct work *work;
	struct mark *marks;
	struct range *ranges;
	struct steps_of *procs;
	struct came *came;
	size_t nwork, nmarks, nranges, nprocs, ncame, max;
	const struct holes *holes;  /* what was not seen; NULL: not known */
	uint64_t no_room, until_ns; /* until_ns: what ends later is not complete */
};

static size_t marks_max(const struct steps *s)
{
	return s->max / 4;
}

static size_t ranges_max(const struct steps *s)
{
	return s->max / 16;
}

struct steps *steps_open(const char *name, size_t max)
{
	struct steps *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->name = name;
	s->max = max;
	s->until_ns = UINT64_MAX;
	registry_open(&s->pids, &rules, s);
	hash_map_open_of(&s->names, struct name, hash, NAMES_MAX);
	hash_map_open_of(&s->products, struct product, number, PRODUCTS_MAX);
	return s;
}

void steps_close(struct steps *s)
{
	struct name *n;

	if (!s)
		return;
	hash_map_each(&s->names, n) free(n->text);
	registry_close(&s->pids);
	hash_map_close(&s->names);
	hash_map_close(&s->products);
	for (size_t i = 0; i < s->nprocs; i++)
		free(s->procs[i].list);
	free(s->procs);
	free(s->work);
	free(s->marks);
	free(s->ranges);
	free(s->came);
	free(s);
}

const char *steps_how_word(enum steps_how how)
{
	static const char *const words[] = {
		[STEPS_NONE] = "none",		 [STEPS_RANGE] = "range",
		[STEPS_PROFILER] = "profiler",	 [STEPS_OPTIMIZER] = "optimizer",
		[STEPS_OPERATORS] = "operators", [STEPS_LAUNCHES] = "launches"
	};

	return words[how];
}

const struct steps_of *steps_list(const struct steps *s, size_t *n)
{
	*n = s->nprocs;
	return s->procs;
}

bool steps_full(const struct steps *s)
{
	return s->nwork >= s->max || s->nmarks >= marks_max(s) || s->nranges >= ranges_max(s);
}

void steps_widen(struct steps *s, size_t max)
{
	s->max = max;
}

uint64_t steps_no_room(const struct steps *s)
{
	return s->no_room;
}

static int no_room(struct steps *s, const struct ct_hdr *h)
{
	s->no_room++;
	s->until_ns = h->start_ns < s->until_ns ? h->start_ns : s->until_ns;
	return 1;
}

/* The place of a name, from 1 on. 0: there is no room. */
static uint32_t steps_name_of(struct steps *s, const char *text)
{
	uint64_t hash = text ? hash_bytes(text, strlen(text)) : 0;
	struct name *n;
	bool made;

	n = text ? hash_map_get(&s->names, &hash, &made) : NULL;
	if (!n)
		return 0;
	if (made)
		n->text = strdup(text);
	return (uint32_t)((size_t)((char *)n - s->names.items) / sizeof(*n)) + 1;
}

/* ---- what comes ---- */

static struct steps_of *proc_get(struct steps *s, const struct event *ev)
{
	struct stepping *now = ev->proc ? registry_of(&s->pids, ev->proc)
					: registry_get(&s->pids, ev->rec->pid);
	struct steps_of *p;

	if (!now || (!now->place && s->nprocs == PROCS_MAX))
		return NULL;
	if (now->place)
		return &s->procs[now->place - 1];
	p = array_add(s->procs, s->nprocs);
	if (!p)
		return NULL;
	now->place = (uint32_t)s->nprocs;
	p->pid = ev->rec->pid;
	p->shown_pid = ev->proc ? process_unique(ev->proc) : p->pid;
	p->start_boottime_ns = ev->proc ? ev->proc->start_boottime_ns : 0;
	p->leader_tid = ev->proc ? process_tid(ev->proc, p->pid) : p->pid;
	p->rank = ev->proc && ev->proc->info ? ev->proc->info->rank : CT_UNKNOWN;
	if (ev->proc)
		memcpy(p->comm, ev->proc->comm, sizeof(p->comm));
	return p;
}

enum overlap_class steps_class(const struct event *ev)
{
	uint32_t kinds = 1u << CT_SCOPE_COLLECTIVE;
	bool known;

	if (ev->rec->kind == CT_COPY || ev->rec->kind == CT_SET)
		return OVERLAP_COPY;
	if (ev->rec->kind != CT_KERNEL)
		return OVERLAP_COMPUTE;
	if (ev->kernel && !strncmp(ev->kernel->mangled, "nccl", 4))
		return OVERLAP_COLLECTIVE;
	return ev->lineage && lineage_of_kind(ev->lineage, ev->rec->pid, lineage_from(ev, kinds),
					      kinds, &known)
		       ? OVERLAP_COLLECTIVE
		       : OVERLAP_COMPUTE;
}

static uint32_t place_of(const struct steps *s, const struct steps_of *p)
{
	return (uint32_t)(p - s->procs);
}

/* Adds the FLOP of a product with the first kernel that computes it. */
static void add_product(struct steps *s, struct steps_of *p, struct work *w, const struct event *ev)
{
	struct product key;
	bool made;

	if (!w->kernel || !peak_computes(ev))
		return;
	key = (struct product){ place_of(s, p), ev->product->id, ev->capture ? ev->number : 0 };
	if (!hash_map_get(&s->products, &key, &made)) {
		s->no_room++;
		return;
	}
	if (!made)
		return;
	p->products = true;
	w->flop = (double)ev->product->flop;
	w->least_ns = ev->peak > 0 ? (float)(w->flop / ev->peak * 1e9) : -1;
}

static int add_work(struct steps *s, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	struct steps_of *p = proc_get(s, ev);
	struct work *w;

	if (h->flags & CT_F_NO_TIME || h->end_ns < h->start_ns)
		return 1;
	if (!p || s->nwork == s->max)
		return no_room(s, h);
	w = array_add(s->work, s->nwork);
	if (!w)
		return -ENOMEM;
	p->device = true;
	p->devices |= 1ULL << (((const struct ct_work *)h)->device & 63);
	*w = (struct work){ .start_ns = h->start_ns,
			    .end_ns = h->end_ns,
			    .proc = place_of(s, p),
			    .class = (uint8_t)steps_class(ev),
			    .kernel = h->kind == CT_KERNEL };
	add_product(s, p, w, ev);
	w->name = steps_name_of(s, ev->kernel		? ev->kernel->brief
				   : h->kind == CT_COPY ? "memcpy"
				   : h->kind == CT_SET	? "memset"
							: NULL);
	return 1;
}

static int add_mark(struct steps *s, const struct event *ev, uint64_t symbol, const char *name,
		    bool launch)
{
	const struct ct_hdr *h = ev->rec;
	struct steps_of *p = proc_get(s, ev);
	struct mark *m;

	if (!p || s->nmarks == marks_max(s))
		return no_room(s, h);
	m = array_add(s->marks, s->nmarks);
	if (!m)
		return -ENOMEM;
	p->beats = true;
	*m = (struct mark){ { h->start_ns, h->end_ns, symbol }, place_of(s, p), h->tid, 0, launch };
	m->name = steps_name_of(s, name);
	return 1;
}

static int add_launch(struct steps *s, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	uint64_t symbol;

	if (c->h.flags & (CT_F_HIDDEN | CT_F_PENDING) || c->depth ||
	    !(api_traits(c->func) & (TR_LAUNCH | TR_GRAPH)))
		return 0;
	symbol = ev->kernel ? hash_bytes(ev->kernel->mangled, strlen(ev->kernel->mangled))
			    : hash_number(c->func);
	return add_mark(s, ev, symbol, NULL, true);
}

/* What steps a range says. */
static enum steps_how how_of(const struct steps *s, const char *name)
{
	if (s->name)
		return fnmatch(s->name, name, 0) ? STEPS_NONE : STEPS_RANGE;
	return !strncmp(name, PROFILER, strlen(PROFILER))     ? STEPS_PROFILER
	       : !strncmp(name, OPTIMIZER, strlen(OPTIMIZER)) ? STEPS_OPTIMIZER
							      : STEPS_NONE;
}

static int add_range(struct steps *s, const struct event *ev, const char *name)
{
	const struct ct_hdr *h = ev->rec;
	enum steps_how how = how_of(s, name);
	struct steps_of *p;
	struct range *r;

	/* one that was not seen to its end is no whole step */
	if (!how || ((const struct ct_scope *)h)->flags & CT_SCOPE_UNFINISHED)
		return how != STEPS_NONE;
	p = proc_get(s, ev);
	if (!p || s->nranges == ranges_max(s))
		return no_room(s, h);
	r = array_add(s->ranges, s->nranges);
	if (!r)
		return -ENOMEM;
	*r = (struct range){ h->start_ns,    h->end_ns, 0,	     hash_bytes(name, strlen(name)),
			     place_of(s, p), h->tid,	(uint8_t)how };
	if (how == STEPS_PROFILER)
		r->number = strtoull(name + strlen(PROFILER), NULL, 10);
	return 1;
}

static int add_scope(struct steps *s, const struct event *ev)
{
	const struct ct_scope *scope = (const struct ct_scope *)ev->rec;
	const struct scope_line *line = lineage_find(ev->lineage, scope->h.pid, scope->id);
	bool known;

	if (!line)
		return 0;
	if (scope->kind == CT_SCOPE_RANGE)
		return add_range(s, ev, line->name);
	/* the outermost operators say it all */
	if (scope->kind != CT_SCOPE_OPERATOR ||
	    lineage_of_kind(ev->lineage, scope->h.pid, line->parent, 1u << CT_SCOPE_OPERATOR,
			    &known))
		return 0;
	return add_mark(s, ev, hash_bytes(line->name, strlen(line->name)), line->name, false);
}

static int add_came(struct steps *s, const struct ct_hdr *h)
{
	struct came *c;

	if (s->ncame == CAME_MAX)
		return no_room(s, h);
	c = array_add(s->came, s->ncame);
	if (!c)
		return -ENOMEM;
	*c = (struct came){ h->start_ns, h->end_ns, h->pid };
	return 1;
}

int steps_event(struct steps *s, const struct event *ev)
{
	if (registry_record(&s->pids, ev->rec))
		return 0;
	if (ev->rec->kind == CT_ENTERED)
		return add_came(s, ev->rec);
	if (ev->rec->kind == CT_SCOPE_END)
		return add_scope(s, ev);
	if (kind_is(ev->rec->kind, KIND_BUSY))
		return add_work(s, ev);
	return ev->rec->kind == CT_CALL ? add_launch(s, ev) : 0;
}

/* ---- which steps there are ---- */

#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))

static int by_work(const void *pa, const void *pb)
{
	const struct work *a = pa, *b = pb;

	return a->proc != b->proc ? ORDER(a->proc, b->proc) : ORDER(a->start_ns, b->start_ns);
}

static int by_mark(const void *pa, const void *pb)
{
	const struct mark *a = pa, *b = pb;

	return a->proc != b->proc ? ORDER(a->proc, b->proc)
				  : ORDER(a->beat.start_ns, b->beat.start_ns);
}

static int by_range(const void *pa, const void *pb)
{
	const struct range *a = pa, *b = pb;

	if (a->proc != b->proc)
		return ORDER(a->proc, b->proc);
	return a->start_ns != b->start_ns ? ORDER(a->start_ns, b->start_ns)
					  : ORDER(b->end_ns, a->end_ns);
}

static int add_step(const struct steps *s, struct steps_of *p, uint64_t number, uint64_t start_ns,
		    uint64_t end_ns)
{
	struct step *one;

	if (end_ns > s->until_ns || end_ns <= start_ns)
		return 0;
	one = array_add(p->list, p->n);
	if (!one)
		return -ENOMEM;
	*one = (struct step){ .number = number ? number : p->n,
			      .start_ns = start_ns,
			      .end_ns = end_ns };
	return 0;
}

static uint32_t shown_tid(const struct steps_of *p, uint32_t tid)
{
	return tid == p->pid ? p->leader_tid : process_host(p->pid) ? process_host_pid(tid) : tid;
}

/* Steps that are ranges, of one sort. A range inside another one of its thread is none. */
static int by_ranges(const struct steps *s, struct steps_of *p, enum steps_how how)
{
	const struct range *last = NULL;
	uint64_t hash = 0;
	int err = 0;

	for (size_t i = 0; i < s->nranges && !err; i++) {
		const struct range *r = &s->ranges[i];

		if (r->proc != place_of(s, p) || r->how != how)
			continue;
		p->how = how;
		p->tid = shown_tid(p, r->tid);
		if (how != STEPS_OPTIMIZER) {
			if (last && last->tid == r->tid && r->end_ns <= last->end_ns)
				continue;
			err = add_step(s, p, r->number, r->start_ns, r->end_ns);
		} else if (!last) {
			/* where there are several optimizers, the first one counts */
			hash = r->hash;
		} else if (r->hash == hash)
			err = add_step(s, p, 0, last->end_ns, r->end_ns);
		if (how != STEPS_OPTIMIZER || r->hash == hash)
			last = r;
	}
	return err;
}

/* The thread whose operators, or launches, are looked at: the first one that has a quarter of what
 * the busiest one has. */
static uint32_t busy_thread(const struct mark *m, size_t n, bool launch)
{
	struct thread_marks {
		uint64_t tid;
		size_t n, first;
	} * t, *best = NULL;
	struct hash_map threads;
	size_t most = 0;
	uint32_t tid;
	bool made;

	hash_map_open_of(&threads, struct thread_marks, tid, PROCS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (m[i].launch != launch)
			continue;
		t = hash_map_get(&threads, &(uint64_t){ m[i].tid }, &made);
		if (!t)
			continue;
		t->first = made ? i : t->first;
		t->n++;
		most = t->n > most ? t->n : most;
	}
	hash_map_each(&threads, t)
	{
		if (t->n * 4 >= most && (!best || t->first < best->first))
			best = t;
	}
	tid = best ? (uint32_t)best->tid : 0;
	hash_map_close(&threads);
	return tid;
}

static int by_period(const struct steps *s, struct steps_of *p, bool launch)
{
	const struct mark *m = s->marks + p->beat;
	struct beat *beats = calloc(p->nbeats + 1, sizeof(*beats));
	uint32_t tid = busy_thread(m, p->nbeats, launch);
	struct period found;
	size_t n = 0;
	int err;

	if (!beats)
		return -ENOMEM;
	for (size_t i = 0; i < p->nbeats; i++)
		if (m[i].launch == launch && m[i].tid == tid)
			beats[n++] = m[i].beat;
	err = period_find(beats, n, &found);
	if (found.confidence > p->confidence)
		p->confidence = found.confidence;
	if (found.length) {
		p->tid = shown_tid(p, tid);
		p->how = launch ? STEPS_LAUNCHES : STEPS_OPERATORS;
		p->period = found.length;
	}
	for (size_t i = 0; i + 1 < found.n && !err; i++)
		err = add_step(s, p, 0, beats[found.starts[i]].start_ns,
			       beats[found.starts[i + 1]].start_ns);
	if (found.last_whole && !err)
		err = add_step(s, p, 0, beats[found.starts[found.n - 1]].start_ns,
			       beats[found.starts[found.n - 1] + found.length - 1].end_ns);
	period_free(&found);
	free(beats);
	return err;
}

static bool has(const struct steps *s, const struct steps_of *p, bool launch)
{
	for (size_t i = 0; i < p->nbeats; i++)
		if (s->marks[p->beat + i].launch == launch)
			return true;
	return false;
}

static int steps_search(const struct steps *s, struct steps_of *p)
{
	int err;

	if (s->name)
		return by_ranges(s, p, STEPS_RANGE);
	err = by_ranges(s, p, STEPS_PROFILER);
	if (!err && !p->how)
		err = by_ranges(s, p, STEPS_OPTIMIZER);
	/* a single optimizer step does not bound a step */
	if (!err && p->how && !p->n)
		p->how = STEPS_NONE;
	if (!err && !p->how && p->nbeats)
		err = by_period(s, p, !has(s, p, false));
	return err;
}

/* ---- what the device did in them ---- */

static void split_one(void *ctx, uint64_t tag, const uint64_t ns[OVERLAP_END])
{
	struct steps_of *p = ctx;

	memcpy(p->list[tag].ns, ns, sizeof(p->list[tag].ns));
}

/* The first piece of work of the process that begins at `ns` or later. */
static size_t work_from(const struct work *w, size_t n, uint64_t ns)
{
	return array_before(w, n, x, x->start_ns < ns);
}

static void count_work(struct step *one, const struct work *w)
{
	one->kernels += w->kernel;
	one->flop += w->flop;
	if (w->least_ns < 0 || one->least_ns < 0)
		one->least_ns = -1;
	else
		one->least_ns += (double)w->least_ns;
}

double steps_use(const struct steps_of *p, double least_ns, uint64_t ns)
{
	int devices = __builtin_popcountll(p->devices);

	return least_ns < 0 || !ns || !devices ? -1 : least_ns / (double)ns / devices;
}

/* Work and windows go in by their begins, and no window is settled before the last piece that
 * began in it has come: `longest` is how long the longest of them takes. */
static int split(const struct steps *s, struct steps_of *p)
{
	const struct work *w = s->work + p->work;
	uint64_t longest = 0;
	struct overlap *o;
	size_t next = 0;
	int err = 0;

	for (size_t i = 0; i < p->nwork; i++)
		longest = w[i].end_ns - w[i].start_ns > longest ? w[i].end_ns - w[i].start_ns
								: longest;
	for (size_t i = 0; i < p->n; i++)
		longest = p->list[i].end_ns - p->list[i].start_ns > longest
				  ? p->list[i].end_ns - p->list[i].start_ns
				  : longest;
	/* half of this is the least at which windows that are not over would be settled */
	o = overlap_open(2 * (p->nwork + p->n) + 2, longest + 1, split_one, p);
	if (!o)
		return -ENOMEM;
	for (size_t i = 0; i < p->n && !err; i++) {
		const struct step *one = &p->list[i];

		for (; next < p->nwork && w[next].start_ns < one->start_ns && !err; next++)
			err = overlap_work(o, p->pid, (enum overlap_class)w[next].class,
					   w[next].start_ns, w[next].end_ns);
		if (!err)
			err = overlap_window(o, p->pid, i, one->start_ns, one->end_ns);
	}
	for (; next < p->nwork && !err; next++)
		err = overlap_work(o, p->pid, (enum overlap_class)w[next].class, w[next].start_ns,
				   w[next].end_ns);
	if (!err)
		err = overlap_settle(o);
	overlap_close(o);
	for (size_t i = 0; i < p->n && !err; i++) {
		struct step *one = &p->list[i];

		for (size_t k = work_from(w, p->nwork, one->start_ns);
		     k < p->nwork && w[k].start_ns < one->end_ns; k++)
			count_work(one, &w[k]);
	}
	return err;
}

static uint64_t length(const struct step *one)
{
	return one->end_ns - one->start_ns;
}

struct rank {
	uint64_t ns;
	size_t at;
};

static int by_length(const void *pa, const void *pb)
{
	const struct rank *a = pa, *b = pb;

	return a->ns != b->ns ? ORDER(b->ns, a->ns) : ORDER(a->at, b->at);
}

size_t *steps_slowest(const struct steps_of *p)
{
	struct rank *ranks = calloc(p->n + 1, sizeof(*ranks));
	size_t *places = calloc(p->n + 1, sizeof(*places));

	for (size_t i = 0; i < p->n && ranks && places; i++)
		ranks[i] = (struct rank){ length(&p->list[i]), i };
	if (ranks && places)
		qsort(ranks, p->n, sizeof(*ranks), by_length);
	for (size_t i = 0; i < p->n && ranks && places; i++)
		places[i] = ranks[i].at;
	if (!ranks) {
		free(places);
		places = NULL;
	}
	free(ranks);
	return places;
}

static int measure(const struct steps *s, struct steps_of *p)
{
	size_t *order;

	if (!p->n)
		return 0;
	order = steps_slowest(p);
	if (!order)
		return -ENOMEM;
	p->median_ns = length(&p->list[order[p->n / 2]]);
	free(order);
	return p->device ? split(s, p) : 0;
}

void steps_holes(struct steps *s, const struct holes *holes)
{
	s->holes = holes;
}

static bool came_in(const struct steps *s, uint32_t pid, const struct step *one)
{
	for (size_t i = 0; i < s->ncame; i++)
		if (s->came[i].pid == pid && s->came[i].start_ns < one->end_ns &&
		    one->start_ns < s->came[i].end_ns)
			return true;
	return false;
}

/* Takes the steps out of the list in which something may be missing, or an agent came in: how long they are by
 * themselves, and what they lack, is not known. */
static void leave_unseen(const struct steps *s, struct steps_of *p)
{
	struct holes_stretch *unseen;
	size_t n = holes_stretches(s->holes, p->pid, HOLES_OF_TIME, &unseen), kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct step *one = &p->list[i];

		if (came_in(s, p->pid, one))
			p->entered++;
		else if (n && holes_within_ns(unseen, n, one->start_ns, one->end_ns))
			p->unseen++;
		else
			p->list[kept++] = *one;
	}
	p->n = kept;
	free(unseen);
}

int steps_finish(struct steps *s)
{
	int err = 0;

	if (s->nwork)
		qsort(s->work, s->nwork, sizeof(*s->work), by_work);
	if (s->nmarks)
		qsort(s->marks, s->nmarks, sizeof(*s->marks), by_mark);
	if (s->nranges)
		qsort(s->ranges, s->nranges, sizeof(*s->ranges), by_range);
	for (size_t i = s->nwork; i; i--) {
		struct steps_of *p = &s->procs[s->work[i - 1].proc];

		p->work = i - 1;
		p->nwork++;
	}
	for (size_t i = s->nmarks; i; i--) {
		struct steps_of *p = &s->procs[s->marks[i - 1].proc];

		p->beat = i - 1;
		p->nbeats++;
	}
	for (size_t i = 0; i < s->nprocs && !err; i++) {
		err = steps_search(s, &s->procs[i]);
		leave_unseen(s, &s->procs[i]);
		if (!err)
			err = measure(s, &s->procs[i]);
	}
	return err;
}

/* ---- what was different ---- */

/* By name: the time in one step, and in all. */
struct named_ns {
	uint64_t here, all;
};

static const char *most_more(const struct steps *s, const struct named_ns *by, size_t steps,
			     uint64_t least, uint64_t *more)
{
	const char *name = NULL;

	*more = least;
	for (size_t i = 1; i <= s->names.n; i++) {
		uint64_t others = (by[i].all - by[i].here) / (steps - 1);

		if (by[i].here <= others || by[i].here - others <= *more)
			continue;
		*more = by[i].here - others;
		name = ((const struct name *)hash_map_at(&s->names, i - 1))->text;
	}
	return name;
}

/* The step that a time is in; p->n: none. Of steps that overlap, the one that began last. */
static size_t step_at(const struct steps_of *p, uint64_t ns)
{
	size_t n = array_before(p->list, p->n, x, x->start_ns <= ns);

	return n && ns < p->list[n - 1].end_ns ? n - 1 : p->n;
}

int steps_compare(const struct steps *s, const struct steps_of *p, size_t step,
		  struct steps_more *more)
{
	struct named_ns *by = calloc(s->names.n + 1, sizeof(*by));
	uint64_t all[OVERLAP_END] = { 0 }, took = length(&p->list[step]), least;

	*more = (struct steps_more){ .class = OVERLAP_IDLE };
	/* less than a tenth of what the step took longer explains nothing */
	least = took > p->median_ns ? (took - p->median_ns) / 10 : 0;
	if (!by)
		return -ENOMEM;
	for (size_t i = 0; i < p->nwork; i++) {
		const struct work *w = &s->work[p->work + i];
		size_t at = step_at(p, w->start_ns);

		if (at == p->n)
			continue;
		by[w->name].all += w->end_ns - w->start_ns;
		by[w->name].here += at == step ? w->end_ns - w->start_ns : 0;
	}
	more->work = most_more(s, by, p->n, least, &more->work_ns);
	memset(by, 0, (s->names.n + 1) * sizeof(*by));
	for (size_t i = 0; i < p->nbeats; i++) {
		const struct mark *m = &s->marks[p->beat + i];
		size_t at = step_at(p, m->beat.start_ns);
		uint64_t ns = m->beat.end_ns - m->beat.start_ns;

		if (at == p->n || m->launch)
			continue;
		by[m->name].all += ns;
		by[m->name].here += at == step ? ns : 0;
	}
	more->op = most_more(s, by, p->n, least, &more->op_ns);
	free(by);
	for (size_t i = 0; i < p->n; i++)
		for (int c = 0; c < OVERLAP_END; c++)
			all[c] += p->list[i].ns[c];
	for (int c = 0; c < OVERLAP_END; c++) {
		uint64_t here = p->list[step].ns[c], others = (all[c] - here) / (p->n - 1);

		if (here <= others || here - others <= more->class_ns)
			continue;
		more->class = (enum overlap_class)c;
		more->class_ns = here - others;
	}
	return 0;
}

int steps_operators(const struct steps *s, const struct steps_of *p, struct steps_ops *ops)
{
	uint64_t *by = calloc(s->names.n + 1, sizeof(*by));

	*ops = (struct steps_ops){ 0 };
	if (!by)
		return -ENOMEM;
	for (size_t i = 0; i < p->nbeats; i++) {
		const struct mark *m = &s->marks[p->beat + i];

		if (m->launch || step_at(p, m->beat.start_ns) == p->n)
			continue;
		by[m->name] += m->beat.end_ns - m->beat.start_ns;
		ops->all_ns += m->beat.end_ns - m->beat.start_ns;
	}
	for (int k = 0; k < STEPS_OPS; k++) {
		size_t most = 0;

		by[0] = 0;
		for (size_t i = 1; i <= s->names.n; i++)
			most = by[i] > by[most] ? i : most;
		if (!most)
			break;
		ops->name[k] = ((const struct name *)hash_map_at(&s->names, most - 1))->text;
		ops->ns[k] = by[most];
		by[most] = 0;
	}
	free(by);
	return 0;
}
