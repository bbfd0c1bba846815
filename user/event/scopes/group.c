/* SPDX-License-Identifier: BSD-2-Clause */
/* group.c - see group.h. */
#include <string.h>

#include "group.h"

/* Keeps the functions in the order of their rows, so that equal groups have equal names. */
static void add_func(struct group *g, uint16_t func)
{
	uint8_t at = 0;

	while (at < g->nfuncs && g->funcs[at] < func)
		at++;
	if (at < g->nfuncs && g->funcs[at] == func)
		return;
	if (g->nfuncs == GROUP_FUNCS) {
		g->more_funcs = true;
		return;
	}
	memmove(&g->funcs[at + 1], &g->funcs[at], (g->nfuncs - at) * sizeof(g->funcs[0]));
	g->funcs[at] = func;
	g->nfuncs++;
}

void group_add(struct group *g, uint16_t func, const struct ct_collective *c)
{
	struct ct_collective *all = &g->all;
	__u64 *bytes = api_funcs[func].layer == API_LAYER_RECEIVE ? &g->received : &all->bytes;

	add_func(g, func);
	if (!g->members) {
		*all = *c;
		all->bytes = 0;
	}
	if (g->members < UINT16_MAX)
		g->members++;
	if (all->comm != c->comm)
		all->comm = all->hash = 0;
	if (all->rank != c->rank)
		all->rank = CT_UNKNOWN;
	if (all->ranks != c->ranks)
		all->ranks = CT_UNKNOWN;
	if (all->how != c->how)
		all->how = CT_COLLECTIVE_OTHER;
	g->no_bytes |= !c->bytes || __builtin_add_overflow(*bytes, c->bytes, bytes);
}

void group_says(const struct group *g, struct ct_collective *out)
{
	out->members = g->members;
	if (!g->members)
		return;
	out->comm = g->all.comm;
	out->hash = g->all.hash;
	out->rank = g->all.rank;
	out->ranks = g->all.ranks;
	out->how = g->all.how;
	out->bytes = g->all.bytes > g->received ? g->all.bytes : g->received;
	if (g->no_bytes)
		out->bytes = 0;
}

void group_names(const struct group *g, char *text, size_t room)
{
	static const char more[] = ", ...";
	size_t n = 0;

	*text = 0;
	for (uint8_t i = 0; i < g->nfuncs; i++) {
		const char *name = api_funcs[g->funcs[i]].name;
		size_t len = strlen(name);

		if (n + 2 + len + sizeof(more) > room) {
			memcpy(text + n, more, sizeof(more));
			return;
		}
		if (n) {
			memcpy(text + n, ", ", 2);
			n += 2;
		}
		memcpy(text + n, name, len + 1);
		n += len;
	}
	if (g->more_funcs)
		memcpy(text + n, more, sizeof(more));
}
