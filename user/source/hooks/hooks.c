/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks.c - see hooks.h. Processes say by a socket that they are there (hooks_peer); what their hooks
 * write is read out of shared memory (hooks_ring), of all processes together, and handed out in the
 * order of the calls' ends.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../util/refusal.h"
#include "../../util/table/array.h"
#include "../agent/agent_child.h"
#include "../agent/agent_conn.h"
#include "../agent/agent_listener.h"
#include "../agent/agent_env.h"
#include "../agent/agent_refused.h"
#include "../discover/maps.h"
#include "../cgroup.h"
#include "../host.h"
#include "../owners.h"
#include "../python_seek.h"
#include "hooks.h"
#include "hooks_counts.h"
#include "hooks_image.h"
#include "hooks_muted.h"
#include "hooks_peer.h"
#include "hooks_suits.h"
#include "hooks_without.h"

#define READY_MS 10000		/* for the hooks of a process that runs to be on */
#define CHILD_NS 10000000000ULL /* a child's message is younger */
#define CHILDREN_MAX 64		/* of one process in one drain */
/* For how long it is waited for the end of a process whose connection has ended, or for the end of
 * a connection whose process has. A child that it forked may still have to say something. */
#define END_NS 1000000000ULL
#define BYE_NS 2000000000ULL
/* After the stop, calls that began a short time before are waited for: at most so long, as the
 * kernel side has it. */
#define GRACE_NS 60000000ULL
#define GRACE_AGE_NS 100000000ULL
#define GRACE_STEP_US 1000
/* of records that wait for this loop */
#define QUEUE_BYTES (256ULL << 20)

struct hooks_source {
	const struct capture_plan *plan;
	struct agent_listener listener;
	struct agent_env env;
	struct agent_child cmd;
	struct hooks_peer **peers;
	int npeers;
	struct hooks_files *files;
	struct hooks_clock *clock;
	struct python_seek *python;
	struct hooks_reader *reader;
	struct filter_watch *filters; /* NULL: the kernel does not tell of them */
	struct hooks_batch *batch;
	/* calls are counted; the calls under way that are to be added; NULL: they are not */
	struct hooks_counts *counts;
	struct hooks_batch *unfinished_calls;
	struct hooks_muted *muted;
	struct hooks_without *without; /* NULL: it cannot be known who has no hooks */
	uint8_t count_by;
	struct agent_refused places;   /* processes that found none */
	struct hooks_ring_counts gone; /* of processes that have ended */
	bool loaded;		       /* a process that has ended had hooks */
	uint64_t calls, unfinished, stopped_ns;
	/* what ended before the first moment was handed out; before the second one: when the batch is */
	uint64_t complete_ns, batch_ns;
	unsigned int started;
	bool reported, inner, ended;
	bool opening; /* the hooks of processes that run record nothing yet */
};

/* ---- the environment ---- */

static int make_env(struct hooks_source *h, struct capture_plan *plan, const char *file)
{
	const char *theirs = agent_env_value(plan->env, "LD_PRELOAD");
	const char *asan = agent_env_value(plan->env, "ASAN_OPTIONS");
	char path[400];
	int err = agent_env_escape(h->listener.path, path, sizeof(path));

	if (!err)
		err = agent_env_add(&h->env, "LD_PRELOAD=%s%s%s", file,
				    theirs && *theirs ? ":" : "", theirs ? theirs : "");
	/* AddressSanitizer refuses to start behind a library that is preloaded. The last value counts. */
	if (!err)
		err = agent_env_add(&h->env, "ASAN_OPTIONS=verify_asan_link_order=0%s%s",
				    asan && *asan ? ":" : "", asan ? asan : "");
	if (!err)
		err = agent_env_add(&h->env, HOOKS_ENV "=v1 path=%s key=%s", path, h->listener.key);
	return err ? err : agent_env_set(&h->env, plan);
}

/* For a program that is started: its environment leads its hooks here. */
static int open_door(struct hooks_source *h, struct capture_plan *plan)
{
	struct agent_image image;
	char file[300], dir[200];
	int err;

	hooks_image(&image);
	err = agent_image_path(&image, file, sizeof(file), dir, sizeof(dir));
	if (err)
		return err;
	if (strpbrk(file, ": ")) {
		msg_error("%s: LD_PRELOAD takes no path with a blank or a colon: set "
			  "XDG_RUNTIME_DIR to another folder",
			  file);
		return -EINVAL;
	}
	err = agent_listener_open(&h->listener, dir);
	return err ? err : make_env(h, plan, file);
}

/* For hooks_muted_ask(). */
static bool mutes(void *ctx, uint32_t pid, int func)
{
	const struct hooks_source *h = ctx;

	for (int i = 0; i < h->npeers; i++)
		if ((uint32_t)hooks_peer_pid(h->peers[i]) == pid &&
		    hooks_peer_mutes(h->peers[i], func))
			return true;
	return false;
}

static int prepare(struct source *s, struct capture_plan *plan)
{
	struct hooks_source *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	s->priv = h;
	h->cmd.child.fd = -1;
	h->cmd.status = -1;
	h->plan = plan;
	err = agent_listener_init(&h->listener);
	h->files = hooks_files_open(plan);
	h->batch = hooks_batch_open();
	if (hooks_clock_usable())
		h->clock = hooks_clock_open();
	if (plan->stack && plan->python && !(h->python = python_seek_open()))
		return -ENOMEM;
	h->muted = hooks_muted_open(plan);
	if (h->muted)
		hooks_muted_ask(h->muted, mutes, h);
	if (plan->count && h->muted) {
		h->counts = hooks_counts_open(plan, h->muted);
		h->unfinished_calls = hooks_batch_open();
	}
	if (!h->files || !h->batch || !h->muted ||
	    (plan->count && (!h->counts || !h->unfinished_calls)))
		return -ENOMEM;
	return err || !plan->cmd ? err : open_door(h, plan);
}

