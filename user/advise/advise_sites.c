/* SPDX-License-Identifier: BSD-2-Clause */
/* advise_sites.c - see advise_sites.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advise_sites.h"
#include "../util/hash.h"
#include "../util/table/array.h"

#define NAME_MAX_BYTES 256

static uint32_t advise_sites_hash_of(const struct site *s)
{
	return (uint32_t)hash_word(hash_word(hash_key[0], s->handle),
				   (uint64_t)s->stack << 32 | s->func);
}

static void site_add(struct site *to, const struct site *one)
{
	if (!to->n || one->took_ns > to->took_ns) {
		to->at_ns = one->at_ns;
		to->took_ns = one->took_ns;
		to->tid = one->tid;
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
	uint32_t mask = SITES_MAX * 2 - 1, at = advise_sites_hash_of(one);
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
		site_add(&h->others, one);
		return 0;
	}
	if (!s) {
		s = new_site(h, one, name);
		if (!s)
			return -ENOMEM;
		h->buckets[at & mask] = (uint8_t)h->nsites;
	}
	site_add(s, one);
	return 0;
}

static void leave_out(struct hits *h, struct site *s, uint32_t tid, uint64_t start_ns,
		      uint64_t end_ns)
{
	uint64_t ns = end_ns - start_ns;

	if (s->tid != tid || s->at_ns > start_ns || end_ns > s->at_ns + s->took_ns)
		return;
	s->took_ns -= ns;
	ns = ns < s->ns ? ns : s->ns;
	s->ns -= ns;
	h->ns -= ns < h->ns ? ns : h->ns;
}

void hits_leave_out(struct hits *h, uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	for (uint32_t i = 0; i < h->nsites; i++)
		leave_out(h, &h->sites[i], tid, start_ns, end_ns);
	leave_out(h, &h->others, tid, start_ns, end_ns);
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

/* Stacks whose shown frames are the same have one text. */
struct site_stacks {
	bool whole;
	struct {
		uint32_t id, text;
	} ids[STACKS_MAX];
	struct text texts[STACKS_MAX];
	uint32_t nids, ntexts;
	uint32_t by_id[STACKS_MAX * 2], by_text[STACKS_MAX * 2]; /* index + 1 */
};

struct site_stacks *sites_stacks_open(void)
{
	return calloc(1, sizeof(struct site_stacks));
}

void sites_stacks_show_all(struct site_stacks *s)
{
	s->whole = true;
}

void sites_stacks_close(struct site_stacks *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->ntexts; i++)
		text_free(&s->texts[i]);
	free(s);
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void frame_text(struct text *t, const struct stack_frame *f, bool whole)
{
	if (f->function) {
		text_plain(t, f->function, 160);
	} else {
		text_hex(t, f->address);
	}
	if (f->file) {
		text_str(t, " (");
		text_plain(t, whole ? f->file : frame_file(f->kind, f->file), 160);
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

/* The number of native frames that are left out so that Python's callers have room, behind the first
 * NATIVE_FRAMES. */
static uint32_t left_out(const struct stack_view *v, const struct stack *s)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < v->n && s->frames[i]->kind != CT_FRAME_PYTHON; i++)
		before += stack_shows(v, s->frames[i]);
	return v->hides && before > NATIVE_FRAMES ? before - NATIVE_FRAMES : 0;
}

static void stack_text(struct text *t, const struct stack *s, bool whole)
{
	struct stack_view v = stack_view(s, whole);
	uint32_t out = left_out(&v, s), at = 0, lines = 0;

	for (uint32_t i = 0; i < v.n && lines < STACK_FRAMES; i++) {
		if (!stack_shows(&v, s->frames[i]))
			continue;
		at++;
		if (at > NATIVE_FRAMES + 1 && at <= NATIVE_FRAMES + out)
			continue;
		if (lines++)
			text_str(t, "\n");
		if (out && at == NATIVE_FRAMES + 1) {
			text_str(t, "(");
			text_u64(t, out);
			text_str(t, out == 1 ? " native frame)" : " native frames)");
		} else {
			frame_text(t, s->frames[i], whole);
		}
	}
}

/* The number of the text that was just written at the end of the texts, or of its equal. */
static uint32_t text_number(struct site_stacks *s)
{
	const struct text *t = &s->texts[s->ntexts];
	uint32_t mask = STACKS_MAX * 2 - 1, at = (uint32_t)hash_bytes(t->s ? t->s : "", t->len);

	for (; s->by_text[at & mask]; at++) {
		const struct text *have = &s->texts[s->by_text[at & mask] - 1];

		if (have->len == t->len && !memcmp(have->s, t->s, t->len)) {
			text_free(&s->texts[s->ntexts]);
			return s->by_text[at & mask];
		}
	}
	return s->by_text[at & mask] = ++s->ntexts;
}

uint32_t sites_stack_of(struct site_stacks *s, const struct stack *stack)
{
	uint32_t mask = STACKS_MAX * 2 - 1, at;

	if (!stack || !stack->nframes)
		return 0;
	for (at = stack->id * 0x9e3779b1u >> 8; s->by_id[at & mask]; at++)
		if (s->ids[s->by_id[at & mask] - 1].id == stack->id)
			return s->ids[s->by_id[at & mask] - 1].text;
	if (s->nids == STACKS_MAX)
		return 0;
	stack_text(&s->texts[s->ntexts], stack, s->whole);
	s->ids[s->nids].id = stack->id;
	s->ids[s->nids].text = text_number(s);
	s->by_id[at & mask] = ++s->nids;
	return s->ids[s->nids - 1].text;
}

uint32_t sites_stacks_n(const struct site_stacks *s)
{
	return s->ntexts;
}

const struct text *sites_stack_text(const struct site_stacks *s, uint32_t n)
{
	return n && n <= s->ntexts ? &s->texts[n - 1] : NULL;
}
