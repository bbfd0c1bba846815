/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve.h - makes records of what only the live machine knows: kernels' names, symbolised stacks.
 *
 * It stands between the source and all else. Raw records (CT_MORE, CT_ABSENT, CT_USER_STACK,
 * CT_PY_STACK, CT_PY_CODE) end here; before the first call that needs them go CT_NAME, CT_FRAME
 * and CT_STACK. A stored trace has these records, so that replay never looks at /proc. The only
 * room besides source/ that opens /proc, and the only one that uses libdw.
 */
#ifndef CT_RESOLVE_H
#define CT_RESOLVE_H

#include "../event/event.h"

struct resolve_opts {
	bool names;
	bool stacks;
	bool info; /* what each process is: CT_PROCESS_INFO */
	/* the source is live: what calls' reads did not find in memory is read from files */
	bool absent;
	/* the source can capture inner launches on demand: resolve_wants_inner() is asked */
	bool inner;
	/* How many CT_S_FORGETS calls the source has seen begin, ever; NULL: names are not read
	 * from memory. */
	uint64_t (*forgets)(void *ctx);
	/* The name of a file that was mapped lately, by its inode's number; NULL: none is known. */
	bool (*recent)(void *ctx, uint64_t ino, char *name, size_t size);
	void *forgets_ctx; /* of both */
};

struct resolve;

/* `out` gets every record that a later stage may see. NULL: no memory. procs is asked for
 * numbers and start times. */
struct resolve *resolve_open(const struct resolve_opts *, struct process_table *procs, emit_fn out,
			     void *ctx);
void resolve_close(struct resolve *);
/* One record, after process_table_record() has had it. Returns 0 or -errno (out's too). */
int resolve_record(struct resolve *, const struct ct_hdr *);
/* True while the driver's launches inside runtime launches are needed to name a host stub. */
bool resolve_wants_inner(struct resolve *);
/* What could not be resolved, one sentence each at most once, goes to stderr as it happens; this
 * says the sums. */
struct resolve_totals {
	/* launches that were passed on, and those whose kernel had a name */
	uint64_t launches, named;
	/* arguments that were not in memory at their call, and those of them that a file told */
	uint64_t absent, filled;
	/* stacks resolved; of these, how many end before the thread's first frame */
	uint64_t stacks, broken;
};
void resolve_totals(const struct resolve *, struct resolve_totals *);

#endif
