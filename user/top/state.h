/* SPDX-License-Identifier: BSD-2-Clause */
/* state.h - inside the model: what it keeps, which model.c changes and rows.c reads. */
#ifndef CT_TOP_STATE_H
#define CT_TOP_STATE_H

#include "model.h"

/* struct top_entry's how: what a device did of kernel `by`, the hash of its name */
#define TOP_DEVICE 0xff

struct top_proc {
	uint32_t pid, start, shown_pid;
	char comm[CT_COMM_LEN];
	char label[64];
	struct top_sums adding, period, total;
	int64_t memory;	  /* taken less given back since the trace began */
	bool has_memory;  /* something was told of it */
	bool told_memory; /* by device records, which know of every kind: counts say nothing more */
	uint64_t busy_until_ns;
	uint64_t round; /* of its last CT_TALLY; 0: none */
	bool ended;	/* nothing will be added */
	bool going;	/* shown for the last time */
};

struct top_entry {
	struct top_proc *proc;
	uint64_t by;
	uint16_t func;
	uint8_t sub, how;
	char *name;		 /* of a kernel, safe to print; NULL: none */
	struct ct_sums last;	 /* calls, failed, ns and bytes of the last reading */
	bool estimated;		 /* in part, at some reading */
	uint64_t counted, error; /* of the last reading: calls counted; struct top_sums */
	struct top_sums adding, period, total;
};

/* Numbers by hash: open addressing, a power of two, 0 is free. */
struct top_index {
	uint32_t *slots; /* number + 1 */
	size_t nslots;
};

struct top_state {
	struct top_proc **procs;
	size_t nprocs;
	struct top_entry *entries;
	size_t nentries, max;
	struct top_index by_proc, by_entry;
	size_t next;		 /* entry: counts come in the same order at each reading */
	struct top_proc *last;	 /* that a count was of; NULL: none */
	uint64_t round, tallies; /* refreshes; counts that this one brought */
	uint64_t last_end_ns;
	uint64_t no_room;
	struct top_sums adding;
	bool dirty; /* something was added since the last refresh's end */
};

#endif
