/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_decode.c - what decode.c and funcs.c accept of a block and what they refuse. Each block is built here by hand, so that each check is
 * met by a block that only this check refuses: the largest number that is allowed, then the next one; all bytes, then one fewer.
 */
#include <errno.h>
#include <zstd.h>

#include "../../user/trace/decode.h"
#include "make_block.h"
#include "unit.h"

static struct funcs *funcs;
static struct decoder *decoder;

/* The numbers of a column in a body: its length, and the bytes that it is stored in. */
static void set_column(uint8_t *all, enum trace_column c, uint32_t length, uint32_t stored)
{
	uint32_t n[2] = { length, stored };

	memcpy(all + 1 + (size_t)c * 8, n, sizeof(n));
}

/* The decoder's answer to what comes after the definitions: 1 (a record), 0 (the block's end) or an error. */
static int decoded(struct ct_hdr **rec)
{
	struct trace_func *func;
	size_t len;
	uint8_t *all = body(&len);
	int err = decode_block(decoder, all, len);

	free(all);
	CHECK_EQ(0, err);
	return err ? err : decode_next(decoder, rec, &func);
}

static int answer(void)
{
	struct ct_hdr *rec;

	return decoded(&rec);
}

/* The last byte of a column is missing. */
static int answer_without(enum trace_column c)
{
	int said;

	b.n[c]--;
	said = answer();
	b.n[c]++;
	return said;
}

/* ---- the block ---- */

static void test_block(void)
{
	struct ct_hdr *rec;
	struct trace_func *func;
	size_t len;
	uint8_t *all;

	fresh();
	CHECK_EQ(0, answer());
	all = body(&len);
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len - 1));
	all[0] = COL_END - 1;
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
	all[0] = COL_END + 1;
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
	free(all);
	all = malloc(1);
	if (!all)
		abort();
	all[0] = COL_END;
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, 1));
	free(all);
	all = malloc(0);
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, 0));
	free(all);

	/* a column stored in more bytes than there are, or in fewer */
	lane();
	for (int i = 0; i < COL_END; i++) {
		CASE_ROW("column %d", i);
		all = body(&len);
		set_column(all, (enum trace_column)i, (uint32_t)b.n[i] + 1, (uint32_t)b.n[i] + 1);
		CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
		free(all);
	}
	all = body(&len);
	set_column(all, COL_OTHER, 7, 7);
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
	free(all);

	/* a step of a block that was refused after its first columns were read: there is no record in it */
	fresh();
	step(TRACE_OP_RECORD);
	all = body(&len);
	set_column(all, COL_TIMES, 1, 1);
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
	CHECK_EQ(-EBADMSG, decode_next(decoder, &rec, &func));
	free(all);
}

static void test_column_sizes(void)
{
	size_t len;
	uint8_t *all;

	fresh();
	memset(b.at[COL_DATA], 0, COLUMN_MAX + 1);
	b.n[COL_DATA] = COLUMN_MAX;
	CHECK_EQ(0, answer());
	b.n[COL_DATA]++;
	all = body(&len);
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
	free(all);
}

static void test_compressed(void)
{
	static const uint8_t zeros[1000];
	size_t len;
	uint8_t *all;

	fresh();
	b.n[COL_DATA] = ZSTD_compress(b.at[COL_DATA], COLUMN_MAX, zeros, sizeof(zeros), 1);
	all = body(&len);
	set_column(all, COL_DATA, sizeof(zeros), (uint32_t)b.n[COL_DATA]);
	CHECK_EQ(0, decode_block(decoder, all, len));
	/* the frame has more, has fewer, is no frame */
	set_column(all, COL_DATA, sizeof(zeros) - 1, (uint32_t)b.n[COL_DATA]);
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
	set_column(all, COL_DATA, sizeof(zeros) + 1, (uint32_t)b.n[COL_DATA]);
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
	all[len - b.n[COL_DATA]] ^= 0xff;
	set_column(all, COL_DATA, sizeof(zeros), (uint32_t)b.n[COL_DATA]);
	CHECK_EQ(-EBADMSG, decode_block(decoder, all, len));
	free(all);
}

/* ---- steps ---- */

