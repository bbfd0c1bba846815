/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics.c - see metrics.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

#define NAME_MAX_BYTES 1024

/* A copy of n bytes, escaped; NULL: no memory. */
static char *copy(const char *s, size_t n)
{
	struct text t = { 0 };
	char raw[NAME_MAX_BYTES + 1];

	if (n > NAME_MAX_BYTES)
		n = NAME_MAX_BYTES;
	memcpy(raw, s, n);
	raw[n] = '\0';
	text_plain(&t, raw, NAME_MAX_BYTES);
	text_mem(&t, "", 1);
	if (t.bad) {
		text_free(&t);
		return NULL;
	}
	return t.s;
}

int metrics_record(struct metrics *m, const struct ct_metric *rec)
{
	char *name, *unit;

	if (!rec->id || rec->id > METRICS_MAX)
		return 0;
	if (rec->id > m->n) {
		struct metric *more = realloc(m->all, rec->id * sizeof(*more));

		if (!more)
			return -ENOMEM;
		memset(more + m->n, 0, (rec->id - m->n) * sizeof(*more));
		m->all = more;
		m->n = rec->id;
	}
	name = copy(rec->text, rec->name_len);
	unit = copy(rec->text + rec->name_len, rec->unit_len);
	if (!name || !unit) {
		free(name);
		free(unit);
		return -ENOMEM;
	}
	free(m->all[rec->id - 1].name);
	free(m->all[rec->id - 1].unit);
	m->all[rec->id - 1] = (struct metric){ name, unit };
	return 0;
}

const struct metric *metrics_find(const struct metrics *m, uint32_t id)
{
	return id && id <= m->n && m->all[id - 1].name ? &m->all[id - 1] : NULL;
}

void metrics_free(struct metrics *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		free(m->all[i].name);
		free(m->all[i].unit);
	}
	free(m->all);
	*m = (struct metrics){ 0 };
}

bool metrics_value(const struct ct_value *v, double *out)
{
	memcpy(out, &v->bits, sizeof(*out));
	return isfinite(*out);
}
