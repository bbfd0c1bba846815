/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_counts.c - see hooks_counts.h. An area is another user's: a key that makes no sense is left
 * out, and all numbers may be anything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../util/now.h"
#include "../../util/table/hash_map.h"
#include "../agent/agent_process.h"
#include "../count_record.h"
#include "hooks_counts.h"

#define KEYS_MAX 65536
#define PROCESSES_MAX 65536
/* of a cell: in half a year no thread makes as many, and a million cells do not overflow */
#define CALLS_MAX (UINT64_MAX >> 20)
#define AMOUNT_MAX (UINT64_MAX >> 8) /* nanoseconds: two years; bytes: 64 PiB */

#define SUMS_ADD(word, n) ((void)(*(word) += (n)))
#define SUMS_ADD32(word, n) SUMS_ADD(word, n)
#define SUMS_FETCH_ADD(word, n) ((*(word) += (n)) - (n))
#define SUMS_SWAP(word, was, to) (*(word) == (was) && ((*(word) = (to)), true))
#define SUMS_CGROUP() 0
#define SUMS_SPEC const
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "../../../wire/sums.h"

/* The sums of a key; `more` is there if the plan wants histograms or sizes. */
struct item {
	struct ct_count_key key;
	struct ct_sums n;
	uint64_t unseen; /* calls of a muted function, beside those in n */
	union hooks_extra more[];
};

struct whose {
	uint32_t tgid, start;
	uint64_t round; /* the last reading in which it had an area */
	uint64_t asked; /* the last reading in which it was looked whether it still runs */
	bool ended;
};

struct hooks_counts {
	const struct capture_plan *plan;
	const struct hooks_muted *muted;
	uint8_t hist; /* enum ct_hist_by */
	bool more;
	uint64_t since_ns, round;
	/* what was kept, and the sums of this reading, with that */
	struct hash_map kept, now, processes;
	uint64_t lost_kept, lost_now;
	/* CT_HIST_BY_FUNCTION: of processes that were handed out for the last time */
	struct ct_hist *hists;
};

struct hooks_counts *hooks_counts_open(const struct capture_plan *plan,
				       const struct hooks_muted *muted)
{
	struct hooks_counts *c = calloc(1, sizeof(*c));
	size_t size = sizeof(struct item),
	       max = plan->call_counts_max ? plan->call_counts_max : KEYS_MAX;

	if (!c)
		return NULL;
	c->plan = plan;
	c->muted = muted;
	c->hist = plan->hist;
	c->more = plan->hist || plan->sizes;
	c->since_ns = now_ns();
	size += c->more ? sizeof(union hooks_extra) : 0;
	hash_map_open(&c->kept, size, sizeof(struct ct_count_key), max);
	hash_map_open(&c->now, size, sizeof(struct ct_count_key), max);
	hash_map_open(&c->processes, sizeof(struct whose), offsetof(struct whose, round),
		      PROCESSES_MAX);
	if (c->hist == CT_HIST_BY_FUNCTION)
		c->hists = calloc((size_t)api_nfuncs, sizeof(*c->hists));
	if (c->hist != CT_HIST_BY_FUNCTION || c->hists)
		return c;
	hooks_counts_close(c);
	return NULL;
}

void hooks_counts_close(struct hooks_counts *c)
{
	if (!c)
		return;
	hash_map_close(&c->kept);
	hash_map_close(&c->now);
	hash_map_close(&c->processes);
	free(c->hists);
	free(c);
}

/* ---- adding up ---- */

static void add_hist(struct ct_hist *to, const struct ct_hist *h)
{
	for (int i = 0; i < CT_HIST_BUCKETS; i++)
		to->n[i] += h->n[i];
}

/* The sums are in the program's memory, which can contain anything: none becomes larger than one that
 * was counted as it should be. */
static void add_bounded(__u64 *sum, uint64_t n)
{
	*sum = n > CT_SUM_MOST || *sum + n > CT_SUM_MOST ? CT_SUM_MOST : *sum + n;
}

static void add_sizes(struct ct_sizes *to, const struct ct_sizes *s)
{
	for (int which = 0; which < 2; which++) {
		add_bounded(&to->sum[which], s->sum[which]);
		for (int i = 0; i < CT_SIZE_BUCKETS; i++)
			to->n[which][i] += s->n[which][i];
	}
}

static void add_sums(struct ct_sums *to, const struct ct_sums *n)
{
	to->calls += n->calls;
	to->failed += n->failed;
	to->untimed += n->untimed;
	to->ns += n->ns;
	to->squares[0] += n->squares[0];
	to->squares[1] += n->squares[1] + (to->squares[0] < n->squares[0]);
	to->min_not = n->min_not > to->min_not ? n->min_not : to->min_not;
	to->max_ns = n->max_ns > to->max_ns ? n->max_ns : to->max_ns;
	add_bounded(&to->bytes, n->bytes);
	add_bounded(&to->threads, n->threads);
	add_bounded(&to->shared, n->shared);
	to->odd = to->odd + n->odd < to->odd ? UINT32_MAX : to->odd + n->odd;
}

