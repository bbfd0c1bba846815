/* SPDX-License-Identifier: BSD-2-Clause */
/* test_viz.c - the snapshot of an allocator: the bytes of its pickle, the newest events, memory whose segment was not seen. */
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/mem/viz/pickle.h"
#include "../../user/mem/viz/viz.h"
#include "unit.h"

static char got[1 << 16];
static size_t ngot;

/* What was written to an output without a name. */
static void take_out(struct out *o, int fd)
{
	CHECK(!out_close(o));
	ngot = (size_t)pread(fd, got, sizeof(got), 0);
	close(fd);
}

static int begin_out(struct out *o)
{
	int fd = memfd_create("viz", 0);

	CHECK(!out_open_fd(o, fd, "viz"));
	return fd;
}

static void test_numbers(void)
{
	static const struct {
		uint64_t v;
		const char *bytes;
		size_t n;
	} rows[] = {
		{ 0, "K\0", 2 },
		{ 255, "K\xff", 2 },
		{ 256, "M\0\1", 3 },
		{ 65535, "M\xff\xff", 3 },
		{ 65536, "J\0\0\1\0", 5 },
		{ INT32_MAX, "J\xff\xff\xff\x7f", 5 },
		/* without a byte more they would be negative */
		{ 1ull << 31, "\x8a\x05\0\0\0\x80\0", 7 },
		{ 1ull << 39, "\x8a\x06\0\0\0\0\x80\0", 8 },
		{ (1ull << 63) - 1, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 10 },
		{ 1ull << 63, "\x8a\x09\0\0\0\0\0\0\0\x80\0", 11 },
		{ UINT64_MAX, "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0", 11 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pickle p;
		struct out o;
		int fd = begin_out(&o);

		CASE_ROW("%zu", i);
		CHECK(!pickle_begin(&p, &o, NULL, 0));
		pickle_number(&p, rows[i].v);
		pickle_end(&p);
		take_out(&o, fd);
		CHECK_EQ(rows[i].n + 3, ngot);
		CHECK(!memcmp(got, "\x80\2", 2) && !memcmp(got + 2, rows[i].bytes, rows[i].n));
		CHECK(got[ngot - 1] == '.');
	}
}

/* Names are untrusted bytes, and Python refuses what is no UTF-8; lists come in parts. */
static void test_texts(void)
{
	static const char *const keys[] = { "k" };
	struct pickle_list list;
	struct pickle p;
	struct out o;
	int fd = begin_out(&o), appends = 0;

	CHECK(!pickle_begin(&p, &o, keys, 1));
	pickle_text(&p, "a\xff\xc3\xa4");
	pickle_key(&p, 0);
	pickle_key(&p, 0);
	pickle_list(&p, &list);
	for (int i = 0; i < 2500; i++) {
		pickle_item(&p, &list);
		pickle_bool(&p, true);
	}
	pickle_list_end(&p, &list);
	pickle_end(&p);
	take_out(&o, fd);
	CHECK(!memcmp(got + 2, "X\6\0\0\0a\xef\xbf\xbd\xc3\xa4X\1\0\0\0kr\0\0\0\0h\0]", 25));
	for (size_t i = 0; i < ngot; i++)
		appends += got[i] == 'e';
	CHECK_EQ(3, appends);
	CHECK_EQ(2 + 24 + 1 + 2500 + 3 * 2 + 1, ngot);
}

static void add(struct viz_history *h, uint8_t action, uint64_t address, uint64_t bytes)
{
	viz_history_add(h,
			&(struct block_change){
				.address = address, .bytes = bytes, .process = 1, .what = action });
}

static void test_newest(void)
{
	struct viz_history h;

	viz_history_open(&h, 4);
	for (uint64_t i = 1; i <= 10; i++)
		add(&h, BLOCK_TAKEN, i, 1);
	CHECK_EQ(4, h.n);
	CHECK_EQ(6, h.left_out);
	for (uint64_t i = 0; i < 4; i++)
		CHECK_EQ(7 + i, viz_history_at(&h, i)->address);
	viz_history_close(&h);
	viz_history_close(&h);
}

static struct viz_state state_of(const struct viz_segment *segments, size_t nsegments,
				 const struct viz_block *blocks, size_t nblocks)
{
	struct viz_state s = { .process = 1, .nsegments = nsegments, .nblocks = nblocks };

	s.segments = calloc(nsegments + 1, sizeof(*segments));
	s.blocks = calloc(nblocks + 1, sizeof(*blocks));
	memcpy(s.segments, segments, nsegments * sizeof(*segments));
	memcpy(s.blocks, blocks, nblocks * sizeof(*blocks));
	return s;
}

/* Blocks that adjoin, and lie in no segment that was seen, make up one; what lies in one that is gone does not. */
static void test_unseen(void)
{
	const struct viz_segment segments[] = { { .address = 0x9000, .end = 0xa000 } };
	const struct viz_block blocks[] = {
		{ .address = 0x9200, .bytes = 0x200 },
		{ .address = 0x1200, .bytes = 0x200 },
		{ .address = 0x5000, .bytes = 0x100 },
		{ .address = 0x9000, .bytes = 0x200 },
		{ .address = 0x5100, .bytes = 0x100, .device = 1 },
	};
	struct viz_state s = state_of(segments, 1, blocks, ARRAY_LEN(blocks));
	struct viz_history h;

	viz_history_open(&h, 0);
	add(&h, BLOCK_GIVEN_BACK, 0x1000, 0x200);
	add(&h, BLOCK_TAKEN, 0x1400, 0x400);
	add(&h, BLOCK_GIVEN_BACK, 0x3000, 0x100);
	add(&h, BLOCK_SEGMENT_GIVEN_BACK, 0x3000, 0x1000);
	add(&h, BLOCK_NO_MEMORY, 0, 0x7000);
	add(&h, BLOCK_TAKEN, UINT64_MAX - 10, 1 << 20);
	viz_state_arrange(&s, &h);
	if (CHECK_EQ(5, s.nsegments)) {
		CHECK_EQ(0x1000, s.segments[0].address);
		CHECK_EQ(0x1800, s.segments[0].end);
		CHECK(s.segments[0].unseen);
		CHECK_EQ(1, s.segments[0].n);
		CHECK_EQ(0x1200, s.blocks[s.segments[0].first].address);
		/* of another device, another segment */
		CHECK_EQ(0x5100, s.segments[1].end);
		CHECK_EQ(1, s.segments[2].device);
		CHECK_EQ(0x9000, s.segments[3].address);
		CHECK(!s.segments[3].unseen);
		CHECK_EQ(2, s.segments[3].n);
		CHECK_EQ(UINT64_MAX, s.segments[4].end);
	}
	viz_state_free(&s);
	viz_history_close(&h);
}

static bool no_frame(void *ctx, uint32_t site, uint32_t i, struct viz_frame *f)
{
	(void)ctx, (void)site, (void)i, (void)f;
	return false;
}

/* Blocks that overlap, or end behind the segment, are not counted twice. */
static void test_overlap(void)
{
	const struct viz_segment segments[] = { { .address = 0x100, .end = 0x130 } };
	const struct viz_block blocks[] = { { .address = 0x100, .bytes = 0x18 },
					    { .address = 0x108, .bytes = 8 },
					    { .address = 0x110, .bytes = 0x10 },
					    { .address = 0x128, .bytes = UINT64_MAX } };
	struct viz_state s = state_of(segments, 1, blocks, ARRAY_LEN(blocks));
	struct viz_history h;
	struct viz viz = { .history = &h, .state = &s, .nsites = 1, .frame = no_frame };
	struct out o;
	int fd = begin_out(&o), held = 0;

	viz_history_open(&h, 0);
	viz_state_arrange(&s, &h);
	CHECK(!viz_write(&o, &viz));
	take_out(&o, fd);
	for (size_t i = 0; i + 16 < ngot; i++)
		held += !memcmp(got + i, "allocated_size", 14) && got[i + 19] == 'K' &&
			got[i + 20] == 0x28;
	CHECK_EQ(1, held);
	viz_state_free(&s);
	viz_history_close(&h);
}

int main(void)
{
	RUN(test_numbers);
	RUN(test_texts);
	RUN(test_newest);
	RUN(test_unseen);
	RUN(test_overlap);
	return unit_end();
}
