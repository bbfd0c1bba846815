/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stat.c - the sums behind `cudatrace stat`: quantiles and deviations against sorted lists,
 * busy time against a drawing of it, counters' means, occupancy against values of CUDA's own
 * calculator, counts of the kernel side against records.
 */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/source/bpf/call_counts.h"
#include "../../user/sums/report.h"
#include "make_call.h"
#include "make_device.h"
#include "unit.h"

/* Always the same numbers (splitmix64). */
static uint64_t seed = 99;
static double uniform(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static int by_value(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

static const struct process nobody = {
	.pid = 7, .shown_pid = 3, .comm = "app", .cgroup_id = 12, .start_boottime_ns = 5 << 20
};

static void give(struct book *b, const struct ct_hdr *rec, const struct kernel_name *kernel)
{
	CHECK(!record_check(rec, rec->size));
	CHECK(book_event(b,
			 &(struct event){
				 .rec = rec, .proc = &nobody, .kernel = kernel, .device = 1 }) >=
	      0);
}

/* ---- durations ---- */

static uint64_t duration(int shape)
{
	switch (shape) {
	case 0: return 20 + (uint64_t)(uniform() * 1e6);
	case 1: /* exponential */ return 20 + (uint64_t)(-log(uniform()) * 50000);
	case 2: /* over nine orders of magnitude */ return 20 + (uint64_t)exp(uniform() * 21);
	case 3: /* two heaps */
		return uniform() < 0.985 ? 1024 : 5000000 + (uint64_t)(uniform() * 100);
	case 4: /* the beginning of a bucket, and the end of one */
		return uniform() < 0.5 ? 1024 : 1151;
	default: return 6000000000ULL + (uint64_t)(uniform() * 3e9);
	}
}

static void test_durations(void)
{
	static const double shares[] = { 0.01, 0.5, 0.9, 0.99, 1 };
	static uint64_t sorted[5000];

	for (int shape = 0; shape <= 5; shape++) {
		struct book *b = book_open(BOOK_BY_FUNCTION, true, 0);
		struct made_call m;
		long double sum = 0, squares = 0;
		int n = 100 + (int)(uniform() * 4900);

		for (int i = 0; i < n; i++) {
			sorted[i] = duration(shape);
			CHECK(make_call(&m, "cudaFree", CT_CALL, 0, 0, 1ULL) != NULL);
			m.c.h.start_ns = 1000;
			m.c.h.end_ns = 1000 + sorted[i];
			give(b, &m.c.h, NULL);
			sum += (long double)sorted[i];
		}
		for (int i = 0; i < n; i++)
			squares += ((long double)sorted[i] - sum / n) *
				   ((long double)sorted[i] - sum / n);
		qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
		CHECK(b->nentries == 1 && b->entries[0].n.calls == (uint64_t)n);
		CHECK(b->entries[0].n.ns == (uint64_t)sum);
		CHECK(b->entries[0].n.min_ns == sorted[0] &&
		      b->entries[0].n.max_ns == sorted[n - 1]);
		CHECK(fabs(book_mean_ns(&b->entries[0].n) - (double)(sum / n)) <
		      1e-6 * (double)(sum / n));
		CHECK(fabs(book_deviation_ns(&b->entries[0].n) - (double)sqrtl(squares / n)) <=
		      1e-6 * (double)sqrtl(squares / n));
		for (size_t k = 0; k < ARRAY_LEN(shares); k++) {
			int at = (int)ceil(shares[k] * n) - 1;
			double exact = (double)sorted[at < 0 ? 0 : at];
			double got = (double)book_quantile_ns(b->entries[0].hist, &b->entries[0].n,
							      shares[k]);

			CHECK(fabs(got - exact) <= 0.1 * exact + 1);
		}
		book_close(b);
	}
}

/* ---- counted and told one by one ---- */

static void test_call_count(void)
{
	static union {
		struct ct_call_count t;
		char room[sizeof(struct ct_call_count) + sizeof(struct ct_hist)];
	} rec = { .t = { .h = { .kind = CT_CALL_COUNT,
				.size = sizeof(rec),
				.pid = 7,
				.start_ns = 1000,
				.end_ns = 9000 },
			 .nbuckets = CT_HIST_BUCKETS } };
	struct book *reported = book_open(BOOK_BY_PROCESS, true, 0),
		    *counted = book_open(BOOK_BY_PROCESS, true, 0);
	struct made_call m;
	struct report *a, *b;

	for (int i = 0; i < 20; i++) {
		make_call(&m, "cudaMalloc", CT_CALL, 0, i % 5 ? 0 : 2, 0x1000ULL, 512ULL);
		m.c.h.pid = 7;
		m.c.h.start_ns = 1000;
		m.c.h.end_ns = 1000 + 100U * (unsigned int)i;
		give(reported, &m.c.h, NULL);
	}
	/* what the kernel side makes of the same; read twice, of which the second reading is the
	 * one that counts */
	rec.t.func = m.c.func;
	for (int reading = 0; reading < 2; reading++) {
		struct ct_sums *n = &rec.t.sums;

		memset(n, 0, sizeof(*n));
		memset(rec.t.hist, 0, sizeof(struct ct_hist));
		for (unsigned int i = 0; i < (reading ? 20 : 11); i++) {
			n->calls++;
			n->failed += !(i % 5);
			n->timed++;
			n->ns += 100 * i;
			n->squares[0] += 10000 * i * i;
			n->max_ns = 100 * i;
			n->bytes += i % 5 ? 512 : 0;
			rec.t.hist[ct_hist_bucket(100 * i)]++;
		}
		give(counted, &rec.t.h, NULL);
	}
	a = report_make(reported);
	b = report_make(counted);
	CHECK(a->nrows[REPORT_CALLS + API_RUNTIME] == 1 &&
	      b->nrows[REPORT_CALLS + API_RUNTIME] == 1);
	CHECK(!memcmp(&a->rows[REPORT_CALLS + API_RUNTIME][0].n,
		      &b->rows[REPORT_CALLS + API_RUNTIME][0].n, sizeof(struct ct_sums)));
	CHECK(a->rows[REPORT_CALLS + API_RUNTIME][0].p99_ns ==
	      b->rows[REPORT_CALLS + API_RUNTIME][0].p99_ns);
	CHECK(a->rows[REPORT_CALLS + API_RUNTIME][0].label.len ==
		      b->rows[REPORT_CALLS + API_RUNTIME][0].label.len &&
	      !memcmp(a->rows[REPORT_CALLS + API_RUNTIME][0].label.s, "app 3  cudaMalloc", 17));
	CHECK(a->totals[REPORT_CALLS + API_RUNTIME].failed == 4 &&
	      b->totals[REPORT_CALLS + API_RUNTIME].bytes == 16 * 512);
	report_free(a);
	report_free(b);
	/* another process, of which there was no room for a histogram: nothing is said of the
	 * middle of both */
	rec.t.h.size = sizeof(struct ct_call_count);
	rec.t.nbuckets = 0;
	rec.t.sums.timed = rec.t.sums.calls = 100;
	rec.t.h.pid = 8;
	counted->by = BOOK_BY_FUNCTION;
	give(counted, &rec.t.h, NULL);
	b = report_make(counted);
	CHECK_EQ(1, b->nrows[REPORT_CALLS + API_RUNTIME]);
	CHECK_EQ(120, b->rows[REPORT_CALLS + API_RUNTIME][0].n.timed);
	CHECK(!b->rows[REPORT_CALLS + API_RUNTIME][0].hist);
	report_free(b);
	book_close(reported);
	book_close(counted);
}

/* ---- an agent's coming in ---- */

static void gives_call(struct book *b, const char *name, uint32_t tid, uint64_t start, uint64_t end)
{
	struct made_call m;

	CHECK(make_call(&m, name, CT_CALL, 0, 0, 1ULL) != NULL);
	m.c.h.pid = 7;
	m.c.h.tid = tid;
	m.c.h.start_ns = start;
	m.c.h.end_ns = end;
	give(b, &m.c.h, NULL);
}

static void comes_in(struct book *b, uint32_t tid, uint64_t start, uint64_t end)
{
	struct ct_hdr h = { .size = sizeof(h),
			    .kind = CT_ENTERED,
			    .pid = 7,
			    .tid = tid,
			    .start_ns = start,
			    .end_ns = end };

	give(b, &h, NULL);
}

/* The sums of a function, and of all that agents took. */
static const struct ct_sums *sums_of(struct book *b, const char *name, struct entered_sum *all)
{
	const struct ct_sums *n = NULL;

	book_leave_entered(b);
	entered_sum(b->entered, all);
	for (size_t i = 0; i < b->nentries; i++)
		if (!strcmp(api_funcs[b->entries[i].func].name, name))
			n = &b->entries[i].n;
	return n;
}

/* The time is left out of the call that it passed in, whichever of the two comes first, and of no other. */
static void test_entered(void)
{
	enum { MS = 1000000 };
	struct entered_sum all;
	const struct ct_sums *n;

	for (int late = 0; late < 2; late++) {
		struct book *b = book_open(BOOK_BY_FUNCTION, true, 0);

		CASE_ROW("%s", late ? "after" : "before");
		if (!late)
			comes_in(b, 5, 2 * MS, 47 * MS);
		gives_call(b, "cudaSetDevice", 6, 1 * MS, 60 * MS); /* another thread */
		gives_call(b, "cudaGetDeviceCount", 5, 1 * MS, 50 * MS);
		gives_call(b, "cudaDeviceSynchronize", 5, 50 * MS, 150 * MS);
		if (late)
			comes_in(b, 5, 2 * MS, 47 * MS);
		n = sums_of(b, "cudaGetDeviceCount", &all);
		CHECK_EQ(4 * MS, n->ns);
		CHECK_EQ(4 * MS, n->min_ns);
		CHECK_EQ(4 * MS, n->max_ns);
		CHECK_EQ(45 * MS, all.ns);
		CHECK_EQ(0, all.in_sums_ns);
		CHECK_TEXT("cudaGetDeviceCount", api_funcs[all.func].name);
		CHECK_EQ(59 * MS, sums_of(b, "cudaSetDevice", &all)->ns);
		CHECK_EQ(100 * MS, sums_of(b, "cudaDeviceSynchronize", &all)->ns);
		/* of several calls */
		gives_call(b, "cudaGetDeviceCount", 5, 200 * MS, 201 * MS);
		gives_call(b, "cudaGetDeviceCount", 5, 300 * MS, 320 * MS);
		comes_in(b, 5, 305 * MS, 315 * MS);
		n = sums_of(b, "cudaGetDeviceCount", &all);
		CHECK_EQ(3, n->timed);
		CHECK_EQ(15 * MS, n->ns);
		CHECK(fabs(book_deviation_ns(n) - 3741657.3868) < 1);
		book_close(b);
	}
}

/* Calls that were only counted: it was in the only function of which a call took so long; else it is
 * not known. */
static void test_entered_counted(void)
{
	struct ct_call_count t = { .h = { .kind = CT_CALL_COUNT, .size = sizeof(t), .pid = 7 } };
	struct book *b = book_open(BOOK_BY_FUNCTION, false, 0);
	struct entered_sum all;
	struct made_call m;

	make_call(&m, "cudaSetDevice", CT_CALL, 0, 0, 1ULL);
	t.func = m.c.func;
	t.sums = (struct ct_sums){
		.calls = 1, .timed = 1, .ns = 50000, .min_ns = 50000, .max_ns = 50000
	};
	give(b, &t.h, NULL);
	make_call(&m, "cudaFree", CT_CALL, 0, 0, 1ULL);
	t.func = m.c.func;
	t.sums = (struct ct_sums){
		.calls = 2, .timed = 2, .ns = 9000, .min_ns = 4000, .max_ns = 5000
	};
	give(b, &t.h, NULL);
	comes_in(b, 5, 1000, 41000);
	CHECK_EQ(10000, sums_of(b, "cudaSetDevice", &all)->ns);
	CHECK_EQ(40000, all.ns);
	comes_in(b, 5, 1000, 3000); /* it may have been in both */
	CHECK_EQ(9000, sums_of(b, "cudaFree", &all)->ns);
	CHECK_EQ(40000, all.ns);
	CHECK_EQ(2000, all.in_sums_ns);
	book_close(b);
}

/* A process number that is given out again is another process; a full book says what it left out. */
static void test_room(void)
{
	struct ct_call_count t = { .h = { .kind = CT_CALL_COUNT,
					  .size = sizeof(t),
					  .pid = 7,
					  .start_ns = 1,
					  .end_ns = 2 } };
	struct book *b = book_open(BOOK_BY_FUNCTION, false, 3);

	t.sums.calls = 10;
	for (uint32_t start = 1; start <= 5; start++) {
		t.start = start;
		give(b, &t.h, NULL);
	}
	CHECK(b->nentries == 3 && b->no_room == 20);
	t.start = 1;
	t.sums.calls = 11;
	give(b, &t.h, NULL);
	CHECK(b->nentries == 3 && b->entries[0].n.calls == 11);
	book_close(b);
	/* one that began before the end of another of its number is the other one, also where
	 * the 42 bits begin anew */
	for (uint64_t end = 1ULL << 41; end < 1ULL << 45; end += (1ULL << 41) - 4096) {
		CHECK(call_counts_is_older((uint32_t)((end - 5000000) >> 10), end));
		CHECK(call_counts_is_older((uint32_t)((end - 2000000000000) >> 10), end));
		CHECK(!call_counts_is_older((uint32_t)((end + 5000000) >> 10), end));
	}
}

/* What the kernel side counted is of the time between the first and the last moment at which it counted. */
static int take_times(void *ctx, const struct ct_hdr *h)
{
	CHECK_EQ(1000, h->start_ns);
	CHECK_EQ(5000, h->end_ns);
	++*(int *)ctx;
	return 0;
}

static void test_until(void)
{
	struct capture_plan plan = { .count = true };
	uint64_t used = 1, freed = 0, given = 0;
	struct call_counts_maps maps = { .call_counts_fd = -1,
					 .hists_fd = -1,
					 .sizes_fd = -1,
					 .held_fd = -1,
					 .shares_fd = -1,
					 .entries_max = 64,
					 .used = &used,
					 .freed = &freed,
					 .hists_given = &given };
	struct ct_entry e = { .key = { .tgid = 1, .func = 3 }, .n = { .calls = 2 } };
	struct call_counts *t;
	int n = 0;

	maps.entries_fd = memfd_create("entries", MFD_CLOEXEC);
	maps.freed_fd = memfd_create("freed", MFD_CLOEXEC);
	CHECK(!ftruncate(maps.entries_fd, 1 << 20) && !ftruncate(maps.freed_fd, 1 << 20));
	CHECK(pwrite(maps.entries_fd, &e, sizeof(e), 0) == sizeof(e));
	t = call_counts_open(&plan, &maps);
	CHECK(t != NULL);
	if (t) {
		call_counts_begin(t, 1000);
		CHECK_EQ(0, call_counts_read(t, 5000, take_times, &n));
		CHECK_EQ(1, n);
	}
	call_counts_close(t);
	close(maps.entries_fd);
	close(maps.freed_fd);
}

/* ---- devices ---- */

static void test_busy(void)
{
	for (int round = 0; round < 50; round++) {
		static bool drawn[3000];
		struct busy b = { 0 };
		uint64_t want = 0;

		memset(drawn, 0, sizeof(drawn));
		/* streams are told of one after the other, a little apart */
		for (uint64_t i = 0; i < 120; i++) {
			uint64_t at = 100 + i * 20 + (uint64_t)(uniform() * 400),
				 end = at + (uint64_t)(uniform() * 30);

			busy_add(&b, 7, 0, at, end);
			for (uint64_t k = at; k < end; k++)
				drawn[k] = true;
		}
		for (size_t k = 0; k < ARRAY_LEN(drawn); k++)
			want += drawn[k];
		CHECK(busy_ns(&b) == want);
		busy_add(&b, 7, 1, 5, 10);
		busy_add(&b, 8, 0, 5, 10);
		CHECK(busy_ns(&b) == want + 10 && b.ndevices == 3);
		for (uint32_t i = 0; i < 100; i++)
			busy_add(&b, 9, i, 5, 10);
		CHECK(b.ndevices == BUSY_DEVICES && b.left_out == 39);
		busy_close(&b);
	}
}

static void test_gauges(void)
{
	struct metric_table *metrics = metric_table_open();
	struct gauges g = { 0 };
	struct made_device m;
	struct event ev = { .rec = &m.h, .metrics = metrics };

	make_metric(&m, 5, "sm", "%", CT_METRIC_PM);
	CHECK(!metric_table_record(metrics, &m.h));
	CHECK(!gauges_event(&g, &ev));
	make_counter(&m, 1, 1000, 2000);
	make_value(&m, 5, 10, 0);
	make_value(&m, 6, 10, 0); /* that nobody named */
	CHECK(gauges_event(&g, &ev) == 1);
	make_counter(&m, 1, 2000, 5000);
	make_value(&m, 5, 50, 0);
	CHECK(gauges_event(&g, &ev) == 1);
	make_counter(&m, 1, 5000, 6000);
	make_value(&m, 5, 104, CT_VALUE_SUSPECT);
	make_value(&m, 5, NAN, 0);
	CHECK(gauges_event(&g, &ev) == 1);
	make_counter(&m, 0, 5000, 6000);
	make_value(&m, 5, 7, 0);
	CHECK(gauges_event(&g, &ev) == 1);
	if (CHECK_EQ(2, g.n)) {
		CHECK_EQ(0, g.list[0].device);
		CHECK_EQ(1, g.list[1].device);
	}
	CHECK(gauge_mean(&g.list[1]) == 40);
	CHECK(g.list[1].least == 10);
	CHECK(g.list[1].most == 50);
	CHECK(g.list[1].samples == 2 && g.list[1].suspect == 1);
	CHECK_TEXT("sm", g.list[1].name);
	gauges_close(&g);
	metric_table_close(metrics);
}

static void test_sizes(void)
{
	struct book *b = book_open(BOOK_BY_FUNCTION, true, 0);
	struct made_device m;
	struct report *r;

	for (uint64_t i = 1; i <= 4; i++) {
		make_copy(&m, MAKE_AT(7, 0, 1, 7, 1, 1000 * i, 1000 * i + 500), CT_COPY_HTOD,
			  CT_MEM_PINNED, CT_MEM_DEVICE, 1000 * i);
		give(b, &m.h, NULL);
	}
	make_set(&m, MAKE_AT(7, 0, 1, 7, 1, 9000, 9100), CT_MEM_DEVICE, 0, 64);
	give(b, &m.h, NULL);
	r = report_make(b);
	CHECK(r->nrows[REPORT_COPIES] == 2 && r->device);
	CHECK(r->rows[REPORT_COPIES][0].sizes->n.ns == 10000 &&
	      r->rows[REPORT_COPIES][0].sizes->n.min_ns == 1000);
	CHECK(fabs(book_deviation_ns(&r->rows[REPORT_COPIES][0].sizes->n) - sqrt(1250000)) < 1e-6);
	CHECK(fabs((double)r->rows[REPORT_COPIES][0].median_bytes - 2000) <= 200);
	CHECK_EQ(10000, r->traffic[REPORT_HTOD].bytes);
	CHECK_EQ(2000, r->traffic[REPORT_HTOD].ns);
	CHECK_EQ(1, r->traffic[REPORT_SET].copies);
	CHECK(r->span_ns == 8100);
	report_free(r);
	book_close(b);
}

/* The calls of the same functions told apart by the stream that each was given. */
static void test_no_stream(void)
{
	static const struct {
		const char *func, *label;
		uint64_t word; /* all arguments */
	} calls[] = {
		{ "cudaMalloc", "app 3 no stream  cudaMalloc", 64 },
		{ "cudaFree", "app 3 no stream  cudaFree", 64 },
		{ "cudaStreamQuery", "app 3 stream 0x0  cudaStreamQuery", 0 },
		/* in a struct, which was not read */
		{ "cudaLaunchKernelExC", "app 3 stream ?  cudaLaunchKernelExC", 64 },
	};
	struct book *b = book_open(BOOK_BY_STREAM, true, 0);
	struct report *r;

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct made_call m;
		uint64_t w = calls[i].word;

		make_call(&m, calls[i].func, CT_CALL, 0, 0, U(w), U(w), U(w), U(w), U(w), U(w));
		give(b, &m.c.h, NULL);
	}
	r = report_make(b);
	CHECK(r->nrows[REPORT_CALLS + API_RUNTIME] == ARRAY_LEN(calls));
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		bool found = false;

		for (size_t k = 0; k < r->nrows[REPORT_CALLS + API_RUNTIME]; k++)
			found |= strlen(calls[i].label) ==
					 r->rows[REPORT_CALLS + API_RUNTIME][k].label.len &&
				 !memcmp(calls[i].label,
					 r->rows[REPORT_CALLS + API_RUNTIME][k].label.s,
					 r->rows[REPORT_CALLS + API_RUNTIME][k].label.len);
		CHECK(found);
	}
	report_free(r);
	book_close(b);
}

