/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.c - the names of kernels, from CT_NAME records: {process, handle} -> name.
 *
 * There is one hash of handles, which is searched for every launch that is shown, and one of texts:
 * a name that eight processes use is kept and demangled once. Names outlive their process, since
 * its last calls may still be on the way, until a new program has the process's number or room is
 * needed. Room is bounded: names of processes that ended are dropped first, then the names that
 * were not asked for longest. Never looks at a process: a replayed trace gives the same names.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/hash.h"
#include "../util/table/chains.h"
#include "../util/msg.h"
#include "../util/demangle.h"
#include "registry.h"

#define FIRST_BUCKETS 1024 /* a power of two */
#define BYTES_MAX ((size_t)64 << 20)

/* A name, for all handles of all processes that have it. */
struct text {
	struct chain_link link;
	uint32_t refs;
	size_t bytes;
	bool cut;
	char *full, *brief; /* full NULL: the same as mangled; brief NULL: the same as full */
	char mangled[];
};

struct named_handle {
	struct text *text; /* NULL: a free bucket */
	uint64_t handle;
	uint32_t pid;
	uint32_t used; /* when it was last asked for, by the table's clock */
	uint8_t source;
};

/* A process of which names are known. */
struct owner {
	struct registered r;
	bool named;
};

struct name_table {
	struct named_handle *buckets;
	uint32_t nbuckets, used;
	struct chains texts;	/* of struct text */
	struct registry owners; /* of struct owner */
	bool dropped;		/* a process that had names was forgotten */
	int err;		/* of a callback of owners */
	/* messages that were printed: names were forgotten because there were too many processes
	 * (said) or too many names (crowded) */
	bool said, crowded;
	size_t bytes; /* of texts */
	uint32_t clock;
	const struct named_handle *last;
	struct kernel_name answer; /* of `last` */
};

static const char *const source_names[CT_NAME_END] = {
	[CT_NAME_NONE] = "unknown",  [CT_NAME_REGISTERED] = "registered",
	[CT_NAME_SYMBOL] = "symbol", [CT_NAME_DRIVER] = "driver",
	[CT_NAME_INNER] = "inner",   [CT_NAME_FATBIN] = "fatbin",
	[CT_NAME_DEVICE] = "device",
};

const char *kernel_name_source(uint8_t source)
{
	return source_names[source < CT_NAME_END ? source : CT_NAME_NONE];
}

static void owner_renewed(void *ctx, void *item, const struct ct_hdr *);
static void owner_forgotten(void *ctx, void *item, const struct ct_hdr *);

static const struct registry_rules owner_rules = {
	.size = sizeof(struct owner),
	.most = REGISTRY_MOST,
	.stays_ns = UINT64_MAX,
	.forgets = true,
	.all = true,
	.exec = owner_renewed,
	.gone = owner_forgotten,
};

struct name_table *name_table_open(void)
{
	struct name_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	registry_open(&t->owners, &owner_rules, t);
	t->nbuckets = FIRST_BUCKETS;
	t->buckets = calloc(t->nbuckets, sizeof(*t->buckets));
	if (!t->buckets) {
		name_table_close(t);
		return NULL;
	}
	return t;
}

static void text_free(struct text *x)
{
	free(x->full);
	free(x->brief);
	free(x);
}

void name_table_close(struct name_table *t)
{
	if (!t)
		return;
	chains_each(&t->texts, link) text_free((struct text *)link);
	chains_close(&t->texts);
	free(t->buckets);
	registry_close(&t->owners);
	free(t);
}

/* ---- texts ---- */

static struct text *text_make(const char *name, size_t len, bool cut)
{
	struct text *x = calloc(1, sizeof(*x) + len + 1);

	if (!x)
		return NULL;
	memcpy(x->mangled, name, len);
	x->cut = cut;
	/* part of a mangled name cannot be demangled */
	x->full = cut ? NULL : demangle_full(x->mangled);
	x->brief = cut || !x->full ? NULL : demangle_brief(x->full);
	x->bytes = sizeof(*x) + len + 1 + (x->full ? strlen(x->full) + 1 : 0) +
		   (x->brief ? strlen(x->brief) + 1 : 0);
	return x;
}

