/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c - see session.h.
 *
 * The loop waits on the source's descriptors, on signals and on a timer: the ring buffer's wake-ups are batched, so the
 * timer drains what is too little for one, every 20 ms while something comes, every 100 ms when nothing does. A drain is
 * left after 20 ms so that signals and limits are seen while a target calls in a tight loop.
 * Several sources are drained one after the other, the calls first: what others say about a call comes after it.
 * Knows sources only by source_ops, sinks only by sink_ops.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clocks.h"
#include "loop.h"
#include "pending.h"
#include "recording.h"
#include "session.h"
#include "session_plan.h"
#include "signals.h"
#include "stages.h"
#include "util/msg.h"
#include "util/now.h"

#define TICK_NS 20000000ULL
#define IDLE_TICK_NS 100000000ULL
#define IDLE_AFTER_NS 1000000000ULL
#define FEW_RECORDS 512		/* less than this in one drain: leave the stream's descriptor alone until the next tick */
#define TWICE_NS 1000000000ULL	/* a second SIGINT within this detaches */
#define GRACE_NS 1000000000ULL	/* after SIGTERM, for CMD to end */
#define REST_NS 10000000000ULL	/* for the sources beside the first to hand in what they have once all is over */
#define MAX_FDS 16

struct session {
	const struct opts *o;
	struct source sources[SESSION_SOURCES]; /* the first has the calls, and CMD; the others add to them */
	int nsources;
	int nopened;
	struct session_plan plan;

	struct out out;
	struct sink_opts sink_opts;
	struct sink_live live; /* top's */
	struct sink_mem mem;
	bool leaked;
	struct recording recording;
	char title[512];
	char host[256];
	struct sink sinks[3];
	int nsinks;

	struct window *window; /* NULL: all is shown */
	struct stages stages;
	bool inner; /* the source was asked for inner launches */

	struct loop *loop;
	struct loop_watch *stream, *tick, *limit, *look;
	struct pending pending;
	bool stream_paused;

	struct losses losses;	     /* received; at the end all of it */
	uint64_t counted_ended;	     /* of losses.counted, what ended processes left: no later reading has it */
	uint64_t told[CT_LOSS_END];  /* of the losses, how many have their place in the rows */
	uint64_t clock_ns; /* when the clocks were last read */
	uint64_t started_ns, last_record_ns, last_end_ns, slice_end_ns, sigint_ns;
	const char *reason; /* NULL: running */
	int error;	    /* -errno of source or output */
	int cmd_status;	    /* of wait(2); -1: CMD has not ended */
	bool ending;	    /* the last drain: no more pauses */
	bool terminated;    /* SIGTERM was passed on */
	bool said;	    /* the error was told by whoever met it */
};

static struct source *first(struct session *s)
{
	return &s->sources[0];
}

static void finish(struct session *s, const char *reason, int error)
{
	if (s->reason)
		return;
	s->reason = reason;
	s->error = error;
	loop_stop(s->loop);
}

/* ---- the stages --------------------------------------------------------------------------------------- */

/* A gap, where it happened. */
static int show_lost(struct session *s, enum ct_loss cause, uint64_t count, uint64_t until_ns)
{
	struct ct_lost lost = {
		.h = { .size = sizeof(lost), .kind = CT_LOST, .start_ns = s->last_end_ns, .end_ns = until_ns },
		.cause = cause,
		.cpu = ~0u,
		.count = count,
	};

	s->told[cause] += count;
	return stages_show(&s->stages, &lost.h);
}

/* Every 1024 records: has this drain had its time? */
static bool slice_over(struct session *s)
{
	if (s->ending || s->losses.received % 1024)
		return false;
	return clock_ns(CLOCK_MONOTONIC_COARSE) > s->slice_end_ns;
}

