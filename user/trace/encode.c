/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * encode.c - see encode.h and format.h.
 *
 * A call in a loop is like the one before: the same thread, function and sizes, and mostly the same
 * words. So is a kernel that runs again and again. What is the same is kept in a pattern. What differs
 * goes into a column for its kind of value, because columns compress far better than rows. The low
 * bytes of times are noise. They have their own columns, so that the other columns still compress
 * well.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "encode.h"
#include "funcs.h"

/* Room at the end of a column: for one more record, and for the records until the next check
 * (CHECK_EVERY). */
#define ROOM (ENCODE_FULL + (128u << 10))
#define CHECK_EVERY 64
#define HASH_SIZE (TRACE_PATTERNS_MAX * 2)
#define SMALL 48 /* a column with fewer bytes than this is stored without compression */

struct pattern {
	uint64_t key[4];
	uint32_t lane;
	uint32_t words; /* where the words of its latest record are in `words` */
};

struct lane {
	struct trace_lane def;
	uint32_t stream;  /* distinguishes the lanes of one thread */
	uint64_t end_ns;  /* the end of its latest record */
	uint64_t work[2]; /* the words 1 and 2 of its latest device work */
};

struct encoder {
	uint8_t *room, *body;
	uint8_t *col[COL_END], *at[COL_END];
	ZSTD_CCtx *zstd;
	size_t body_max;

	struct pattern patterns[TRACE_PATTERNS_MAX];
	uint16_t pattern_hash[HASH_SIZE]; /* number + 1; 0: free */
	uint32_t npatterns, last_pattern;
	struct lane lanes[TRACE_LANES_MAX];
	uint16_t lane_hash[TRACE_LANES_MAX * 2];
	uint32_t nlanes;
	uint16_t funcs[CT_MAX_FUNCS]; /* number + 1 */
	uint32_t nfuncs;
	uint64_t *words; /* the words of at most TRACE_PATTERNS_MAX records */
	uint32_t nwords;

	uint64_t last_end, first_ns, last_ns;
	uint32_t records, calls, since_check;
	bool definitions;
	struct numbers *numbers; /* NULL: this encoder does not store the numbers of calls */
};

/* Begins the next block. */
static void reset(struct encoder *e)
{
	memcpy(e->at, e->col, sizeof(e->at));
	if (e->npatterns)
		memset(e->pattern_hash, 0, sizeof(e->pattern_hash));
	if (e->nlanes)
		memset(e->lane_hash, 0, sizeof(e->lane_hash));
	if (e->nfuncs)
		memset(e->funcs, 0, sizeof(e->funcs));
	e->npatterns = e->last_pattern = e->nlanes = e->nfuncs = e->nwords = e->since_check = 0;
	e->last_end = e->last_ns = 0;
	e->first_ns = UINT64_MAX;
	e->records = e->calls = 0;
	e->definitions = false;
	if (e->numbers)
		numbers_begin(e->numbers);
}

struct encoder *encode_open(void)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->body_max = 1 + COL_END * (8 + ZSTD_compressBound(ROOM));
	e->room = malloc((size_t)COL_END * ROOM);
	e->body = malloc(e->body_max);
	e->words = malloc(TRACE_PATTERNS_MAX * TRACE_WORDS_MAX * sizeof(*e->words));
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

void encode_numbers(struct encoder *e, struct numbers *n)
{
	e->numbers = n;
	numbers_begin(n);
}

/* ---- steps ---- */

/* Writes eight bytes, of which n count: every column has room behind its end. */
static inline void encode_put(struct encoder *e, enum trace_column c, uint64_t v, unsigned int n)
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

static inline unsigned int encode_bytes_of(uint64_t v)
{
	return v ? (unsigned int)(71 - __builtin_clzll(v)) / 8 : 0;
}

static inline uint64_t encode_mix(uint64_t v)
{
	v *= 0x9e3779b97f4a7c15ULL;
	return v ^ v >> 32;
}

/* Finds or makes the lane of a record: its times are stored relative to the lane's previous
 * record. */
