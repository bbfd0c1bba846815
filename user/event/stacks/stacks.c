/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacks.c - the table of stacks: the stack that the id at the end of a call's record means, from
 * CT_FRAME and CT_STACK records.
 *
 * Ids are assigned in order, so each table is a window on the newest ones. Each table holds up to
 * one and a half times STACK_TABLE_STACKS or STACK_TABLE_FRAMES entries before the oldest are
 * dropped. A stack is dropped together with the first of its frames that is dropped. Records may
 * come from a file: no id, length or string in them is trusted. If they take more memory than those
 * of any real program, the oldest are dropped sooner, and one message says so. Which of a stack's
 * frames are the program's own is in shown.c.
 */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/msg.h"
#include "../../util/table/array.h"
#include "../event.h"

#define DEMANGLED_MAX 16384 /* bytes; a name that would need more is shown mangled */
#define MANGLED_MAX 4096
#define FRAMES_BYTES ((size_t)192 << 20)
#define STACKS_BYTES ((size_t)64 << 20)

/* The newest `n` entries, with ids from `base` on; a NULL is a gap. */
struct window {
	struct kept **at;
	uint32_t base, n;
	size_t cap;
	size_t bytes; /* size of all entries */
};

/* The head of each entry. */
struct kept {
	size_t bytes;
};

struct kept_frame {
	struct kept k;
	struct stack_frame f;
	char strings[];
};

struct kept_stack {
	struct kept k;
	struct stack s;
	uint32_t smallest; /* of its frames' ids */
	const struct stack_frame *frames[];
};

struct stack_table {
	struct window frames, stacks;
	bool said;
};

struct stack_table *stack_table_open(void)
{
	return calloc(1, sizeof(struct stack_table));
}

static void window_drop(struct window *w, uint32_t i)
{
	if (w->at[i])
		w->bytes -= w->at[i]->bytes;
	free(w->at[i]);
	w->at[i] = NULL;
}

static void window_clear(struct window *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		window_drop(w, i);
	w->n = 0;
}

void stack_table_close(struct stack_table *t)
{
	if (!t)
		return;
	window_clear(&t->frames);
	window_clear(&t->stacks);
	free(t->frames.at);
	free(t->stacks.at);
	free(t);
}

static struct kept *window_find(const struct window *w, uint32_t id)
{
	return id >= w->base && id - w->base < w->n ? w->at[id - w->base] : NULL;
}

/* Drops the oldest so that `keep` remain. */
static void window_shrink(struct window *w, uint32_t keep)
{
	uint32_t drop = w->n > keep ? w->n - keep : 0;

	for (uint32_t i = 0; i < drop; i++)
		window_drop(w, i);
	w->n -= drop;
	w->base += drop;
	if (w->n && drop)
		memmove(w->at, w->at + drop, w->n * sizeof(*w->at));
}

/* Stores `what` under an id; on success the window owns it. Only a file has an id that is not
 * the next one: a small gap is kept as a gap, any other id starts the window again. -EEXIST: the
 * id is already known. */
static int window_put(struct window *w, uint32_t id, struct kept *what, uint32_t limit)
{
	if (window_find(w, id))
		return -EEXIST;
	if (w->n && (id < w->base || id - w->base >= limit + limit / 2))
		window_clear(w);
	if (!w->n)
		w->base = id;
	if (!array_fit(w->at, w->cap, id - w->base + 1))
		return -ENOMEM;
	while (w->n <= id - w->base)
		w->at[w->n++] = NULL;
	w->at[id - w->base] = what;
	w->bytes += what->bytes;
	return 0;
}

/* The number of the newest entries that are to remain: fewer than there are if more is kept than
 * there is room for, otherwise all. */
static uint32_t window_room(struct stack_table *t, const struct window *w, uint32_t limit,
			    size_t bytes)
{
	size_t left = w->bytes;
	uint32_t drop = 0;

	if (w->n >= limit / 2 * 3)
		return limit;
	if (w->bytes <= bytes)
		return w->n;
	while (drop < w->n && left > bytes / 4 * 3)
		left -= w->at[drop] ? w->at[drop]->bytes : 0, drop++;
	if (!t->said)
		msg_warn("stacks take more than %zu MiB: the oldest are forgotten, and later calls "
			 "that refer to them are shown without a stack",
			 (FRAMES_BYTES + STACKS_BYTES) >> 20);
	t->said = true;
	return w->n - drop;
}

