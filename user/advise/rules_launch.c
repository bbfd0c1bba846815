/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_launch.c - rules about launches and kernels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

#define SMALL_NS 10000ULL /* of a kernel on the device */
#define SMALL_LEAST 100
#define QUEUE_LEAST 3
#define LONG_LAUNCH_NS 500000ULL
#define LONG_LEAST 10
#define LONG_RUN 4 /* one after the other: a thread that lost its core was in one alone */
#define SHAPES_MAX 512
#define LOW_OCCUPANCY 0.25
#define OCCUPANCY_SHARE 0.1 /* of all kernels' time */
#define OCCUPANCY_NS 100000 /* mean */

/* ---- kernels that are shorter than their launches ---- */

int launch_bound_event(void *state, const struct seen *s)
{
	const struct ct_kernel *k = (const struct ct_kernel *)s->h;
	const struct cause *cause = s->ev->cause;
	struct launch_bound *l = state;
	uint64_t launch_ns;
	struct site one;

	if (s->h->flags & CT_F_NO_TIME || k->w.graph_node || k->launch == CT_LAUNCH_CDP)
		return 0;
	l->kernels++;
	if (s->ns >= SMALL_NS || !cause || cause->end_ns <= cause->start_ns)
		return 0;
	launch_ns = cause->end_ns - cause->start_ns;
	l->small++;
	l->small_ns += s->ns;
	l->launch_ns += launch_ns;
	one = rule_site(s, k->name);
	one.stack = 0;
	one.ns = launch_ns > s->ns ? launch_ns - s->ns : 0;
	return hits_add(&l->hits, &one, s->ev->kernel ? s->ev->kernel->brief : NULL);
}

/* Bound by launches: they take longer than what is launched. */
void launch_bound_end(void *state, struct advice *a, struct proc *proc)
{
	struct launch_bound *l = state;
	struct advise_finding *f;

	if (l->small < SMALL_LEAST || l->small * 2 < l->kernels || l->launch_ns <= l->small_ns)
		return;
	f = rule_finding_of(a, &rules[RULE_LAUNCH_BOUND], proc, &l->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu of %llu kernels ran for less than %s each, %s on average, and their "
			 "launches took longer, %s "
			 "on average: "
			 "launching is what limits them.",
			 (unsigned long long)l->small, (unsigned long long)l->kernels,
			 rule_time((double)SMALL_NS),
			 rule_time((double)l->small_ns / (double)l->small),
			 rule_time((double)l->launch_ns / (double)l->small));
}

void launch_bound_free(void *state)
{
	hits_free(&((struct launch_bound *)state)->hits);
}

/* ---- the launch queue ---- */

#define OVERHEAD_FULL (6u << 16)

/* The first launches of a kernel load it. */
static bool is_new(struct queue_full *q, uint64_t handle)
{
	uint64_t bit = handle * 0x9e3779b97f4a7c15ULL >> 52, mask = 1ULL << bit % 64;
	bool new = !(q->known[bit / 64] & mask);

	q->known[bit / 64] |= mask;
	return new;
}

int queue_full_event(void *state, const struct seen *s)
{
	struct queue_full *q = state;
	uint64_t handle = 0;
	struct site one;

	if (s->h->kind == CT_OVERHEAD) {
		if (((const struct ct_overhead *)s->h)->type != OVERHEAD_FULL)
			return 0;
		return rule_hit(&q->hits, s, s->ns, 0);
	}
	if (s->failed)
		return 0;
	api_kernel(s->call, API_ARCH_HERE, &handle);
	if (is_new(q, handle) || s->ns < LONG_LAUNCH_NS) {
		s->t->long_n = 0;
		return 0;
	}
	s->t->long_ns = s->t->long_n++ ? s->t->long_ns + s->ns : s->ns;
	if (s->t->long_n < LONG_RUN)
		return 0;
	one = rule_site(s, 0);
	one.n = s->t->long_n == LONG_RUN ? LONG_RUN : 1;
	one.ns = s->t->long_n == LONG_RUN ? s->t->long_ns : s->ns;
	return hits_add(&q->calls, &one, NULL);
}

void queue_full_end(void *state, struct advice *a, struct proc *proc)
{
	struct queue_full *q = state;
	struct advise_finding *f;

	if (q->hits.n >= QUEUE_LEAST) {
		/* where it was met is told by the calls that took long meanwhile */
		f = rule_finding_of(a, &rules[RULE_QUEUE_FULL], proc,
				    q->calls.n ? &q->calls : &q->hits);
		if (!f)
			return;
		f->n = q->hits.n;
		f->cost_ns = q->hits.ns;
		rule_say(&f->evidence,
			 "%llu times the driver found the queue of commands to the device full and "
			 "waited for room, for %s.",
			 (unsigned long long)q->hits.n, rule_time((double)q->hits.ns));
		return;
	}
	if (q->calls.n < LONG_LEAST)
		return;
	f = rule_finding_of(a, &rules[RULE_QUEUE_FULL], proc, &q->calls);
	if (f)
		rule_say(&f->evidence,
			 "%llu launches, %d or more of a thread one after the other and none of "
			 "them a kernel's first, took "
			 "%s or more, %s in all. A launch takes so long when about a thousand "
			 "are waiting before it; that it was so here is not recorded.",
			 (unsigned long long)q->calls.n, LONG_RUN,
			 rule_time((double)LONG_LAUNCH_NS), rule_time((double)q->calls.ns));
}

