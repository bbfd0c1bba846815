/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_sites.c - see mem_sites.h. A small table remembers which site the latest ids of stacks
 * are; behind it the sites by a hash of what their frames say.
 */
#include <stdlib.h>
#include <string.h>

#include "mem_sites.h"

#define RECENT 4096 /* a power of two */
#define SLOTS (SITES_MAX * 2)
#define CHUNK (64u << 10)
#define MOST (32u << 20)

/* Memory that is given back all at once. */
struct chunk {
	struct chunk *next;
	char bytes[CHUNK];
};

struct sites {
	struct site *at;
	uint64_t *hashes;
	uint32_t n, cap;
	uint32_t *slots; /* number of a site; 0: free */
	struct {
		uint32_t stack, site;
		uint16_t func;
	} recent[RECENT];
	struct chunk *chunks;
	size_t used; /* of the first chunk */
	size_t bytes, most;
	uint64_t no_room;
	/* texts that are kept once */
	const char **texts;
	uint32_t ntexts, text_slots;
};

struct sites *sites_open(size_t max_bytes)
{
	struct sites *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->most = max_bytes ? max_bytes : MOST;
	s->cap = 256;
	s->at = calloc(s->cap, sizeof(*s->at));
	s->hashes = calloc(s->cap, sizeof(*s->hashes));
	s->slots = calloc(SLOTS, sizeof(*s->slots));
	s->text_slots = 1024;
	s->texts = calloc(s->text_slots, sizeof(*s->texts));
	if (s->at && s->hashes && s->slots && s->texts) {
		s->n = 1; /* the site of all that is not known */
		return s;
	}
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
	free(s->hashes);
	free(s->slots);
	free(s->texts);
	free(s);
}

static void *room(struct sites *s, size_t n)
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

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	h = mix(h, s ? 1 : 2);
	for (; s && *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
	return h ^ h >> 29;
}

static const char **text_slot(const char **texts, uint32_t slots, const char *t)
{
	uint32_t i = (uint32_t)(mix_text(0, t) >> 11) & (slots - 1);

	while (texts[i] && strcmp(texts[i], t))
		i = (i + 1) & (slots - 1);
	return &texts[i];
}

/* A text of our own; NULL: there was none, or (*full) no room. */
static const char *keep(struct sites *s, const char *t, bool *full)
{
	const char **slot, **more;
	size_t n;
	char *to;

	if (!t)
		return NULL;
	slot = text_slot(s->texts, s->text_slots, t);
	if (*slot)
		return *slot;
	n = strlen(t) + 1;
	to = room(s, n);
	if (!to) {
		*full = true;
		return NULL;
	}
	*slot = memcpy(to, t, n);
	if (++s->ntexts < s->text_slots / 2)
		return to;
	more = calloc(s->text_slots * 2, sizeof(*more));
	if (!more) {
		/* the table must never be full */
		*full = s->ntexts >= s->text_slots / 8 * 7;
		return to;
	}
	for (uint32_t i = 0; i < s->text_slots; i++)
		if (s->texts[i])
			*text_slot(more, s->text_slots * 2, s->texts[i]) = s->texts[i];
	free(s->texts);
	s->texts = more;
	s->text_slots *= 2;
	return to;
}

static uint32_t frames_of(const struct stack *st)
{
	return !st ? 0 : st->nframes < SITES_FRAMES ? st->nframes : SITES_FRAMES;
}

static uint64_t hash_of(unsigned int func, const struct stack *st)
{
	uint64_t h = mix(0, func);

	for (uint32_t i = 0; i < frames_of(st); i++) {
		const struct stack_frame *f = st->frames[i];

		h = mix_text(mix_text(h, f->function), f->object);
		/* lines tell more than addresses, which differ from run to run where there is no
		 * file */
		h = f->line ? mix_text(mix(h, f->line), f->file) : mix(h, f->address);
		h = mix(h, f->kind);
	}
	return h;
}

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

/* Files whose code runs the program's own, or calls C for it. */
static bool is_interpreter(const struct site_frame *f)
{
	static const char *const begins[] = { "libpython", "python3", "libffi.so", "_ctypes.",
					      "_cffi_backend." };
	const char *base = f->kind == CT_FRAME_PYTHON ? NULL : base_of(f->object);

	for (size_t i = 0; base && i < ARRAY_LEN(begins); i++)
		if (!strncmp(base, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* Which frames are the program's. */
static void tell_own(struct site *to, struct site_frame *frames)
{
	for (uint32_t i = 0; i < to->nframes; i++)
		frames[i].interpreter = is_interpreter(&frames[i]);
	while (to->first < to->nframes && frames[to->first].interpreter)
		to->first++;
	if (to->first == to->nframes)
		to->first = 0;
	for (uint32_t i = to->first; i < to->nframes && !to->library; i++)
		if (frames[i].kind == CT_FRAME_NATIVE || i == to->first)
			to->library = base_of(frames[i].kind == CT_FRAME_NATIVE ? frames[i].object
										: frames[i].file);
}

static bool fill(struct sites *s, struct site *to, unsigned int func, const struct stack *st)
{
	uint32_t n = frames_of(st);
	struct site_frame *frames;
	bool full = false;

	*to = (struct site){ .func = func < (unsigned int)api_nfuncs ? api_funcs[func].name : NULL,
			     .nframes = n,
			     .cut = st && (st->nframes > n ||
					   st->flags & (CT_STACK_CUT | CT_STACK_BROKEN)) };
	frames = n ? room(s, n * sizeof(*frames)) : NULL;
	if (n && !frames)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct stack_frame *f = st->frames[i];

		frames[i] = (struct site_frame){ .function = keep(s, f->function, &full),
						 .file = keep(s, f->file, &full),
						 .object = keep(s, f->object, &full),
						 .address = f->address,
						 .offset = f->offset,
						 .line = f->line,
						 .kind = f->kind };
	}
	tell_own(to, frames);
	to->frames = frames;
	return !full;
}

static bool more_room(struct sites *s)
{
	uint32_t cap = s->cap * 2;
	struct site *at;
	uint64_t *hashes;

	if (s->n < s->cap)
		return true;
	if (s->n >= SITES_MAX)
		return false;
	at = realloc(s->at, cap * sizeof(*at));
	if (!at)
		return false;
	s->at = at;
	hashes = realloc(s->hashes, cap * sizeof(*hashes));
	if (!hashes)
		return false;
	s->hashes = hashes;
	s->cap = cap;
	return true;
}

static uint32_t by_content(struct sites *s, unsigned int func, const struct stack *st)
{
	uint64_t h = hash_of(func, st);
	uint32_t i = (uint32_t)(h >> 16) & (SLOTS - 1);

	/* 64 bits of hash are believed: two stacks that share them would share a line of a report */
	for (; s->slots[i]; i = (i + 1) & (SLOTS - 1))
		if (s->hashes[s->slots[i]] == h)
			return s->slots[i];
	if (!more_room(s) || !fill(s, &s->at[s->n], func, st)) {
		s->no_room++;
		return 0;
	}
	s->hashes[s->n] = h;
	s->slots[i] = s->n;
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
