/* SPDX-License-Identifier: BSD-2-Clause */
/* call_counts.c - see call_counts.h. Knows the maps and the wire; knows no sink. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <bpf/bpf.h>

#include "../../util/table/array.h"
#include "../../util/now.h"
#include "../muted/sampler.h"
#include "../count_record.h"
#include "call_counts.h"

#define BATCH 512 /* entries, of what is held */
#define BATCH_SIZES 128
/* between two looks for the memory of ended processes in a map of more than */
#define FORGET_NS 10000000000ULL
#define HELD_FEW 65536 /* entries */
/* ended processes remembered between two readings; what others leave stays in the map */
#define ENDED_MAX 65536

struct ended {
	uint32_t pid;
	bool again;	      /* there is a process of this number again */
	uint64_t boottime_ns; /* when it ended */
};

struct call_counts {
	struct call_counts_maps m;
	uint8_t hist; /* enum ct_hist_by */
	bool sizes, memory, timed;
	uint64_t since_ns;
	struct ended *ended;
	size_t nended;
	bool unsure; /* some that have ended may not be among these */
	call_counts_tasks_fn tasks;
	void *tasks_ctx;
	struct ct_entry *entries; /* mapped */
	struct sampler *sampler;  /* NULL: each call is counted */
	uint64_t *free_again;	  /* the same: the ring of places in it */
	struct ct_count_key keys[BATCH_SIZES];
	struct ct_sizes size[BATCH_SIZES];
	/* to take away after a reading */
	struct gone_entries {
		uint32_t *places;
		size_t n;
	} gone;
	struct gone_sizes {
		struct ct_count_key *keys;
		size_t n;
	} gone_sizes;
	/* CT_HIST_BY_FUNCTION: functions that the reading found */
	uint64_t counted[CT_MAX_FUNCS / 64];
	struct leaver {
		uint32_t tgid, start;
	} * leavers; /* ended processes that took memory: what they held is forgotten by and by */
	size_t nleavers;
	uint64_t forgot_ns;
	/* allocations that found no room, in this reading and when there was a look last */
	uint64_t crowded, was_crowded;
};

/* The kernel side may take it: it holds nothing. There are never more places than there is room
 * for. */
static void give_hist(struct call_counts *t, uint32_t place)
{
	t->m.hist_places[*t->m.hists_given % CT_HISTS_MAX] = place;
	__atomic_store_n(t->m.hists_given, *t->m.hists_given + 1, __ATOMIC_RELEASE);
}

static void give_entry(struct call_counts *t, uint32_t place)
{
	t->free_again[*t->m.freed % t->m.entries_max] = place;
	__atomic_store_n(t->m.freed, *t->m.freed + 1, __ATOMIC_RELEASE);
}

static void *map_array(int fd, size_t n, size_t size)
{
	void *p = mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct call_counts *call_counts_open(const struct capture_plan *plan,
				     const struct call_counts_maps *maps)
{
	struct call_counts *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->m = *maps;
	t->hist = plan->count ? plan->hist : CT_HIST_NONE;
	t->sizes = plan->sizes;
	t->memory = plan->memory;
	t->timed = !plan->no_return;
	t->since_ns = clock_ns(CLOCK_MONOTONIC);
	t->entries = map_array(t->m.entries_fd, t->m.entries_max, sizeof(*t->entries));
	t->free_again = map_array(t->m.freed_fd, t->m.entries_max, sizeof(*t->free_again));
	if (!t->entries || !t->free_again) {
		call_counts_close(t);
		return NULL;
	}
	for (uint32_t i = 0; t->hist == CT_HIST_BY_KEY && i < t->m.hists_max; i++)
		give_hist(t, i);
	return t;
}

void call_counts_close(struct call_counts *t)
{
	if (!t)
		return;
	if (t->entries)
		munmap(t->entries, t->m.entries_max * sizeof(*t->entries));
	if (t->free_again)
		munmap(t->free_again, t->m.entries_max * sizeof(*t->free_again));
	free(t->ended);
	free(t->gone.places);
	free(t->gone_sizes.keys);
	free(t->leavers);
	free(t);
}

const struct ct_entry *call_counts_entries(const struct call_counts *t)
{
	return t->entries;
}

void call_counts_sampler(struct call_counts *t, struct sampler *s)
{
	t->sampler = s;
}

void call_counts_sweep(struct call_counts *t, call_counts_tasks_fn tasks, void *ctx)
{
	t->tasks = tasks;
	t->tasks_ctx = ctx;
	t->unsure = true;
}

void call_counts_ended(struct call_counts *t, uint32_t pid, uint64_t at_ns)
{
	if (t->nended >= ENDED_MAX || !array_room(t->ended, t->nended)) {
		t->unsure = true;
		return;
	}
	t->ended[t->nended++] =
		(struct ended){ pid, false,
				at_ns + clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC) };
}

