/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counts.c - see counts.h. A cell is changed only by one thread, and by signal handlers that
 * interrupt this thread. So each word is changed by one instruction, without a lock. Nothing
 * here waits.
 */
#include "counts.h"

#include "allocations.h"
#include "reach.h"
#include "ring_write.h"

static struct hooks_area *area;
static const struct ct_config *config;
static struct ct_entry *cells;
static __u32 ncells, nthreads, ring_bytes;

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define SUMS_ADD(word, n) ring_add(word, n)
#define SUMS_ADD32(word, n) ring_add32(word, n)
#define SUMS_FETCH_ADD(word, n) ring_fetch_add(word, n)
#define SUMS_SWAP(word, was, to) ring_swap(word, &(was), to)
#define SUMS_CGROUP() 0
#define SUMS_SPEC const
#include "../../wire/sums.h"

int counts_open(struct hooks_area *a, const struct hooks_start *s, const struct ct_config *c)
{
	area = a;
	config = c;
	nthreads = s->threads;
	ring_bytes = s->ring_bytes;
	ncells = s->cells;
	cells = hooks_cells(a, nthreads, ring_bytes);
	return c->memory ? held_open() : 0;
}

void counts_begin(struct hooks_thread *t, __u32 i)
{
	t->lists = (__u64)(size_t)hooks_lists(area, i, nthreads, ring_bytes);
}

/* ---- cells ---- */

/* Returns the index of a cell for the thread, or ncells if there is none. */
static __u32 take_cell(struct hooks_thread *t)
{
	__u64 was = t->chunk;
	__u32 n;

	if (t->cells >= HOOKS_CELLS_EACH)
		return ncells;
	for (;;) {
		if ((__u32)was < (__u32)(was >> 32)) {
			if (!ring_swap(&t->chunk, &was, was + 1))
				continue;
			t->cells++;
			return (__u32)was;
		}
		if (__atomic_load_n(&area->cells, __ATOMIC_RELAXED) > ncells - HOOKS_CHUNK)
			return ncells;
		n = __atomic_fetch_add(&area->cells, HOOKS_CHUNK, __ATOMIC_RELAXED);
		if (n > ncells - HOOKS_CHUNK || reach_more_cells(n + HOOKS_CHUNK))
			return ncells;
		/* if a signal handler has just taken a chunk, too, this one stays unused */
		if (ring_swap(&t->chunk, &was, n | (__u64)(n + HOOKS_CHUNK) << 32))
			was = t->chunk;
	}
}

/* Makes the cell of a key. A signal handler that comes in between may make a second one; a reader
 * adds up both. */
static struct ct_entry *make_cell(struct hooks_thread *t, __u64 *list,
				  const struct ct_count_key *key)
{
	__u32 i = take_cell(t);
	struct ct_entry *e;
	__u64 head;

	if (i >= reach_cells())
		return NULL;
	e = &cells[i];
	e->key.start = key->start;
	e->key.func = key->func;
	e->key.sub = key->sub;
	e->key.how = key->how;
	e->key.by = key->by;
	__atomic_store_n(&e->key.tgid, key->tgid, __ATOMIC_RELEASE);
	head = *list;
	do
		e->pad = head;
	while (!ring_swap(list, &head, i + 1));
	return e;
}

/* Returns the thread's cell of a key, and makes it if there is none. NULL: there is no room. */
static inline struct ct_entry *cell_of(struct hooks_thread *t, const struct ct_count_key *key)
{
	const __u64 *want = (const __u64 *)key;
	__u64 hash = (want[1] ^ want[2] << 13) * 0x9e3779b97f4a7c15ULL;
	__u64 *list = (__u64 *)t->lists + (hash >> 54), reached = reach_cells();

	for (__u64 i = *list; i && i <= reached; i = cells[i - 1].pad) {
		const __u64 *have = (const __u64 *)&cells[i - 1].key;

		if (have[1] == want[1] && have[2] == want[2])
			return &cells[i - 1];
	}
	return make_cell(t, list, key);
}

/* ---- memory ---- */

static __u64 held_key(const struct ct_spec *spec, __u64 address)
{
	return address ? address ^ (__u64)spec->memory_space << 56 : 0;
}

void counts_free_begins(struct hooks_call *f, const struct ct_spec *spec)
{
	__u64 key = held_key(spec, f->data[spec->memory_word & (CT_MAX_WORDS - 1)]);

	f->frees = held_take(key, &f->freed_bytes);
}

