/* SPDX-License-Identifier: BSD-2-Clause */
/* chains.c - see chains.h. There are at least as many chains as things while there is memory for
 * them. */
#include <errno.h>
#include <stdlib.h>

#include "chains.h"

#define FIRST 64 /* a power of two */

void chains_close(struct chains *c)
{
	free(c->chains);
	*c = (struct chains){ 0 };
}

static void append(struct chains *c, struct chain_link *link)
{
	struct chain_link **at = &c->chains[link->hash & (c->nchains - 1)];

	while (*at)
		at = &(*at)->next;
	link->next = NULL;
	*at = link;
}

/* Twice as many chains, when there are as many things as chains. */
static void chains_grow(struct chains *c)
{
	struct chains wider = { c->n, c->nchains ? c->nchains * 2 : FIRST, NULL };

	if (c->n < c->nchains)
		return;
	wider.chains = calloc(wider.nchains, sizeof(struct chain_link *));
	if (!wider.chains)
		return;
	chains_each(c, link) append(&wider, link);
	free(c->chains);
	*c = wider;
}

int chains_add(struct chains *c, struct chain_link *link, uint64_t hash)
{
	chains_grow(c);
	if (!c->nchains)
		return -ENOMEM;
	link->hash = hash;
	append(c, link);
	c->n++;
	return 0;
}

void chains_remove(struct chains *c, struct chain_link *link)
{
	struct chain_link **at = &c->chains[link->hash & (c->nchains - 1)];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	c->n--;
}
