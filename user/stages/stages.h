/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stages.h - what a record passes through: process table -> resolve -> join -> nest -> names and
 * stacks -> window -> filter -> sinks.
 */
#ifndef CT_STAGES_H
#define CT_STAGES_H

#include "../event/muted.h"
#include "../event/join/join.h"
#include "nest.h"
#include "../resolve/resolve.h"
#include "../format/sink.h"
#include "window.h"

struct stages {
	struct process_table *procs;
	struct thread_table *threads;
	struct resolve *resolve;
	struct nest *nest; /* NULL: rows in the order of completion */
	struct join *join;
	struct name_table *names;
	struct stack_table *stacks;
	struct metric_table *metrics;
	struct kernel_counters_table *counters;
	struct gpu_table *gpus;
	const struct filter *filter;
	struct window *window; /* NULL: all of it; the session's */
	/* calls are shown when they return alone, though there are records of their entries */
	bool no_entries;
	bool no_stacks; /* calls are shown without theirs, though they have them */
	/* a call that a window leaves out */
	uint64_t hidden[(sizeof(struct ct_call) + CT_DATA_MAX + 8) / 8];
	struct sink *sinks;
	int nsinks;
	uint64_t shown;		      /* rows */
	uint64_t work;		      /* of them, what devices did */
	struct muted_sum muted;	      /* calls without rows of their own that passed the filter */
	struct unprobed_sum unprobed; /* processes that passed the filter */
	uint64_t most;		      /* rows to show at most; 0: no limit */
};

/* filter and sinks stay the caller's. Returns 0 or -ENOMEM; stages_close() is safe then. */
int stages_open(struct stages *, const struct resolve_opts *, bool nest, const struct filter *,
		struct sink *sinks, uint64_t most);
void stages_close(struct stages *);

/* A record from the source. Returns 0 or -errno; -ECANCELED: `most` rows were shown. */
int stages_record(struct stages *, const struct ct_hdr *);
/* A record for the last stage alone: one that the session made. */
int stages_show(struct stages *, const struct ct_hdr *);
/* Shows what has been held back long enough; UINT64_MAX: all. now_ns (CLOCK_MONOTONIC): what
 * ended before has come. */
int stages_flush(struct stages *, uint64_t now_ns);

#endif
