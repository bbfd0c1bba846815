/* SPDX-License-Identifier: BSD-2-Clause */
/* test_mem.c - the book of memory: what calls do, the table of allocations, sums, leaks, faults,
 * outputs, bounds. */
#include <malloc.h>
#include <unistd.h>

#include "../../user/mem/mem_options.h"
#include "../../user/mem/curve.h"
#include "../../user/mem/ledger_rows.h"
#include "../../user/mem/mem_print.h"
#include "../../user/util/text.h"
#include "make_call.h"
#include "make_device.h"
#include "make_play.h"
#include "holes_made.h"
#include "unit.h"

/* Arguments that are not given are 0. */
#define CALL(...) make_call(__VA_ARGS__, U(0), U(0), U(0), U(0), U(0), U(0), U(0), U(0))

/* ---- rows ---- */

/* Which functions take or free what: a golden list, so that no row changes unseen. */
static void test_rows(void)
{
	static const char *const spaces[] = { "device", "host",	  "registered", "array",
					      "ipc",	"handle", "reserved",	"mapped" };
	uint64_t set[CT_MAX_FUNCS / 64] = { 0 };
	struct text t = { 0 };

	api_remembering(set);
	for (int i = 0; i < api_nfuncs; i++) {
		const struct api_func *f = &api_funcs[i];

		if (!(set[i / 64] >> (i % 64) & 1))
			continue;
		text_str(&t, f->name);
		if (f->flags & API_FREES_ALL)
			text_str(&t, " frees what a context has");
		for (int a = 0; a < f->nargs; a++) {
			if (f->args[a].role == API_ROLE_ALLOCATES) {
				text_str(&t, " takes ");
				text_str(&t,
					 api_memory_name((enum api_memory_kind)f->args[a].memory));
				text_str(&t, " in ");
			} else if (f->args[a].role == API_ROLE_FREES) {
				text_str(&t, " frees ");
			} else if (f->args[a].role == API_ROLE_RETAINS) {
				text_str(&t, " retains ");
			} else {
				continue;
			}
			text_str(&t, spaces[f->args[a].space]);
		}
		text_str(&t, "\n");
	}
	text_mem(&t, "", 1);
	unit_golden("mem_rows.txt", t.s);
	text_free(&t);
}

static struct api_memory of(struct ct_call *c)
{
	struct api_memory m = { 0 };

	if (!c) {
		CHECK(!"the table has the function");
		return m;
	}
	CHECK(!record_check(c, c->h.size));
	CHECK(api_memory(c, API_ARCH_HERE, &m) == m.what);
	return m;
}

#define ADDRESS 0x7f0000001000ULL
#define OUT 0x1000ULL

static void test_calls(void)
{
	static const uint64_t address = ADDRESS, pitch = 512;
	static const uint64_t pitched[4] = { ADDRESS, 512, 100, 10 };
	static const int32_t texel[5] = { 32, 32, 0, 0, 2 };
	uint32_t prop[8] = { 1, 0, 1, 3 };
	uint64_t node[15] = { 0 };
	struct made_call m;
	struct api_memory a;

	make_mem(OUT, &address, 8);
	make_mem(0x2000, &pitch, 8);
	make_mem(0x3000, pitched, sizeof(pitched));
	make_mem(0x4000, texel, sizeof(texel));
	make_mem(0x5000, prop, sizeof(prop));
	make_mem(0x6000, node, sizeof(node));
	a = of(CALL(&m, "cudaMalloc", CT_CALL, 0, 0, U(OUT), U(4096)));
	CHECK_EQ(API_MEMORY_TAKEN, a.what);
	CHECK_EQ(API_MEM_DEVICE, a.kind);
	CHECK_EQ(ADDRESS, a.address);
	CHECK_EQ(4096, a.bytes);
	CHECK(a.device == CT_UNKNOWN);
	a = of(CALL(&m, "cudaMalloc", CT_CALL, 0, 2, U(OUT), U(4096)));
	CHECK_EQ(API_MEMORY_NOT_TAKEN, a.what);
	CHECK_EQ(4096, a.bytes);
	CHECK(!a.address);
	a = of(CALL(&m, "cudaMalloc", CT_CALL, CT_F_UNFINISHED, 0, U(OUT), U(4096)));
	CHECK(a.what == API_MEMORY_NONE);
	a = of(CALL(&m, "cudaFree", CT_CALL, 0, 0, U(ADDRESS)));
	CHECK_EQ(API_MEMORY_FREED, a.what);
	CHECK_EQ(API_SPACE_DEVICE, a.space);
	CHECK_EQ(ADDRESS, a.address);
	a = of(CALL(&m, "cudaFree", CT_CALL, 0, 1, U(ADDRESS)));
	CHECK(a.what == API_MEMORY_NOT_FREED && a.address == ADDRESS);
	a = of(CALL(&m, "cudaFree", CT_CALL, 0, 0, U(0)));
	CHECK(a.what == API_MEMORY_NONE);
	/* rows of 100 bytes, 512 from one to the next */
	a = of(CALL(&m, "cudaMallocPitch", CT_CALL, 0, 0, U(OUT), U(0x2000), U(100), U(10)));
	CHECK(a.what == API_MEMORY_TAKEN && a.bytes == 5120);
	a = of(CALL(&m, "cudaMalloc3D", CT_CALL, 0, 0, U(0x3000), U(100), U(10), U(4)));
	CHECK_EQ(API_MEMORY_TAKEN, a.what);
	CHECK_EQ(ADDRESS, a.address);
	CHECK_EQ(512 * 10 * 4, a.bytes);
	a = of(CALL(&m, "cudaMallocArray", CT_CALL, 0, 0, U(OUT), U(0x4000), U(16), U(8), U(0)));
	CHECK_EQ(API_MEMORY_TAKEN, a.what);
	CHECK_EQ(API_MEM_ARRAY, a.kind);
	CHECK_EQ(8 * 16 * 8, a.bytes);
	a = of(CALL(&m, "cudaMallocManaged", CT_CALL, 0, 0, U(OUT), U(100), U(1)));
	CHECK(a.kind == API_MEM_MANAGED && a.space == API_SPACE_DEVICE);
	a = of(CALL(&m, "cudaHostRegister", CT_CALL, 0, 0, U(0x9000), U(8192), U(0)));
	CHECK_EQ(API_MEMORY_TAKEN, a.what);
	CHECK_EQ(API_MEM_REGISTERED, a.kind);
	CHECK_EQ(0x9000, a.address);
	CHECK_EQ(8192, a.bytes);
	/* on device 3, then on the host */
	a = of(CALL(&m, "cuMemCreate", CT_CALL, 0, 0, U(OUT), U(2 << 20), U(0x5000), U(0)));
	CHECK_EQ(API_MEMORY_TAKEN, a.what);
	CHECK_EQ(API_MEM_PHYSICAL, a.kind);
	CHECK_EQ(API_SPACE_HANDLE, a.space);
	CHECK_EQ(3, a.device);
	CHECK_EQ(2 << 20, a.bytes);
	prop[2] = 3;
	a = of(CALL(&m, "cuMemCreate", CT_CALL, 0, 0, U(OUT), U(2 << 20), U(0x5000), U(0)));
	CHECK_EQ(API_MEM_HOST, a.kind);
	CHECK_EQ(API_SPACE_HANDLE, a.space);
	CHECK_EQ(CT_UNKNOWN, a.device);
	a = of(CALL(&m, "cuMemMap", CT_CALL, 0, 0, U(0xa000), U(4096), U(0), U(0xbeef), U(0)));
	CHECK_EQ(API_MEMORY_TAKEN, a.what);
	CHECK_EQ(API_MEM_MAPPED, a.kind);
	CHECK_EQ(0xa000, a.address);
	CHECK_EQ(0xbeef, a.of);
	CHECK_EQ(4096, a.bytes);
	a = of(CALL(&m, "cuMemUnmap", CT_CALL, 0, 0, U(0xa000), U(4096)));
	CHECK_EQ(API_MEMORY_FREED, a.what);
	CHECK_EQ(API_SPACE_MAPPED, a.space);
	CHECK_EQ(4096, a.bytes);
	a = of(CALL(&m, "cuMemRetainAllocationHandle", CT_CALL, 0, 0, U(OUT), U(0xa000)));
	CHECK_EQ(API_MEMORY_RETAINED, a.what);
	CHECK_EQ(ADDRESS, a.address);
	CHECK_EQ(0xa000, a.of);
	node[1] = 1 | 2ULL << 32; /* location: device 2 */
	node[13] = 12345;
	node[14] = ADDRESS;
	a = of(CALL(&m, "cudaGraphAddMemAllocNode", CT_CALL, 0, 0, U(0x7000), U(1), U(0), U(0),
		    U(0x6000)));
	CHECK_EQ(API_MEMORY_TAKEN, a.what);
	CHECK_EQ(API_MEM_GRAPH, a.kind);
	CHECK_EQ(ADDRESS, a.address);
	CHECK_EQ(12345, a.bytes);
	CHECK_EQ(2, a.device);
	a = of(CALL(&m, "cudaDeviceReset", CT_CALL, 0, 0));
	CHECK(a.what == API_MEMORY_ENDED && !a.of);
	a = of(CALL(&m, "cuCtxDestroy_v2", CT_CALL, 0, 0, U(0xc0)));
	CHECK(a.what == API_MEMORY_ENDED && a.of == 0xc0);
	a = of(CALL(&m, "cudaLaunchKernel", CT_CALL, 0, 0));
	CHECK(a.what == API_MEMORY_NONE);
	make_nmemory = 0;
}

