/* SPDX-License-Identifier: BSD-2-Clause */
/* why_steps.c - what slow steps had more of than those of median length. See why_inside.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "why_inside.h"
#include "../util/table/array.h"

#define MEDIAN_STEPS 5 /* around the median: what they take is compared with */
#define SLOW 1.1       /* times the median */
#define LEAST 20       /* a part of what a step took longer is said if it is this part of it */

/* Divides the gaps that lie in a step, and what of it lies before the part's first work: that ends a time without
 * work, too. Returns the time with work. */
static uint64_t divide_step(const struct why *w, struct why_walk *walk, const struct why_gaps *gaps,
			    const struct why_part *p, const struct step *s)
{
	const struct why_gap before = { .from_ns = s->start_ns, .to_ns = p->from_ns };
	size_t i = array_before(gaps->list, gaps->n, g, g->to_ns <= s->start_ns);
	uint64_t idle = s->end_ns > p->to_ns ? s->end_ns - why_most(p->to_ns, s->start_ns) : 0;

	if (s->start_ns < p->from_ns) {
		why_gap_divide(w, walk, gaps, &before, s->start_ns, s->end_ns);
		idle += why_least(p->from_ns, s->end_ns) - s->start_ns;
	}
	for (; i < gaps->n && gaps->list[i].from_ns < s->end_ns; i++) {
		const struct why_gap *g = &gaps->list[i];

		why_gap_divide(w, walk, gaps, g, s->start_ns, s->end_ns);
		idle += why_least(g->to_ns, s->end_ns) - why_most(g->from_ns, s->start_ns);
	}
	return s->end_ns - s->start_ns - idle;
}

static void note(struct why_slow *s, enum why_kind kind, const char *text, uint64_t here,
		 uint64_t median)
{
	struct why_more more = { kind, text, here > median ? here - median : 0 };

	if (more.ns * LEAST < s->more_ns || !more.ns)
		return;
	for (size_t i = 0; i < WHY_MORE; i++) {
		struct why_more was = s->more[i];

		if (i < s->nmore && was.ns >= more.ns)
			continue;
		s->more[i] = more;
		if (i == s->nmore) {
			s->nmore++;
			return;
		}
		more = was;
	}
}

static const struct why_entry *same_entry(const struct why_book *b, const struct why_entry *e)
{
	struct chain_link *at = chains_find(&b->entries, e->link.hash);

	for (; at; at = chains_again(at))
		if (((struct why_entry *)at)->kind == e->kind &&
		    ((struct why_entry *)at)->text == e->text)
			return (struct why_entry *)at;
	return NULL;
}

static const struct why_pool *same_pool(const struct why_book *b, const struct why_pool *p)
{
	struct chain_link *at = chains_find(&b->pools, p->link.hash);

	for (; at; at = chains_again(at))
		if (((struct why_pool *)at)->thread == p->thread &&
		    ((struct why_pool *)at)->prefix == p->prefix)
			return (struct why_pool *)at;
	return NULL;
}

/* The few samples of a step do not divide its time on the CPU: it is compared as a whole. */
static void compare(struct why_slow *s, struct why_walk *walk, const struct why_book *here,
		    const struct why_book *median, size_t n)
{
	char text[2 * WHY_TEXT];

	chains_each(&here->entries, link)
	{
		const struct why_entry *e = (struct why_entry *)link, *m = same_entry(median, e);

		note(s, e->kind, why_texts_get(walk->texts, e->text), e->ns, m ? m->ns / n : 0);
	}
	chains_each(&here->pools, link)
	{
		const struct why_pool *p = (struct why_pool *)link, *m = same_pool(median, p);
		uint32_t place;
		enum why_kind kind =
			why_pool_text(walk, p->ncounts || !m ? p : m, text, sizeof(text), &place);

		note(s, kind, why_texts_get(walk->texts, why_texts_add(walk->texts, text)), p->ns,
		     m ? m->ns / n : 0);
	}
}

static int slow_step(const struct why *w, struct why_walk *walk, const struct why_gaps *gaps,
		     const struct why_part *p, const struct step *one,
		     const struct why_book *median, uint64_t median_busy, size_t n,
		     struct why_slow *s)
{
	struct why_book here = { .bad = false };
	uint64_t busy;

	walk->book = &here;
	busy = divide_step(w, walk, gaps, p, one);
	note(s, WHY_WORK, gaps->device ? "the GPU is busy" : "inside launches", busy,
	     median_busy / n);
	compare(s, walk, &here, median, n);
	why_book_free(&here);
	return here.bad ? -ENOMEM : 0;
}

/* How much of a part is in steps of a process. */
static uint64_t time_in_steps(const struct steps_of *of, const struct why_part *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < of->n; i++) {
		uint64_t from = why_most(of->list[i].start_ns, p->from_ns),
			 to = why_least(of->list[i].end_ns, p->to_ns);

		sum += to > from ? to - from : 0;
	}
	return sum;
}

/* Several processes may have had the number, one after the other: the one whose steps are most of the part. */
static const struct steps_of *process_of(const struct why *w, uint32_t pid,
					 const struct why_part *p)
{
	const struct steps_of *best = NULL, *list;
	uint64_t most = 0;
	size_t n;

	list = steps_list(w->steps, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = list[i].pid == pid ? time_in_steps(&list[i], p) : 0;

		if (ns > most) {
			best = &list[i];
			most = ns;
		}
	}
	return best;
}

static int slow_steps(struct why *w, const struct why_gaps *gaps, const struct steps_of *of,
		      const size_t *order, struct why_part *p)
{
	struct why_steps *s = &p->steps;
	struct why_book median = { .bad = false };
	struct why_walk walk = { .texts = &w->texts, .threads = &w->threads, .book = &median };
	size_t middle = of->n / 2, n = why_least(MEDIAN_STEPS, of->n), first = middle - n / 2;
	uint64_t busy = 0;
	int err = 0;

	for (size_t i = first; i < first + n && i < of->n; i++)
		busy += divide_step(w, &walk, gaps, p, &of->list[order[i]]);
	for (size_t i = 0; i < WHY_SLOW && i < of->n && !err; i++) {
		const struct step *one = &of->list[order[i]];
		uint64_t ns = one->end_ns - one->start_ns;
		struct why_slow *slow = &s->slow[s->nslow];

		if ((double)ns < SLOW * (double)of->median_ns)
			break;
		*slow = (struct why_slow){ .number = one->number,
					   .start_ns = one->start_ns,
					   .ns = ns,
					   .more_ns = ns - of->median_ns };
		s->nslow++;
		err = slow_step(w, &walk, gaps, p, one, &median, busy, n, slow);
	}
	why_book_free(&median);
	return median.bad ? -ENOMEM : err;
}

int why_steps_find(struct why *w, const struct why_gaps *gaps, uint32_t pid, struct why_part *p)
{
	const struct steps_of *of = process_of(w, pid, p);
	struct why_steps *s = &p->steps;
	uint64_t all = 0;
	size_t *order;
	int err = 0;

	if (!of || !of->n)
		return 0;
	for (size_t i = 0; i < of->n; i++)
		all += of->list[i].end_ns - of->list[i].start_ns;
	s->n = of->n;
	s->how = steps_how_word(of->how);
	s->median_ns = of->median_ns;
	s->mean_ns = all / of->n;
	order = steps_slowest(of);
	if (!order)
		return -ENOMEM;
	if (of->n >= 3)
		err = slow_steps(w, gaps, of, order, p);
	free(order);
	return err;
}
