/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.c - the names of threads, from CT_THREAD_NAME records.
 *
 * A name is reported once, before the thread's first call, and no record reports the end of a
 * thread. So a long trace sees more threads than can be kept. There are two generations of names.
 * When the younger one is full the older one is dropped and the younger takes its place; a name
 * that is asked for moves to the younger one. Never looks at /proc: a replayed trace gives the same
 * names.
 */
#include <stdlib.h>
#include <string.h>

#include "../util/table/hash_map.h"
#include "event.h"

#define NAMES_MAX 65536 /* names in a generation */

struct named_thread {
	struct {
		uint32_t pid, tid;
	} key;
	char comm[CT_COMM_LEN];
};

struct thread_table {
	struct hash_map young, old;
};

static void open_generation(struct hash_map *k)
{
	hash_map_open(k, sizeof(struct named_thread), sizeof(((struct named_thread *)0)->key),
		      NAMES_MAX);
}

struct thread_table *thread_table_open(void)
{
	struct thread_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	open_generation(&t->young);
	open_generation(&t->old);
	return t;
}

void thread_table_close(struct thread_table *t)
{
	if (!t)
		return;
	hash_map_close(&t->young);
	hash_map_close(&t->old);
	free(t);
}

/* NULL: no memory. The name is not known then. */
static struct named_thread *threads_put(struct thread_table *t, const struct named_thread *n)
{
	struct named_thread *at;
	bool made;

	if (t->young.n == NAMES_MAX && !hash_map_find(&t->young, &n->key)) {
		hash_map_close(&t->old);
		t->old = t->young;
		open_generation(&t->young);
	}
	at = hash_map_get(&t->young, &n->key, &made);
	if (at)
		*at = *n;
	return at;
}

void thread_table_record(struct thread_table *t, const struct ct_hdr *rec)
{
	const struct ct_thread_name *r = (const struct ct_thread_name *)rec;
	struct named_thread n = { .key = { rec->pid, rec->tid } };

	if (rec->kind != CT_THREAD_NAME || rec->pid == rec->tid)
		return;
	memcpy(n.comm, r->comm, sizeof(n.comm));
	threads_put(t, &n);
}

const char *thread_table_find(struct thread_table *t, uint32_t pid, uint32_t tid)
{
	struct named_thread want = { .key = { pid, tid } }, *n;

	if (!tid || tid == pid)
		return NULL;
	n = hash_map_find(&t->young, &want.key);
	if (n)
		return n->comm;
	n = hash_map_find(&t->old, &want.key);
	if (!n)
		return NULL;
	want = *n;
	n = threads_put(t, &want);
	return n ? n->comm : NULL;
}
