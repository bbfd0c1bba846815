/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck.c - see stuck.h.
 *
 * The communicators are read as soon as the kernel side is loaded, since we have our least rights from then on, and once
 * more when --over have passed: which rank the others wait for needs no probe, and is printed before anything else.
 *
 * The source is opened as for a trace, but no call that returns sooner than --over leaves the kernel. A first look
 * finds the functions that threads are inside of; only these get probes, because a probe on each function in each
 * process would take longer than all the rest. One look comes as soon as the probes are on, the next when --over have
 * passed: calls that both looks saw are reported, the longest first. If a thread could not be decided about, a few
 * more looks follow; if it still cannot, it is named. With --watch each function has a probe, a look follows every
 * second, a row says what is new, and the communicators come last.
 */
#include "stuck.h"
#include "../util/now.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../session/clocks.h"
#include "../util/io/loop.h"
#include "../session/session_plan.h"
#include "../session/signals.h"
#include "../resolve/stacks/object.h"
#include "../source/host.h"
#include "../stages/stages.h"
#include "asked.h"
#include "stuck_look.h"
#include "stuck_nccl.h"
#include "stuck_python.h"
#include "../util/msg.h"
#include "../util/table/hash_map.h"

#define TICK_NS 50000000ULL
#define WATCH_NS 1000000000ULL /* between two looks of --watch at most... */
#define OFTEN_NS 100000000ULL  /* ...and at least */
#define MAX_FDS 16
#define AGAIN_NS 100000000ULL /* until the next look at threads that could not be decided about */
#define AGAIN_MAX 5
#define DEMANDS_MAX 4	 /* looks that may each show functions without a probe */
#define UNDECIDED_MAX 64 /* named; all are counted */

struct stuck {
	const struct request *o;
	const struct stuck_options *how;
	struct session_plan plan;
	struct source source;
	struct out out;
	struct sink_opts sink_opts;
	struct sink sink;
	struct sink_ops ops;	/* the format's; what happens to programs goes through on_event() */
	struct hash_map others; /* of struct other */
	struct filter filter;	/* lets everything pass, of scopes those of communicators */
	struct stages stages;
	struct objects
		*objects; /* the files of all processes: for finding calls, and for their stacks */
	struct stuck_look *look;
	uint64_t probed[PLAN_WORDS]; /* with plan.capture.on_demand: functions with probes */
	struct stuck_nccl *nccl;
	struct nccl_job job; /* the communicators, after the last look */
	struct asked *asked; /* what their ranks ask for, in calls that were seen */
	struct loop *loop;
	struct loop_watch *tick, *next;
	struct losses losses;
	uint64_t started_ns, looked_ns; /* the end of the last look */
	uint64_t began_ns;		/* the communicators were read the first time */
	int looks;
	struct stuck_row *rows; /* of the last look, which has them */
	int nrows;
	int nstuck, nprocs, nundecided; /* at the last look */
	size_t nabsent;			/* ranks that others wait for */
	int again;			/* looks that were taken because of undecided threads */
	bool judged;			/* the communicators have been printed */
	bool over;
	bool interrupted;
	bool said; /* the error was reported where it happened */
	int error; /* -errno */
};

#define OTHERS_MAX 65536

/* A process that runs on this machine, and whether it has a row. */
struct other {
	uint32_t pid;
	bool shown, announced; /* announced: `about` is valid */
	struct ct_process about;
};

static void finish(struct stuck *s, int error)
{
	if (!s->over)
		s->error = error;
	s->over = true;
	loop_stop(s->loop);
}

/* ---- rows ---- */

static int record(void *ctx, const struct ct_hdr *rec)
{
	return stages_record(&((struct stuck *)ctx)->stages, rec);
}

