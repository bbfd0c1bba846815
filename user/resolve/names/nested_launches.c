/* SPDX-License-Identifier: BSD-2-Clause */
/* nested_launches.c - see nested_launches.h. */
#include <stdlib.h>

#include "nested_launches.h"

#define THREADS 1024 /* a power of two */
/* how long they are wanted after the last launch of a kernel without a name */
#define WANTED_NS 2000000000ULL
#define SETTLE_NS 200000000ULL /* time that the source needs to begin capturing them */
#define TRIES 3
#define ASKED 0x80 /* flag in *tries: nested launches are wanted for this kernel */

struct last {
	uint32_t pid, tid; /* tid 0: none */
	bool many;
	/* of the first nested launch in the thread's current outermost call */
	uint64_t start_ns, handle;
};

struct nested_launches {
	uint64_t wanted_ns; /* until when nested launches are wanted */
	uint64_t since_ns;  /* since when they have been wanted without a break */
	/* two threads may share an entry: then neither learns anything */
	struct last threads[THREADS];
	unsigned int asking; /* number of kernels that they are wanted for */
};

struct nested_launches *nested_launches_open(void)
{
	return calloc(1, sizeof(struct nested_launches));
}

void nested_launches_close(struct nested_launches *i)
{
	free(i);
}

static struct last *last_of(struct nested_launches *i, uint32_t tid)
{
	return &i->threads[tid * 2654435761u >> 22];
}

void nested_launches_saw(struct nested_launches *i, const struct ct_call *c, uint64_t handle)
{
	struct last *l = last_of(i, c->h.tid);

	if (l->tid == c->h.tid && l->pid == c->h.pid) {
		l->many |= l->handle != handle;
		return;
	}
	*l = (struct last){
		.pid = c->h.pid, .tid = c->h.tid, .start_ns = c->h.start_ns, .handle = handle
	};
}

bool nested_launches_of(struct nested_launches *i, const struct ct_call *outer, uint64_t *handle,
			uint8_t *tries)
{
	const struct last *l = last_of(i, outer->h.tid);
	bool seen = l->tid == outer->h.tid && l->pid == outer->h.pid && !l->many &&
		    l->start_ns >= outer->h.start_ns;

	if ((*tries & ~ASKED) >= TRIES)
		return false;
	if (!nested_launches_wanted(i, outer->h.end_ns)) {
		i->since_ns = outer->h.end_ns;
		i->asking = 0;
	}
	if (!(*tries & ASKED)) {
		*tries |= ASKED;
		i->asking++;
	}
	if (seen || outer->h.start_ns > i->since_ns + SETTLE_NS)
		++*tries;
	if ((*tries & ~ASKED) == TRIES)
		nested_launches_settled(i, tries);
	if ((*tries & ~ASKED) < TRIES && outer->h.end_ns + WANTED_NS > i->wanted_ns)
		i->wanted_ns = outer->h.end_ns + WANTED_NS;
	*handle = l->handle;
	return seen;
}

void nested_launches_done(struct nested_launches *i, const struct ct_call *outer)
{
	struct last *l = last_of(i, outer->h.tid);

	if (l->tid == outer->h.tid && l->pid == outer->h.pid)
		l->tid = 0;
}

void nested_launches_settled(struct nested_launches *i, uint8_t *tries)
{
	if (*tries & ASKED && i->asking)
		i->asking--;
	*tries &= (uint8_t)~ASKED;
	if (!i->asking)
		i->wanted_ns = 0;
}

bool nested_launches_wanted(const struct nested_launches *i, uint64_t now_ns)
{
	return i->wanted_ns > now_ns;
}
