/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pieces.c - see pieces.h. The number of incomplete strings is bounded. Each thread has one,
 * because the pieces of a string and its call follow each other in a thread. If there are too many
 * threads, the one that was inactive longest loses its pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "pieces.h"

#define THREADS 64

struct string {
	uint32_t pid, tid;
	uint64_t used; /* when it was last used, by the use counter; 0: free */
	uint16_t func;
	uint8_t read;
	bool whole;	/* the last piece came */
	uint32_t first; /* offset of the first piece in the string */
	uint32_t len;	/* length of the pieces so far, without a gap */
	char *bytes;	/* CT_NAME_MAX */
};

struct pieces {
	uint64_t clock;
	uint32_t nused;
	struct string strings[THREADS];
	char joined[CT_NAME_MAX];
};

struct pieces *pieces_open(void)
{
	return calloc(1, sizeof(struct pieces));
}

void pieces_close(struct pieces *p)
{
	if (!p)
		return;
	for (int i = 0; i < THREADS; i++)
		free(p->strings[i].bytes);
	free(p);
}

static struct string *pieces_find(struct pieces *p, uint32_t pid, uint32_t tid)
{
	for (int i = 0; i < THREADS && p->nused; i++)
		if (p->strings[i].used && p->strings[i].tid == tid && p->strings[i].pid == pid)
			return &p->strings[i];
	return NULL;
}

static void drop(struct pieces *p, struct string *s)
{
	p->nused -= s->used != 0;
	s->used = 0;
}

/* Begins the thread's string anew with this piece. NULL: no memory. */
static struct string *begin(struct pieces *p, const struct ct_more *m)
{
	struct string *s = pieces_find(p, m->h.pid, m->h.tid);
	char *bytes;

	for (int i = 0; !s && i < THREADS; i++)
		if (!p->strings[i].used)
			s = &p->strings[i];
	if (!s) {
		s = &p->strings[0];
		for (int i = 1; i < THREADS; i++)
			if (p->strings[i].used < s->used)
				s = &p->strings[i];
	}
	drop(p, s);
	bytes = s->bytes ? s->bytes : malloc(CT_NAME_MAX);
	if (!bytes)
		return NULL;
	*s = (struct string){ .pid = m->h.pid,
			      .tid = m->h.tid,
			      .used = ++p->clock,
			      .func = m->func,
			      .read = m->read,
			      .first = m->offset,
			      .bytes = bytes };
	p->nused++;
	return s;
}

void pieces_drop(struct pieces *p)
{
	for (int i = 0; i < THREADS && p->nused; i++)
		drop(p, &p->strings[i]);
}

void pieces_add(struct pieces *p, const struct ct_more *m)
{
	struct string *s = pieces_find(p, m->h.pid, m->h.tid);
	uint32_t n = m->len;

	if (!s || s->func != m->func || s->read != m->read || m->offset <= s->first) {
		s = begin(p, m);
		if (!s)
			return;
	}
	if (s->whole || m->offset != s->first + s->len)
		return; /* a piece is missing: what comes after the gap cannot be used */
	s->used = ++p->clock;
	s->whole = m->last;
	if (n > CT_NAME_MAX - s->len) {
		n = CT_NAME_MAX - s->len;
		s->whole = false;
	}
	memcpy(s->bytes + s->len, m->bytes, n);
	s->len += n;
}

const char *pieces_join(struct pieces *p, const struct ct_call *c, uint8_t read, const char *head,
			uint32_t *len, bool *cut)
{
	struct string *s = pieces_find(p, c->h.pid, c->h.tid);
	uint32_t room;

	if (!s || s->func != c->func)
		return head;
	drop(p, s);
	if (!*cut || s->read != read || s->first != *len)
		return head;
	*cut = !s->whole;
	room = CT_NAME_MAX - *len;
	if (s->len > room) {
		s->len = room;
		*cut = true;
	}
	memcpy(p->joined, head, *len);
	memcpy(p->joined + *len, s->bytes, s->len);
	*len = (uint32_t)strnlen(p->joined, *len + s->len);
	return p->joined;
}
