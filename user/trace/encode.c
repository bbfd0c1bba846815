/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * encode.c - see encode.h and format.h.
 *
 * A call of a loop is like the one before: the same thread, function, sizes and mostly the same words. What is the same
 * is in its slot; what differs goes by kind into columns, which compress far better than rows. Low bytes of times are
 * noise and have columns of their own, so that they do not spoil the rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "encode.h"
#include "funcs.h"

#define ROOM (ENCODE_FULL + (128u << 10)) /* of a column: one record more, and what is not looked at for CHECK_EVERY calls */
#define CHECK_EVERY 64
#define HASH_SIZE (TRACE_SLOTS_MAX * 2)
#define SMALL 48 /* a column of so few bytes is not worth a frame */

struct slot {
	uint64_t key[3];
	uint32_t thread;
	uint32_t words; /* where its call's words are in `words` */
};

struct encoder {
	uint8_t *room, *body;
	uint8_t *col[COL_END], *at[COL_END];
	ZSTD_CCtx *zstd;
	size_t body_max;

	struct slot slots[TRACE_SLOTS_MAX];
	uint16_t slot_hash[HASH_SIZE]; /* number + 1; 0: free */
	uint32_t nslots, last_slot;
	struct trace_thread threads[TRACE_THREADS_MAX];
	uint64_t ends[TRACE_THREADS_MAX]; /* of the thread's last call */
	uint16_t thread_hash[TRACE_THREADS_MAX * 2];
	uint32_t nthreads;
	uint16_t funcs[CT_MAX_FUNCS]; /* number + 1 */
	uint32_t nfuncs;
	uint64_t *words; /* TRACE_SLOTS_MAX calls' at most */
	uint32_t nwords;

	uint64_t last_end, first_ns, last_ns;
	uint32_t records, calls;
	bool definitions;
};

/* The next block begins. */
static void reset(struct encoder *e)
{
	memcpy(e->at, e->col, sizeof(e->at));
	if (e->nslots)
		memset(e->slot_hash, 0, sizeof(e->slot_hash));
	if (e->nthreads)
		memset(e->thread_hash, 0, sizeof(e->thread_hash));
	if (e->nfuncs)
		memset(e->funcs, 0, sizeof(e->funcs));
	e->nslots = e->last_slot = e->nthreads = e->nfuncs = e->nwords = 0;
	e->last_end = e->last_ns = 0;
	e->first_ns = UINT64_MAX;
	e->records = e->calls = 0;
	e->definitions = false;
}

struct encoder *encode_open(void)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->body_max = 1 + COL_END * (8 + ZSTD_compressBound(ROOM));
	e->room = malloc((size_t)COL_END * ROOM);
	e->body = malloc(e->body_max);
	e->words = malloc(TRACE_SLOTS_MAX * TRACE_WORDS_MAX * sizeof(*e->words));
	e->zstd = ZSTD_createCCtx();
	if (!e->room || !e->body || !e->words || !e->zstd) {
		encode_close(e);
		return NULL;
	}
	for (int i = 0; i < COL_END; i++)
		e->col[i] = e->room + (size_t)i * ROOM;
	reset(e);
	return e;
}

void encode_close(struct encoder *e)
{
	if (!e)
		return;
	ZSTD_freeCCtx(e->zstd);
	free(e->words);
	free(e->body);
	free(e->room);
	free(e);
}

/* ---- steps -------------------------------------------------------------------------------------------- */

/* Eight bytes are written and n of them count: every column has room behind its end. */
static inline void put(struct encoder *e, enum trace_column c, uint64_t v, unsigned int n)
{
	memcpy(e->at[c], &v, sizeof(v));
	e->at[c] += n;
}

static inline void put_mem_at(struct encoder *e, enum trace_column c, const void *p, size_t n)
{
	memcpy(e->at[c], p, n);
	e->at[c] += n;
}

static inline void put_op(struct encoder *e, uint32_t op)
{
	while (op >= 0x80) {
		*e->at[COL_OP]++ = (uint8_t)(op | 0x80);
		op >>= 7;
	}
	*e->at[COL_OP]++ = (uint8_t)op;
}

static inline unsigned int bytes_of(uint64_t v)
{
	return v ? (unsigned int)(71 - __builtin_clzll(v)) / 8 : 0;
}

