/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_loop.c - rules about what is done over and over, late, or in vain. */
#include "rules.h"

#define TURNS_LEAST 20
#define FAILED_LEAST 3
#define LOAD_LEAST_NS 1000000ULL
/* cudaErrorCudartUnloading, CUDA_ERROR_DEINITIALIZED: what the program's end answers */
#define DEINITIALIZED 4

/*
 * A turn: something is made after something of the kind was given back. Much that is made at the
 * begin and given back at the end is no loop: it turns once at most. Calls are counted from the
 * first turn on.
 */
static int turn(struct loop_turns *l, const struct seen *s, bool makes, bool busy)
{
	if (s->failed)
		return 0;
	if (!makes) {
		l->destroyed = true;
	} else if (l->destroyed) {
		l->destroyed = false;
		l->turns += !busy || s->p->serial != l->serial;
		l->serial = s->p->serial;
	}
	return l->turns ? rule_hit(&l->hits, s, s->ns, 0) : 0;
}

/* Giving back nothing, as cudaFree(NULL), is none. */
static bool is_null(const struct seen *s)
{
	return s->call->nwords && !s->call->words[0];
}

int alloc_loop_event(void *state, const struct seen *s)
{
	struct alloc_loop *l = state;

	if (s->traits & TR_FREE && is_null(s))
		return 0;
	return turn(&l->loop, s, s->traits & TR_ALLOC, true);
}

static void say_turns(struct advise_finding *f, const struct loop_turns *l, const char *what)
{
	if (f)
		rule_say(&f->evidence,
			 "%llu times %s; the %llu calls that make and give back took %s from the "
			 "first "
			 "such time on.",
			 (unsigned long long)l->turns, what, (unsigned long long)l->hits.n,
			 rule_time((double)l->hits.ns));
}

void alloc_loop_end(void *state, struct advice *a, struct proc *proc)
{
	struct alloc_loop *l = state;

	if (l->loop.turns >= TURNS_LEAST)
		say_turns(rule_finding_of(a, &rules[RULE_ALLOC_LOOP], proc, &l->loop.hits),
			  &l->loop,
			  "an allocation was made again after one had been given back, with work "
			  "given to the device "
			  "in between");
}

void alloc_loop_free(void *state)
{
	hits_free(&((struct alloc_loop *)state)->loop.hits);
}

int create_loop_event(void *state, const struct seen *s)
{
	struct create_loop *l = state;

	if (s->traits & (TR_EVENT_CREATE | TR_EVENT_DESTROY))
		return turn(&l->events, s, s->traits & TR_EVENT_CREATE, false);
	return turn(&l->streams, s, s->traits & TR_STREAM_CREATE, false);
}

void create_loop_end(void *state, struct advice *a, struct proc *proc)
{
	struct create_loop *l = state;

	if (l->events.turns >= TURNS_LEAST)
		say_turns(rule_finding_of(a, &rules[RULE_CREATE_LOOP], proc, &l->events.hits),
			  &l->events,
			  "an event "
			  "was made again after one had been destroyed");
	if (l->streams.turns >= TURNS_LEAST)
		say_turns(rule_finding_of(a, &rules[RULE_CREATE_LOOP], proc, &l->streams.hits),
			  &l->streams,
			  "a stream "
			  "was made again after one had been destroyed");
}

void create_loop_free(void *state)
{
	struct create_loop *l = state;

	hits_free(&l->events.hits);
	hits_free(&l->streams.hits);
}

/* ---- failures ---- */

/* What a program does with a result cannot be seen: only what it does next. */
int failed_event(void *state, const struct seen *s)
{
	struct failed *f = state;
	struct thread *t = s->t;
	struct site one;

	if (s->traits & TR_ERROR) {
		f->checks++;
		t->failed = false;
		return 0;
	}
	if (t->failed && s->traits & TR_WORK) {
		f->went_on++;
		t->failed = false;
	}
	if (!s->failed || !(s->traits & TR_CHECKED) || (int32_t)s->call->ret == DEINITIALIZED)
		return 0;
	t->failed = api_domains[api_funcs[s->call->func].domain].last_error;
	one = rule_site(s, (uint32_t)s->call->ret);
	one.ns = s->ns;
	return hits_add(&f->hits, &one, NULL);
}