/* Of the whole machine, what begins and ends is no answer unless it has a row: it is kept until then. */
static int on_event(struct sink *sink, const struct event *ev)
{
	struct stuck *s = (struct stuck *)(void *)((char *)sink - offsetof(struct stuck, sink));
	const struct ct_hdr *h = ev->rec;
	struct other *other;
	bool made;
	int err = asked_event(s->asked, ev);

	if (err || h->kind == CT_SCOPE_END)
		return err;
	if (s->o->npids || (h->kind != CT_PROCESS && h->kind != CT_EXEC && h->kind != CT_EXIT &&
			    h->kind != CT_FORK))
		return s->o->format->ops->event(sink, ev);
	other = hash_map_get(&s->others, &h->pid, &made);
	if (other && other->shown)
		return s->o->format->ops->event(sink, ev);
	if (other && (h->kind == CT_PROCESS || h->kind == CT_EXEC) &&
	    h->size == sizeof(other->about)) {
		memcpy(&other->about, h, sizeof(other->about));
		other->announced = true;
	}
	if (other && h->kind == CT_EXIT)
		hash_map_remove(&s->others, other);
	return 0;
}

/* It has a row: what was kept of it is shown. */
static int show_process(struct stuck *s, uint32_t pid)
{
	struct other *other;
	bool made;

	other = s->o->npids ? NULL : hash_map_get(&s->others, &pid, &made);
	if (!other || other->shown)
		return 0;
	other->shown = true;
	return other->announced ? record(s, &other->about.h) : 0;
}

/* Announces the process, unless the source did. */
static int introduce(struct stuck *s, uint32_t pid, const struct ct_process *about)
{
	const struct process *p;
	int err = show_process(s, pid);

	if (err)
		return err;
	if (!about->h.size)
		return 0;
	p = process_table_find(world_processes(s->stages.world), about->h.pid);
	if (!p)
		return -ENOMEM;
	return p->start_boottime_ns == about->start_boottime_ns ? 0 : record(s, &about->h);
}

/* Announces the name of a thread, except the main thread, whose name is the process's. */
static int name_thread(struct stuck *s, uint32_t pid, uint32_t tid, uint32_t shown_tid)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct ct_thread_name n = { .h = { .size = sizeof(n),
					   .kind = CT_THREAD_NAME,
					   .pid = pid,
					   .tid = tid,
					   .start_ns = now,
					   .end_ns = now } };
	struct host_task task;

	if (tid == pid || !shown_tid || host_task((pid_t)shown_tid, &task))
		return 0;
	snprintf(n.comm, sizeof(n.comm), "%s", task.comm);
	return record(s, &n.h);
}

static int show_row(struct stuck *s, const struct stuck_row *r)
{
	int err = introduce(s, r->call->h.pid, &r->about);

	if (!err)
		err = name_thread(s, r->call->h.pid, r->call->h.tid, r->shown_tid);
	if (!err && r->stack && !s->o->no_python)
		err = stuck_python(r, record, s);
	if (!err && r->stack)
		err = record(s, &r->stack->h);
	return err ? err : record(s, &r->call->h);
}

static uint64_t age_ns(const struct stuck_row *r)
{
	return r->call->h.end_ns > r->call->h.start_ns ? r->call->h.end_ns - r->call->h.start_ns
						       : 0;
}

/* The longest first; if only a lower bound of the time is known, it is used. */
static int by_age(const void *a, const void *b)
{
	const struct stuck_row *x = *(struct stuck_row *const *)a,
			       *y = *(struct stuck_row *const *)b;

	if (age_ns(x) != age_ns(y))
		return age_ns(x) > age_ns(y) ? -1 : 1;
	return x->call->h.tid < y->call->h.tid ? -1 : x->call->h.tid > y->call->h.tid;
}

/* A call that is no longer on the thread's stack, and whose end no probe saw. */
static int show_gone(struct stuck *s, struct stuck_row *r)
{
	bool alive = r->shown_tid && !syscall(SYS_tgkill, r->shown_pid, r->shown_tid, 0);

	r->call->h.flags &= (uint16_t) ~(CT_F_UNFINISHED | CT_F_PENDING);
	r->call->h.flags |= alive ? CT_F_NO_RETURN : CT_F_UNFINISHED;
	free(r->stack); /* of a call that is over */
	r->stack = NULL;
	return show_row(s, r);
}

