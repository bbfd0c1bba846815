/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_feed.c - the session's feed, with sources that stand in for those of programs: one that always has
 * more, one that sleeps, one that has little. None of them starves another, and the last drain ends by the
 * clock, or at once with a second signal.
 */
#include <time.h>
#include <unistd.h>

#include "../../user/flow/sinks.h"
#include "../../user/session/session_inside.h"
#include "../../user/session/signals.h"
#include "../../user/util/now.h"
#include "unit.h"

#define MS 1000000ULL

/* A source: `left` records, each of which takes so long. */
struct fake {
	uint64_t left, us, given, complete_ns;
	bool ends; /* it says when there will be no more */
};

static int no_fds(struct source *s, int *fd, int max)
{
	(void)s;
	(void)fd;
	(void)max;
	return 0;
}

static int drain(struct source *s, emit_fn emit, void *ctx)
{
	struct fake *f = s->priv;
	struct ct_thread_name name = {
		.h = { .size = sizeof(name), .kind = CT_THREAD_NAME, .pid = 10, .tid = 10 },
		.comm = "x"
	};
	int err = 0;

	while (f->left && !err) {
		f->left--;
		f->given++;
		if (f->us)
			usleep((useconds_t)f->us);
		name.h.start_ns = name.h.end_ns = now_ns();
		err = emit(ctx, &name.h);
		if (source_paused(s->paused))
			return err;
	}
	return err ? err : f->ends;
}

static uint64_t complete(struct source *s)
{
	return ((struct fake *)s->priv)->complete_ns;
}

static void stop(struct source *s)
{
	(void)s;
}

static void losses(struct source *s, struct losses *l)
{
	(void)s;
	(void)l;
}

static const struct source_ops fake_ops = { .name = "fake",
					    .fds = no_fds,
					    .drain = drain,
					    .complete = complete,
					    .stop = stop,
					    .losses = losses };

struct run {
	struct session s;
	struct fake fakes[3];
	struct filter filter;
};

static void run_open(struct run *r, int n)
{
	struct resolve_opts resolve = { .info = false };

	memset(r, 0, sizeof(*r));
	r->s.nsources = n;
	for (int i = 0; i < n; i++)
		r->s.sources[i] = (struct source){ .ops = &fake_ops,
						   .priv = &r->fakes[i],
						   .paused = &r->s.paused,
						   .full = &r->s.full };
	CHECK(!stages_open(&r->s.stages, &resolve, false, &r->filter, NULL, 0));
	signals_pending = 0;
}

static void run_close(struct run *r)
{
	stages_close(&r->s.stages);
}

/* Whoever is busy: each source has its turn in each feed. */
static void test_turns(void)
{
	for (int busy = 0; busy < 3; busy++) {
		struct run r;

		CASE_ROW("source %d is busy", busy);
		run_open(&r, 3);
		for (int i = 0; i < 3; i++)
			r.fakes[i].left = i == busy ? UINT64_MAX : 5;
		for (uint64_t feeds = 1; feeds <= 3; feeds++) {
			CHECK(session_feed_all(&r.s) == 0);
			CHECK(r.s.paused); /* there is more */
			for (int i = 0; i < 3; i++)
				CHECK(i == busy ? r.fakes[i].given > 100 * feeds
						: r.fakes[i].given == 5);
		}
		run_close(&r);
	}
}

/* Two that are busy have as much time each. */
static void test_slices(void)
{
	struct run r;

	run_open(&r, 2);
	r.fakes[0].left = r.fakes[1].left = UINT64_MAX;
	for (int feeds = 0; feeds < 10; feeds++)
		CHECK(session_feed_all(&r.s) == 0);
	CHECK(r.fakes[0].given < 10 * r.fakes[1].given);
	CHECK(r.fakes[1].given < 10 * r.fakes[0].given);
	run_close(&r);
}

/* A signal interrupts all of them. */
static void test_signal(void)
{
	struct run r;

	run_open(&r, 2);
	r.fakes[0].left = r.fakes[1].left = UINT64_MAX;
	signals_pending = 1;
	CHECK(session_feed_all(&r.s) == 0);
	CHECK_EQ(1, r.fakes[0].given);
	CHECK_EQ(1, r.fakes[1].given);
	run_close(&r);
}

/* The last drain ends by the clock, also if programs leave the tracer little of the processors, as this source
 * sleeps; what was not read is counted. */
static void test_end(void)
{
	uint64_t begun;
	struct run r;

	run_open(&r, 1);
	r.fakes[0] = (struct fake){ .left = 40000, .us = 200 };
	r.s.ending = true;
	begun = now_ns();
	CHECK(!session_feed_last(&r.s, 100 * MS));
	CHECK(r.s.late);
	/* far from the eight seconds that all of them take */
	CHECK(now_ns() - begun < 4000 * MS);
	r.fakes[0].left = 1234;
	r.fakes[0].us = 0;
	CHECK(!session_feed_unread(&r.s, &r.s.sources[0]));
	CHECK_EQ(1234, holes_number(r.s.stages.holes, CT_HOLE_QUEUED));
	CHECK(holes_fails(r.s.stages.holes));
	run_close(&r);
}

/* However many sources have more without an end: they share one second, and a little for each. */
static void test_end_of_all(void)
{
	const struct sinks_row format = { .flags = 0 };
	const struct request o = { .format = &format };
	uint64_t took = UINT64_MAX;

	/* the machine may be busy: with a second for each it is never below 3.6 s */
	for (int i = 0; i < 5 && took > 3000 * MS; i++) {
		uint64_t begun;
		struct run r;

		run_open(&r, 3);
		for (int k = 0; k < 3; k++)
			r.fakes[k].left = UINT64_MAX;
		r.s.o = &o;
		r.s.unstarted = true; /* no line of totals */
		begun = now_ns();
		session_end(&r.s);
		took = now_ns() - begun;
		CHECK(holes_fails(r.s.losses.holes));
		run_close(&r);
	}
	CHECK(took <= 3000 * MS);
}

