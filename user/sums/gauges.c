/* SPDX-License-Identifier: BSD-2-Clause */
/* gauges.c - see gauges.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../event/gpus.h"
#include "gauges.h"

#define VALUE_MAX 1e100 /* so that no sum of values from a file is infinite */

/* Finds the gauge of a device and metric, or inserts it in order. NULL: no room. */
static struct gauge *gauge_of(struct gauges *g, uint32_t device, uint32_t metric)
{
	size_t at = 0;

	while (at < g->n && (g->list[at].device < device ||
			     (g->list[at].device == device && g->list[at].metric < metric)))
		at++;
	if (at < g->n && g->list[at].device == device && g->list[at].metric == metric)
		return &g->list[at];
	if (!g->list)
		g->list = calloc(GAUGES_MAX, sizeof(*g->list));
	if (!g->list || g->n == GAUGES_MAX)
		return NULL;
	memmove(&g->list[at + 1], &g->list[at], (g->n - at) * sizeof(*g->list));
	g->n++;
	memset(&g->list[at], 0, sizeof(g->list[at]));
	g->list[at].device = device;
	g->list[at].metric = metric;
	return &g->list[at];
}

static void gauge_add(struct gauge *g, double value, double ns)
{
	g->least = !g->samples || value < g->least ? value : g->least;
	g->most = !g->samples || value > g->most ? value : g->most;
	g->samples++;
	g->sum += value * ns;
	g->ns += ns;
}

int gauges_event(struct gauges *g, const struct event *ev)
{
	const struct ct_counter *c = (const struct ct_counter *)ev->rec;

	if (ev->rec->kind != CT_COUNTER)
		return 0;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct metric *m =
			ev->metrics ? metric_table_find(ev->metrics, c->values[i].metric) : NULL;
		/* the first sample of some metrics has no duration */
		double value, ns = c->h.end_ns > c->h.start_ns
					   ? (double)(c->h.end_ns - c->h.start_ns)
					   : 1;
		struct gauge *at;

		memcpy(&value, &c->values[i].bits, sizeof(value));
		if (!m || !isfinite(value))
			continue;
		at = gauge_of(g, ev->gpu ? ev->gpu->number : c->device, m->id);
		if (!at) {
			if (!g->list)
				return -ENOMEM;
			g->no_room++;
			continue;
		}
		snprintf(at->name, sizeof(at->name), "%s", m->name);
		snprintf(at->uuid, sizeof(at->uuid), "%s", ev->gpu ? ev->gpu->text : "");
		snprintf(at->unit, sizeof(at->unit), "%s", m->unit);
		if (c->values[i].flags & CT_VALUE_SUSPECT || fabs(value) > VALUE_MAX)
			at->suspect++;
		else
			gauge_add(at, value, ns);
	}
	return 1;
}

void gauges_close(struct gauges *g)
{
	free(g->list);
	memset(g, 0, sizeof(*g));
}
