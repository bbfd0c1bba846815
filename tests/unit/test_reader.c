/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reader.c - what reader.c accepts of a file and what it refuses. Each file is built here by hand, block by block with right sums,
 * so that each check is met by a file that only this check refuses.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "../../user/trace/reader.h"
#include "make_block.h"
#include "unit.h"

#define TEXT_MAX (256u << 10) /* as in reader.c */

static int fd;
static uint64_t at, seq;

static void append(const void *bytes, size_t n)
{
	if (pwrite(fd, bytes, n, (off_t)at) != (ssize_t)n)
		abort();
	at += n;
}

static void seal(struct trace_block *h)
{
	h->head_crc = (uint32_t)crc32(0, (const void *)h, offsetof(struct trace_block, head_crc));
}

static struct trace_block head_of(uint8_t type, const void *bytes, size_t len)
{
	struct trace_block h = { .magic = TRACE_BLOCK_MAGIC,
				 .type = type,
				 .len = (uint32_t)len,
				 .seq = seq++,
				 .last_ns = UINT64_MAX,
				 .body_crc = (uint32_t)crc32(0, bytes, (unsigned int)len) };

	seal(&h);
	return h;
}

static void block(uint8_t type, const void *bytes, size_t len)
{
	struct trace_block h = head_of(type, bytes, len);

	append(&h, sizeof(h));
	append(bytes, len);
}

static void begin_file(void)
{
	if (ftruncate(fd, 0))
		abort();
	at = seq = 0;
	append(TRACE_MAGIC, TRACE_MAGIC_LEN);
}

static void begin_recording(void)
{
	begin_file();
	block(TRACE_HEAD, "format 1\n", 9);
}

/* A block of n calls of processes 100, 101... */
static void calls(int n)
{
	size_t len;
	uint8_t *all;

	fresh();
	lane();
	function("cudaDeviceSynchronize");
	pattern(0, 0, CT_CALL, sizeof(struct ct_call) + 64);
	for (int i = 0; i < n; i++) {
		step(TRACE_OP_PATTERN);
		byte(COL_TIMES, 1);
		byte(COL_DUR0, 5);
		/* the first call has 6 words of arguments */
		put(COL_MASK, i ? "\0\0" : "\2\0", 2);
		if (!i) {
			byte(COL_LEN, 8);
			put(COL_DATA, "\0\0\0\0\0\0\0\0", 8);
		}
	}
	all = body(&len);
	block(TRACE_DATA, all, len);
	free(all);
}

/* Opens the file, reads all, and closes it. Returns the last answer of the reader. */
static int read_all(uint64_t from_ns, struct reader_stats *s, uint64_t *lost)
{
	const struct ct_hdr *rec;
	struct reader *r;
	int err = reader_open_fd(&r, fd);

	*lost = 0;
	memset(s, 0, sizeof(*s));
	if (err)
		return err;
	if (from_ns)
		reader_range(r, from_ns, UINT64_MAX);
	while ((err = reader_next(r, &rec)) == 1)
		*lost += rec->kind == CT_LOST ? ((const struct ct_lost *)rec)->count : 0;
	reader_stats(r, s);
	reader_close(r);
	return err;
}

static int opened(void)
{
	struct reader_stats s;
	uint64_t lost;

	return read_all(0, &s, &lost);
}

/* ---- the head ---- */

