/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_inside.h - what the parts of the session share: its state, and what each part does for
 * the others. For session*.c alone.
 */
#ifndef CT_SESSION_INSIDE_H
#define CT_SESSION_INSIDE_H

#include "inject_frames.h"
#include "../util/io/loop.h"
#include "../stages/pending.h"
#include "recording.h"
#include "session.h"
#include "session_plan.h"
#include "../stages/stages.h"

#define SESSION_SINKS 3
#define SESSION_FDS 16 /* of one source */

/* Why a session is over; session_reason() has the words that outputs and recordings say. */
enum session_reason {
	SESSION_RUNS,
	SESSION_FINISHED, /* the targets of the first source have ended */
	SESSION_STOPPED,  /* what --stop-on waits for has come */
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
	const struct opts *o;
	/* the first has the calls, and CMD; the others add to them */
	struct source sources[SESSION_SOURCES];
	int nsources, nopened;
	struct session_plan plan;
	struct window *window; /* NULL: all is shown */
	struct stages stages;
	/* for an agent that comes into a process that runs; NULL: none is to */
	struct inject_frames *frames;

	/* sinks, and what they write to or read */
	struct out out;
	struct sink sinks[SESSION_SINKS];
	int nsinks;
	struct sink_opts sink_opts;
	struct sink_live live; /* top's */
	struct sink_wants wants;
	uint64_t undelivered; /* spans that --otlp could not hand over */
	struct recording recording;
	char title[512];
	char host[256], boot[64];
	/* the clocks at the begin: zero of all times of the sinks, and the first record of the
	 * clocks */
	struct ct_clock began;

	/* the loop */
	struct loop *loop;
	struct loop_watch *stream, *tick, *limit, *look;
	bool stream_paused;
	bool inner;	 /* the source was asked for inner launches */
	bool terminated; /* SIGTERM was passed on */
	uint64_t sigint_ns, last_record_ns;

	/* records */
	struct pending pending;
	struct losses losses; /* received; at the end all of it */
	/* of losses.counted, what ended processes left: no later reading has it */
	uint64_t counted_ended;
	/* of counted calls, beside losses.counted; likewise */
	struct ct_estimated muted_now, muted_ended;
	uint64_t told[CT_LOSS_END]; /* of the losses, how many have their place in the rows */
	uint64_t clock_ns;	    /* when the clocks were last read */
	uint64_t last_end_ns;	    /* of the latest record */
	uint64_t slice_end_ns;	    /* when a feed is to be left */
	bool paused;		    /* a feed is to be left, though there is more */
	bool ending;		    /* the last drain: no more pauses */

	/* how it ends */
	enum session_reason reason;
	int error;	/* -errno of source or output */
	bool said;	/* the error was told by whoever met it */
	bool unstarted; /* the source of the calls did not start: there is nothing to sum up */
	int cmd_status; /* of wait(2); -1: CMD has not ended */
};

static inline struct source *session_first(struct session *s)
{
	return &s->sources[0];
}

/* ---- session_open.c: the window, the plan, stages, loop, sources and sinks ---- */

/* Returns 0, or -errno after one message; what has been opened by then is closed by the caller. */
int session_open(struct session *);

/* ---- session_sinks.c ---- */

/* Opens what the sinks write to. One that opens its file by itself leaves it shut: nothing is
 * ever put into it then. */
int session_sinks_output(struct session *);
/* Chooses the sinks and opens them; the sources are open. Both return 0, or -errno after one
 * message. */
int session_sinks_open(struct session *);

/* ---- session_loop.c ---- */

/* The loop and what it says of signals. Returns 0 or -ENOMEM. */
int session_loop_open(struct session *);
/* What sinks may ask for while the session runs. */
void session_loop_hooks(struct session *, struct sink_opts *);
/* Enough is there, by -n or --max-size. */
enum session_reason session_enough(const struct session *);
/* Starts the sources, and waits until it is over: then `reason` is set, or -errno is returned. */
int session_loop_run(struct session *);

/* ---- session_feed.c: the sources' records into the stages ---- */

/* What all sources have, until a pause is due: then `paused` is set, and there may be more. 1:
 * there will be no more calls; 0, or -errno. */
int session_feed_all(struct session *);
/* What a source that adds to the calls still hands in once it has been told to stop. Returns 0
 * or -errno. */
int session_feed_rest(struct session *, struct source *);
/* The calls that have not returned yet and were not shown before. Returns 0 or -errno. */
int session_feed_pending(struct session *);
/* The counts of all calls so far. Returns 0 or -errno. */
int session_feed_tallies(struct session *);
/* Time goes on: the clocks are told of, and sinks do what they do by time. A stored trace has
 * the clocks of its own. */
int session_feed_time(struct session *, uint64_t now_ns);
/* A gap, where it happened. Returns 0 or -errno. */
int session_feed_lost(struct session *, enum ct_loss, uint64_t count, uint64_t until_ns);
/* What the sources have lost so far, and the rows shown. */
void session_feed_losses(struct session *, struct losses *);

/* ---- session_end.c ---- */

const char *session_reason(enum session_reason);

/* The last records, the sinks' ends, the line of totals; sets `error` and `losses`. */
void session_end(struct session *);

#endif