static int open_source(struct source *s, const struct capture_plan *plan)
{
	struct hooks_source *h = s->priv;

	int err;

	h->plan = plan;
	err = plan->cmd ? agent_child_open(&h->cmd, plan) : 0;
	if (err)
		return err;
	h->filters = filter_watch_open();
	h->without = hooks_without_open(plan, h->files);
	if (plan->cmd)
		hooks_without_add(h->without, h->cmd.child.pid);
	/* calls that are counted have few records */
	h->reader = hooks_reader_open(cgroup_memory_part(QUEUE_BYTES), !plan->count);
	if (!h->reader)
		msg_error("not enough memory for the queue of records");
	return h->reader ? 0 : -ENOMEM;
}

/* ---- processes ---- */

static void add_counts(struct hooks_ring_counts *to, const struct hooks_ring_counts *c)
{
	losses_add(&to->received, c->received);
	losses_add(&to->lost, c->lost);
	losses_add(&to->malformed, c->malformed);
	losses_add(&to->folded, c->folded);
	losses_add(&to->filtered, c->filtered);
	losses_add(&to->deep, c->deep);
	losses_add(&to->left, c->left);
	losses_add(&to->no_block, c->no_block);
	losses_add(&to->no_cell, c->no_cell);
	losses_add(&to->no_stack, c->no_stack);
	losses_add(&to->unfinished, c->unfinished);
	losses_add(&to->forgets, c->forgets);
	losses_add(&to->scopes_dropped, c->scopes_dropped);
	losses_add(&to->scopes_unbegun, c->scopes_unbegun);
}

static void drop(void *ctx, int i)
{
	struct hooks_source *h = ctx;

	h->loaded |= (hooks_peer_on(h->peers[i]) || hooks_peer_partly(h->peers[i]));
	hooks_holes_tell(hooks_peer_holes(h->peers[i]), h->batch);
	hooks_peer_close(h->peers[i]);
	h->peers[i] = h->peers[--h->npeers];
}

static const struct agent_conn *conn_at(const void *ctx, int i)
{
	const struct hooks_source *h = ctx;

	return hooks_peer_conn(h->peers[i]);
}

static int add_peer(struct hooks_source *h, int fd, const struct agent_conn_who *who)
{
	struct hooks_peer_opts o = { .who = *who,
				     .plan = h->plan,
				     .files = h->files,
				     .clock = h->clock,
				     .python = h->python,
				     .muted = h->muted,
				     .filters = h->filters,
				     .reader = h->reader,
				     .closing = h->stopped_ns != 0,
				     .opening = h->opening,
				     .count_by = h->count_by };
	struct hooks_peer *p;
	int err;

	if (!agent_refused_room(&h->places, (struct agent_conns){ h->npeers, conn_at, h }, who,
				drop, h)) {
		msg_warn("the hooks of process %d find no place, because the processes of user %u "
			 "have as many as one user may have: its calls are not shown",
			 (int)who->pid, (unsigned int)who->uid);
		close(fd);
		return -EMFILE;
	}
	if (!array_room(h->peers, h->npeers)) {
		close(fd);
		return -ENOMEM;
	}
	p = hooks_peer_open(fd, &o);
	err = p ? agent_listener_add(&h->listener, fd) : -ENOMEM;
	if (err) {
		hooks_peer_close(p);
		return err;
	}
	h->peers[h->npeers++] = p;
	if (h->stopped_ns)
		hooks_peer_stop(p);
	return 0;
}

static void come(void *ctx, const struct agent_accepted *g)
{
	struct hooks_source *h = ctx;

	/* one that has probes needs no hooks in the program that it becomes */
	if ((h->plan->follow || g->pid == h->cmd.child.pid) &&
	    owners_of(h->plan->owners, g->pid) != OWNER_PROBES)
		add_peer(h, g->fd,
			 &(struct agent_conn_who){ .pid = g->pid,
						   .key = h->listener.key,
						   .neighbour = g->neighbour,
						   .uid = g->uid });
	else
		close(g->fd);
}

/* A process has forked: its child sends the other end of a socketpair that it has made. */
static int take_child(struct hooks_source *h, struct hooks_peer *parent,
		      const struct hooks_birth *b)
{
	const struct hooks_life *l = hooks_peer_life(parent);
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	uint64_t now = now_ns(), ns = b->ns < now && now - b->ns < CHILD_NS ? b->ns : now;
	int err;

	if (getsockopt(b->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) || !h->plan->follow ||
	    h->stopped_ns || !hooks_life_is_kin(l, cred.pid, cred.uid)) {
		close(b->fd);
		return 0;
	}
	err = hooks_life_fork(h->batch, hooks_peer_pid(parent), b->tid, cred.pid, ns);
	if (err)
		close(b->fd);
	else
		add_peer(h, b->fd, &(struct agent_conn_who){ .pid = cred.pid, .uid = cred.uid });
	return err;
}

/* What a process says, and what its children that it forked say. 0 or -ENOMEM. */
static int drain_peer(struct hooks_source *h, struct hooks_peer *p)
{
	struct hooks_birth b;
	int err = 0;

	hooks_peer_drain(p);
	for (int i = 0; i < CHILDREN_MAX && !err && hooks_peer_birth(p, &b); i++) {
		err = take_child(h, p, &b);
		hooks_peer_drain(p);
	}
	return err;
}

