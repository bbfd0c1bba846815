/* SPDX-License-Identifier: BSD-2-Clause */
/* test_blocks.c - blocks of an allocator inside a program: sums, peaks, free stretches, reports that are missing or cannot be true. */
#include "../../user/mem/ledger.h"
#include "make_call.h"
#include "unit.h"

#define REPORT "c10::reportMemoryUsageToProfiler"
#define NO_MEMORY "c10::reportOutOfMemoryToProfiler"
#define CUDA 1ULL
#define MIB (1ULL << 20)

static struct process proc = { .pid = 7, .shown_pid = 7, .comm = "torch" };
static uint64_t now_ns;

static struct ledger *begin(uint32_t most)
{
	struct ledger_opts opts = { .live_max = most };

	now_ns = 1000;
	return ledger_open(&opts);
}

static void give(struct ledger *l, const struct ct_call *c, const struct stack *stack)
{
	struct event ev = { .rec = &c->h, .proc = &proc, .device = 0, .stack = stack };

	ev.context = ev.stream = CT_UNKNOWN;
	CHECK(ledger_event(l, &ev) >= 0);
}

static void report_on(struct ledger *l, uint64_t device, uint64_t at, int64_t size,
		      uint64_t allocated, uint64_t reserved)
{
	struct made_call made;
	struct ct_call *c = make_call(&made, REPORT, CT_CALL, 0, 0, at, (uint64_t)size, allocated,
				      reserved, device);

	c->h.pid = c->h.tid = proc.pid;
	c->h.flags |= CT_F_NO_RETURN;
	c->h.start_ns = c->h.end_ns = ++now_ns;
	give(l, c, NULL);
}

static void report(struct ledger *l, uint64_t at, int64_t size, uint64_t allocated,
		   uint64_t reserved)
{
	report_on(l, CUDA, at, size, allocated, reserved);
}

static void no_memory(struct ledger *l, int64_t size, uint64_t allocated, uint64_t reserved)
{
	struct made_call made;
	struct ct_call *c = make_call(&made, NO_MEMORY, CT_CALL, 0, 0, (uint64_t)size, allocated,
				      reserved, CUDA);

	c->h.pid = c->h.tid = proc.pid;
	c->h.start_ns = c->h.end_ns = ++now_ns;
	give(l, c, NULL);
}

/* A stack whose innermost frame is in PyTorch's allocator. */
static const struct stack *torch_stack(void)
{
	static const struct stack_frame frame = { .kind = CT_FRAME_NATIVE,
						  .function = "malloc",
						  .object = "/lib/libc10_cuda.so" };
	static const struct stack_frame *const frames[] = { &frame };
	static const struct stack stack = { .id = 9, .nframes = 1, .frames = frames };

	return &stack;
}

static void segment(struct ledger *l, uint64_t at, uint64_t bytes, const struct stack *stack)
{
	struct made_call made;
	struct ct_call *c;

	make_mem(0x100, &at, sizeof(at));
	c = make_call(&made, "cudaMalloc", CT_CALL, 0, 0, (uint64_t)0x100, bytes);
	c->h.pid = c->h.tid = proc.pid;
	c->h.start_ns = c->h.end_ns = ++now_ns;
	give(l, c, stack);
}

static void segment_freed(struct ledger *l, uint64_t at)
{
	struct made_call made;
	struct ct_call *c = make_call(&made, "cudaFree", CT_CALL, 0, 0, at);

	c->h.pid = c->h.tid = proc.pid;
	c->h.start_ns = c->h.end_ns = ++now_ns;
	give(l, c, NULL);
}

static void test_sums(void)
{
	struct ledger *l = begin(0);
	const struct blocks_total *t;
	const struct blocks_row **rows;
	uint64_t n;
	uint32_t nrows;

	report(l, 0x1000, 512, 512, 4096);
	report(l, 0x2000, 1024, 1536, 4096);
	report(l, 0x1000, -512, 1024, 4096);
	report(l, 0x3000, 256, 1280, 8192);
	CHECK_EQ(1, l->blocks.totals.n);
	t = blocks_total(&l->blocks, 0);
	CHECK_EQ(1280, t->allocated);
	CHECK_EQ(1536, t->peak);
	CHECK_EQ(1002, t->peak_ns);
	CHECK_EQ(8192, t->reserved);
	CHECK_EQ(1280, t->bytes);
	CHECK_EQ(2, t->n);
	CHECK_EQ(3, t->taken_n);
	CHECK_EQ(1, t->freed_n);
	CHECK_EQ(0, t->gaps_n + t->odd_n + t->unseen_n + t->unfreed_n + t->before);
	/* the peak is what was held then, not what was held later */
	rows = blocks_rows(&l->blocks, 0, BLOCKS_BY_STACK, &nrows);
	CHECK_EQ(1, nrows);
	CHECK_EQ(1536, blocks_at_peak(&l->blocks, rows[0], &n));
	CHECK_EQ(2, n);
	CHECK_EQ(1280, rows[0]->bytes);
	free(rows);
	/* they are no memory of CUDA's */
	CHECK_EQ(0, ledger_all(l, ACCOUNT_DEVICE)->taken);
	/* a new peak, and nothing changes after it */
	report(l, 0x4000, 512, 1792, 8192);
	rows = blocks_rows(&l->blocks, 0, BLOCKS_BY_STACK, &nrows);
	CHECK_EQ(1792, blocks_at_peak(&l->blocks, rows[0], &n));
	CHECK_EQ(3, n);
	free(rows);
	ledger_close(l);
}

