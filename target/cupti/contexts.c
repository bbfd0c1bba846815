/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contexts.c - finds the number that CUPTI gives to a context that the program knows by its handle.
 * CUPTI's records of contexts have only the number, its callbacks have both. In either order a
 * CT_CONTEXT with both is sent: as the record itself, or, if the record was sent earlier, as a
 * second, hidden one (so that the context is not shown twice).
 */
#include "agent_state.h"

#include <pthread.h>

/* contexts that are remembered; if a program has more, most of them are reported without handle */
#define CONTEXTS 64
#define REPORTED 64 /* a power of two */

static struct {
	uint64_t handle;       /* 0: not known */
	uint64_t handle_ns;    /* since when */
	struct ct_context rec; /* as it was sent; size 0: it was not yet */
	uint32_t id;
} contexts[CONTEXTS];
static uint32_t ncontexts; /* ever; the newest are there */
static int attached;	   /* in which attach */
/* Held over no call of CUPTI's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Handles that have been processed, mixed with their numbers and the attach: nothing more is done
 * for them. */
static _Atomic uint64_t reported[REPORTED];

void contexts_reset(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
}

/* Returns the place of a number; a new number gets a place. */
static uint32_t place_of(uint32_t id)
{
	uint32_t n = ncontexts < CONTEXTS ? ncontexts : CONTEXTS, i;

	if (attached != agent.attached) {
		attached = agent.attached;
		ncontexts = n = 0;
	}
	for (i = 0; i < n; i++)
		if (contexts[i].id == id)
			return i;
	i = ncontexts++ % CONTEXTS;
	memset(&contexts[i], 0, sizeof(contexts[i]));
	contexts[i].id = id;
	return i;
}

static void send(const struct ct_context *rec, unsigned int flags)
{
	struct ct_context *r =
		agent_record(CT_CONTEXT, sizeof(*r), rec->h.start_ns, rec->h.end_ns, 0);

	if (!r)
		return;
	memcpy((char *)r + sizeof(r->h), (const char *)rec + sizeof(r->h),
	       sizeof(*r) - sizeof(r->h));
	r->h.flags = (uint16_t)flags;
	queue_commit(r);
}

void contexts_keep(const struct ct_context *rec)
{
	uint32_t i;

	pthread_mutex_lock(&lock);
	i = place_of(rec->id);
	contexts[i].rec = *rec;
	contexts[i].rec.h.size = sizeof(*rec);
	contexts[i].rec.handle = contexts[i].handle;
	/* its time is that of the handle, because the handle may belong to another context later */
	if (contexts[i].handle)
		contexts[i].rec.h.start_ns = contexts[i].rec.h.end_ns = contexts[i].handle_ns;
	send(&contexts[i].rec, 0);
	pthread_mutex_unlock(&lock);
}

void contexts_handle(const void *context, uint32_t id)
{
	uint64_t handle = (uint64_t)(uintptr_t)context;
	uint64_t mixed = (handle ^ (uint64_t)id << 48 ^ (uint64_t)(uint32_t)agent.attached << 32) *
			 0x9e3779b97f4a7c15ULL;
	_Atomic uint64_t *at = &reported[mixed >> 58 & (REPORTED - 1)];
	uint32_t i;

	if (!handle || atomic_load_explicit(at, memory_order_relaxed) == mixed)
		return;
	pthread_mutex_lock(&lock);
	i = place_of(id);
	if (contexts[i].handle != handle) {
		contexts[i].handle = contexts[i].rec.handle = handle;
		contexts[i].handle_ns = contexts[i].rec.h.start_ns = contexts[i].rec.h.end_ns =
			clock_now();
		if (contexts[i].rec.h.size)
			send(&contexts[i].rec, CT_F_HIDDEN);
	}
	atomic_store_explicit(at, mixed, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}
