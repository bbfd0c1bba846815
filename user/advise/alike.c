/* SPDX-License-Identifier: BSD-2-Clause */
/* alike.c - see alike.h. */
#include "alike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/array.h"
#include "procs.h"

#define STANDS_OUT 2  /* times the median, or the median so many times it */
#define STANDS_MIN 3  /* processes without which there is no median that says anything */
#define RANGES_MAX 16 /* ranks, ranges of them or processes that a sentence names */
#define NAMED_MAX 4   /* processes that stand out, that are named */

/* ---- putting together ---- */

static bool same_text(const struct text *a, const struct text *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->s, b->s, a->len));
}

static bool has_place(const struct advise_finding *f, const struct advise_place *p)
{
	for (unsigned int i = 0; i < f->nplaces; i++)
		if (same_text(&f->places[i].name, &p->name) &&
		    same_text(&f->places[i].stack, &p->stack))
			return true;
	return false;
}

/* The order of places that cost the same differs from process to process. */
static bool is_alike(const struct advise_finding *a, const struct advise_finding *b)
{
	if (a->rule != b->rule || !same_text(&a->comm, &b->comm) || !a->nplaces != !b->nplaces)
		return false;
	return !a->nplaces || (has_place(a, &b->places[0]) && has_place(b, &a->places[0]));
}

static bool holds_for(const struct advise_finding *f, uint32_t process)
{
	for (size_t i = 0; i < f->nall; i++)
		if (f->all[i].process == process)
			return true;
	return f->one.process == process;
}

static bool add(struct advise_finding *f, const struct advise_one *one)
{
	struct advise_one *to = array_add(f->all, f->nall);

	if (to)
		*to = *one;
	return to != NULL;
}

static bool join(struct advise_finding *to, const struct advise_finding *f)
{
	if (f->severity > to->severity)
		to->severity = f->severity;
	return (to->nall || add(to, &to->one)) && add(to, &f->one);
}

static int by_rank(const void *pa, const void *pb)
{
	const struct advise_one *a = pa, *b = pb;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

/* What the processes are compared by: the cost, or of findings without a time the bytes, or how often. */
static uint64_t amount(const struct advise_finding *f, const struct advise_one *one)
{
	return f->one.cost_ns ? one->cost_ns : f->one.bytes ? one->bytes : one->n;
}

static int by_number(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static bool find_median(struct advise_finding *f)
{
	uint64_t *sorted = malloc(f->nall * sizeof(*sorted));

	if (!sorted)
		return false;
	for (size_t i = 0; i < f->nall; i++)
		sorted[i] = amount(f, &f->all[i]);
	qsort(sorted, f->nall, sizeof(*sorted), by_number);
	f->median = sorted[(f->nall - 1) / 2];
	free(sorted);
	for (size_t i = 0; i < f->nall && f->nall >= STANDS_MIN; i++) {
		uint64_t here = amount(f, &f->all[i]);

		f->all[i].stands_out = here / STANDS_OUT > f->median ||
				       f->median / STANDS_OUT > here;
	}
	return true;
}

/* The processes of the program that do not have it. */
static bool find_without(struct advise_finding *f, const struct procs *ps)
{
	struct text comm = { .s = NULL };
	bool good = true;

	for (uint32_t i = 0; i < ps->n && good; i++) {
		const struct advise_process *p = ps->at[i];
		struct advise_one *one;

		comm.len = 0;
		text_plain(&comm, p->comm, strnlen(p->comm, sizeof(p->comm)));
		good = !comm.bad;
		if (!good || (!p->ncalls && !p->nwork) || !same_text(&comm, &f->comm) ||
		    holds_for(f, p->index))
			continue;
		one = array_add(f->without, f->nwithout);
		good = one != NULL;
		if (good)
			*one = (struct advise_one){ .process = p->index,
						    .pid = p->shown,
						    .rank = p->rank };
	}
	if (f->nwithout)
		qsort(f->without, f->nwithout, sizeof(*f->without), by_rank);
	text_free(&comm);
	return good;
}

size_t alike_join(struct advise_finding *list, size_t n, const struct procs *ps, bool *bad)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct advise_finding f = list[i], *to = NULL;

		for (size_t k = 0; k < kept && !to; k++)
			if (is_alike(&list[k], &f) && !holds_for(&list[k], f.one.process))
				to = &list[k];
		if (to) {
			*bad |= !join(to, &f);
			continue;
		}
		list[i] = list[kept];
		list[kept++] = f;
	}
	for (size_t i = 0; i < kept; i++) {
		struct advise_finding *f = &list[i];

		if (f->nall) {
			qsort(f->all, f->nall, sizeof(*f->all), by_rank);
			*bad |= !find_median(f);
		}
		*bad |= !find_without(f, ps);
	}
	return kept;
}

