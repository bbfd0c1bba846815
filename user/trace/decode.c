/* SPDX-License-Identifier: BSD-2-Clause */
/* decode.c - see decode.h; the other half of encode.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "decode.h"

#define COLUMN_MAX (4u << 20)
#define PAD 8 /* bytes behind a column that may be read and mean nothing */

struct slot {
	struct trace_slot def;
	struct trace_func *func;
	uint32_t words; /* where its call's words are in `words` */
	uint32_t nwords;
};

struct decoder {
	struct funcs *funcs;
	ZSTD_DCtx *zstd;
	struct {
		uint8_t *room;
		size_t cap;
		const uint8_t *at, *end;
	} col[COL_END];

	struct slot slots[TRACE_SLOTS_MAX];
	uint32_t nslots;
	struct trace_thread threads[TRACE_THREADS_MAX];
	uint64_t ends[TRACE_THREADS_MAX];
	uint32_t nthreads;
	struct trace_func *block_funcs[CT_MAX_FUNCS];
	uint32_t nfuncs;
	uint64_t *words;
	uint32_t nwords;
	uint64_t last_end;
	union {
		struct ct_call call;
		struct ct_hdr h;
		uint64_t room[65536 / 8];
	};
};

struct decoder *decode_open(struct funcs *funcs)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->funcs = funcs;
	d->zstd = ZSTD_createDCtx();
	d->words = malloc(TRACE_SLOTS_MAX * TRACE_WORDS_MAX * sizeof(*d->words));
	if (!d->zstd || !d->words) {
		decode_close(d);
		return NULL;
	}
	return d;
}

void decode_close(struct decoder *d)
{
	if (!d)
		return;
	for (int i = 0; i < COL_END; i++)
		free(d->col[i].room);
	ZSTD_freeDCtx(d->zstd);
	free(d->words);
	free(d);
}

static int fill_column(struct decoder *d, int i, const uint8_t *from, const uint32_t n[2])
{
	if (n[0] > COLUMN_MAX)
		return -EBADMSG;
	if (d->col[i].cap < n[0] + PAD) {
		free(d->col[i].room);
		d->col[i].cap = 0;
		d->col[i].room = malloc(n[0] + PAD);
		if (!d->col[i].room)
			return -ENOMEM;
		d->col[i].cap = n[0] + PAD;
	}
	if (n[0] == n[1])
		memcpy(d->col[i].room, from, n[0]);
	else if (ZSTD_decompressDCtx(d->zstd, d->col[i].room, n[0], from, n[1]) != n[0])
		return -EBADMSG;
	memset(d->col[i].room + n[0], 0, PAD);
	d->col[i].at = d->col[i].room;
	d->col[i].end = d->col[i].room + n[0];
	return 0;
}

int decode_block(struct decoder *d, const void *body, size_t len)
{
	const uint8_t *head = (const uint8_t *)body + 1, *at, *end = (const uint8_t *)body + len;

	d->nslots = d->nthreads = d->nfuncs = d->nwords = 0;
	d->last_end = 0;
	for (int i = 0; i < COL_END; i++)
		d->col[i].at = d->col[i].end = NULL;
	if (len < 1 || *(const uint8_t *)body != COL_END || len < 1 + COL_END * 8)
		return -EBADMSG;
	at = head + COL_END * 8;
	for (int i = 0; i < COL_END; i++) {
		uint32_t n[2];
		int err;

		memcpy(n, head + i * 8, sizeof(n));
		if (n[1] > (size_t)(end - at))
			return -EBADMSG;
		err = fill_column(d, i, at, n);
		if (err)
			return err;
		at += n[1];
	}
	return at == end ? 0 : -EBADMSG;
}

/* ---- steps -------------------------------------------------------------------------------------------- */

static inline size_t left(const struct decoder *d, enum trace_column c)
{
	return (size_t)(d->col[c].end - d->col[c].at);
}

/* n bytes of a column as a number, n <= 8. False: there are not so many. */
static inline bool get(struct decoder *d, enum trace_column c, unsigned int n, uint64_t *v)
{
	if (left(d, c) < n)
		return false;
	memcpy(v, d->col[c].at, 8);
	if (n < 8)
		*v &= (1ULL << n * 8) - 1;
	d->col[c].at += n;
	return true;
}

static inline bool get_op(struct decoder *d, uint32_t *op)
{
	uint32_t v = 0;

	for (int shift = 0; shift < 28; shift += 7) {
		uint8_t b;

		if (!left(d, COL_OP))
			return false;
		b = *d->col[COL_OP].at++;
		v |= (uint32_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*op = v;
			return true;
		}
	}
	return false;
}

static bool get_other(struct decoder *d, void *to, size_t n)
{
	if (left(d, COL_OTHER) < n)
		return false;
	memcpy(to, d->col[COL_OTHER].at, n);
	d->col[COL_OTHER].at += n;
	return true;
}

static bool new_thread(struct decoder *d)
{
	if (d->nthreads == TRACE_THREADS_MAX || !get_other(d, &d->threads[d->nthreads], sizeof(d->threads[0])))
		return false;
	d->ends[d->nthreads++] = d->last_end;
	return true;
}

