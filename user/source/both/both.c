/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * both.c - see both.h. The hooks come first. What they refuse is written into the table of owners before anything
 * is recorded, and gets probes, by links for single processes: a link for all processes would lie on hooked functions
 * too, and a breakpoint takes the place of a hook. Where there are no such links, all processes get probes.
 *
 * The kernel side is loaded when the first process needs it. The outputs wait for the one of the two sources that is
 * behind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../event/holes/holes.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../util/table/array.h"
#include "../bpf/bpf.h"
#include "../hooks/hooks.h"
#include "../host.h"
#include "../owners.h"
#include "../probe/attach_kind.h"
#include "both.h"
#include "both_merge.h"

#define FDS 16
#define MUTED_MAX 512

struct both {
	const struct capture_plan *plan;
	struct owners *owners;
	struct both_merge *merge; /* of processes that have hooks and probes */
	const bool *paused;
	/* ops NULL: nobody has hooks, or probes */
	struct source hooks, probes;
	struct capture_plan for_probes;
	pid_t *pids; /* that were given to probes when these were opened */
	int npids;
	int epoll; /* of both: the loop has one descriptor of us */
	bool probes_first;
	bool links; /* probes for single processes may be had */
	bool begun;
	uint64_t stopped_ns; /* from then on no call was seen to begin by one of them */
	uint64_t complete_ns;
	const char *muted[MUTED_MAX + 1];
	/* while draining */
	bool draining_probes, nested, got;
	emit_fn emit;
	void *emit_ctx;
};

static bool has(const struct source *s)
{
	return s->ops != NULL;
}

/* The loop waits for both at one descriptor, since probes may be opened while it runs. */
static int watch(struct both *b, struct source *src)
{
	int fd[FDS], n = src->ops->fds(src, fd, FDS);

	for (int i = 0; i < n; i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.fd = fd[i] };

		if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd[i], &e))
			return -errno;
	}
	return 0;
}

static void drop(struct source *src)
{
	if (has(src) && src->priv)
		src->ops->close(src);
	*src = (struct source){ 0 };
}

/* Are there links for single processes? */
static bool has_links(void)
{
	int kind = attach_kind_try(NULL);

	return kind > 0 && attach_kind_pid_links((enum attach_kind)kind);
}

static int prepare(struct source *s, struct capture_plan *plan)
{
	struct both *b = calloc(1, sizeof(*b));
	struct owners_opts opts = { .complete = plan->complete };

	if (!b)
		return -ENOMEM;
	s->priv = b;
	b->plan = plan;
	b->paused = s->paused;
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (b->epoll < 0)
		return -errno;
	b->links = has_links();
	opts.functions = host_initial_pid_ns() && both_merge_suits(plan) && b->links;
	b->owners = owners_open(&opts);
	b->merge = both_merge_open(plan);
	if (!b->owners || !b->merge)
		return -ENOMEM;
	plan->owners = b->owners;
	b->hooks = (struct source){ .ops = &source_hooks, .paused = s->paused, .full = s->full };
	return source_hooks.prepare(&b->hooks, plan);
}

static int open_both(struct source *s, const struct capture_plan *plan)
{
	struct both *b = s->priv;

	b->plan = plan;
	return source_hooks.open(&b->hooks, plan);
}

/* ---- probes for what is given to them ---- */

static int take_given(struct both *b)
{
	pid_t pid;

	while ((pid = owners_next(b->owners)) != 0) {
		if (!array_room(b->pids, b->npids))
			return -ENOMEM;
		b->pids[b->npids++] = pid;
	}
	return 0;
}

static int open_probes(struct source *s, bool apart)
{
	struct both *b = s->priv;
	int err;

	b->for_probes = *b->plan;
	b->for_probes.pids = b->pids;
	b->for_probes.npids = b->npids;
	/* the children of a program that is started here have hooks, or are given to probes by themselves */
	b->for_probes.follow = b->plan->follow && !b->plan->cmd;
	b->for_probes.cmd = NULL;
	b->for_probes.apart = apart;
	b->probes = (struct source){ .ops = &source_bpf, .paused = s->paused, .full = s->full };
	err = source_bpf.open(&b->probes, &b->for_probes);
	if (err)
		drop(&b->probes);
	return err;
}

/* Links for single processes are not to be had: then all of them get probes. */
static int give_all(struct source *s)
{
	struct both *b = s->priv;
	int err;

	msg_note("hooks and probes cannot be beside each other here: all calls are recorded by "
		 "probes");
	err = hooks_give_all(&b->hooks);
	if (!err)
		err = take_given(b);
	return err ? err : open_probes(s, false);
}