/* That it was over for one source takes nothing from the next one. */
static void test_end_of_each(void)
{
	struct run r;

	run_open(&r, 2);
	r.fakes[0].left = UINT64_MAX;
	r.fakes[1].left = 40000;
	r.fakes[1].ends = true;
	r.s.ending = true;
	CHECK(!session_feed_last(&r.s, MS));
	CHECK(r.s.late);
	CHECK(!session_feed_rest(&r.s, &r.s.sources[1], 1000000 * MS));
	CHECK(!r.s.late);
	CHECK_EQ(40000, r.fakes[1].given);
	run_close(&r);
}

/* What all sources have is read if there is time, and then no row says that something was not. */
static void test_all_read(void)
{
	struct run r;

	run_open(&r, 1);
	r.fakes[0].left = 40000;
	r.s.ending = true;
	CHECK(!session_feed_last(&r.s, 1000000 * MS));
	CHECK(!r.s.late);
	CHECK_EQ(40000, r.fakes[0].given);
	CHECK(!session_feed_unread(&r.s, &r.s.sources[0]));
	CHECK_EQ(0, holes_rows(r.s.stages.holes));
	run_close(&r);
}

/* A second signal ends it at once, whatever the source. */
static void test_second_signal(void)
{
	struct run r;

	run_open(&r, 1);
	r.fakes[0].left = UINT64_MAX;
	r.s.ending = true;
	r.s.signals_at_end = 1;
	signals_pending = 2;
	CHECK(!session_feed_last(&r.s, 1000000 * MS));
	CHECK(r.s.late);
	CHECK_EQ(1, r.fakes[0].given);
	run_close(&r);
}

/* Outputs wait for the source that is behind, but no longer than a second, and then a row says so until it
 * has caught up. */
static void test_complete(void)
{
	const uint64_t now = 100000 * MS;
	const struct holes_row *row;
	struct run r;

	run_open(&r, 3);
	r.fakes[0].complete_ns = now + 1;
	r.fakes[1].complete_ns = now - 5 * MS;
	r.fakes[2].complete_ns = now - 300 * MS;
	CHECK_EQ(now, session_feed_calls_complete(&r.s, now));
	CHECK_EQ(now - 300 * MS, session_feed_complete(&r.s, now));
	CHECK_EQ(now - 300 * MS, session_feed_settled(&r.s, now));
	CHECK_EQ(0, holes_rows(r.s.stages.holes));
	r.fakes[1].complete_ns = now - 1300 * MS;
	CHECK_EQ(now - 1300 * MS, session_feed_complete(&r.s, now));
	CHECK_EQ(now - 1000 * MS, session_feed_settled(&r.s, now));
	CHECK_EQ(now - 900 * MS, session_feed_settled(&r.s, now + 100 * MS));
	CHECK_EQ(1, holes_rows(r.s.stages.holes));
	row = holes_row(r.s.stages.holes, 0);
	CHECK(row && row->reason == CT_HOLE_LATE && row->start_ns == now - 1300 * MS &&
	      row->end_ns == CT_HOLE_OPEN);
	r.fakes[1].complete_ns = now;
	CHECK_EQ(now - 300 * MS, session_feed_settled(&r.s, now + 200 * MS));
	CHECK_EQ(1, holes_rows(r.s.stages.holes));
	row = holes_row(r.s.stages.holes, 0);
	CHECK(row && row->end_ns == now + 200 * MS);
	/* nothing is missing at the end */
	CHECK(!holes_fails(r.s.stages.holes));
	CHECK(!holes_unseen(r.s.stages.holes));
	run_close(&r);
}

/* Work waits for its call in the time of the source of calls, whatever the clock says. */
static void test_flush(void)
{
	const uint64_t now = 100000 * MS;
	struct ct_kernel k = { .w = { .h = { .size = sizeof(k),
					     .kind = CT_KERNEL,
					     .pid = 10,
					     .start_ns = now - MS,
					     .end_ns = now },
				      .correlation = 7 } };
	struct join_counts c;
	struct run r;

	for (int paused = 0; paused < 2; paused++) {
		CASE_ROW("%s", paused ? "there is more to read" : "all is read");
		run_open(&r, 2);
		r.s.paused = paused;
		r.fakes[0].complete_ns = now;
		CHECK(!session_feed_flush(&r.s, now));
		CHECK(!stages_record(&r.s.stages, &k.w.h));
		r.fakes[1].complete_ns = now + 5000 * MS;
		for (uint64_t i = 1; i <= 50; i++)
			CHECK(!session_feed_flush(&r.s, now + i * 100 * MS));
		join_counts(r.s.stages.join, &c);
		CHECK_EQ(0, c.unmatched);
		r.fakes[0].complete_ns = now + 5000 * MS;
		for (int i = 0; i < 10; i++)
			CHECK(!session_feed_flush(&r.s, now + 5000 * MS));
		join_counts(r.s.stages.join, &c);
		CHECK_EQ(1, c.unmatched);
		run_close(&r);
	}
}

int main(void)
{
	RUN(test_turns);
	RUN(test_slices);
	RUN(test_signal);
	RUN(test_end);
	RUN(test_end_of_all);
	RUN(test_end_of_each);
	RUN(test_all_read);
	RUN(test_second_signal);
	RUN(test_complete);
	RUN(test_flush);
	return unit_end();
}