/* The first stage: what the source hands in. */
static int take(void *ctx, const struct ct_hdr *rec)
{
	struct session *s = ctx;
	int err = 0;

	s->losses.received++;
	if (rec->kind == CT_TALLY) {
		s->losses.counted += ((const struct ct_tally *)rec)->sums.calls;
		s->counted_ended += rec->flags & CT_F_LAST ? ((const struct ct_tally *)rec)->sums.calls : 0;
	}
	if (rec->lost)
		err = show_lost(s, CT_LOSS_RING, rec->lost, rec->end_ns);
	s->last_end_ns = rec->end_ns;
	if (rec->kind == CT_LOST && ((const struct ct_lost *)rec)->cause < CT_LOSS_END)
		s->told[((const struct ct_lost *)rec)->cause] += ((const struct ct_lost *)rec)->count;
	if (!err)
		err = stages_record(&s->stages, rec);
	if (!err && ((signals_pending && !s->ending) || slice_over(s)))
		err = -EINTR;
	return err;
}

/* ---- the loop ----------------------------------------------------------------------------------------- */

/* What an error of the stages or the source means for the session. */
static void end_by(struct session *s, int err)
{
	if (err == -ECANCELED)
		finish(s, s->o->max_bytes && !s->o->count ? "size" : "count", 0);
	else if (out_error(&s->out))
		finish(s, "output error", out_error(&s->out));
	else
		finish(s, "error", err);
}

/* Kernels that nothing else names are named by the driver's launches inside: these are captured as long as it takes. */
static void want_inner(struct session *s)
{
	bool want = resolve_wants_inner(s->stages.resolve);

	if (want == s->inner)
		return;
	s->inner = want;
	first(s)->ops->inner(first(s), want);
}

/* What all sources have. 1: there will be no more calls. */
static int drain_all(struct session *s)
{
	int done = 0;

	for (int i = 0; i < s->nsources; i++) {
		struct source *src = &s->sources[i];
		int err = src->ops->drain(src, take, s);

		/* -EINTR asks for a pause; the next drain begins with the calls again */
		if (err < 0)
			return err;
		if (!i)
			done = err;
	}
	return done;
}

/* Time goes on: the clocks are told of, and sinks do what they do by time. A stored trace has the clocks of its own. */
static int pass_time(struct session *s, uint64_t now)
{
	int err = 0;

	if (!first(s)->ops->recorded && now - s->clock_ns >= CLOCKS_EVERY_NS) {
		struct ct_clock c;

		clocks_read(&c);
		s->clock_ns = now;
		err = stages_show(&s->stages, &c.h);
	}
	for (int i = 0; i < s->nsinks && !err; i++)
		err = s->sinks[i].ops->tick ? s->sinks[i].ops->tick(&s->sinks[i], now) : 0;
	return err;
}

static void drain(struct session *s)
{
	uint64_t before = s->losses.received, now = clock_ns(CLOCK_MONOTONIC);
	bool over;
	int err;

	if (s->reason)
		return; /* it is over: after -n not one row more */
	s->slice_end_ns = now + TICK_NS;
	err = drain_all(s);
	if (s->losses.received != before)
		s->last_record_ns = now;
	if (err >= 0 || err == -EINTR) {
		int e = pass_time(s, now);

		err = e ? e : err;
	}
	if (err == 0 || err == 1) {
		int e = stages_flush(&s->stages, now);

		err = e ? e : err;
	}
	want_inner(s);
	over = s->window && window_over(s->window);
	if (err < 0 && err != -EINTR) {
		end_by(s, err);
		return;
	}
	if (out_sync(&s->out)) {
		end_by(s, out_error(&s->out));
		return;
	}
	if (err == 1) {
		if (s->o->cmd && first(s)->ops->status)
			s->cmd_status = first(s)->ops->status(first(s));
		finish(s, over ? "stopped" : "finished", 0);
		return;
	}
	if (over) {
		finish(s, "stopped", 0);
		return;
	}
	if (err == -EINTR)
		loop_timer_set(s->tick, 0);
	else
		loop_timer_set(s->tick, now - s->last_record_ns < IDLE_AFTER_NS ? TICK_NS : IDLE_TICK_NS);
}

