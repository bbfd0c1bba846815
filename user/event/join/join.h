/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join.h - gives device work the call that caused it, and calls their numbers.
 *
 * Device work carries CUPTI's correlation id. A CT_CAUSE record says which thread was inside the
 * call with that id, and when. The call's own record is the record of that thread's call that was
 * under way at that time, whichever source made the record. Of nested calls, the outermost counts. If
 * CUPTI saw a call that has no record, it is a call inside that one whose function makes such work. Work
 * whose cause or call has not come yet is held for at most JOIN_HOLD_NS and is then handed on
 * without it.
 *
 * join writes the call into a copy of the work's record (h.tid, call_ns, func, stack), so that a
 * stored trace needs no causes. For work that comes with a call_ns, the call is found by call_ns,
 * and the work is never held.
 *
 * If a process's agent was gone before the process ended (CT_TAIL), join counts the calls whose
 * device record has not come. A CT_LOST record with CT_LOSS_TAIL reports the number, as soon as all
 * records that were on the way have arrived.
 *
 * Calls that are shown are numbered in the order in which their records come. In a stored trace
 * these are the calls that were shown when it was recorded.
 */
#ifndef CT_JOIN_H
#define CT_JOIN_H

#include "../event.h"

#define JOIN_HOLD_NS 1000000000ULL
/* Work whose cause is known waits for its call until this long after the end of the cause. */
#define JOIN_CALL_NS 250000000ULL

struct join_opts {
	bool no_calls; /* no records of calls come: the cause is known from CT_CAUSE only */
	/* every call that changes a thread's device or context comes (api_placing): only then
	 * are calls used to find the device */
	bool places;
	/* with places: after a process becomes another program (CT_EXEC), every call of it comes */
	bool whole;
	/* calls come with the scopes around them: work whose scope is not found is in an unknown
	 * one. Also true from the first such call on */
	bool scoped;
	/* all records come from a file: join waits for nothing, and the calls that are not
	 * hidden already have their numbers */
	bool stored;
	/* each kernel comes with a record: at the end join states how many launches have none */
	bool kernels;
	/* Returns true if this call is to be shown, and so to be numbered. NULL: all calls are. */
	bool (*shown)(void *ctx, const struct ct_hdr *call);
	void *ctx;
};

/* Numbers of kernels, copies, sets and graphs that were handed on. */
struct join_counts {
	uint64_t matched, unmatched; /* with a cause, without */
	/* those of the matched that were matched only by process, stream and time */
	uint64_t inferred;
	/* with scopes: those whose scope is not known, because their call or its scope is not */
	uint64_t unscoped;
	/* calls whose device record had not come by the end of their process, from CT_LOST
	 * records */
	uint64_t tail;
	/* processes whose calls should have device records, but from which no record of an agent
	 * came */
	uint64_t unheard;
	uint32_t one_unheard; /* one of them */
};

struct join;
/* next: its event has rec, cause, number, device, context and stream set. Returns NULL if there
 * is no memory. */
struct join *join_open(const struct join_opts *, event_fn next, void *ctx);
/* drops what is still held: call join_flush() first */
void join_close(struct join *);
void join_no_calls(struct join *); /* these set the option of the same name */
void join_places(struct join *);
void join_whole(struct join *);
void join_scoped(struct join *);
void join_stored(struct join *);
void join_kernels(struct join *);
/* The window: calls that began before the first moment (CLOCK_MONOTONIC, ns), or at or after the
 * second one, have no records. Work that such a call caused is not handed on, and counts nowhere.
 * captured: the rows whose calls have records, PLAN_WORDS words; NULL: not known. */
void join_began(struct join *, uint64_t began_ns, const uint64_t *captured);
void join_stopped(struct join *, uint64_t stopped_ns);
/* After join_stopped(): how many calls of the last second before it should have a device record that
 * may still come. */
uint64_t join_awaited(const struct join *);

/* If this record says that the process has become another one, hands on what is held of the
 * process. Call it before any other stage gets the record. */
int join_process(struct join *, const struct ct_hdr *);
/* Takes one checked record. Returns 0 or next()'s error. */
int join_record(struct join *, const struct ct_hdr *);
/* Looks again for the causes of held work. now_ns (CLOCK_MONOTONIC): all calls that ended before
 * it have come. UINT64_MAX: no more records come, and everything is handed on. */
int join_flush(struct join *, uint64_t now_ns);

/* All records have come: states which processes no agent reported, and how many launches of the others have no
 * device record. Returns 0 or next()'s error. */
int join_end(struct join *);
void join_counts(const struct join *, struct join_counts *);
/* Bytes of memory in use for what is remembered and held, for tests. */
size_t join_bytes(const struct join *);

#endif
