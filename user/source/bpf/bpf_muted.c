/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_muted.c - inside the bpf source: functions that are called so often that they are counted
 * in windows. Connects the parts that notice them (throttle.h), sample them (sampler.h) and hold the probes (attach.h), and makes the records that say how many calls there were (CT_MUTED; where
 * all calls are counted, CT_CALL_COUNT has it). Knows no link.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "../../event/holes/holes.h"
#include "../../event/muted.h"
#include "../../util/table/hash_map.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */

/* between two looks for counted functions that are called too often */
#define LOOK_NS 200000000ULL
#define LOOK_MAX_NS 5000000000ULL
#define LOOK_ENTRIES 10000 /* so many sums more make it so much longer */
/* between two records of one function and process: a recording that is cut off lacks no more of the numbers */
#define TELL_NS 1000000000ULL
#define REPORTED_MAX 65536

struct reported_sums {
	uint64_t counted, failed, timed, ns;
	int64_t calls, below, above;
	uint32_t windows, pad;
};

/* What a function and a process, or a thread of it, came to: when it was told last, and now. */
struct reported {
	struct {
		uint32_t pid, tid, start, func;
	} key;
	uint64_t until_ns;
	struct reported_sums was, now;
};

struct bpf_muted {
	struct sampler *sampler;
	struct throttle *throttle;
	struct hash_map reported;
	uint64_t looked_ns, look_ns, reported_ns; /* look_ns: how long the look is about */
	bool counts;				  /* all calls are counted: CT_CALL_COUNT tells */
	bool duty; /* probes are on for a part of the time, by the plan */
	bool reported_over;
	bool reported_last;
	/* functions whose calls are counted and not sent, and how many of these have their rows */
	int nmuted, stated;
	uint16_t muted[CT_MAX_FUNCS];
};

static void bpf_muted_take_off(void *ctx, const uint64_t *funcs)
{
	struct bpf_source *b = ctx;

	attach_off(b->attach, funcs);
	for (int f = 0; f < api_nfuncs; f++)
		if (plan_has(funcs, f))
			bpf_muted_name(b, f);
}

static bool open_window(void *ctx)
{
	struct bpf_source *b = ctx;
	int err = attach_windows(b->attach) ? attach_window_open(b->attach) : -EOPNOTSUPP;

	if (err)
		msg_warn("functions that are called very often are no longer seen or counted: "
			 "their probes cannot be attached again (%s)",
			 strerror(-err));
	return !err;
}

static void close_window(void *ctx)
{
	attach_window_close(((struct bpf_source *)ctx)->attach);
}

static uint64_t folded(void *ctx)
{
	struct bpf_source *b = ctx;
	struct losses l = { 0 };

	bpf_maps_counters(bpf_map__fd(b->skel->maps.counters), &l);
	return l.folded + l.filtered;
}

int bpf_muted_open(struct bpf_source *b)
{
	struct cudatrace_bpf *skel = b->skel;
	struct sampler_maps maps = {
		.progress_fd = bpf_map__fd(skel->maps.progress),
		.entries = call_counts_entries(b->call_counts),
		.used = (uint64_t *)&skel->bss->entries_used,
		.entries_max = bpf_map__max_entries(skel->maps.entries),
		.sampled = skel->bss->sampled,
		.sampling = &skel->bss->sampling,
		.window = &skel->bss->window,
		.inside = (const void *)skel->bss->inside,
	};
	struct sampler_hooks hooks = {
		.ctx = b,
		.off = bpf_muted_take_off,
		.open = open_window,
		.close = close_window,
		.folded = folded,
	};
	struct bpf_muted *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	b->muting = m;
	hash_map_open(&m->reported, sizeof(struct reported), sizeof(((struct reported *)0)->key),
		      REPORTED_MAX);
	m->counts = b->plan->count;
	m->duty = b->plan->duty > 0 || b->plan->max_cost > 0;
	m->throttle = throttle_open(m->duty ? THROTTLE_RATE_DUTY : THROTTLE_RATE);
	m->sampler = sampler_open(b->plan, &maps, &hooks, b->pair_ns);
	if (!m->throttle || !m->sampler)
		return -ENOMEM;
	if (m->duty && b->kind != ATTACH_SESSION && b->kind != ATTACH_MULTI) {
		msg_error("%s: probes of this kind cannot be switched on and off quickly; the "
			  "kinds session and multi can (Linux 6.6 or later)",
			  b->plan->duty > 0 ? "--duty" : "--max-cost");
		return -EOPNOTSUPP;
	}
	call_counts_sampler(b->call_counts, m->sampler);
	return 0;
}

void bpf_muted_close(struct bpf_source *b)
{
	if (!b->muting)
		return;
	sampler_close(b->muting->sampler);
	throttle_close(b->muting->throttle);
	hash_map_close(&b->muting->reported);
	free(b->muting);
	b->muting = NULL;
}