static inline uint64_t mix(uint64_t v)
{
	v *= 0x9e3779b97f4a7c15ULL;
	return v ^ v >> 32;
}

static uint32_t thread_of(struct encoder *e, uint32_t pid, uint32_t tid)
{
	uint32_t at = (uint32_t)mix((uint64_t)pid << 32 | tid) % (TRACE_THREADS_MAX * 2);
	struct trace_thread *t;

	for (; e->thread_hash[at]; at = (at + 1) % (TRACE_THREADS_MAX * 2)) {
		t = &e->threads[e->thread_hash[at] - 1];
		if (t->pid == pid && t->tid == tid)
			return e->thread_hash[at] - 1u;
	}
	t = &e->threads[e->nthreads];
	t->pid = pid;
	t->tid = tid;
	e->ends[e->nthreads] = e->last_end;
	e->thread_hash[at] = (uint16_t)++e->nthreads;
	put_op(e, TRACE_OP_THREAD);
	put_mem_at(e, COL_OTHER, t, sizeof(*t));
	return e->nthreads - 1;
}

static uint32_t func_of(struct encoder *e, uint16_t func)
{
	char def[FUNCS_DEF_MAX];

	if (e->funcs[func])
		return e->funcs[func] - 1u;
	e->funcs[func] = (uint16_t)++e->nfuncs;
	put_op(e, TRACE_OP_FUNC);
	put_mem_at(e, COL_OTHER, def, funcs_define(func, def));
	return e->nfuncs - 1;
}

static void call_key(const struct ct_call *c, uint64_t key[3])
{
	key[0] = c->h.tid | (uint64_t)c->h.pid << 32;
	key[1] = c->func | (uint64_t)c->h.flags << 16 | (uint64_t)c->h.size << 32 | (uint64_t)c->nwords << 48 |
		 (uint64_t)c->depth << 56;
	key[2] = c->got | (uint64_t)c->h.kind << 32 | (uint64_t)c->h.lost << 48;
}

static inline bool same_key(const uint64_t *a, const uint64_t *b)
{
	return a[1] == b[1] && a[0] == b[0] && a[2] == b[2];
}

static uint32_t new_slot(struct encoder *e, const struct ct_call *c, const uint64_t key[3])
{
	struct slot *s = &e->slots[e->nslots];
	struct trace_slot def = {
		.kind = c->h.kind,
		.flags = c->h.flags,
		.lost = c->h.lost,
		.size = c->h.size,
		.nwords = c->nwords,
		.depth = c->depth,
		.got = c->got,
	};
	uint32_t n = (c->h.size - 40u) / 8;

	s->thread = thread_of(e, c->h.pid, c->h.tid);
	def.thread = (uint16_t)s->thread;
	def.func = (uint16_t)func_of(e, c->func);
	memcpy(s->key, key, sizeof(s->key));
	s->words = e->nwords;
	memset(e->words + s->words, 0, n * sizeof(*e->words));
	e->nwords += n;
	put_op(e, TRACE_OP_NEW);
	put_mem_at(e, COL_OTHER, &def, sizeof(def));
	return e->nslots++;
}

static inline struct slot *slot_of(struct encoder *e, const struct ct_call *c)
{
	struct slot *s = &e->slots[e->last_slot];
	uint64_t key[3];
	uint32_t at;

	call_key(c, key);
	if (e->nslots && same_key(s->key, key))
		return s;
	at = (uint32_t)mix(key[0] ^ mix(key[1] ^ mix(key[2]))) % HASH_SIZE;
	for (; e->slot_hash[at]; at = (at + 1) % HASH_SIZE) {
		s = &e->slots[e->slot_hash[at] - 1];
		if (!same_key(s->key, key))
			continue;
		e->last_slot = e->slot_hash[at] - 1u;
		return s;
	}
	e->last_slot = new_slot(e, c, key);
	e->slot_hash[at] = (uint16_t)(e->last_slot + 1);
	return &e->slots[e->last_slot];
}

static inline void put_times(struct encoder *e, uint64_t gap, uint64_t dur)
{
	unsigned int g = bytes_of(gap), d = bytes_of(dur);

	put(e, COL_TIMES, g << 4 | d, 1);
	put(e, COL_GAP0, gap, g > 0);
	put(e, COL_GAP1, gap >> 8, g > 1);
	put(e, COL_TIMEX, gap >> 16, g > 2 ? g - 2 : 0);
	put(e, COL_DUR0, dur, d > 0);
	put(e, COL_DUR1, dur >> 8, d > 1);
	put(e, COL_TIMEX, dur >> 16, d > 2 ? d - 2 : 0);
}