/* ---- the table ---- */

static void test_live_random(void)
{
	enum { KEYS = 4096 };
	static struct {
		bool there;
		uint64_t bytes;
	} model[KEYS];
	unsigned int seed = 1;
	struct live l;
	uint32_t n = 0, seen = 0;
	struct live_entry *e;

	live_init(&l, 3000);
	for (int i = 0; i < 300000; i++) {
		uint32_t k = (uint32_t)rand_r(&seed) % KEYS;
		uint32_t process = k % 3;
		uint8_t space = k % 5;
		uint64_t address = (uint64_t)(k / 15) * 512;

		/* keys that differ in one part alone */
		if (k % 15 >= 15)
			continue;
		process = k % 3, space = (uint8_t)(k / 3 % 5);
		e = live_find(&l, process, space, address);
		CHECK((e != NULL) == model[k].there);
		if (e && e->bytes != model[k].bytes)
			CHECK(!"the entry is another one");
		if (!e) {
			e = live_add(&l, process, space, address);
			CHECK((e != NULL) == (n < 3000));
			if (!e)
				continue;
			e->bytes = model[k].bytes = (uint64_t)rand_r(&seed);
			model[k].there = true;
			n++;
		} else if (rand_r(&seed) % 2) {
			live_remove(&l, e);
			model[k].there = false;
			n--;
		}
		if (l.all.n != n)
			CHECK(!"the count is right");
	}
	/* remove half while walking: every entry is met */
	for (uint32_t at = 0; (e = live_next(&l, &at));) {
		if (e->refs) {
			continue;
		}
		e->refs = 1;
		seen++;
		if (e->bytes % 2) {
			live_remove(&l, e);
			at--;
		}
	}
	CHECK(seen == n);
	for (uint32_t at = 0; (e = live_next(&l, &at));)
		if (e->bytes % 2)
			CHECK(!"removed");
	live_free(&l);
}

static void test_live_bytes(void)
{
	struct live l;
	bool good = true;

	live_init(&l, 0);
	for (uint64_t i = 1; i <= 1000000; i++)
		good &= live_add(&l, 1, 0, i * 512) != NULL;
	CHECK(good && l.all.n == 1000000);
	/* the old table and the new one while it grew for the last time */
	CHECK(live_bytes(&l) + live_bytes(&l) / 2 <= 200u << 20);
	while (live_add(&l, 2, 0, (uint64_t)l.all.n * 512 + 1))
		;
	CHECK(l.all.n == LIVE_MAX && live_bytes(&l) <= 200u << 20);
	live_free(&l);
}

/* ---- the ledger ---- */

struct bench {
	struct ledger *l;
	struct process proc;
	uint64_t out, now;
	uint32_t device;
	uint64_t context;
	const struct stack *stack;
	struct made_call m;
};

static struct bench bench_open(const struct ledger_opts *opts)
{
	struct bench b = { .l = ledger_open(opts),
			   .proc = { .pid = 7, .shown_pid = 7, .comm = "app" },
			   .now = 1000,
			   .device = CT_UNKNOWN };

	CHECK(b.l != NULL);
	return b;
}

static int give(struct bench *b, const struct ct_hdr *h)
{
	struct event ev = { .rec = h,
			    .proc = &b->proc,
			    .device = b->device,
			    .context = CT_UNKNOWN,
			    .stream = CT_UNKNOWN,
			    .context_handle = b->context,
			    .stack = b->stack };

	CHECK(!record_check(h, h->size));
	return ledger_event(b->l, &ev);
}

static void give_call(struct bench *b, struct ct_call *c)
{
	if (!c) {
		CHECK(!"the table has the function");
		return;
	}
	c->h.pid = b->proc.pid;
	c->h.start_ns = ++b->now;
	c->h.end_ns = ++b->now;
	give(b, &c->h);
}

/* What a call writes through the pointer OUT. */
static void out_is(struct bench *b, uint64_t v)
{
	b->out = v;
	make_nmemory = 0;
	make_mem(OUT, &b->out, 8);
}

static void takes(struct bench *b, const char *name, uint64_t address, uint64_t bytes)
{
	out_is(b, address);
	give_call(b, CALL(&b->m, name, CT_CALL, 0, 0, U(OUT), U(bytes), U(0), U(0)));
}

static void frees(struct bench *b, const char *name, uint64_t address, int ret)
{
	give_call(b, CALL(&b->m, name, CT_CALL, 0, ret, U(address), U(0)));
}

static void process_is(struct bench *b, int kind, uint32_t pid, uint64_t start)
{
	struct ct_process r = { .h = { .size = sizeof(r),
				       .kind = (uint16_t)kind,
				       .pid = pid,
				       .tid = pid,
				       .start_ns = ++b->now,
				       .end_ns = b->now },
				.start_boottime_ns = start };

	b->proc.pid = b->proc.shown_pid = pid;
	b->proc.start_boottime_ns = start;
	give(b, &r.h);
}

static void exits(struct bench *b, uint32_t pid)
{
	struct ct_exit r = { .h = { .size = sizeof(r),
				    .kind = CT_EXIT,
				    .pid = pid,
				    .tid = pid,
				    .start_ns = ++b->now,
				    .end_ns = b->now } };

	give(b, &r.h);
}

static const struct account_process *the(const struct bench *b)
{
	static const struct account_process none;
	uint32_t at = account_process_find(&b->l->account, b->proc.pid);

	return at == UINT32_MAX ? &none : &b->l->account.processes[at];
}

#define HELD(b) (ledger_all((b)->l, ACCOUNT_DEVICE)->bytes)
#define HELD_N(b) (ledger_all((b)->l, ACCOUNT_DEVICE)->n)
#define PEAK(b) (ledger_all((b)->l, ACCOUNT_DEVICE)->peak)

static void bench_close(struct bench *b)
{
	ledger_close(b->l);
	make_nmemory = 0;
}