static void test_head(void)
{
	struct reader *r;
	char value[16], *text;

	begin_file();
	at = TRACE_MAGIC_LEN - 1;
	if (ftruncate(fd, (off_t)at))
		abort();
	CHECK_EQ(-ENODATA, opened());
	append(TRACE_MAGIC, 1);
	CHECK_EQ(-EBADMSG, opened());

	/* the next format is not read, and a recording without a number is one of the first format */
	begin_file();
	block(TRACE_HEAD, "format 2\n", 9);
	CHECK_EQ(-EPROTONOSUPPORT, opened());
	begin_file();
	block(TRACE_HEAD, "host h\nformat x\nname  a b\n", 26);
	if (CHECK_EQ(0, reader_open_fd(&r, fd))) {
		CHECK_TEXT("host h\nformat x\nname  a b\n", reader_head(r));
		CHECK(reader_value(reader_head(r), "host", value, sizeof(value)) == value);
		CHECK_TEXT("h", value);
		CHECK(reader_value(reader_head(r), "name", value, 3) == value);
		CHECK_TEXT(" a", value);
		CHECK(!reader_value(reader_head(r), "hos", value, sizeof(value)));
		CHECK(!reader_value(reader_head(r), "absent", value, sizeof(value)));
		CHECK(!reader_value(NULL, "absent", value, sizeof(value)));
		CHECK_EQ(0, reader_number(reader_head(r), "format"));
		CHECK_EQ(0, reader_number(reader_head(r), "absent"));
		reader_close(r);
	}

	/* a text that is longer than any that a recorder writes, and the longest that is kept */
	text = malloc(TEXT_MAX + 1);
	if (!text)
		abort();
	memset(text, 'x', TEXT_MAX + 1);
	for (size_t more = 0; more < 2; more++) {
		struct reader_stats s;
		uint64_t lost;

		CASE_ROW("%zu more", more);
		begin_file();
		block(TRACE_HEAD, text, TEXT_MAX + more);
		block(TRACE_END, text, TEXT_MAX + more);
		CHECK_EQ(0, read_all(0, &s, &lost));
		CHECK_EQ(more, s.damaged);
		if (CHECK_EQ(0, reader_open_fd(&r, fd))) {
			const struct ct_hdr *rec;

			CHECK_EQ(0, reader_next(r, &rec));
			CHECK_EQ(more ? 0 : TEXT_MAX, strlen(reader_head(r)));
			CHECK(more ? !reader_end(r) : reader_end(r) != NULL);
			reader_close(r);
		}
	}
	free(text);
}

/* ---- blocks ---- */

static void test_blocks(void)
{
	struct reader_stats s;
	struct trace_block h;
	uint64_t lost, kept;

	begin_recording();
	calls(3);
	kept = at;
	block(TRACE_END, "reason finished\n", 16);
	CHECK_EQ(0, read_all(0, &s, &lost));
	CHECK_EQ(3, s.records);
	CHECK_EQ(1, s.blocks);
	CHECK(s.ended && !s.indexed && !s.damaged && !s.cut_bytes && !lost);

	/* a block of a type that is not known is nothing */
	at = kept;
	seq = 2;
	block(77, "abc", 3);
	calls(2);
	CHECK_EQ(0, read_all(0, &s, &lost));
	CHECK_EQ(5, s.records);
	CHECK(!s.damaged && !s.cut_bytes && !lost);

	/* a block that says that it is one of those before: it is damage */
	seq = 1;
	calls(1);
	seq = 4;
	calls(1);
	CHECK_EQ(0, read_all(0, &s, &lost));
	CHECK_EQ(6, s.records);
	CHECK_EQ(1, s.damaged);

	/* two blocks are missing: something is lost, how much is not known */
	seq = 7;
	calls(1);
	CHECK_EQ(0, read_all(0, &s, &lost));
	CHECK_EQ(8, s.records + lost);
	CHECK_EQ(1, lost);

	/* a body of any length has a right sum, but this length is more than a block has */
	begin_recording();
	h = head_of(TRACE_DATA, "", 0);
	h.len = TRACE_BODY_MAX + 1;
	seal(&h);
	append(&h, sizeof(h));
	kept = at;
	if (ftruncate(fd, (off_t)(at + TRACE_BODY_MAX + 1)))
		abort();
	at += TRACE_BODY_MAX + 1;
	seq = 1;
	calls(2);
	CHECK_EQ(0, read_all(0, &s, &lost));
	CHECK_EQ(1, s.damaged);
	CHECK_EQ(sizeof(h) + TRACE_BODY_MAX + 1, s.damaged_bytes);
	CHECK_EQ(2, s.records);

	/* the file ends in a body */
	begin_recording();
	kept = at;
	calls(3);
	if (ftruncate(fd, (off_t)at - 1))
		abort();
	CHECK_EQ(0, read_all(0, &s, &lost));
	CHECK_EQ(at - 1 - kept, s.cut_bytes);
	CHECK(!s.records && !s.damaged && !s.ended);

	/* the sum of a body is wrong */
	begin_recording();
	calls(3);
	at--;
	append("\x55", 1);
	CHECK_EQ(0, read_all(0, &s, &lost));
	CHECK_EQ(1, s.damaged);
	CHECK(!s.records && lost == 1);
}