/* The same steps as free_failed() of bpf/count.bpf.h: the call failed, or did not return, or has no
 * cell. So its memory counts as held again. */
static void free_failed(struct hooks_call *f, const struct ct_spec *spec, struct ct_sums *n)
{
	__u64 key = held_key(spec, f->data[spec->memory_word & (CT_MAX_WORDS - 1)]);

	if (!f->frees)
		return;
	f->frees = 0;
	if (held_back(key, f->freed_bytes) && n)
		ring_add(&n->bytes, f->freed_bytes);
}

/* The same steps as count_memory() there. */
static void count_memory(struct hooks_call *f, const struct ct_spec *spec, struct ct_sums *n)
{
	__u64 address = f->data[spec->memory_word & (CT_MAX_WORDS - 1)], bytes, had = 0;

	if (spec->memory_how == CT_MEMORY_FREES) {
		if (!f->frees && address)
			ring_add(&n->unsized, 1);
		else if (f->frees)
			ring_add(&n->bytes, f->freed_bytes);
		f->frees = 0;
		return;
	}
	bytes = f->data[spec->size_word & (CT_MAX_WORDS - 1)];
	if (bytes >= CT_SIZE_MOST)
		bytes = 0; /* not in the sums either */
	/* the call has just written this word */
	if (spec->memory_how == CT_MEMORY_TAKES_OUT)
		address = address ? *(const volatile __u64 *)address : 0;
	if (address && held_put(held_key(spec, address), bytes, &had)) {
		ring_add(&n->unheld_bytes, had);
		return;
	}
	if (bytes) {
		ring_add(&n->unheld, 1);
		ring_add(&n->unheld_bytes, bytes);
	}
}

/* ---- calls ---- */

static void count_asked(struct hooks_thread *t, struct ct_count_key *key, const struct call *c,
			const struct ct_spec *spec)
{
	__u64 first = 0, second = 0;
	struct ct_entry *e;

	if (spec->grid_how) {
		key->func = 0;
		key->sub = 0;
		key->by = CT_OF_LAUNCHES;
		first = volume_of(c, spec, 0);
		second = volume_of(c, spec, 1);
	} else if (spec->more & CT_S_COPIES && spec->size_word < CT_MAX_WORDS) {
		key->sub &= CT_SUB_KIND;
		key->by = CT_OF_COPIES;
		first = word_at(c, spec->size_word);
	} else {
		return;
	}
	key->how = CT_BY_SIZE;
	e = cell_of(t, key);
	if (!e) {
		ring_add(&t->no_cell, 1);
		return;
	}
	add_size(&hooks_extras(cells, ncells)[e - cells].sizes, 0, first);
	if (spec->grid_how)
		add_size(&hooks_extras(cells, ncells)[e - cells].sizes, 1, second);
}

static void count_duration(const struct ct_entry *e, __u64 ns)
{
	__u32 b = ct_hist_bucket(ns);

	if (b < CT_HIST_BUCKETS)
		ring_add32(&hooks_extras(cells, ncells)[e - cells].hist.n[b], 1);
}

void counts_call(struct hooks_thread *t, struct hooks_call *f, const struct ct_spec *spec,
		 bool failed, bool timed)
{
	struct call c = { .words = f->data, .tgid = f->rec.h.pid, .tid = f->rec.h.tid };
	__u8 how = config->count_by == CT_BY_ASKED ? (__u8)area->count_by : config->count_by;
	struct ct_count_key key;
	struct ct_entry *e;

	key_of(&key, &c, f->rec.func, spec, how);
	e = cell_of(t, &key);
	if (!e) {
		ring_add(&t->no_cell, 1);
		if (config->memory)
			free_failed(f, spec, NULL);
		return;
	}
	if (timed) {
		__u64 ns = (__u64)((unsigned __int128)(f->rec.h.end_ns - f->rec.h.start_ns) *
					   area->tick_ns >>
				   32);

		add_time(&e->n, ns);
		if (config->hist)
			count_duration(e, ns);
	} else {
		ring_add(&e->n.untimed, 1);
	}
	add_call(&e->n, &c, spec, failed);
	if (config->sizes && !failed)
		count_asked(t, &key, &c, spec);
	if (config->memory && f->frees && (failed || !timed))
		free_failed(f, spec, &e->n);
	else if (config->memory && timed && spec->memory_how && !failed && !f->rec.depth)
		count_memory(f, spec, &e->n);
}