static int show_pending(void *ctx, const struct ct_hdr *rec)
{
	struct session *s = ctx;

	return pending_is_new(&s->pending, (const struct ct_call *)rec) ? stages_record(&s->stages, rec) : 0;
}

/* --unfinished: which calls have not returned for so long? */
static void on_look(void *ctx)
{
	struct session *s = ctx;
	int err;

	if (s->reason)
		return;
	pending_begin(&s->pending);
	err = first(s)->ops->pending(first(s), s->o->unfinished_ns, show_pending, s);
	if (!err)
		err = out_sync(&s->out);
	if (err)
		end_by(s, err);
	else
		loop_timer_set(s->look, s->o->unfinished_ns / 4 < TICK_NS ? TICK_NS : s->o->unfinished_ns / 4);
}

static void on_tick(void *ctx)
{
	struct session *s = ctx;

	drain(s);
	if (s->stream_paused && !s->reason) {
		loop_resume(s->stream);
		s->stream_paused = false;
	}
}

/*
 * The stream's descriptor stays readable while there is anything in the ring: a target that makes a call every few
 * microseconds would wake the tracer for each. So after a small harvest it is left alone until the next tick.
 */
static void on_stream(void *ctx)
{
	struct session *s = ctx;
	uint64_t before = s->losses.received;

	drain(s);
	if (s->losses.received - before < FEW_RECORDS && !s->reason) {
		loop_pause(s->stream);
		s->stream_paused = true;
	}
}

static void on_other(void *ctx)
{
	drain(ctx);
}

static void on_limit(void *ctx)
{
	finish(ctx, "duration", 0);
}

static void on_sigint(struct session *s, const struct signals_got *got)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool twice = s->sigint_ns && now - s->sigint_ns < TWICE_NS;

	if (!s->o->cmd || twice) {
		finish(s, "interrupted", 0);
		return;
	}
	s->sigint_ns = now;
	/* one typed at the terminal has reached CMD already: it is in the same process group */
	if (!got->from_kernel && first(s)->ops->signal)
		first(s)->ops->signal(first(s), SIGINT);
}

static void on_grace(void *ctx)
{
	finish(ctx, "interrupted", 0);
}

/* SIGTERM, SIGHUP: whoever sends it means the whole of `cudatrace -- CMD`. The program gets the signal and a second to
 * clean up; then, or at a second signal, the trace ends whatever it does. */
static void on_sigterm(struct session *s, const struct signals_got *got)
{
	struct loop_watch *grace = NULL;

	if (s->plan.capture.cmd && first(s)->ops->signal && !s->terminated)
		grace = loop_timer(s->loop, on_grace, s);
	s->terminated = true;
	if (!grace) {
		finish(s, "interrupted", 0);
		return;
	}
	first(s)->ops->signal(first(s), got->sig);
	loop_timer_set(grace, GRACE_NS);
}

/* SIGUSR1 and SIGUSR2: begin and end of what is shown; the flight recorder's time to write. */
static void on_sigusr(struct session *s, int sig)
{
	int err = 0;

	drain(s); /* what happened before it */
	if (s->window)
		window_signal(s->window, sig == SIGUSR1, clock_ns(CLOCK_MONOTONIC));
	for (int i = 0; i < s->nsinks && sig == SIGUSR2 && !err; i++)
		err = s->sinks[i].ops->dump ? s->sinks[i].ops->dump(&s->sinks[i]) : 0;
	if (err && !s->reason)
		end_by(s, err);
	if (s->window && window_over(s->window))
		finish(s, "stopped", 0);
}

static void on_signals(void *ctx)
{
	struct signals_got got;
	struct session *s = ctx;

	while (signals_next(&got)) {
		if (got.sig == SIGCHLD)
			drain(s);
		else if (got.sig == SIGUSR1 || got.sig == SIGUSR2)
			on_sigusr(s, got.sig);
		else if (got.sig == SIGINT)
			on_sigint(s, &got);
		else if (got.sig == SIGHUP && s->o->format->flags & SINKS_DAEMON)
			continue; /* there is nothing to read again: files are found as they are mapped */
		else
			on_sigterm(s, &got);
	}
	if (s->reason && !strcmp(s->reason, "interrupted"))
		signals_pending = 1; /* out: do not wait for a stalled reader any more */
}

