/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsys_strings.c - StringIds: each text once, since queries group by its id.
 *
 * It does not use util/strings, since the texts themselves are only in the database. In memory each
 * text has 16 bytes: a hash and the id. A text with the same hash is read back and compared,
 * because texts come from the target, which may construct collisions. A small cache of texts is
 * searched first, for texts that repeat. Beyond STRINGS_MAX texts, a new text gets a row each time
 * it comes; a message says so at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "../../util/hash.h"
#include "../../util/msg.h"
#include "nsys.h"
#include "../../util/text.h"

#define CACHE 2048	    /* a power of two */
#define CACHE_TEXT 1024	    /* longest text, in bytes, that is cached: 2 MiB in all */
#define STRINGS_MAX 2000000 /* 64 MiB of hashes and ids */

struct cached {
	uint64_t hash;
	uint32_t len;
	int64_t id; /* 0: free */
	char *text;
};

struct nsys_strings {
	struct nsys_db *d;
	struct hash_map seen; /* hash -> id */
	struct cached cache[CACHE];
	sqlite3_stmt *find;
	int64_t last;
	uint64_t again; /* rows of texts that may have had a row already */
};

struct nsys_strings *nsys_strings_open(struct nsys_db *d)
{
	struct nsys_strings *s = calloc(1, sizeof(*s));

	if (s)
		s->d = d;
	return s;
}

void nsys_strings_close(struct nsys_strings *s)
{
	if (!s)
		return;
	if (s->again)
		msg_warn("nsys-sqlite: more than %d different texts: %llu rows of StringIds may be "
			 "duplicates",
			 STRINGS_MAX, (unsigned long long)s->again);
	for (int i = 0; i < CACHE; i++)
		free(s->cache[i].text);
	sqlite3_finalize(s->find);
	hash_map_close(&s->seen);
	free(s);
}

/* never 0, which is free */
static uint64_t nsys_strings_hash_of(const char *s, size_t n)
{
	uint64_t h = hash_bytes(s, n);

	return h ? h : 1;
}

/* True if the stored text with this id is the same. Compares the stored form, in which invalid
 * UTF-8 is replaced. */
static bool is_text(struct nsys_strings *s, int64_t id, const char *text, size_t n)
{
	bool same = false;

	if (!s->find && sqlite3_prepare_v3(s->d->db, "SELECT value FROM StringIds WHERE id=?", -1,
					   SQLITE_PREPARE_PERSISTENT, &s->find, NULL))
		return false;
	sqlite3_bind_int64(s->find, 1, id);
	if (sqlite3_step(s->find) == SQLITE_ROW)
		same = (size_t)sqlite3_column_bytes(s->find, 0) == n &&
		       (!n || !memcmp(sqlite3_column_blob(s->find, 0), text, n));
	sqlite3_reset(s->find);
	return same;
}

static int64_t add_string(struct nsys_strings *s, const char *text, size_t n)
{
	struct nsys_row r = nsys_begin(s->d, NSYS_STRINGS);

	nsys_i(&r, ++s->last);
	if (r.stmt)
		sqlite3_bind_text(r.stmt, ++r.at, text, (int)n, SQLITE_STATIC);
	nsys_end(&r);
	return s->last;
}

static int64_t find_or_add(struct nsys_strings *s, uint64_t hash, const char *text, size_t n)
{
	/* another text has this hash: try the next one */
	for (; s->seen.n < STRINGS_MAX; hash = hash + 1 ? hash + 1 : 1) {
		bool is_new;
		int64_t *id = nsys_seen(&s->seen, hash, &is_new);

		if (!id)
			break;
		if (is_new)
			return *id = add_string(s, text, n);
		if (is_text(s, *id, text, n))
			return *id;
		if (s->d->error)
			return s->last;
	}
	s->again++;
	return add_string(s, text, n);
}

static int64_t no_memory(struct nsys_strings *s)
{
	nsys_fail(s->d, SQLITE_NOMEM);
	return s->last;
}

int64_t nsys_string(struct nsys_strings *s, const char *raw, size_t len)
{
	uint64_t hash = nsys_strings_hash_of(raw, len);
	struct cached *c = &s->cache[hash & (CACHE - 1)];
	struct text clean = { 0 };
	int64_t id;

	if (c->id && c->hash == hash && c->len == len && !memcmp(c->text, raw, len))
		return c->id;
	if (text_is_utf8(raw, len)) {
		id = find_or_add(s, hash, raw, len);
	} else {
		text_utf8(&clean, raw, len);
		id = clean.bad ? no_memory(s)
			       : find_or_add(s, nsys_strings_hash_of(clean.s, clean.len), clean.s,
					     clean.len);
	}
	text_free(&clean);
	if (len > CACHE_TEXT)
		return id;
	free(c->text);
	c->text = malloc(len + 1);
	c->id = 0;
	if (!c->text)
		return id;
	memcpy(c->text, raw, len);
	c->hash = hash;
	c->len = (uint32_t)len;
	c->id = id;
	return id;
}
