/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.c - the names of metrics, found by their numbers in CT_METRIC records.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/msg.h"
#include "device.h"

#define METRICS_MAX 4096 /* metrics with a higher number have no name */
#define TEXT_MAX 127	 /* bytes of a name or unit */

struct metric_table {
	struct metric *metrics; /* by number */
	uint32_t n;
	bool said;
};

struct metric_table *metric_table_open(void)
{
	return calloc(1, sizeof(struct metric_table));
}

void metric_table_close(struct metric_table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->n; i++)
		free((char *)t->metrics[i].name);
	free(t->metrics);
	free(t);
}

/* Names become keys and labels, so a character that is not allowed there becomes '?'. Returns
 * the end of the text. */
static char *put_clean(char *p, const char *s, size_t n)
{
	for (size_t i = 0; i < n && i < TEXT_MAX && s[i]; i++)
		*p++ = s[i] > ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\' ? s[i] : '?';
	*p++ = '\0';
	return p;
}

int metric_table_record(struct metric_table *t, const struct ct_hdr *h)
{
	const struct ct_metric *r = (const struct ct_metric *)h;
	char *text, *unit;

	if (h->kind != CT_METRIC || !r->id)
		return 0;
	if (r->id >= METRICS_MAX) {
		if (!t->said)
			msg_warn("metrics with numbers from %d on are not known: their values are "
				 "left out",
				 METRICS_MAX);
		t->said = true;
		return 0;
	}
	if (r->id >= t->n) {
		struct metric *more = realloc(t->metrics, (r->id + 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		memset(more + t->n, 0, (r->id + 1 - t->n) * sizeof(*more));
		t->metrics = more;
		t->n = r->id + 1;
	}
	text = calloc(2, TEXT_MAX + 1);
	if (!text)
		return -ENOMEM;
	unit = put_clean(text, r->text, r->name_len);
	put_clean(unit, r->text + r->name_len, r->unit_len);
	if (!*text) {
		free(text); /* nobody could ask for this name */
		return 0;
	}
	free((char *)t->metrics[r->id].name);
	t->metrics[r->id] = (struct metric){ text, unit, r->id, r->source };
	return 0;
}

const struct metric *metric_table_find(const struct metric_table *t, uint32_t id)
{
	return t && id < t->n && t->metrics[id].name ? &t->metrics[id] : NULL;
}