static void test_simple(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ 0 });

	takes(&b, "cudaMalloc", 0x1000, 100);
	takes(&b, "cudaMallocAsync", 0x2000, 50);
	takes(&b, "cudaMallocHost", 0x3000, 7);
	CHECK_EQ(150, HELD(&b));
	CHECK_EQ(2, HELD_N(&b));
	CHECK_EQ(150, PEAK(&b));
	CHECK(ledger_all(b.l, ACCOUNT_HOST)->bytes == 7);
	frees(&b, "cudaFree", 0x1000, 0);
	frees(&b, "cudaFree", 0x2000, 0);
	frees(&b, "cudaFreeHost", 0x3000, 0);
	CHECK(!HELD(&b));
	CHECK(!HELD_N(&b));
	CHECK_EQ(150, PEAK(&b));
	CHECK(!ledger_all(b.l, ACCOUNT_HOST)->bytes);
	/* the same number in another space is something else */
	takes(&b, "cudaMalloc", 0x4000, 10);
	takes(&b, "cudaMallocHost", 0x4000, 20);
	frees(&b, "cudaFreeHost", 0x4000, 0);
	CHECK(HELD(&b) == 10 && !ledger_all(b.l, ACCOUNT_HOST)->bytes);
	/* another process's, too */
	b.proc.pid = 8;
	frees(&b, "cudaFree", 0x4000, 0);
	CHECK(HELD(&b) == 10 && the(&b)->unseen_n == 1);
	b.proc.pid = 7;
	exits(&b, 7);
	CHECK(!HELD(&b));
	CHECK_EQ(10, b.l->account.processes[0].leaked);
	CHECK_EQ(1, b.l->account.processes[0].leaked_n);
	CHECK(b.l->account.processes[0].ended);
	bench_close(&b);
}

/* A free may return after the allocation that was given its address. */
static void test_order(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ 0 });
	struct ct_call *c;

	takes(&b, "cudaMalloc", 0x1000, 100);
	out_is(&b, 0x1000);
	c = CALL(&b.m, "cudaMalloc", CT_CALL, 0, 0, U(OUT), U(200));
	c->h.pid = 7;
	c->h.start_ns = b.now + 20;
	c->h.end_ns = b.now + 30;
	give(&b, &c->h);
	CHECK_EQ(200, HELD(&b));
	CHECK_EQ(1, HELD_N(&b));
	CHECK_EQ(1, the(&b)->unfreed_n);
	c = CALL(&b.m, "cudaFree", CT_CALL, 0, 0, U(0x1000));
	c->h.pid = 7;
	c->h.start_ns = b.now + 10;
	c->h.end_ns = b.now + 40;
	give(&b, &c->h);
	CHECK_EQ(200, HELD(&b));
	CHECK_EQ(1, HELD_N(&b));
	CHECK_EQ(0, the(&b)->unfreed_n);
	b.now += 50;
	frees(&b, "cudaFree", 0x1000, 0);
	CHECK(!HELD(&b) && !the(&b)->unseen_n);
	bench_close(&b);
}

static void test_faults(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ 0 });

	process_is(&b, CT_EXEC, 7, 5);
	takes(&b, "cudaMalloc", 0x1000, 100);
	frees(&b, "cudaFree", 0x1000, 0);
	frees(&b, "cudaFree", 0x1000, 1);
	if (CHECK_EQ(1, the(&b)->doubles_n)) {
		if (CHECK_EQ(1, b.l->nfaults)) {
			CHECK_EQ(LEDGER_DOUBLE, b.l->faults[0].what);
			CHECK(b.l->faults[0].taken_site);
		}
	}
	frees(&b, "cudaFree", 0x1000, 1);
	if (CHECK_EQ(2, the(&b)->doubles_n)) {
		if (CHECK_EQ(1, b.l->nfaults))
			CHECK_EQ(2, b.l->faults[0].n);
	}
	frees(&b, "cudaFree", 0x5000, 1);
	CHECK(the(&b)->invalid_n == 1 && b.l->faults[1].what == LEDGER_INVALID);
	takes(&b, "cudaMallocHost", 0x2000, 100);
	frees(&b, "cudaFree", 0x2000, 1);
	if (CHECK_EQ(1, the(&b)->wrong_n)) {
		CHECK_EQ(LEDGER_WRONG, b.l->faults[2].what);
		CHECK_EQ(API_MEM_HOST, b.l->faults[2].kind);
	}
	frees(&b, "cudaFree", 0x7000, 0);
	CHECK(the(&b)->unseen_n == 1 && b.l->faults[3].what == LEDGER_UNSEEN);
	/* an address that is given out again is no longer freed */
	takes(&b, "cudaMalloc", 0x1000, 100);
	frees(&b, "cudaFree", 0x1000, 700);
	CHECK_EQ(1, the(&b)->failed_frees_n);
	CHECK_EQ(2, the(&b)->doubles_n);
	CHECK_EQ(100, HELD(&b));
	/* while everything is being shut down a free comes too late, and is no leak */
	frees(&b, "cudaFree", 0x1000, 4);
	CHECK(!HELD(&b));
	exits(&b, 7);
	CHECK(b.l->account.processes[0].leaked == 100 &&
	      b.l->account.processes[0].leaked_n == 1); /* the host's */
	bench_close(&b);
}

static struct ledger_oom last_oom;
static int nooms;

static void on_oom(void *ctx, const struct ledger_oom *o)
{
	(void)ctx;
	last_oom = *o;
	nooms++;
}

static void test_oom(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ .oom = on_oom });
	static const char *const names[] = {
		"cudaMalloc",	     "cudaMallocManaged", "cudaMallocAsync",	    "cuMemAlloc_v2",
		"cuMemAllocManaged", "cuMemAllocAsync",	  "cudaMallocFromPoolAsync"
	};

	for (uint64_t i = 0; i < ARRAY_LEN(names); i++)
		takes(&b, names[i], 0x1000 * (i + 1), 100 * (i + 1));
	give_call(&b, CALL(&b.m, "cudaMalloc", CT_CALL, 0, 2, U(OUT), U(1) << 50));
	CHECK_EQ(1, nooms);
	CHECK_EQ(1ULL << 50, last_oom.asked);
	CHECK_EQ(2800, last_oom.held);
	CHECK_EQ(7, last_oom.held_n);
	if (CHECK_EQ(HOLDERS_MAX, last_oom.holders.n)) {
		CHECK_EQ(700, last_oom.holders.most[0].bytes);
		CHECK_EQ(300, last_oom.holders.most[4].bytes);
	}
	give_call(&b, CALL(&b.m, "cudaMalloc", CT_CALL, 0, 1, U(OUT), U(1) << 50));
	CHECK(nooms == 1 && the(&b)->failed_n == 1);
	for (int i = 0; i < 100; i++)
		give_call(&b, CALL(&b.m, "cudaMalloc", CT_CALL, 0, 2, U(OUT), U(1) << 50));
	CHECK(nooms == LEDGER_OOMS && the(&b)->oom_n == 101);
	bench_close(&b);
}