/* ---- frames ---- */

struct demangling {
	char *buf;
	size_t len;
	jmp_buf enough;
};

static void demangled(const char *piece, size_t len, void *ctx)
{
	struct demangling *d = ctx;

	if (len >= DEMANGLED_MAX - d->len)
		longjmp(d->enough, 1); /* a short mangled name can expand to an endless one */
	memcpy(d->buf + d->len, piece, len);
	d->len += len;
}

/* NULL: there is nothing to demangle. The caller frees. */
static char *demangle(const char *name)
{
	struct demangling *d;
	char *out = NULL;

	if (name[0] != '_' || name[1] != 'Z' || strlen(name) > MANGLED_MAX)
		return NULL;
	d = malloc(sizeof(*d));
	if (!d)
		return NULL;
	d->len = 0;
	d->buf = malloc(DEMANGLED_MAX);
	if (d->buf && !setjmp(d->enough) &&
	    cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, demangled, d))
		out = strndup(d->buf, d->len);
	free(d->buf);
	free(d);
	return out;
}

/* Removes the suffixes that compilers add to the name of a function that they have split, cloned
 * or made local (.constprop.0, .isra.0.part.1, .cold, .llvm.1234): they are not in the source. */
static void cut_suffixes(char *name)
{
	static const char *const words[] = { ".constprop", ".isra",	  ".part", ".cold",
					     ".lto_priv",  ".localalias", ".llvm", ".clone" };
	bool cut;

	do {
		size_t len = strlen(name), end = len;

		cut = false;
		while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
			end--;
		/* a number after a dot, or none */
		end = end < len && end && name[end - 1] == '.' ? end - 1 : len;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			size_t n = strlen(words[i]);

			if (end <= n || strncmp(name + end - n, words[i], n))
				continue;
			name[end - n] = '\0';
			cut = true;
			break;
		}
	} while (cut);
}

static const char *stacks_put_text(char **to, const char *from, size_t len)
{
	const char *s = *to;

	if (!len)
		return NULL;
	memcpy(*to, from, len);
	(*to)[len] = '\0';
	*to += len + 1;
	return s;
}

static struct kept_frame *make_frame(const struct ct_frame *r)
{
	size_t sum = (size_t)r->function_len + r->file_len + r->object_len, len;
	const char *from = r->strings;
	char *function, *to, *plain = NULL;
	struct kept_frame *k;

	function = strndup(from, r->function_len);
	if (!function)
		return NULL;
	if (r->kind != CT_FRAME_PYTHON) {
		cut_suffixes(function);
		plain = demangle(function);
	}
	len = strlen(plain ? plain : function);
	k = malloc(sizeof(*k) + len + sum + 4);
	if (k) {
		k->k.bytes = sizeof(*k) + len + sum + 4;
		to = k->strings;
		k->f = (struct stack_frame){
			.kind = r->kind, .line = r->line, .address = r->address, .offset = r->offset
		};
		k->f.function = stacks_put_text(&to, plain ? plain : function, len);
		k->f.mangled = plain ? stacks_put_text(&to, function, strlen(function)) : NULL;
		k->f.file = stacks_put_text(&to, from + r->function_len, r->file_len);
		k->f.object =
			stacks_put_text(&to, from + r->function_len + r->file_len, r->object_len);
	}
	free(plain);
	free(function);
	return k;
}

/* Drops the oldest frames, and the stacks that contain them. */
static void shrink_frames(struct stack_table *t, uint32_t keep)
{
	window_shrink(&t->frames, keep);
	for (uint32_t i = 0; i < t->stacks.n; i++) {
		const struct kept_stack *s = (const struct kept_stack *)t->stacks.at[i];

		if (s && s->smallest < t->frames.base)
			window_drop(&t->stacks, i);
	}
}