/* Finds or adds the text of a name, and takes a reference for the caller. NULL: no memory. */
static struct text *text_get(struct name_table *t, const char *name, size_t len, bool cut)
{
	uint64_t hash = hash_bytes(name, len);
	struct chain_link *at = chains_find(&t->texts, hash);
	struct text *x = NULL;

	for (; at && !x; at = chains_again(at)) {
		x = (struct text *)at;
		if (x->cut != cut || strncmp(x->mangled, name, len) || x->mangled[len])
			x = NULL;
	}
	if (!x) {
		x = text_make(name, len, cut);
		if (!x || chains_add(&t->texts, &x->link, hash)) {
			if (x)
				text_free(x);
			return NULL;
		}
		t->bytes += x->bytes;
	}
	x->refs++;
	return x;
}

static void text_put(struct name_table *t, struct text *x)
{
	if (--x->refs)
		return;
	chains_remove(&t->texts, &x->link);
	t->bytes -= x->bytes;
	text_free(x);
}

/* ---- handles ---- */

static uint32_t hash_handle(uint32_t pid, uint64_t handle)
{
	return (uint32_t)hash_word(hash_word(hash_key[0], handle), pid);
}

/* The bucket of a handle, or the free one where it belongs. The table is never full. */
static struct named_handle *bucket_of(struct named_handle *buckets, uint32_t nbuckets, uint32_t pid,
				      uint64_t handle)
{
	uint32_t i = hash_handle(pid, handle) & (nbuckets - 1);

	while (buckets[i].text && (buckets[i].handle != handle || buckets[i].pid != pid))
		i = (i + 1) & (nbuckets - 1);
	return &buckets[i];
}

/* Moves the entries for which keep() holds into a table of nbuckets; the others are dropped. */
static int rebuild(struct name_table *t, uint32_t nbuckets,
		   bool (*keep)(const struct name_table *, const struct named_handle *, uint32_t),
		   uint32_t arg)
{
	struct named_handle *buckets = calloc(nbuckets, sizeof(*buckets));

	if (!buckets)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->nbuckets; i++) {
		struct named_handle *e = &t->buckets[i];

		if (!e->text)
			continue;
		if (keep && !keep(t, e, arg)) {
			text_put(t, e->text);
			t->used--;
		} else {
			*bucket_of(buckets, nbuckets, e->pid, e->handle) = *e;
		}
	}
	free(t->buckets);
	t->buckets = buckets;
	t->nbuckets = nbuckets;
	t->last = NULL;
	return 0;
}

/* Frees a bucket: entries after it that would no longer be found are moved. */
static void drop_bucket(struct name_table *t, struct named_handle *e)
{
	uint32_t hole = (uint32_t)(e - t->buckets), mask = t->nbuckets - 1;

	text_put(t, e->text);
	t->used--;
	t->last = NULL;
	for (uint32_t i = (hole + 1) & mask; t->buckets[i].text; i = (i + 1) & mask) {
		uint32_t home = hash_handle(t->buckets[i].pid, t->buckets[i].handle) & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			t->buckets[hole] = t->buckets[i];
			hole = i;
		}
	}
	t->buckets[hole].text = NULL;
}

/* ---- processes ---- */

static bool of_other(const struct name_table *t, const struct named_handle *e, uint32_t pid)
{
	(void)t;
	return e->pid != pid;
}

static bool of_known(const struct name_table *t, const struct named_handle *e, uint32_t arg)
{
	(void)arg;
	return registry_find(&t->owners, e->pid);
}

static bool used_since(const struct name_table *t, const struct named_handle *e, uint32_t since)
{
	(void)t;
	return e->used >= since;
}

/* Its number means another program or process. */
static void owner_renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	struct name_table *t = ctx;
	struct owner *o = item;

	if (o->named)
		t->err = rebuild(t, t->nbuckets, of_other, h->pid);
	o->named = false;
}

/* Its names are dropped together with those of others. */
static void owner_forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	(void)h;
	((struct name_table *)ctx)->dropped |= ((struct owner *)item)->named;
}