static int count_processes(struct stuck_row *const *rows, int n)
{
	int procs = 0;

	for (int i = 0; i < n; i++) {
		int j = 0;

		while (j < i && rows[j]->call->h.pid != rows[i]->call->h.pid)
			j++;
		procs += j == i;
	}
	return procs;
}

/* A thread that was inside no call at an earlier look has not been inside one for so long. */
static bool is_undecided(const struct stuck *s, const struct stuck_undecided *u)
{
	return u->at_ns - u->since_ns >= s->how->over_ns;
}

static int count_undecided(const struct stuck *s)
{
	const struct stuck_undecided *list;
	int n = stuck_look_undecided(s->look, &list), undecided = 0;

	for (int i = 0; i < n; i++)
		undecided += is_undecided(s, &list[i]);
	return undecided;
}

static int show_undecided(struct stuck *s, const struct stuck_undecided *u)
{
	union {
		struct ct_event e;
		char room[sizeof(struct ct_event) + 256];
	} r = { .e = { .h = { .kind = CT_EVENT,
			      .flags = CT_F_BEFORE,
			      .pid = u->pid,
			      .tid = u->tid,
			      .start_ns = u->since_ns,
			      .end_ns = u->at_ns },
		       .device = CT_UNKNOWN,
		       .type = CT_EVENT_UNDECIDED } };
	const char *why =
		u->leaving ? "it was on its way out of a call"
			   : "it could not be looked at, since it runs and stops all the time";
	int n, err = introduce(s, u->pid, &u->about);

	if (!err)
		err = name_thread(s, u->pid, u->tid, u->shown_tid);
	if (u->func < api_nfuncs)
		n = snprintf(r.e.text, 200, "%s; it was inside %s before", why,
			     api_funcs[u->func].name);
	else
		n = snprintf(r.e.text, 200, "%s; no call of it was seen", why);
	r.e.text_len = (uint32_t)(n < 200 ? n : 199);
	r.e.h.size = (uint16_t)((sizeof(r.e) + r.e.text_len + 7) & ~(size_t)7);
	return err ? err : record(s, &r.e.h);
}

/* With --watch a look with undecided threads reports them only in its last line. */
static int report_undecided(struct stuck *s)
{
	const struct stuck_undecided *list;
	int n = stuck_look_undecided(s->look, &list), err = 0, shown = 0;

	s->nundecided = count_undecided(s);
	for (int i = 0; i < n && !s->how->watch && !err && shown < UNDECIDED_MAX; i++) {
		if (!is_undecided(s, &list[i]))
			continue;
		err = show_undecided(s, &list[i]);
		shown++;
	}
	return err;
}

static int report(struct stuck *s, struct stuck_row *rows, int n)
{
	struct stuck_row **sorted = malloc(((size_t)n + 1) * sizeof(*sorted));
	int err = sorted ? 0 : -ENOMEM, stuck = 0;

	for (int i = 0; i < n && !err; i++) {
		struct stuck_row *r = &rows[i];

		if (r->gone)
			err = r->shown ? show_gone(s, r) : 0;
		else if (age_ns(r) >= s->how->over_ns && (!r->unsure || r->shown))
			sorted[stuck++] = r;
	}
	if (!err && stuck)
		qsort(sorted, (size_t)stuck, sizeof(*sorted), by_age);
	for (int i = 0; i < stuck && !err; i++) {
		if (!sorted[i]->shown)
			err = show_row(s, sorted[i]);
		sorted[i]->shown = true;
	}
	if (!err) {
		s->nstuck = stuck;
		s->nprocs = count_processes(sorted, stuck);
		err = report_undecided(s);
	}
	if (!err && s->sink.ops->dump)
		err = s->sink.ops->dump(&s->sink);
	if (!err)
		err = out_sync(&s->out);
	free(sorted);
	return err;
}

