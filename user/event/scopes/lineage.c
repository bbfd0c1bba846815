/* SPDX-License-Identifier: BSD-2-Clause */
/* lineage.c - see lineage.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/table/hash_map.h"
#include "lineage.h"

#define NAME_MAX_BYTES 256
#define STEPS_MAX 256 /* scopes inside each other that are followed */

struct interned {
	uint64_t hash;
	char *text;
	struct ct_gemm *gemm; /* what calls of this name compute; NULL: nothing */
};

struct lineage {
	struct hash_map lines, names;
	uint64_t *oldest; /* keys of the lines in the order in which they came, in a ring */
	uint32_t first, n;
	uint32_t kept; /* lines */
};

struct lineage *lineage_open(void)
{
	struct lineage *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	hash_map_open_of(&l->lines, struct scope_line, id, LINEAGE_SCOPES);
	hash_map_open_of(&l->names, struct interned, hash, LINEAGE_NAMES);
	return l;
}

void lineage_close(struct lineage *l)
{
	struct interned *name;

	if (!l)
		return;
	hash_map_each(&l->names, name)
	{
		free(name->text);
		free(name->gemm);
	}
	hash_map_close(&l->names);
	hash_map_close(&l->lines);
	free(l->oldest);
	free(l);
}

static const char *lineage_intern(struct lineage *l, const char *text, size_t n)
{
	struct interned key = { .hash = hash_bytes(text, n) }, *i;
	bool made;

	i = hash_map_get(&l->names, &key, &made);
	if (!i)
		return "?";
	if (made) {
		i->text = strndup(text, n);
		if (!i->text) {
			hash_map_remove(&l->names, i);
			return "?";
		}
	}
	/* two texts of one hash: very rare, and no reason to show the other's name */
	return strlen(i->text) == n && !memcmp(i->text, text, n) ? i->text : "?";
}

/* Room for one more: in the place of the oldest. */
static int lineage_make_room(struct lineage *l, uint64_t key)
{
	if (!l->oldest) {
		l->oldest = malloc(LINEAGE_SCOPES * sizeof(*l->oldest));
		if (!l->oldest)
			return -ENOMEM;
	}
	while (l->n == LINEAGE_SCOPES) {
		uint64_t first = l->oldest[l->first];
		struct scope_line *line = hash_map_find(&l->lines, &first);

		l->first = (l->first + 1) % LINEAGE_SCOPES;
		if (line && line->kept) { /* at most half of them are */
			l->oldest[(l->first + l->n - 1) % LINEAGE_SCOPES] = first;
			continue;
		}
		l->n--;
		if (line)
			hash_map_remove(&l->lines, line);
	}
	l->oldest[(l->first + l->n++) % LINEAGE_SCOPES] = key;
	return 0;
}

/* The name of a call for products has its shape and types. */
static void fill_gemm(struct lineage *l, struct scope_line *line, const struct ct_scope *s,
		      const struct ct_gemm *g)
{
	char shape[160], name[NAME_MAX_BYTES];
	struct interned *i;

	gemm_text(g, shape, sizeof(shape));
	snprintf(name, sizeof(name), "%.*s %s", (int)strnlen(s->text, s->text_len), s->text, shape);
	line->name = lineage_intern(l, name, strlen(name));
	line->flop = g->flop;
	i = hash_map_find(&l->names, &(struct interned){ .hash = hash_bytes(name, strlen(name)) });
	if (i && !i->gemm) {
		i->gemm = malloc(sizeof(*i->gemm));
		if (i->gemm)
			memcpy(i->gemm, g, sizeof(*g));
	}
	line->gemm = i ? i->gemm : NULL;
}

