/* SPDX-License-Identifier: BSD-2-Clause */
/* decode.c - see decode.h; the other half of encode.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "decode.h"

#define COLUMN_MAX (1u << 20)
#define PAD 8 /* bytes behind a column that may be read; their values are not used */

struct pattern {
	struct trace_pattern def;
	enum trace_shape shape;
	struct trace_func *func; /* NULL: none */
	uint32_t words;		 /* where the words of its latest record are in `words` */
	uint32_t nwords;
};

struct lane {
	struct trace_lane def;
	uint64_t end_ns, work[2];
};

struct decoder {
	struct funcs *funcs;
	ZSTD_DCtx *zstd;
	struct {
		uint8_t *room;
		size_t cap;
		const uint8_t *at, *end;
	} col[COL_END];

	struct pattern patterns[TRACE_PATTERNS_MAX];
	uint32_t npatterns;
	struct lane lanes[TRACE_LANES_MAX];
	uint32_t nlanes;
	struct trace_func *block_funcs[CT_MAX_FUNCS];
	uint32_t nfuncs;
	uint64_t *words;
	uint32_t nwords;
	uint64_t last_end;
	union {
		struct ct_call call;
		struct ct_work work;
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
	d->words = malloc(TRACE_PATTERNS_MAX * TRACE_WORDS_MAX * sizeof(*d->words));
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

