/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_end.c - inside the session: what happens after the sources have stopped. It feeds the
 * records that are still on the way, gathers the losses, ends the sinks, and prints the line of
 * totals. It waits for nothing except the last records of the sources.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "session_inside.h"
#include "signals.h"
#include "../util/io/bounded.h"
#include "../util/io/ended.h"
#include "../util/self/urgent.h"
#include "../util/msg.h"
#include "../util/now.h"

const char *session_reason(enum session_reason reason)
{
	static const char *const words[SESSION_REASON_END] = {
		[SESSION_RUNS] = "",
		[SESSION_FINISHED] = "finished",
		[SESSION_STOPPED] = "stopped",
		[SESSION_INTERRUPTED] = "interrupted",
		[SESSION_DURATION] = "duration",
		[SESSION_COUNT] = "count",
		[SESSION_SIZE] = "size",
		[SESSION_OUTPUT_CLOSED] = "output closed",
		[SESSION_OUTPUT_ERROR] = "output error",
		[SESSION_ERROR] = "error",
	};

	return words[reason];
}

/* Whether the session ended because the requested number of rows or bytes was reached: no further
 * row may be shown. */
static bool is_enough(const struct session *s)
{
	return s->reason == SESSION_COUNT || s->reason == SESSION_SIZE;
}

/* From when the source of the calls has stopped: for all that is read, counted and waited for, whatever programs
 * hand over, so that with the closing of outputs and sources it is a second. */
#define END_NS 800000000ULL
#define OTHERS_NS 200000000ULL /* of it for those that add to the calls */
#define REST_NS \
	400000000ULL /* and for what agents say as they leave, when device work has been waited for */
#define LEAST_NS 150000000ULL /* for each source in any case */

/* Those that add to the calls. They see what follows from the last calls, and stop after that. */
static void stop_others(struct session *s)
{
	for (int i = 1; i < s->nsources; i++)
		s->sources[i].ops->stop(&s->sources[i]);
}

struct time_of_end {
	uint64_t until_ns, waited_ns; /* how long the output had been waited for when it began */
};

/* How long a source may be read so that so much of the time is left, by the clock, since programs may leave us little
 * of the processors, and without the time in which the reader of the output takes nothing. */
static uint64_t time_but(const struct session *s, const struct time_of_end *t, uint64_t rest_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC) - (s->out.waited_ns - t->waited_ns) + rest_ns;

	return now + LEAST_NS < t->until_ns ? t->until_ns - now : LEAST_NS;
}

/* Feeds what is still on the way after the source of the calls has stopped. */
static void last_drain(struct session *s)
{
	/* what was recorded has no end of its own to wait for */
	bool enough = is_enough(s) || out_error(&s->out) ||
		      (session_first(s)->ops->recorded && s->reason == SESSION_INTERRUPTED);
	struct time_of_end end;
	uint64_t stopped_ns = 0;
	bool cut; /* there was more than could be read in time */
	int err;

	s->ending = true;
	s->full = false;
	/* CMD had the signal: the output does not wait for a stalled reader either */
	if (s->sigint_ns && !signals_pending)
		signals_pending = 1;
	s->signals_at_end = signals_pending;
	signals_last();
	session_first(s)->ops->stop(session_first(s));
	if (session_first(s)->ops->stopped)
		stopped_ns = session_first(s)->ops->stopped(session_first(s));
	join_stopped(s->stages.join, stopped_ns);
	if (enough) {
		stop_others(s);
		return;
	}
	/* not since the stop: to take hooks off may have taken longer than this */
	end = (struct time_of_end){ clock_ns(CLOCK_MONOTONIC) + END_NS, s->out.waited_ns };
	err = session_feed_last(s, time_but(s, &end,
					    SESSION_UNREAD_NS + (s->nsources > 1 ? OTHERS_NS : 0)));
	cut = s->late;
	if (err >= 0 && !cut)
		err = session_feed_work(s, clock_ns(CLOCK_MONOTONIC) + time_but(s, &end, REST_NS));
	stop_others(s);
	for (int i = 1; i < s->nsources && err >= 0; i++) {
		err = session_feed_rest(s, &s->sources[i], time_but(s, &end, SESSION_UNREAD_NS));
		if (err >= 0 && s->late)
			err = session_feed_unread(s, &s->sources[i]);
	}
	if (session_first(s)->ops->ended)
		session_first(s)->ops->ended(session_first(s));
	if (err >= 0 && !cut) {
		err = session_feed_last(s, time_but(s, &end, SESSION_UNREAD_NS));
		cut = s->late;
	}
	if (err >= 0 && cut)
		err = session_feed_unread(s, session_first(s));
	if (err >= 0)
		err = stages_end_scopes(&s->stages, clock_ns(CLOCK_MONOTONIC));
	if (err >= 0)
		err = stages_flush(&s->stages, UINT64_MAX);
	if (err >= 0 && s->plan.capture.count && session_first(s)->ops->call_counts)
		err = session_feed_call_counts(s);
	if (err >= 0)
		err = stages_end_work(&s->stages);
	if (err >= 0 && !session_first(s)->ops->recorded) {
		s->clock_ns = 0;
		err = session_feed_time(s, clock_ns(CLOCK_MONOTONIC));
	}
	if (err == -ECANCELED)
		s->reason = session_enough(s);
	/* an error of the output is reported when the output is closed */
	else if (err < 0 && !s->error && !out_error(&s->out))
		s->error = err;
}