static void lineage_fill(struct lineage *l, struct scope_line *line, const struct ct_scope *s)
{
	const struct ct_collective *more = scope_collective(s);
	size_t n = strnlen(s->text, s->text_len);
	const char *fields = s->text;
	char group[NAME_MAX_BYTES];

	line->parent = s->parent;
	line->kind = s->kind;
	line->depth = s->depth;
	line->ranks = more ? more->ranks : CT_UNKNOWN;
	line->how = more ? more->how : CT_COLLECTIVE_OTHER;
	line->bytes = more ? more->bytes : 0;
	line->members = more ? more->members : 0;
	if (scope_gemm(s)) {
		fill_gemm(l, line, s, scope_gemm(s));
		return;
	}
	if (n > NAME_MAX_BYTES)
		n = NAME_MAX_BYTES;
	if (line->members && s->fields_len) {
		fields += s->text_len + s->domain_len + s->category_len + s->layer_len;
		snprintf(group, sizeof(group), "%.*s (%.*s)", (int)n, s->text,
			 (int)strnlen(fields, s->fields_len), fields);
		line->name = lineage_intern(l, group, strlen(group));
		return;
	}
	line->name = s->flags & CT_SCOPE_UNNAMED ? "?" : lineage_intern(l, s->text, n);
}

int lineage_record(struct lineage *l, const struct ct_hdr *h)
{
	const struct ct_scope *s = (const struct ct_scope *)h;
	struct scope_line key = { .pid = h->pid }, *line;
	uint64_t bytes;
	int err;

	if ((h->kind != CT_SCOPE_BEGIN && h->kind != CT_SCOPE_END) || s->kind == CT_SCOPE_MARK)
		return 0;
	key.id = s->id;
	line = hash_map_look(&l->lines, (const uint64_t *)(const void *)&key);
	if (!line) {
		memcpy(&bytes, &key, sizeof(bytes));
		err = lineage_make_room(l, bytes);
		if (err)
			return err;
		line = hash_map_get(&l->lines, &key, &(bool){ false });
		if (!line)
			return -ENOMEM;
		lineage_fill(l, line, s);
	} else if (h->kind == CT_SCOPE_END && line->bytes == 0) {
		lineage_fill(l, line, s);
	}
	line->ended |= h->kind == CT_SCOPE_END;
	return 0;
}

const struct scope_line *lineage_find(const struct lineage *l, uint32_t pid, uint32_t id)
{
	struct scope_line key = { .pid = pid, .id = id };

	if (!l || id == CT_SCOPE_NONE || id == CT_SCOPE_UNKNOWN)
		return NULL;
	return hash_map_find(&l->lines, &key);
}

void lineage_keep(struct lineage *l, uint32_t pid, uint32_t id)
{
	for (int i = 0; i < STEPS_MAX && l->kept < LINEAGE_SCOPES / 2; i++) {
		struct scope_line *line = (struct scope_line *)lineage_find(l, pid, id);

		if (!line || line->kept)
			return;
		line->kept = true;
		l->kept++;
		id = line->parent;
	}
}

void lineage_release(struct lineage *l, uint32_t pid)
{
	struct scope_line *line;

	if (!l->kept)
		return;
	hash_map_each(&l->lines, line)
	{
		if (line->pid != pid || !line->kept)
			continue;
		line->kept = false;
		l->kept--;
	}
}

uint32_t lineage_from(const struct event *ev, uint32_t kinds)
{
	bool known;

	if (!ev->capture || lineage_of_kind(ev->lineage, ev->rec->pid, ev->scope_id, kinds, &known))
		return ev->scope_id;
	return ev->capture->scope;
}

const struct scope_line *lineage_of_kind(const struct lineage *l, uint32_t pid, uint32_t id,
					 uint32_t kinds, bool *known)
{
	const struct scope_line *line;

	*known = false;
	for (int i = 0; i < STEPS_MAX; i++) {
		if (id == CT_SCOPE_NONE) {
			*known = true;
			return NULL;
		}
		line = lineage_find(l, pid, id);
		if (!line)
			return NULL;
		if (kinds >> line->kind & 1) {
			*known = true;
			return line;
		}
		id = line->parent;
	}
	return NULL;
}
