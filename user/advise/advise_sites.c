/* SPDX-License-Identifier: BSD-2-Clause */
/* advise_sites.c - see advise_sites.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advise_sites.h"
#include "../util/hash.h"
#include "../util/table/array.h"

#define NAME_MAX_BYTES 256

static uint32_t hash_of(const struct site *s)
{
	return (uint32_t)hash_word(hash_word(hash_key[0], s->handle),
				   (uint64_t)s->stack << 32 | s->func);
}

static void add(struct site *to, const struct site *one)
{
	if (!to->n || one->took_ns > to->took_ns) {
		to->at_ns = one->at_ns;
		to->took_ns = one->took_ns;
	}
	to->n += one->n;
	to->ns += one->ns;
	to->bytes += one->bytes;
}

static struct site *new_site(struct hits *h, const struct site *one, const char *name)
{
	struct site *s;

	if (!array_room(h->sites, h->nsites))
		return NULL;
	s = &h->sites[h->nsites++];
	*s = (struct site){ .handle = one->handle, .stack = one->stack, .func = one->func };
	s->name = name ? strndup(name, NAME_MAX_BYTES) : NULL;
	return s;
}

int hits_add(struct hits *h, const struct site *one, const char *name)
{
	uint32_t mask = SITES_MAX * 2 - 1, at = hash_of(one);
	struct site *s = NULL;

	h->n += one->n;
	h->ns += one->ns;
	h->bytes += one->bytes;
	for (; h->buckets[at & mask] && !s; at++) {
		struct site *have = &h->sites[h->buckets[at & mask] - 1];

		if (have->handle == one->handle && have->stack == one->stack &&
		    have->func == one->func)
			s = have;
	}
	if (!s && h->nsites >= SITES_MAX) {
		add(&h->others, one);
		return 0;
	}
	if (!s) {
		s = new_site(h, one, name);
		if (!s)
			return -ENOMEM;
		h->buckets[at & mask] = (uint8_t)h->nsites;
	}
	add(s, one);
	return 0;
}

void hits_free(struct hits *h)
{
	for (uint32_t i = 0; i < h->nsites; i++)
		free(h->sites[i].name);
	free(h->sites);
	h->sites = NULL;
	h->nsites = 0;
}

/* ---- stacks ---- */

struct site_stacks {
	uint32_t ids[STACKS_MAX];
	struct text texts[STACKS_MAX];
	uint32_t n;
	uint32_t buckets[STACKS_MAX * 2]; /* index + 1 */
};

struct site_stacks *sites_stacks_open(void)
{
	return calloc(1, sizeof(struct site_stacks));
}

void sites_stacks_close(struct site_stacks *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		text_free(&s->texts[i]);
	free(s);
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void frame_text(struct text *t, const struct stack_frame *f)
{
	if (f->function) {
		text_plain(t, f->function, 160);
	} else {
		text_hex(t, f->address);
	}
	if (f->file) {
		text_str(t, " (");
		text_plain(t, f->file, 160);
		if (f->line) {
			text_str(t, ":");
			text_u64(t, f->line);
		}
		text_str(t, ")");
	} else if (f->object) {
		text_str(t, " (");
		text_plain(t, base(f->object), 96);
		text_str(t, ")");
	}
}

uint32_t sites_stack_of(struct site_stacks *s, const struct stack *stack)
{
	uint32_t mask = STACKS_MAX * 2 - 1, at;
	struct text *t;

	if (!stack || !stack->nframes)
		return 0;
	for (at = stack->id * 0x9e3779b1u >> 8; s->buckets[at & mask]; at++)
		if (s->ids[s->buckets[at & mask] - 1] == stack->id)
			return s->buckets[at & mask];
	if (s->n == STACKS_MAX)
		return 0;
	t = &s->texts[s->n];
	for (uint32_t i = 0; i < stack->nframes && i < STACK_FRAMES; i++) {
		if (i)
			text_str(t, "\n");
		frame_text(t, stack->frames[i]);
	}
	s->ids[s->n++] = stack->id;
	return s->buckets[at & mask] = s->n;
}

const struct text *sites_stack_text(const struct site_stacks *s, uint32_t n)
{
	return n && n <= s->n ? &s->texts[n - 1] : NULL;
}
