/* SPDX-License-Identifier: BSD-2-Clause */
/* why_texts.c - the texts of places, objects and chains, each once. See why_inside.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "why_inside.h"
#include "../util/hash.h"
#include "../util/table/array.h"

struct why_seen {
	struct chain_link link; /* hash: the stack's id */
	uint32_t number;
};

static uint32_t add(struct why_texts *t, const char *text, size_t n)
{
	uint64_t hash = hash_bytes(text, n);
	struct why_text *w;

	for (struct chain_link *at = chains_find(&t->by_text, hash); at; at = chains_again(at))
		if (!strcmp(((struct why_text *)at)->text, text))
			return ((struct why_text *)at)->number;
	w = calloc(1, sizeof(*w) + n + 1);
	if (!w || !array_room(t->list, t->n) || chains_add(&t->by_text, &w->link, hash)) {
		free(w);
		return 0;
	}
	memcpy(w->text, text, n + 1);
	w->number = (uint32_t)t->n;
	t->list[t->n++] = w;
	return w->number;
}

int why_texts_open(struct why_texts *t)
{
	add(t, "", 0);
	return t->n ? 0 : -ENOMEM;
}

void why_texts_close(struct why_texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->list[i]);
	free(t->list);
	chains_each(&t->by_stack, link)
	{
		chains_remove(&t->by_stack, link);
		free(link);
	}
	chains_close(&t->by_text);
	chains_close(&t->by_stack);
}

uint32_t why_texts_add(struct why_texts *t, const char *text)
{
	return add(t, text, strlen(text));
}

/* Not the program's own: of Python's library, of a package. */
static bool is_library(const struct stack_frame *f)
{
	return !f->file || f->file[0] == '<' || strstr(f->file, "/lib/python") ||
	       strstr(f->file, "-packages/");
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "train.py:88 collate", and what that called, if it is of a library: "train.py:88 collate -> Queue.get". */
static void say_place(const struct stack *s, char *text, size_t size)
{
	const struct stack_frame *first = NULL, *own = NULL;
	struct text plain = { .s = NULL };
	char raw[256];
	size_t n;

	for (uint32_t i = 0; i < s->nframes && !own; i++) {
		const struct stack_frame *f = s->frames[i];

		if (f->kind != CT_FRAME_PYTHON)
			continue;
		first = first ? first : f;
		own = is_library(f) ? NULL : f;
	}
	own = own ? own : first;
	if (!own && !stack_place(s, raw, sizeof(raw)))
		raw[0] = '\0';
	if (own)
		snprintf(raw, sizeof(raw), "%s:%u %s%s%s", own->file ? base(own->file) : "?",
			 own->line, own->function ? own->function : "?", own != first ? " -> " : "",
			 own != first && first->function ? first->function : "");
	text_plain(&plain, raw, sizeof(raw));
	n = plain.len < size ? plain.len : text_cut(plain.s, size - 1);
	memcpy(text, plain.s ? plain.s : "", plain.s ? n : 0);
	text[plain.s ? n : 0] = '\0';
	text_free(&plain);
}

uint32_t why_texts_place(struct why_texts *t, uint32_t id, const struct stack *s)
{
	struct why_seen *seen = (struct why_seen *)chains_find(&t->by_stack, id);
	char text[256];

	if (!id)
		return 0;
	if (seen)
		return seen->number;
	if (!s)
		return 0;
	say_place(s, text, sizeof(text));
	seen = calloc(1, sizeof(*seen));
	if (!seen || chains_add(&t->by_stack, &seen->link, id)) {
		free(seen);
		return 0;
	}
	seen->number = why_texts_add(t, text);
	return seen->number;
}
