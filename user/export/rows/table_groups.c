/* SPDX-License-Identifier: BSD-2-Clause */
/* table_groups.c - see table_groups.h. */
#include "table_groups.h"
#include "../../util/table/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDENT "             " /* as the lines of a stack have */
#define WIDTH 120	       /* of the lines with threads */

struct group {
	struct text key, row, below;
	uint32_t *tids;
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
		free(g->groups[i].tids);
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

int table_groups_add(struct table_groups *g, const struct text *key, uint32_t tid, struct text *row,
		     struct text *below)
{
	struct group *one = group_find(g, key);

	if (!one)
		one = table_groups_make(g, key, row, below);
	if (!one || !array_room(one->tids, one->n))
		return -ENOMEM;
	one->tids[one->n++] = tid;
	return one->key.bad || one->row.bad || one->below.bad ? -ENOMEM : 0;
}

/* "12 threads: 4101 4102 ..." */
static void write_tids(const struct group *one, struct out *out)
{
	struct text line = { NULL };
	size_t begin = 0;

	text_str(&line, INDENT);
	text_u64(&line, one->n);
	text_str(&line, " threads:");
	for (size_t i = 0; i < one->n; i++) {
		if (line.len - begin > WIDTH - 12) {
			text_str(&line, "\n");
			begin = line.len;
			text_str(&line, INDENT " ");
		}
		text_str(&line, " ");
		text_u64(&line, one->tids[i]);
	}
	text_str(&line, "\n");
	if (!line.bad)
		out_mem(out, line.s, line.len);
	text_free(&line);
}

void table_groups_write(struct table_groups *g, struct out *out)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct group *one = &g->groups[i];

		out_mem(out, one->row.s, one->row.len);
		if (one->n > 1)
			write_tids(one, out);
		out_mem(out, one->below.s, one->below.len);
	}
	table_groups_forget(g);
}
