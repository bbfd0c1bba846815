/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join.h - gives device work the call that caused it, and calls their numbers.
 *
 * Device work carries CUPTI's correlation id. A CT_CAUSE says at which time which thread was inside
 * the call with that id; the call's own record, whoever made it, is the one of that thread which
 * was under way then. Of calls inside calls the outermost counts. Work whose cause or call has not
 * come yet is held, at most JOIN_HOLD_NS, then goes on without.
 *
 * The call goes into a copy of the work's record (h.tid, call_ns, func, stack), so that a stored
 * trace needs no causes: work that comes with a call_ns is looked up by it and never held.
 *
 * Of a process whose agent was gone before its end (CT_TAIL) the calls are counted whose device
 * record has not come: a CT_LOST with CT_LOSS_TAIL says how many, as soon as all that was on the
 * way is there.
 *
 * Calls are numbered in the order in which their records come: those that are shown, of a stored
 * trace those that were when it was recorded.
 */
#ifndef CT_JOIN_H
#define CT_JOIN_H

#include "../event.h"

#define JOIN_HOLD_NS 1000000000ULL
/* Work whose cause is known waits no longer for its call than until this long after the cause's
 * end. */
#define JOIN_CALL_NS 250000000ULL

struct join_opts {
	bool no_calls; /* no records of calls come: the cause is what CT_CAUSE tells */
	/* every call that changes a thread's device or context comes (api_placing): only then do
	 * they tell it */
	bool places;
	/* with places: of a process that becomes another program (CT_EXEC) every call from then
	 * on comes */
	bool whole;
	/* all records come from a file: nothing is waited for, and calls that are not hidden
	 * were numbered */
	bool stored;
	/* Is this call to be shown, and so to be numbered? NULL: all are. */
	bool (*shown)(void *ctx, const struct ct_hdr *call);
	void *ctx;
};

/* Kernels, copies, sets and graphs that were handed on. */
struct join_counts {
	uint64_t matched, unmatched; /* with a cause, without */
	uint64_t inferred;	     /* of the matched: by process, stream and time alone */
	/* calls whose device record had not come by the end of their process: told by CT_LOST
	 * records */
	uint64_t tail;
	/* processes whose calls have device records, but of which nothing came that an agent
	 * tells */
	uint64_t unheard;
	uint32_t one_unheard; /* one of them */
};

struct join;
/* next: gets rec, cause, number, device, context and stream. NULL: no memory. */
struct join *join_open(const struct join_opts *, event_fn next, void *ctx);
/* what is still held is dropped: flush first */
void join_close(struct join *);
void join_no_calls(struct join *); /* these set the options of their names */
void join_places(struct join *);
void join_whole(struct join *);
void join_stored(struct join *);
/* Calls that began at or after this moment (CLOCK_MONOTONIC, ns) have no records: work that was
 * caused later is not given to a call before it whose end is not known. */
void join_stopped(struct join *, uint64_t stopped_ns);

/* Hands on what is held of a process when this record says that it has become another one:
 * before anybody else hears so. */
int join_process(struct join *, const struct ct_hdr *);
/* Takes one checked record. Returns 0 or next()'s error. */
int join_record(struct join *, const struct ct_hdr *);
/* Looks again for what is held. now_ns (CLOCK_MONOTONIC): calls that ended before it have come.
 * UINT64_MAX: nothing more comes at all, and everything is handed on. */
int join_flush(struct join *, uint64_t now_ns);

void join_counts(const struct join *, struct join_counts *);
/* Bytes that are remembered and held, for tests. */
size_t join_bytes(const struct join *);

#endif