/* Physical memory lives as long as a handle or a mapping does; handles' numbers come again. */
static void test_virtual(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ 0 });
	struct made_call m;

	takes(&b, "cuMemAddressReserve", 0x100000, 1 << 20);
	CHECK(!HELD(&b));
	takes(&b, "cuMemCreate", 0xaa, 4096);
	CHECK(HELD(&b) == 4096);
	give_call(&b,
		  CALL(&m, "cuMemMap", CT_CALL, 0, 0, U(0x100000), U(4096), U(0), U(0xaa), U(0)));
	give_call(&b, CALL(&m, "cuMemRelease", CT_CALL, 0, 0, U(0xaa)));
	CHECK(HELD(&b) == 4096);
	takes(&b, "cuMemCreate", 0xaa, 8192);
	CHECK(HELD(&b) == 12288 && !the(&b)->unfreed_n);
	give_call(&b,
		  CALL(&m, "cuMemMap", CT_CALL, 0, 0, U(0x101000), U(8192), U(0), U(0xaa), U(0)));
	give_call(&b, CALL(&m, "cuMemUnmap", CT_CALL, 0, 0, U(0x100000), U(4096)));
	CHECK(HELD(&b) == 8192);
	out_is(&b, 0xaa);
	give_call(&b, CALL(&m, "cuMemRetainAllocationHandle", CT_CALL, 0, 0, U(OUT), U(0x101000)));
	give_call(&b, CALL(&m, "cuMemRelease", CT_CALL, 0, 0, U(0xaa)));
	give_call(&b, CALL(&m, "cuMemUnmap", CT_CALL, 0, 0, U(0x101000), U(8192)));
	CHECK(HELD(&b) == 8192);
	give_call(&b, CALL(&m, "cuMemRelease", CT_CALL, 0, 0, U(0xaa)));
	CHECK(!HELD(&b) && PEAK(&b) == 12288);
	/* one unmap for several mappings */
	takes(&b, "cuMemCreate", 0xbb, 4096);
	for (uint64_t i = 0; i < 4; i++)
		give_call(&b, CALL(&m, "cuMemMap", CT_CALL, 0, 0, U(0x100000 + i * 4096), U(4096),
				   U(0), U(0xbb), U(0)));
	give_call(&b, CALL(&m, "cuMemRelease", CT_CALL, 0, 0, U(0xbb)));
	CHECK(HELD(&b) == 4096);
	give_call(&b, CALL(&m, "cuMemUnmap", CT_CALL, 0, 0, U(0x100000), U(4 * 4096)));
	CHECK(!HELD(&b));
	CHECK_EQ(1, b.l->account.live.all.n);
	CHECK_EQ(0, the(&b)->unseen_n);
	give_call(&b, CALL(&m, "cuMemUnmap", CT_CALL, 0, 0, U(0x100000), U(4096)));
	CHECK(the(&b)->unseen_n == 1);
	/* what is not freed is leaked once, not by handle and mapping too; addresses are no leak */
	takes(&b, "cuMemCreate", 0xcc, 4096);
	give_call(&b,
		  CALL(&m, "cuMemMap", CT_CALL, 0, 0, U(0x100000), U(4096), U(0), U(0xcc), U(0)));
	exits(&b, 7);
	CHECK_EQ(4096, b.l->account.processes[0].leaked);
	CHECK_EQ(1, b.l->account.processes[0].leaked_n);
	CHECK_EQ(0, b.l->account.live.all.n);
	bench_close(&b);
}

static void test_ends(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ 0 });
	struct ct_fork f = { .h = { .size = sizeof(f),
				    .kind = CT_FORK,
				    .pid = 7,
				    .tid = 7,
				    .start_ns = 3,
				    .end_ns = 3 },
			     .child_pid = 9 };

	/* a device's reset takes what is on it, a context's end what is in it */
	b.device = 0;
	takes(&b, "cudaMalloc", 0x1000, 1);
	b.device = 1;
	takes(&b, "cudaMalloc", 0x2000, 10);
	b.context = 0xc0;
	takes(&b, "cuMemAlloc_v2", 0x3000, 100);
	b.context = 0;
	takes(&b, "cuMemCreate", 0xaa, 1000);
	b.device = 0;
	give_call(&b, CALL(&b.m, "cudaDeviceReset", CT_CALL, 0, 0));
	CHECK(HELD(&b) == 1110 && the(&b)->leaked == 1);
	give_call(&b, CALL(&b.m, "cuCtxDestroy_v2", CT_CALL, 0, 0, U(0xc0)));
	CHECK(HELD(&b) == 1010 && the(&b)->leaked == 101);
	b.device = 1;
	give_call(&b, CALL(&b.m, "cudaDeviceReset", CT_CALL, 0, 999));
	CHECK(HELD(&b) == 1010);
	/* the device that a reset names, whichever is current */
	b.device = 2;
	takes(&b, "cudaMalloc", 0x9000, 7);
	b.device = 0;
	give_call(&b, CALL(&b.m, "cuDevicePrimaryCtxReset_v2", CT_CALL, 0, 0, U(2)));
	CHECK(HELD(&b) == 1010 && the(&b)->leaked == 108);
	/* another program in the same process */
	process_is(&b, CT_EXEC, 7, 5);
	CHECK(!HELD(&b));
	CHECK(b.l->account.processes[0].ended);
	CHECK_EQ(1118, b.l->account.processes[0].leaked);
	CHECK(the(&b)->from_start);
	CHECK(!the(&b)->had);
	/* a child has nothing of its parent's */
	takes(&b, "cudaMalloc", 0x1000, 5);
	give(&b, &f.h);
	b.proc.pid = 9;
	takes(&b, "cudaMalloc", 0x1000, 6);
	CHECK(HELD(&b) == 11);
	exits(&b, 9);
	CHECK(HELD(&b) == 5);
	b.proc.pid = 7;
	/* the same pid, started at another time: the end was lost */
	process_is(&b, CT_PROCESS, 7, 6);
	CHECK(!HELD(&b));
	bench_close(&b);
}

/* Processes that have nothing to do with memory leave nothing behind. */
static void test_processes(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ 0 });

	for (uint32_t i = 1; i <= 200000; i++) {
		process_is(&b, CT_EXEC, i, i);
		exits(&b, i);
	}
	CHECK(b.l->account.nprocesses == 1);
	for (uint32_t i = 1; i <= 3000; i++) {
		process_is(&b, CT_EXEC, i, i);
		takes(&b, "cudaMalloc", 0x1000, i);
		exits(&b, i);
	}
	CHECK(b.l->account.nprocesses >= 3000 && !HELD(&b));
	bench_close(&b);
}

/* A process that started after the trace began was seen from its beginning, whoever started it. */
static void test_beginnings(void)
{
	struct ct_clock clock = {
		.h = { .size = sizeof(clock), .kind = CT_CLOCK, .start_ns = 1, .end_ns = 1 },
		.boottime_ns = 500
	};
	struct bench b = bench_open(&(struct ledger_opts){ 0 });

	give(&b, &clock.h);
	clock.boottime_ns = 1; /* read again: the first one counts */
	give(&b, &clock.h);
	process_is(&b, CT_PROCESS, 11, 499);
	frees(&b, "cudaFree", 0x1000, 0);
	CHECK(!the(&b)->from_start);
	CHECK_EQ(1, the(&b)->unseen_n);
	CHECK_EQ(0, b.l->nfaults);
	takes(&b, "cudaMalloc", 0x2000, 1);
	CHECK(b.l->rows[b.l->nrows - 1].by == LEDGER_BY_DEVICE &&
	      b.l->rows[b.l->nrows - 1].device == LIVE_NO_DEVICE);
	process_is(&b, CT_PROCESS, 12, 501);
	frees(&b, "cudaFree", 0x1000, 0);
	CHECK(the(&b)->from_start);
	CHECK_EQ(1, the(&b)->unseen_n);
	CHECK_EQ(1, b.l->nfaults);
	takes(&b, "cudaMalloc", 0x2000, 1);
	CHECK(b.l->rows[b.l->nrows - 1].by == LEDGER_BY_DEVICE &&
	      b.l->rows[b.l->nrows - 1].device == 0);
	bench_close(&b);
}

static void test_driver_records(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ 0 });
	struct made_device m;

	make_memory_op(&m, MAKE_AT(7, 0, 7, 13, 0, 100, 100), CT_MEMORY_ALLOC, CT_MEM_DEVICE,
		       0x1000, 300);
	give(&b, &m.h);
	CHECK(HELD(&b) == 300);
	make_memory_op(&m, MAKE_AT(7, 0, 7, 13, 0, 200, 200), CT_MEMORY_FREE, CT_MEM_DEVICE, 0x1000,
		       300);
	give(&b, &m.h);
	CHECK(!HELD(&b) && PEAK(&b) == 300);
	/* calls of a process are believed, and what the driver says of the same is not booked again */
	b.proc.pid = 8;
	takes(&b, "cudaMalloc", 0x2000, 10);
	make_memory_op(&m, MAKE_AT(8, 0, 7, 13, 0, 300, 300), CT_MEMORY_ALLOC, CT_MEM_DEVICE,
		       0x2000, 10);
	give(&b, &m.h);
	frees(&b, "cudaFree", 0x2000, 0);
	make_memory_op(&m, MAKE_AT(8, 0, 7, 13, 0, 400, 400), CT_MEMORY_FREE, CT_MEM_DEVICE, 0x2000,
		       10);
	give(&b, &m.h);
	CHECK(!HELD(&b));
	CHECK_EQ(0, the(&b)->unseen_n);
	CHECK_EQ(2, ledger_all(b.l, ACCOUNT_DEVICE)->taken_n);
	bench_close(&b);
}