/* By pid, of several of one number the last one first. */
static int by_number(const void *a, const void *b)
{
	const struct ended *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->boottime_ns > y->boottime_ns ? -1 : x->boottime_ns < y->boottime_ns;
}

static int by_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* How many of the entries have ever been used: what comes after them has not. */
static size_t used_entries(const struct call_counts *t)
{
	uint64_t n = __atomic_load_n(t->m.used, __ATOMIC_ACQUIRE);

	return n < t->m.entries_max ? n : t->m.entries_max;
}

/* Processes of which something was counted and which have ended, whether or not a record reported their end. */
static void find_ended(struct call_counts *t)
{
	uint32_t *living, pid = 0;
	struct ct_task *rows = NULL;
	size_t n = 0;
	ssize_t len = t->tasks ? t->tasks(t->tasks_ctx, (void **)&rows) : -1;

	if (len < 0)
		return;
	living = calloc((size_t)len / sizeof(*rows) + 1, sizeof(*living));
	for (size_t i = 0; living && i < (size_t)len / sizeof(*rows); i++)
		if (!rows[i].ended)
			living[n++] = rows[i].tgid;
	free(rows);
	if (!living)
		return;
	qsort(living, n, sizeof(*living), by_u32);
	t->unsure = false;
	for (size_t i = 0; i < used_entries(t); i++) {
		uint32_t tgid = t->entries[i].key.tgid;

		if (tgid && tgid != pid && !bsearch(&tgid, living, n, sizeof(*living), by_u32))
			call_counts_ended(t, tgid, clock_ns(CLOCK_MONOTONIC));
		pid = tgid ? tgid : pid;
	}
	free(living);
}

/* One for each number, and whether it is in use again. A number of another namespace may seem to
 * be: then it is told by time. */
static void look_at_ended(struct call_counts *t)
{
	size_t n = 0;

	if (t->nended)
		qsort(t->ended, t->nended, sizeof(*t->ended), by_number);
	for (size_t i = 0; i < t->nended; i++)
		if (!n || t->ended[n - 1].pid != t->ended[i].pid)
			t->ended[n++] = t->ended[i];
	t->nended = n;
	for (size_t i = 0; i < n; i++)
		t->ended[i].again = !kill((pid_t)t->ended[i].pid, 0) || errno == EPERM;
}

bool call_counts_is_older(uint32_t start, uint64_t ended_boottime_ns)
{
	return (int32_t)((uint32_t)(ended_boottime_ns >> 10) - start) >= 0;
}

static bool has_ended(const struct call_counts *t, const struct ct_count_key *key)
{
	size_t from = 0, to = t->nended;

	while (from < to) {
		size_t mid = (from + to) / 2;
		const struct ended *e = &t->ended[mid];

		if (e->pid == key->tgid)
			return !e->again || call_counts_is_older(key->start, e->boottime_ns);
		if (e->pid < key->tgid)
			from = mid + 1;
		else
			to = mid;
	}
	return false;
}

/* Room for one more; what is not remembered stays in the map, until a sweep. */
#define room_for_gone(t, list, n) (array_room(list, n) || !((t)->unsure = true))