static void test_devices(void)
{
	struct ledger *l = begin(0);

	report_on(l, CUDA | 3 << 8, 0x1000, 512, 512, 4096);
	report_on(l, 0 | 0xff << 8, 0x1000, 512, 512, 0); /* the CPU's allocator */
	report_on(l, CUDA, 0x1000, 1024, 1024, 2048);
	CHECK_EQ(2, l->blocks.totals.n);
	CHECK_EQ(3, blocks_total(&l->blocks, 0)->device);
	CHECK_EQ(512, blocks_total(&l->blocks, 0)->bytes);
	CHECK_EQ(0, blocks_total(&l->blocks, 1)->device);
	CHECK_EQ(1024, blocks_total(&l->blocks, 1)->bytes);
	ledger_close(l);
}

/* After a late attach, and where reports were lost. */
static void test_missing(void)
{
	struct ledger *l = begin(0);
	const struct blocks_total *t;

	report(l, 0x1000, 512, 10512, 20000);
	t = blocks_total(&l->blocks, 0);
	CHECK_EQ(10000, t->before);
	report(l, 0x2000, -1000, 9512, 20000); /* from before */
	CHECK_EQ(1, t->unseen_n);
	CHECK_EQ(1000, t->unseen_bytes);
	CHECK_EQ(0, t->gaps_n);
	report(l, 0x3000, 512, 11024, 20000); /* 1000 bytes in between were not seen */
	CHECK_EQ(1, t->gaps_n);
	report(l, 0x1000, 512, 11536, 20000); /* it was taken back in between */
	CHECK_EQ(1, t->unfreed_n);
	CHECK_EQ(1, t->gaps_n);
	CHECK_EQ(1024, t->bytes);
	CHECK_EQ(2, t->n);
	ledger_close(l);
}

static void test_hostile(void)
{
	static const struct {
		uint64_t at;
		int64_t size;
		uint64_t allocated, reserved;
	} odd[] = {
		{ 0x1000, INT64_MIN, 0, 0 },	{ 0x1000, INT64_MAX, UINT64_MAX, UINT64_MAX },
		{ 0x1000, -INT64_MAX, 0, 0 },	{ 0x1000, 512, 511, 512 }, /* more than all */
		{ 0x1000, 512, 1ULL << 60, 0 }, { 0x1000, 512, 512, 1ULL << 60 },
		{ 0, 512, 512, 512 },
	};
	struct ledger *l = begin(0);
	const struct blocks_total *t;

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		report(l, odd[i].at, odd[i].size, odd[i].allocated, odd[i].reserved);
		CHECK_EQ(i + 1, blocks_total(&l->blocks, 0)->odd_n);
	}
	t = blocks_total(&l->blocks, 0);
	CHECK_EQ(0, t->n + t->peak + t->taken_n);
	no_memory(l, -1, 0, 0);
	no_memory(l, 1, UINT64_MAX, 0);
	CHECK_EQ(ARRAY_LEN(odd) + 2, t->odd_n);
	CHECK_EQ(0, l->blocks.nooms);
	/* of another size than it was given out with */
	report(l, 0x1000, 1024, 1024, 2048);
	report(l, 0x1000, -512, 512, 2048);
	CHECK_EQ(ARRAY_LEN(odd) + 3, t->odd_n);
	CHECK_EQ(0, t->bytes + t->n);
	/* at the end of all addresses */
	report(l, UINT64_MAX, 512, 1024, 2048);
	CHECK_EQ(512, t->bytes);
	CHECK_EQ(1, blocks_fragments(&l->blocks, 0, &l->account.live).outside);
	ledger_close(l);
}