static bool new_func(struct decoder *d)
{
	size_t used;

	if (d->nfuncs == CT_MAX_FUNCS)
		return false;
	d->block_funcs[d->nfuncs] = funcs_read(d->funcs, d->col[COL_OTHER].at, left(d, COL_OTHER), &used);
	if (!d->block_funcs[d->nfuncs++])
		return false;
	d->col[COL_OTHER].at += used;
	return true;
}

static bool new_slot(struct decoder *d)
{
	struct slot *s = &d->slots[d->nslots];
	const struct trace_slot *def = &s->def;

	if (d->nslots == TRACE_SLOTS_MAX || !get_other(d, &s->def, sizeof(s->def)))
		return false;
	if (def->thread >= d->nthreads || def->func >= d->nfuncs || (def->kind != CT_CALL && def->kind != CT_ENTER) ||
	    def->size < sizeof(struct ct_call) || def->size > TRACE_CALL_MAX || def->size % 8)
		return false;
	s->func = d->block_funcs[def->func];
	s->words = d->nwords;
	s->nwords = (def->size - 40u) / 8;
	memset(d->words + s->words, 0, s->nwords * sizeof(*d->words));
	d->nwords += s->nwords;
	d->nslots++;
	return true;
}

/* A time of n bytes, whose lowest two have columns of their own. */
static inline bool get_time(struct decoder *d, unsigned int n, enum trace_column low, uint64_t *v)
{
	uint64_t part;

	*v = 0;
	if (!n)
		return true;
	if (n > 8 || !get(d, low, 1, v))
		return false;
	if (n == 1)
		return true;
	if (!get(d, low + 1, 1, &part))
		return false;
	*v |= part << 8;
	if (n == 2)
		return true;
	if (!get(d, COL_TIMEX, n - 2, &part))
		return false;
	*v |= part << 16;
	return true;
}

static inline bool get_words(struct decoder *d, uint64_t *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t mask;

		if (!get(d, COL_MASK, 1, &mask) || (n - i < 8 && mask >> (n - i)))
			return false;
		for (; mask; mask &= mask - 1) {
			uint64_t *w = &words[i + (uint32_t)__builtin_ctzll(mask)], len, v;

			if (!get(d, COL_LEN, 1, &len) || len > 8 || !get(d, COL_DATA, (unsigned int)len, &v))
				return false;
			*w = len < 8 ? *w + trace_unzigzag(v) : v;
		}
	}
	return true;
}

static inline bool get_call(struct decoder *d, struct slot *s)
{
	uint64_t times, gap, dur, *words = d->words + s->words;
	const struct trace_slot *def = &s->def;
	struct ct_call *c = &d->call;

	if (!get(d, COL_TIMES, 1, &times) || !get_time(d, (unsigned int)times >> 4, COL_GAP0, &gap) ||
	    !get_time(d, (unsigned int)times & 15, COL_DUR0, &dur) || !get_words(d, words, s->nwords))
		return false;
	c->h = (struct ct_hdr){
		.size = def->size,
		.kind = def->kind,
		.flags = def->flags,
		.lost = def->lost,
		.pid = d->threads[def->thread].pid,
		.tid = d->threads[def->thread].tid,
		.start_ns = d->ends[def->thread] + trace_unzigzag(gap),
	};
	c->h.end_ns = c->h.start_ns + dur;
	d->ends[def->thread] = d->last_end = c->h.end_ns;
	c->func = (uint16_t)s->func->row; /* 0xffff: no row */
	c->nwords = def->nwords;
	c->depth = def->depth;
	c->got = def->got;
	memcpy(&c->ret, words, s->nwords * sizeof(*words));
	return true;
}

static bool get_record(struct decoder *d)
{
	uint16_t size;

	if (left(d, COL_OTHER) < sizeof(struct ct_hdr))
		return false;
	memcpy(&size, d->col[COL_OTHER].at, sizeof(size));
	return size >= sizeof(struct ct_hdr) && get_other(d, d->room, size) && d->h.kind != CT_CALL &&
	       d->h.kind != CT_ENTER;
}

int decode_next(struct decoder *d, struct ct_hdr **rec, struct trace_func **func)
{
	uint32_t op;

	while (left(d, COL_OP)) {
		bool good;

		if (!get_op(d, &op))
			return -EBADMSG;
		*rec = &d->h;
		if (op >= TRACE_OP_SLOT) {
			struct slot *s = &d->slots[op - TRACE_OP_SLOT];

			if (op - TRACE_OP_SLOT >= d->nslots || !get_call(d, s))
				return -EBADMSG;
			*func = s->func;
			return 1;
		}
		if (op == TRACE_OP_RECORD) {
			*func = NULL;
			return get_record(d) ? 1 : -EBADMSG;
		}
		good = op == TRACE_OP_THREAD ? new_thread(d) : op == TRACE_OP_FUNC ? new_func(d) : new_slot(d);
		if (!good)
			return -EBADMSG;
	}
	return 0;
}
