/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_loop.c - inside the session: the loop waits on the sources' descriptors, on signals and
 * on timers, and decides when and why the session is over. The ring buffer wakes the loop only for
 * a batch of records, so a timer drains smaller amounts: every 20 ms while records arrive, every
 * 100 ms while none do. This file knows nothing of records (session_feed.c does) and prints
 * nothing.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "../util/io/loop.h"
#include "../util/self/urgent.h"
#include "session_inside.h"
#include "signals.h"
#include "../util/now.h"

#define TICK_NS 20000000ULL
#define IDLE_TICK_NS 100000000ULL
#define IDLE_AFTER_NS 1000000000ULL
/* if one drain takes fewer records than this, the stream's descriptor is ignored until the next
 * tick */
#define FEW_RECORDS 512
#define TWICE_NS 1000000000ULL	 /* a second SIGINT within this time detaches */
#define GRACE_NS 1000000000ULL	 /* how long CMD has to end after SIGTERM */
#define STALLED_NS 1000000000ULL /* how long a reader may read nothing after a SIGINT */

static void finish(struct session *s, enum session_reason reason, int error)
{
	if (s->reason)
		return;
	s->reason = reason;
	s->error = error;
	loop_stop(s->loop);
}

enum session_reason session_enough(const struct session *s)
{
	return s->o->store.max_bytes && !s->o->count ? SESSION_SIZE : SESSION_COUNT;
}

/* Decides what an error of the stages or of a source means for the session. */
static void end_by(struct session *s, int err)
{
	if (err == -ECANCELED)
		finish(s, session_enough(s), 0);
	else if (out_error(&s->out) == -EPIPE)
		/* the reader has seen enough, as head(1) does: this is no error */
		finish(s, SESSION_OUTPUT_CLOSED, 0);
	else if (out_error(&s->out))
		finish(s, SESSION_OUTPUT_ERROR, out_error(&s->out));
	else
		finish(s, SESSION_ERROR, err);
}

/* Some kernels can be named only by the driver's launch that is nested in the runtime's launch.
 * Nested launches are captured as long as such a kernel has no name. */
static void want_nested(struct session *s)
{
	bool want = resolve_wants_nested(s->stages.resolve);

	if (want == s->nested)
		return;
	s->nested = want;
	session_first(s)->ops->nested(session_first(s), want);
}

/* The descriptor of a source's records is ignored until the next tick. */
static void ignore(struct session *s, int source)
{
	if (!s->streams[source] || s->ignored[source])
		return;
	loop_pause(s->streams[source]);
	s->ignored[source] = true;
}

static void drain(struct session *s)
{
	uint64_t before = s->losses.received, now = clock_ns(CLOCK_MONOTONIC);
	bool over;
	int err;

	if (s->reason)
		return; /* the session is over: after -n, no further row may be shown */
	err = session_feed_all(s);
	if (s->losses.received != before)
		s->last_record_ns = now;
	if (err >= 0 && !s->full) {
		int e = session_feed_time(s, now);

		err = e ? e : err;
	}
	if (err >= 0) {
		int e = session_feed_flush(s, now);

		err = e ? e : err;
	}
	want_nested(s);
	over = s->window && window_over(s->window);
	if (err < 0) {
		end_by(s, err);
		return;
	}
	if (out_sync(&s->out)) {
		end_by(s, out_error(&s->out));
		return;
	}
	if (err == 1) {
		if (s->o->cmd && session_first(s)->ops->status)
			s->cmd_status = session_first(s)->ops->status(session_first(s));
		finish(s, over ? SESSION_STOPPED : SESSION_FINISHED, 0);
		return;
	}
	if (over) {
		finish(s, SESSION_STOPPED, 0);
		return;
	}
	for (int i = 0; i < s->nsources && s->full; i++)
		ignore(s, i);
	if (s->paused && !s->full)
		loop_timer_set(s->tick, 0);
	else
		loop_timer_set(s->tick,
			       now - s->last_record_ns < IDLE_AFTER_NS ? TICK_NS : IDLE_TICK_NS);
}