static void test_steps(void)
{
	/* the first pattern does not exist; the last number that a step can have */
	fresh();
	step(TRACE_OP_PATTERN);
	CHECK_EQ(-EBADMSG, answer());
	fresh();
	step((1u << 28) - 1);
	CHECK_EQ(-EBADMSG, answer());

	/* the number of a step has no end, then it is too long although it is a lane's */
	fresh();
	byte(COL_OP, TRACE_OP_LANE | 0x80);
	CHECK_EQ(-EBADMSG, answer());
	fresh();
	lane();
	b.n[COL_OP] = 0;
	put(COL_OP, "\x81\x80\x80", 3);
	byte(COL_OP, 0);
	CHECK_EQ(0, answer());
	b.n[COL_OP] = 0;
	put(COL_OP, "\x81\x80\x80\x80", 4);
	byte(COL_OP, 0);
	CHECK_EQ(-EBADMSG, answer());
}

static void test_lanes(void)
{
	fresh();
	lane();
	CHECK_EQ(0, answer());
	CHECK_EQ(-EBADMSG, answer_without(COL_OTHER));
	for (int i = 1; i < TRACE_LANES_MAX; i++)
		lane();
	CHECK_EQ(0, answer());
	lane();
	CHECK_EQ(-EBADMSG, answer());
}

static void test_functions(void)
{
	fresh();
	function("cudaMalloc");
	CHECK_EQ(0, answer());
	for (; b.n[COL_OTHER]; b.n[COL_OTHER]--)
		CHECK_EQ(-EBADMSG, answer_without(COL_OTHER));

	fresh();
	for (int i = 0; i < CT_MAX_FUNCS; i++)
		function("cudaFree");
	CHECK_EQ(0, answer());
	function("cudaFree");
	CHECK_EQ(-EBADMSG, answer());
}