/* "1s", "500ms", "1500us": as it would be typed. */
static const char *duration_text(uint64_t ns, char *buf, size_t size)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = { { 3600000000000ULL, "h" }, { 60000000000ULL, "m" }, { 1000000000, "s" },
		      { 1000000, "ms" },	 { 1000, "us" },	  { 1, "ns" } };
	size_t i = 0;

	while (ns % units[i].ns)
		i++;
	snprintf(buf, size, "%llu%s", (unsigned long long)(ns / units[i].ns), units[i].unit);
	return buf;
}

static void say_sum(struct stuck *s)
{
	char over[32];

	duration_text(s->how->over_ns, over, sizeof(over));
	if (!s->nstuck)
		out_fmt(&s->out, "no thread%s inside a CUDA call for more than %s",
			s->nundecided ? " is known to be" : "", over);
	else
		out_fmt(&s->out, "%d thread%s of %d process%s inside %s for more than %s",
			s->nstuck, s->nstuck == 1 ? "" : "s", s->nprocs, s->nprocs == 1 ? "" : "es",
			s->nstuck == 1 ? "a CUDA call" : "CUDA calls", over);
	if (s->nundecided)
		out_fmt(&s->out, ", and of %d thread%s it cannot be told", s->nundecided,
			s->nundecided == 1 ? "" : "s");
	out_fmt(&s->out, "\n");
}

/* ---- communicators ---- */

static bool compared(void *ctx, uint64_t hash)
{
	return asked_has(ctx, hash);
}

/* What the last look showed of them; `rows` are the threads that it found. */
static int keep_job(struct stuck *s, const struct stuck_row *rows, size_t n)
{
	int err;

	nccl_job_free(&s->job);
	s->job.compared = compared;
	s->job.ctx = s->asked;
	err = stuck_nccl_job(s->nccl, s->how->over_ns, rows, n, !s->o->no_python, &s->job);
	s->nabsent = nccl_job_absent(&s->job);
	return err;
}

static void show_job(struct stuck *s)
{
	bool json = !(s->o->format->flags & SINKS_TEXT);

	if (json)
		nccl_job_json(&s->job, &s->out);
	else
		nccl_job_print(&s->job, &s->out);
	stuck_nccl_unknown(s->nccl, json, &s->out);
}

/* What the ranks asked for in calls that were seen, until the last look. */
static void show_asked(struct stuck *s)
{
	int shown = asked_print(s->asked, s->looked_ns, s->how->over_ns,
				!(s->o->format->flags & SINKS_TEXT), &s->out);

	s->nabsent += shown > 0;
}

/* ---- the loop ---- */

/* A call that has returned is reported if its row was shown. Others may still teach names. */
static int stuck_record(void *ctx, const struct ct_hdr *rec)
{
	union {
		struct ct_hdr h;
		char room[sizeof(struct ct_call) + CT_DATA_MAX];
	} hidden;
	struct stuck *s = ctx;
	struct stuck_row *r;

	s->losses.received++;
	if (rec->kind != CT_CALL)
		return record(s, rec);
	r = s->how->watch ? stuck_look_returned(s->look, (const struct ct_call *)rec) : NULL;
	if (r && r->shown) {
		r->shown = false; /* this record is the last that is shown of the call */
		return record(s, rec);
	}
	if (rec->size > sizeof(hidden))
		return 0;
	memcpy(&hidden, rec, rec->size);
	hidden.h.flags |= CT_F_HIDDEN;
	return record(s, &hidden.h);
}

static void drain(struct stuck *s)
{
	int err = s->source.ops->drain(&s->source, stuck_record, s);

	if (err >= 0 && out_sync(&s->out))
		finish(s, 0); /* what was wrong is said when the output is closed */
	else if (err == 1)
		finish(s, 0); /* all processes of -p have ended */
	else if (err < 0)
		finish(s, err);
}

static void on_tick(void *ctx)
{
	struct stuck *s = ctx;

	if (s->over)
		return;
	drain(s);
	loop_timer_set(s->tick, TICK_NS);
}

static void on_fd(void *ctx)
{
	struct stuck *s = ctx;

	if (!s->over)
		drain(s);
}