	d->npatterns = d->nlanes = d->nfuncs = d->nwords = 0;
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

/* ---- steps ---- */

static inline size_t left(const struct decoder *d, enum trace_column c)
{
	return (size_t)(d->col[c].end - d->col[c].at);
}

/* Reads n bytes of a column as a number, n <= 8. False: the column has fewer bytes left. */
static inline bool decode_get(struct decoder *d, enum trace_column c, unsigned int n, uint64_t *v)
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

static bool new_lane(struct decoder *d)
{
	struct lane *l = &d->lanes[d->nlanes];

	if (d->nlanes == TRACE_LANES_MAX)
		return false;
	*l = (struct lane){ .end_ns = d->last_end };
	if (!get_other(d, &l->def, sizeof(l->def)))
		return false;
	d->nlanes++;
	return true;
}

static bool new_func(struct decoder *d)
{
	size_t used;

	if (d->nfuncs == CT_MAX_FUNCS)
		return false;
	d->block_funcs[d->nfuncs] =
		funcs_read(d->funcs, d->col[COL_OTHER].at, left(d, COL_OTHER), &used);
	if (!d->block_funcs[d->nfuncs++])
		return false;
	d->col[COL_OTHER].at += used;
	return true;
}

static bool good_pattern(const struct decoder *d, const struct trace_pattern *def)
{
	static const size_t least[] = {
		[TRACE_SHAPE_OTHER] = sizeof(struct ct_hdr),
		[TRACE_SHAPE_CALL] = sizeof(struct ct_call),
		[TRACE_SHAPE_WORK] = sizeof(struct ct_work),
	};
	enum trace_shape shape = trace_shape(def->kind);

	if (def->lane >= d->nlanes || (def->func >= d->nfuncs && def->func != TRACE_NO_FUNC) ||
	    kind_is(def->kind, KIND_RAW))
		return false;
	if (shape == TRACE_SHAPE_CALL && def->func == TRACE_NO_FUNC)
		return false;
	return def->size >= least[shape] && def->size <= TRACE_PATTERN_MAX && !(def->size % 8);
}

static bool new_pattern(struct decoder *d)
{
	struct pattern *s = &d->patterns[d->npatterns];

	if (d->npatterns == TRACE_PATTERNS_MAX || !get_other(d, &s->def, sizeof(s->def)) ||
	    !good_pattern(d, &s->def))
		return false;
	s->shape = trace_shape(s->def.kind);
	s->func = s->def.func == TRACE_NO_FUNC ? NULL : d->block_funcs[s->def.func];
	s->words = d->nwords;
	s->nwords = (s->def.size - (uint32_t)sizeof(struct ct_hdr)) / 8;
	memset(d->words + s->words, 0, s->nwords * sizeof(*d->words));
	d->nwords += s->nwords;
	d->npatterns++;
	return true;
}

/* Reads a time of n bytes. Its two lowest bytes have their own columns. */
static inline bool get_time(struct decoder *d, unsigned int n, enum trace_column low, uint64_t *v)
{
	uint64_t part;

	*v = 0;
	if (!n)
		return true;
	if (n > 8 || !decode_get(d, low, 1, v))
		return false;
	if (n == 1)
		return true;
	if (!decode_get(d, low + 1, 1, &part))
		return false;
	*v |= part << 8;
	if (n == 2)
		return true;
	if (!decode_get(d, COL_TIMEX, n - 2, &part))
		return false;
	*v |= part << 16;
	return true;
}

static inline bool get_words(struct decoder *d, uint64_t *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t mask;

		if (!decode_get(d, COL_MASK, 1, &mask) || (n - i < 8 && mask >> (n - i)))
			return false;
		for (; mask; mask &= mask - 1) {
			uint64_t *w = &words[i + (uint32_t)__builtin_ctzll(mask)], len, v;

			if (!decode_get(d, COL_LEN, 1, &len) || len > 8 ||
			    !decode_get(d, COL_DATA, (unsigned int)len, &v))
				return false;
			*w = len < 8 ? *w + trace_unzigzag(v) : v;
		}
	}
	return true;
}

static inline bool get_pattern(struct decoder *d, struct pattern *s)
{
	uint64_t times, gap, dur, *words = d->words + s->words;
	struct lane *l = &d->lanes[s->def.lane];

	if (s->shape == TRACE_SHAPE_WORK)
		memcpy(words + 1, l->work, sizeof(l->work));
	if (!decode_get(d, COL_TIMES, 1, &times) ||
	    !get_time(d, (unsigned int)times >> 4, COL_GAP0, &gap) ||
	    !get_time(d, (unsigned int)times & 15, COL_DUR0, &dur) ||
	    !get_words(d, words, s->nwords))
		return false;
	d->h = (struct ct_hdr){
		.size = s->def.size,
		.kind = s->def.kind,
		.flags = s->def.flags,
		.pid = l->def.pid,
		.tid = l->def.tid,
		.start_ns = l->end_ns + trace_unzigzag(gap),
	};
	d->h.end_ns = d->h.start_ns + dur;
	l->end_ns = d->last_end = d->h.end_ns;
	memcpy(&d->h + 1, words, s->nwords * sizeof(*words));
	if (s->shape == TRACE_SHAPE_CALL) {
		d->call.func = (uint16_t)s->func->row; /* 0xffff: no row */
	} else if (s->shape == TRACE_SHAPE_WORK) {
		memcpy(l->work, words + 1, sizeof(l->work));
		words[1] = trace_swap(words[1]);
		memcpy(&d->work.stream, &words[1], sizeof(words[1]));
		d->work.func = s->func && s->func->row >= 0 ? (uint16_t)s->func->row : CT_NO_FUNC;
	}
	return true;
}

static bool get_record(struct decoder *d)
{
	uint16_t size;

	if (left(d, COL_OTHER) < sizeof(struct ct_hdr))
		return false;
	memcpy(&size, d->col[COL_OTHER].at, sizeof(size));
	if (size < sizeof(struct ct_hdr) || !get_other(d, d->room, size))
		return false;
	d->h.lost = 0;
	return trace_shape(d->h.kind) == TRACE_SHAPE_OTHER && !kind_is(d->h.kind, KIND_RAW);
}

int decode_next(struct decoder *d, struct ct_hdr **rec, struct trace_func **func)
{
	uint32_t op;

	while (left(d, COL_OP)) {
		bool good;

		if (!get_op(d, &op))
			return -EBADMSG;
		*rec = &d->h;
		if (op >= TRACE_OP_PATTERN) {
			struct pattern *s;

			if (op - TRACE_OP_PATTERN >= d->npatterns)
				return -EBADMSG;
			s = &d->patterns[op - TRACE_OP_PATTERN];
			if (!get_pattern(d, s))
				return -EBADMSG;
			*func = s->shape == TRACE_SHAPE_CALL ? s->func : NULL;
			return 1;
		}
		if (op == TRACE_OP_RECORD) {
			*func = NULL;
			return get_record(d) ? 1 : -EBADMSG;
		}
		good = op == TRACE_OP_LANE   ? new_lane(d)
		       : op == TRACE_OP_FUNC ? new_func(d)
					     : new_pattern(d);
		if (!good)
			return -EBADMSG;
	}
	return 0;
}