static uint32_t lane_of(struct encoder *e, const struct ct_hdr *h, uint32_t stream)
{
	uint32_t at = (uint32_t)encode_mix(((uint64_t)h->pid << 32 | h->tid) ^ encode_mix(stream)) %
		      (TRACE_LANES_MAX * 2);
	struct lane *l;

	for (; e->lane_hash[at]; at = (at + 1) % (TRACE_LANES_MAX * 2)) {
		l = &e->lanes[e->lane_hash[at] - 1];
		if (l->def.pid == h->pid && l->def.tid == h->tid && l->stream == stream)
			return e->lane_hash[at] - 1u;
	}
	l = &e->lanes[e->nlanes];
	*l = (struct lane){ .def = { h->pid, h->tid }, .stream = stream, .end_ns = e->last_end };
	e->lane_hash[at] = (uint16_t)++e->nlanes;
	put_op(e, TRACE_OP_LANE);
	put_mem_at(e, COL_OTHER, &l->def, sizeof(l->def));
	return e->nlanes - 1;
}

static uint32_t func_of(struct encoder *e, uint16_t func)
{
	char def[FUNCS_DEF_MAX];

	if (func == CT_NO_FUNC)
		return TRACE_NO_FUNC;
	if (e->funcs[func])
		return e->funcs[func] - 1u;
	e->funcs[func] = (uint16_t)++e->nfuncs;
	put_op(e, TRACE_OP_FUNC);
	put_mem_at(e, COL_OTHER, def, funcs_define(func, def));
	return e->nfuncs - 1;
}

static uint64_t text_key(const struct ct_marker *m)
{
	uint64_t key = m->text_len | (uint64_t)m->domain_len << 16 | (uint64_t)m->what << 32, word;

	for (size_t at = sizeof(*m); at + 8 <= m->h.size; at += 8) {
		memcpy(&word, (const char *)m + at, sizeof(word));
		key = encode_mix(key ^ word);
	}
	return key;
}

static bool is_scope(const struct ct_hdr *h)
{
	return (h->kind == CT_SCOPE_BEGIN || h->kind == CT_SCOPE_END) &&
	       h->size >= sizeof(struct ct_scope);
}

/* What scopes of one name share: without fields, and what follows them, which differ from call to call. */
static uint64_t scope_key(const struct ct_scope *s)
{
	size_t len = (size_t)s->text_len + s->domain_len + s->category_len + s->layer_len;
	uint64_t key = s->depth | (uint64_t)len << 8 | (uint64_t)s->kind << 32, word;

	if (len > s->h.size - sizeof(*s))
		len = s->h.size - sizeof(*s);
	for (size_t at = 0; at < len; at += 8) {
		word = 0;
		memcpy(&word, s->text + at, len - at < 8 ? len - at : 8);
		key = encode_mix(key ^ word);
	}
	return key;
}

/* Makes the key that the records of one pattern share. Besides the head, the kind and the function it
 * has values that only make the words of a pattern more alike. */
static void pattern_key(const struct ct_hdr *h, enum trace_shape shape, uint64_t key[4])
{
	const struct ct_work *w = (const struct ct_work *)h;

	key[0] = h->tid | (uint64_t)h->pid << 32;
	key[1] = h->kind | (uint64_t)h->flags << 16 | (uint64_t)h->size << 32;
	memcpy(&key[2], h + 1, sizeof(key[2]));
	key[3] = 0;
	if (shape == TRACE_SHAPE_WORK)
		key[3] = (uint64_t)w->func << 48 |
			 encode_mix(w->stream ^
				    encode_mix(h->kind == CT_KERNEL
						       ? ((const struct ct_kernel *)h)->name
						       : 0)) >>
				 16;
	else if (h->kind == CT_MARKER)
		key[2] = text_key((const struct ct_marker *)h);
	else if (is_scope(h))
		key[2] = scope_key((const struct ct_scope *)h);
	else if (h->kind == CT_OVERHEAD)
		key[2] = ((const struct ct_overhead *)h)->type;
}

static inline bool same_key(const uint64_t *a, const uint64_t *b)
{
	return a[1] == b[1] && a[0] == b[0] && a[2] == b[2] && a[3] == b[3];
}

