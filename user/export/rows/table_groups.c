/* SPDX-License-Identifier: BSD-2-Clause */
/* table_groups.c - see table_groups.h. */
#include "table_groups.h"
#include "../../util/table/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDENT "             " /* the indent of a stack's lines */
#define WIDTH 120	       /* the indent of the lines with threads */

struct thread {
	uint32_t pid, tid;
};

struct group {
	struct text key, row, below;
	struct thread *threads;
	size_t n;
};

struct table_groups {
	struct group *groups;
	size_t n;
};

struct table_groups *table_groups_open(void)
{
	return calloc(1, sizeof(struct table_groups));
}

static void table_groups_forget(struct table_groups *g)
{
	for (size_t i = 0; i < g->n; i++) {
		text_free(&g->groups[i].key);
		text_free(&g->groups[i].row);
		text_free(&g->groups[i].below);
		free(g->groups[i].threads);
	}
	g->n = 0;
}

void table_groups_close(struct table_groups *g)
{
	if (!g)
		return;
	table_groups_forget(g);
	free(g->groups);
	free(g);
}

static struct group *group_find(struct table_groups *g, const struct text *key)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->groups[i].key.len == key->len &&
		    !memcmp(g->groups[i].key.s, key->s, key->len))
			return &g->groups[i];
	return NULL;
}

static struct group *table_groups_make(struct table_groups *g, const struct text *key,
				       struct text *row, struct text *below)
{
	struct group *one = array_add(g->groups, g->n);

	if (!one)
		return NULL;
	one->row = *row;
	one->below = *below;
	*row = *below = (struct text){ NULL };
	text_mem(&one->key, key->s, key->len);
	return one;
}

int table_groups_add(struct table_groups *g, const struct text *key, uint32_t pid, uint32_t tid,
		     struct text *row, struct text *below)
{
	struct group *one = group_find(g, key);

	if (!one)
		one = table_groups_make(g, key, row, below);
	if (!one || !array_room(one->threads, one->n))
		return -ENOMEM;
	one->threads[one->n++] = (struct thread){ pid, tid };
	return one->key.bad || one->row.bad || one->below.bad ? -ENOMEM : 0;
}

static int by_process(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* The lines of a group: the one under way begins at `begin`. */
struct lines {
	struct text text;
	size_t begin;
};

static void write_number(struct lines *l, uint32_t n)
{
	if (l->text.len - l->begin > WIDTH - 12) {
		text_str(&l->text, "\n");
		l->begin = l->text.len;
		text_str(&l->text, INDENT " ");
	}
	text_str(&l->text, " ");
	text_u64(&l->text, n);
}

/* "12 threads: 4101 4102 ...", of processes with one thread each "3 processes: 41 42 43", else a line for each. */
static void write_threads(const struct group *one, struct out *out)
{
	struct lines l = { { NULL }, 0 };
	bool single = true;
	size_t procs = 0;

	for (size_t i = 0; i < one->n; i++) {
		procs += !i || one->threads[i].pid != one->threads[i - 1].pid;
		single &= one->threads[i].pid == one->threads[i].tid;
	}
	text_str(&l.text, INDENT);
	text_u64(&l.text, procs > 1 && single ? procs : one->n);
	if (procs > 1 && !single) {
		text_str(&l.text, " threads of ");
		text_u64(&l.text, procs);
	}
	text_str(&l.text, procs > 1 ? " processes:" : " threads:");
	for (size_t i = 0; i < one->n; i++) {
		const struct thread *t = &one->threads[i];

		if (procs > 1 && !single && (!i || t->pid != t[-1].pid)) {
			text_str(&l.text, "\n");
			l.begin = l.text.len;
			text_str(&l.text, INDENT " ");
			text_u64(&l.text, t->pid);
			text_str(&l.text, ":");
		}
		write_number(&l, t->tid);
	}
	text_str(&l.text, "\n");
	if (!l.text.bad)
		out_mem(out, l.text.s, l.text.len);
	text_free(&l.text);
}

void table_groups_write(struct table_groups *g, struct out *out)
{
	for (size_t i = 0; i < g->n; i++) {
		struct group *one = &g->groups[i];
		size_t procs = 1;

		for (size_t k = 1; k < one->n; k++)
			procs += one->threads[k].pid != one->threads[k - 1].pid;
		/* of one process in the order in which they came */
		if (procs > 1)
			qsort(one->threads, one->n, sizeof(*one->threads), by_process);
		out_mem(out, one->row.s, one->row.len);
		if (one->n > 1)
			write_threads(one, out);
		out_mem(out, one->below.s, one->below.len);
	}
	table_groups_forget(g);
}
