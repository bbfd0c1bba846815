/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve.h - makes records of what can be found out only on the live machine: kernels' names and
 * symbolised stacks.
 *
 * It comes directly after the source. It consumes the raw records (CT_MORE, CT_ABSENT,
 * CT_USER_STACK, CT_PY_STACK, CT_PY_CODE), and emits CT_NAME, CT_FRAME and CT_STACK before the
 * first call that needs them. A stored trace has these records, so replay never reads /proc. This
 * is the only room besides source/ that opens /proc, and the only one that uses libdw.
 */
#ifndef CT_RESOLVE_H
#define CT_RESOLVE_H

#include "../event/scopes/collectives.h"

struct objects;

struct resolve_opts {
	bool names;
	bool stacks;
	struct objects *objects; /* files that the caller has open for stacks; NULL: none */
	bool info;		 /* what each process is: CT_PROCESS_INFO */
	/* processes that the user did not choose are traced too: each user's files may delay the
	 * main loop only for a share of its time */
	bool impatient;
	/* the source is live: what the reads of calls did not find in memory is read from files */
	bool absent;
	/* the source can capture nested launches on demand: the caller asks
	 * resolve_wants_inner() */
	bool nested;
	/* Returns how many CT_S_FORGETS calls the source has seen begin so far. NULL: names are not
	 * read from memory. */
	uint64_t (*forgets)(void *ctx);
	/* Finds the name of a file that was mapped recently, by its inode number. NULL: no such
	 * names are known. */
	bool (*recent)(void *ctx, uint64_t ino, char *name, size_t size);
	void *forgets_ctx; /* passed to both functions */
};

struct resolve;

/* `out` gets every record that a later stage may see. procs is used to look up numbers and start
 * times. NULL: no memory. */
struct resolve *resolve_open(const struct resolve_opts *, struct process_table *procs, emit_fn out,
			     void *ctx);
void resolve_close(struct resolve *);
/* Takes one record, after process_table_record() has taken it. Returns 0 or -errno, which may come
 * from out. */
int resolve_record(struct resolve *, const struct ct_hdr *);
/* To be called now and then, also while no record comes: lets go of processes that have ended. */
void resolve_idle(struct resolve *, uint64_t now_ns);
/* Reads a communicator of NCCL out of its process, as communicator_fn (event/scopes/collectives.h). Only
 * if the source is live (`absent`). Waits a fraction of a second at most, and once for each file, for
 * the debug information of the library. */
bool resolve_communicator(struct resolve *, uint32_t pid, uint64_t handle,
			  struct communicator_is *);
/* True while the driver's launches inside runtime launches are needed to name a host stub. */
bool resolve_wants_nested(struct resolve *);
/* What could not be resolved is reported on stderr when it happens, each kind at most once. These
 * are the totals. */
struct resolve_totals {
	/* launches that were passed on, and those whose kernel had a name */
	uint64_t launches, named;
	/* arguments that were not in memory at their call, and how many of them were read from a
	 * file; of calls that have no row, such as registrations of kernels, those that were not read */
	uint64_t absent, filled, unshown;
	/* stacks resolved; of these, how many end before the thread's first frame */
	uint64_t stacks, broken;
};
void resolve_totals(const struct resolve *, struct resolve_totals *);

#endif