/* Where calls under way go, as records that did not return. */
static struct hooks_batch *for_unfinished(struct hooks_source *h)
{
	return h->counts ? h->unfinished_calls : h->batch;
}

struct unfinished {
	struct hooks_source *h;
	uint64_t boottime_ns;
};

static int count_one(void *ctx, const struct ct_hdr *rec)
{
	const struct unfinished *u = ctx;

	u->h->unfinished += !(rec->flags & CT_F_HIDDEN);
	hooks_counts_unfinished(u->h->counts, (const struct ct_call *)rec, u->boottime_ns);
	return 0;
}

/* Calls of a process that did not return are counted, where calls are. */
static void count_unfinished(struct hooks_source *h, const struct hooks_peer *p)
{
	struct unfinished u = { h, hooks_peer_started_ns(p) };

	if (h->counts)
		hooks_batch_emit(h->unfinished_calls, count_one, &u);
}

/* What is in its area makes no sense, and is not read any more. */
static void note_bad(struct hooks_peer *p)
{
	if (!hooks_ring_turned_bad(hooks_peer_ring(p)))
		return;
	msg_warn("process %d: the records of its hooks are invalid: the hooks are ignored, and "
		 "its calls are not shown from here on",
		 (int)hooks_peer_pid(p));
	hooks_holes_gone(hooks_peer_holes(p), CT_HOLE_HOOKS_GONE, now_ns());
	hooks_peer_stop(p);
}

/* All that a process has left, and that it has ended. */
static int last_of(struct hooks_source *h, struct hooks_peer *p)
{
	struct hooks_ring *r = hooks_peer_ring(p);
	uint64_t end = h->stopped_ns ? h->stopped_ns : now_ns();
	struct hooks_ring_counts c;
	int err = 0;

	if (!r)
		return 0;
	/* one that was announced to nobody was not read before */
	err = hooks_reader_add(h->reader, r);
	if (!err)
		err = hooks_reader_last(h->reader, r, h->batch);
	if (err == 1)
		return 1; /* it is asked again when the batch has been handed out */
	note_bad(p);
	if (err != -ENOMEM && !h->stopped_ns)
		err = hooks_ring_inflight(r, CT_F_UNFINISHED, 0, end, -1, for_unfinished(h));
	count_unfinished(h, p);
	if (err != -ENOMEM)
		err = hooks_muted_tell(h->muted, hooks_peer_sent(p), r, end, true, h->batch);
	if (h->counts)
		hooks_counts_keep(h->counts, r, hooks_peer_started_ns(p));
	hooks_ring_counts(r, &c);
	add_counts(&h->gone, &c);
	return err == -ENOMEM ? err : 0;
}

/* The connection of the program that ran in this process before (exec). */
static struct hooks_peer *former(const struct hooks_source *h, const struct hooks_peer *p)
{
	for (int i = 0; i < h->npeers; i++)
		if (h->peers[i] != p && hooks_peer_pid(h->peers[i]) == hooks_peer_pid(p) &&
		    hooks_peer_conn(h->peers[i])->opened_ns < hooks_peer_conn(p)->opened_ns)
			return h->peers[i];
	return NULL;
}

static int announce(struct hooks_source *h, struct hooks_peer *p)
{
	struct hooks_life *l = hooks_peer_life(p);
	struct hooks_ring *r = hooks_peer_ring(p);
	int err;

	h->started++;
	hooks_peer_announced(p);
	/* no call of a program that was loaded with its hooks was missed */
	err = hooks_life_tell(h->batch, l->other || hooks_peer_loaded(p) ? CT_EXEC : CT_PROCESS,
			      l->pid, hooks_peer_conn(p)->opened_ns);
	if (err || !r)
		return err;
	hooks_ring_nested(r, h->inner);
	return hooks_reader_add(h->reader, r);
}

/* The process has ended, and somebody else has its socket. */
static void note_gone(struct hooks_peer *p)
{
	struct hooks_life *l = hooks_peer_life(p);

	if (hooks_peer_state(p) != HOOKS_PEER_ENDED && hooks_life_gone(l) &&
	    now_ns() - l->gone_ns > END_NS)
		hooks_peer_gone(p);
}

/* The connection has ended. */
static void note_end(struct hooks_peer *p)
{
	struct hooks_life *l = hooks_peer_life(p);

	if (hooks_peer_state(p) == HOOKS_PEER_ENDED && !l->ended_ns)
		l->ended_ns = now_ns();
}

/* Another program, p, runs in the process now: the last records of the one before, and the children that
 * it had, come before what the new one is. p may be closed here, for a child. */
static int replace(struct hooks_source *h, struct hooks_peer *old, struct hooks_peer *p)
{
	hooks_peer_gone(old);
	hooks_peer_life(old)->replaced = true;
	hooks_peer_life(p)->other = true;
	return drain_peer(h, old);
}

/* That it has hooks, and uses CUDA. */
static void note_hooks(struct hooks_source *h, const struct hooks_peer *p)
{
	uint64_t at_ns = hooks_peer_conn(p)->opened_ns;

	if (!hooks_peer_ran(p))
		return;
	hooks_without_hooked(h->without, hooks_peer_pid(p), at_ns);
	if (hooks_peer_on(p) || hooks_peer_unhooked(p))
		hooks_without_uses(h->without, hooks_peer_pid(p), at_ns);
}