int bpf_muted_fd(const struct bpf_source *b)
{
	return b->muting ? sampler_fd(b->muting->sampler) : -1;
}

/* ---- noticing ---- */

void bpf_muted_name(struct bpf_source *b, int func)
{
	for (int i = 0; i < b->nmuted; i++)
		if (b->muted[i] == api_funcs[func].name)
			return;
	if (b->nmuted < BPF_MUTED_MAX)
		b->muted[b->nmuted++] = api_funcs[func].name;
}

static void notice(void *ctx, uint32_t pid, uint32_t func, uint64_t calls, uint64_t now)
{
	struct bpf_source *b = ctx;
	struct bpf_muted *m = b->muting;

	if (!sampler_may(m->sampler, func) || sampler_since(m->sampler, func) ||
	    !throttle_calls(m->throttle, pid, func, calls, now) || !sampler_rate(m->sampler))
		return;
	sampler_notice(m->sampler, func, pid);
	bpf_muted_name(b, (int)func);
	if (!m->counts && m->nmuted < CT_MAX_FUNCS)
		m->muted[m->nmuted++] = (uint16_t)func;
	if (m->duty) {
		msg_verb("process %u calls %s %s: its probes are on for a part of the time from "
			 "here on",
			 pid, api_funcs[func].name, throttle_text(m->throttle));
		return;
	}
	msg_note("process %u calls %s %s: from here on its calls are counted%s, in short windows, "
		 "and their number is an estimate (-e %s or --keep-chatty %s each)",
		 pid, api_funcs[func].name, throttle_text(m->throttle),
		 m->counts ? "" : " and not shown", api_funcs[func].name,
		 m->counts ? "counts" : "shows");
}

/* A look goes through all sums: where there are many of them, it comes seldom. */
static uint64_t look_every(const struct bpf_source *b)
{
	uint64_t ns = LOOK_NS + __atomic_load_n(&b->skel->bss->entries_used, __ATOMIC_RELAXED) *
					LOOK_NS / LOOK_ENTRIES;

	return ns < LOOK_MAX_NS ? ns : LOOK_MAX_NS;
}

/* Calls of a longer time than the usual one are told as if they were of that. */
static void notice_counted(void *ctx, uint32_t pid, uint32_t func, uint64_t calls, uint64_t now)
{
	const struct bpf_muted *m = ((const struct bpf_source *)ctx)->muting;
	double usual = m->look_ns > 2 * LOOK_NS ? (double)LOOK_NS / (double)m->look_ns : 1;

	notice(ctx, pid, func, (uint64_t)((double)calls * usual), now);
}

void bpf_muted_call(struct bpf_source *b, const struct ct_call *c)
{
	if (b->muting && !b->stopped)
		notice(b, c->h.pid, c->func, 1, c->h.end_ns);
}

void bpf_muted_ended(struct bpf_source *b, uint32_t pid, uint64_t at_ns)
{
	if (b->muting)
		sampler_ended(b->muting->sampler, pid, at_ns);
}

/* ---- telling ---- */

/* Adds the counts of an entry to the report about its function and process. */
static int take_call_count(void *ctx, const struct ct_hdr *h)
{
	const struct ct_call_count *t = (const struct ct_call_count *)h;
	struct bpf_muted *m = ctx;
	struct reported want = { .key = { h->pid, h->tid, t->start, t->func } }, *reported;
	bool made;

	reported = hash_map_get(&m->reported, &want.key, &made);
	if (!reported)
		return 0;
	if (made)
		reported->until_ns = sampler_since(m->sampler, t->func);
	reported->now.counted += t->sums.calls;
	reported->now.failed += t->sums.failed;
	reported->now.timed += t->sums.timed;
	reported->now.ns += t->sums.ns;
	reported->now.calls += t->unseen.calls;
	reported->now.below += t->unseen.below;
	reported->now.above += t->unseen.above;
	reported->now.windows = sampler_windows(m->sampler, t->func);
	return 0;
}

/* What has come since it was told last. */
static int bpf_muted_tell(struct reported *t, uint64_t now, emit_fn emit, void *ctx)
{
	union {
		struct ct_muted m;
		char room[sizeof(struct ct_muted) + 512];
	} rec;
	const struct reported_sums *was = &t->was, *is = &t->now;
	int err = 0;

	memset(&rec, 0, sizeof(rec));
	muted_name(&rec.m, (int)t->key.func);
	rec.m.h.pid = t->key.pid;
	rec.m.h.tid = t->key.tid;
	rec.m.h.start_ns = t->until_ns < now ? t->until_ns : now;
	rec.m.h.end_ns = now;
	rec.m.counted = is->counted - was->counted;
	rec.m.failed = is->failed - was->failed;
	rec.m.timed = is->timed - was->timed;
	rec.m.ns = is->ns - was->ns;
	rec.m.windows = is->windows - was->windows;
	rec.m.unseen = (struct ct_estimated){ is->calls - was->calls, is->below - was->below,
					      is->above - was->above };
	if (rec.m.counted || rec.m.unseen.calls || rec.m.unseen.below || rec.m.unseen.above)
		err = emit(ctx, &rec.m.h);
	t->was = t->now;
	t->until_ns = now;
	return err;
}