/* Calls of functions that were found to have no hook while the process ran were not seen until now. */
static void note_placed(struct both *b, pid_t pid)
{
	uint64_t now = now_ns(), since = owners_waiting_ns(b->owners, pid);
	struct ct_unprobed u = { .h = { .size = sizeof(u),
					.kind = CT_UNPROBED,
					.pid = (uint32_t)pid,
					.start_ns = since,
					.end_ns = now },
				 .ns_pid = (uint32_t)pid,
				 .processes = 1 };
	struct host_task t = { .comm = "" };

	if (b->begun && since) {
		host_task(pid, &t);
		snprintf(u.comm, sizeof(u.comm), "%s", t.comm);
		b->emit(b->emit_ctx, &u.h);
	}
	owners_placed(b->owners, pid, now);
}

/* Functions that have no hook, and no probes either. Of a process that was given as a whole the hooks' source says it. */
static void note_unplaced(struct both *b, pid_t pid)
{
	struct ct_hole hole =
		hole_of((uint32_t)pid, CT_HOLE_CALLS, CT_HOLE_REFUSED, CT_HOLE_UNHOOKED);

	if (owners_of(b->owners, pid) != OWNER_BOTH)
		return;
	hole_when(&hole, owners_waiting_ns(b->owners, pid), CT_HOLE_OPEN);
	hole.count = owners_functions(b->owners, pid);
	b->emit(b->emit_ctx, &hole.h);
}

static int start(struct source *s)
{
	struct both *b = s->priv;
	int err = source_hooks.start(&b->hooks);

	if (!err && !b->plan->cmd)
		err = take_given(b);
	if (!err && b->npids) {
		err = open_probes(s, hooks_any(&b->hooks));
		if (err == -EOPNOTSUPP)
			err = give_all(s);
		if (err == -ESRCH || err == -ENOENT)
			msg_error("a process that was to have probes has ended, or is hidden from "
				  "BPF programs; see 'ps' for those that run");
	}
	if (!err && !b->plan->cmd && !b->npids && !hooks_any(&b->hooks))
		return -ECHILD; /* they have ended, which was said */
	if (!err && b->npids && !hooks_any(&b->hooks))
		drop(&b->hooks);
	if (!err && has(&b->hooks))
		err = watch(b, &b->hooks);
	if (!err && has(&b->probes))
		err = watch(b, &b->probes);
	return err;
}

static void begin(struct source *s)
{
	struct both *b = s->priv;

	if (b->begun)
		return;
	if (has(&b->probes) && !source_bpf.start(&b->probes))
		for (int i = 0; i < b->npids; i++)
			note_placed(b, b->pids[i]);
	b->begun = true;
	if (has(&b->hooks))
		source_hooks.begin(&b->hooks);
}

static void answer(struct source *s)
{
	struct both *b = s->priv;

	if (has(&b->hooks))
		source_hooks.answer(&b->hooks);
}

static int fds(struct source *s, int *fd, int max)
{
	struct both *b = s->priv;

	if (max < 1)
		return 0;
	fd[0] = b->epoll;
	return 1;
}

/* ---- records ---- */

/* What was called behind the end of the trace is not a part of it, although one of the two was still recording. */
static int pass(void *ctx, const struct ct_hdr *rec)
{
	struct both *b = ctx;

	b->got = true;
	if (rec->kind == CT_EXIT)
		owners_exited(b->owners, rec);
	if (b->stopped_ns && (rec->kind == CT_CALL || rec->kind == CT_ENTER) &&
	    rec->start_ns >= b->stopped_ns)
		return both_merge_lost(rec, rec->lost, b->emit, b->emit_ctx);
	if (owners_any_function(b->owners) && owners_of(b->owners, (pid_t)rec->pid) == OWNER_BOTH)
		return both_merge_put(b->merge, rec, b->draining_probes);
	if (!b->draining_probes)
		both_merge_pass(b->merge, rec);
	return b->emit(b->emit_ctx, rec);
}

static int under_way(void *ctx, emit_fn emit, void *emit_ctx)
{
	struct both *b = ctx;

	return has(&b->hooks) ? source_hooks.pending(&b->hooks, 0, emit, emit_ctx) : 0;
}