/* Any sequence of allocations and frees of several processes, against a list. */
static void test_random(void)
{
	enum { SLOTS = 300 };
	static const char *const allocs[] = { "cudaMalloc", "cuMemAlloc_v2", "cudaMallocManaged",
					      "cudaMallocAsync", "cudaMallocHost" };
	uint64_t model[3][2][SLOTS] = { 0 }, held[3] = { 0 }, peak = 0, all = 0, host = 0;
	struct bench b = bench_open(&(struct ledger_opts){ 0 });
	unsigned int seed = 5;

	for (int i = 0; i < 60000; i++) {
		uint32_t p = (uint32_t)rand_r(&seed) % 3, how = (uint32_t)rand_r(&seed) % 5,
			 at = (uint32_t)rand_r(&seed) % SLOTS;
		bool on_host = how == 4;
		uint64_t *slot = &model[p][on_host][at], bytes = (uint64_t)rand_r(&seed) % 5000 + 1;

		b.proc.pid = 100 + p;
		if (rand_r(&seed) % 20000 == 0) {
			exits(&b, 100 + p);
			all -= held[p];
			held[p] = 0;
			for (int s = 0; s < SLOTS; s++)
				host -= model[p][1][s];
			memset(model[p], 0, sizeof(model[p]));
		} else if (*slot) {
			frees(&b, on_host ? "cudaFreeHost" : "cudaFree", 0x1000 * (at + 1), 0);
			*(on_host ? &host : &all) -= *slot;
			held[p] -= on_host ? 0 : *slot;
			*slot = 0;
		} else {
			takes(&b, allocs[how], 0x1000 * (at + 1), bytes);
			*slot = bytes;
			*(on_host ? &host : &all) += bytes;
			held[p] += on_host ? 0 : bytes;
			peak = all > peak ? all : peak;
		}
		if (HELD(&b) != all || ledger_all(b.l, ACCOUNT_HOST)->bytes != host ||
		    PEAK(&b) != peak) {
			CHECK(!"the book is right at every moment");
			break;
		}
	}
	for (int w = LEDGER_BY_PROCESS; w <= LEDGER_BY_LIBRARY; w++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < b.l->nrows; i++)
			sum += b.l->rows[i].by == w && b.l->rows[i].where == ACCOUNT_DEVICE
				       ? b.l->rows[i].bytes
				       : 0;
		CHECK(sum == all);
	}
	bench_close(&b);
}

/* With little room everything that is left out is counted, and nothing goes wrong. */
static void test_no_room(void)
{
	struct bench b = bench_open(&(struct ledger_opts){ .live_max = 10, .rows_max = 6 });

	for (uint64_t i = 1; i <= 30; i++)
		takes(&b, "cudaMalloc", i * 0x1000, 10);
	CHECK_EQ(20, b.l->account.no_room);
	CHECK_EQ(100, HELD(&b));
	CHECK(b.l->no_row > 0);
	CHECK_EQ(6, b.l->nrows);
	for (uint64_t i = 1; i <= 30; i++)
		frees(&b, "cudaFree", i * 0x1000, 0);
	CHECK(!HELD(&b) && the(&b)->unseen_n == 20);
	bench_close(&b);
}

/* ---- sites ---- */

static void test_sites(void)
{
	struct stack_frame frames[2] = {
		{ CT_FRAME_NATIVE, 12, 0x1000, 4, "fill", NULL, "app.c", "/usr/lib/libapp.so" },
		{ CT_FRAME_NATIVE, 0, 0x2000, 8, NULL, NULL, NULL, NULL }
	};
	const struct stack_frame *list[2] = { &frames[0], &frames[1] };
	struct stack s = { .id = 1, .nframes = 2, .frames = list };
	unsigned int func = (unsigned int)api_next("cudaMalloc", -1);
	struct sites *sites = sites_open(0);
	uint32_t one, two;

	one = sites_of(sites, func, &s);
	CHECK(one && sites_of(sites, func, &s) == one);
	s.id = 99; /* the same stack under another number */
	CHECK(sites_of(sites, func, &s) == one);
	frames[0].line = 13;
	s.id = 100;
	two = sites_of(sites, func, &s);
	CHECK(two && two != one);
	CHECK_TEXT("libapp.so", sites_get(sites, two)->library);
	CHECK_TEXT("cudaMalloc", sites_get(sites, two)->func);
	CHECK(sites_get(sites, two)->frames[0].function ==
	      sites_get(sites, one)->frames[0].function);
	CHECK(sites_of(sites, CT_NO_FUNC, NULL) == 0 && sites_get(sites, 12345)->nframes == 0);
	sites_close(sites);
	sites = sites_open(200000);
	for (uint32_t i = 1; i < 100000; i++) {
		s.id = i;
		frames[0].line = i;
		one = sites_of(sites, func, &s);
	}
	CHECK(!one);
	CHECK(sites_no_room(sites));
	CHECK(sites_n(sites) > 100);
	CHECK(sites_n(sites) < 5000);
	sites_close(sites);
}

/* Labels of sites that are shown together; each an array of frames, innermost first. */
static void labels(const struct stack_frame (*stacks)[4], size_t n, const char *const *want)
{
	unsigned int func = (unsigned int)api_next("cudaMalloc", -1);
	struct sites *sites = sites_open(0);
	const struct stack_frame *list[4];
	struct stack s = { .frames = list };
	struct text texts[4] = { { NULL } };
	uint32_t numbers[4];

	for (size_t i = 0; i < n; i++) {
		for (s.nframes = 0; s.nframes < 4 && stacks[i][s.nframes].address; s.nframes++)
			list[s.nframes] = &stacks[i][s.nframes];
		s.id = (uint32_t)i + 1;
		numbers[i] = sites_of(sites, func, &s);
	}
	mem_site_texts(sites, numbers, n, texts, text_plain);
	for (size_t i = 0; i < n; i++) {
		char got[512];

		snprintf(got, sizeof(got), "%.*s", (int)texts[i].len, texts[i].s);
		CHECK_TEXT(want[i], got);
		text_free(&texts[i]);
	}
	sites_close(sites);
}

#define NATIVE(name, address, offset, object)                                 \
	{                                                                     \
		CT_FRAME_NATIVE, 0, address, offset, name, NULL, NULL, object \
	}
#define LINE(name, address, file, line)                                             \
	{                                                                           \
		CT_FRAME_NATIVE, line, address, 0, name, NULL, file, "/usr/bin/app" \
	}
#define PYTHON(name, file, line)                                    \
	{                                                           \
		CT_FRAME_PYTHON, line, 1, 0, name, NULL, file, NULL \
	}