static uint32_t new_pattern(struct encoder *e, const struct ct_hdr *h, enum trace_shape shape,
			    const uint64_t key[4])
{
	const struct ct_work *w = (const struct ct_work *)h;
	struct pattern *s = &e->patterns[e->npatterns];
	struct trace_pattern def = {
		.func = TRACE_NO_FUNC, .kind = h->kind, .flags = h->flags, .size = h->size
	};
	uint32_t n = (h->size - (uint32_t)sizeof(*h)) / 8;

	s->lane = lane_of(e, h,
			  shape == TRACE_SHAPE_WORK ? 1 + w->stream + (w->device << 24)
			  : is_scope(h)		    ? ~(uint32_t)((const struct ct_scope *)h)->depth
						    : 0);
	def.lane = (uint16_t)s->lane;
	if (shape != TRACE_SHAPE_OTHER)
		def.func = (uint16_t)func_of(
			e, shape == TRACE_SHAPE_CALL ? ((const struct ct_call *)h)->func : w->func);
	memcpy(s->key, key, sizeof(s->key));
	s->words = e->nwords;
	memset(e->words + s->words, 0, n * sizeof(*e->words));
	e->nwords += n;
	put_op(e, TRACE_OP_NEW);
	put_mem_at(e, COL_OTHER, &def, sizeof(def));
	return e->npatterns++;
}

static inline struct pattern *pattern_of(struct encoder *e, const struct ct_hdr *h,
					 enum trace_shape shape)
{
	struct pattern *s = &e->patterns[e->last_pattern];
	uint64_t key[4];
	uint32_t at;

	pattern_key(h, shape, key);
	if (e->npatterns && same_key(s->key, key))
		return s;
	at = (uint32_t)encode_mix(key[0] ^
				  encode_mix(key[1] ^ encode_mix(key[2] ^ encode_mix(key[3])))) %
	     HASH_SIZE;
	for (; e->pattern_hash[at]; at = (at + 1) % HASH_SIZE) {
		s = &e->patterns[e->pattern_hash[at] - 1];
		if (!same_key(s->key, key))
			continue;
		e->last_pattern = e->pattern_hash[at] - 1u;
		return s;
	}
	e->last_pattern = new_pattern(e, h, shape, key);
	e->pattern_hash[at] = (uint16_t)(e->last_pattern + 1);
	return &e->patterns[e->last_pattern];
}

static inline void put_times(struct encoder *e, uint64_t gap, uint64_t dur)
{
	unsigned int g = encode_bytes_of(gap), d = encode_bytes_of(dur);

	encode_put(e, COL_TIMES, g << 4 | d, 1);
	encode_put(e, COL_GAP0, gap, g > 0);
	encode_put(e, COL_GAP1, gap >> 8, g > 1);
	encode_put(e, COL_TIMEX, gap >> 16, g > 2 ? g - 2 : 0);
	encode_put(e, COL_DUR0, dur, d > 0);
	encode_put(e, COL_DUR1, dur >> 8, d > 1);
	encode_put(e, COL_TIMEX, dur >> 16, d > 2 ? d - 2 : 0);
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
			len = encode_bytes_of(diff);
			before[i + j] = v;
			encode_put(e, COL_LEN, len, 1);
			encode_put(e, COL_DATA, len < 8 ? diff : v, len);
		}
		encode_put(e, COL_MASK, mask, 1);
	}
}

static void span(struct encoder *e, const struct ct_hdr *h)
{
	/* readers of a stretch of time read definitions anyway */
	if (h->kind == CT_HOLE)
		return;
	if (h->start_ns < e->first_ns)
		e->first_ns = h->start_ns;
	if (h->end_ns > e->last_ns)
		e->last_ns = h->end_ns;
	if (h->start_ns > e->last_ns)
		e->last_ns = h->start_ns;
}

