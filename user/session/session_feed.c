/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_feed.c - inside the session: feeds the records of the sources into the stages, one source
 * after the other. Each source has a slice of time of its own, so that none waits for another one's
 * end, which may not come while programs are busy. It also puts losses at their place among the
 * rows, feeds clock records, and counts the records. A feed pauses when all slices are over, or when
 * a signal arrives, so that signals and timers are handled while a target makes calls in a tight
 * loop. This file does not wait, does not decide when the session ends, and knows sources only
 * through source_ops.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "clocks.h"
#include "session_inside.h"
#include "signals.h"
#include "../util/now.h"

#define SLICE_NS 10000000ULL /* the longest time that one drain of a source may take */
#define SLICE_RECORDS 16384  /* a recording's; a multiple of 256 */
#define REST_WAIT_MS 20
#define REST_WAITS 20	      /* after the first of these records */
#define LATE_NS 1000000000ULL /* no output waits longer for records that are still to come */
#define HOLES_EVERY_NS 1000000000ULL

int session_feed_lost(struct session *s, enum ct_loss cause, uint64_t count, uint64_t until_ns)
{
	struct ct_lost lost = {
		.h = { .size = sizeof(lost),
		       .kind = CT_LOST,
		       .start_ns = s->last_end_ns,
		       .end_ns = until_ns },
		.cause = cause,
		.cpu = ~0u,
		.count = count,
	};

	s->reported[cause] += count;
	return stages_show(&s->stages, &lost.h);
}

/* Checks once in 256 records whether the slice of this source is over. A recording's is so many records: outputs
 * write rows between slices, so by the clock they would come in another order each time. */
static bool slice_over(struct session *s)
{
	if (s->ending || s->losses.received % 256)
		return false;
	if (session_first(s)->ops->recorded)
		return s->losses.received % SLICE_RECORDS == 0;
	return clock_ns(CLOCK_MONOTONIC) > s->slice_end_ns;
}

/* From now on, in the last drain, a live source gets so much time, without that in which the output takes nothing. */
static void begin_end(struct session *s, uint64_t ns)
{
	s->end_ns = clock_ns(CLOCK_MONOTONIC) + ns;
	s->end_waited_ns = s->out.waited_ns;
	s->late = false;
}

/* In the last drain: is it time to end, whatever comes? By the clock, since programs may leave us little of
 * the processors, and without the time in which the reader of the output takes nothing. What a file has is
 * finite; a further signal ends that too. */
static bool is_late(struct session *s)
{
	if (signals_pending > s->signals_at_end)
		s->late = true;
	else if (s->losses.received % 256 == 0 && !session_first(s)->ops->recorded)
		s->late |= clock_ns(CLOCK_MONOTONIC) >
			   s->end_ns + (s->out.waited_ns - s->end_waited_ns);
	return s->late;
}

/* The first stage: takes a record from the source. */
static int feed_record(void *ctx, const struct ct_hdr *rec)
{
	struct session *s = ctx;
	int err = 0;

	s->losses.received++;
	s->unknown_kinds += rec->kind >= CT_KIND_END;
	if (rec->kind == CT_CALL_COUNT) {
		losses_add(&s->losses.counted, ((const struct ct_call_count *)rec)->sums.calls);
		if (rec->flags & CT_F_LAST)
			losses_add(&s->counted_ended,
				   ((const struct ct_call_count *)rec)->sums.calls);
	}
	if (rec->lost)
		err = session_feed_lost(s, CT_LOSS_RING, rec->lost, rec->end_ns);
	if (rec->kind != CT_HOLE)
		s->last_end_ns = rec->end_ns;
	if (rec->kind == CT_LOST && ((const struct ct_lost *)rec)->cause < CT_LOSS_END)
		losses_add(&s->reported[((const struct ct_lost *)rec)->cause],
			   ((const struct ct_lost *)rec)->count);
	if (!err)
		err = stages_record(&s->stages, rec);
	s->full = !s->ending && out_full(&s->out);
	s->paused |= s->ending ? is_late(s) : s->full || signals_pending || slice_over(s);
	return err;
}

int session_feed_all(struct session *s)
{
	bool more = false;
	int done = 0;

	for (int i = 0; i < s->nsources; i++) {
		struct source *src = &s->sources[i];
		int err;

		s->slice_end_ns = clock_ns(CLOCK_MONOTONIC) + SLICE_NS;
		/* a source that has all of its time gives way to the next one, and no source to none */
		s->paused = s->full = !s->ending && out_full(&s->out);
		err = src->ops->drain(src, feed_record, s);
		if (err < 0)
			return err;
		more |= s->paused;
		if (!i)
			done = err;
	}
	s->paused = more;
	return more ? 0 : done;
}

static uint64_t complete_of(struct source *src, uint64_t now_ns)
{
	uint64_t ns = src->ops->complete ? src->ops->complete(src) : now_ns;

	return ns < now_ns ? ns : now_ns;
}