/* Hands out what both have had to say of processes that have hooks and probes. */
static int flush(struct both *b)
{
	uint64_t now = now_ns();
	struct both_merge_until u = {
		.hooks_ns = has(&b->hooks) ? source_hooks.complete(&b->hooks) : now,
		.probes_ns = has(&b->probes) ? source_bpf.complete(&b->probes) : now,
		.now_ns = now,
		.clock = now_ns,
		.under_way = under_way,
		.ctx = b,
		.paused = b->paused,
		.nested = b->nested,
		.last = b->stopped_ns && !source_paused(b->paused),
	};

	return owners_any_function(b->owners) ? both_merge_flush(b->merge, &u, b->emit, b->emit_ctx)
					      : 0;
}

static bool is_gone(pid_t pid)
{
	char status[4096];

	return host_status(pid, status, sizeof(status)) || !host_status_line(status, "VmSize");
}

/* The first process that needs probes while the trace runs. If the kernel side cannot be loaded, although the process lives, it is not
 * tried again for each further one: hooks would not be read for so long. */
static int open_late(struct source *s, pid_t pid)
{
	struct both *b = s->priv;
	int err;

	if (!b->links || is_gone(pid))
		return -EOPNOTSUPP;
	b->npids = 0;
	if (!array_room(b->pids, b->npids))
		return -ENOMEM;
	b->pids[b->npids++] = pid;
	err = open_probes(s, true);
	if (!err)
		err = source_bpf.start(&b->probes);
	if (!err)
		err = watch(b, &b->probes);
	if (!err)
		return 0;
	drop(&b->probes);
	b->links = err == -EOPNOTSUPP || is_gone(pid);
	return err;
}

/* What was given to probes while the trace runs: a process that has no hooks. Links for it are made at once; if there are no such
 * links, its calls stay unknown, which the hooks' source says, and of single functions we. */
static void place_given(struct source *s)
{
	struct both *b = s->priv;
	pid_t pid;

	while ((pid = owners_next(b->owners)) != 0)
		if (has(&b->probes) ? bpf_take(&b->probes, pid) : open_late(s, pid))
			note_unplaced(b, pid);
		else
			note_placed(b, pid);
}

static int drain_one(struct both *b, struct source *src)
{
	b->draining_probes = src == &b->probes;
	return has(src) ? src->ops->drain(src, pass, b) : 1;
}

static int drain(struct source *s, emit_fn emit, void *ctx)
{
	struct both *b = s->priv;
	int first, second, err;

	b->emit = emit;
	b->emit_ctx = ctx;
	/* in turn: the first one may use up the time of both */
	b->probes_first = !b->probes_first;
	if (b->begun && !b->stopped_ns && has(&b->hooks))
		place_given(s);
	do { /* behind the stop: until there is no more, as what is inside what is decided then */
		b->got = false;
		first = drain_one(b, b->probes_first ? &b->probes : &b->hooks);
		if (first < 0)
			return first;
		second = drain_one(b, b->probes_first ? &b->hooks : &b->probes);
		if (second < 0)
			return second;
	} while (b->stopped_ns && b->got && !source_paused(b->paused));
	err = flush(b);
	return err < 0 ? err : first && second && !err;
}

static uint64_t complete(struct source *s)
{
	struct both *b = s->priv;
	uint64_t ns = UINT64_MAX, of;

	if (has(&b->hooks))
		ns = source_hooks.complete(&b->hooks);
	of = has(&b->probes) ? source_bpf.complete(&b->probes) : UINT64_MAX;
	if (of < ns)
		ns = of;
	ns = both_merge_complete(b->merge, ns);
	/* it does not go back when the second one is opened */
	if (ns > b->complete_ns && ns != UINT64_MAX)
		b->complete_ns = ns;
	return b->complete_ns;
}

static int pending(struct source *s, uint64_t min_age_ns, emit_fn emit, void *ctx)
{
	struct both *b = s->priv;
	int err = 0;

	if (has(&b->hooks))
		err = source_hooks.pending(&b->hooks, min_age_ns, emit, ctx);
	if (!err && has(&b->probes))
		err = source_bpf.pending(&b->probes, min_age_ns, emit, ctx);
	return err;
}

static int call_counts(struct source *s, emit_fn emit, void *ctx)
{
	struct both *b = s->priv;
	int err = 0;

	if (has(&b->hooks))
		err = source_hooks.call_counts(&b->hooks, emit, ctx);
	if (!err && has(&b->probes))
		err = source_bpf.call_counts(&b->probes, emit, ctx);
	return err;
}

static void count_by(struct source *s, uint8_t by)
{
	struct both *b = s->priv;

	if (has(&b->hooks))
		source_hooks.count_by(&b->hooks, by);
	if (has(&b->probes))
		source_bpf.count_by(&b->probes, by);
}

