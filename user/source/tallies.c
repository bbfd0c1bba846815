/* SPDX-License-Identifier: BSD-2-Clause */
/* tallies.c - see tallies.h. Knows the maps and the wire; knows no sink. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "../util/now.h"
#include "tallies.h"

#define BATCH 512 /* entries, of sums */
#define BATCH_SIZES 128
#define ENDED_MAX 65536 /* ended processes remembered between two readings; what others leave stays in the map */

struct ended {
	uint32_t pid;
	bool again; /* there is a process of this number again */
	uint64_t boottime_ns; /* when it ended */
};

struct tallies {
	int sums_fd, hists_fd, sizes_fd;
	uint8_t hist; /* enum ct_hist_by */
	bool sizes;
	uint64_t since_ns;
	struct ended *ended;
	size_t nended, cap_ended;
	bool unsure; /* some that have ended may not be among these */
	tallies_tasks_fn tasks;
	void *tasks_ctx;
	struct ct_tally_key keys[BATCH];
	struct ct_sums sums[BATCH];
	struct ct_sizes size[BATCH_SIZES];
	struct gone {
		struct ct_tally_key *keys; /* entries to delete after a reading */
		size_t n, cap;
	} gone_sums, gone_sizes;
};

struct tallies *tallies_open(const struct capture_plan *plan, int sums_fd, int hists_fd, int sizes_fd)
{
	struct tallies *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->sums_fd = sums_fd;
	t->hists_fd = hists_fd;
	t->sizes_fd = sizes_fd;
	t->hist = plan->hist;
	t->sizes = plan->sizes;
	t->since_ns = clock_ns(CLOCK_MONOTONIC);
	return t;
}

void tallies_close(struct tallies *t)
{
	if (!t)
		return;
	free(t->ended);
	free(t->gone_sums.keys);
	free(t->gone_sizes.keys);
	free(t);
}

void tallies_sweep(struct tallies *t, tallies_tasks_fn tasks, void *ctx)
{
	t->tasks = tasks;
	t->tasks_ctx = ctx;
	t->unsure = true;
}

void tallies_ended(struct tallies *t, uint32_t pid, uint64_t at_ns)
{
	struct ended *more;

	if (t->nended == t->cap_ended) {
		more = t->cap_ended < ENDED_MAX ? realloc(t->ended, (t->cap_ended + 64) * 2 * sizeof(*more)) : NULL;
		if (!more) {
			t->unsure = true;
			return;
		}
		t->ended = more;
		t->cap_ended = (t->cap_ended + 64) * 2;
	}
	t->ended[t->nended++] = (struct ended){ pid, false, at_ns + clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC) };
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

/* Processes of which something was counted and which are not there any more, whoever told of their end or did not. */
static void find_ended(struct tallies *t)
{
	uint32_t *living, pid = 0;
	struct ct_task *rows = NULL;
	struct ct_tally_key key, next;
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
	for (int err = bpf_map_get_next_key(t->sums_fd, NULL, &next); !err; err = bpf_map_get_next_key(t->sums_fd, &key, &next)) {
		key = next;
		if (key.tgid != pid && !bsearch(&key.tgid, living, n, sizeof(*living), by_u32))
			tallies_ended(t, key.tgid, clock_ns(CLOCK_MONOTONIC));
		pid = key.tgid;
	}
	free(living);
}

/* One for each number, and whether it is in use again. A number of another namespace may seem to be: then it is told by time. */
static void look_at_ended(struct tallies *t)
{
	size_t n = 0;

	qsort(t->ended, t->nended, sizeof(*t->ended), by_number);
	for (size_t i = 0; i < t->nended; i++)
		if (!n || t->ended[n - 1].pid != t->ended[i].pid)
			t->ended[n++] = t->ended[i];
	t->nended = n;
	for (size_t i = 0; i < n; i++)
		t->ended[i].again = !kill((pid_t)t->ended[i].pid, 0) || errno == EPERM;
}

bool tallies_is_older(uint32_t start, uint64_t ended_boottime_ns)
{
	return (int32_t)((uint32_t)(ended_boottime_ns >> 10) - start) >= 0;
}

static bool has_ended(const struct tallies *t, const struct ct_tally_key *key)
{
	size_t from = 0, to = t->nended;

	while (from < to) {
		size_t mid = (from + to) / 2;
		const struct ended *e = &t->ended[mid];

		if (e->pid == key->tgid)
			return !e->again || tallies_is_older(key->start, e->boottime_ns);
		if (e->pid < key->tgid)
			from = mid + 1;
		else
			to = mid;
	}
	return false;
}

static void remember_gone(struct tallies *t, struct gone *g, const struct ct_tally_key *key)
{
	if (g->n == g->cap) {
		struct ct_tally_key *more = realloc(g->keys, (g->cap + 64) * 2 * sizeof(*more));

		if (!more) {
			t->unsure = true; /* it stays in the map, until a sweep */
			return;
		}
		g->keys = more;
		g->cap = (g->cap + 64) * 2;
	}
	g->keys[g->n++] = *key;
}

static void forget_gone(struct gone *g, int fd, int other_fd)
{
	for (size_t i = 0; i < g->n; i++) {
		bpf_map_delete_elem(fd, &g->keys[i]);
		if (other_fd >= 0)
			bpf_map_delete_elem(other_fd, &g->keys[i]);
	}
	g->n = 0;
}

union tally_room {
	struct ct_tally t;
	char room[sizeof(struct ct_tally) + sizeof(struct ct_hist)];
};