/* Deals with what the processes say. 0 or -ENOMEM. */
static int drain_peers(struct hooks_source *h)
{
	agent_listener_accept(&h->listener, come, h);
	for (int i = h->npeers - 1; i >= 0; i--) {
		struct hooks_peer *p, *old;
		int err;

		if (i >= h->npeers)
			continue; /* room was made for a child */
		p = h->peers[i];
		note_gone(p);
		err = drain_peer(h, p);
		note_hooks(h, p);
		old = err ? NULL : former(h, p);
		if (old) {
			err = replace(h, old, p);
			if (err)
				return err;
			continue;
		}
		if (!err && hooks_peer_unannounced(p))
			err = announce(h, p);
		if (err)
			return err;
		note_end(p);
		if (hooks_peer_state(p) == HOOKS_PEER_HELLO &&
		    now_ns() - hooks_peer_conn(p)->opened_ns > AGENT_HELLO_NS) {
			msg_warn("process %d: its hooks do not answer: the hooks are ignored, and "
				 "its calls are not shown",
				 (int)hooks_peer_pid(p));
			drop(h, i);
		}
	}
	return 0;
}

/* ---- records ---- */

/* How it ended. For CMD only its parent knows, which has waited for it. */
static int add_exit(struct hooks_source *h, const struct hooks_life *l)
{
	int status = hooks_life_status(l);

	if (l->pid == h->cmd.child.pid && agent_child_ended(&h->cmd))
		status = h->cmd.status;
	return hooks_life_exit(h->batch, l->pid, status, now_ns());
}

static void tell_left(const struct hooks_peer *p)
{
	msg_warn("process %d: its connection to cudatrace has ended, but the process has not: it "
		 "has become a program that cannot have hooks; its further calls are shown by "
		 "--source=probes alone",
		 (int)hooks_peer_pid(p));
}

static int has_functions(void *ctx, const struct ct_vma *v)
{
	const struct hooks_source *h = ctx;

	return hooks_files_have(h->files, v) ? -EEXIST : 0;
}

/* The connection has ended: its further calls are not shown, if there are any. */
static void note_lost(struct hooks_source *h, struct hooks_peer *p, bool gone)
{
	struct hooks_holes *holes = hooks_peer_holes(p);
	struct hooks_life *l = hooks_peer_life(p);
	uint64_t at = hooks_peer_ring(p) ? hooks_ring_gone_ns(hooks_peer_ring(p)) : 0;

	if (hooks_peer_bye(p) && !hooks_peer_ran(p) && !h->stopped_ns)
		hooks_holes_gone(holes, CT_HOLE_NO_HOOKS, hooks_peer_conn(p)->opened_ns);
	if (at)
		hooks_holes_gone(holes, CT_HOLE_HOOKS_GONE, at);
	if (gone || l->replaced || h->stopped_ns || !hooks_peer_left(p))
		return;
	tell_left(p);
	/* another program is looked at by hooks_without, if that can see it */
	if (!hooks_life_executed(l))
		hooks_holes_gone(holes, CT_HOLE_HOOKS_GONE, l->ended_ns);
	else if (!h->without && maps_read(-1, l->pid, has_functions, h) == -EEXIST)
		hooks_holes_gone(holes, CT_HOLE_NO_HOOKS, l->ended_ns);
}

/* What is not seen of it, in records. */
static int tell_holes(struct hooks_source *h, struct hooks_peer *p)
{
	struct hooks_holes *holes = hooks_peer_holes(p);
	const struct hooks_ring *r = hooks_peer_ring(p);

	if (r)
		hooks_holes_interrupted(holes, hooks_ring_interrupted(r));
	if (r && hooks_ring_in_vfork(r))
		hooks_holes_shared(holes);
	return hooks_holes_tell(holes, h->batch);
}

/* The connection has ended. 0: it is dropped; 1: it stays for now; or -ENOMEM. */
static int end_peer(struct hooks_source *h, int i)
{
	struct hooks_peer *p = h->peers[i];
	struct hooks_life *l = hooks_peer_life(p);
	bool gone = hooks_life_gone(l);
	int err;

	if (!gone && !l->replaced && !h->stopped_ns && !hooks_peer_bye(p) &&
	    now_ns() - l->ended_ns < END_NS)
		return 1;
	err = last_of(h, p);
	if (!err && gone && !l->replaced)
		err = add_exit(h, l);
	if (err)
		return err;
	note_lost(h, p, gone);
	err = tell_holes(h, p);
	drop(h, i);
	return err;
}

/* From here on the function with this number is muted everywhere, or it is not. */
static void mute(struct hooks_source *h, int number)
{
	for (int i = 0; i < h->npeers; i++)
		hooks_peer_mute(h->peers[i], number);
}

/* Looks for counted functions that are called too often. */
static void look_for_chatty(struct hooks_source *h)
{
	uint64_t now = now_ns();
	int number;

	if (h->stopped_ns || !hooks_muted_look_due(h->muted, now))
		return;
	hooks_muted_look(h->muted, now);
	for (int i = 0; i < h->npeers; i++)
		if (hooks_peer_ring(h->peers[i]))
			hooks_muted_look_at(h->muted, hooks_peer_ring(h->peers[i]));
	while ((number = hooks_muted_looked(h->muted)) >= 0)
		mute(h, number);
}