/* A file that becomes shorter while it is read. */
static void test_shorter(void)
{
	const struct ct_hdr *rec;
	struct reader_stats s;
	struct reader *r;

	begin_recording();
	calls(3);
	if (!CHECK_EQ(0, reader_open_fd(&r, fd)))
		return;
	if (ftruncate(fd, (off_t)at - 1))
		abort();
	CHECK_EQ(0, reader_next(r, &rec));
	reader_stats(r, &s);
	CHECK_EQ(0, s.records);
	CHECK(s.cut_bytes > 0);
	reader_close(r);
}

/* A file that becomes longer: what was not there when it was opened is not read. */
static void test_longer(void)
{
	const struct ct_hdr *rec;
	struct reader_stats s;
	struct reader *r;
	uint64_t place, whole;

	begin_recording();
	place = at;
	calls(3);
	whole = at;
	if (ftruncate(fd, (off_t)whole - 1) || !CHECK_EQ(0, reader_open_fd(&r, fd)))
		return;
	at = place;
	seq = 1;
	calls(3);
	CHECK_EQ(0, reader_next(r, &rec));
	reader_stats(r, &s);
	CHECK_EQ(0, s.records);
	CHECK_EQ(whole - 1 - place, s.cut_bytes);
	reader_close(r);
}

/* ---- calls of functions that this version does not have ---- */

/* Two calls: one of a function that is not known, with so many words, and one of a known one. Returns whether the first is there. */
static bool foreign_call(uint8_t nwords, size_t size)
{
	static const char name[] = "cudaxxxx";
	struct trace_func_def def = { .layout = 3, .domain_len = 4, .class_len = 0, .name_len = 4 };
	const struct ct_hdr *rec;
	struct reader_stats s;
	struct reader *r;
	struct ct_call c = { .nwords = nwords };
	bool there = false;
	uint64_t word;
	uint8_t *all;
	size_t len;

	begin_recording();
	fresh();
	lane();
	step(TRACE_OP_FUNC);
	put(COL_OTHER, &def, sizeof(def));
	put(COL_OTHER, name, 8);
	pattern(0, 0, CT_CALL, size);
	step(TRACE_OP_PATTERN);
	byte(COL_TIMES, 0);
	for (size_t i = 0, n = (size - sizeof(c.h)) / 8; i < n; i++) {
		if (i % 8 == 0)
			byte(COL_MASK, n - i < 8 ? (uint8_t)((1u << (n - i)) - 1) : 0xff);
		word = 0x7777;
		if (i < (sizeof(c) - sizeof(c.h)) / 8)
			memcpy(&word, (const char *)&c + sizeof(c.h) + i * 8, 8);
		byte(COL_LEN, 8);
		put(COL_DATA, &word, 8);
	}
	all = body(&len);
	block(TRACE_DATA, all, len);
	free(all);
	calls(1);
	if (!CHECK_EQ(0, reader_open_fd(&r, fd)))
		return false;
	while (reader_next(r, &rec) == 1) {
		const struct ct_foreign *f = (const struct ct_foreign *)rec;

		if (rec->kind != CT_FOREIGN)
			continue;
		there = true;
		CHECK_EQ(nwords, f->nwords);
		CHECK(!nwords || f->words[nwords - 1] == 0x7777);
		CHECK_EQ(4, f->name_len);
		CHECK(!memcmp(&f->words[nwords], "xxxxcuda", 8));
	}
	reader_stats(r, &s);
	CHECK_EQ(there ? 2 : 1, s.records);
	CHECK_EQ(!there, s.malformed);
	CHECK_EQ(!there, s.lost_records);
	reader_close(r);
	return there;
}