static const struct site *most_failed(const struct hits *h)
{
	const struct site *most = &h->others;

	for (uint32_t i = 0; i < h->nsites; i++)
		if (h->sites[i].n > most->n)
			most = &h->sites[i];
	return most;
}

void failed_end(void *state, struct advice *a, struct proc *proc)
{
	struct failed *d = state;
	const struct site *most = most_failed(&d->hits);
	struct advise_finding *f;
	const char *error;

	/* whether it was asked for the error is not known then */
	if (advise_errors_muted(a))
		d->went_on = 0;
	if (most->n < FAILED_LEAST && !d->went_on)
		return;
	f = rule_finding_of(a, &rules[RULE_FAILED], proc, &d->hits);
	if (!f)
		return;
	rule_say(&f->evidence, "%llu %s failed", (unsigned long long)d->hits.n,
		 d->hits.n == 1 ? "call" : "calls");
	if (most->func < api_nfuncs) {
		error = api_error_name(most->func, (int32_t)most->handle);
		rule_say(&f->evidence, ", most often %s with %s (%llu), %llu %s",
			 api_funcs[most->func].name,
			 error ? error
			       : "an error of no known "
				 "name",
			 (unsigned long long)most->handle, (unsigned long long)most->n,
			 most->n == 1 ? "time" : "times");
	}
	rule_say(&f->evidence, ".");
	if (d->went_on)
		rule_say(&f->evidence,
			 " After %llu of them the same thread gave the device more work, and no "
			 "cudaGetLastError was seen before.",
			 (unsigned long long)d->went_on);
}

void failed_free(void *state)
{
	hits_free(&((struct failed *)state)->hits);
}

/* ---- code that is loaded or compiled late ---- */

#define OVERHEAD_COMPILER 1
#define OVERHEAD_MODULE (4u << 16)
#define OVERHEAD_LAZY (5u << 16)

int late_load_event(void *state, const struct seen *s)
{
	struct late_load *l = state;
	uint32_t type;

	if (!s->p->first_ns || s->h->start_ns < s->p->first_ns + STEADY_NS)
		return 0;
	if (s->call)
		return s->failed ? 0 : rule_hit(&l->hits, s, s->ns, 0);
	type = ((const struct ct_overhead *)s->h)->type;
	if (type != OVERHEAD_COMPILER && type != OVERHEAD_MODULE && type != OVERHEAD_LAZY)
		return 0;
	if (!l->n++ || s->ns > l->took_ns) {
		l->at_ns = s->h->start_ns;
		l->took_ns = s->ns;
	}
	l->ns += s->ns;
	return 0;
}

void late_load_end(void *state, struct advice *a, struct proc *proc)
{
	struct late_load *l = state;
	struct advise_finding *f;

	if (l->hits.ns + l->ns < LOAD_LEAST_NS)
		return;
	f = rule_finding_of(a, &rules[RULE_LATE_LOAD], proc, &l->hits);
	if (!f)
		return;
	/* a call that loads and what the driver says of it are the same time */
	f->cost_ns = l->ns > l->hits.ns ? l->ns : l->hits.ns;
	f->n = l->n > l->hits.n ? l->n : l->hits.n;
	rule_say(&f->evidence,
		 "Later than %s after the process's first call, %llu calls loaded device code, for "
		 "%s, "
		 "and the driver was "
		 "compiling or loading %llu times, for %s.",
		 rule_time((double)STEADY_NS), (unsigned long long)l->hits.n,
		 rule_time((double)l->hits.ns), (unsigned long long)l->n, rule_time((double)l->ns));
	if (l->n && f->nplaces < ADVISE_PLACES) {
		struct advise_place *at = &f->places[f->nplaces++];

		text_str(&at->name, "the driver's loading and compiling");
		at->n = l->n;
		at->cost_ns = l->ns;
		at->at_ns = l->at_ns;
		at->took_ns = l->took_ns;
	}
}

void late_load_free(void *state)
{
	hits_free(&((struct late_load *)state)->hits);
}