static void test_labels(void)
{
	/* without lines the place in the function tells, with the same place a caller */
	static const struct stack_frame offsets[][4] = {
		{ NATIVE("take", 0x10, 0x10, "/bin/m"), NATIVE("main", 0x90, 0x10, "/bin/m") },
		{ NATIVE("take", 0x20, 0x20, "/bin/m"), NATIVE("main", 0x90, 0x10, "/bin/m") },
		{ NATIVE("take", 0x20, 0x20, "/bin/m"), NATIVE("main", 0xa0, 0x20, "/bin/m") },
	};
	static const char *const by_offset[] = {
		"take+0x10 in m (cudaMalloc)", "take+0x20 in m (cudaMalloc), from main+0x10 in m",
		"take+0x20 in m (cudaMalloc), from main+0x20 in m"
	};
	/* one allocator, three users, two of them one line of two callers */
	static const struct stack_frame callers[][4] = {
		{ LINE("grow", 1, "pool.c", 7), LINE("get", 2, "pool.c", 20),
		  LINE("left", 3, "a.c", 1) },
		{ LINE("grow", 1, "pool.c", 7), LINE("get", 2, "pool.c", 20),
		  LINE("right", 4, "a.c", 2) },
		{ LINE("grow", 1, "pool.c", 7), LINE("fill", 5, "b.c", 3) },
		{ LINE("main", 6, "c.c", 4) },
	};
	static const char *const by_caller[] = {
		"grow at pool.c:7 (cudaMalloc), from get at pool.c:20, from left at a.c:1",
		"grow at pool.c:7 (cudaMalloc), from get at pool.c:20, from right at a.c:2",
		"grow at pool.c:7 (cudaMalloc), from fill at b.c:3", "main at c.c:4 (cudaMalloc)"
	};
	/* the interpreter's frames are no label */
	static const struct stack_frame python[][4] = {
		{ NATIVE("ffi_call", 0x30, 0x3, "/usr/lib/libffi.so.8"),
		  NATIVE("_ctypes_callproc", 0x40, 0x4, "/x/_ctypes.cpython-311.so"),
		  PYTHON("take", "/x/m.py", 5), PYTHON("a", "/x/m.py", 8) },
		{ NATIVE("ffi_call", 0x30, 0x3, "/usr/lib/libffi.so.8"),
		  NATIVE("_PyObject_Call", 0x50, 0x5, "/usr/lib/libpython3.11.so.1.0"),
		  PYTHON("take", "/x/m.py", 5), PYTHON("<module>", "/x/m.py", 9) },
		{ NATIVE("fill", 0x60, 0x6, "/x/ext.so"),
		  NATIVE("_PyObject_Call", 0x50, 0x5, "/usr/lib/libpython3.11.so.1.0"),
		  PYTHON("step", "/x/m.py", 12) },
		{ NATIVE("ffi_call", 0x30, 0x3, "/usr/lib/libffi.so.8") },
	};
	static const char *const by_python[] = {
		"take at m.py:5 (cudaMalloc), from a at m.py:8",
		"take at m.py:5 (cudaMalloc), from <module> at m.py:9",
		"fill+0x6 in ext.so, for step at m.py:12 (cudaMalloc)",
		"ffi_call+0x3 in libffi.so.8 (cudaMalloc)"
	};

	labels(offsets, 3, by_offset);
	labels(callers, 4, by_caller);
	labels(python, 4, by_python);
}

/* ---- the curve ---- */

static int64_t value_of(const struct curve *c, uint32_t series, uint32_t bucket)
{
	int64_t v = 0;

	for (uint32_t i = 0; i < c->n; i++)
		if (c->points[i].series == series && c->points[i].bucket <= bucket)
			v += c->points[i].delta;
	return v;
}

static void test_curve(void)
{
	enum { SERIES = 40, EVENTS = 200000 };
	int64_t now[SERIES] = { 0 };
	unsigned int seed = 3;
	uint64_t at = 1000, peak = 0, total = 0, most = 0;
	struct curve c;
	uint32_t n;

	CHECK(!curve_init(&c, 1000, 8192));
	for (int i = 0; i < EVENTS; i++) {
		uint32_t s = (uint32_t)rand_r(&seed) % SERIES;
		int64_t d = rand_r(&seed) % 2 && now[s] ? -now[s] : rand_r(&seed) % 10000;

		at += (uint64_t)rand_r(&seed) % 50000;
		now[s] += d;
		curve_add(&c, at, s, d);
		if (!(s % 2)) {
			total += (uint64_t)d;
			peak = total > peak ? total : peak;
		}
	}
	n = curve_finish(&c);
	CHECK(n > 32);
	CHECK(n <= CURVE_BUCKETS);
	CHECK(c.n <= 8192);
	CHECK(!c.coarse);
	for (uint32_t s = 0; s < SERIES; s++)
		CHECK(value_of(&c, s, n) == now[s]);
	for (uint32_t i = 0; i < n; i++)
		most = c.peak[0][i] > most ? c.peak[0][i] : most;
	CHECK(most == peak);
	curve_free(&c);
	/* more series than there is room for: they become one, whose sum is right */
	CHECK(!curve_init(&c, 0, 1024));
	for (uint32_t i = 0; i < 100000; i++)
		curve_add(&c, i * 1000ULL, i * 2, 10);
	n = curve_finish(&c);
	CHECK(c.coarse);
	if (CHECK(c.n <= 1024)) {
		if (CHECK_EQ(1000000, value_of(&c, 0, n)))
			CHECK_EQ(1000000, c.peak[0][n - 1]);
	}
	curve_free(&c);
	/* anything */
	CHECK(!curve_init(&c, 1ULL << 60, 512));
	for (int i = 0; i < 20000; i++)
		curve_add(&c, (uint64_t)rand_r(&seed) << (rand_r(&seed) % 40),
			  (uint32_t)rand_r(&seed),
			  (int64_t)((uint64_t)rand_r(&seed) << (rand_r(&seed) % 40)));
	curve_add(&c, UINT64_MAX, 3, INT64_MIN);
	curve_add(&c, 0, 3, INT64_MAX);
	CHECK(curve_finish(&c) <= CURVE_BUCKETS);
	curve_free(&c);
}

/* ---- outputs ---- */

static const struct stack_frame story_frames[3] = {
	{ CT_FRAME_NATIVE, 12, 0x1000, 4, "fill(float*)", "_Z4fillPf", "/src/app.cu",
	  "/usr/bin/app" },
	{ CT_FRAME_PYTHON, 7, 0, 0, "forward", NULL, "/src/model.py", NULL },
	{ CT_FRAME_NATIVE, 0, 0x2000, 8, "<script>\x1b[31m", NULL, NULL, "/usr/bin/app" },
};
static const struct stack_frame *const story_list[3] = { &story_frames[0], &story_frames[1],
							 &story_frames[2] };
static const struct stack story_stack = {
	.id = 1, .nframes = 3, .flags = CT_STACK_CUT, .frames = story_list
};

static void story_call(struct play *p, struct ct_call *c, uint32_t pid, uint64_t at,
		       const struct stack *stack, uint32_t device)
{
	if (!c) {
		CHECK(!"the table has the function");
		return;
	}
	c->h.pid = c->h.tid = pid;
	c->h.start_ns = PLAY_START + at;
	c->h.end_ns = PLAY_START + at + 1000;
	play_give(p, (struct event){ .rec = &c->h,
				     .stack = stack,
				     .device = device,
				     .context = CT_UNKNOWN,
				     .stream = CT_UNKNOWN });
}

static void story_takes(struct play *p, const char *name, uint64_t address, uint64_t bytes,
			uint64_t at, const struct stack *stack)
{
	static uint64_t out;
	struct made_call m;

	out = address;
	make_nmemory = 0;
	make_mem(OUT, &out, 8);
	story_call(p, CALL(&m, name, CT_CALL, 0, 0, U(OUT), U(bytes), U(0)), 100, at, stack, 0);
}

static void story_frees(struct play *p, const char *name, uint64_t address, int ret, uint64_t at)
{
	struct made_call m;

	story_call(p, CALL(&m, name, CT_CALL, 0, ret, U(address), U(0)), 100, at, &story_stack, 0);
}