/* ---- beginning and end -------------------------------------------------------------------------------- */

static bool want_color(const struct session *s)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (s->o->color != OPTS_COLOR_AUTO)
		return s->o->color == OPTS_COLOR_ALWAYS;
	return s->out.is_tty && !(no && *no) && term && strcmp(term, "dumb");
}

/* Each reading of the counts is of all calls so far. */
static int read_tallies(struct session *s)
{
	s->losses.counted = s->counted_ended;
	return first(s)->ops->tallies(first(s), take, s);
}

/* What sinks may ask for while the session runs. */
static int on_refresh(void *ctx)
{
	struct session *s = ctx;
	int err;

	drain(s);
	if (s->reason || !s->plan.capture.count || !first(s)->ops->tallies)
		return 0;
	err = read_tallies(s);
	return err == -EINTR ? 0 : err;
}

static void on_losses(void *ctx, struct losses *l)
{
	struct session *s = ctx;

	memset(l, 0, sizeof(*l));
	for (int i = 0; i < s->nsources; i++)
		s->sources[i].ops->losses(&s->sources[i], l);
	l->shown = s->stages.shown;
}

static void on_quit(void *ctx)
{
	finish(ctx, "interrupted", 0);
}

static void on_count_by(void *ctx, uint8_t by)
{
	struct session *s = ctx;

	if (s->plan.capture.count_by == CT_BY_ASKED && first(s)->ops->count_by)
		first(s)->ops->count_by(first(s), by);
}

static int open_sinks(struct session *s)
{
	const struct opts *o = s->o;
	struct source_recorded was;
	const struct sink_ops *ops[3];
	int n = 0, err;

	s->mem = o->mem;
	s->mem.found = &s->leaked;
	s->started_ns = clock_ns(CLOCK_MONOTONIC);
	s->last_record_ns = s->last_end_ns = s->started_ns;
	s->live = (struct sink_live){ .batch = o->batch, .interval_ns = o->interval_ns, .count = o->count, .sort = o->sort };
	s->sink_opts = (struct sink_opts){
		.out = &s->out,
		.path = o->output,
		.time = o->time,
		.tid = o->tid_column,
		.color = want_color(s),
		.enter_exit = o->enter_exit,
		.nested = o->nested,
		.counts = o->counts || o->counts_only,
		.counts_only = o->counts_only,
		.gpu = o->gpu,
		.mangled = o->mangled,
		.full_names = o->full_names,
		.stat = o->stat,
		.advise = o->advise_how,
		.listen = o->listen,
		.mem = &s->mem,
		.kernels = (unsigned int)o->kernels,
		.tallies_max = s->plan.capture.tallies_max,
		.counters_ns = o->counters ? o->interval_ns : 0,
		.otlp_interval_ns = o->otlp_interval_ns,
		.by = o->by,
		.hist = o->hist,
		.every_call = !o->events_given && !o->failed && !o->min_size_bytes && !o->min_duration_ns &&
			      o->domain == API_DOMAIN_END,
		.save = o->save,
		.append = o->append,
		.weight = o->weight,
		.title = opts_title(o, s->title, sizeof(s->title)),
		.start_ns = s->started_ns,
		.realtime_offset_ns = clock_ns(CLOCK_REALTIME) - s->started_ns,
		.boottime_offset_ns = clock_ns(CLOCK_BOOTTIME) - s->started_ns,
		.version = CT_VERSION,
		.otlp_url = o->otlp,
		.otlp_min_ns = o->otlp_min_ns,
		.base = loop_base(s->loop),
		.refresh = on_refresh,
		.losses = on_losses,
		.quit = on_quit,
		.count_by = on_count_by,
		.live = &s->live,
		.refresh_ctx = s,
	};
	if (first(s)->ops->recorded) {
		first(s)->ops->recorded(first(s), &was);
		s->sink_opts.start_ns = s->last_end_ns = was.start_ns;
		s->sink_opts.realtime_offset_ns = was.realtime_offset_ns;
		s->sink_opts.boottime_offset_ns = was.boottime_offset_ns;
		s->sink_opts.recorded = true;
		s->sink_opts.host = was.host;
		s->sink_opts.gpu = was.gpu;
	} else {
		s->sink_opts.host = gethostname(s->host, sizeof(s->host) - 1) ? NULL : s->host;
	}
	if (o->replay)
		join_stored(s->stages.join);
	if (o->replay ? was.places : session_plan_places(o))
		join_places(s->stages.join);
	/* first, so that a wrong address is told before anything is written */
	if (o->otlp && !(o->format->flags & SINKS_DAEMON))
		ops[n++] = &sink_otlp;
	if (o->record) {
		err = recording_open(&s->recording, o, &s->sink_opts);
		if (err)
			return err;
		s->sink_opts.file = &s->recording.file;
		ops[n++] = &sink_trace;
	} else if (!o->counts_only) {
		ops[n++] = o->format->ops;
	}
	if (o->counts || o->counts_only)
		ops[n++] = &sink_count;
	for (int i = 0; i < n; i++) {
		s->sinks[i].ops = ops[i];
		err = ops[i]->open(&s->sinks[i], &s->sink_opts);
		if (err) {
			if (err != -EINVAL)
				msg_error("cannot start the %s output: %s", ops[i]->name, strerror(-err));
			return err;
		}
		s->stages.nsinks = ++s->nsinks;
	}
	return 0;
}

