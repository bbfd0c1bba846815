/* SPDX-License-Identifier: BSD-2-Clause */
/* occupancy.c - long kernels that leave much of the GPU empty. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../rule.h"

#define SHAPES_MAX 512
#define LOW_OCCUPANCY 0.25
#define OCCUPANCY_SHARE 0.1 /* of all kernels' time */
#define OCCUPANCY_NS 100000 /* mean */

struct shape_use {
	struct book_shape shape;
	uint64_t handle, n, ns, blocks, at_ns, took_ns;
	uint32_t device, stack;
	uint16_t func;
	char *name;
};
struct occupancy {
	struct shape_use *shapes;
	uint32_t nshapes;
	uint16_t buckets[1024];
	uint64_t ns;
};

static struct shape_use *shape_of(struct occupancy *o, const struct seen *s,
				  const struct book_shape *shape, uint64_t blocks)
{
	const struct ct_kernel *k = (const struct ct_kernel *)s->h;
	uint64_t hash = k->name ^ (uint64_t)shape->block << 20 ^ (uint64_t)shape->shared << 3 ^
			blocks;
	uint32_t at = (uint32_t)(hash * 0x9e3779b97f4a7c15ULL >> 40);
	struct shape_use *u;

	for (; o->buckets[at & 1023]; at++) {
		u = &o->shapes[o->buckets[at & 1023] - 1];
		if (u->handle == k->name && u->blocks == blocks &&
		    !memcmp(&u->shape, shape, sizeof(*shape)))
			return u;
	}
	if (o->nshapes == SHAPES_MAX)
		return NULL;
	u = &o->shapes[o->nshapes++];
	memset(u, 0, sizeof(*u));
	o->buckets[at & 1023] = (uint16_t)o->nshapes;
	u->handle = k->name;
	u->shape = *shape;
	u->blocks = blocks;
	u->device = k->w.device;
	u->func = CT_NO_FUNC;
	u->stack = sites_stack_of(advise_stacks(s->a), s->ev->stack);
	u->name = s->ev->kernel ? strndup(s->ev->kernel->brief, 256) : NULL;
	return u;
}

static int occupancy_event(void *state, const struct seen *s)
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

static void occupancy_end(void *state, struct advice *a, struct advise_process *proc)
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
			 "for each block on %u multiprocessors",
			 (unsigned long long)u->blocks, u->shape.block, u->shape.registers,
			 rule_bytes(u->shape.shared), d->multiprocessors);
		if (share >= 0)
			rule_say(&words, ", theoretical occupancy %.0f %%", share * 100);
		text_str(&words, ".");
	}
	f = h.n ? rule_finding_of(a, &rule_occupancy, proc, &h) : NULL;
	if (f) {
		rule_say(&f->evidence,
			 "%llu kernels, %s each on average, leave most of a multiprocessor's room "
			 "for threads or some of the multiprocessors empty.",
			 (unsigned long long)h.n, rule_time((double)h.ns / (double)h.n));
		text_mem(&f->evidence, words.s, words.len);
	}
	hits_free(&h);
	text_free(&words);
}

static void occupancy_release(void *state)
{
	struct occupancy *o = state;

	for (uint32_t i = 0; i < o->nshapes; i++)
		free(o->shapes[i].name);
	free(o->shapes);
}

/* clang-format off */
const struct rule rule_occupancy = {
	{ "low-occupancy", "Long kernels that leave much of the GPU empty", ADVISE_DEVICE,
	  "the time of these kernels; how much of it more threads would gain cannot be told",
	  "Launch more blocks; where registers or shared memory limit the threads, use less of them "
	  "(__launch_bounds__). Some kernels, as matrix products by tensor cores, are made for few threads." },
	.kinds = KIND(CT_KERNEL), .most = ADVISE_NOTE,
	.state_bytes = sizeof(struct occupancy), .event = occupancy_event, .end = occupancy_end, .free = occupancy_release
};
/* clang-format on */