/* The parts that all have. */
static void begin(const struct tallies *t, union tally_room *rec, const struct ct_tally_key *key, uint64_t now)
{
	memset(&rec->t, 0, sizeof(rec->t));
	rec->t.h.kind = CT_TALLY;
	rec->t.h.size = sizeof(rec->t);
	rec->t.h.flags = has_ended(t, key) ? CT_F_LAST : 0;
	rec->t.h.pid = key->tgid;
	rec->t.h.start_ns = t->since_ns;
	rec->t.h.end_ns = now;
	rec->t.func = key->func;
	rec->t.sub = key->sub;
	rec->t.how = key->how;
	rec->t.start = key->start;
	rec->t.by = key->by;
}

static int emit_sums(struct tallies *t, const struct ct_tally_key *key, const struct ct_sums *sums, uint64_t now, emit_fn emit,
		     void *ctx)
{
	union tally_room rec;

	begin(t, &rec, key, now);
	rec.t.h.tid = key->how == CT_BY_THREAD ? (uint32_t)key->by : 0;
	rec.t.sums = *sums;
	/* the kernel side keeps it as its complement */
	rec.t.sums.min_ns = sums->timed ? ~sums->min_ns : 0;
	if (t->hist == CT_HIST_BY_KEY && !bpf_map_lookup_elem(t->hists_fd, key, rec.room + sizeof(rec.t))) {
		rec.t.nbuckets = CT_HIST_BUCKETS;
		rec.t.h.size = (uint16_t)(sizeof(rec.t) + sizeof(struct ct_hist));
	}
	if (rec.t.h.flags & CT_F_LAST)
		remember_gone(t, &t->gone_sums, key);
	return emit(ctx, &rec.t.h);
}

/* Those of all processes together. */
static int emit_hists(struct tallies *t, uint64_t now, emit_fn emit, void *ctx)
{
	struct ct_tally_key key, next;
	union tally_room rec;
	int kept = 0;

	for (int err = bpf_map_get_next_key(t->hists_fd, NULL, &next); !err; err = bpf_map_get_next_key(t->hists_fd, &key, &next)) {
		int e;

		key = next;
		begin(t, &rec, &key, now);
		if (bpf_map_lookup_elem(t->hists_fd, &key, rec.room + sizeof(rec.t)))
			continue;
		rec.t.nbuckets = CT_HIST_BUCKETS;
		rec.t.h.size = (uint16_t)(sizeof(rec.t) + sizeof(struct ct_hist));
		e = emit(ctx, &rec.t.h);
		if (e && e != -EINTR)
			return e;
		kept = e ? e : kept;
	}
	return kept;
}

static int emit_size(struct tallies *t, const struct ct_tally_key *key, const struct ct_sizes *s, uint64_t now, emit_fn emit,
		     void *ctx)
{
	union tally_room rec;

	begin(t, &rec, key, now);
	rec.t.how = CT_BY_SIZE;
	rec.t.sums.bytes = s->sum[0];
	rec.t.sums.threads = s->sum[1];
	rec.t.nbuckets = 2 * CT_SIZE_BUCKETS;
	rec.t.h.size = (uint16_t)(sizeof(rec.t) + sizeof(s->n) + sizeof(s->n) % 8);
	memset(rec.room + sizeof(rec.t), 0, sizeof(s->n) + 8);
	memcpy(rec.room + sizeof(rec.t), s->n, sizeof(s->n));
	if (rec.t.h.flags & CT_F_LAST)
		remember_gone(t, &t->gone_sizes, key);
	return emit(ctx, &rec.t.h);
}

/* All entries of one of the two maps. What emit says by -EINTR is kept for the end: the records were taken. */
static int read_map(struct tallies *t, bool sizes, uint64_t now, emit_fn emit, void *ctx)
{
	uint32_t in = 0, out = 0, n;
	bool first = true;
	int err, kept = 0;

	do {
		n = sizes ? BATCH_SIZES : BATCH;
		err = bpf_map_lookup_batch(sizes ? t->sizes_fd : t->sums_fd, first ? NULL : &in, &out, t->keys,
					   sizes ? (void *)t->size : (void *)t->sums, &n, NULL);
		if (err && err != -ENOENT)
			return err;
		for (uint32_t i = 0; i < n; i++) {
			int e = sizes ? emit_size(t, &t->keys[i], &t->size[i], now, emit, ctx) :
					emit_sums(t, &t->keys[i], &t->sums[i], now, emit, ctx);

			if (e && e != -EINTR)
				return e;
			kept = e ? e : kept;
		}
		in = out;
		first = false;
	} while (!err);
	return kept;
}

int tallies_read(struct tallies *t, emit_fn emit, void *ctx)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int kept = 0, err;

	if (t->unsure)
		find_ended(t);
	look_at_ended(t);
	/* sizes first: a process is done with when its last sums have come */
	err = t->sizes ? read_map(t, true, now, emit, ctx) : 0;
	kept = err;
	if (!err || err == -EINTR)
		err = read_map(t, false, now, emit, ctx);
	kept = err ? err : kept;
	if ((!err || err == -EINTR) && t->hist == CT_HIST_BY_FUNCTION)
		err = emit_hists(t, now, emit, ctx);
	kept = err ? err : kept;
	forget_gone(&t->gone_sums, t->sums_fd, t->hist == CT_HIST_BY_KEY ? t->hists_fd : -1);
	forget_gone(&t->gone_sizes, t->sizes_fd, -1);
	t->nended = 0;
	return kept;
}