static uint64_t count_forgets(void *ctx)
{
	struct session *s = ctx;

	return first(s)->ops->forgets(first(s));
}

/* Files for other programs, and what is pushed to them, say of a process more than its name. */
static bool wants_info(const struct opts *o)
{
	return !o->replay && (o->otlp || (o->format->flags & SINKS_EXPORT && !(o->format->flags & (SINKS_ROWS | SINKS_FOLDS))));
}

static int open_stages(struct session *s)
{
	struct resolve_opts opts = {
		/* what is stored was resolved when it was recorded */
		.names = s->plan.names && !s->o->replay,
		.stacks = s->plan.capture.stack != PLAN_STACK_NONE && !s->o->replay,
		.info = s->o->record || ((wants_info(s->o) || s->o->format->flags & SINKS_INFO) && !s->o->replay),
		/* entry probes alone tell of the outer launch first */
		.inner = first(s)->ops->inner && !s->o->no_return,
		.forgets = first(s)->ops->forgets ? count_forgets : NULL,
		.forgets_ctx = s,
	};

	s->stages.window = s->window;
	s->stages.no_stacks = s->o->replay && !s->plan.capture.stack;
	return stages_open(&s->stages, &opts, s->o->nested && !s->o->enter_exit && !s->o->record, &s->plan.filter, s->sinks,
			   s->o->format->flags & SINKS_LIVE ? 0 : s->o->count);
}

/* Where the sinks write. One that opens its file by itself leaves it shut: nothing is ever put into it then. */
static int open_output(struct session *s)
{
	const struct opts *o = s->o;
	bool splits = o->format->flags & SINKS_SPLITS && o->output && strstr(o->output, "%p");
	int err;

	s->out.fd = -1;
	/* a recording has files of its own */
	if (o->record || (!o->counts_only && (o->format->flags & SINKS_PATH || splits)))
		return 0;
	err = out_open(&s->out, o->output, o->append);
	if (!err && out_is_gzip(o->output))
		err = out_gzip(&s->out);
	if (err) {
		msg_error("cannot write to %s: %s", o->output ? o->output : "standard output", strerror(-err));
		return err;
	}
	if (s->out.is_tty && o->format->flags & SINKS_BINARY && !o->counts_only) {
		msg_error("--format %s is nothing that a terminal can show: give -o FILE", o->format->ops->name);
		return -EINVAL;
	}
	return 0;
}