void queue_full_free(void *state)
{
	struct queue_full *q = state;

	hits_free(&q->hits);
	hits_free(&q->calls);
}

/* ---- occupancy ---- */

static struct shape_use *shape_of(struct occupancy *o, const struct seen *s,
				  const struct book_shape *shape, uint64_t blocks)
{
	const struct ct_kernel *k = (const struct ct_kernel *)s->h;
	uint64_t hash = k->name ^ (uint64_t)shape->block << 20 ^ (uint64_t)shape->shared << 3 ^
			blocks;
	uint32_t at = (uint32_t)(hash * 0x9e3779b97f4a7c15ULL >> 40);
	struct shape_use *u;

	for (; o->slots[at & 1023]; at++) {
		u = &o->shapes[o->slots[at & 1023] - 1];
		if (u->handle == k->name && u->blocks == blocks &&
		    !memcmp(&u->shape, shape, sizeof(*shape)))
			return u;
	}
	if (o->nshapes == SHAPES_MAX)
		return NULL;
	u = &o->shapes[o->nshapes++];
	memset(u, 0, sizeof(*u));
	o->slots[at & 1023] = (uint16_t)o->nshapes;
	u->handle = k->name;
	u->shape = *shape;
	u->blocks = blocks;
	u->device = k->w.device;
	u->func = CT_NO_FUNC;
	u->stack = sites_stack_of(advise_stacks(s->a), s->ev->stack);
	u->name = s->ev->kernel ? strndup(s->ev->kernel->brief, 256) : NULL;
	return u;
}

int occupancy_event(void *state, const struct seen *s)
{
	const struct ct_kernel *k = (const struct ct_kernel *)s->h;
	uint64_t block = (uint64_t)k->block[0] * k->block[1] * k->block[2];
	struct occupancy *o = state;
	struct book_shape shape = { .block = (uint32_t)block,
				    .registers = k->registers,
				    .shared = k->static_shared + k->dynamic_shared,
				    .device = k->w.device };
	struct shape_use *u;

	if (s->h->flags & CT_F_NO_TIME || !block || block > 1024)
		return 0;
	if (!o->shapes)
		o->shapes = calloc(SHAPES_MAX, sizeof(*o->shapes));
	if (!o->shapes)
		return -ENOMEM;
	o->ns += s->ns;
	u = shape_of(o, s, &shape, (uint64_t)k->grid[0] * k->grid[1] * k->grid[2]);
	if (!u)
		return 0;
	if (!u->n++ || s->ns > u->took_ns) {
		u->at_ns = s->h->start_ns;
		u->took_ns = s->ns;
	}
	u->ns += s->ns;
	return 0;
}

static bool is_low(const struct shape_use *u, const struct occupancy *o, const struct ct_device *d,
		   double *share)
{
	/* the numbers may be of a damaged file: what is computed with them has to stay in its range */
	if (!d || d->warp_size > 1024 || u->shape.registers > 1024 || u->shape.shared > 1u << 24)
		return false;
	if (!u->n || (double)u->ns < OCCUPANCY_SHARE * (double)o->ns || u->ns / u->n < OCCUPANCY_NS)
		return false;
	*share = report_occupancy(&u->shape, d);
	return (*share >= 0 && *share < LOW_OCCUPANCY) ||
	       (d->multiprocessors && u->blocks < d->multiprocessors);
}

void occupancy_end(void *state, struct advice *a, struct proc *proc)
{
	struct text words = { .s = NULL };
	struct hits h = { .n = 0 };
	struct occupancy *o = state;
	struct advise_finding *f;
	unsigned int kinds = 0;

	for (uint32_t i = 0; i < o->nshapes; i++) {
		const struct shape_use *u = &o->shapes[i];
		const struct ct_device *d = advise_device(a, proc->pid, u->device);
		struct site one = { .handle = i + 1,
				    .func = CT_NO_FUNC,
				    .stack = u->stack,
				    .n = u->n,
				    .ns = u->ns,
				    .at_ns = u->at_ns,
				    .took_ns = u->took_ns };
		double share = -1;

		if (!is_low(u, o, d, &share))
			continue;
		hits_add(&h, &one, u->name);
		if (kinds++ >= ADVISE_PLACES)
			continue;
		text_str(&words, " ");
		text_plain(&words, u->name ? u->name : "a kernel of no known name", 120);
		rule_say(&words,
			 ": %llu blocks of %u threads, %u registers for each, %s of shared memory "
			 "for each "
			 "block on %u multiprocessors",
			 (unsigned long long)u->blocks, u->shape.block, u->shape.registers,
			 rule_bytes(u->shape.shared), d->multiprocessors);
		if (share >= 0)
			rule_say(&words, ", theoretical occupancy %.0f %%", share * 100);
		text_str(&words, ".");
	}
	f = h.n ? rule_finding_of(a, &rules[RULE_OCCUPANCY], proc, &h) : NULL;
	if (f) {
		rule_say(&f->evidence,
			 "%llu kernels, %s each on average, leave most of a multiprocessor's room "
			 "for "
			 "threads or some of the "
			 "multiprocessors "
			 "empty.",
			 (unsigned long long)h.n, rule_time((double)h.ns / (double)h.n));
		text_mem(&f->evidence, words.s, words.len);
	}
	hits_free(&h);
	text_free(&words);
}

void occupancy_free(void *state)
{
	struct occupancy *o = state;

	for (uint32_t i = 0; i < o->nshapes; i++)
		free(o->shapes[i].name);
	free(o->shapes);
}