/* ---- what the loop waits on ---- */

/* For --unfinished: shows the calls that have not returned for the given time. */
static void on_look(void *ctx)
{
	struct session *s = ctx;
	int err;

	if (s->reason)
		return;
	err = out_full(&s->out) ? 0 : session_feed_pending(s);
	if (!err)
		err = out_sync(&s->out);
	if (err)
		end_by(s, err);
	else
		loop_timer_set(s->look, s->o->unfinished_ns / 4 < TICK_NS
						? TICK_NS
						: s->o->unfinished_ns / 4);
}

static void on_tick(void *ctx)
{
	struct session *s = ctx;

	bool ignored[SESSION_SOURCES];

	memcpy(ignored, s->ignored, sizeof(ignored));
	memset(s->ignored, 0, sizeof(s->ignored));
	drain(s);
	for (int i = 0; i < s->nsources && !s->reason; i++)
		if (ignored[i] && !s->ignored[i])
			loop_resume(s->streams[i]);
}

/*
 * The stream's descriptor stays readable while there is anything in the ring buffer: a target that
 * makes a call every few microseconds would wake the tracer for each call. So after a drain that
 * took few records, the descriptor is ignored until the next tick.
 */
static void on_stream(void *ctx)
{
	struct session *s = ctx;
	uint64_t before = s->losses.received;

	drain(s);
	if (s->losses.received - before < FEW_RECORDS && !s->reason)
		ignore(s, 0);
}

static void on_other(void *ctx)
{
	drain(ctx);
}

/* The reader of the output has read. */
static void on_room(void *ctx)
{
	struct session *s = ctx;

	out_room_seen(&s->out);
	drain(s);
}

static void on_limit(void *ctx)
{
	finish(ctx, SESSION_DURATION, 0);
}

/* ---- signals ---- */

/* Some time after a SIGINT that was CMD's: nobody waits any more for a reader that does not read. */
static void on_stalled(void *ctx)
{
	struct session *s = ctx;

	if (s->reason || !out_full(&s->out))
		return;
	if (out_written(&s->out) == s->sigint_bytes) {
		out_give_up(&s->out, -ETIMEDOUT);
		end_by(s, -ETIMEDOUT);
		return;
	}
	s->sigint_bytes = out_written(&s->out);
	loop_timer_set(s->stalled, STALLED_NS);
}

static void on_sigint(struct session *s, const struct signals_got *got)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool twice = s->sigint_ns && now - s->sigint_ns < TWICE_NS;

	if (!s->o->cmd || twice) {
		finish(s, SESSION_INTERRUPTED, 0);
		return;
	}
	s->sigint_ns = now;
	s->sigint_bytes = out_written(&s->out);
	loop_timer_set(s->stalled, STALLED_NS);
	/* a SIGINT typed at the terminal has already reached CMD, which is in the same process
	 * group */
	if (!got->from_kernel && session_first(s)->ops->signal)
		session_first(s)->ops->signal(session_first(s), SIGINT);
}

static void on_grace(void *ctx)
{
	finish(ctx, SESSION_INTERRUPTED, 0);
}

/* Handles SIGTERM and SIGHUP. They are meant for all of `cudatrace -- CMD`: the program gets the
 * signal and has one second to clean up. After that, or at a second signal, the trace ends even if
 * the program still runs. */
static void on_sigterm(struct session *s, const struct signals_got *got)
{
	struct loop_watch *grace = NULL;

	if (s->plan.capture.cmd && session_first(s)->ops->signal && !s->terminated)
		grace = loop_timer(s->loop, on_grace, s);
	s->terminated = true;
	if (!grace) {
		finish(s, SESSION_INTERRUPTED, 0);
		return;
	}
	session_first(s)->ops->signal(session_first(s), got->sig);
	loop_timer_set(grace, GRACE_NS);
}