static int open_sources(struct session *s)
{
	int err = 0;

	for (int i = 0; i < s->nsources && !err; i++)
		if (s->sources[i].ops->prepare)
			err = s->sources[i].ops->prepare(&s->sources[i], &s->plan.capture);
	for (; s->nopened < s->nsources && !err; s->nopened++)
		err = s->sources[s->nopened].ops->open(&s->sources[s->nopened], &s->plan.capture);
	return err;
}

static int open_all(struct session *s)
{
	const struct window_opts window = { s->o->delay_ns, s->o->start_on, s->o->stop_on };
	int err, fd;

	err = window_open(&s->window, &window);
	if (!err)
		err = session_plan(&s->plan, s->o, s->window);
	if (err)
		return err;
	err = open_output(s);
	if (err)
		return err;
	s->out.stop = &signals_pending;
	s->loop = loop_open();
	if (open_stages(s) || !s->loop)
		goto no_memory;
	fd = signals_open();
	if (fd < 0 || !loop_fd(s->loop, fd, on_signals, s))
		goto no_memory;
	if (s->window && window_wants_signals(s->window))
		signals_add(SIGUSR1);
	if ((s->window && window_wants_signals(s->window)) || s->o->last_ns)
		signals_add(SIGUSR2);
	err = open_sources(s);
	return err ? err : open_sinks(s);
no_memory:
	msg_error("no memory to start with");
	return -ENOMEM;
}

/* The loop waits on what the source has. */
static int watch(struct session *s, struct source *src)
{
	int fds[MAX_FDS], n = src->ops->fds(src, fds, MAX_FDS);

	for (int i = 0; i < n; i++) {
		bool stream = src == first(s) && !i;
		struct loop_watch *w = loop_fd(s->loop, fds[i], stream ? on_stream : on_other, s);

		if (!w)
			return -ENOMEM;
		if (stream)
			s->stream = w;
	}
	return 0;
}

static int run(struct session *s)
{
	int err = 0;

	s->tick = loop_timer(s->loop, on_tick, s);
	s->limit = loop_timer(s->loop, on_limit, s);
	s->look = loop_timer(s->loop, on_look, s);
	if (!s->tick || !s->limit || !s->look)
		return -ENOMEM;
	for (int i = 0; i < s->nsources && !err; i++) {
		err = s->sources[i].ops->start(&s->sources[i]);
		s->said = err != 0;
		if (!err)
			err = watch(s, &s->sources[i]);
	}
	if (err)
		return err;
	if (s->window)
		window_begin(s->window, clock_ns(CLOCK_MONOTONIC));
	err = pass_time(s, clock_ns(CLOCK_MONOTONIC));
	if (err)
		return err;
	/* whoever waits for the trace to begin sees the head now */
	if (out_flush(&s->out)) {
		end_by(s, out_error(&s->out));
		return 0;
	}
	loop_timer_set(s->tick, TICK_NS);
	if (s->o->unfinished_ns && first(s)->ops->pending)
		loop_timer_set(s->look, s->o->unfinished_ns);
	if (s->o->duration_ns)
		loop_timer_set(s->limit, s->o->delay_ns + s->o->duration_ns);
	return loop_run(s->loop);
}

/* What a source that adds to the calls still hands in once it has been told to stop. */
static int drain_rest(struct session *s, struct source *src)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + REST_NS;
	struct pollfd fds[MAX_FDS];
	int fd[MAX_FDS], err;

	while ((err = src->ops->drain(src, take, s)) == 0 || err == -EINTR) {
		int n = src->ops->fds(src, fd, MAX_FDS);

		if (clock_ns(CLOCK_MONOTONIC) > until_ns)
			return 0;
		for (int i = 0; i < n; i++)
			fds[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
		poll(fds, (nfds_t)n, 20);
	}
	return err < 0 ? err : 0;
}