static struct item *item_of(struct hooks_counts *c, struct hash_map *table,
			    const struct ct_count_key *key, uint64_t calls)
{
	bool made;
	struct item *i = hash_map_get(table, key, &made);

	if (!i)
		*(table == &c->kept ? &c->lost_kept : &c->lost_now) += calls;
	return i;
}

static void add_item(struct hooks_counts *c, struct hash_map *table, const struct ct_count_key *key,
		     const struct ct_sums *n, const union hooks_extra *more)
{
	struct item *i = item_of(c, table, key, n->calls);

	if (!i)
		return;
	add_sums(&i->n, n);
	if (more && key->how == CT_BY_SIZE)
		add_sizes(&i->more->sizes, &more->sizes);
	else if (more)
		add_hist(&i->more->hist, &more->hist);
}

static bool makes_sense(const struct hooks_counts *c, const struct ct_count_key *key)
{
	if (key->how == CT_BY_SIZE)
		return c->plan->sizes && key->func < api_nfuncs &&
		       (key->by == CT_OF_LAUNCHES || key->by == CT_OF_COPIES);
	return key->func < api_nfuncs && plan_has(c->plan->capture, key->func) &&
	       key->how <= CT_BY_STREAM;
}

struct adding {
	struct hooks_counts *c;
	struct hash_map *table;
	uint32_t start;
};

static uint64_t at_most(uint64_t n, uint64_t most)
{
	return n < most ? n : most;
}

/* What a process says of itself, so that it cannot make the sums of all processes wrap around. */
static struct ct_sums believable(const struct ct_sums *said)
{
	struct ct_sums n = *said;

	n.calls = at_most(n.calls, CALLS_MAX);
	n.failed = at_most(n.failed, n.calls);
	n.untimed = at_most(n.untimed, n.calls);
	n.ns = at_most(n.ns, AMOUNT_MAX);
	n.bytes = at_most(n.bytes, AMOUNT_MAX);
	return n;
}

static void add_cell(void *ctx, const struct ct_entry *e, const union hooks_extra *more)
{
	struct ct_sums n = believable(&e->n);
	struct adding *a = ctx;
	struct ct_count_key key = e->key;

	key.start = a->start;
	if (makes_sense(a->c, &key))
		add_item(a->c, a->table, &key, &n, a->c->more ? more : NULL);
}

/* The key that calls have that are recorded in a window, if calls are counted by function. */
static void add_muted(struct adding *a, int func, uint32_t tgid, uint64_t calls)
{
	static const __u64 words[CT_MAX_WORDS];
	struct call what = { .words = words, .tgid = tgid, .tid = tgid, .start = a->start };
	struct ct_count_key key;
	struct ct_spec spec;
	struct item *i;

	if (!calls || api_spec(func, API_ARCH_HERE, true, &spec))
		return;
	key_of(&key, &what, (uint16_t)func, &spec, CT_BY_FUNCTION);
	i = item_of(a->c, a->table, &key, calls);
	if (i)
		i->unseen += calls;
}

static uint32_t start_of(uint64_t boottime_ns)
{
	return (uint32_t)(boottime_ns >> 10);
}

static struct whose *hooks_counts_process_of(struct hooks_counts *c, uint32_t tgid, uint32_t start)
{
	struct whose want = { .tgid = tgid, .start = start };
	bool made;

	return hash_map_get(&c->processes, &want, &made);
}

static void add_area(struct hooks_counts *c, struct hash_map *table, struct hooks_ring *r,
		     uint64_t boottime_ns)
{
	struct adding a = { c, table, start_of(boottime_ns) };

	hooks_ring_cells(r, add_cell, &a);
	for (int i = 0; i < hooks_muted_n(c->muted); i++)
		add_muted(&a, hooks_muted_func(c->muted, i), (uint32_t)hooks_ring_pid(r),
			  hooks_ring_muted(r, (uint32_t)i));
}

void hooks_counts_keep(struct hooks_counts *c, struct hooks_ring *r, uint64_t boottime_ns)
{
	add_area(c, &c->kept, r, boottime_ns);
}

void hooks_counts_unfinished(struct hooks_counts *c, const struct ct_call *call,
			     uint64_t boottime_ns)
{
	struct call what = { .words = call->words,
			     .tgid = call->h.pid,
			     .tid = call->h.tid,
			     .start = start_of(boottime_ns) };
	uint64_t words[CT_MAX_WORDS] = { 0 };
	struct ct_count_key key;
	struct ct_spec spec;
	struct item *i;

	if (!plan_has(c->plan->shown, call->func) || call->h.flags & CT_F_HIDDEN ||
	    c->plan->filter.failed_only || c->plan->filter.succeeded_only ||
	    api_spec(call->func, API_ARCH_HERE, true, &spec))
		return;
	memcpy(words, call->words, call->nwords * sizeof(words[0]));
	what.words = (const __u64 *)words;
	key_of(&key, &what, call->func, &spec,
	       c->plan->count_by == CT_BY_ASKED ? CT_BY_FUNCTION : c->plan->count_by);
	i = item_of(c, &c->kept, &key, 1);
	if (!i)
		return;
	i->n.untimed++;
	add_call(&i->n, &what, &spec, false);
}