/* Handles SIGUSR1 and SIGUSR2: they begin and end the window, or tell the flight recorder to
 * write. */
static void on_sigusr(struct session *s, int sig)
{
	int err = 0;

	drain(s); /* takes what happened before the signal */
	if (s->window)
		window_signal(s->window, sig == SIGUSR1, clock_ns(CLOCK_MONOTONIC));
	for (int i = 0; i < s->nsinks && sig == SIGUSR2 && !err; i++)
		err = s->sinks[i].ops->dump ? s->sinks[i].ops->dump(&s->sinks[i]) : 0;
	if (err && !s->reason)
		end_by(s, err);
	if (s->window && window_over(s->window))
		finish(s, SESSION_STOPPED, 0);
}

static void on_signals(void *ctx)
{
	struct signals_got got;
	struct session *s = ctx;
	bool ended = false; /* a child */

	while (signals_next(&got)) {
		if (got.sig == SIGCHLD)
			ended = true;
		else if (got.sig == SIGUSR1 || got.sig == SIGUSR2)
			on_sigusr(s, got.sig);
		else if (got.sig == SIGINT)
			on_sigint(s, &got);
		else if (got.sig == SIGHUP && s->o->format->flags & SINKS_DAEMON)
			/* SIGHUP has no configuration to read again: files are found when they are
			 * mapped */
			continue;
		else
			on_sigterm(s, &got);
	}
	/* once for all of them: there may be hundreds, and each drain takes its time */
	if (ended)
		drain(s);
	if (s->reason == SESSION_INTERRUPTED)
		/* tells the output not to wait for a stalled reader any more */
		signals_pending = 1;
}

/* ---- what sinks may ask for ---- */

static int on_refresh(void *ctx)
{
	struct session *s = ctx;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	/* what is shown has all that had happened when it was asked for, unless there is too much */
	do
		drain(s);
	while (!s->reason && s->paused && !signals_pending && session_feed_complete(s, now) < now &&
	       session_feed_settled(s, clock_ns(CLOCK_MONOTONIC)) < now);
	if (s->reason || !s->plan.capture.count || !session_first(s)->ops->call_counts)
		return 0;
	return session_feed_call_counts(s);
}

static void on_losses(void *ctx, struct losses *l)
{
	session_feed_losses(ctx, l);
}

static uint64_t on_settled(void *ctx)
{
	struct session *s = ctx;

	if (session_first(s)->ops->settled)
		return session_first(s)->ops->settled(session_first(s), &signals_pending);
	return session_feed_settled(s, clock_ns(CLOCK_MONOTONIC));
}

static void on_quit(void *ctx)
{
	finish(ctx, SESSION_INTERRUPTED, 0);
}

static void on_count_by(void *ctx, uint8_t by)
{
	struct session *s = ctx;

	if (s->plan.capture.count_by == CT_BY_ASKED && session_first(s)->ops->count_by)
		session_first(s)->ops->count_by(session_first(s), by);
}

void session_loop_hooks(struct session *s, struct sink_opts *opts)
{
	opts->base = loop_base(s->loop);
	opts->refresh = on_refresh;
	opts->losses = on_losses;
	opts->settled = on_settled;
	opts->quit = on_quit;
	opts->count_by = on_count_by;
	opts->refresh_ctx = s;
}

/* ---- beginning ---- */

int session_loop_open(struct session *s)
{
	int fd;

	errno = ENOMEM;
	s->loop = loop_open();
	if (!s->loop)
		return -errno;
	fd = signals_open();
	if (fd < 0)
		return fd;
	if (!loop_fd(s->loop, fd, on_signals, s))
		return -ENOMEM;
	if (s->window && window_wants_signals(s->window))
		signals_add(SIGUSR1);
	if ((s->window && window_wants_signals(s->window)) || s->o->store.last_ns)
		signals_add(SIGUSR2);
	return 0;
}

