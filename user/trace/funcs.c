/* SPDX-License-Identifier: BSD-2-Clause */
/* funcs.c - see funcs.h. */
#include <stdlib.h>
#include <string.h>

#include "funcs.h"
#include "../../wire/control.h"

struct funcs {
	int n;
	struct trace_func *all[FUNCS_MAX];
	uint64_t layouts[CT_MAX_FUNCS]; /* funcs_layout() of each row; 0: not computed yet */
};

struct funcs *funcs_open(void)
{
	return calloc(1, sizeof(struct funcs));
}

void funcs_close(struct funcs *f)
{
	if (!f)
		return;
	for (int i = 0; i < f->n; i++)
		free(f->all[i]);
	free(f);
}

static uint64_t sum(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ULL; /* FNV-1a */
	return h;
}

uint64_t funcs_layout(int row)
{
	uint8_t head[3];
	struct ct_spec spec;
	uint64_t h = 0xcbf29ce484222325ULL;

	memset(&spec, 0, sizeof(spec));
	if (api_spec(row, API_ARCH_HERE, true, &spec))
		return 1;
	head[0] = API_ARCH_HERE;
	head[1] = spec.nwords;
	head[2] = spec.nreads;
	h = sum(h, head, sizeof(head));
	for (int i = 0; i < spec.nreads; i++)
		h = sum(h, &spec.reads[i], sizeof(spec.reads[i]));
	return h ? h : 1;
}

size_t funcs_define(int row, void *out)
{
	const struct api_func *f = &api_funcs[row];
	const char *domain = api_domain_name(f->domain), *class = api_class_name(f->class);
	struct trace_func_def def = {
		.layout = funcs_layout(row),
		.since = f->since,
		.domain_len = (uint8_t)strlen(domain),
		.class_len = (uint8_t)strlen(class),
		.name_len = (uint8_t)strnlen(f->name, 127),
	};
	char *at = out;

	memcpy(at, &def, sizeof(def));
	at += sizeof(def);
	memcpy(at, domain, def.domain_len);
	at += def.domain_len;
	memcpy(at, class, def.class_len);
	at += def.class_len;
	memcpy(at, f->name, def.name_len);
	return (size_t)(at + def.name_len - (char *)out);
}

/* Finds the row of this version. If several rows fit, it takes the one with the same `since`, or
 * none: a wrong row is worse than none. */
static void funcs_find(struct funcs *f, struct trace_func *t)
{
	int found = -1, nfound = 0;

	t->row = -1;
	t->fit = FUNCS_UNKNOWN;
	for (int row = api_next(t->name, -1); row >= 0; row = api_next(t->name, row)) {
		if (row >= CT_MAX_FUNCS ||
		    strcmp(api_domain_name(api_funcs[row].domain), t->domain))
			continue;
		t->fit = FUNCS_CHANGED;
		if (!f->layouts[row])
			f->layouts[row] = funcs_layout(row);
		if (f->layouts[row] != t->layout)
			continue;
		if (api_funcs[row].since == t->since) {
			found = row;
			nfound = 1;
			break;
		}
		found = row;
		nfound++;
	}
	if (nfound != 1)
		return;
	t->row = found;
	t->fit = FUNCS_KNOWN;
}

static const char *funcs_put_name(char *to, size_t size, const char *from, size_t n)
{
	if (n >= size)
		n = size - 1;
	memcpy(to, from, n);
	to[n] = '\0';
	for (char *p = to; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return to;
}

struct trace_func *funcs_read(struct funcs *f, const void *at, size_t left, size_t *used)
{
	const char *strings = (const char *)at + sizeof(struct trace_func_def);
	struct trace_func_def def;
	struct trace_func t = { .row = -1 }, *copy;

	if (left < sizeof(def))
		return NULL;
	memcpy(&def, at, sizeof(def));
	*used = sizeof(def) + def.domain_len + def.class_len + def.name_len;
	if (*used > left || def.name_len >= sizeof(t.name) || def.domain_len >= sizeof(t.domain) ||
	    def.class_len >= sizeof(t.class))
		return NULL;
	funcs_put_name(t.domain, sizeof(t.domain), strings, def.domain_len);
	funcs_put_name(t.class, sizeof(t.class), strings + def.domain_len, def.class_len);
	funcs_put_name(t.name, sizeof(t.name), strings + def.domain_len + def.class_len,
		       def.name_len);
	t.layout = def.layout;
	t.since = def.since;
	for (int i = 0; i < f->n; i++) {
		struct trace_func *o = f->all[i];

		if (o->layout == t.layout && o->since == t.since && !strcmp(o->name, t.name) &&
		    !strcmp(o->domain, t.domain))
			return o;
	}
	if (f->n == FUNCS_MAX)
		return NULL;
	funcs_find(f, &t);
	copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = t;
	f->all[f->n++] = copy;
	return copy;
}

struct trace_func *funcs_at(struct funcs *f, int i)
{
	return i < f->n ? f->all[i] : NULL;
}