static void story(struct play *p)
{
	struct ct_exit end = { .h = { .size = sizeof(end),
				      .kind = CT_EXIT,
				      .pid = 100,
				      .tid = 100,
				      .start_ns = PLAY_START + 900000000,
				      .end_ns = PLAY_START + 900000000 } };
	struct made_call m;

	play_process(p, CT_EXEC, 100, "app");
	play_process(p, CT_PROCESS, 200, "old\x1b");
	story_takes(p, "cudaMalloc", 0x7f0000000000, 1 << 20, 100000000, &story_stack);
	story_takes(p, "cudaMalloc", 0x7f0000200000, 3 << 20, 200000000, &story_stack);
	story_takes(p, "cudaMallocHost", 0x7f0000900000, 4096, 250000000, NULL);
	story_frees(p, "cudaFree", 0x7f0000200000, 0, 300000000);
	story_frees(p, "cudaFree", 0x7f0000200000, 1, 310000000);
	story_call(p, CALL(&m, "cudaMalloc", CT_CALL, 0, 2, U(OUT), U(1) << 40), 100, 400000000,
		   &story_stack, 0);
	story_call(p, CALL(&m, "cudaFree", CT_CALL, 0, 0, U(0x1234000)), 200, 500000000, NULL,
		   CT_UNKNOWN);
	story_takes(p, "cudaMalloc", 0x7f0000300000, 1000, 600000000, &story_stack);
	story_takes(p, "cudaMalloc", 0x7f0000400000, 1000, 700000000, &story_stack);
	play_give(p, (struct event){ .rec = &end.h });
}

static void rubbish_calls(struct play *);

/* What is printed, and the verdict, when these records were lost. */
static char *reported_with(const struct mem_options *how, void (*what)(struct play *),
			   const struct losses *losses, int *leaks)
{
	static char path[] = "/tmp/cudatrace-mem-XXXXXX";
	struct sink_end end = { .reason = "finished", .losses = *losses };
	struct mem_options mem = *how;
	struct sink_opts opts = { .title = "./app <x>",
				  .version = "0",
				  .start_ns = PLAY_START,
				  .own = &mem,
				  .recorded = true };
	struct out out;
	struct play p;
	char *text;
	int fd;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	mem.leak_check = true;
	opts.out = &out;
	CHECK(fd >= 0 && !out_open_fd(&out, fd, path));
	play_begin(&p, &sink_mem, &opts);
	what(&p);
	CHECK(!play_end(&p, &end));
	*leaks = p.sink.status;
	CHECK(!out_close(&out));
	text = unit_read(path);
	unlink(path);
	close(fd);
	return text;
}

static char *reported(const struct mem_options *how, void (*what)(struct play *))
{
	int leaks = MEM_STATUS_NOT_KNOWN;
	char *text = reported_with(how, what, &(struct losses){ 0 }, &leaks);

	CHECK(what == rubbish_calls || leaks == (what == story ? MEM_STATUS_LEAKS : 0));
	return text;
}

static void golden(const char *name, const struct mem_options *how)
{
	char *text = reported(how, story);

	unit_golden(name, text ? text : "");
	free(text);
}

static void test_outputs(void)
{
	golden("mem.txt", &(struct mem_options){ .top = 10 });
	golden("mem.json", &(struct mem_options){ .top = 10, .json = true });
	golden("mem_stack.txt", &(struct mem_options){ .by = LEDGER_BY_STACK, .top = 1 });
	golden("mem_library.txt", &(struct mem_options){ .by = LEDGER_BY_LIBRARY, .top = 10 });
	golden("mem_watch.txt",
	       &(struct mem_options){ .by = LEDGER_BY_DEVICE, .top = 3, .watch_ns = 200000000 });
	golden("mem_watch.jsonl",
	       &(struct mem_options){ .top = 3, .watch_ns = 200000000, .json = true });
}

/* 100 streams and 80 pieces of pinned memory over 800 ms, of which a part is given back; 300 events
 * that are all destroyed; 100 graphs, all made at the begin. */
static void more_and_more(struct play *p)
{
	struct made_call m;

	play_process(p, CT_EXEC, 100, "app");
	for (uint64_t i = 0; i < 300; i++) {
		uint64_t at = 100000000 + i * 2600000;

		if (i < 100)
			story_call(p, CALL(&m, "cudaGraphCreate", CT_CALL, 0, 0, U(OUT), U(0)), 100,
				   1000000 + i, &story_stack, 0);
		story_call(p, CALL(&m, "cudaEventCreate", CT_CALL, 0, 0, U(OUT)), 100, at,
			   &story_stack, 0);
		story_call(p, CALL(&m, "cudaEventDestroy", CT_CALL, 0, 0, U(7)), 100, at + 1000,
			   &story_stack, 0);
		if (i % 3 == 0)
			story_call(p,
				   CALL(&m, "cudaStreamCreate", CT_CALL, 0, i == 3 ? 2 : 0, U(OUT)),
				   100, at + 2000, i % 2 ? NULL : &story_stack, 0);
		if (i % 12 == 0)
			story_call(p, CALL(&m, "cudaStreamDestroy", CT_CALL, 0, 0, U(7)), 100,
				   at + 3000, &story_stack, 0);
		if (i < 240 && i % 3 == 1)
			story_takes(p, "cudaMallocHost", 0x7f0000000000 + i * 4096, 64, at + 4000,
				    NULL);
	}
}

static void test_growing(void)
{
	char *text = reported(&(struct mem_options){ .top = 10 }, more_and_more);
	const char *at = text ? strstr(text, "Growing: ") : NULL;

	CHECK_TEXT("Growing: 74 streams are left in process 100 app: 99 were made throughout the "
		   "trace, and 25 were given back\n"
		   "  50 made by fill(float*) at app.cu:12, for forward at model.py:7 "
		   "(cudaStreamCreate)\n"
		   "  49 made by cudaStreamCreate\n"
		   "Growing: 80 pieces of pinned host memory are left in process 100 app: 80 were "
		   "made throughout the trace, and 0 were given back\n"
		   "  80 made by cudaMallocHost\n"
		   "\n"
		   "LEAK SUMMARY: 0 bytes leaked in 0 allocations\n",
		   at ? at : text);
	free(text);
	text = reported(&(struct mem_options){ .top = 10, .json = true }, more_and_more);
	CHECK(text && strstr(text, "\"what\":\"streams\",\"made\":99,\"given_back\":25,\"left\":74,"
				   "\"makers\":[{\"site\":"));
	free(text);
}

/* Sizes that cannot be, between two that can, and one that was freed. */
static void impossible(struct play *p)
{
	play_process(p, CT_EXEC, 100, "app");
	story_takes(p, "cudaMalloc", 0x7f0000000000, 1000, 100000, NULL);
	story_takes(p, "cudaMalloc", 0x7f0000001000, UINT64_MAX - 999, 200000, NULL);
	story_takes(p, "cudaMalloc", 0x7f0000002000, CT_SIZE_MOST, 300000, NULL);
	story_takes(p, "cudaMalloc", 0x7f0000003000, CT_SIZE_MOST - 1, 400000, NULL);
	story_frees(p, "cudaFree", 0x7f0000001000, 0, 500000);
	story_frees(p, "cudaFree", 0x7f0000003000, 0, 600000);
}

/* They are in no sum, which they could make wrap around, and are counted. */
static void test_impossible(void)
{
	char *text = reported(&(struct mem_options){ .top = 10, .json = true }, impossible);

	CHECK(text && strstr(text, "\"impossible_sizes\":2,"));
	CHECK(text && strstr(text, "{\"pid\":null,\"where\":\"device\",\"in_use_bytes\":1000,"
				   "\"live\":2,\"peak_bytes\":281474976711655,"));
	CHECK(text &&
	      strstr(text, "\"taken_bytes\":281474976711655,\"allocations\":4,\"frees\":2}"));
	free(text);
	text = reported(&(struct mem_options){ .top = 10 }, impossible);
	CHECK(text &&
	      strstr(text, "\nSizes that cannot be, of 256 TiB or more: 2; they are in no sum\n"));
	free(text);
}