/* Makes the loop wait on the descriptors of the source. */
static int watch(struct session *s, struct source *src)
{
	int fds[SESSION_FDS], n = src->ops->fds(src, fds, SESSION_FDS);

	for (int i = 0; i < n; i++) {
		bool stream = !i && !src->ops->asked;
		bool first = src == session_first(s);
		struct loop_watch *w =
			loop_fd(s->loop, fds[i], stream && first ? on_stream : on_other, s);

		if (!w)
			return -ENOMEM;
		if (stream)
			s->streams[src - s->sources] = w;
	}
	return 0;
}

/* Programs wait for us while they fork, execute another program, or load a library. So nothing here waits
 * for the reader of the output: a thread writes, and when too much waits for it, records stay where they
 * are. */
static int write_behind(struct session *s)
{
	if (session_first(s)->ops->recorded || s->o->format->flags & SINKS_LIVE)
		return 0;
	out_behind(&s->out);
	session_say_behind(s);
	if (out_room_fd(&s->out) < 0)
		return 0;
	return loop_fd(s->loop, out_room_fd(&s->out), on_room, s) ? 0 : -ENOMEM;
}

/* For sources that wait for one program: others do not wait for us. */
static void answer_all(void *ctx)
{
	struct session *s = ctx;

	for (int i = 0; i < s->nsources; i++)
		if (s->starting[i] && s->sources[i].ops->answer)
			s->sources[i].ops->answer(&s->sources[i]);
}

/* In a program that is started here, nothing happens before the first source starts it. In processes that run,
 * calls are seen when all is ready that tells of what they cause: so each launch has its kernel, and each
 * kernel its launch. */
static int start_all(struct session *s)
{
	struct source *calls = session_first(s);
	bool first = s->o->cmd || calls->ops->begin;
	int err = 0;

	s->plan.capture.meanwhile = answer_all;
	s->plan.capture.meanwhile_ctx = s;
	for (int n = 0; n < s->nsources && !err; n++) {
		int i = first ? n : (n + 1) % s->nsources;

		s->starting[i] = true;
		err = s->sources[i].ops->start(&s->sources[i]);
		s->said = err != 0;
		s->unstarted = err && !i;
		if (!err)
			err = watch(s, &s->sources[i]);
	}
	memset(s->starting, 0, sizeof(s->starting));
	if (!err && calls->ops->begin)
		calls->ops->begin(calls);
	if (!err && !s->o->cmd && !calls->ops->recorded)
		join_began(s->stages.join, clock_ns(CLOCK_MONOTONIC), s->plan.capture.capture);
	return err;
}

int session_loop_run(struct session *s)
{
	int err = write_behind(s);

	s->tick = loop_timer(s->loop, on_tick, s);
	s->limit = loop_timer(s->loop, on_limit, s);
	s->look = loop_timer(s->loop, on_look, s);
	s->stalled = loop_timer(s->loop, on_stalled, s);
	if (!s->tick || !s->limit || !s->look || !s->stalled)
		return -ENOMEM;
	session_cost_begin(s);
	if (!err)
		err = start_all(s);
	urgent_end();
	if (err)
		return err;
	if (s->window)
		window_begin(s->window, clock_ns(CLOCK_MONOTONIC));
	err = session_feed_time(s, clock_ns(CLOCK_MONOTONIC));
	if (err) {
		end_by(s, err);
		return 0;
	}
	/* flushes, so that a reader who waits for the trace to begin sees the head now */
	if (out_flush(&s->out)) {
		end_by(s, out_error(&s->out));
		return 0;
	}
	loop_timer_set(s->tick, TICK_NS);
	if (s->o->unfinished_ns && session_first(s)->ops->pending)
		loop_timer_set(s->look, s->o->unfinished_ns);
	if (s->o->duration_ns)
		loop_timer_set(s->limit, s->o->window.delay_ns + s->o->duration_ns);
	return loop_run(s->loop);
}