/* Drops the names of processes that were forgotten. */
static int drop_names(struct name_table *t)
{
	int err = t->err;

	t->err = 0;
	if (t->owners.forgotten && !t->said)
		msg_warn("more than %d processes at a time: the names of kernels so far are "
			 "forgotten",
			 REGISTRY_MOST);
	t->said |= t->owners.forgotten != 0;
	if (!err && t->dropped)
		err = rebuild(t, t->nbuckets, of_known, 0);
	t->dropped = t->dropped && err;
	return err;
}

static size_t room(const struct name_table *t)
{
	return t->bytes + t->used * 2 * sizeof(*t->buckets);
}

/* Drops what is needed least until a quarter of the room is free. */
static int make_room(struct name_table *t)
{
	int err;

	registry_forget_exited(&t->owners);
	err = drop_names(t);
	if (room(t) > BYTES_MAX / 4 * 3 && !t->crowded)
		msg_warn("names of kernels take more than %zu MiB: the least recently used are "
			 "forgotten",
			 BYTES_MAX >> 20);
	t->crowded |= room(t) > BYTES_MAX / 4 * 3;
	for (uint64_t part = 2; !err && room(t) > BYTES_MAX / 4 * 3; part *= 2)
		err = rebuild(t, t->nbuckets, used_since,
			      t->clock - (uint32_t)(t->clock / part) + 1);
	return err;
}

/* ---- records ---- */

static int learn(struct name_table *t, const struct ct_name *n)
{
	size_t len = strnlen(n->name, n->len);
	struct named_handle *e = bucket_of(t->buckets, t->nbuckets, n->h.pid, n->handle);
	struct owner *o;
	struct text *x;
	int err;

	t->last = NULL;
	if (!len) {
		if (e->text)
			drop_bucket(t, e);
		return 0;
	}
	o = registry_get(&t->owners, n->h.pid);
	err = drop_names(t);
	if (!o || err)
		return err ? err : -ENOMEM;
	o->named = true;
	e = bucket_of(t->buckets, t->nbuckets, n->h.pid, n->handle);
	x = text_get(t, n->name, len, n->cut);
	if (!x)
		return -ENOMEM;
	if (e->text) {
		text_put(t, e->text);
	} else {
		if (t->used >= t->nbuckets / 2) {
			err = rebuild(t, t->nbuckets * 2, NULL, 0);
			if (err) {
				text_put(t, x);
				return err;
			}
			e = bucket_of(t->buckets, t->nbuckets, n->h.pid, n->handle);
		}
		t->used++;
	}
	*e = (struct named_handle){ .text = x,
				    .handle = n->handle,
				    .pid = n->h.pid,
				    .used = ++t->clock,
				    .source = n->source };
	return room(t) > BYTES_MAX ? make_room(t) : 0;
}

int name_table_record(struct name_table *t, const struct ct_hdr *rec)
{
	if (rec->kind == CT_NAME)
		return learn(t, (const struct ct_name *)rec);
	registry_record(&t->owners, rec);
	return drop_names(t);
}

const struct kernel_name *name_table_find(struct name_table *t, const struct ct_call *c)
{
	uint64_t handle;

	return api_kernel(c, API_ARCH_HERE, &handle) ? name_table_handle(t, c->h.pid, handle)
						     : NULL;
}

const struct kernel_name *name_table_handle(struct name_table *t, uint32_t pid, uint64_t handle)
{
	struct named_handle *e;

	if (t->last && t->last->handle == handle && t->last->pid == pid)
		return &t->answer;
	e = bucket_of(t->buckets, t->nbuckets, pid, handle);
	if (!e->text)
		return NULL;
	e->used = ++t->clock;
	t->last = e;
	t->answer = (struct kernel_name){
		.mangled = e->text->mangled,
		.full = e->text->full ? e->text->full : e->text->mangled,
		.brief = e->text->brief	 ? e->text->brief
			 : e->text->full ? e->text->full
					 : e->text->mangled,
		.source = e->source,
		.cut = e->text->cut,
	};
	return &t->answer;
}
