/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lines.h - which lines of the processor's cache two threads write to. The memory is copied, one thread works, and what differs
 * then is its own; a line to which both have written would travel between their cores at each call. A round in which
 * nobody works says what the test itself writes.
 */
#ifndef LINES_H
#define LINES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_RANGES 10
#define LINE 64
enum lines_who { LINES_NOBODY, LINES_FIRST, LINES_SECOND, LINES_WORKERS };

struct lines {
	struct {
		const char *at;
		size_t n; /* lines */
		char *was;
		unsigned char *by; /* bits of enum lines_who */
	} ranges[LINES_RANGES];
	unsigned int n;
	void (*work)(void);
	int go[LINES_WORKERS][2], done[2];
};

static inline void lines_add(struct lines *l, const void *from, const void *to)
{
	const char *at = (const char *)((size_t)from & ~(size_t)(LINE - 1));
	size_t n = (size_t)((const char *)to - at) / LINE;

	l->ranges[l->n].at = at;
	l->ranges[l->n].n = n;
	l->ranges[l->n].was = malloc(n * LINE + 1);
	l->ranges[l->n++].by = calloc(n + 1, 1);
}

/* This reads all memory there, also between variables, which AddressSanitizer does not allow. */
__attribute__((no_sanitize("address"))) static inline bool lines_same(char *was, const char *at,
								      bool copy)
{
	bool same = true;

	for (size_t i = 0; i < LINE; i++) {
		const char c = ((const volatile char *)at)[i];

		same &= was[i] == c;
		if (copy)
			was[i] = c;
	}
	return same;
}

static inline void lines_copy(struct lines *l)
{
	for (unsigned int i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->ranges[i].n; k++)
			lines_same(l->ranges[i].was + k * LINE, l->ranges[i].at + k * LINE, true);
}

static inline void lines_compare(struct lines *l, enum lines_who who)
{
	for (unsigned int i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->ranges[i].n; k++)
			if (!lines_same(l->ranges[i].was + k * LINE, l->ranges[i].at + k * LINE,
					false))
				l->ranges[i].by[k] |= (unsigned char)(1 << who);
}

struct lines_worker {
	struct lines *l;
	enum lines_who who;
};

static inline void *lines_work(void *arg)
{
	const struct lines_worker *w = arg;
	char c;

	while (read(w->l->go[w->who][0], &c, 1) == 1) {
		if (w->who != LINES_NOBODY)
			w->l->work();
		if (write(w->l->done[1], &c, 1) != 1)
			break;
	}
	return NULL;
}

static inline bool lines_let(struct lines *l, enum lines_who who)
{
	char c = 0;

	return write(l->go[who][1], &c, 1) == 1 && read(l->done[0], &c, 1) == 1;
}

/* Two threads work in turn. Returns how many lines both have written to, *alone: how many the first one has
 * written to, or -1. *at: one of those that both have. */
static inline long lines_shared(struct lines *l, long *alone, const void **at)
{
	struct lines_worker w[LINES_WORKERS];
	pthread_t t[LINES_WORKERS];
	long both = 0;

	if (pipe(l->done))
		return -1;
	for (int i = 0; i < LINES_WORKERS; i++) {
		w[i] = (struct lines_worker){ l, (enum lines_who)i };
		if (pipe(l->go[i]) || pthread_create(&t[i], NULL, lines_work, &w[i]))
			return -1;
	}
	/* the first time each takes what it then has for itself */
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < LINES_WORKERS; i++) {
			lines_copy(l);
			if (!lines_let(l, (enum lines_who)i))
				return -1;
			if (round)
				lines_compare(l, (enum lines_who)i);
		}
	for (int i = 0; i < LINES_WORKERS; i++) {
		close(l->go[i][1]);
		pthread_join(t[i], NULL);
		close(l->go[i][0]);
	}
	close(l->done[0]);
	close(l->done[1]);
	*alone = 0;
	for (unsigned int i = 0; i < l->n; i++) {
		for (size_t k = 0; k < l->ranges[i].n; k++) {
			unsigned int by = l->ranges[i].by[k];

			if (by & 1 << LINES_NOBODY)
				continue;
			*alone += by == 1 << LINES_FIRST;
			if (by != (1 << LINES_FIRST | 1 << LINES_SECOND))
				continue;
			both++;
			*at = l->ranges[i].at + k * LINE;
		}
		free(l->ranges[i].was);
		free(l->ranges[i].by);
	}
	return both;
}

#endif
