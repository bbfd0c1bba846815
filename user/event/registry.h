/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registry.h - a struct for each process, for whoever keeps something of each: a table, a stage, a sink.
 * The owner says how large the struct is, and what to do when the process becomes another program and
 * when it is forgotten. The registry finds the struct, knows which process has a number, and bounds how
 * many there are. Knows no table, no stage and no sink.
 *
 * It is for what is kept of a process while it runs. What a process has done, and is to be printed at the end,
 * outlives it: it stands in an array or a table of its owner, whose place the struct may hold, as in sums/steps.
 *
 *	struct mine {
 *		struct registered r; // first
 *		uint64_t calls;
 *	};
 *	static const struct registry_rules rules = { .size = sizeof(struct mine), .most = 4096 };
 *
 *	registry_open(&reg, &rules, ctx);
 *	registry_record(&reg, rec);              // each record
 *	struct mine *m = registry_get(&reg, rec->pid);
 */
#ifndef CT_REGISTRY_H
#define CT_REGISTRY_H

#include "../util/table/hash_map.h"
#include "event.h"

/* As many processes as Linux has by default, and more than a trace has at a time. */
#define REGISTRY_MOST 65536

/* What the struct of a process begins with. */
struct registered {
	uint32_t pid;
	bool exited;
	bool held; /* the owner's: it is not forgotten before its end, and not to make room */
	uint64_t start_boottime_ns; /* 0: not known */
	uint64_t exited_ns;	    /* with exited: when */
	uint64_t used;		    /* when it was last asked for, by the registry's clock */
};

struct registry_rules {
	size_t size; /* of the struct */
	uint32_t most;
	/* How long a process stays when it has ended, because its last records may still be on the
	 * way; UINT64_MAX: until there is no room for another one. */
	uint64_t stays_ns;
	/* When there is no room, and none has ended: the processes that were not asked for longest
	 * are forgotten. False: further ones get no struct, and are counted. */
	bool forgets;
	/* Each process that a record describes gets a struct; false: those that are asked for. */
	bool all;
	/* From this record on its number means another program, or another process. NULL: the struct is
	 * zeroed. */
	void (*exec)(void *ctx, void *item, const struct ct_hdr *);
	/* The process is forgotten, and then the struct is freed. rec: the CT_EXIT, if that is why;
	 * NULL: it made room, or the registry is closed. NULL: nothing is to be done. */
	void (*gone)(void *ctx, void *item, const struct ct_hdr *);
};

struct registry {
	uint64_t left_out;  /* times that a process got no struct, because there was no room */
	uint64_t forgotten; /* processes that had not ended, and made room */
	/* the rest is its own */
	const struct registry_rules *rules;
	void *ctx;
	struct hash_map places; /* of struct registry_place, by pid */
	struct registered *last;
	uint64_t now_ns; /* when the last process began or ended */
	uint64_t clock;
	uint32_t nexited;
	size_t sweep_at; /* so many processes: those that ended are looked for */
};

struct registry_place {
	uint32_t pid;
	struct registered *item;
};

void registry_open(struct registry *, const struct registry_rules *, void *ctx);
void registry_close(struct registry *);
/* The struct of a process; it stays where it is until the process is forgotten. NULL: it has none. */
void *registry_find(const struct registry *, uint32_t pid);
/* Likewise, made if there is none. NULL: no room, or no memory. */
void *registry_get(struct registry *, uint32_t pid);
/* Likewise of a process whose start is known. */
void *registry_of(struct registry *, const struct process *);
/* Learns from CT_PROCESS, CT_EXEC and CT_EXIT. False: it is none of these. */
bool registry_record(struct registry *, const struct ct_hdr *);
/* Will registry_record() call exec() for the process of this struct? */
bool registry_renews(const struct registered *, const struct ct_process *);
/* Is the record about another process than the one that had its number? One that has ended may be reported
 * once more by a later file of the same recorder, because its last records may be in that file. */
static inline bool registry_other(uint64_t start_boottime_ns, bool exited,
				  const struct ct_process *r)
{
	return start_boottime_ns && r->start_boottime_ns ? start_boottime_ns != r->start_boottime_ns
							 : exited;
}
/* No record will say when the process of a struct ends: it stays as if it had ended now; and: it has not ended
 * after all. */
void registry_expire(struct registry *, void *item);
void registry_lives(struct registry *, void *item);
void registry_forget(struct registry *, void *item);
/* Forgets the processes that have ended a while ago: stays_ns before a moment. */
void registry_sweep(struct registry *, uint64_t now_ns);
/* Forgets all that have ended, to make room. */
void registry_forget_exited(struct registry *);
static inline size_t registry_count(const struct registry *r)
{
	return r->places.n;
}
/* The struct number i of registry_count(). */
static inline void *registry_at(const struct registry *r, size_t i)
{
	return ((const struct registry_place *)hash_map_at(&r->places, i))->item;
}
/* Bytes of all structs. */
size_t registry_bytes(const struct registry *);

/* Each struct, the newest first: the one that is looked at may be forgotten. */
#define registry_each(r, it)                        \
	for (size_t registry_i = registry_count(r); \
	     registry_i && ((it) = registry_at((r), registry_i - 1), true); registry_i--)

#endif