static inline void put_words(struct encoder *e, const uint64_t *now, uint64_t *before, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 8) {
		uint32_t here = n - i < 8 ? n - i : 8;
		unsigned int mask = 0;

		for (uint32_t j = 0; j < here; j++) {
			uint64_t v = now[i + j], diff;
			unsigned int len;

			if (v == before[i + j])
				continue;
			mask |= 1u << j;
			diff = trace_zigzag(v - before[i + j]);
			len = bytes_of(diff);
			before[i + j] = v;
			put(e, COL_LEN, len, 1);
			put(e, COL_DATA, len < 8 ? diff : v, len);
		}
		put(e, COL_MASK, mask, 1);
	}
}

static void span(struct encoder *e, const struct ct_hdr *h)
{
	if (h->start_ns < e->first_ns)
		e->first_ns = h->start_ns;
	if (h->end_ns > e->last_ns)
		e->last_ns = h->end_ns;
	if (h->start_ns > e->last_ns)
		e->last_ns = h->start_ns;
}

static void put_call(struct encoder *e, const struct ct_call *c)
{
	struct slot *s = slot_of(e, c);

	put_op(e, TRACE_OP_SLOT + e->last_slot);
	put_times(e, trace_zigzag(c->h.start_ns - e->ends[s->thread]), c->h.end_ns - c->h.start_ns);
	e->ends[s->thread] = e->last_end = c->h.end_ns;
	put_words(e, (const uint64_t *)&c->ret, e->words + s->words, (c->h.size - 40u) / 8);
	span(e, &c->h);
	e->calls++;
}

static bool full(const struct encoder *e)
{
	size_t sum = 0;

	for (int i = 0; i < COL_END; i++)
		sum += (size_t)(e->at[i] - e->col[i]);
	return sum >= ENCODE_FULL || e->nslots >= TRACE_SLOTS_MAX - CHECK_EVERY ||
	       e->nthreads >= TRACE_THREADS_MAX - CHECK_EVERY;
}

int encode_record(struct encoder *e, const struct ct_hdr *h)
{
	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER:
		if (h->size < sizeof(struct ct_call) || h->size > TRACE_CALL_MAX ||
		    ((const struct ct_call *)h)->func >= CT_MAX_FUNCS)
			return -EINVAL;
		put_call(e, (const struct ct_call *)h);
		return ++e->records % CHECK_EVERY ? 0 : full(e);
	case CT_MAP:
	case CT_MORE:
	case CT_USER_STACK:
	case CT_PY_STACK:
	case CT_PY_CODE:
		return -EINVAL;
	case CT_LOST:
		span(e, h);
		break;
	default:
		e->definitions = true;
	}
	put_op(e, TRACE_OP_RECORD);
	put_mem_at(e, COL_OTHER, h, h->size);
	e->records++;
	return full(e);
}

uint32_t encode_sums(const struct encoder *e, struct trace_block *b)
{
	b->flags = e->definitions ? TRACE_F_DEFINITIONS : 0;
	b->first_ns = e->first_ns;
	b->last_ns = e->last_ns;
	b->records = e->records;
	b->calls = e->calls;
	return e->records;
}

int encode_finish(struct encoder *e, const void **body, uint32_t *len)
{
	uint8_t *head = e->body + 1, *at = head + COL_END * 8;

	e->body[0] = COL_END;
	for (int i = 0; i < COL_END; i++) {
		uint32_t n[2] = { (uint32_t)(e->at[i] - e->col[i]) };
		size_t stored = n[0];

		if (n[0] > SMALL) {
			stored = ZSTD_compressCCtx(e->zstd, at, e->body_max - (size_t)(at - e->body), e->col[i], n[0], 1);
			if (ZSTD_isError(stored))
				return -EIO;
		}
		if (stored >= n[0]) {
			memcpy(at, e->col[i], n[0]);
			stored = n[0];
		}
		n[1] = (uint32_t)stored;
		memcpy(head + i * 8, n, sizeof(n));
		at += stored;
	}
	*body = e->body;
	*len = (uint32_t)(at - e->body);
	reset(e);
	return 0;
}