static void nested(struct source *s, bool on)
{
	struct both *b = s->priv;

	b->nested = on;
	if (has(&b->hooks))
		source_hooks.nested(&b->hooks, on);
	if (has(&b->probes))
		source_bpf.nested(&b->probes, on);
}

static uint64_t forgets(struct source *s)
{
	struct both *b = s->priv;

	return (has(&b->hooks) ? source_hooks.forgets(&b->hooks) : 0) +
	       (has(&b->probes) ? source_bpf.forgets(&b->probes) : 0);
}

static bool recent(struct source *s, uint64_t ino, char *name, size_t size)
{
	struct both *b = s->priv;

	return has(&b->probes) && source_bpf.recent(&b->probes, ino, name, size);
}

static void add_muted(struct both *b, int *n, const char *const *names)
{
	for (; names && *names; names++) {
		bool known = false;

		for (int i = 0; i < *n && !known; i++)
			known = !strcmp(b->muted[i], *names);
		if (!known && *n < MUTED_MAX)
			b->muted[(*n)++] = *names;
	}
}

static const char *const *muted(struct source *s)
{
	struct both *b = s->priv;
	int n = 0;

	if (has(&b->hooks))
		add_muted(b, &n, source_hooks.muted(&b->hooks));
	if (has(&b->probes))
		add_muted(b, &n, source_bpf.muted(&b->probes));
	b->muted[n] = NULL;
	return b->muted;
}

static void losses(struct source *s, struct losses *l)
{
	struct both *b = s->priv;
	bool loaded;

	/* the first one of these sets what the second one adds to */
	if (has(&b->probes))
		source_bpf.losses(&b->probes, l);
	loaded = has(&b->probes) && l->code == LOSSES_CODE_LOADED;
	if (has(&b->hooks))
		source_hooks.losses(&b->hooks, l);
	if (loaded)
		l->code = LOSSES_CODE_LOADED;
	losses_add(&l->folded, both_merge_folded(b->merge));
}

/* ---- the end ---- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void stop(struct source *s)
{
	struct both *b = s->priv;

	if (!b)
		return;
	if (has(&b->hooks) && b->hooks.priv)
		source_hooks.stop(&b->hooks);
	if (has(&b->probes))
		source_bpf.stop(&b->probes);
	if (has(&b->hooks) && b->hooks.priv)
		b->stopped_ns = source_hooks.stopped(&b->hooks);
	if (has(&b->probes))
		b->stopped_ns = sooner(b->stopped_ns, source_bpf.stopped(&b->probes));
}

/* A program of the kernel side may have been interrupted before it sent its record. */
static void ended(struct source *s)
{
	struct both *b = s->priv;

	if (has(&b->probes))
		source_bpf.ended(&b->probes);
}

static uint64_t stopped(struct source *s)
{
	return ((struct both *)s->priv)->stopped_ns;
}

static int status(struct source *s)
{
	struct both *b = s->priv;

	return has(&b->hooks) ? source_hooks.status(&b->hooks) : -1;
}

/* The program is started by the hooks' source. */
static pid_t program(struct source *s)
{
	struct both *b = s->priv;

	return has(&b->hooks) ? source_hooks.program(&b->hooks) : 0;
}

static void pass_signal(struct source *s, int sig)
{
	struct both *b = s->priv;

	if (has(&b->hooks))
		source_hooks.signal(&b->hooks, sig);
}

static void close_both(struct source *s)
{
	struct both *b = s->priv;

	if (!b)
		return;
	drop(&b->probes);
	drop(&b->hooks);
	if (b->epoll >= 0)
		close(b->epoll);
	both_merge_close(b->merge);
	owners_close(b->owners);
	free(b->pids);
	free(b);
	s->priv = NULL;
}

const struct source_ops source_both = {
	.name = "both",
	.prepare = prepare,
	.open = open_both,
	.start = start,
	.begin = begin,
	.answer = answer,
	.asked = true,
	.fds = fds,
	.drain = drain,
	.complete = complete,
	.stop = stop,
	.ended = ended,
	.losses = losses,
	.status = status,
	.stopped = stopped,
	.program = program,
	.signal = pass_signal,
	.pending = pending,
	.call_counts = call_counts,
	.count_by = count_by,
	.muted = muted,
	.nested = nested,
	.forgets = forgets,
	.recent = recent,
	.close = close_both,
	.endless = CT_HOLE_CALLS,
};
