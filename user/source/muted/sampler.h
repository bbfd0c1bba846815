/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sampler.h - inside the bpf source: handles functions that are called so often that their probes
 * cost more than they are worth. The same mechanism is used for calls that are sent and for calls
 * that are counted:
 *
 *   noticed -> each call counted in the kernel while its process works for SAMPLER_COUNT_NS
 *           -> probes off, and on again for short windows at random instants
 *
 * Calls that nothing counted are estimated from the windows (estimator.h). A function that is
 * called inside a sampled one is sampled too: without the outer probe its calls would look as if
 * the program had made them. Functions of class query are sampled, and with a duty (duty.h) also
 * those that the plan names. Knows the kernel side's counters; it attaches no probe itself, and
 * knows no sink.
 */
#ifndef CT_SAMPLER_H
#define CT_SAMPLER_H

#include "../../event/event.h"
#include "../../../wire/control.h"
#include "../../flow/plan.h"

/* of CPU time, so that all calls of a short program are counted */
#define SAMPLER_COUNT_NS 1000000000ULL
#define SAMPLER_COUNT_MAX_NS 20000000000ULL /* of time, for a process that gets little of a CPU */

struct sampler;

/* What the kernel side has for it. */
struct sampler_maps {
	int progress_fd;
	const struct ct_entry *entries; /* mapped */
	const uint64_t *used;		/* number of entries that were ever used */
	uint32_t entries_max;
	uint8_t *sampled; /* [CT_MAX_FUNCS]: enum ct_sampled */
	bool *sampling;
	uint32_t *window;
	const struct ct_inside (*inside)[CT_INSIDE_MAX]; /* [CT_MAX_FUNCS] */
};

/* Callbacks to the owner of the probes. */
struct sampler_hooks {
	void *ctx;
	void (*off)(void *ctx, const uint64_t *funcs); /* takes these (a bitmap) off for good */
	/* attaches all that were taken off again; false: it cannot */
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
/* A process calls this function too often: from here on the calls of all processes to it are
 * counted. */
void sampler_notice(struct sampler *, uint32_t func, uint32_t pid);
/* Reports the calls counted since the last look, for functions that may be sampled but are not
 * yet. */
typedef void (*sampler_calls_fn)(void *ctx, uint32_t pid, uint32_t func, uint64_t calls,
				 uint64_t now);
void sampler_look(struct sampler *, sampler_calls_fn, void *ctx);
/* A process has ended: it makes no more calls that are not seen. pid is in the initial namespace,
 * at_ns is CLOCK_MONOTONIC. */
void sampler_ended(struct sampler *, uint32_t pid, uint64_t at_ns);
/* Checks the cost of the probes, and whether it needs another duty. Call it now and then. */
void sampler_cost(struct sampler *);
/* Functions with this many calls a second must be reported with sampler_notice(); 0: none. */
uint64_t sampler_rate(const struct sampler *);
/* The cost of the probes that stay on, as a share of the programs' CPU time, if no duty can bring
 * the cost below the limit; else 0. */
double sampler_kept_cost(const struct sampler *);
void sampler_tell_cost(const struct sampler *, struct probe_cost *);
/* Tracing ends: an open window is closed, and later calls do not matter. */
void sampler_stop(struct sampler *);

/* Call it before asking for estimates: reads the progress of the processes. */
void sampler_refresh(struct sampler *);
/* For entry `at`: the estimated calls that nothing counted. */
struct ct_estimated sampler_unseen(struct sampler *, uint32_t at);
/* Since when the function's calls are counted and not sent; 0: they are sent. */
uint64_t sampler_since(const struct sampler *, uint32_t func);
uint32_t sampler_windows(const struct sampler *, uint32_t func);
/* Is anything sampled? */
bool sampler_any(const struct sampler *);

#endif