/* States that the calls of a function have no records: from when, and at the end until when. CT_MUTED has their
 * numbers. */
static int bpf_muted_state(struct bpf_source *b, uint16_t func, uint64_t until_ns, emit_fn emit,
			   void *ctx)
{
	struct hole_text t = { .hole = hole_of(0, CT_HOLE_CALLS, CT_HOLE_MUTED,
					       CT_HOLE_THROTTLED) };

	hole_when(&t.hole, sampler_since(b->muting->sampler, func), until_ns);
	hole_say(&t, api_funcs[func].name);
	return emit(ctx, &t.hole.h);
}

static int state_new(struct bpf_source *b, emit_fn emit, void *ctx)
{
	struct bpf_muted *m = b->muting;
	int err = 0;

	while (m->stated < m->nmuted && !err)
		err = bpf_muted_state(b, m->muted[m->stated++], CT_HOLE_OPEN, emit, ctx);
	return err;
}

static int state_ends(struct bpf_source *b, emit_fn emit, void *ctx)
{
	struct bpf_muted *m = b->muting;
	int err = 0;

	for (int i = 0; i < m->stated && !err; i++)
		err = bpf_muted_state(b, m->muted[i], m->reported_ns, emit, ctx);
	return err;
}

static int tell_all(struct bpf_source *b, emit_fn emit, void *ctx)
{
	struct bpf_muted *m = b->muting;
	uint64_t now = bpf_drain_until(b);
	int err;

	m->reported_ns = now;
	for (size_t i = 0; i < m->reported.n; i++)
		((struct reported *)hash_map_at(&m->reported, i))->now =
			(struct reported_sums){ 0 };
	err = call_counts_read(b->call_counts, now, take_call_count, m);
	for (size_t i = 0; i < m->reported.n && !err; i++) {
		struct reported *t = hash_map_at(&m->reported, i);

		/* one of a process that has ended is not among the counts any more */
		if (!t->now.counted && !t->now.calls)
			continue;
		err = bpf_muted_tell(t, now, emit, ctx);
	}
	return err;
}

/* Says once that the limit cannot be held. */
static void tell_over(struct bpf_source *b)
{
	struct bpf_muted *m = b->muting;
	double kept = sampler_kept_cost(m->sampler);

	if (m->reported_over || kept <= 0)
		return;
	m->reported_over = true;
	msg_warn("the probes that are never switched off cost %.2g %% of the programs' CPU time, "
		 "more than --max-cost allows: they count each call that handles memory or waits, "
		 "and each call of a function named with -e (-e says which functions are probed at "
		 "all)",
		 kept * 100);
}

int bpf_muted_step(struct bpf_source *b, emit_fn emit, void *ctx)
{
	struct bpf_muted *m = b->muting;
	uint64_t now;
	int err;

	if (!m || m->reported_last)
		return 0;
	err = state_new(b, emit, ctx);
	if (err)
		return err;
	if (b->stopped) {
		m->reported_last = true;
		if (m->counts || !sampler_any(m->sampler))
			return 0;
		err = tell_all(b, emit, ctx);
		return err ? err : state_ends(b, emit, ctx);
	}
	now = now_ns();
	if (m->counts && now - m->looked_ns >= look_every(b)) {
		m->look_ns = m->looked_ns ? now - m->looked_ns : LOOK_NS;
		m->looked_ns = now;
		sampler_cost(m->sampler);
		tell_over(b);
		if (m->duty && sampler_rate(m->sampler))
			throttle_least(m->throttle, sampler_rate(m->sampler));
		sampler_look(m->sampler, notice_counted, b);
	}
	sampler_step(m->sampler);
	if (m->counts || !sampler_any(m->sampler) || now - m->reported_ns < TELL_NS)
		return 0;
	if (!m->reported_ns) {
		m->reported_ns = now;
		return 0;
	}
	return tell_all(b, emit, ctx);
}

void bpf_muted_cost(const struct bpf_source *b, struct probe_cost *c)
{
	if (b->muting)
		sampler_tell_cost(b->muting->sampler, c);
}

void bpf_muted_stop(struct bpf_source *b)
{
	if (b->muting)
		sampler_stop(b->muting->sampler);
}
