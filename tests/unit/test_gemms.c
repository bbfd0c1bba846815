/* SPDX-License-Identifier: BSD-2-Clause */
/* test_gemms.c - products of matrices: what calls say, the classes of kernels, the peaks of devices. */
#include "../../user/event/scopes/products/descriptors.h"
#include "../../user/event/scopes/products/gemms.h"
#include "../../user/event/scopes/lineage.h"
#include "../../user/event/device.h"
#include "../../user/event/scopes/peak.h"
#include "../../user/sums/work_class.h"
#include "make_call.h"
#include "unit.h"

#define U(x) ((uint64_t)(x))

/* The layout that cublasLtMatrixLayoutInit() of cuBLASLt 12.1, 12.9 and 13.1 writes. */
static void layout(uint64_t words[8], uint32_t type, uint64_t rows, uint64_t cols, uint32_t batch)
{
	memset(words, 0, 64);
	words[0] = type;
	words[1] = rows;
	words[2] = cols;
	words[3] = rows;
	words[4] = batch;
}

struct matmul {
	uint64_t desc[32], a[8], b[8], d[8];
};

static void matmul(struct matmul *m)
{
	memset(m, 0, sizeof(*m));
	m->desc[0] = 6;
	m->desc[1] = 77;	 /* CUBLAS_COMPUTE_32F_FAST_TF32 */
	m->desc[2] = 1ULL << 32; /* A is transposed */
	layout(m->a, 14, 256, 512, 4);
	layout(m->b, 14, 256, 128, 4);
	layout(m->d, 0, 512, 128, 4);
}

static struct ct_gemm said(struct matmul *m)
{
	struct ct_gemm g;
	struct made_call made;

	make_mem(0x1000, m->desc, sizeof(m->desc));
	make_mem(0x2000, m->a, sizeof(m->a));
	make_mem(0x3000, m->b, sizeof(m->b));
	make_mem(0x4000, m->d, sizeof(m->d));
	gemms_begin(make_call(&made, "cublasLtMatmul", CT_LAYER_BEGIN, 0, 0, U(1), U(0x1000), U(1),
			      U(1), U(0x2000), U(1), U(0x3000), U(1), U(1), U(0x4000), U(1),
			      U(0x4000)),
		    &g);
	return g;
}

static void test_layouts(void)
{
	struct matmul m;
	struct ct_gemm g;
	char text[160];

	matmul(&m);
	g = said(&m);
	CHECK_EQ(2ULL * 512 * 128 * 256 * 4, g.flop);
	CHECK_EQ(77, g.compute);
	gemm_text(&g, text, sizeof(text));
	CHECK(!strcmp(text, "512 x 128 x 256, batch 4, bfloat16 -> float32, TN"));

	/* the operation does not fit the shapes, which say the same without it */
	m.desc[2] = 0;
	g = said(&m);
	gemm_text(&g, text, sizeof(text));
	CHECK(!strcmp(text, "512 x 128 x 256, batch 4, bfloat16 -> float32"));
	CHECK_EQ(CT_UNKNOWN, g.compute);

	/* shapes that do not fit each other, and what is no layout */
	for (int i = 0; i < 8; i++) {
		matmul(&m);
		switch (i) {
		case 0: m.b[1] = 255; break;
		case 1: m.d[2] = 127; break;
		case 2: m.a[0] = 999; break;
		case 3: m.a[0] |= 77ULL << 32; break;
		case 4: m.d[1] = 0; break;
		case 5: m.d[1] = ~0ULL; break;
		case 6: m.d[4] = 0; break;
		case 7: memset(m.a, 0xa5, sizeof(m.a)); break;
		}
		g = said(&m);
		CHECK_EQ(0, g.flop);
		CHECK_EQ(0, g.flags);
		gemm_text(&g, text, sizeof(text));
		CHECK(!strcmp(text, "?, ?"));
	}
}

static struct ct_gemm sgemm(int64_t m, int64_t n, int64_t k)
{
	struct ct_gemm g;
	struct made_call made;

	gemms_begin(make_call(&made, "cublasSgemm_v2_64", CT_LAYER_BEGIN, 0, 0, U(1), U(0), U(1),
			      U(m), U(n), U(k)),
		    &g);
	return g;
}

/* What no matrix has is not known, and never a wrong number. */
static void test_bounds(void)
{
	static const int64_t bad[] = { -1, INT64_MIN, INT64_MAX, 1LL << 41 };

	CHECK_EQ(2ULL * 3 * 4 * 5, sgemm(3, 4, 5).flop);
	CHECK_EQ(CT_GEMM_SHAPE, sgemm(3, 4, 5).flags);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_EQ(0, sgemm(bad[i], 4, 5).flop);
		CHECK_EQ(0, sgemm(3, bad[i], 5).flags);
		CHECK_EQ(0, sgemm(3, 4, bad[i]).flags);
	}
	/* FLOP that 64 bits do not hold */
	CHECK_EQ(0, sgemm(1LL << 30, 1LL << 30, 1LL << 30).flop);
	CHECK_EQ(0, sgemm(1LL << 30, 1LL << 30, 1LL << 30).flags);
}