/* ---- occupancy ---- */

static struct ct_device chip(uint32_t major, uint32_t warps, uint32_t blocks, uint32_t shared_kib)
{
	return (struct ct_device){ .major = major,
				   .max_warps = warps,
				   .max_blocks = blocks,
				   .max_registers = 65536,
				   .max_shared = shared_kib << 10,
				   .warp_size = 32 };
}

static void test_occupancy(void)
{
	struct ct_device v100 = chip(7, 64, 32, 96), t4 = chip(7, 32, 16, 64),
			 a100 = chip(8, 64, 32, 164), a10 = chip(8, 48, 16, 100),
			 h100 = chip(9, 64, 32, 228), b200 = chip(10, 64, 32, 228);
	/* as cudaOccMaxActiveBlocksPerMultiprocessor() of cuda_occupancy.h (CUDA 13.0) gives
	 * blocks, times warps of a block, shared memory preferred as far as it goes */
	const struct {
		const struct ct_device *chip;
		uint32_t block, registers, shared;
		unsigned int warps;
	} known[] = {
		{ &v100, 256, 32, 0, 64 },	{ &v100, 256, 64, 50176, 8 },
		{ &v100, 128, 40, 2048, 48 },	{ &v100, 1024, 64, 0, 32 },
		{ &v100, 1024, 65, 0, 0 },	{ &v100, 96, 33, 1000, 48 },
		{ &v100, 512, 128, 16384, 16 }, { &v100, 192, 255, 1, 6 },
		{ &v100, 64, 24, 7000, 26 },	{ &v100, 384, 80, 0, 24 },
		{ &v100, 33, 20, 100, 64 },	{ &t4, 256, 32, 0, 32 },
		{ &t4, 256, 64, 50176, 8 },	{ &t4, 128, 40, 2048, 32 },
		{ &t4, 1024, 64, 0, 32 },	{ &t4, 1024, 65, 0, 0 },
		{ &t4, 96, 33, 1000, 30 },	{ &t4, 512, 128, 16384, 16 },
		{ &t4, 192, 255, 1, 6 },	{ &t4, 64, 24, 7000, 18 },
		{ &t4, 384, 80, 0, 24 },	{ &t4, 33, 20, 100, 32 },
		{ &a100, 256, 32, 0, 64 },	{ &a100, 256, 64, 50176, 24 },
		{ &a100, 128, 40, 2048, 48 },	{ &a100, 1024, 64, 0, 32 },
		{ &a100, 1024, 65, 0, 0 },	{ &a100, 96, 33, 1000, 48 },
		{ &a100, 512, 128, 16384, 16 }, { &a100, 192, 255, 1, 6 },
		{ &a100, 64, 24, 7000, 40 },	{ &a100, 384, 80, 0, 24 },
		{ &a100, 33, 20, 100, 64 },	{ &a10, 256, 32, 0, 48 },
		{ &a10, 256, 64, 50176, 16 },	{ &a10, 128, 40, 2048, 48 },
		{ &a10, 1024, 64, 0, 32 },	{ &a10, 1024, 65, 0, 0 },
		{ &a10, 96, 33, 1000, 48 },	{ &a10, 512, 128, 16384, 16 },
		{ &a10, 192, 255, 1, 6 },	{ &a10, 64, 24, 7000, 24 },
		{ &a10, 384, 80, 0, 24 },	{ &a10, 33, 20, 100, 32 },
		{ &h100, 256, 32, 0, 64 },	{ &h100, 256, 64, 50176, 32 },
		{ &h100, 128, 40, 2048, 48 },	{ &h100, 1024, 64, 0, 32 },
		{ &h100, 1024, 65, 0, 0 },	{ &h100, 96, 33, 1000, 48 },
		{ &h100, 512, 128, 16384, 16 }, { &h100, 192, 255, 1, 6 },
		{ &h100, 64, 24, 7000, 56 },	{ &h100, 384, 80, 0, 24 },
		{ &h100, 33, 20, 100, 64 },	{ &b200, 256, 32, 0, 64 },
		{ &b200, 256, 64, 50176, 32 },	{ &b200, 128, 40, 2048, 48 },
		{ &b200, 1024, 64, 0, 32 },	{ &b200, 1024, 65, 0, 0 },
		{ &b200, 96, 33, 1000, 48 },	{ &b200, 512, 128, 16384, 16 },
		{ &b200, 192, 255, 1, 6 },	{ &b200, 64, 24, 7000, 56 },
		{ &b200, 384, 80, 0, 24 },	{ &b200, 33, 20, 100, 64 },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		struct book_shape k = { .block = known[i].block,
					.registers = known[i].registers,
					.shared = known[i].shared };
		double got = report_occupancy(&k, known[i].chip) * known[i].chip->max_warps;

		if (fabs(got - known[i].warps) > 1e-9)
			printf("row %zu: %g warps, not %u\n", i, got, known[i].warps);
		CHECK(fabs(got - known[i].warps) < 1e-9);
	}
	/* what cannot be, or is not known */
	CHECK(report_occupancy(&(struct book_shape){ .registers = 32 }, &h100) < 0);
	CHECK(report_occupancy(&(struct book_shape){ .block = 2048 }, &h100) < 0);
	CHECK(report_occupancy(&(struct book_shape){ .block = 32, .registers = CT_UNKNOWN },
			       &h100) < 0);
	CHECK(report_occupancy(&(struct book_shape){ .block = 32, .shared = CT_UNKNOWN }, &h100) <
	      0);
	CHECK(report_occupancy(&(struct book_shape){ .block = 32 },
			       &(struct ct_device){ .major = 9 }) < 0);
	/* sizes that no device has, whose sums and products would come to nothing */
	struct ct_device odd = h100;

	for (size_t i = 0; i < 4; i++) {
		static const uint32_t warps[] = { UINT32_MAX, 0x80000000u, 0x01000000u, 1024 };

		odd.warp_size = warps[i];
		CHECK((report_occupancy(&(struct book_shape){ .block = 64, .registers = 256 },
					&odd) < 0) == (i < 3));
	}
	odd = h100;
	odd.max_shared = UINT32_MAX;
	for (uint32_t shared = UINT32_MAX - 2048; shared; shared++)
		CHECK(report_occupancy(&(struct book_shape){ .block = 32, .shared = shared },
				       &odd) <= 1);
}

int main(void)
{
	RUN(test_durations);
	RUN(test_call_count);
	RUN(test_entered);
	RUN(test_entered_counted);
	RUN(test_room);
	RUN(test_until);
	RUN(test_busy);
	RUN(test_gauges);
	RUN(test_sizes);
	RUN(test_no_stream);
	RUN(test_occupancy);
	return unit_end();
}