/* Places probes on the functions that threads are inside of. Returns 1 if some of them had none, 0 or -errno. */
static int demand(struct stuck *s, const struct stuck_row *rows, int n)
{
	uint64_t funcs[PLAN_WORDS] = { 0 };
	bool any = false;
	int err;

	for (int i = 0; i < n; i++) {
		uint16_t func = rows[i].call->func;

		if (rows[i].gone || plan_has(s->probed, func))
			continue;
		plan_add(funcs, func);
		plan_add(s->probed, func);
		any = true;
	}
	if (!any)
		return 0;
	err = s->source.ops->probe(&s->source, funcs);
	if (err < 0)
		return err;
	stuck_look_anew(s->look, s->probed);
	return 1;
}

/*
 * The first look of several. Threads may have gone on to other functions while probes were placed on those that they were
 * inside of. A call that begins after it is not older than --over at the look that decides.
 */
static int first_look(struct stuck *s, struct stuck_row **rows)
{
	int n = stuck_look_now(s->look, rows), more = 1;

	for (int i = 0; i < DEMANDS_MAX && s->plan.capture.on_demand && n > 0 && more > 0; i++) {
		more = demand(s, *rows, n);
		if (more)
			n = more < 0 ? more : stuck_look_now(s->look, rows);
	}
	return n;
}

/* The communicators once more, and what they come to. Returns 0 or -errno. */
static int judge(struct stuck *s)
{
	s->judged = true;
	if (stuck_nccl_look(s->nccl) || keep_job(s, s->rows, (size_t)s->nrows))
		return -ENOMEM;
	show_job(s);
	return out_sync(&s->out);
}

/* Nothing that the first look found can be older than --over when that has passed. */
static bool is_clear(const struct stuck *s, int n)
{
	const struct stuck_undecided *list;

	return s->plan.capture.on_demand && !n && !stuck_look_undecided(s->look, &list) &&
	       !stuck_nccl_any(s->nccl);
}

static uint64_t pause_of(const struct stuck *s)
{
	uint64_t over = s->how->over_ns;

	if (s->again)
		return AGAIN_NS;
	if (!s->how->watch)
		return over;
	return over > WATCH_NS ? WATCH_NS : over < OFTEN_NS ? OFTEN_NS : over;
}

/* When the next thing is to be done, after the first look. */
static uint64_t due_ns(const struct stuck *s)
{
	uint64_t look = s->looked_ns + pause_of(s), verdict = s->began_ns + s->how->over_ns;

	return s->judged || s->how->watch || look < verdict ? look : verdict;
}

/* One look at the threads, and, if it decides, the report. Returns 0, 1 when it was the last one, or -errno. */
static int look_and_report(struct stuck *s)
{
	int n = s->looks ? stuck_look_now(s->look, &s->rows) : first_look(s, &s->rows), err = 0;

	s->nrows = n > 0 ? n : 0;
	if (n >= 0 && s->how->watch && stuck_nccl_look(s->nccl))
		n = -ENOMEM;
	s->looked_ns = clock_ns(CLOCK_MONOTONIC);
	if (n < 0)
		return n;
	/* a call that returned while the look was made is gone, and its record is here now */
	drain(s);
	if (s->over)
		return 0;
	if (!s->looks++) {
		if (!is_clear(s, n))
			return 0;
		err = report(s, s->rows, n);
		return err < 0 ? err : 1;
	}
	if (!s->how->watch && count_undecided(s) && s->again++ < AGAIN_MAX)
		return 0;
	if (!s->judged && !s->how->watch)
		err = judge(s);
	else if (s->how->watch)
		err = keep_job(s, s->rows, (size_t)n);
	if (!err)
		err = report(s, s->rows, n);
	return err < 0 ? err : !s->how->watch;
}

