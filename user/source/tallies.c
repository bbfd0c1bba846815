/* SPDX-License-Identifier: BSD-2-Clause */
/* tallies.c - see tallies.h. Knows the maps and the wire; knows no sink. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "tallies.h"

#define BATCH 512
#define ENDED_MAX 65536 /* ended processes remembered between two readings; what others leave stays in the map */

struct tallies {
	int sums_fd, hists_fd;
	bool hist;
	uint64_t since_ns;
	uint32_t *ended;
	size_t nended, cap_ended;
	struct ct_tally_key keys[BATCH];
	struct ct_sums sums[BATCH];
	struct ct_tally_key *gone; /* entries to delete after a reading */
	size_t ngone, cap_gone;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
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
	t->since_ns = now_ns();
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

void tallies_ended(struct tallies *t, uint32_t pid)
{
	uint32_t *more;

	if (t->nended == t->cap_ended) {
		if (t->cap_ended >= ENDED_MAX)
			return;
		more = realloc(t->ended, (t->cap_ended + 64) * 2 * sizeof(*more));
		if (!more)
			return;
		t->ended = more;
		t->cap_ended = (t->cap_ended + 64) * 2;
	}
	t->ended[t->nended++] = pid;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static bool has_ended(const struct tallies *t, uint32_t pid)
{
	return t->nended && bsearch(&pid, t->ended, t->nended, sizeof(pid), by_number);
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
	struct {
		struct ct_tally t;
		struct ct_hist hist;
	} rec;
	bool hist = t->hist && !bpf_map_lookup_elem(t->hists_fd, key, &rec.hist);

	memset(&rec.t, 0, sizeof(rec.t));
	rec.t.h.kind = CT_TALLY;
	rec.t.h.size = (uint16_t)(sizeof(rec.t) + (hist ? sizeof(rec.hist) : 0));
	rec.t.h.flags = has_ended(t, key->tgid) ? CT_F_LAST : 0;
	rec.t.h.pid = key->tgid;
	rec.t.h.tid = key->how == CT_BY_THREAD ? (uint32_t)key->by : 0;
	rec.t.h.start_ns = t->since_ns;
	rec.t.h.end_ns = now;
	rec.t.func = key->func;
	rec.t.sub = key->sub;
	rec.t.how = key->how;
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
	uint64_t now = now_ns();
	bool first = true;
	int err, kept = 0;

	qsort(t->ended, t->nended, sizeof(*t->ended), by_number);
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
