/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_sites.c - see mem_sites.h. A small table remembers the sites of the latest ids of stacks;
 * behind it is a table of the sites by a hash of their frames' content.
 */
#include <stdlib.h>
#include <string.h>

#include "../util/hash.h"
#include "../util/table/array.h"
#include "../util/table/kept.h"
#include "mem_sites.h"

#define RECENT 4096 /* a power of two */
#define CHUNK (64u << 10)
#define MOST (32u << 20)

/* Memory that is given back all at once. */
struct chunk {
	struct chunk *next;
	char bytes[CHUNK];
};

/* The site with this content. A hash of 64 bits is trusted: two stacks with the same hash would
 * share a line of a report. */
struct by_content {
	uint64_t hash;
	uint32_t site;
};

struct sites {
	struct site *at;
	uint32_t n;
	struct hash_map by_content; /* struct by_content */
	struct {
		uint32_t stack, site;
		uint16_t func;
	} recent[RECENT];
	struct chunk *chunks;
	size_t used; /* of the first chunk */
	size_t bytes, most;
	uint64_t no_room;
	bool show_all;
	/* texts that are kept once */
	struct hash_map texts;
};

struct sites *sites_open(size_t max_bytes)
{
	struct sites *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->most = max_bytes ? max_bytes : MOST;
	kept_open(&s->texts, SIZE_MAX);
	hash_map_open_of(&s->by_content, struct by_content, hash, SITES_MAX);
	if (array_add(s->at, s->n)) /* the site of all that is not known */
		return s;
	sites_close(s);
	return NULL;
}

void sites_close(struct sites *s)
{
	if (!s)
		return;
	for (struct chunk *c = s->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(s->at);
	hash_map_close(&s->by_content);
	hash_map_close(&s->texts);
	free(s);
}

void sites_show_all(struct sites *s)
{
	s->show_all = true;
}

static void *mem_sites_room(struct sites *s, size_t n)
{
	struct chunk *c;

	n = (n + 7) & ~(size_t)7;
	if (n > CHUNK)
		return NULL;
	if (!s->chunks || s->used + n > CHUNK) {
		if (s->bytes + sizeof(*c) > s->most)
			return NULL;
		c = malloc(sizeof(*c));
		if (!c)
			return NULL;
		c->next = s->chunks;
		s->chunks = c;
		s->bytes += sizeof(*c);
		s->used = 0;
	}
	s->used += n;
	return s->chunks->bytes + s->used - n;
}

static uint64_t mem_sites_mix(uint64_t h, uint64_t v)
{
	return hash_word(h, v);
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	return mem_sites_mix(h, s ? hash_bytes(s, strlen(s)) : 2);
}

/* Keeps a copy of a text; NULL: there was no text, or (*full) no room. */
static const char *mem_sites_keep(struct sites *s, const char *t, bool *full)
{
	char **place = t ? kept_place(&s->texts, t) : NULL;
	size_t n = t ? strlen(t) + 1 : 0;

	if (place && !*place && (*place = mem_sites_room(s, n)))
		memcpy(*place, t, n);
	*full |= t && (!place || !*place);
	return place ? *place : NULL;
}

static uint32_t frames_of(const struct stack *st)
{
	return !st ? 0 : st->nframes < SITES_FRAMES ? st->nframes : SITES_FRAMES;
}

static uint64_t mem_sites_hash_of(unsigned int func, const struct stack *st)
{
	uint64_t h = mem_sites_mix(0, func);

	for (uint32_t i = 0; i < frames_of(st); i++) {
		const struct stack_frame *f = st->frames[i];

		h = mix_text(mix_text(h, f->function), f->object);
		/* lines tell more than addresses, which differ from run to run where there is no
		 * file */
		h = f->line ? mix_text(mem_sites_mix(h, f->line), f->file)
			    : mem_sites_mix(h, f->address);
		h = mem_sites_mix(h, f->kind);
	}
	return h;
}

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

/* Marks the frames that are not the program's. A block that PyTorch's allocator reports was asked for by
 * the frames around the allocator's own. */
static void tell_own(struct site *to, struct site_frame *frames, const struct stack *st, bool all)
{
	struct stack_view v = st ? stack_view(st, all) : (struct stack_view){ 0 };

	for (uint32_t i = 0; i < to->nframes && !all; i++) {
		enum frame_role role =
			frame_role(frames[i].kind, frames[i].function, frames[i].object);

		frames[i].interpreter = i >= v.n || role == FRAME_GLUE ||
					(role == FRAME_ALLOCATOR && to->reported);
	}
	while (to->first < to->nframes && frames[to->first].interpreter)
		to->first++;
	if (to->first == to->nframes)
		to->first = 0;
	/* of what was inlined, the frame into which it was has the file */
	for (uint32_t i = to->first; i < to->nframes && !to->library; i++)
		if (frames[i].kind == CT_FRAME_NATIVE ||
		    (i == to->first && frames[i].kind != CT_FRAME_INLINED))
			to->library = base_of(frames[i].kind == CT_FRAME_NATIVE ? frames[i].object
										: frames[i].file);
}

static bool mem_sites_fill(struct sites *s, struct site *to, unsigned int func,
			   const struct stack *st)
{
	uint32_t n = frames_of(st);
	struct site_frame *frames;
	bool full = false;

	*to = (struct site){
		.func = func < (unsigned int)api_nfuncs ? api_funcs[func].name : NULL,
		.nframes = n,
		.reported = func < (unsigned int)api_nfuncs && api_layer_reports(&api_funcs[func]),
		.cut = st && (st->nframes > n || st->flags & (CT_STACK_CUT | CT_STACK_BROKEN))
	};
	frames = n ? mem_sites_room(s, n * sizeof(*frames)) : NULL;
	if (n && !frames)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct stack_frame *f = st->frames[i];

		frames[i] = (struct site_frame){ .function = mem_sites_keep(s, f->function, &full),
						 .file = mem_sites_keep(s, f->file, &full),
						 .object = mem_sites_keep(s, f->object, &full),
						 .address = f->address,
						 .offset = f->offset,
						 .line = f->line,
						 .kind = f->kind };
		frames[i].shown_file = s->show_all ? frames[i].file
						   : frame_file(f->kind, frames[i].file);
	}
	tell_own(to, frames, st, s->show_all);
	to->frames = frames;
	return !full;
}