/* Hands the rows of what was not seen, as they are at the end, to the outputs that show stretches of time. */
static void feed_final(struct session *s)
{
	const struct holes *holes = s->losses.holes;
	uint64_t end_ns = session_first(s)->ops->recorded ? s->last_end_ns
							  : clock_ns(CLOCK_MONOTONIC);
	struct hole_text t;

	for (size_t i = 0; i < holes_rows(holes) && !is_enough(s); i++) {
		if (holes_void(holes_row(holes, i)))
			continue;
		hole_final(holes_row(holes, i), s->sink_opts.start_ns, end_ns, &t);
		stages_show(&s->stages, &t.hole.h);
	}
}

/* Gathers the counters of lost records from the kernel side and from this side, and the losses that
 * no record has reported. */
static void gather_losses(struct session *s)
{
	struct losses all;

	session_feed_losses(s, &all);
	/* join has already reported these */
	losses_add(&s->reported[CT_LOSS_TAIL], all.lost[CT_LOSS_TAIL]);
	all.received = s->losses.received;
	all.counted = s->losses.counted;
	for (int i = 0; i < CT_LOSS_END; i++) {
		if (i != CT_LOSS_ORPHAN && all.lost[i] > s->reported[i] && !is_enough(s))
			session_feed_lost(s, (enum ct_loss)i, all.lost[i] - s->reported[i],
					  session_first(s)->ops->recorded
						  ? s->last_end_ns
						  : clock_ns(CLOCK_MONOTONIC));
	}
	if (!is_enough(s))
		session_feed_holes(s, &all,
				   session_first(s)->ops->recorded ? s->last_end_ns
								   : clock_ns(CLOCK_MONOTONIC));
	s->losses = all;
	feed_final(s);
}

/* Writes how much device work was shown, if any. Returns the bytes written. */
static size_t say_work(const struct session *s, char *text, size_t size)
{
	struct join_counts c;
	size_t n;

	join_counts(s->stages.join, &c);
	if (!s->stages.work && !c.matched && !c.unmatched)
		return 0;
	n = (size_t)snprintf(text, size, ", %llu on devices", (unsigned long long)s->stages.work);
	if (c.unmatched)
		n += (size_t)snprintf(text + n, size - n, ", %llu without their call",
				      (unsigned long long)c.unmatched);
	if (c.inferred)
		n += (size_t)snprintf(text + n, size - n, ", %llu with one told by time alone",
				      (unsigned long long)c.inferred);
	if (c.unscoped)
		n += (size_t)snprintf(text + n, size - n, ", %llu in an unknown scope",
				      (unsigned long long)c.unscoped);
	return n;
}

/* Writes how many calls have no rows of their own, and of which functions; exact: their number is no
 * estimate. Returns the bytes written. */