/* What one process needs now and then. */
static int look_after(struct hooks_source *h, struct hooks_peer *p)
{
	struct hooks_ring *r = hooks_peer_ring(p);
	uint64_t now = now_ns();
	int err = 0;

	hooks_ring_tick(r);
	err = tell_holes(h, p);
	if (!err && hooks_muted_due(h->muted, hooks_peer_sent(p), now))
		err = hooks_muted_tell(h->muted, hooks_peer_sent(p), r, now, false, h->batch);
	else if (!err)
		err = hooks_muted_state(h->muted, hooks_peer_sent(p), r, h->batch);
	if (err)
		return err;
	if (!h->stopped_ns) {
		err = hooks_reader_sweep(h->reader, r, for_unfinished(h));
		count_unfinished(h, p);
	}
	note_bad(p);
	return err;
}

/* Fills the batch. 0; 1: there may be more; or -ENOMEM. */
static int gather(struct hooks_source *h)
{
	struct hole_text t;
	int err = 0;

	if (h->clock)
		hooks_clock_mark(h->clock);
	look_for_chatty(h);
	for (int i = h->npeers - 1; i >= 0 && err >= 0; i--) {
		struct hooks_peer *p = h->peers[i];

		if (hooks_peer_state(p) == HOOKS_PEER_ENDED)
			err = end_peer(h, i);
		else if (!hooks_peer_unannounced(p) && hooks_peer_ring(p))
			err = look_after(h, p);
	}
	while (err >= 0 && agent_refused_next(&h->places, CT_HOLE_CALLS, &t))
		err = hooks_batch_add(h->batch, &t.hole.h);
	if (err >= 0)
		err = hooks_without_tell(h->without, false, h->batch);
	if (err < 0)
		return err;
	err = hooks_reader_read(h->reader, h->batch);
	h->batch_ns = hooks_reader_complete(h->reader);
	return err;
}

#define ASKED 2		/* of emit_batch(): programs wait for answers */
#define ASK_RECORDS 128 /* how often that is looked for */

struct passing {
	struct hooks_source *h;
	const bool *paused;
	unsigned int n;
	emit_fn emit;
	void *ctx;
};