uint64_t session_feed_calls_complete(struct session *s, uint64_t now_ns)
{
	return complete_of(&s->sources[0], now_ns);
}

uint64_t session_feed_complete(struct session *s, uint64_t now_ns)
{
	uint64_t least = now_ns;

	for (int i = 0; i < s->nsources; i++)
		least = complete_of(&s->sources[i], least);
	return least;
}

int session_feed_flush(struct session *s, uint64_t now_ns)
{
	uint64_t complete_ns = session_feed_calls_complete(s, now_ns);

	/* a recording has no other source; there may be more of it */
	if (!complete_ns || (s->paused && !session_first(s)->ops->complete))
		return 0;
	return stages_flush(&s->stages, complete_ns);
}

/* Says from when until when outputs did not wait for what came late. */
static void tell_late(struct session *s, uint64_t until_ns)
{
	struct ct_hole hole = hole_of(0, CT_HOLE_CALLS, CT_HOLE_UNSEEN, CT_HOLE_LATE);

	hole.count = 1;
	hole_when(&hole, s->late_ns, until_ns);
	stages_show(&s->stages, &hole.h);
}

uint64_t session_feed_settled(struct session *s, uint64_t now_ns)
{
	uint64_t ns = session_feed_complete(s, now_ns),
		 least = now_ns > LATE_NS ? now_ns - LATE_NS : 0;

	if (ns < least && !s->late_ns) {
		s->late_ns = ns ? ns : 1;
		tell_late(s, CT_HOLE_OPEN);
	} else if (ns >= least && s->late_ns) {
		tell_late(s, now_ns);
		s->late_ns = 0;
	}
	return ns < least ? least : ns;
}

int session_feed_last(struct session *s, uint64_t ns)
{
	struct source *src = session_first(s);
	uint64_t before;
	int err;

	begin_end(s, ns);
	do {
		before = s->losses.received;
		s->paused = false;
		err = src->ops->drain(src, feed_record, s);
	} while (err >= 0 && !s->late && s->losses.received != before);
	return err < 0 ? err : 0;
}