/* It has ended because what was asked for is there: not a row more. */
static bool is_enough(const struct session *s)
{
	return !strcmp(s->reason, "count") || !strcmp(s->reason, "size");
}

/* What is still on the way when the sources have stopped. */
static void last_drain(struct session *s)
{
	bool enough = is_enough(s) || !strcmp(s->reason, "output error");
	uint64_t before;
	int err;

	s->ending = true;
	for (int i = 0; i < s->nsources; i++)
		s->sources[i].ops->stop(&s->sources[i]);
	if (enough)
		return;
	/* one drain need not be all */
	do {
		before = s->losses.received;
		err = drain_all(s);
	} while (err == -EINTR || (err >= 0 && s->losses.received != before));
	for (int i = 1; i < s->nsources && err >= 0; i++)
		err = drain_rest(s, &s->sources[i]);
	if (err >= 0)
		err = stages_flush(&s->stages, UINT64_MAX);
	if (err >= 0 && s->plan.capture.count && first(s)->ops->tallies)
		err = read_tallies(s);
	if (err >= 0 && !first(s)->ops->recorded) {
		s->clock_ns = 0;
		err = pass_time(s, clock_ns(CLOCK_MONOTONIC));
	}
	if (err == -ECANCELED)
		s->reason = s->o->max_bytes && !s->o->count ? "size" : "count";
	else if (err < 0 && !s->error)
		s->error = err;
}

/* The counters of the kernel side and of this one, and the gaps that no record carried. */
static void gather_losses(struct session *s)
{
	struct losses all = { 0 };

	for (int i = 0; i < s->nsources; i++)
		s->sources[i].ops->losses(&s->sources[i], &all);
	all.received = s->losses.received;
	all.shown = s->stages.shown;
	all.counted = s->losses.counted;
	for (int i = 0; i < CT_LOSS_END; i++) {
		if (i != CT_LOSS_ORPHAN && all.lost[i] > s->told[i] && !is_enough(s))
			show_lost(s, (enum ct_loss)i, all.lost[i] - s->told[i],
				  first(s)->ops->recorded ? s->last_end_ns : clock_ns(CLOCK_MONOTONIC));
	}
	s->losses = all;
}

/* What devices did, if anything. Returns the bytes written. */
static size_t say_work(const struct session *s, char *text, size_t size)
{
	struct join_counts c;
	size_t n;

	join_counts(s->stages.join, &c);
	if (!s->stages.work && !c.matched && !c.unmatched)
		return 0;
	n = (size_t)snprintf(text, size, ", %llu on devices", (unsigned long long)s->stages.work);
	if (c.unmatched)
		n += (size_t)snprintf(text + n, size - n, ", %llu without their call", (unsigned long long)c.unmatched);
	if (c.inferred)
		n += (size_t)snprintf(text + n, size - n, ", %llu with one told by time alone", (unsigned long long)c.inferred);
	return n;
}

static void say_totals(const struct session *s, const char *const *muted)
{
	const struct losses *l = &s->losses;
	uint64_t shown = s->plan.capture.count ? l->counted : l->shown - s->stages.work;
	char text[1024];
	size_t n;

	n = (size_t)snprintf(text, sizeof(text), "%llu %s", (unsigned long long)shown,
			     s->o->enter_exit ? (shown == 1 ? "row" : "rows") : (shown == 1 ? "call" : "calls"));
	n += say_work(s, text + n, sizeof(text) - n);
	if (l->unfinished && n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", %llu unfinished", (unsigned long long)l->unfinished);
	if (n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", %llu lost", (unsigned long long)losses_total(l));
	for (int i = 0, any = 0; i < CT_LOSS_END && n < sizeof(text); i++) {
		if (!l->lost[i] || i == CT_LOSS_ORPHAN)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu %s", any++ ? ", " : ": ",
				      (unsigned long long)l->lost[i], loss_text((enum ct_loss)i));
	}
	for (int i = 0; muted && muted[i] && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? ", " : "; muted: ", muted[i]);
	msg_note("%s", text);
	if (l->untold)
		msg_warn("%llu forks, execs or ends of processes found no room in the ring buffer: rows may have a process's older name "
			 "(raise --ring-size)", (unsigned long long)l->untold);
}