static void test_foreign(void)
{
	size_t fixed = sizeof(struct ct_call);

	CHECK(foreign_call(0, fixed));
	CHECK(foreign_call(CT_MAX_WORDS, fixed + CT_MAX_WORDS * 8));
	CHECK(!foreign_call(CT_MAX_WORDS, fixed + CT_MAX_WORDS * 8 - 8));
	CHECK(!foreign_call(CT_MAX_WORDS + 1, fixed + CT_MAX_WORDS * 8 + 8));
	/* more words than the reader has room for */
	CHECK(!foreign_call((TRACE_PATTERN_MAX - fixed) / 8, TRACE_PATTERN_MAX));
}

/* ---- the index ---- */

static uint64_t places[2];

/* Two blocks of calls, the first of which is early, then an index that is changed as `what` says. */
enum change {
	NOTHING,
	SHORT_LIST,
	ODD_LIST,
	WRONG_SUM,
	WRONG_TYPE,
	WRONG_PLACE,
	NOT_LAST,
	OTHER_PLACE,
	LONG_BLOCK,
	OF_ITSELF
};
static void with_index(enum change what)
{
	struct {
		struct trace_index_entry e[3];
		struct trace_tail tail;
		char more[8];
	} i = { .tail = { .magic = TRACE_TAIL_MAGIC } };
	size_t len = sizeof(i.e) + sizeof(i.tail), from = 0;
	struct trace_block h;

	begin_recording();
	i.e[0] = (struct trace_index_entry){ .offset = TRACE_MAGIC_LEN,
					     .len = 9,
					     .type = TRACE_HEAD };
	for (int k = 0; k < 2; k++) {
		places[k] = at;
		calls(3);
		i.e[k + 1] = (struct trace_index_entry){
			.offset = places[k],
			.len = (uint32_t)(at - places[k] - sizeof(h)),
			.type = TRACE_DATA,
			.first_ns = k ? 1000 : 1,
			.last_ns = k ? 2000 : 10,
		};
	}
	i.tail.offset = at;
	switch (what) {
	case OTHER_PLACE: i.e[1].offset++; break;
	case LONG_BLOCK: i.e[1].len = TRACE_BODY_MAX + 1; break;
	case OF_ITSELF:
		i.e[1].offset = at;
		i.e[1].len = (uint32_t)len;
		break;
	case WRONG_PLACE: i.tail.offset -= 1; break;
	case SHORT_LIST: from = sizeof(i.e); break;
	case ODD_LIST: from = 8; break;
	default: break;
	}
	len -= from;
	h = head_of(what == WRONG_TYPE ? 78 : TRACE_INDEX, (const char *)&i + from, len);
	if (what == WRONG_SUM) {
		h.body_crc++;
		seal(&h);
	}
	append(&h, sizeof(h));
	append((const char *)&i + from, len);
	if (what == NOT_LAST)
		append(&i.tail, sizeof(i.tail));
}

