/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stages.h - the stages that a record passes through: processes -> resolve -> scopes -> join -> nest ->
 * the links of stages.c: learn, window, filter, sums, describe, sinks. docs/internals/way.md walks it.
 */
#ifndef CT_STAGES_H
#define CT_STAGES_H

#include "../event/holes/holes.h"
#include "../event/muted.h"
#include "../event/select.h"
#include "../event/join/join.h"
#include "../event/scopes/scopes.h"
#include "../event/world/world.h"
#include "nest.h"
#include "../resolve/resolve.h"
#include "../flow/sink.h"
#include "unwritten.h"
#include "window.h"

struct stages {
	struct world *world;
	struct resolve *resolve;
	struct nest *nest; /* NULL: rows in the order of completion */
	struct join *join;
	struct scopes *scopes;
	const struct filter *filter;
	struct window *window; /* NULL: everything is shown; owned by the session */
	/* calls are shown only when they return, although there are records of their entries */
	bool no_entries;
	bool no_stacks; /* calls are shown without their stacks, even if they have them */
	/* the copy of a call that is outside the window, marked as hidden */
	uint64_t hidden[(sizeof(struct ct_call) + CT_DATA_MAX + 8) / 8];
	struct sink *sinks;
	int nsinks;
	uint64_t shown;	     /* rows shown */
	uint64_t work;	     /* how many of these are device work */
	uint64_t nscopes;    /* how many are scopes */
	uint64_t unfinished; /* how many are calls that did not return */
	/* scopes that passed the filter and made no row, since the output does not show them; the same of
	 * calls and device work */
	uint64_t scopes_left_out, calls_left_out, work_left_out;
	uint64_t inner_left_out; /* calls that the filter leaves out only because other calls made them */
	/* calls that have no rows of their own and passed the filter */
	struct muted_sum muted;
	/* what the latest reading of counts (CT_CALL_COUNT) has of what passes the filter, and the
	 * part of ended processes, which no later reading contains */
	struct stages_counted {
		uint64_t calls, untimed; /* untimed: their duration is not known */
		struct ct_estimated unseen;
	} counted, counted_ended;
	struct holes *holes; /* of what passed the filter */
	struct unwritten unwritten;
	uint64_t most; /* rows to show at most; 0: no limit */
};

/* The caller keeps the ownership of filter and sinks. Returns 0 or -ENOMEM; stages_close() is safe
 * in both cases. */
int stages_open(struct stages *, const struct resolve_opts *, bool nest, const struct filter *,
		struct sink *sinks, uint64_t most);
void stages_close(struct stages *);

/* Takes a record from the source. Returns 0 or -errno; -ECANCELED: `most` rows were shown. */
int stages_record(struct stages *, const struct ct_hdr *);
/* A reading of the counts begins. */
void stages_count_anew(struct stages *);
/* Takes a record that the session made, for the last stage only. */
int stages_show(struct stages *, const struct ct_hdr *);
/* States what could not be written, if more of it could not since this was stated. Returns 0 or -errno. */
int stages_state_unwritten(struct stages *);
/* The source has stopped: ends the scopes that are still open, as unfinished. */
int stages_end_scopes(struct stages *, uint64_t now_ns);
/* All records have come: states what of device work is missing. Returns 0 or -errno. */
int stages_end_work(struct stages *);
/* Shows what has been held long enough at now_ns (CLOCK_MONOTONIC; UINT64_MAX: everything). All
 * records of what ended before now_ns must have been taken. */
int stages_flush(struct stages *, uint64_t now_ns);

#endif