static void on_next(void *ctx)
{
	struct stuck *s = ctx;
	uint64_t now;
	int err = 0;

	if (s->over)
		return;
	/* first what has returned, then what has not */
	drain(s);
	if (s->over)
		return;
	/* a timer runs from the moment that the loop woke up */
	now = clock_ns(CLOCK_MONOTONIC);
	if (!s->looks || now >= s->looked_ns + pause_of(s))
		err = look_and_report(s);
	else if (now >= due_ns(s))
		err = judge(s);
	if (s->over)
		return;
	if (err) {
		finish(s, err < 0 ? err : 0);
		return;
	}
	now = clock_ns(CLOCK_MONOTONIC);
	loop_timer_set(s->next, due_ns(s) > now ? due_ns(s) - now : 0);
}

static void on_signals(void *ctx)
{
	struct signals_got got;
	struct stuck *s = ctx;

	while (signals_next(&got)) {
		if (got.sig == SIGCHLD)
			continue;
		s->interrupted = true;
		signals_pending = 1; /* out: do not wait for a stalled reader any more */
		finish(s, 0);
	}
}

/* ---- beginning and end ---- */

/* A thread may hang in any call. Operators are no calls of CUDA, but lie around them, and what a program says of
 * itself returns at once. */
static bool may_hang(const struct api_func *f)
{
	return f->class != API_OPERATOR && f->class != API_RANGE && f->class != API_MARK &&
	       !(f->layer && api_layer_reports(f));
}