static uint32_t by_content(struct sites *s, unsigned int func, const struct stack *st)
{
	uint64_t h = mem_sites_hash_of(func, st);
	struct by_content *known = hash_map_look(&s->by_content, &h);

	if (known)
		return known->site;
	if (s->n >= SITES_MAX || !array_room(s->at, s->n) ||
	    !mem_sites_fill(s, &s->at[s->n], func, st) ||
	    !(known = hash_map_get(&s->by_content, &h, &(bool){ false }))) {
		s->no_room++;
		return 0;
	}
	known->site = s->n;
	return s->n++;
}

uint32_t sites_of(struct sites *s, unsigned int func, const struct stack *st)
{
	uint32_t id = st ? st->id : 0, at = (id * 2654435761u ^ func * 40503u) & (RECENT - 1);

	if (id && s->recent[at].stack == id && s->recent[at].func == func)
		return s->recent[at].site;
	if (!st && func >= (unsigned int)api_nfuncs)
		return 0;
	s->recent[at].stack = id;
	s->recent[at].func = (uint16_t)func;
	s->recent[at].site = by_content(s, func, st);
	return s->recent[at].site;
}

const struct site *sites_get(const struct sites *s, uint32_t i)
{
	return &s->at[i < s->n ? i : 0];
}

uint32_t sites_n(const struct sites *s)
{
	return s->n;
}

uint64_t sites_no_room(const struct sites *s)
{
	return s->no_room;
}

void holders_add(struct holders *h, const struct holder *one)
{
	uint32_t at = h->n;

	while (at && h->most[at - 1].bytes < one->bytes)
		at--;
	if (at == HOLDERS_MAX)
		return;
	if (h->n < HOLDERS_MAX)
		h->n++;
	memmove(&h->most[at + 1], &h->most[at], (h->n - 1 - at) * sizeof(h->most[0]));
	h->most[at] = *one;
}
