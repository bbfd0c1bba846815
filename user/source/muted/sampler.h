/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sampler.h - inside the bpf source: what is done about functions that are called so often that
 * their probes cost more than they tell. One mechanism for calls that are sent and for calls that
 * are counted:
 *
 *   noticed -> each call counted in the kernel while its process works for SAMPLER_COUNT_NS
 *           -> probes off, and on again for short windows at random instants
 *
 * What nothing counted is estimated from the windows (estimator.h). A function that is called
 * inside of a sampled one goes with it: with the outer probe gone its calls would look as if the
 * program had made them. Functions of class query are sampled, and with a duty (duty.h) those
 * that the plan names beside them. Knows the kernel side's counts; puts on no probe itself, and
 * knows no sink.
 */
#ifndef CT_SAMPLER_H
#define CT_SAMPLER_H

#include "../../event/event.h"
#include "../plan.h"

#define SAMPLER_COUNT_NS 1000000000ULL /* of CPU time: all that a short program does is counted */
#define SAMPLER_COUNT_MAX_NS 20000000000ULL /* of time, for a process that gets little of a CPU */

struct sampler;

/* What the kernel side has for it. */
struct sampler_maps {
	int progress_fd;
	const struct ct_entry *entries; /* mapped */
	const uint64_t *used;		/* how many of them were ever used */
	uint32_t entries_max;
	uint8_t *sampled; /* [CT_MAX_FUNCS]: enum ct_sampled */
	bool *sampling;
	uint32_t *window;
	const struct ct_inside (*inside)[CT_INSIDE_MAX]; /* [CT_MAX_FUNCS] */
};

/* What the owner of the probes does when it is asked. */
struct sampler_hooks {
	void *ctx;
	void (*off)(void *ctx, const uint64_t *funcs); /* takes these (a bitmap) off for good */
	/* puts all that were taken off on again; false: it cannot */
	bool (*open)(void *ctx);
	void (*close)(void *ctx);
	uint64_t (*folded)(void *ctx); /* calls that were probed and not counted; NULL: none */
};

/* NULL: no memory, or no timer. pair_ns: what a pair of probes costs a call; 0: not known. */
struct sampler *sampler_open(const struct capture_plan *, const struct sampler_maps *,
			     const struct sampler_hooks *, uint64_t pair_ns);
void sampler_close(struct sampler *);
/* Readable: sampler_step(). */
int sampler_fd(const struct sampler *);
void sampler_step(struct sampler *);
/* May this function be sampled at all? */
bool sampler_may(const struct sampler *, uint32_t func);
/* A process calls it too often: its calls, anybody's, are counted from here on. */
void sampler_notice(struct sampler *, uint32_t func, uint32_t pid);
/* Tells of the calls that were counted since the last look, of functions that may be sampled and
 * are not. */
typedef void (*sampler_calls_fn)(void *ctx, uint32_t pid, uint32_t func, uint64_t calls,
				 uint64_t now);
void sampler_look(struct sampler *, sampler_calls_fn, void *ctx);
/* A process has ended: nothing goes by unseen any more. pid in the initial namespace,
 * CLOCK_MONOTONIC. */
void sampler_ended(struct sampler *, uint32_t pid, uint64_t at_ns);
/* Looks at what the probes cost, and whether that asks for another duty. Now and then. */
void sampler_cost(struct sampler *);
/* Functions with so many calls a second are to be told of (sampler_notice()); 0: none. */
uint64_t sampler_rate(const struct sampler *);
/* What the probes that stay on cost, of the programs' CPU time, where no duty can bring it below
 * the limit; else 0. */
double sampler_kept_cost(const struct sampler *);
void sampler_tell_cost(const struct sampler *, struct probe_cost *);
/* Tracing ends: an open window is closed, and what goes by from here on does not matter. */
void sampler_stop(struct sampler *);

/* Before estimates are asked for: how far processes have come. */
void sampler_refresh(struct sampler *);
/* The calls that nothing counted of what entry `at` counts. */
struct ct_estimated sampler_unseen(struct sampler *, uint32_t at);
/* Since when the function's calls are counted and not sent; 0: they are sent. */
uint64_t sampler_since(const struct sampler *, uint32_t func);
uint32_t sampler_windows(const struct sampler *, uint32_t func);
/* Is anything sampled? */
bool sampler_any(const struct sampler *);

#endif