/* The first look at communicators: as early as may be. */
static int on_loaded(void *ctx)
{
	struct stuck *s = ctx;

	if (stuck_nccl_look(s->nccl))
		return -ENOMEM;
	s->began_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

static int open_plan(struct stuck *s)
{
	struct capture_plan *c = &s->plan.capture;
	int err = session_plan(&s->plan, s->o, NULL);

	if (err)
		return err;
	for (int i = 0; i < api_nfuncs; i++) {
		plan_remove(c->capture, i);
		plan_remove(c->shown, i);
		if (!may_hang(&api_funcs[i]))
			continue;
		plan_add(c->capture, i);
		plan_add(c->shown, i);
	}
	c->keep_chatty = true;
	c->threads = true;
	c->loaded = on_loaded;
	c->loaded_ctx = s;
	c->on_demand = !s->how->watch && s->source.ops->probe;
	c->stack = PLAN_STACK_COPY;
	c->filter.min_duration_ns = s->how->over_ns;
	return 0;
}

static int open_sink(struct stuck *s)
{
	struct ct_clock began;
	int err;

	clocks_read(&began);
	s->started_ns = began.h.start_ns;
	s->sink_opts = (struct sink_opts){
		.out = &s->out,
		.look.tid = true,
		.stuck = true,
		.look.mangled = s->o->look.mangled,
		.look.full_names = s->o->look.full_names,
		.look.all_frames = s->o->look.all_frames,
		.start_ns = s->started_ns,
		.realtime_offset_ns = began.realtime_ns - began.h.start_ns,
		.version = CT_VERSION,
	};
	hash_map_open_of(&s->others, struct other, pid, OTHERS_MAX);
	s->ops = *s->o->format->ops;
	s->ops.event = on_event;
	s->sink.ops = &s->ops;
	err = s->sink.ops->open(&s->sink, &s->sink_opts);
	if (err)
		msg_error("cannot start the %s output: %s", s->sink.ops->name, strerror(-err));
	else
		s->stages.nsinks = 1;
	return err;
}

static bool recent(void *ctx, uint64_t ino, char *name, size_t size)
{
	struct stuck *s = ctx;

	return s->source.ops->recent(&s->source, ino, name, size);
}

static uint64_t count_forgets(void *ctx)
{
	struct stuck *s = ctx;

	return s->source.ops->forgets(&s->source);
}

static int open_stages(struct stuck *s)
{
	struct resolve_opts opts = {
		.names = true,
		.stacks = true,
		.objects = s->objects,
		.absent = true,
		.recent = s->source.ops->recent ? recent : NULL,
		.forgets = s->source.ops->forgets ? count_forgets : NULL,
		.forgets_ctx = s,
	};

	return stages_open(&s->stages, &opts, false, &s->filter, &s->sink, 0);
}

static int open_all(struct stuck *s)
{
	int err = open_plan(s), fd;

	if (err)
		return err;
	err = out_open_output(&s->out, s->o->output, s->o->append, STDOUT_FILENO);
	if (err)
		return err;
	s->out.stop = &signals_pending;
	s->loop = loop_open();
	s->filter.scopes = 1u << CT_SCOPE_COLLECTIVE | 1u << CT_SCOPE_COMMUNICATOR;
	s->objects = objects_open();
	if (!s->objects || open_stages(s) || !s->loop)
		goto no_memory;
	fd = signals_open();
	if (fd < 0 || !loop_fd(s->loop, fd, on_signals, s))
		goto no_memory;
	s->tick = loop_timer(s->loop, on_tick, s);
	s->next = loop_timer(s->loop, on_next, s);
	s->nccl = stuck_nccl_open(s->o->pids, s->o->npids);
	s->asked = asked_open();
	if (!s->tick || !s->next || !s->nccl || !s->asked ||
	    stuck_look_open(&s->look, &s->source, s->objects))
		goto no_memory;
	if (s->plan.capture.on_demand)
		stuck_look_anew(s->look, s->probed);
	err = s->source.ops->open(&s->source, &s->plan.capture);
	return err ? err : open_sink(s);
no_memory:
	msg_error("not enough memory to start");
	return -ENOMEM;
}

static int run(struct stuck *s)
{
	int fds[MAX_FDS], n, err;

	err = s->source.ops->start(&s->source);
	if (err)
		return err;
	s->said = false;
	n = s->source.ops->fds(&s->source, fds, MAX_FDS);
	/* not the first, the record stream: the tick sees to that */
	for (int i = 1; i < n; i++)
		if (!loop_fd(s->loop, fds[i], on_fd, s))
			return -ENOMEM;
	if (out_flush(&s->out))
		return 0;
	loop_timer_set(s->tick, TICK_NS);
	loop_timer_set(s->next, 0);
	err = loop_run(s->loop);
	return err ? err : s->error;
}

static int close_all(struct stuck *s, int err)
{
	struct sink_end end = { .reason = err		   ? "error"
					  : s->interrupted ? "interrupted"
							   : "finished" };
	int written;

	if (s->sink.ops && s->sink.priv) {
		s->source.ops->stop(&s->source);
		s->source.ops->losses(&s->source, &s->losses);
		s->losses.shown = s->stages.shown;
		end.losses = s->losses;
		end.uptime_ns = clock_ns(CLOCK_MONOTONIC) - s->started_ns;
		if (!err && (!s->interrupted || s->how->watch)) {
			if (!s->judged)
				show_job(s);
			show_asked(s);
		}
		if (!err && s->o->format->flags & SINKS_TEXT && (!s->interrupted || s->how->watch))
			say_sum(s);
		s->sink.ops->close(&s->sink, &end);
	}
	if (err && !s->said)
		msg_error("the threads cannot be examined: %s", strerror(-err));
	hash_map_close(&s->others);
	written = out_report(&s->out, out_close(&s->out), "");
	return err ? err : written;
}

int stuck_run(const struct request *o, const struct stuck_options *how,
	      const struct source_ops *ops)
{
	struct stuck *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return 1;
	s->o = o;
	s->how = how;
	s->source.ops = ops;
	s->said = true;
	err = open_all(s);
	if (!err)
		err = run(s);
	err = close_all(s, err);
	if (!err && s->interrupted && !how->watch) {
		msg_error("interrupted before the second look: give a shorter --over");
		err = -EINTR;
	}
	err = err ? 1 : s->nstuck || s->nabsent ? STUCK_SOME : s->nundecided ? STUCK_UNDECIDED : 0;
	s->source.ops->close(&s->source);
	signals_close();
	stuck_look_close(s->look);
	nccl_job_free(&s->job);
	stuck_nccl_close(s->nccl);
	asked_close(s->asked);
	stages_close(&s->stages);
	objects_close(s->objects);
	loop_close(s->loop);
	free(s);
	return err;
}
