/* SPDX-License-Identifier: BSD-2-Clause */
/* viz_history.c - see viz.h: what was done. Beyond the most entries the oldest one gives its place to the newest. */
#include <stdlib.h>

#include "../../util/table/array.h"
#include "viz.h"

void viz_history_open(struct viz_history *h, size_t max)
{
	*h = (struct viz_history){ .max = max ? max : VIZ_ENTRIES };
}

void viz_history_close(struct viz_history *h)
{
	free(h->at);
	*h = (struct viz_history){ 0 };
}

void viz_history_add(struct viz_history *h, const struct block_change *e)
{
	if (h->n < h->max && array_fit(h->at, h->room, h->n + 1)) {
		h->at[h->n++] = *e;
		return;
	}
	h->left_out++;
	h->max = h->n; /* it stays as large as memory allowed */
	if (!h->n)
		return;
	h->at[h->first] = *e;
	h->first = (h->first + 1) % h->n;
}