static void test_bounds(void)
{
	struct ledger *l = begin(100);
	const struct blocks_total *t;

	for (uint64_t i = 1; i <= 150; i++)
		report(l, i << 12, 512, i * 512, 1 << 20);
	t = blocks_total(&l->blocks, 0);
	CHECK_EQ(100, t->n);
	CHECK_EQ(50, t->no_room);
	CHECK_EQ(150 * 512, t->allocated);
	CHECK_EQ(0, t->gaps_n);
	for (uint64_t device = 0; device < 256; device++)
		report_on(l, CUDA | device << 8, 0x1000, 0, 0, 0);
	CHECK_EQ(256, l->blocks.totals.n);
	for (int i = 0; i < 2 * BLOCKS_OOMS; i++)
		no_memory(l, 4096, 0, 0);
	CHECK_EQ(BLOCKS_OOMS, l->blocks.nooms);
	CHECK_EQ(2 * BLOCKS_OOMS, blocks_total(&l->blocks, 0)->ooms);
	ledger_close(l);
}

static void test_fragments(void)
{
	struct ledger *l = begin(0);
	const struct stack *stack = torch_stack();
	struct blocks_frag f;

	segment(l, 0x10000000, 8 * MIB, stack);
	segment(l, 0x20000000, 4 * MIB, stack); /* of the allocator, without a block */
	segment(l, 0x30000000, 64 * MIB, NULL); /* of someone else */
	report(l, 0x10000000 + 1 * MIB, MIB, 1 * MIB, 12 * MIB);
	report(l, 0x10000000 + 2 * MIB, MIB, 2 * MIB, 12 * MIB);
	report(l, 0x10000000 + 6 * MIB, MIB, 3 * MIB, 12 * MIB);
	report(l, 0x50000000, MIB, 4 * MIB, 12 * MIB); /* its segment was not seen */
	f = blocks_fragments(&l->blocks, 0, &l->account.live);
	CHECK_EQ(1, f.segments);
	CHECK_EQ(8 * MIB, f.bytes);
	CHECK_EQ(3 * MIB, f.used);
	CHECK_EQ(3, f.holes);
	CHECK_EQ(5 * MIB, f.holes_bytes);
	CHECK_EQ(1, f.empty);
	CHECK_EQ(4 * MIB, f.empty_bytes);
	CHECK_EQ(4 * MIB, f.largest);
	CHECK_EQ(1, f.outside);
	CHECK_EQ(MIB, f.outside_bytes);
	/* empty_cache(): no report says it */
	segment_freed(l, 0x20000000);
	CHECK_EQ(8 * MIB, blocks_total(&l->blocks, 0)->reserved);
	segment_freed(l, 0x30000000);
	CHECK_EQ(8 * MIB, blocks_total(&l->blocks, 0)->reserved);
	/* nor what it takes and gives back when it finds no room */
	segment(l, 0x20000000, 2 * MIB, stack);
	CHECK_EQ(10 * MIB, blocks_total(&l->blocks, 0)->reserved);
	segment_freed(l, 0x20000000);
	CHECK_EQ(8 * MIB, blocks_total(&l->blocks, 0)->reserved);
	no_memory(l, 6 * MIB, 4 * MIB, 8 * MIB);
	CHECK_EQ(1, l->blocks.nooms);
	CHECK_EQ(3 * MIB, l->blocks.ooms[0].frag.largest);
	CHECK_EQ(6 * MIB, l->blocks.ooms[0].asked);
	CHECK_EQ(1, l->blocks.ooms[0].holders.n);
	CHECK_EQ(4 * MIB, l->blocks.ooms[0].holders.most[0].bytes);
	ledger_close(l);
}

/* At the process's end its segments are gone; what it had stays to be shown. */
static void test_end(void)
{
	struct ledger *l = begin(0);
	struct ct_exit end = { .h = { .size = sizeof(end), .kind = CT_EXIT, .pid = 7, .tid = 7 } };
	struct event ev = { .rec = &end.h, .proc = &proc };

	segment(l, 0x10000000, 8 * MIB, torch_stack());
	report(l, 0x10000000, MIB, MIB, 8 * MIB);
	CHECK(ledger_event(l, &ev) >= 0);
	CHECK_EQ(0, l->blocks.live.n);
	CHECK_EQ(0, ledger_all(l, ACCOUNT_DEVICE)->bytes);
	CHECK_EQ(7 * MIB, blocks_fragments(&l->blocks, 0, &l->account.live).largest);
	/* another process with its number */
	report(l, 0x10000000, MIB, MIB, 8 * MIB);
	CHECK_EQ(2, l->blocks.totals.n);
	CHECK_EQ(MIB, blocks_total(&l->blocks, 0)->allocated);
	ledger_close(l);
}

int main(void)
{
	RUN(test_sums);
	RUN(test_devices);
	RUN(test_missing);
	RUN(test_hostile);
	RUN(test_bounds);
	RUN(test_fragments);
	RUN(test_end);
	return unit_end();
}
