/* SPDX-License-Identifier: BSD-2-Clause */
/* state.h - inside the model: what it keeps, which model.c changes and rows.c reads. */
#ifndef CT_TOP_STATE_H
#define CT_TOP_STATE_H

#include "model.h"
#include "../util/table/hash_map.h"

/* struct top_entry's how: what a device did of kernel `by`, the hash of its name */
#define TOP_DEVICE 0xff

struct top_proc {
	uint32_t pid, start, shown_pid;
	char comm[CT_COMM_LEN];
	char label[64];
	char command[200]; /* its command line; "" where not known */
	char user[12], container[16];
	struct top_sums adding, period, total;
	int64_t memory;	      /* bytes allocated minus bytes freed since the trace began */
	bool has_memory;      /* something is known of it */
	bool reported_memory; /* known from device records, which have every kind: counts are ignored */
	uint64_t busy_until_ns;
	uint64_t round; /* of its last CT_CALL_COUNT; 0: none */
	bool ended;	/* nothing will be added */
	bool going;	/* shown for the last time */
};

struct top_entry {
	struct {
		struct top_proc *proc;
		uint64_t by;
		uint16_t func;
		uint8_t sub, how;
		uint32_t pad;
	} key;
	char *name;		 /* of a kernel, safe to print; NULL: none */
	struct ct_sums last;	 /* calls, failed, ns and bytes of the last reading */
	bool estimated;		 /* in part, at some reading */
	uint64_t counted, error; /* of the last reading: calls counted; struct top_sums */
	struct top_sums adding, period, total;
};

struct top_kept {
	struct {
		uint32_t pid, start;
	} key;
	struct top_proc *proc;
};

struct top_state {
	struct hash_map procs;	     /* struct top_kept */
	struct hash_map entries;     /* struct top_entry */
	size_t next;		     /* entry: counts come in the same order at each reading */
	struct top_proc *last;	     /* that a count was of; NULL: none */
	uint64_t round, call_counts; /* refreshes; counts that this one brought */
	uint64_t last_end_ns;
	uint64_t no_room;
	struct top_sums adding;
	bool dirty; /* something was added since the last refresh's end */
};

static inline struct top_proc *top_proc_at(const struct top_state *s, size_t i)
{
	return ((const struct top_kept *)hash_map_at(&s->procs, i))->proc;
}

static inline struct top_entry *top_entry_at(const struct top_state *s, size_t i)
{
	return hash_map_at(&s->entries, i);
}

#endif