static int learn_frame(struct stack_table *t, const struct ct_frame *r)
{
	size_t room = r->h.size - sizeof(*r);
	struct kept_frame *k;
	uint32_t keep;
	int err;

	if (r->h.size < sizeof(*r) ||
	    (size_t)r->function_len + r->file_len + r->object_len > room || !r->id)
		return 0;
	k = make_frame(r);
	if (!k)
		return -ENOMEM;
	/* when a file starts its ids again, its stacks are dropped too: they point into the
	 * frames */
	if (t->frames.n &&
	    (r->id < t->frames.base || r->id - t->frames.base >= STACK_TABLE_FRAMES / 2 * 3))
		window_clear(&t->stacks);
	err = window_put(&t->frames, r->id, &k->k, STACK_TABLE_FRAMES);
	if (err)
		free(k);
	keep = window_room(t, &t->frames, STACK_TABLE_FRAMES, FRAMES_BYTES);
	if (keep < t->frames.n)
		shrink_frames(t, keep);
	return err == -ENOMEM ? err : 0;
}

/* ---- stacks ---- */

static int learn_stack(struct stack_table *t, const struct ct_stack *r)
{
	static const struct stack_frame unknown = { .kind = CT_FRAME_UNKNOWN };
	struct kept_stack *k;
	int err;

	if (r->h.size < sizeof(*r) ||
	    r->nframes > (r->h.size - sizeof(*r)) / sizeof(r->frames[0]) || !r->id)
		return 0;
	k = malloc(sizeof(*k) + r->nframes * sizeof(k->frames[0]));
	if (!k)
		return -ENOMEM;
	k->k.bytes = sizeof(*k) + r->nframes * sizeof(k->frames[0]);
	k->s = (struct stack){
		.id = r->id, .nframes = r->nframes, .flags = r->flags, .frames = k->frames
	};
	k->smallest = UINT32_MAX;
	for (uint32_t i = 0; i < r->nframes; i++) {
		const struct kept_frame *f =
			(const struct kept_frame *)window_find(&t->frames, r->frames[i]);

		k->frames[i] = f ? &f->f : &unknown;
		if (f && r->frames[i] < k->smallest)
			k->smallest = r->frames[i];
	}
	err = window_put(&t->stacks, r->id, &k->k, STACK_TABLE_STACKS);
	if (err)
		free(k);
	window_shrink(&t->stacks, window_room(t, &t->stacks, STACK_TABLE_STACKS, STACKS_BYTES));
	return err == -ENOMEM ? err : 0;
}

int stack_table_record(struct stack_table *t, const struct ct_hdr *h)
{
	if (h->kind == CT_FRAME)
		return learn_frame(t, (const struct ct_frame *)h);
	if (h->kind == CT_STACK)
		return learn_stack(t, (const struct ct_stack *)h);
	return 0;
}

const struct stack *stack_table_get(struct stack_table *t, uint32_t id)
{
	const struct kept_stack *k = id ? (const struct kept_stack *)window_find(&t->stacks, id)
					: NULL;

	return k ? &k->s : NULL;
}

const struct stack *stack_table_find(struct stack_table *t, const struct ct_call *c)
{
	uint64_t id;

	if (!(c->h.flags & CT_F_STACK) || c->h.size < sizeof(*c) + sizeof(id))
		return NULL;
	memcpy(&id, (const char *)c + c->h.size - sizeof(id), sizeof(id));
	return id <= UINT32_MAX ? stack_table_get(t, (uint32_t)id) : NULL;
}

static const struct stack_frame *stacks_place_of(const struct stack *s)
{
	const struct stack_frame *lined = NULL;

	for (uint32_t i = 0; i < s->nframes; i++) {
		const struct stack_frame *f = s->frames[i];

		if (f->kind == CT_FRAME_PYTHON && f->function)
			return f;
		if (!lined && f->function && f->file && f->line &&
		    frame_role(f->kind, f->function, f->object) != FRAME_GLUE)
			lined = f;
	}
	return lined ? lined : s->nframes && s->frames[0]->function ? s->frames[0] : NULL;
}

bool stack_place(const struct stack *s, char *text, size_t size)
{
	const struct stack_frame *f = s ? stacks_place_of(s) : NULL;
	const char *file, *slash;

	if (!f)
		return false;
	file = f->file ? f->file : f->object;
	slash = file ? strrchr(file, '/') : NULL;
	file = slash && slash[1] ? slash + 1 : file;
	if (!file)
		snprintf(text, size, "%s", f->function);
	else if (f->file && f->line)
		snprintf(text, size, "%s at %s:%u", f->function, file, f->line);
	else
		snprintf(text, size, "%s in %s", f->function, file);
	return true;
}
