/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_job.c - the members of communicators: see nccl_job.h. */
#include "nccl_group.h"

#include <stdlib.h>
#include <string.h>

#include "../util/table/array.h"

struct nccl_member *nccl_job_add(struct nccl_job *j)
{
	return j->n < NCCL_MEMBERS_MAX ? array_add(j->members, j->n) : NULL;
}

void nccl_threads_free(struct nccl_thread *threads, int n)
{
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < threads[i].nframes; k++)
			free(threads[i].frames[k]);
		free(threads[i].frames);
	}
	free(threads);
}

void nccl_job_free(struct nccl_job *j)
{
	for (size_t i = 0; i < j->n; i++)
		nccl_threads_free(j->members[i].threads, j->members[i].nthreads);
	free(j->members);
	free(j->unknown);
	free(j->said);
	j->members = NULL;
	j->unknown = NULL;
	j->said = NULL;
	j->n = j->nunknown = j->nsaid = 0;
}

/* By communicator, rank, process; the one that was looked at last comes first. */
static int nccl_job_by_rank(const void *a, const void *b)
{
	const struct nccl_member *x = a, *y = b;
	int by;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	by = strcmp(x->boot, y->boot);
	if (!by)
		by = strcmp(x->host, y->host);
	if (by)
		return by;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->ts_ns > y->ts_ns ? -1 : x->ts_ns < y->ts_ns;
}

static bool nccl_job_same(const struct nccl_member *a, const struct nccl_member *b)
{
	return a->hash == b->hash && a->rank == b->rank && a->pid == b->pid &&
	       !strcmp(a->boot, b->boot) && !strcmp(a->host, b->host);
}

void nccl_job_sort(struct nccl_job *j)
{
	size_t n = 0;

	if (!j->n)
		return;
	qsort(j->members, j->n, sizeof(*j->members), nccl_job_by_rank);
	for (size_t i = 0; i < j->n; i++) {
		if (n && nccl_job_same(&j->members[n - 1], &j->members[i]))
			nccl_threads_free(j->members[i].threads, j->members[i].nthreads);
		else
			j->members[n++] = j->members[i];
	}
	j->n = n;
}

/* ---- communicators ---- */

static bool is_still(const struct nccl_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!g->members[i].still_ns || g->members[i].rank < 0 ||
		    g->members[i].nranks != g->nranks)
			return false;
	return true;
}

bool nccl_group_count(const struct nccl_member *m, const struct nccl_kind *k, uint64_t *n)
{
	for (int i = 0; i < m->ncounts; i++)
		if (!strcmp(m->counts[i].kind, k->name)) {
			*n = m->counts[i].n;
			return true;
		}
	return false;
}

static void nccl_job_compare(const struct nccl_group *g, struct nccl_kind *k)
{
	k->least = UINT64_MAX;
	for (size_t i = 0; i < g->n; i++) {
		uint64_t n;

		if (!nccl_group_count(&g->members[i], k, &n))
			continue;
		if (n > k->most)
			k->most = n;
		if (n < k->least)
			k->least = n;
	}
}

size_t nccl_group_next(const struct nccl_job *j, size_t at, struct nccl_group *g)
{
	size_t end = at;

	*g = (struct nccl_group){ .members = &j->members[at], .nranks = j->members[at].nranks };
	while (end < j->n && j->members[end].hash == j->members[at].hash)
		end++;
	g->n = end - at;
	g->still = is_still(g);
	for (size_t i = 0; i < g->n; i++)
		if (g->members[i].rank >= 0 && (!i || g->members[i].rank != g->members[i - 1].rank))
			g->nseen++;
	for (; g->nkinds < g->members[0].ncounts; g->nkinds++) {
		g->kinds[g->nkinds].name = g->members[0].counts[g->nkinds].kind;
		nccl_job_compare(g, &g->kinds[g->nkinds]);
	}
	return end;
}

int nccl_group_ranks(const struct nccl_group *g)
{
	int n = g->members[g->n - 1].nranks;

	for (size_t i = 0; i < g->n; i++)
		if (g->members[i].rank >= 0 && g->members[i].nranks != n)
			return -1;
	return n;
}

bool nccl_group_lags(const struct nccl_group *g, const struct nccl_member *m)
{
	uint64_t n;

	for (int i = 0; g->still && i < g->nkinds; i++)
		if (nccl_group_count(m, &g->kinds[i], &n) && n < g->kinds[i].most)
			return true;
	return false;
}

/* Two ranks of which each has begun a collective that the other has not: they do not call the same
 * ones. */
static bool differ(const struct nccl_group *g, const struct nccl_kind *a, const struct nccl_kind *b)
{
	bool ahead = false, behind = false;

	for (size_t m = 0; m < g->n; m++) {
		uint64_t na, nb;

		if (!nccl_group_count(&g->members[m], a, &na) ||
		    !nccl_group_count(&g->members[m], b, &nb))
			continue;
		ahead |= na == a->most && nb < b->most;
		behind |= na < a->most && nb == b->most;
	}
	return ahead && behind;
}

bool nccl_group_disagrees(const struct nccl_group *g)
{
	for (int i = 0; i < g->nkinds; i++)
		for (int k = i + 1; k < g->nkinds; k++)
			if (differ(g, &g->kinds[i], &g->kinds[k]))
				return true;
	return false;
}

size_t nccl_job_absent(const struct nccl_job *j)
{
	size_t absent = 0;
	struct nccl_group g;

	for (size_t at = 0; at < j->n;) {
		at = nccl_group_next(j, at, &g);
		for (size_t i = 0; i < g.n; i++)
			absent += nccl_group_lags(&g, &g.members[i]);
		if (j->merged && g.still)
			absent += (size_t)g.nranks - g.nseen;
	}
	return absent;
}
