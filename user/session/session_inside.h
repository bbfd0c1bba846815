/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_inside.h - what the parts of the session share: its state, and the functions that each
 * part has for the others. Only session*.c include it.
 */
#ifndef CT_SESSION_INSIDE_H
#define CT_SESSION_INSIDE_H

#include "inject_frames.h"
#include "../util/io/loop.h"
#include "../util/whole/progress.h"
#include "../stages/pending.h"
#include "recording.h"
#include "session.h"
#include "session_plan.h"
#include "../stages/stages.h"

#define SESSION_SINKS 3
#define SESSION_FDS 16 /* per source */

/* Why a session is over. session_reason() returns the words for it that outputs and recordings
 * use. */
enum session_reason {
	SESSION_RUNS,
	SESSION_FINISHED, /* the targets of the first source have ended */
	SESSION_STOPPED,  /* the event that --stop-on waits for has happened */
	SESSION_INTERRUPTED,
	SESSION_DURATION,
	SESSION_COUNT,
	SESSION_SIZE,
	SESSION_OUTPUT_CLOSED,
	SESSION_OUTPUT_ERROR,
	SESSION_ERROR,
	SESSION_REASON_END
};

struct session {
	const struct request *o;
	/* the first delivers the calls and runs CMD; the others add to the calls */
	struct source sources[SESSION_SOURCES];
	int nsources, nopened;
	bool starting[SESSION_SOURCES]; /* while the trace begins: it may have programs to answer */
	struct session_plan plan;
	struct window *window; /* NULL: everything is shown */
	struct stages stages;
	/* used to add an agent to a running process; NULL: no agent will be added */
	struct inject_frames *frames;

	/* the sinks, and what they write to or read */
	struct out out;
	struct progress progress; /* of reading a recording */
	char reading[280];	  /* what it says */
	struct sink sinks[SESSION_SINKS];
	int nsinks;
	struct sink_opts sink_opts;
	struct sink_wants wants;
	uint64_t undelivered; /* spans that --otlp could not deliver */
	struct recording recording;
	char title[512];
	char host[256], boot[64];
	/* the clocks at the beginning of the session: the sinks count all times from here, and it
	 * is the first clock record */
	struct ct_clock began;

	/* the loop */
	struct loop *loop;
	struct loop_watch *tick, *limit, *look, *stalled;
	/* of each source's records, if no program waits for an answer there; else NULL */
	struct loop_watch *streams[SESSION_SOURCES];
	bool ignored[SESSION_SOURCES]; /* until the next tick */
	bool nested;		       /* the source was asked for nested launches */
	bool terminated;	       /* SIGTERM was passed on */
	uint64_t sigint_ns, last_record_ns;

	/* records */
	struct pending pending;
	struct losses losses; /* the losses received so far; at the end, all losses */
	/* the part of losses.counted from processes that have ended: no later reading contains
	 * it */
	uint64_t counted_ended;
	uint64_t unknown_kinds; /* records of kinds that a newer version has */
	/* how many of the losses were already reported among the rows */
	uint64_t reported[CT_LOSS_END];
	uint64_t stated[CT_HOLE_REASON_END]; /* what the ledger says of the sources' numbers */
	uint64_t holes_ns;		     /* when it was last brought up to date */
	uint64_t cpu_began_ns; /* CPU time of the programs before the sources started */
	uint64_t clock_ns;     /* when the clocks were last read */
	uint64_t last_end_ns;  /* the end of the latest record */
	uint64_t late_ns;      /* since when an output could not wait for all sources; 0: it can */
	uint64_t slice_end_ns; /* when the source that is fed must pause */
	/* the current feed must pause although there are more records */
	bool paused;
	bool full;	       /* the output takes nothing now, since its reader is slow */
	uint64_t sigint_bytes; /* written when the last SIGINT came */
	bool ending;	       /* this is the last drain: it does not pause */
	/* in the last drain: the moment from which on no more of a live source is read, and how
	 * long the output had been waited for when that was set; `late`: it has come */
	uint64_t end_ns, end_waited_ns;
	bool late;
	int signals_at_end; /* signals_pending when it began */

	/* how it ends */
	enum session_reason reason;
	int error;	/* -errno of a source or of the output */
	bool said;	/* the part that met the error has already reported it */
	bool unstarted; /* the source of the calls did not start, so there is no summary */
	int cmd_status; /* as wait(2) returns it; -1: CMD has not ended */
};

static inline struct source *session_first(struct session *s)
{
	return &s->sources[0];
}