void alike_free(struct advise_finding *f)
{
	free(f->all);
	free(f->without);
}

/* ---- sentences ---- */

static const char *amount_text(const struct advise_finding *f, uint64_t v)
{
	static char times[4][32];
	static unsigned int turn;
	char *buf = times[turn++ % ARRAY_LEN(times)];

	if (f->one.cost_ns)
		return rule_time((double)v);
	if (f->one.bytes)
		return rule_bytes((double)v);
	snprintf(buf, sizeof(times[0]), "%llu times", (unsigned long long)v);
	return buf;
}

static bool has_ranks(const struct advise_one *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].rank == CT_UNKNOWN)
			return false;
	return true;
}

/* "ranks 0-2, 5", "process 4242", of a list by rank; `but` is left out, NULL: none. Returns how many. */
static size_t name_all(struct text *t, const struct advise_one *list, size_t n, bool ranks,
		       const struct advise_one *but)
{
	size_t named = 0, shown = 0;

	for (size_t i = 0; i < n; i++)
		named += !but || list[i].process != but->process;
	text_str(t, ranks	 ? named == 1 ? "rank " : "ranks "
		    : named == 1 ? "process "
				 : "processes ");
	for (size_t i = 0; i < n; i++) {
		size_t end = i;

		if (but && list[i].process == but->process)
			continue;
		while (ranks && end + 1 < n && list[end + 1].rank == list[end].rank + 1 &&
		       (!but || list[end + 1].process != but->process))
			end++;
		if (shown == RANGES_MAX) {
			text_str(t, " and others");
			break;
		}
		text_str(t, shown++ ? ", " : "");
		text_u64(t, ranks ? list[i].rank : list[i].pid);
		if (end > i) {
			text_str(t, "-");
			text_u64(t, list[end].rank);
		}
		i = end;
	}
	return named;
}

static void say_same(const struct advise_finding *f, bool ranks, struct text *t)
{
	uint64_t least = UINT64_MAX, most = 0;
	size_t others;

	for (size_t i = 0; i < f->nall; i++) {
		uint64_t here = amount(f, &f->all[i]);

		if (f->all[i].process == f->one.process)
			continue;
		least = here < least ? here : least;
		most = here > most ? here : most;
	}
	text_str(t, "The same in ");
	others = name_all(t, f->all, f->nall, ranks, &f->one);
	text_str(t, ": ");
	text_str(t, amount_text(f, least));
	if (least != most) {
		text_str(t, " to ");
		text_str(t, amount_text(f, most));
	}
	text_str(t, others > 1 ? " each." : ".");
}

static void say_outliers(const struct advise_finding *f, bool ranks, struct text *t)
{
	int named = 0;

	for (size_t i = 0; i < f->nall; i++) {
		const struct advise_one *one = &f->all[i];

		if (!one->stands_out || named++ == NAMED_MAX)
			continue;
		text_str(t, ranks ? " Rank " : " Process ");
		text_u64(t, ranks ? one->rank : one->pid);
		text_str(t, " stands out: ");
		text_str(t, amount_text(f, amount(f, one)));
		text_str(t, ", where the median is ");
		text_str(t, amount_text(f, f->median));
		text_str(t, ".");
	}
}

void alike_say(const struct advise_finding *f, struct text *t)
{
	bool ranks = has_ranks(f->all, f->nall) && has_ranks(f->without, f->nwithout) &&
		     f->one.rank != CT_UNKNOWN;

	if (f->nall) {
		say_same(f, ranks, t);
		say_outliers(f, ranks, t);
		/* of the few that do not have it something is to be learnt */
		if (f->nwithout && 2 * f->nwithout <= f->nall) {
			text_str(t, " Not in ");
			name_all(t, f->without, f->nwithout, ranks, NULL);
			text_str(t, ".");
		}
	} else if (f->nwithout + 1 >= STANDS_MIN) {
		rule_say(t, "Of %zu processes of this program only this one has it.",
			 f->nwithout + 1);
	}
}