static void test_index(void)
{
	static const struct {
		enum change what;
		bool indexed;
		uint64_t records; /* of those from 1000 on */
		uint64_t blocks;
	} rows[] = {
		/* the first block of calls is left out, as the index says; without an index its head does not say so */
		{ NOTHING, true, 3, 2 },     { SHORT_LIST, true, 6, 2 },
		{ ODD_LIST, false, 6, 2 },   { WRONG_SUM, false, 6, 2 },
		{ WRONG_TYPE, false, 6, 2 }, { WRONG_PLACE, false, 6, 2 },
		{ NOT_LAST, false, 6, 2 },   { OTHER_PLACE, true, 6, 2 },
		{ LONG_BLOCK, true, 6, 2 },  { OF_ITSELF, true, 6, 2 },
	};
	struct reader_stats s;
	uint64_t lost;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("index %d", rows[i].what);
		with_index(rows[i].what);
		CHECK_EQ(0, read_all(500, &s, &lost));
		CHECK_EQ(rows[i].indexed, s.indexed);
		CHECK_EQ(rows[i].records, s.records);
		CHECK_EQ(rows[i].blocks, s.blocks);
		CHECK_EQ(0, lost);
		CHECK_EQ(0, s.damaged);
	}
}

/* The file ends in a block of which only the head is looked at: one of another time, or the index. */
static void test_cut(void)
{
	struct reader_stats s;
	uint64_t lost, place;
	struct trace_block h;

	begin_recording();
	calls(1);
	place = at;
	h = head_of(TRACE_DATA, "12345678", 8);
	h.last_ns = 10;
	seal(&h);
	append(&h, sizeof(h));
	append("1234567", 7);
	CHECK_EQ(0, read_all(500, &s, &lost));
	CHECK_EQ(sizeof(h) + 7, s.cut_bytes);
	CHECK(s.records == 1 && !s.damaged && !lost);
	append("8", 1);
	CHECK_EQ(0, read_all(500, &s, &lost));
	CHECK(s.records == 1 && !s.cut_bytes && !s.damaged && !lost);

	with_index(NOTHING);
	place = places[1] + sizeof(h) + (places[1] - places[0] - sizeof(h));
	for (uint64_t end = at - 1; end > place; end -= 40) {
		CASE_ROW("%d bytes missing", (int)(at - end));
		if (ftruncate(fd, (off_t)end))
			abort();
		CHECK_EQ(0, read_all(0, &s, &lost));
		CHECK_EQ(end - place, s.cut_bytes);
		CHECK(s.records == 6 && !s.indexed && !s.damaged && !lost);
	}
}

/* What lies in a file without an index, where rows of one would be, is none. Here the head says that the second block of
 * calls is of another time. */
static void test_no_index(void)
{
	struct trace_index_entry e = { .type = TRACE_DATA, .first_ns = 1, .last_ns = 2 };
	const size_t room = 4096, place = 2 * sizeof(e),
		     from = place - TRACE_MAGIC_LEN - sizeof(struct trace_block);
	char *text = malloc(room);
	struct reader_stats s;
	uint64_t lost, begin;

	if (!text)
		abort();
	for (int again = 0; again < 2; again++) {
		memset(text, ' ', room);
		memcpy(text, "format 1\n", 9);
		/* in the place of the third row of an index that is at the file's begin */
		memcpy(text + from, &e, sizeof(e));
		begin_file();
		block(TRACE_HEAD, text, room);
		calls(3);
		begin = at;
		calls(3);
		e.offset = begin;
		e.len = (uint32_t)(at - begin - sizeof(struct trace_block));
	}
	for (int i = 0; i < 100; i++)
		calls(1);
	CHECK_EQ(0, read_all(500, &s, &lost));
	CHECK_EQ(106, s.records);
	CHECK(!s.indexed && !s.damaged && !lost);
	free(text);
}

int main(void)
{
	fd = memfd_create("reader", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	RUN(test_head);
	RUN(test_blocks);
	RUN(test_shorter);
	RUN(test_longer);
	RUN(test_foreign);
	RUN(test_index);
	RUN(test_cut);
	RUN(test_no_index);
	drop_columns();
	close(fd);
	return unit_end();
}
