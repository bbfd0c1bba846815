/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collectives.h - what calls of a library for collectives (NCCL) say, and the communicators that
 * they make: the rank of the process in them, and how many collectives it has begun.
 *
 * Communicators are known from the calls that were seen, and from the memory of the process while it
 * lives. What was lost may have destroyed one, or have been a collective: then nothing is known any
 * more. Knows no function by name.
 */
#ifndef CT_COLLECTIVES_H
#define CT_COLLECTIVES_H

#include "../event.h"

/* What the live process says of a communicator. */
struct communicator_is {
	uint64_t hash;	      /* the same at all ranks; not 0 */
	uint32_t rank, ranks; /* or CT_UNKNOWN */
	bool counted;	      /* begun: collectives that it has begun, read between two times */
	uint64_t begun, from_ns, until_ns;
};
/* Reads a communicator out of its process, now. False: it is not known. */
typedef bool (*communicator_fn)(void *ctx, uint32_t pid, uint64_t handle, struct communicator_is *);

struct collectives;
/* ask NULL: nobody can be asked. NULL: no memory. */
struct collectives *collectives_open(communicator_fn ask, void *ctx);
void collectives_close(struct collectives *);
/* True if calls of this function are scopes that have a struct ct_collective. */
bool collectives_has(const struct api_func *);
/* Says what a call does, at its entry. `inner`: it was made inside another one. */
void collectives_begin(struct collectives *, const struct ct_call *, bool inner,
		       struct ct_collective *);
/* The call returned: adds its result and its outputs, and learns from them. */
void collectives_end(struct collectives *, const struct ct_call *, struct ct_collective *);
/* Forgets the communicators of a process: it has ended, or some of its calls were lost. */
void collectives_forget(struct collectives *, uint32_t pid);

#endif
