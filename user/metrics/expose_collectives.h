/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose_collectives.h - collectives as metrics, by kind of process, communicator, rank and function.
 * A program may make any number of communicators: those for which there is no room are "other".
 */
#ifndef CT_EXPOSE_COLLECTIVES_H
#define CT_EXPOSE_COLLECTIVES_H

#include "../util/table/hash_map.h"
#include "../event/event.h"

#define COLLECTIVES_MAX 4096		    /* series */
#define COLLECTIVES_OTHER (~0ULL)	    /* as hash: a communicator for which there is no room */
#define COLLECTIVES_FUNC 24		    /* bytes of a function's name, with its NUL */
#define COLLECTIVES_IDLE_NS 300000000000ULL /* then a series may give way to a new one */

struct collective_series {
	struct {
		uint64_t hash; /* 0: not known */
		uint32_t group;
		uint32_t rank, ranks; /* or CT_UNKNOWN */
		char func[COLLECTIVES_FUNC];
		uint32_t pad;
	} key;
	uint64_t calls, bytes; /* that have returned, without those that failed */
	uint64_t sequence;     /* of the newest that has begun; 0: not known */
	uint64_t changed_ns;
};

struct expose_collectives {
	struct hash_map series;
	uint32_t others; /* series of COLLECTIVES_OTHER; there is always room for them */
};

void expose_collectives_open(struct expose_collectives *);
void expose_collectives_close(struct expose_collectives *);
/* Is it a collective that is counted? */
bool expose_collectives_has(const struct ct_scope *);
/* Counts one of a kind of processes: its begin or its end. */
void expose_collectives_add(struct expose_collectives *, uint32_t group, const struct ct_scope *,
			    uint64_t now_ns);
/* The place of this kind is given to another one. */
void expose_collectives_drop(struct expose_collectives *, uint32_t group);
/* All series, in the order of their keys; NULL: no memory. To be freed. */
struct collective_series **expose_collectives_sorted(struct expose_collectives *);

#endif