static size_t say_muted(const struct muted_sum *m, const char *const *names, bool exact, char *text,
			size_t size)
{
	char clause[1536];
	size_t n;

	if (!names || !names[0])
		return 0;
	if (*muted_clause(clause, sizeof(clause), m, names))
		return (size_t)snprintf(text, size, "; not shown: %s", clause);
	n = (size_t)snprintf(text, size, "; %s in windows: ", exact ? "timed" : "counted");
	for (int i = 0; names[i] && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", names[i]);
	return n;
}

/* Reports what existed and could not be recorded. */
static void say_missing(const struct session *s)
{
	struct resolve_totals t;
	struct bounded_counts b;
	uint64_t missing;

	resolve_totals(s->stages.resolve, &t);
	bounded_counts(&b);
	missing = t.absent > t.filled ? t.absent - t.filled : 0;
	/* names that were registered matter where a launch has none */
	if (t.launches > t.named)
		losses_add(&missing, t.unshown);
	if (missing)
		msg_note(missing == 1
				 ? "%llu argument was not in memory at its call and was not read: "
				   "it "
				   "is not shown, nor is a name in it"
				 : "%llu arguments were not in memory at their call and were not "
				   "read: they are not shown, nor are the names in them",
			 (unsigned long long)missing);
	if (b.left || b.refused)
		msg_warn("%llu reads of programs' memory or files were stopped at their time "
			 "limit, and %llu were not begun because of them; %u still wait",
			 (unsigned long long)b.left, (unsigned long long)b.refused, b.held);
	if (b.crashed)
		msg_warn("%llu of cudatrace's readers of memory and files crashed, and cudatrace "
			 "went on without what they were reading: please report it",
			 (unsigned long long)b.crashed);
}

/* Why there is no call, behind the number of lost ones; "": there are some, or it is not known. */
static const char *no_calls(const struct session *s, uint64_t shown)
{
	const struct losses *l = &s->losses;
	const struct request *o = s->o;
	bool chosen = o->events_given || o->library || o->domain != API_DOMAIN_END;
	bool there = o->npids || o->tid;

	if (shown || s->stages.work || s->stages.nscopes || l->unfinished || losses_total(l) ||
	    holes_unseen(l->holes) || o->select.none || l->code == LOSSES_CODE_UNKNOWN)
		return "";
	if (l->calls || l->filtered || l->counted || muted_calls(&s->stages.muted))
		return ": calls were made, and the options show none of them";
	if (l->code == LOSSES_CODE_LOADED)
		return chosen ? ": a library with the chosen functions was loaded, and none of "
				"them was called"
			      : ": a CUDA library was loaded, and none of its functions was called";
	if (chosen)
		return o->cmd  ? ": the program loaded no library that has the chosen functions"
		       : there ? ": no library that has the chosen functions is loaded there"
			       : ": no process loaded a library that has the chosen functions";
	return o->cmd  ? ": the program loaded no CUDA library"
	       : there ? ": no CUDA library is loaded there"
		       : ": no process loaded a CUDA library";
}

static void say_scopes_left_out(const struct session *s)
{
	unsigned long long n = s->stages.scopes_left_out;
	const char *what = n == 1 ? "range or mark is" : "ranges and marks are";

	if (s->o->spans.url || s->o->format->flags & SINKS_SPANS)
		msg_note("%llu %s not shown: %s shorter than --otlp-min", n, what,
			 n == 1 ? "it is" : "they are");
	else
		msg_note("%llu %s not shown: '%s' has no ranges", n, what, s->o->format->ops->name);
}

static void say_totals(const struct session *s, const char *const *muted)
{
	const struct losses *l = &s->losses;
	bool counts = s->plan.capture.count;
	const struct stages_counted *counted = &s->stages.counted;
	uint64_t shown = counts ? counted->calls + muted_unseen(&counted->unseen)
				: l->shown - s->stages.work - s->stages.nscopes;
	const struct ct_estimated none = { 0 }, *unseen = counts ? &counted->unseen : &none;
	char text[1024 + HOLES_TEXT], number[32], margin[96];
	size_t n;

	n = (size_t)snprintf(text, sizeof(text), "%s%s %s",
			     muted_number(number, sizeof(number), shown, unseen),
			     muted_margin(margin, sizeof(margin), shown, unseen),
			     s->o->look.enter_exit ? (shown == 1 ? "row" : "rows")
						   : (shown == 1 ? "call" : "calls"));
	n += say_work(s, text + n, sizeof(text) - n);
	if (s->stages.nscopes)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", %llu scope%s",
				      (unsigned long long)s->stages.nscopes,
				      s->stages.nscopes == 1 ? "" : "s");
	if (l->unfinished && n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", %llu unfinished",
				      (unsigned long long)l->unfinished);
	if (n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", %llu lost%s",
				      (unsigned long long)losses_total(l),
				      holes_unseen(l->holes) ? " of those seen" : "");
	for (int i = 0, any = 0; i < CT_LOSS_END && n < sizeof(text); i++) {
		if (!l->lost[i] || i == CT_LOSS_ORPHAN)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu %s", any++ ? ", " : ": ",
				      (unsigned long long)l->lost[i], loss_text((enum ct_loss)i));
	}
	if (n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", no_calls(s, shown));
	if (n < sizeof(text))
		n += holes_text(l->holes, s->sink_opts.start_ns, "; ", "", text + n,
				sizeof(text) - n);
	if (n < sizeof(text))
		say_muted(&s->stages.muted, muted, counts && !muted_error(unseen), text + n,
			  sizeof(text) - n);
	/* what is missing is said whatever the user does not want to read */
	if (msg_quiet && (losses_total(l) || holes_unseen(l->holes)))
		msg_warn("%s", text);
	else
		msg_note("%s", text);
	say_missing(s);
	if (s->stages.scopes_left_out)
		say_scopes_left_out(s);
	/* the last line of 'record' has them */
	if (s->wants.sums && s->sources[0].ops->recorded && s->stages.work_left_out)
		msg_note("%llu %s in no sum: sums are of kernels, copies and sets of memory",
			 (unsigned long long)s->stages.work_left_out,
			 s->stages.work_left_out == 1 ? "record of a device is"
						      : "records of devices are");
	if (s->wants.sums && s->sources[0].ops->recorded && s->stages.calls_left_out)
		msg_note(s->stages.calls_left_out == 1
				 ? "%llu call is in no sum: it had not returned when the recording "
				   "ended, or this version does not know its function"
				 : "%llu calls are in no sum: they had not returned when the "
				   "recording ended, or this version does not know their functions",
			 (unsigned long long)s->stages.calls_left_out);
	if (s->sources[0].ops->recorded && s->stages.inner_left_out &&
	    (s->wants.sums || s->o->format->flags & SINKS_ROWS))
		msg_note(
			s->stages.inner_left_out == 1
				? "%llu call of the recording is %s: another call made it, and its "
				  "time is a part of that one's%s"
				: "%llu calls of the recording are %s: other calls made them, and "
				  "their time is a part of those%s",
			(unsigned long long)s->stages.inner_left_out,
			s->wants.sums ? "in no sum" : "not shown",
			s->wants.sums ? "" : " (--nested shows them)");
	if (l->scopes_unbegun)
		msg_note(
			l->scopes_unbegun == 1
				? "%llu range ended that had begun before the trace: it is not "
				  "shown"
				: "%llu ranges ended that had begun before the trace: they are not "
				  "shown",
			(unsigned long long)l->scopes_unbegun);
	if (s->unknown_kinds)
		msg_note(
			s->unknown_kinds == 1
				? "%llu record of a newer version is left out: this version does "
				  "not know its kind"
				: "%llu records of a newer version are left out: this version does "
				  "not know their kinds",
			(unsigned long long)s->unknown_kinds);
}

