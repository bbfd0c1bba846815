/* SPDX-License-Identifier: BSD-2-Clause */
/* tallies.c - see tallies.h. Knows the maps and the wire; knows no sink. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "tallies.h"

#define BATCH 512
#define ENDED_MAX 65536 /* ended processes remembered between two readings; what others leave stays in the map */

struct ended {
	uint32_t pid;
	bool again; /* there is a process of this number again */
	uint64_t boottime_ns; /* when it ended */
};

struct tallies {
	int sums_fd, hists_fd;
	bool hist;
	uint8_t by;
	uint64_t since_ns;
	struct ended *ended;
	size_t nended, cap_ended;
	struct ct_tally_key keys[BATCH];
	struct ct_sums sums[BATCH];
	struct ct_tally_key *gone; /* entries to delete after a reading */
	size_t ngone, cap_gone;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

struct tallies *tallies_open(const struct capture_plan *plan, int sums_fd, int hists_fd)
{
	struct tallies *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->sums_fd = sums_fd;
	t->hists_fd = hists_fd;
	t->hist = plan->hist;
	t->by = plan->count_by;
	t->since_ns = clock_ns(CLOCK_MONOTONIC);
	return t;
}

void tallies_close(struct tallies *t)
{
	if (!t)
		return;
	free(t->ended);
	free(t->gone);
	free(t);
}

void tallies_ended(struct tallies *t, uint32_t pid, uint64_t at_ns)
{
	struct ended *more;

	if (t->nended == t->cap_ended) {
		if (t->cap_ended >= ENDED_MAX)
			return;
		more = realloc(t->ended, (t->cap_ended + 64) * 2 * sizeof(*more));
		if (!more)
			return;
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

static void remember_gone(struct tallies *t, const struct ct_tally_key *key)
{
	if (t->ngone == t->cap_gone) {
		struct ct_tally_key *more = realloc(t->gone, (t->cap_gone + 64) * 2 * sizeof(*more));

		if (!more)
			return; /* it stays in the map */
		t->gone = more;
		t->cap_gone = (t->cap_gone + 64) * 2;
	}
	t->gone[t->ngone++] = *key;
}

static int emit_one(struct tallies *t, const struct ct_tally_key *key, const struct ct_sums *sums, uint64_t now, emit_fn emit,
		    void *ctx)
{
	union {
		struct ct_tally t;
		char room[sizeof(struct ct_tally) + sizeof(struct ct_hist)];
	} rec;
	bool hist = t->hist && !bpf_map_lookup_elem(t->hists_fd, key, rec.room + sizeof(rec.t));

	memset(&rec.t, 0, sizeof(rec.t));
	rec.t.h.kind = CT_TALLY;
	rec.t.h.size = (uint16_t)(sizeof(rec.t) + (hist ? sizeof(struct ct_hist) : 0));
	rec.t.h.flags = has_ended(t, key) ? CT_F_LAST : 0;
	rec.t.h.pid = key->tgid;
	rec.t.h.tid = t->by == CT_BY_THREAD ? (uint32_t)key->by : 0;
	rec.t.h.start_ns = t->since_ns;
	rec.t.h.end_ns = now;
	rec.t.func = key->func;
	rec.t.sub = key->sub;
	rec.t.how = t->by;
	rec.t.start = key->start;
	rec.t.by = key->by;
	rec.t.sums = *sums;
	/* the kernel side keeps it as its complement */
	rec.t.sums.min_ns = sums->timed ? ~sums->min_ns : 0;
	rec.t.nbuckets = hist ? CT_HIST_BUCKETS : 0;
	if (rec.t.h.flags & CT_F_LAST)
		remember_gone(t, key);
	return emit(ctx, &rec.t.h);
}

int tallies_read(struct tallies *t, emit_fn emit, void *ctx)
{
	uint32_t in = 0, out = 0, n;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool first = true;
	int err, kept = 0;

	look_at_ended(t);
	do {
		n = BATCH;
		err = bpf_map_lookup_batch(t->sums_fd, first ? NULL : &in, &out, t->keys, t->sums, &n, NULL);
		if (err && err != -ENOENT)
			return err;
		for (uint32_t i = 0; i < n; i++) {
			int e = emit_one(t, &t->keys[i], &t->sums[i], now, emit, ctx);

			if (e && e != -EINTR)
				return e;
			kept = e ? e : kept;
		}
		in = out;
		first = false;
	} while (!err);
	for (size_t i = 0; i < t->ngone; i++) {
		bpf_map_delete_elem(t->sums_fd, &t->gone[i]);
		if (t->hist)
			bpf_map_delete_elem(t->hists_fd, &t->gone[i]);
	}
	t->ngone = t->nended = 0;
	return kept;
}