static void put_pattern(struct encoder *e, const struct ct_hdr *h, enum trace_shape shape)
{
	struct pattern *s = pattern_of(e, h, shape);
	struct lane *l = &e->lanes[s->lane];
	uint64_t words[TRACE_WORDS_MAX], *before = e->words + s->words;

	put_op(e, TRACE_OP_PATTERN + e->last_pattern);
	put_times(e, trace_zigzag(h->start_ns - l->end_ns), h->end_ns - h->start_ns);
	l->end_ns = e->last_end = h->end_ns;
	memcpy(words, h + 1, h->size - sizeof(*h));
	if (shape == TRACE_SHAPE_CALL) {
		words[0] &= ~0xffffULL;
	} else if (shape == TRACE_SHAPE_WORK) {
		words[5] &= ~0xffffULL;
		words[1] = trace_swap(words[1]);
		memcpy(before + 1, l->work, sizeof(l->work));
		memcpy(l->work, words + 1, sizeof(l->work));
	}
	put_words(e, words, before, (h->size - (uint32_t)sizeof(*h)) / 8);
}

/* The size of the block before compression. */
static size_t raw_bytes(const struct encoder *e)
{
	size_t sum = 0;

	for (int i = 0; i < COL_END; i++)
		sum += (size_t)(e->at[i] - e->col[i]);
	return sum;
}

static bool full(const struct encoder *e)
{
	return raw_bytes(e) >= ENCODE_FULL || e->npatterns >= TRACE_PATTERNS_MAX - CHECK_EVERY ||
	       e->nlanes >= TRACE_LANES_MAX - CHECK_EVERY;
}

/* Whether a record has a pattern: records do that are frequent and like each other. */
static bool has_pattern(const struct ct_hdr *h, enum trace_shape shape)
{
	if (h->size > TRACE_PATTERN_MAX)
		return false;
	return shape != TRACE_SHAPE_OTHER || kind_is(h->kind, KIND_PATTERN);
}

/* Whether the record's row is one that a file can have. */
static bool good_func(const struct ct_hdr *h, enum trace_shape shape)
{
	if (shape == TRACE_SHAPE_CALL)
		return h->size >= sizeof(struct ct_call) &&
		       ((const struct ct_call *)h)->func < CT_MAX_FUNCS;
	return h->size >= sizeof(struct ct_work) &&
	       (((const struct ct_work *)h)->func < CT_MAX_FUNCS ||
		((const struct ct_work *)h)->func == CT_NO_FUNC);
}

static void encode_put_number(struct encoder *e, const struct ct_number *n)
{
	e->records++;
	put_op(e, TRACE_OP_RECORD);
	put_mem_at(e, COL_OTHER, n, sizeof(*n));
}

int encode_record(struct encoder *e, const struct ct_hdr *h)
{
	enum trace_shape shape = trace_shape(h->kind);
	struct ct_number number;

	if (h->size < sizeof(*h) || h->size % 8 || kind_is(h->kind, KIND_RAW) ||
	    (shape != TRACE_SHAPE_OTHER && (h->size > TRACE_PATTERN_MAX || !good_func(h, shape))))
		return -EINVAL;
	if (e->numbers && numbers_record(e->numbers, h, &number))
		encode_put_number(e, &number);
	if (e->numbers && h->kind == CT_NUMBER)
		return 0;
	e->records++;
	e->calls += h->kind == CT_CALL;
	e->definitions |= trace_is_definition(h->kind);
	if (h->start_ns &&
	    (h->pid || h->kind == CT_COUNTER || h->kind == CT_LOST || h->kind == CT_UNPROBED))
		span(e, h);
	if (has_pattern(h, shape)) {
		put_pattern(e, h, shape);
		if (++e->since_check < CHECK_EVERY)
			return 0;
	} else {
		put_op(e, TRACE_OP_RECORD);
		put_mem_at(e, COL_OTHER, h, h->size);
	}
	e->since_check = 0;
	return full(e);
}

size_t encode_most(const struct encoder *e, size_t record_bytes)
{
	/* a column that compression does not make smaller is stored as it is; the first record of a
	 * kind also stores its pattern, its lane and its function */
	return 1 + COL_END * 8 + raw_bytes(e) + 2 * record_bytes + 512;
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
			stored = ZSTD_compressCCtx(e->zstd, at,
						   e->body_max - (size_t)(at - e->body), e->col[i],
						   n[0], 1);
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