/* The peaks that NVIDIA states, within a hundredth. */
static void test_peaks(void)
{
	static const struct {
		uint32_t major, minor, multiprocessors, mhz;
		enum peak_type type;
		double tflops;
	} rows[] = {
		{ 7, 0, 80, 1530, PEAK_FLOAT16, 125 },	 { 8, 0, 108, 1410, PEAK_BFLOAT16, 312 },
		{ 8, 0, 108, 1410, PEAK_TF32, 156 },	 { 8, 0, 108, 1410, PEAK_FLOAT32, 19.5 },
		{ 8, 0, 108, 1410, PEAK_FLOAT64, 19.5 }, { 9, 0, 132, 1830, PEAK_FLOAT16, 989 },
		{ 9, 0, 132, 1830, PEAK_TF32, 495 },	 { 9, 0, 132, 1830, PEAK_FLOAT8, 1979 },
		{ 9, 0, 132, 1980, PEAK_FLOAT32, 67 },	 { 10, 0, 148, 1855, PEAK_FLOAT16, 2250 },
		{ 8, 9, 128, 2520, PEAK_FLOAT16, 0 },	 { 7, 0, 80, 1530, PEAK_BFLOAT16, 0 },
		{ 9, 0, 132, 1980, PEAK_UNKNOWN, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ct_device d = { .h = { .size = sizeof(d), .kind = CT_DEVICE, .pid = 7 },
				       .id = 1,
				       .major = rows[i].major,
				       .minor = rows[i].minor,
				       .multiprocessors = rows[i].multiprocessors,
				       .clock_khz = rows[i].mhz * 1000 };
		struct devices p;
		double got;

		CASE_ROW("row %zu", i);
		devices_open(&p);
		devices_record(&p, &d.h);
		got = peak_of(devices_find(&p, 7, 1), rows[i].type) / 1e12;
		CHECK(got >= 0.99 * rows[i].tflops && got <= 1.01 * rows[i].tflops);
		CHECK(!peak_of(devices_find(&p, 7, 0), rows[i].type)); /* another device */
		devices_close(&p);
	}
}

/* Many processes come one after the other: the newest have their devices, and so has one that
 * runs all the time. A process whose number was used before has only its own devices. */
static void test_peaks_of_many(void)
{
	struct ct_device d = { .h = { .size = sizeof(d), .kind = CT_DEVICE },
			       .major = 9,
			       .multiprocessors = 132,
			       .clock_khz = 1980000 };
	struct ct_exit gone = { .h = { .size = sizeof(gone), .kind = CT_EXIT } };
	struct ct_process next = { .h = { .size = sizeof(next), .kind = CT_PROCESS },
				   .start_boottime_ns = 1 };
	struct devices p;

	devices_open(&p);
	for (uint32_t pid = 1; pid <= 70000; pid++) {
		d.h.pid = pid;
		devices_record(&p, &d.h);
		CHECK(peak_of(devices_find(&p, pid, 0), PEAK_FLOAT64) > 0);
		gone.h.pid = pid;
		gone.h.end_ns = pid * 1000000000ULL;
		if (pid == 7)
			continue;
		devices_record(&p, &gone.h);
		CHECK(peak_of(devices_find(&p, pid, 0), PEAK_FLOAT64) >
		      0); /* its last kernels may come yet */
	}
	CHECK(peak_of(devices_find(&p, 7, 0), PEAK_FLOAT64) > 0);
	CHECK(!peak_of(devices_find(&p, 8, 0), PEAK_FLOAT64));
	next.h.pid = 70000;
	devices_record(&p, &next.h);
	CHECK(!peak_of(devices_find(&p, 70000, 0), PEAK_FLOAT64));
	devices_close(&p);
}

static void test_types(void)
{
	static const struct {
		uint32_t a, b;
		const char *kernel;
		enum peak_type type;
	} rows[] = {
		{ 2, 2, NULL, PEAK_FLOAT16 },
		{ 14, 14, NULL, PEAK_BFLOAT16 },
		{ 28, 29, NULL, PEAK_FLOAT8 },
		{ 0, 0, NULL, PEAK_UNKNOWN },
		{ 0, 0, "ampere_sgemm_128x64_tn", PEAK_FLOAT32 },
		{ 0, 0, "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n", PEAK_FLOAT32 },
		{ 0, 0, "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", PEAK_TF32 },
		{ 0, 0, "cutlass_80_tensorop_s1688gemm_128x128", PEAK_TF32 },
		{ 0, 0, "some_other_kernel", PEAK_UNKNOWN },
		{ 2, 14, NULL, PEAK_UNKNOWN },
		{ CT_UNKNOWN, CT_UNKNOWN, NULL, PEAK_UNKNOWN },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ct_gemm g = { .a_type = rows[i].a, .b_type = rows[i].b };

		CASE_ROW("row %zu", i);
		CHECK_EQ(rows[i].type, peak_type(&g, rows[i].kernel));
	}
	CHECK_EQ(PEAK_UNKNOWN, peak_type(NULL, NULL));
}

/* What the row of a kernel says of the product that it computes. */
static void test_kernel_rows(void)
{
	const struct ct_gemm gemm = { .flop = 2000000 };
	const struct scope_line line = { .flop = 2000000, .gemm = &gemm };
	struct kernel_name name = { .mangled = "nvjet_tst_128x256" },
			   sum = { .mangled = "void cublasLt::splitKreduce_kernel<32>" };
	struct ct_kernel k = {
		.w.h = { .size = sizeof(k), .kind = CT_KERNEL, .start_ns = 100, .end_ns = 1100 }
	};
	struct event ev = { .rec = &k.w.h, .kernel = &name, .product = &line, .peak = 4e12 };
	struct product p;

	CHECK(product_of(&ev, &p));
	CHECK_EQ(2000000, p.flop);
	CHECK(p.rate == 2e12 && p.share == 0.5);
	ev.peak = 0;
	CHECK(product_of(&ev, &p) && p.rate == 2e12 && p.share < 0);
	k.w.h.flags = CT_F_NO_TIME;
	CHECK(product_of(&ev, &p) && p.rate < 0);
	/* it adds up the parts of the product, in less time */
	ev.kernel = &sum;
	CHECK(!product_of(&ev, &p));
	ev.kernel = &name;
	ev.product = NULL;
	CHECK(!product_of(&ev, &p));
}

static void test_classes(void)
{
	static const struct {
		const char *kernel, *class;
	} rows[] = {
		{ "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "gemm" },
		{ "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn", "gemm" },
		{ "void cublasLt::splitKreduce_kernel<32, 16, int>", "gemm" },
		{ "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>",
		  "attention" },
		{ "fmha_cutlassF_f16_aligned_64x64_rf_sm80", "attention" },
		{ "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		  "collective" },
		{ "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>",
		  "elementwise" },
		{ "triton_poi_fused_add_relu_0", "elementwise" },
		{ "triton_per_fused_native_layer_norm_1", "reduction" },
		{ "void at::native::reduce_kernel<512, 1>", "reduction" },
		{ "void at::native::multi_tensor_apply_kernel<at::native::FusedAdam>",
		  "optimizer" },
		{ "my_kernel", "other" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct kernel_name name = { .mangled = rows[i].kernel, .full = rows[i].kernel };
		struct ct_kernel k = { .w.h = { .size = sizeof(k), .kind = CT_KERNEL } };
		struct lineage *l = lineage_open();
		struct event ev = { .rec = &k.w.h, .kernel = &name, .lineage = l };

		CASE_ROW("row %zu", i);
		CHECK(!strcmp(rows[i].class, work_class(&ev)));
		ev.kernel = NULL;
		CHECK(!work_class(&ev));
		k.w.h.kind = CT_COPY;
		CHECK(!strcmp(work_class(&ev), "copy"));
		lineage_close(l);
	}
}

/* ---- descriptors ---- */

static void attribute(struct descriptors *d, uint64_t of, uint64_t name, uint64_t type, uint64_t n,
		      const uint64_t *elements)
{
	uint64_t room[64] = { 0 };
	struct made_call made;

	/* there may be fewer than is said */
	memcpy(room, elements, (size_t)(n < 9 ? n : 9) * 8);
	make_nmemory = 0;
	make_mem(0x1000, room, (size_t)(n < 64 ? n : 64) * 8);
	descriptors_learn(d, make_call(&made, "cudnnBackendSetAttribute", CT_LAYER_BEGIN, 0, 0,
				       U(of), U(name), U(type), U(n), U(0x1000)));
}

static void sized(struct descriptors *d, uint64_t of, uint64_t rank, const uint64_t *sizes)
{
	attribute(d, of, 901, 1, 1, &(uint64_t){ 2 });
	attribute(d, of, 902, 3, rank, sizes);
}

/* A plan at 9 for a convolution of x at 1, w at 2 and y at 3. */
static void plan(struct descriptors *d, uint64_t rank, const uint64_t *x, const uint64_t *w,
		 const uint64_t *y)
{
	sized(d, 1, rank, x);
	sized(d, 2, rank, w);
	sized(d, 3, rank, y);
	attribute(d, 4, 704, 15, 1, &(uint64_t){ 1 });
	attribute(d, 4, 703, 15, 1, &(uint64_t){ 2 });
	attribute(d, 4, 705, 15, 1, &(uint64_t){ 3 });
	attribute(d, 5, 801, 15, 1, &(uint64_t){ 4 });
	attribute(d, 6, 1300, 15, 1, &(uint64_t){ 5 });
	attribute(d, 7, 300, 15, 1, &(uint64_t){ 6 });
	attribute(d, 9, 401, 15, 1, &(uint64_t){ 7 });
}

static uint64_t flop_of_plan(struct descriptors *d, char text[256])
{
	struct made_call made;
	struct ct_gemm g;

	descriptors_begin(
		d, make_call(&made, "cudnnBackendExecute", CT_LAYER_BEGIN, 0, 0, U(1), U(9), U(1)),
		&g, text, 256);
	CHECK_EQ(CT_GEMM_NETWORK, g.flags & CT_GEMM_NETWORK);
	CHECK_EQ(!g.flop, !(g.flags & CT_GEMM_SHAPE));
	return g.flop;
}

static void test_descriptors(void)
{
	static const uint64_t x[] = { 4, 8, 9, 9, 1, 1, 1, 1, 1 },
			      w[] = { 16, 8, 3, 3, 1, 1, 1, 1, 1 },
			      y[] = { 4, 16, 7, 7, 1, 1, 1, 1, 1 };
	struct descriptors *d = descriptors_open();
	char text[256];

	plan(d, 4, x, w, y);
	CHECK_EQ(2ULL * 4 * 16 * 7 * 7 * 8 * 3 * 3, flop_of_plan(d, text));
	CHECK(!strcmp(text, "forward, x[4, 8, 9, 9], w[16, 8, 3, 3], y[4, 16, 7, 7]"));

	/* sizes that no tensor has, or that do not fit each other */
	for (int i = 0; i < 9; i++) {
		uint64_t bad[3][9];

		memcpy(bad[0], x, sizeof(x));
		memcpy(bad[1], w, sizeof(w));
		memcpy(bad[2], y, sizeof(y));
		switch (i) {
		case 0: bad[0][0] = 0; break;
		case 1: bad[1][1] = 0; break;
		case 2: bad[0][2] = ~0ULL; break;
		case 3: bad[2][1] = 15; break;
		case 4: bad[1][1] = 3; break;
		case 5: bad[2][0] = 5; break;
		case 6: bad[2][2] = bad[2][3] = 1ULL << 40; break;
		case 7: bad[1][2] = bad[1][3] = 1ULL << 31; break;
		case 8: bad[1][0] = bad[2][1] = (1ULL << 40) + 1; break;
		}
		CASE_ROW("case %d", i);
		plan(d, 4, bad[0], bad[1], bad[2]);
		CHECK_EQ(0, flop_of_plan(d, text));
		CHECK(!*text);
	}
	for (uint64_t rank = 0; rank < 64; rank++) {
		if (rank >= 3 && rank <= 8)
			continue;
		CASE_ROW("rank %d", (int)rank);
		plan(d, rank, x, w, y);
		CHECK_EQ(0, flop_of_plan(d, text));
	}

	/* another thing is at the address of the operation now; the plan was destroyed; records were lost */
	plan(d, 4, x, w, y);
	attribute(d, 4, 750, 15, 1, &(uint64_t){ 1 });
	attribute(d, 5, 801, 15, 1, &(uint64_t){ 4 });
	attribute(d, 9, 401, 15, 1, &(uint64_t){ 5 });
	CHECK_EQ(0, flop_of_plan(d, text));
	CHECK(!strcmp(text, "no product"));
	plan(d, 4, x, w, y);
	descriptors_lost(d);
	CHECK_EQ(0, flop_of_plan(d, text));
	plan(d, 4, x, w, y);
	CHECK(flop_of_plan(d, text) > 0);

	/* more descriptors than one process may have */
	for (uint64_t i = 0; i < 10000; i++)
		sized(d, 100 + i, 4, x);
	CHECK(descriptors_dropped(d) > 0);
	CHECK(flop_of_plan(d, text) > 0);
	descriptors_close(d);
}

int main(void)
{
	RUN(test_descriptors);
	RUN(test_layouts);
	RUN(test_bounds);
	RUN(test_peaks);
	RUN(test_peaks_of_many);
	RUN(test_types);
	RUN(test_kernel_rows);
	RUN(test_classes);
	return unit_end();
}