/* ---- a reading ---- */

void hooks_counts_begin(struct hooks_counts *c)
{
	struct item *i;

	c->round++;
	c->lost_now = c->lost_kept;
	hash_map_clear(&c->now);
	hash_map_each(&c->kept, i)
	{
		struct item *to = item_of(c, &c->now, &i->key, 0);

		add_item(c, &c->now, &i->key, &i->n, c->more ? i->more : NULL);
		if (to)
			to->unseen += i->unseen;
	}
}

void hooks_counts_add(struct hooks_counts *c, struct hooks_ring *r, uint64_t boottime_ns)
{
	struct whose *w =
		hooks_counts_process_of(c, (uint32_t)hooks_ring_pid(r), start_of(boottime_ns));

	if (w)
		w->round = c->round;
	add_area(c, &c->now, r, boottime_ns);
}

/* It has no area any more, and does not run: by exec(2) it may get another area. */
static bool has_ended(struct hooks_counts *c, const struct ct_count_key *key)
{
	struct whose *w = hooks_counts_process_of(c, key->tgid, key->start);

	if (!w || w->round == c->round)
		return false;
	if (w->asked != c->round)
		w->ended = start_of(agent_process_started_ns((pid_t)key->tgid)) != key->start;
	w->asked = c->round;
	return w->ended;
}

static int emit_item(struct hooks_counts *c, const struct item *i, uint64_t now, emit_fn emit,
		     void *ctx)
{
	bool sizes = i->key.how == CT_BY_SIZE;
	union count_record rec;

	if (!i->n.calls && !i->unseen && !sizes)
		return 0;
	count_record_begin(&rec, &i->key, c->since_ns, now);
	rec.t.h.flags = has_ended(c, &i->key) ? CT_F_LAST : 0;
	if (sizes) {
		count_record_sizes(&rec, &i->more->sizes);
		return emit(ctx, &rec.t.h);
	}
	count_record_sums(&rec, &i->key, &i->n, !c->plan->no_return);
	rec.t.unseen.calls = i->unseen < HOOKS_CALLS_MAX ? (int64_t)i->unseen
							 : (int64_t)HOOKS_CALLS_MAX;
	if (c->hist == CT_HIST_BY_KEY) {
		memcpy(count_record_hist(&rec), &i->more->hist, sizeof(i->more->hist));
		count_record_has_hist(&rec);
	}
	return emit(ctx, &rec.t.h);
}

/* Those of all processes together. */
static int emit_hists(struct hooks_counts *c, uint64_t now, emit_fn emit, void *ctx)
{
	struct ct_hist *all = calloc((size_t)api_nfuncs, sizeof(*all));
	struct item *i;
	int err = 0;

	if (!all)
		return -ENOMEM;
	memcpy(all, c->hists, (size_t)api_nfuncs * sizeof(*all));
	hash_map_each(&c->now, i) if (i->key.how != CT_BY_SIZE)
		add_hist(&all[i->key.func], &i->more->hist);
	for (uint32_t func = 0; func < (uint32_t)api_nfuncs && !err; func++) {
		struct ct_count_key key = { .func = (uint16_t)func };
		static const struct ct_hist none;
		union count_record rec;

		if (!memcmp(&all[func], &none, sizeof(none)))
			continue;
		count_record_begin(&rec, &key, c->since_ns, now);
		memcpy(count_record_hist(&rec), &all[func], sizeof(all[func]));
		count_record_has_hist(&rec);
		err = emit(ctx, &rec.t.h);
	}
	free(all);
	return err;
}

/* What was handed out for the last time. */
static void forget_ended(struct hooks_counts *c)
{
	struct whose *w;
	struct item *i;

	hash_map_each(&c->kept, i)
	{
		if (!has_ended(c, &i->key))
			continue;
		if (c->hists && i->key.how != CT_BY_SIZE)
			add_hist(&c->hists[i->key.func], &i->more->hist);
		hash_map_remove(&c->kept, i);
	}
	hash_map_each(&c->processes,
		      w) if (w->round != c->round && (w->ended || w->asked != c->round))
		hash_map_remove(&c->processes, w);
}

int hooks_counts_emit(struct hooks_counts *c, uint64_t until_ns, emit_fn emit, void *ctx)
{
	int err = 0;

	/* sizes first: a process is done with when its last sums have come */
	for (int sizes = 1; sizes >= 0; sizes--)
		for (size_t n = 0; n < c->now.n && !err; n++) {
			const struct item *i = hash_map_at(&c->now, n);

			if ((i->key.how == CT_BY_SIZE) == sizes)
				err = emit_item(c, i, until_ns, emit, ctx);
		}
	if (!err && c->hist == CT_HIST_BY_FUNCTION)
		err = emit_hists(c, until_ns, emit, ctx);
	if (!err)
		forget_ended(c);
	return err;
}

uint64_t hooks_counts_lost(const struct hooks_counts *c)
{
	return c->lost_now > c->lost_kept ? c->lost_now : c->lost_kept;
}