/* ---- session.c ---- */

/* From here on nobody waits for the reader of messages either, if a thread writes them. Those that go where
 * the rows go come between rows. */
void session_say_behind(struct session *);
/* All have been written, or are where the rows wait, and the next ones are written at once. */
void session_say_directly(void);

/* ---- session_open.c: the window, the plan, stages, loop, sources and sinks ---- */

/* Returns 0, or -errno after one message. The caller closes what has been opened by then. */
int session_open(struct session *);

/* ---- session_sinks.c ---- */

/* Opens the output that the sinks write to. If a sink opens its files itself, this output stays
 * closed and nothing is ever written to it. */
int session_sinks_output(struct session *);
/* Chooses the sinks and opens them. The sources must be open already. Both functions return 0, or
 * -errno after one message. */
int session_sinks_open(struct session *);

/* ---- session_loop.c ---- */

/* Opens the loop and the handling of signals. Returns 0 or -ENOMEM. */
int session_loop_open(struct session *);
/* Sets the functions that sinks may call while the session runs. */
void session_loop_hooks(struct session *, struct sink_opts *);
/* Whether the limit of -n or --max-size is reached, and which one. */
enum session_reason session_enough(const struct session *);
/* Starts the sources and waits until the session is over. Then `reason` is set and 0 is returned,
 * or -errno is returned. */
int session_loop_run(struct session *);

/* ---- session_feed.c: the sources' records into the stages ---- */

/* Feeds what all sources have ready. If a pause is due before that, it sets `paused`: there may be
 * more records. Returns 1 if there will be no more calls, else 0, or -errno. */
int session_feed_all(struct session *);
/* All records of what ended before this moment have passed the stages: those of calls, or of all sources.
 * At most now_ns. */
uint64_t session_feed_calls_complete(struct session *, uint64_t now_ns);
uint64_t session_feed_complete(struct session *, uint64_t now_ns);
/* Lets go of what waits in the stages for calls, up to that moment. Returns 0 or -errno. */
int session_feed_flush(struct session *, uint64_t now_ns);
/* The same for what outputs decide before the end: no more than a second before now_ns. If that does not
 * suffice, a row says so. */
uint64_t session_feed_settled(struct session *, uint64_t now_ns);
/* Feeds what the source of the calls still has after it was told to stop, a live one for so long at most,
 * without the time in which the output takes nothing. Returns 0 or -errno. */
int session_feed_last(struct session *, uint64_t ns);
/* Feeds what a source that adds to the calls still delivers after it was told to stop, for so long of its own.
 * Returns 0 or -errno. */
int session_feed_rest(struct session *, struct source *, uint64_t ns);
/* Feeds what the sources that add to the calls deliver of work that was asked for before the end, at most
 * until a moment (CLOCK_MONOTONIC). Returns 0 or -errno. */
int session_feed_work(struct session *, uint64_t until_ns);
#define SESSION_UNREAD_NS 100000000ULL /* how long what is not read is counted */
/* Counts what a source still has, for that long, and feeds a row that says so. Returns 0 or -errno. */
int session_feed_unread(struct session *, struct source *);
/* Feeds the calls that have not returned yet and were not shown before. Returns 0 or -errno. */
int session_feed_pending(struct session *);
/* Feeds the counters of all calls so far. Returns 0 or -errno. */
int session_feed_call_counts(struct session *);
/* Called as time passes: feeds a clock record when one is due, and lets the sinks do what they do
 * at fixed intervals. A stored trace has its own clock records. */
int session_feed_time(struct session *, uint64_t now_ns);
/* Feeds a record of lost records at the place where they were lost. Returns 0 or -errno. */
int session_feed_lost(struct session *, enum ct_loss, uint64_t count, uint64_t until_ns);
/* Makes the ledger say what the sources' numbers say. Returns 0 or -errno. */
int session_feed_holes(struct session *, const struct losses *, uint64_t now_ns);
/* Fills in what the sources have lost so far, and the number of rows shown. */
void session_feed_losses(struct session *, struct losses *);

/* ---- session_cost.c ---- */

/* Before the sources start. */
void session_cost_begin(struct session *);
/* Recommends hooks if the probes took much of the programs' CPU time. `losses` must be those of
 * the end. */
void session_cost_say(const struct session *);

/* ---- session_end.c ---- */

const char *session_reason(enum session_reason);

/* Feeds the last records, ends the sinks, and prints the line of totals. Sets `error` and
 * `losses`. */
void session_end(struct session *);

#endif