static void close_sinks(struct session *s)
{
	const struct source_ops *ops = first(s)->ops;
	struct sink_end end = {
		.muted = ops->muted ? ops->muted(first(s)) : NULL,
		.reason = s->reason,
	};
	struct join_counts counts;
	int err = 0;

	gather_losses(s);
	join_counts(s->stages.join, &counts);
	end.matched = counts.matched;
	end.unmatched = counts.unmatched;
	end.inferred = counts.inferred;
	end.losses = s->losses;
	end.uptime_ns = clock_ns(CLOCK_MONOTONIC) - s->started_ns;
	if (ops->recorded && !strcmp(s->reason, "finished")) {
		struct source_recorded was;

		ops->recorded(first(s), &was);
		end.uptime_ns = was.uptime_ns;
		end.reason = was.reason;
	}
	for (int i = 0; i < s->nsinks; i++) {
		int e = s->sinks[i].ops->close(&s->sinks[i], &end);

		if (e && !s->error && (s->o->record || s->o->mem.html || s->o->save || s->o->format->flags & SINKS_PATH)) {
			s->error = e;
			s->said = true;
		}
	}
	err = out_close(&s->out);
	if (err == -EPIPE)
		msg_error("%s was closed by its reader after %llu bytes: tracing stopped", s->out.name,
			  (unsigned long long)s->out.written);
	else if (err == -ETIMEDOUT)
		msg_error("the reader of %s takes nothing: tracing stopped after %llu bytes, what was left is dropped",
			  s->out.name, (unsigned long long)s->out.written);
	else if (err)
		msg_error("writing to %s failed after %llu bytes: %s; tracing stopped", s->out.name,
			  (unsigned long long)s->out.written, strerror(-err));
	if (err)
		s->error = err;
	else if (s->error && !s->said)
		msg_error("tracing stopped: %s", strerror(-s->error));
	/* of what did not arrive there is nothing to be said */
	if (!err)
		say_totals(s, end.muted);
}

static int exit_status(const struct session *s)
{
	int status = s->cmd_status;

	if (s->error)
		return 1;
	if (s->o->strict && losses_total(&s->losses))
		return 3;
	if (s->o->leak_check && s->leaked)
		return 4;
	if (status < 0)
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The last one. */
static bool interrupted;

bool session_interrupted(void)
{
	return interrupted;
}

int session_run(const struct opts *o, const struct source_ops *const *ops, int nops)
{
	struct session *s = calloc(1, sizeof(*s));
	int status = 1, err;

	if (!s) {
		msg_error("no memory to start with");
		return 1;
	}
	s->o = o;
	for (int i = 0; i < nops && i < SESSION_SOURCES; i++)
		s->sources[s->nsources++].ops = ops[i];
	s->cmd_status = -1;
	err = open_all(s);
	if (err)
		goto out;
	err = run(s);
	if (err && !s->reason) {
		s->reason = "error";
		s->error = err;
	}
	last_drain(s);
	close_sinks(s);
	if (s->window && s->o->start_on && !window_begun(s->window))
		msg_note("what --start-on waits for did not come (%s): nothing is shown of the calls before", s->o->start_on);
	status = exit_status(s);
	interrupted = !strcmp(s->reason, "interrupted");
out:
	for (int i = s->nsources - 1; i >= 0; i--)
		if (s->sources[i].priv)
			s->sources[i].ops->close(&s->sources[i]);
	out_close(&s->out);
	signals_close();
	stages_close(&s->stages);
	pending_close(&s->pending);
	recording_close(&s->recording);
	window_close(s->window);
	loop_close(s->loop);
	free(s);
	return status;
}