/* Two users of one allocator hold memory, and one of them asks for more than there is. */
static void two_users(struct play *p)
{
	static const struct stack_frame frames[] = { LINE("grow", 1, "pool.c", 7),
						     LINE("left", 2, "a.c", 1),
						     LINE("right", 3, "b.c", 2) };
	static const struct stack_frame *const lists[][2] = { { &frames[0], &frames[1] },
							      { &frames[0], &frames[2] } };
	static const struct stack stacks[] = { { .id = 1, .nframes = 2, .frames = lists[0] },
					       { .id = 2, .nframes = 2, .frames = lists[1] } };
	struct made_call m;

	story_takes(p, "cudaMalloc", 0x7f0000000000, 1 << 20, 100000000, &stacks[0]);
	story_takes(p, "cudaMalloc", 0x7f0000200000, 3 << 20, 200000000, &stacks[1]);
	story_call(p, CALL(&m, "cudaMalloc", CT_CALL, 0, 2, U(OUT), U(1) << 40), 100, 400000000,
		   &stacks[0], 0);
}

static void contains(const char *text, const char *what)
{
	CHECK(text && strstr(text, what));
	if (text && !strstr(text, what))
		fprintf(stderr, "not in the text: %s\n", what);
}

/* Call sites of one line each are told apart in every place where they are shown together. */
static void test_two_users(void)
{
	static const char page[] = ".output/unit/mem-two.html";
	int leaks;
	char *text = reported_with(&(struct mem_options){ .top = 10, .html = page }, two_users,
				   &(struct losses){ 0 }, &leaks),
	     *html;

	contains(text,
		 "grow at pool.c:7 (cudaMalloc), from left at a.c:1 asked for 1099511627776 bytes");
	contains(text, "  3.0 MiB in 1: grow at pool.c:7 (cudaMalloc), from right at b.c:2\n");
	contains(text, "  1.0 MiB in 1: grow at pool.c:7 (cudaMalloc), from left at a.c:1\n");
	free(text);
	html = unit_read(page);
	contains(html, "\"name\":\"grow at pool.c:7 (cudaMalloc), from right at b.c:2\"");
	contains(html, "\"name\":\"grow at pool.c:7 (cudaMalloc), from left at a.c:1\"");
	free(html);
	unlink(page);
}

static void nothing(struct play *p)
{
	(void)p;
}

static void rubbish(struct play *p)
{
	unsigned int seed = 11;

	for (int i = 0; i < 100000; i++)
		play_rubbish(p, &seed);
}

/* Calls of all functions that do something to memory, with any arguments. */
static void rubbish_calls(struct play *p)
{
	uint64_t set[CT_MAX_FUNCS / 64] = { 0 }, out[64];
	unsigned int seed = 12;
	struct made_call m;
	char name[128];

	api_remembering(set);
	for (int i = 0; i < 60000; i++) {
		int func = rand_r(&seed) % api_nfuncs;
		uint64_t w[12];

		if (!(set[func / 64] >> (func % 64) & 1))
			continue;
		for (size_t k = 0; k < ARRAY_LEN(out); k++)
			out[k] = rand_r(&seed) % 3 ? (uint64_t)rand_r(&seed) % 8
						   : ~0ULL << (rand_r(&seed) % 64);
		make_nmemory = 0;
		make_mem(OUT, out, sizeof(out));
		for (size_t k = 0; k < ARRAY_LEN(w); k++)
			w[k] = rand_r(&seed) % 2   ? OUT
			       : rand_r(&seed) % 2 ? (uint64_t)rand_r(&seed) % 8
						   : ~0ULL >> (rand_r(&seed) % 64);
		snprintf(name, sizeof(name), "%s", api_funcs[func].name);
		story_call(p,
			   CALL(&m, name, CT_CALL, 0, rand_r(&seed) % 4 ? 0 : rand_r(&seed) % 6,
				w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10],
				w[11], w[0], w[1]),
			   100 + (uint32_t)rand_r(&seed) % 3, (uint64_t)i * 10000,
			   rand_r(&seed) % 2 ? &story_stack : NULL,
			   (uint32_t)rand_r(&seed) % 3 - 1);
	}
	make_nmemory = 0;
}

/* With calls lost nobody knows what was leaked; a stack is no call. */
static void test_losses(void)
{
	static const struct {
		enum ct_loss cause;
		void (*what)(struct play *);
		int leaks;
		const char *summary;
	} tries[] = {
		{ CT_LOSS_RING, story, MEM_STATUS_NOT_KNOWN,
		  "LEAK SUMMARY: not known, because 3 records are missing; of what is there, "
		  "1054672 bytes in 4 allocations were not freed\n" },
		{ CT_LOSS_FILE, nothing, MEM_STATUS_NOT_KNOWN,
		  "LEAK SUMMARY: not known, because 3 records are missing; of what is there, 0 "
		  "bytes in 0 allocations were not freed\n" },
		{ CT_LOSS_STACK, story, MEM_STATUS_LEAKS,
		  "LEAK SUMMARY: 1054672 bytes leaked in 4 allocations\n" },
		{ CT_LOSS_ORPHAN, nothing, 0, "LEAK SUMMARY: 0 bytes leaked in 0 allocations\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		struct losses losses = { 0 };
		struct holes *holes;
		int leaks = 0;
		char *text;

		losses.lost[tries[i].cause] = 3;
		text = reported_with(&(struct mem_options){ .top = 10 }, tries[i].what, &losses,
				     &leaks);
		CHECK(leaks == tries[i].leaks);
		CHECK_TEXT(tries[i].summary, strstr(text, "LEAK SUMMARY"));
		free(text);
		text = reported_with(&(struct mem_options){ .top = 10, .json = true },
				     tries[i].what, &losses, &leaks);
		CHECK(!strstr(text, "unprobed"));
		CHECK(leaks == tries[i].leaks);
		CHECK(strstr(text, leaks == MEM_STATUS_NOT_KNOWN ? "\"leaks_known\":false"
								 : "\"leaks_known\":true"));
		free(text);
		losses.holes = holes = holes_of_unprobed(3, 1, 2500000, true);
		text = reported_with(&(struct mem_options){ .top = 10, .json = true },
				     tries[i].what, &losses, &leaks);
		CHECK(strstr(text, ",\"unprobed\":{\"processes\":3,\"ended\":1,\"max_ns\":2500000,"
				   "\"at_least\":true},"));
		free(text);
		holes_close(holes);
	}
}

static void test_hostile(void)
{
	static void (*const all[])(struct play *) = { nothing, rubbish, rubbish_calls };
	static const char page[] = ".output/unit/mem-hostile.html";

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct sink_opts opts = { .title = NULL, .start_ns = PLAY_START, .recorded = true };
		struct mem_options how = {
			.top = 10, .json = i % 2, .html = page, .watch_ns = 100000000
		};
		struct sink_end end = { .reason = "finished" };
		struct out out;
		struct play p;
		FILE *f = tmpfile();

		opts.own = &how;
		opts.out = &out;
		CHECK(f && !out_open_fd(&out, fileno(f), "memory"));
		play_begin(&p, &sink_mem, &opts);
		all[i](&p);
		CHECK(!play_end(&p, &end));
		out_close(&out);
		fclose(f);
	}
}

/* For tests/memory: `test_mem page KIND FILE`. */
static int write_page(const char *path, const char *kind)
{
	char *text = reported(&(struct mem_options){ .top = 10, .html = path },
			      !strcmp(kind, "story")   ? story
			      : !strcmp(kind, "empty") ? nothing
						       : rubbish_calls);

	free(text);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "page"))
		return write_page(argv[3], argv[2]);
	RUN(test_rows);
	RUN(test_calls);
	RUN(test_live_random);
	RUN(test_live_bytes);
	RUN(test_simple);
	RUN(test_order);
	RUN(test_faults);
	RUN(test_oom);
	RUN(test_virtual);
	RUN(test_ends);
	RUN(test_processes);
	RUN(test_beginnings);
	RUN(test_driver_records);
	RUN(test_random);
	RUN(test_no_room);
	RUN(test_sites);
	RUN(test_labels);
	RUN(test_curve);
	RUN(test_outputs);
	RUN(test_growing);
	RUN(test_impossible);
	RUN(test_two_users);
	RUN(test_losses);
	RUN(test_hostile);
	return unit_end();
}
