/* SPDX-License-Identifier: BSD-2-Clause */
/* replay_muted.c - see replay_muted.h. */
#include <stdlib.h>
#include <string.h>

#include "../event/muted.h"
#include "replay_muted.h"

#define FUNCTIONS_MAX 256
#define LEAST_NS 5 /* a call takes no less */
/* a recorder that lives tells the numbers once a second, or somewhat later */
#define TELL_NS 1500000000ULL

struct function {
	int func; /* row */
	uint32_t pid;
	uint64_t from_ns, until_ns; /* until_ns CT_HOLE_OPEN: it goes on */
	uint64_t counted_until_ns;  /* the records have numbers up to here */
};

struct replay_muted {
	struct function all[FUNCTIONS_MAX];
	int n;
	uint64_t last_ns; /* the end of the latest record */
	const char *names[FUNCTIONS_MAX + 1];
};

struct replay_muted *replay_muted_open(void)
{
	return calloc(1, sizeof(struct replay_muted));
}

void replay_muted_close(struct replay_muted *m)
{
	free(m);
}

static int func_named(const char *name, size_t len)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (!strncmp(api_funcs[i].name, name, len) && !api_funcs[i].name[len])
			return i;
	return -1;
}

static void name(struct replay_muted *m, const char *name)
{
	int i = 0;

	while (m->names[i] && m->names[i] != name)
		i++;
	if (i < FUNCTIONS_MAX)
		m->names[i] = name;
}

static void row(struct replay_muted *m, const struct ct_hole *h)
{
	int func = func_named(h->text, h->text_len);
	struct function *f = m->all;

	if (h->state != CT_HOLE_MUTED || func < 0)
		return;
	while (f < m->all + m->n && (f->func != func || f->pid != h->h.pid))
		f++;
	if (f == m->all + FUNCTIONS_MAX)
		return;
	if (f == m->all + m->n)
		*f = (struct function){ .func = func, .pid = h->h.pid };
	m->n += f == m->all + m->n;
	name(m, api_funcs[func].name);
	f->from_ns = h->h.start_ns;
	f->until_ns = h->until_ns;
}

/* A row of the machine (pid 0) has numbers of each process. */
static void numbers(struct replay_muted *m, const struct ct_muted *t)
{
	int func = muted_func(t);

	for (struct function *f = m->all; f < m->all + m->n; f++)
		if (f->func == func && (!f->pid || f->pid == t->h.pid) &&
		    t->h.end_ns > f->counted_until_ns)
			f->counted_until_ns = t->h.end_ns;
}

void replay_muted_record(struct replay_muted *m, const struct ct_hdr *h)
{
	if (h->kind == CT_HOLE)
		row(m, (const struct ct_hole *)h);
	else if (h->kind == CT_MUTED)
		numbers(m, (const struct ct_muted *)h);
	else if (h->end_ns > m->last_ns && h->pid)
		m->last_ns = h->end_ns;
}

int replay_muted_end(struct replay_muted *m, emit_fn emit, void *ctx)
{
	union {
		struct ct_muted m;
		char room[sizeof(struct ct_muted) + 512];
	} rec;
	int err = 0;

	for (const struct function *f = m->all; f < m->all + m->n && !err; f++) {
		uint64_t from = f->counted_until_ns > f->from_ns ? f->counted_until_ns : f->from_ns;
		uint64_t until = m->last_ns > from + TELL_NS ? m->last_ns : from + TELL_NS;

		if (f->until_ns != CT_HOLE_OPEN)
			continue;
		memset(&rec, 0, sizeof(rec));
		muted_name(&rec.m, f->func);
		rec.m.h.pid = f->pid;
		rec.m.h.start_ns = from;
		rec.m.h.end_ns = until;
		rec.m.unseen.above = (int64_t)((until - from) / LEAST_NS);
		err = emit(ctx, &rec.m.h);
	}
	m->n = err ? m->n : 0;
	return err;
}

const char *const *replay_muted_names(const struct replay_muted *m)
{
	return m->names;
}