/* Reports how CMD ended. Not needed where the rows show it, nor for a stored recording. */
static void say_program(struct session *s, const int *status)
{
	bool rows = s->o->format->flags & SINKS_ROWS && !s->o->record && !s->o->look.counts_only;
	char how[64];

	if (!status || !*status || rows || session_first(s)->ops->recorded)
		return;
	msg_note("the program %s%s", WIFSIGNALED(*status) ? "was " : "",
		 ended_text(*status, how, sizeof(how)));
}

static void close_sinks(struct session *s)
{
	const struct source_ops *ops = session_first(s)->ops;
	struct sink_end end = {
		.muted = ops->muted ? ops->muted(session_first(s)) : NULL,
		.reason = session_reason(s->reason),
	};
	struct join_counts counts;
	uint64_t stopped_ns;
	int program = s->cmd_status;
	bool unwritten = false;
	int err = 0;

	gather_losses(s);
	join_counts(s->stages.join, &counts);
	end.matched = counts.matched;
	end.unmatched = counts.unmatched;
	end.inferred = counts.inferred;
	end.unscoped = counts.unscoped;
	end.losses = s->losses;
	end.muted_calls = s->stages.muted;
	muted_add_unseen(&end.muted_calls.unseen, &s->stages.counted.unseen);
	/* without the time in which probes were taken off */
	stopped_ns = ops->stopped ? ops->stopped(session_first(s)) : 0;
	end.uptime_ns = (stopped_ns ? stopped_ns : clock_ns(CLOCK_MONOTONIC)) - s->began.h.start_ns;
	if (ops->recorded && s->reason == SESSION_FINISHED) {
		struct source_recorded was;

		ops->recorded(session_first(s), &was);
		end.uptime_ns = was.uptime_ns;
		end.reason = was.reason;
		program = was.program;
	}
	end.program = program < 0 ? NULL : &program;
	for (int i = 0; i < s->nsinks; i++) {
		bool own = s->o->record || s->wants.files[0] || s->wants.files[1] ||
			   s->o->format->flags & SINKS_PATH;
		int e = s->sinks[i].ops->close(&s->sinks[i], &end);

		/* a sink reports by itself what happened to its own file */
		if (e && (own || e == -ENOMEM)) {
			s->error = s->error ? s->error : e;
			s->said |= own && s->error == e;
			unwritten |= own;
		}
	}
	session_say_directly();
	err = out_close(&s->out);
	if (out_report(&s->out, err, "; tracing stopped"))
		s->error = err;
	else if (s->error && !s->said)
		msg_error("tracing stopped: %s", strerror(-s->error));
	msg_rest();
	say_program(s, end.program);
	session_cost_say(s);
	/* how many records did not arrive is not known */
	if (!err && !unwritten && !s->unstarted)
		say_totals(s, end.muted);
}

/* Before others while programs bear probes and hooks, and the reading has its second; not while outputs are made
 * of what there is, which may take long. */
void session_end(struct session *s)
{
	if (!s->o->replay)
		urgent_begin();
	last_drain(s);
	urgent_end();
	progress_close(&s->progress);
	close_sinks(s);
}