/* Until a source that adds to the calls has something, for a moment. */
static void await_records(struct source *src)
{
	struct pollfd fds[SESSION_FDS];
	int fd[SESSION_FDS], n = src->ops->fds(src, fd, SESSION_FDS);

	for (int i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
	poll(fds, (nfds_t)n, REST_WAIT_MS);
}

int session_feed_work(struct session *s, uint64_t until_ns)
{
	int err = 0;

	while (!err && !s->late && join_awaited(s->stages.join) &&
	       clock_ns(CLOCK_MONOTONIC) < until_ns) {
		for (int i = 1; i < s->nsources && err >= 0; i++) {
			struct source *src = &s->sources[i];

			s->paused = false;
			if (src->ops->endless)
				await_records(src);
			err = src->ops->drain(src, feed_record, s);
		}
		if (err >= 0)
			err = stages_flush(&s->stages, clock_ns(CLOCK_MONOTONIC));
	}
	return err < 0 ? err : 0;
}

int session_feed_rest(struct session *s, struct source *src, uint64_t ns)
{
	uint64_t before = s->losses.received;
	int err, waits = 0;

	begin_end(s, ns);
	s->paused = false;
	while ((err = src->ops->drain(src, feed_record, s)) == 0) {
		/* what it had is sent at once when it has begun */
		if (clock_ns(CLOCK_MONOTONIC) > s->end_ns || waits > REST_WAITS)
			s->late = true;
		if (s->late)
			return 0;
		await_records(src);
		waits += s->losses.received != before;
	}
	return err < 0 ? err : 0;
}

struct unread {
	uint64_t records, until_ns;
};

static int count(void *ctx, const struct ct_hdr *rec)
{
	struct unread *u = ctx;

	(void)rec;
	u->records++;
	return u->records % 1024 || clock_ns(CLOCK_MONOTONIC) < u->until_ns ? 0 : -ECANCELED;
}

int session_feed_unread(struct session *s, struct source *src)
{
	struct unread u = { .until_ns = clock_ns(CLOCK_MONOTONIC) + SESSION_UNREAD_NS };
	/* for others it was a signal that ended it; their calls come first */
	struct ct_hole hole = hole_of(0, src->ops->endless ? src->ops->endless : CT_HOLE_CALLS,
				      CT_HOLE_LOST, CT_HOLE_QUEUED);
	uint64_t before = ~0ULL;

	s->paused = false;
	while (u.records != before && clock_ns(CLOCK_MONOTONIC) < u.until_ns) {
		before = u.records;
		if (src->ops->drain(src, count, &u) < 0)
			break;
	}
	if (!u.records)
		return 0;
	hole.count = u.records;
	/* the time was over before it had all been counted */
	if (u.records != before)
		hole.state = CT_HOLE_UNSEEN;
	hole_when(&hole, s->last_end_ns, clock_ns(CLOCK_MONOTONIC));
	return stages_show(&s->stages, &hole.h);
}

/* A row about a number that a source counts, when the number has changed. */
static int session_feed_state(struct session *s, enum ct_hole_reason reason,
			      enum ct_hole_layer layer, enum ct_hole_state how, uint64_t count)
{
	struct ct_hole hole = hole_of(0, layer, how, reason);

	if (count == s->stated[reason])
		return 0;
	s->stated[reason] = count;
	hole.count = count;
	return stages_show(&s->stages, &hole.h);
}

int session_feed_holes(struct session *s, const struct losses *l, uint64_t now_ns)
{
	int err = session_feed_state(s, CT_HOLE_FILE_REFUSED, CT_HOLE_CALLS, CT_HOLE_REFUSED,
				     l->refused);

	if (!err)
		err = session_feed_state(s, CT_HOLE_SCOPES_DROPPED, CT_HOLE_SCOPES, CT_HOLE_LOST,
					 l->scopes_dropped);
	if (!err)
		err = session_feed_state(s, CT_HOLE_UNREPORTED, CT_HOLE_PROCESSES, CT_HOLE_LOST,
					 l->unreported);
	if (!err)
		err = stages_state_unwritten(&s->stages);
	/* what the ring lost comes with the records that follow, and join reports its own */
	for (int i = 0; i < CT_LOSS_END && !err; i++)
		if (i != CT_LOSS_RING && i != CT_LOSS_ORPHAN && i != CT_LOSS_TAIL &&
		    l->lost[i] > s->reported[i])
			err = session_feed_lost(s, (enum ct_loss)i, l->lost[i] - s->reported[i],
						now_ns);
	return err;
}

/* Once a second what the sources count is stated, so that a recording has it that is read
 * while it is written, or that is never finished. */
static int feed_holes(struct session *s, uint64_t now)
{
	struct losses l;

	if (now - s->holes_ns < HOLES_EVERY_NS || session_first(s)->ops->recorded)
		return 0;
	s->holes_ns = now;
	session_feed_losses(s, &l);
	return session_feed_holes(s, &l, now);
}

/* Reading a recording may take long. */
static void show_progress(struct session *s)
{
	struct source *src = session_first(s);
	uint64_t done, all;

	if (!src->ops->progress)
		return;
	src->ops->progress(src, &done, &all);
	progress_at(&s->progress, done, all);
}

int session_feed_time(struct session *s, uint64_t now)
{
	int err = 0;

	show_progress(s);
	if (s->stages.resolve)
		resolve_idle(s->stages.resolve, now);

	if (!session_first(s)->ops->recorded && now - s->clock_ns >= CLOCKS_EVERY_NS) {
		struct ct_clock c = s->began;

		/* the first clock record is the same reading that the sinks compute times of day
		 * from, so that both agree */
		if (s->clock_ns || s->ending)
			clocks_read(&c);
		s->clock_ns = now;
		err = stages_show(&s->stages, &c.h);
	}
	if (!err)
		err = feed_holes(s, now);
	for (int i = 0; i < s->nsinks && !err; i++)
		err = s->sinks[i].ops->tick ? s->sinks[i].ops->tick(&s->sinks[i], now) : 0;
	return err;
}

static int show_pending(void *ctx, const struct ct_hdr *rec)
{
	struct session *s = ctx;

	return pending_is_new(&s->pending, (const struct ct_call *)rec)
		       ? stages_record(&s->stages, rec)
		       : 0;
}

int session_feed_pending(struct session *s)
{
	pending_begin(&s->pending);
	return session_first(s)->ops->pending(session_first(s), s->o->unfinished_ns, show_pending,
					      s);
}

int session_feed_call_counts(struct session *s)
{
	int err;

	s->losses.counted = s->counted_ended;
	stages_count_anew(&s->stages);
	err = session_first(s)->ops->call_counts(session_first(s), feed_record, s);
	process_table_counted(world_processes(s->stages.world));
	return err;
}

void session_feed_losses(struct session *s, struct losses *l)
{
	struct join_counts c;

	memset(l, 0, sizeof(*l));
	for (int i = 0; i < s->nsources; i++)
		s->sources[i].ops->losses(&s->sources[i], l);
	join_counts(s->stages.join, &c);
	losses_add(&l->lost[CT_LOSS_TAIL], c.tail);
	l->holes = s->stages.holes;
	l->scopes_dropped += scopes_dropped(s->stages.scopes);
	l->shown = s->stages.shown;
	/* the source does not know the processes' names: its number is that of all of them */
	if (s->o->comm && !s->plan.capture.count)
		l->unfinished = s->stages.unfinished;
	else if (s->o->comm && l->unfinished > s->stages.counted.untimed)
		l->unfinished = s->stages.counted.untimed;
}