static bool is_asked(const struct hooks_source *h)
{
	struct pollfd p = { .fd = h->listener.epoll, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static int pass(void *ctx, const struct ct_hdr *rec)
{
	struct passing *p = ctx;
	int err;

	p->h->calls += rec->kind == CT_CALL || rec->kind == CT_ENTER;
	if (rec->kind == CT_CALL && !p->h->stopped_ns && !p->h->counts) {
		int number = hooks_muted_call(p->h->muted, (const struct ct_call *)rec);

		if (number >= 0)
			mute(p->h, number);
	}
	/* where calls are counted, these are too */
	p->h->unfinished += rec->kind == CT_CALL && rec->flags & CT_F_UNFINISHED &&
			    !(rec->flags & CT_F_HIDDEN) && !p->h->counts;
	err = p->emit(p->ctx, rec);
	if (err || source_paused(p->paused))
		return err ? err : 1;
	return ++p->n % ASK_RECORDS == 0 && is_asked(p->h) ? ASKED : 0;
}

/* 0: all of it; 1: a pause, and the rest stays for the next drain; or -errno. What programs ask meanwhile is
 * answered. */
static int emit_batch(struct source *s, emit_fn emit, void *ctx)
{
	struct hooks_source *h = s->priv;
	struct passing p = { .h = h, .paused = s->paused, .emit = emit, .ctx = ctx };
	int err;

	while ((err = hooks_batch_emit(h->batch, pass, &p)) == ASKED) {
		err = drain_peers(h);
		if (err)
			return err;
	}
	if (!err && h->batch_ns > h->complete_ns)
		h->complete_ns = h->batch_ns;
	return err;
}

static void tell_end(struct hooks_source *h)
{
	if (h->reported)
		return;
	h->reported = true;
	agent_listener_tell(&h->listener);
	/* beside probes a row says since when these see it */
	if (!h->started && h->plan->cmd && h->cmd.started && !h->plan->owners)
		msg_warn("no hooks could be put into the program: it is linked statically, has "
			 "more rights than its user (setuid), or has another libc or "
			 "ThreadSanitizer; leave out "
			 "--source=hooks, and probes show its calls");
}

static bool is_running(struct hooks_source *h)
{
	for (int i = 0; i < h->npeers; i++)
		if (hooks_peer_state(h->peers[i]) != HOOKS_PEER_ENDED)
			return true;
	return h->plan->cmd && !agent_child_ended(&h->cmd);
}

/* While the outputs take nothing. What must be read of a program while it waits is not read then: it goes
 * on. */
static int drain_held(struct hooks_source *h)
{
	int err = hooks_batch_full(h->batch) ? 0 : gather(h);

	for (int i = 0; i < h->npeers; i++)
		hooks_peer_was_read(h->peers[i]);
	return err < 0 ? err : 0;
}

static int drain(struct source *s, emit_fn emit, void *ctx)
{
	struct hooks_source *h = s->priv;
	bool ended, more;
	int err;

	/* programs wait for it, whatever the outputs do */
	err = drain_peers(h);
	if (!err && source_paused(s->full))
		return drain_held(h);
	/* what an earlier call left */
	if (!err)
		err = emit_batch(s, emit, ctx);
	if (err)
		return err < 0 ? err : 0;
	/* asked before reading: what the last process wrote is then there */
	ended = h->stopped_ns || !is_running(h);
	err = gather(h);
	more = err == 1;
	if (err >= 0)
		err = emit_batch(s, emit, ctx);
	if (err)
		return err < 0 ? err : 0;
	for (int i = 0; i < h->npeers && !more; i++)
		hooks_peer_was_read(h->peers[i]);
	if (!ended || more || (!h->stopped_ns && h->npeers))
		return 0;
	/* all that hooks have said has been read */
	if (!h->ended)
		err = hooks_without_tell(h->without, true, h->batch);
	h->ended = true;
	if (!err)
		err = emit_batch(s, emit, ctx);
	if (err)
		return err < 0 ? err : 0;
	tell_end(h);
	return 1;
}

/* ---- beginning and end ---- */

static int inject(struct hooks_source *h, pid_t pid)
{
	struct agent_image image;
	int sock;

	hooks_image(&image);
	hooks_without_add(h->without, pid);
	sock = agent_image_inject(&image, pid, "v1 fd=N", h->plan);
	if (sock < 0)
		return sock;
	return add_peer(h, sock, &(struct agent_conn_who){ .pid = pid });
}

/* Until all processes have got so far, for a time. False: some have not. */
static bool wait_for_peers(struct hooks_source *h, enum hooks_peer_state state, uint64_t most_ns)
{
	uint64_t until = now_ns() + most_ns;
	bool waiting = true;

	while (waiting && now_ns() < until) {
		struct pollfd ready = { .fd = h->listener.epoll, .events = POLLIN };

		waiting = false;
		for (int i = 0; i < h->npeers; i++) {
			drain_peer(h, h->peers[i]);
			waiting |= hooks_peer_state(h->peers[i]) < state;
		}
		if (waiting)
			poll(&ready, 1, 20);
	}
	return !waiting;
}

/* Until it has taken its hooks off, or is gone. */
static void await_bye(struct hooks_source *h, struct hooks_peer *p)
{
	uint64_t until = now_ns() + BYE_NS;

	while (hooks_peer_state(p) != HOOKS_PEER_ENDED && now_ns() < until) {
		struct pollfd ready = { .fd = h->listener.epoll, .events = POLLIN };

		drain_peer(h, p);
		if (hooks_peer_state(p) != HOOKS_PEER_ENDED)
			poll(&ready, 1, 20);
	}
}

/* It is traced by probes, all of it. */
static int give(struct hooks_source *h, pid_t pid, const char *why)
{
	hooks_without_remove(h->without, pid);
	msg_note("process %d: %s: its calls are recorded by probes", (int)pid, why);
	return owners_give(h->plan->owners, pid);
}

/* Why a process that has hooks is to have probes in their place; NULL: it is not. */
static const char *lacks(const struct hooks_source *h, const struct hooks_peer *p)
{
	bool whole = owners_opts(h->plan->owners)->complete;

	if (!hooks_peer_ran(p))
		return "its hooks do not answer";
	if (hooks_peer_barred(p))
		return "it may not write to its own code, so no hooks can be put on";
	if (hooks_peer_with_probes(p) > hooks_peer_on(p))
		return "most of its functions cannot have hooks";
	if (hooks_peer_lacks(p) || (whole && hooks_peer_unhooked(p)))
		return "some of its functions cannot have hooks";
	if (whole && hooks_peer_partly(p))
		return "hooks would see only a part of the calls of some functions "
		       "(--complete-calls; probes cost it more)";
	return NULL;
}

/* Takes the hooks off again of those that are to have probes. They have recorded nothing yet. */
static int give_back(struct hooks_source *h)
{
	int err = 0;

	for (int i = h->npeers - 1; i >= 0 && !err; i--) {
		const char *why = lacks(h, h->peers[i]);

		if (!why)
			continue;
		err = give(h, hooks_peer_pid(h->peers[i]), why);
		hooks_peer_give(h->peers[i]);
		await_bye(h, h->peers[i]);
		hooks_peer_close(h->peers[i]);
		h->peers[i] = h->peers[--h->npeers];
	}
	return err;
}

/* Each process is put into by itself: what refuses the hooks gets probes. */
static int bring_or_give(struct hooks_source *h, pid_t pid)
{
	const char *why;
	int err;

	refusal_begin();
	err = hooks_suits(pid);
	if (!err)
		err = inject(h, pid);
	why = refusal_end();
	if (err == -ESRCH)
		msg_warn("%s", why);
	return err < 0 && err != -ESRCH ? give(h, pid, *why ? why : strerror(-err)) : 0;
}

/* Those of the processes that hooks do not enter are given to probes, whatever the reason is. */
static int attach_some(struct hooks_source *h)
{
	int err = 0;

	for (int i = 0; i < h->plan->npids && !err; i++)
		err = bring_or_give(h, h->plan->pids[i]);
	if (err)
		return err;
	wait_for_peers(h, HOOKS_PEER_RUNNING, READY_MS * 1000000ULL);
	return give_back(h);
}

int hooks_give_all(struct source *s)
{
	struct hooks_source *h = s->priv;
	int err = 0;

	while (h->npeers && !err) {
		struct hooks_peer *p = h->peers[h->npeers - 1];

		err = owners_give(h->plan->owners, hooks_peer_pid(p));
		hooks_without_remove(h->without, hooks_peer_pid(p));
		hooks_peer_give(p);
		await_bye(h, p);
		hooks_peer_close(p);
		h->npeers--;
	}
	return err;
}

bool hooks_any(const struct source *s)
{
	return ((const struct hooks_source *)s->priv)->npeers;
}

static void say_waiting(const struct hooks_source *h)
{
	for (int i = 0; i < h->npeers; i++)
		if (hooks_peer_ran(h->peers[i]) && !hooks_peer_on(h->peers[i]) &&
		    !hooks_peer_unhooked(h->peers[i]))
			msg_note("process %d has not loaded CUDA yet: waiting for it",
				 (int)hooks_peer_pid(h->peers[i]));
}

static int attach_all(struct hooks_source *h)
{
	unsigned int in = 0, barred = 0;

	for (int i = 0; i < h->plan->npids; i++)
		inject(h, h->plan->pids[i]);
	/* until their hooks are on, or cannot be */
	wait_for_peers(h, HOOKS_PEER_RUNNING, READY_MS * 1000000ULL);
	for (int i = 0; i < h->npeers; i++) {
		in += hooks_peer_ran(h->peers[i]) && !hooks_peer_barred(h->peers[i]);
		barred += hooks_peer_barred(h->peers[i]);
	}
	if (barred && !in)
		msg_error("no hooks could be put on: run as root, with --source=probes");
	return in ? 0 : -ECHILD;
}

static int start(struct source *s)
{
	struct hooks_source *h = s->priv;
	int err;

	if (!h->plan->cmd) {
		/* counts have no records, and need no agent */
		h->opening = !h->plan->count &&
			     (h->plan->device.kinds || h->plan->npids > 1 || h->plan->owners);
		err = h->plan->owners ? attach_some(h) : attach_all(h);
		if (!err)
			say_waiting(h);
		if (!err && !h->opening && !h->plan->owners)
			msg_verb("ready");
		return err;
	}
	msg_verb("ready");
	err = agent_child_start(&h->cmd);
	if (err)
		msg_error("the program does not start: %s", strerror(-err));
	return err;
}

static int fds(struct source *s, int *fd, int max)
{
	struct hooks_source *h = s->priv;

	if (max < 1)
		return 0;
	fd[0] = h->listener.epoll;
	if (max < 2 || !h->without)
		return 1;
	fd[1] = hooks_without_fd(h->without);
	return 2;
}

static uint64_t complete(struct source *s)
{
	return ((struct hooks_source *)s->priv)->complete_ns;
}

/* Of calls that are not recorded yet there is nothing to read before what programs unload is gone. */
static void answer(struct source *s)
{
	struct hooks_source *h = s->priv;

	for (int i = 0; i < h->npeers; i++) {
		drain_peer(h, h->peers[i]);
		if (h->opening)
			hooks_peer_was_read(h->peers[i]);
	}
}

static void set_phase(struct hooks_source *h, enum ct_phase phase)
{
	for (int i = 0; i < h->npeers; i++)
		if (hooks_peer_ring(h->peers[i]))
			hooks_ring_phase(hooks_peer_ring(h->peers[i]), phase);
}

/* The agents are ready: from here on calls are recorded, in all processes at once. */
static void begin(struct source *s)
{
	struct hooks_source *h = s->priv;

	if (h->plan->cmd || (!h->opening && !h->plan->owners))
		return;
	h->opening = false;
	for (int i = 0; i < h->npeers; i++)
		hooks_peer_opened(h->peers[i]);
	set_phase(h, CT_PHASE_RUNNING);
	msg_verb("ready");
}

static void let_return(struct hooks_source *h)
{
	uint64_t until = now_ns() + GRACE_NS;
	int n = 1;

	while (n && now_ns() < until) {
		n = 0;
		for (int i = 0; i < h->npeers; i++)
			if (hooks_peer_ring(h->peers[i]))
				n += hooks_ring_returning(hooks_peer_ring(h->peers[i]),
							  GRACE_AGE_NS);
		if (n)
			usleep(GRACE_STEP_US);
	}
}

static void stop(struct source *s)
{
	struct hooks_source *h = s->priv;

	if (!h || h->stopped_ns)
		return;
	h->stopped_ns = now_ns();
	set_phase(h, CT_PHASE_CLOSING);
	let_return(h);
	set_phase(h, CT_PHASE_CLOSED);
	/* before the hooks are taken off: what has not returned is unfinished */
	for (int i = 0; i < h->npeers; i++)
		if (hooks_peer_ring(h->peers[i])) {
			hooks_ring_inflight(hooks_peer_ring(h->peers[i]), CT_F_UNFINISHED, 0,
					    h->stopped_ns, -1, for_unfinished(h));
			count_unfinished(h, h->peers[i]);
			/* one that does not answer is not asked again */
			hooks_muted_tell(h->muted, hooks_peer_sent(h->peers[i]),
					 hooks_peer_ring(h->peers[i]), h->stopped_ns, true,
					 h->batch);
		}
	for (int i = 0; i < h->npeers; i++)
		hooks_peer_stop(h->peers[i]);
	/* until all have taken their hooks off, or are gone */
	if (!wait_for_peers(h, HOOKS_PEER_ENDED, BYE_NS))
		msg_warn("the hooks of a process were not removed in time: they record nothing, "
			 "and the process removes them later");
}

static uint64_t stopped(struct source *s)
{
	return ((struct hooks_source *)s->priv)->stopped_ns;
}

static void count_all(const struct hooks_source *h, struct hooks_ring_counts *c)
{
	*c = h->gone;
	for (int i = 0; i < h->npeers; i++) {
		struct hooks_ring_counts one;

		if (!hooks_peer_ring(h->peers[i]))
			continue;
		hooks_ring_counts(hooks_peer_ring(h->peers[i]), &one);
		add_counts(c, &one);
	}
}

static void losses(struct source *s, struct losses *l)
{
	struct hooks_source *h = s->priv;
	struct hooks_ring_counts c;

	count_all(h, &c);
	losses_add(&l->lost[CT_LOSS_RING], c.lost);
	losses_add(&l->lost[CT_LOSS_DEPTH], c.deep);
	losses_add(&l->lost[CT_LOSS_LEFT], c.left);
	losses_add(&l->lost[CT_LOSS_STORAGE], c.no_block);
	losses_add(&l->lost[CT_LOSS_READ], c.malformed);
	losses_add(&l->lost[CT_LOSS_STACK], c.no_stack);
	if (h->counts) {
		losses_add(&l->lost[CT_LOSS_COUNTS], c.no_cell);
		losses_add(&l->lost[CT_LOSS_COUNTS], hooks_counts_lost(h->counts));
	}
	losses_add(&l->folded, c.folded);
	losses_add(&l->filtered, c.filtered);
	losses_add(&l->scopes_dropped, c.scopes_dropped);
	losses_add(&l->scopes_unbegun, c.scopes_unbegun);
	l->unfinished += h->unfinished;
	losses_add(&l->unfinished, c.unfinished);
	l->received += h->calls;
	l->sent += h->calls;
	l->calls += h->calls;
	losses_add(&l->calls, c.lost);
	l->files += hooks_files_count(h->files);
	l->code = h->loaded ? LOSSES_CODE_LOADED : LOSSES_CODE_NONE;
	for (int i = 0; i < h->npeers; i++)
		if ((hooks_peer_on(h->peers[i]) || hooks_peer_partly(h->peers[i])))
			l->code = LOSSES_CODE_LOADED;
}

static int status(struct source *s)
{
	const struct hooks_source *h = s->priv;

	return h->cmd.ended ? h->cmd.status : -1;
}

static pid_t program(struct source *s)
{
	return ((const struct hooks_source *)s->priv)->cmd.child.pid;
}

static void pass_signal(struct source *s, int sig)
{
	const struct hooks_source *h = s->priv;

	agent_child_signal(&h->cmd, sig);
}

static int pending(struct source *s, uint64_t min_age_ns, emit_fn emit, void *ctx)
{
	struct hooks_source *h = s->priv;
	struct hooks_batch *b = hooks_batch_open();
	uint64_t now = now_ns();
	int err = b ? 0 : -ENOMEM;

	for (int i = 0; i < h->npeers && !err && !h->stopped_ns; i++)
		if (hooks_peer_ring(h->peers[i]))
			err = hooks_ring_inflight(hooks_peer_ring(h->peers[i]),
						  CT_F_UNFINISHED | CT_F_PENDING, min_age_ns, now,
						  -1, b);
	if (!err)
		err = hooks_batch_emit(b, emit, ctx);
	hooks_batch_close(b);
	return err;
}

static void inner(struct source *s, bool on)
{
	struct hooks_source *h = s->priv;

	h->inner = on;
	for (int i = 0; i < h->npeers; i++)
		if (hooks_peer_ring(h->peers[i]))
			hooks_ring_nested(hooks_peer_ring(h->peers[i]), on);
}

static int call_counts(struct source *s, emit_fn emit, void *ctx)
{
	struct hooks_source *h = s->priv;

	if (!h->counts)
		return 0;
	hooks_counts_begin(h->counts);
	for (int i = 0; i < h->npeers; i++)
		if (hooks_peer_ring(h->peers[i]))
			hooks_counts_add(h->counts, hooks_peer_ring(h->peers[i]),
					 hooks_peer_started_ns(h->peers[i]));
	return hooks_counts_emit(h->counts, h->stopped_ns ? h->stopped_ns : now_ns(), emit, ctx);
}

static void count_by(struct source *s, uint8_t by)
{
	struct hooks_source *h = s->priv;

	h->count_by = by;
	if (hooks_muted_count_by(h->muted, by))
		for (int i = 0; i < hooks_muted_n(h->muted); i++)
			mute(h, i);
	for (int i = 0; i < h->npeers; i++)
		if (hooks_peer_ring(h->peers[i]))
			hooks_ring_count_by(hooks_peer_ring(h->peers[i]), by);
}

static uint64_t forgets(struct source *s)
{
	struct hooks_ring_counts c;

	count_all(s->priv, &c);
	return c.forgets;
}

static const char *const *muted(struct source *s)
{
	return hooks_muted_names(((struct hooks_source *)s->priv)->muted);
}

static void close_source(struct source *s)
{
	struct hooks_source *h = s->priv;

	if (!h)
		return;
	stop(s);
	while (h->npeers)
		drop(h, h->npeers - 1);
	free(h->peers);
	agent_listener_close(&h->listener);
	agent_child_close(&h->cmd);
	hooks_files_close(h->files);
	hooks_reader_close(h->reader);
	hooks_clock_close(h->clock);
	python_seek_close(h->python);
	hooks_batch_close(h->batch);
	hooks_batch_close(h->unfinished_calls);
	hooks_counts_close(h->counts);
	hooks_muted_close(h->muted);
	filter_watch_close(h->filters);
	hooks_without_close(h->without);
	agent_env_free(&h->env);
	free(h);
	s->priv = NULL;
}

const struct source_ops source_hooks = {
	.name = "hooks",
	.prepare = prepare,
	.open = open_source,
	.start = start,
	.begin = begin,
	.answer = answer,
	.asked = true,
	.fds = fds,
	.drain = drain,
	.complete = complete,
	.stop = stop,
	.losses = losses,
	.status = status,
	.stopped = stopped,
	.program = program,
	.signal = pass_signal,
	.pending = pending,
	.call_counts = call_counts,
	.count_by = count_by,
	.muted = muted,
	.nested = inner,
	.forgets = forgets,
	.close = close_source,
	.endless = CT_HOLE_CALLS,
};