static void forget_gone(struct call_counts *t)
{
	static const struct ct_hist none;

	for (size_t i = 0; i < t->gone.n; i++) {
		struct ct_entry *e = &t->entries[t->gone.places[i]];
		struct ct_progress_key whose = { e->key.tgid, e->key.start };
		uint32_t hist = (uint32_t)e->n.hist - 1;

		if (bpf_map_delete_elem(t->m.call_counts_fd, &e->key))
			continue;
		if (hist < t->m.hists_max && t->hist == CT_HIST_BY_KEY &&
		    !bpf_map_update_elem(t->m.hists_fd, &hist, &none, BPF_ANY))
			give_hist(t, hist);
		if (t->m.shares_fd >= 0 && e->key.by)
			bpf_map_delete_elem(t->m.shares_fd, &whose);
		memset(e, 0, sizeof(*e));
		give_entry(t, t->gone.places[i]);
	}
	t->gone.n = 0;
	for (size_t i = 0; i < t->gone_sizes.n; i++)
		bpf_map_delete_elem(t->m.sizes_fd, &t->gone_sizes.keys[i]);
	t->gone_sizes.n = 0;
}

/* ---- memory of ended processes ---- */

static int by_leaver(const void *a, const void *b)
{
	const struct leaver *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static void remember_leaver(struct call_counts *t, const struct ct_count_key *key)
{
	struct leaver *last = t->nleavers ? &t->leavers[t->nleavers - 1] : NULL;

	if (last && last->tgid == key->tgid && last->start == key->start)
		return;
	if (t->nleavers >= ENDED_MAX || !array_room(t->leavers, t->nleavers))
		return; /* what it held stays in the map */
	t->leavers[t->nleavers++] = (struct leaver){ key->tgid, key->start };
}

/* Takes what ended processes held out of the map: walks all of it, so not often if that is large
 * and has room. Their numbers do not come again with the same start. */
static void forget_held(struct call_counts *t, uint64_t now)
{
	struct ct_held_key keys[BATCH], *gone = NULL;
	uint64_t bytes[BATCH];
	uint32_t in = 0, out = 0, n;
	size_t ngone = 0;
	bool first = true;
	int err;

	if (!t->nleavers || (t->m.held_max > HELD_FEW && t->crowded == t->was_crowded &&
			     now - t->forgot_ns < FORGET_NS))
		return;
	t->was_crowded = t->crowded;
	t->forgot_ns = now;
	qsort(t->leavers, t->nleavers, sizeof(*t->leavers), by_leaver);
	do {
		n = BATCH;
		err = bpf_map_lookup_batch(t->m.held_fd, first ? NULL : &in, &out, keys, bytes, &n,
					   NULL);
		if (err && err != -ENOENT)
			break;
		for (uint32_t i = 0; i < n; i++) {
			struct leaver whose = { keys[i].tgid, keys[i].start };

			if (!bsearch(&whose, t->leavers, t->nleavers, sizeof(whose), by_leaver))
				continue;
			if (!array_room(gone, ngone))
				break;
			gone[ngone++] = keys[i];
		}
		in = out;
		first = false;
	} while (!err);
	for (size_t i = 0; i < ngone; i++)
		bpf_map_delete_elem(t->m.held_fd, &gone[i]);
	free(gone);
	t->nleavers = 0;
}

static void begin(const struct call_counts *t, union count_record *rec,
		  const struct ct_count_key *key, uint64_t now)
{
	count_record_begin(rec, key, t->since_ns, now);
	rec->t.h.flags = has_ended(t, key) ? CT_F_LAST : 0;
}

static int emit_sums(struct call_counts *t, uint32_t at, uint64_t now, emit_fn emit, void *ctx)
{
	/* others add to it meanwhile */
	const volatile struct ct_entry *e = &t->entries[at];
	struct ct_count_key key = e->key;
	struct ct_sums sums = e->n;
	uint32_t hist = (uint32_t)sums.hist - 1;
	union count_record rec;
	int memory;

	if (!key.tgid || !sums.calls)
		return 0;
	memory = t->memory ? api_memory_sign(key.func, &(bool){ false }) : 0;
	begin(t, &rec, &key, now);
	t->crowded += memory > 0 ? sums.unheld : 0;
	t->counted[key.func / 64] |= 1ULL << (key.func % 64);
	count_record_sums(&rec, &key, &sums, t->timed);
	if (t->sampler)
		rec.t.unseen = sampler_unseen(t->sampler, at);
	if (t->hist == CT_HIST_BY_KEY && hist < t->m.hists_max &&
	    !bpf_map_lookup_elem(t->m.hists_fd, &hist, count_record_hist(&rec)))
		count_record_has_hist(&rec);
	if (rec.t.h.flags & CT_F_LAST) {
		if (room_for_gone(t, t->gone.places, t->gone.n))
			t->gone.places[t->gone.n++] = at;
		if (memory > 0)
			remember_leaver(t, &key);
	}
	return emit(ctx, &rec.t.h);
}

/* Those of all processes together. */
static int emit_hists(struct call_counts *t, uint64_t now, emit_fn emit, void *ctx)
{
	union count_record rec;
	int err = 0;

	for (uint32_t func = 0; func < (uint32_t)api_nfuncs && !err; func++) {
		struct ct_count_key key = { .func = (uint16_t)func };

		if (!(t->counted[func / 64] >> (func % 64) & 1))
			continue;
		begin(t, &rec, &key, now);
		if (bpf_map_lookup_elem(t->m.hists_fd, &func, count_record_hist(&rec)))
			continue;
		count_record_has_hist(&rec);
		err = emit(ctx, &rec.t.h);
	}
	return err;
}

static int emit_size(struct call_counts *t, const struct ct_count_key *key,
		     const struct ct_sizes *s, uint64_t now, emit_fn emit, void *ctx)
{
	union count_record rec;

	begin(t, &rec, key, now);
	count_record_sizes(&rec, s);
	if (rec.t.h.flags & CT_F_LAST && room_for_gone(t, t->gone_sizes.keys, t->gone_sizes.n))
		t->gone_sizes.keys[t->gone_sizes.n++] = *key;
	return emit(ctx, &rec.t.h);
}

/* All entries of the map of sizes. */
static int read_sizes(struct call_counts *t, uint64_t now, emit_fn emit, void *ctx)
{
	uint32_t in = 0, out = 0, n;
	bool first = true;
	int err, e = 0;

	do {
		n = BATCH_SIZES;
		err = bpf_map_lookup_batch(t->m.sizes_fd, first ? NULL : &in, &out, t->keys,
					   t->size, &n, NULL);
		if (err && err != -ENOENT)
			return err;
		for (uint32_t i = 0; i < n && !e; i++)
			e = emit_size(t, &t->keys[i], &t->size[i], now, emit, ctx);
		in = out;
		first = false;
	} while (!err && !e);
	return e;
}

static int read_sums(struct call_counts *t, uint64_t now, emit_fn emit, void *ctx)
{
	int err = 0;

	for (size_t i = 0, n = used_entries(t); i < n && !err; i++)
		err = emit_sums(t, (uint32_t)i, now, emit, ctx);
	return err;
}

void call_counts_begin(struct call_counts *t, uint64_t now_ns)
{
	t->since_ns = now_ns;
}

int call_counts_read(struct call_counts *t, uint64_t until_ns, emit_fn emit, void *ctx)
{
	int err;

	t->crowded = 0;
	if (t->sampler)
		sampler_refresh(t->sampler);
	if (t->unsure)
		find_ended(t);
	look_at_ended(t);
	/* sizes first: a process is done with when its last sums have come */
	err = t->sizes ? read_sizes(t, until_ns, emit, ctx) : 0;
	if (!err)
		err = read_sums(t, until_ns, emit, ctx);
	if (!err && t->hist == CT_HIST_BY_FUNCTION)
		err = emit_hists(t, until_ns, emit, ctx);
	forget_gone(t);
	forget_held(t, clock_ns(CLOCK_MONOTONIC));
	t->nended = 0;
	return err;
}