static void test_patterns(void)
{
	static const struct {
		const char *what;
		struct trace_pattern p;
		int want;
	} rows[] = {
		{ "call", { .kind = CT_CALL, .size = sizeof(struct ct_call) }, 0 },
		{ "no such lane", { .lane = 2, .kind = CT_CALL, .size = 64 }, -EBADMSG },
		{ "no such function", { .func = 1, .kind = CT_CALL, .size = 64 }, -EBADMSG },
		{ "call of none", { .func = TRACE_NO_FUNC, .kind = CT_CALL, .size = 64 }, -EBADMSG },
		{ "work of none",
		  { .func = TRACE_NO_FUNC, .kind = CT_KERNEL, .size = sizeof(struct ct_kernel) },
		  0 },
		{ "work of no such", { .func = 1, .kind = CT_KERNEL, .size = 256 }, -EBADMSG },
		{ "raw", { .func = TRACE_NO_FUNC, .kind = CT_MORE, .size = 64 }, -EBADMSG },
		{ "raw call", { .kind = CT_LAYER_END, .size = 64 }, -EBADMSG },
		{ "short call", { .kind = CT_CALL, .size = sizeof(struct ct_call) - 8 }, -EBADMSG },
		{ "short work",
		  { .kind = CT_KERNEL, .size = sizeof(struct ct_work) - 8 },
		  -EBADMSG },
		{ "only a head", { .kind = CT_MARKER, .size = sizeof(struct ct_hdr) }, 0 },
		{ "no head", { .kind = CT_MARKER, .size = sizeof(struct ct_hdr) - 8 }, -EBADMSG },
		{ "largest", { .kind = CT_MARKER, .size = TRACE_PATTERN_MAX }, 0 },
		{ "too large", { .kind = CT_MARKER, .size = TRACE_PATTERN_MAX + 8 }, -EBADMSG },
		{ "not of eights",
		  { .kind = CT_MARKER, .size = sizeof(struct ct_hdr) + 4 },
		  -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%s", rows[i].what);
		fresh();
		lane();
		lane();
		function("cudaMalloc");
		pattern(rows[i].p.lane, rows[i].p.func, rows[i].p.kind, rows[i].p.size);
		CHECK_EQ(rows[i].want, answer());
		CHECK_EQ(-EBADMSG, answer_without(COL_OTHER));
	}

	/* the last pattern of most: its words are the last in the decoder's room */
	fresh();
	lane();
	for (int i = 0; i < TRACE_PATTERNS_MAX; i++)
		pattern(0, TRACE_NO_FUNC, CT_MARKER, TRACE_PATTERN_MAX);
	CASE_ROW("most patterns");
	CHECK_EQ(0, answer());
	pattern(0, TRACE_NO_FUNC, CT_MARKER, TRACE_PATTERN_MAX);
	CHECK_EQ(-EBADMSG, answer());
}

/* ---- records ---- */

/* A marker of so many words behind its head. */
static void begin_marker(size_t words)
{
	fresh();
	lane();
	pattern(0, TRACE_NO_FUNC, CT_MARKER, sizeof(struct ct_hdr) + words * 8);
	step(TRACE_OP_PATTERN);
}

static void test_times(void)
{
	static const enum trace_column all[] = { COL_TIMES, COL_GAP0, COL_GAP1,
						 COL_DUR0,  COL_DUR1, COL_TIMEX };
	struct ct_hdr *rec;

	/* the gap is 0x060504030201, the duration 0xff11 */
	begin_marker(0);
	byte(COL_TIMES, 6 << 4 | 2);
	byte(COL_GAP0, 0x02);
	byte(COL_GAP1, 0x04);
	put(COL_TIMEX, "\x06\x08\x0a\x0c", 4);
	byte(COL_DUR0, 0x11);
	byte(COL_DUR1, 0xff);
	if (CHECK_EQ(1, decoded(&rec))) {
		CHECK_EQ(0x060504030201, rec->start_ns);
		CHECK_EQ(0xff11, rec->end_ns - rec->start_ns);
		CHECK_EQ(100, rec->pid);
		CHECK_EQ(101, rec->tid);
		CHECK_EQ(sizeof(*rec), rec->size);
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		CASE_ROW("column %d", all[i]);
		CHECK_EQ(-EBADMSG, answer_without(all[i]));
	}

	/* eight bytes, and nine */
	CASE_ROW("long times");
	for (int shift = 0; shift <= 4; shift += 4) {
		begin_marker(0);
		put(COL_GAP0, "\0", 1);
		put(COL_GAP1, "\0", 1);
		put(COL_DUR0, "\0", 1);
		put(COL_DUR1, "\0", 1);
		put(COL_TIMEX, "\0\0\0\0\0\0\0", 7);
		byte(COL_TIMES, (uint8_t)(8 << shift));
		CHECK_EQ(1, answer());
		b.at[COL_TIMES][0] = (uint8_t)(9 << shift);
		CHECK_EQ(-EBADMSG, answer());
	}
}

static void test_words(void)
{
	static const enum trace_column all[] = { COL_MASK, COL_LEN, COL_DATA };
	struct ct_hdr *rec;
	uint64_t words[9];

	/* nine words: the first and the last are given */
	begin_marker(9);
	byte(COL_TIMES, 0);
	put(COL_MASK, "\1\1", 2);
	put(COL_LEN, "\2\x8", 2);
	put(COL_DATA, "\x06\x01\x11\x22\x33\x44\x55\x66\x77\x08", 10);
	if (CHECK_EQ(1, decoded(&rec))) {
		memcpy(words, rec + 1, sizeof(words));
		CHECK_EQ(0x83, words[0]);
		CHECK_EQ(0, words[7]);
		CHECK_EQ(0x0877665544332211, words[8]);
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		CASE_ROW("column %d", all[i]);
		CHECK_EQ(-EBADMSG, answer_without(all[i]));
	}
	CASE_ROW("nine bytes");
	b.at[COL_LEN][1] = 9;
	byte(COL_DATA, 0);
	CHECK_EQ(-EBADMSG, answer());

	CASE_ROW("a word behind the last");
	b.at[COL_LEN][1] = 8;
	b.at[COL_MASK][1] = 2;
	CHECK_EQ(-EBADMSG, answer());
}

/* Patterns refer to those before them only. */
static void test_pattern_numbers(void)
{
	begin_marker(0);
	byte(COL_TIMES, 0);
	CHECK_EQ(1, answer());
	b.n[COL_OP]--;
	step(TRACE_OP_PATTERN + 1);
	CHECK_EQ(-EBADMSG, answer());
}

static int whole(uint16_t kind, uint16_t size, size_t there)
{
	char room[512] = { 0 };
	struct ct_hdr h = { .kind = kind, .size = size, .lost = 3 }, *rec;
	int said;

	fresh();
	step(TRACE_OP_RECORD);
	memcpy(room, &h, sizeof(h));
	put(COL_OTHER, room, there);
	said = decoded(&rec);
	if (said == 1) {
		CHECK_EQ(size, rec->size);
		CHECK_EQ(0, rec->lost);
	}
	return said;
}

static void test_whole_records(void)
{
	CHECK_EQ(1, whole(CT_MARKER, sizeof(struct ct_hdr), sizeof(struct ct_hdr)));
	CHECK_EQ(-EBADMSG, whole(CT_MARKER, sizeof(struct ct_hdr), sizeof(struct ct_hdr) - 1));
	CHECK_EQ(-EBADMSG, whole(CT_MARKER, sizeof(struct ct_hdr) - 1, sizeof(struct ct_hdr)));
	CHECK_EQ(-EBADMSG, whole(CT_MARKER, 0, sizeof(struct ct_hdr)));
	CHECK_EQ(1, whole(CT_MARKER, 256, 256));
	CHECK_EQ(-EBADMSG, whole(CT_MARKER, 256, 255));
	CHECK_EQ(-EBADMSG, whole(CT_MARKER, 256, 1));
	CHECK_EQ(-EBADMSG, whole(CT_MARKER, 256, 0));
	/* those with a function have a pattern */
	CHECK_EQ(-EBADMSG, whole(CT_CALL, 64, 64));
	CHECK_EQ(-EBADMSG, whole(CT_KERNEL, 256, 256));
	CHECK_EQ(-EBADMSG, whole(CT_USER_STACK, 256, 256));
	CHECK_EQ(1, whole(CT_KIND_END, 256, 256));
}

/* ---- functions ---- */

/* A definition with texts of these lengths; the bytes are NUL. */
static const struct trace_func *read_def(struct funcs *f, uint8_t domain, uint8_t class,
					 uint8_t name, uint64_t layout)
{
	struct trace_func_def def = {
		.layout = layout, .domain_len = domain, .class_len = class, .name_len = name
	};
	size_t used, len = sizeof(def) + domain + class + name;
	char *at = malloc(len);
	const struct trace_func *got;

	if (!at)
		abort();
	memset(at, 'x', len);
	memcpy(at, &def, sizeof(def));
	CHECK(!funcs_read(f, at, len - 1, &used));
	got = funcs_read(f, at, len, &used);
	CHECK(!got || used == len);
	free(at);
	return got;
}

static void test_definitions(void)
{
	struct funcs *f = funcs_open();
	const struct trace_func *got = read_def(f, 31, 31, 127, 1);

	if (CHECK(got)) {
		CHECK_EQ(31, strlen(got->domain));
		CHECK_EQ(31, strlen(got->class));
		CHECK_EQ(127, strlen(got->name));
		CHECK_EQ(-1, got->row);
		CHECK_EQ(FUNCS_UNKNOWN, got->fit);
	}
	CHECK(!read_def(f, 32, 31, 127, 1));
	CHECK(!read_def(f, 31, 32, 127, 1));
	CHECK(!read_def(f, 31, 31, 128, 1));
	CHECK(read_def(f, 31, 31, 127, 1) == got);
	CHECK(read_def(f, 31, 31, 126, 1) != got);
	CHECK(read_def(f, 30, 31, 127, 1) != got);
	CHECK(!funcs_at(f, 3));

	/* as many as a file may have */
	for (uint64_t i = 3; i < FUNCS_MAX; i++)
		CHECK(read_def(f, 1, 1, 1, 1000 + i));
	CHECK(!read_def(f, 1, 1, 1, 1000));
	CHECK(read_def(f, 31, 31, 127, 1) == got);
	CHECK(!funcs_at(f, FUNCS_MAX));
	funcs_close(f);
}

int main(void)
{
	funcs = funcs_open();
	decoder = funcs ? decode_open(funcs) : NULL;
	if (!decoder)
		abort();
	RUN(test_block);
	RUN(test_column_sizes);
	RUN(test_compressed);
	RUN(test_steps);
	RUN(test_lanes);
	RUN(test_functions);
	RUN(test_patterns);
	RUN(test_times);
	RUN(test_words);
	RUN(test_pattern_numbers);
	RUN(test_whole_records);
	RUN(test_definitions);
	decode_close(decoder);
	funcs_close(funcs);
	drop_columns();
	return unit_end();
}
