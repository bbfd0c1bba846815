/* SPDX-License-Identifier: BSD-2-Clause */
/* test_contexts.c - the device, the context and the stream that a call works on. */
#include "make_join.h"

/* ---- where calls work ---- */

static const struct seen *placed(struct join *j, struct taker *t, const char *name, uint32_t tid,
				 ...)
{
	static uint64_t at = 1000;
	struct made_call m;
	struct ct_call *c;
	va_list ap;

	va_start(ap, tid);
	c = make_callv(&m, row(name), CT_CALL, 0, 0, ap);
	va_end(ap);
	c->h.pid = 10;
	c->h.tid = tid;
	c->h.start_ns = at += 100;
	c->h.end_ns = at + 50;
	give(j, c);
	return last(t);
}

#define PLACE(d, c, s) \
	(p->device == (uint32_t)(d) && p->context == (uint32_t)(c) && p->stream == (uint32_t)(s))

static void test_where(void)
{
	static const uint64_t context = 0xc1, primary = 0xc0;
	static const int32_t one = 1;
	struct made_device m;
	struct taker t;
	struct join *j = begin(&t, false);
	const struct seen *p;

	make_nmemory = 0;
	make_mem(0x1000, &context, 8);
	make_mem(0x2000, &primary, 8);
	make_mem(0x3000, &one, 4);
	/* nothing known: not 0 */
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	/* a device is set: its context is known once the agent has told of one */
	placed(j, &t, "cudaSetDevice", 11, U(1));
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(1, -1, -1));
	p = placed(j, &t, "cudaMalloc", 12, U(0x9000), U(4)); /* another thread */
	CHECK(PLACE(-1, -1, -1));
	give(j, make_context(&m, 10, 2, 1, 7, primary, 1));
	p = placed(j, &t, "cudaMemsetAsync", 11, U(1), U(2), U(3), U(0));
	CHECK(PLACE(1, 2, 7)); /* stream 0 is the context's null stream */
	p = placed(j, &t, "cudaMemsetAsync", 11, U(1), U(2), U(3), U(2));
	CHECK(PLACE(1, 2, -1)); /* the per-thread one is not known */
	/* told again, as after an attach: still the only one */
	give(j, make_context(&m, 10, 2, 1, 7, primary, 1));
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(1, 2, -1));
	/* a stream says where it is, also in a thread of which nothing is known */
	give(j, make_stream(&m, 10, 13, 2, 0x5500, 1, 1));
	p = placed(j, &t, "cudaMemsetAsync", 12, U(1), U(2), U(3), U(0x5500));
	CHECK(PLACE(1, 2, 13));
	p = placed(j, &t, "cudaMemsetAsync", 12, U(1), U(2), U(3), U(0x5508));
	CHECK(PLACE(-1, -1, -1));
	/* a context of the driver's: of its device, pushed; popped: what was before is not known
	 * by its handle */
	placed(j, &t, "cuCtxCreate_v2", 11, U(0x1000), U(0), U(3));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(3, -1, -1));
	give(j, make_context(&m, 10, 5, 3, 9, context, 1));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(3, 5, -1));
	placed(j, &t, "cuCtxPushCurrent_v2", 11, U(primary));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(1, 2, -1));
	placed(j, &t, "cuCtxPopCurrent_v2", 11, U(0x2000));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(3, 5, -1));
	placed(j, &t, "cuCtxPopCurrent_v2", 11, U(0x1000));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	/* set, asked, destroyed */
	placed(j, &t, "cuCtxSetCurrent", 11, U(context));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(3, 5, -1));
	placed(j, &t, "cuCtxDestroy_v2", 11, U(context));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	placed(j, &t, "cudaGetDevice", 12, U(0x3000));
	p = placed(j, &t, "cudaMalloc", 12, U(0x9000), U(4));
	CHECK(PLACE(1, -1, -1)); /* the device: which of its contexts is not said */
	placed(j, &t, "cuCtxGetCurrent", 12, U(0x2000));
	p = placed(j, &t, "cudaMalloc", 12, U(0x9000), U(4));
	CHECK(PLACE(1, 2, -1));
	placed(j, &t, "cuDevicePrimaryCtxRetain", 12, U(0x1000), U(6));
	placed(j, &t, "cuCtxSetCurrent", 12, U(context));
	p = placed(j, &t, "cudaMalloc", 12, U(0x9000), U(4));
	CHECK(p->device == 6);
	/* two contexts of one device: which one cudaSetDevice means is not known */
	give(j, make_context(&m, 10, 8, 1, 21, 0xc8, 1));
	placed(j, &t, "cudaSetDevice", 13, U(1));
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(1, -1, -1));
	placed(j, &t, "cudaDeviceReset", 13);
	give(j, make_context(&m, 10, 9, 1, 23, 0xc9, 1));
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(1, -1, -1));
	/* a reset ends a device's only context; a failed call says nothing; another program
	 * knows nothing */
	placed(j, &t, "cudaSetDevice", 13, U(5));
	give(j, make_context(&m, 10, 20, 5, 30, 0xd0, 1));
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(5, 20, -1));
	placed(j, &t, "cudaDeviceReset", 13);
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(5, -1, -1));
	give(j, make_context(&m, 10, 21, 5, 31, 0xd1, 1));
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(5, 21, -1));
	{
		struct made_call mc;
		struct ct_call *c = make_call(&mc, "cudaSetDevice", CT_CALL, 0, 101, U(99));

		c->h.pid = 10;
		c->h.tid = 13;
		give(j, c);
	}
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(5, 21, -1));
	/* a call that changes it whose end was not seen: not known; so too when records were
	 * lost, for all threads */
	for (int lost = 0; lost < 3; lost++) {
		struct made_call mc;
		struct ct_call *c = make_call(&mc, lost ? "cudaMalloc" : "cudaSetDevice", CT_CALL,
					      0, 0, U(5), U(4));
		struct ct_lost gap = { .h = { .size = sizeof(gap), .kind = CT_LOST },
				       .cause = CT_LOSS_RING,
				       .count = 1 };

		placed(j, &t, "cudaSetDevice", 13, U(5));
		p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
		CHECK(PLACE(5, 21, -1));
		c->h.pid = 10;
		c->h.tid = lost ? 14 : 13;
		c->h.flags = lost ? 0 : CT_F_UNFINISHED | CT_F_PENDING;
		give(j, c);
		p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
		CHECK(PLACE(5, 21, -1)); /* it has not returned yet */
		c->h.flags = lost ? 0 : CT_F_UNFINISHED;
		c->h.lost = lost == 1;
		if (lost == 2)
			join_record(j, &gap.h);
		else
			give(j, c);
		p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
		CHECK(PLACE(-1, -1, -1));
		/* a kernel that was launched before tells nothing of after */
		give(j, make_kernel(&m, MAKE_AT(10, 1, 2, 7, 13, 5000, 6000), 1, 1, 1));
		p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
		CHECK(PLACE(-1, -1, -1));
	}
	placed(j, &t, "cudaSetDevice", 13, U(5));
	give_process(j, CT_EXEC, 10, 1);
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	join_close(j);
	taker_free(&t);

	/* a thread of which nothing was told is where its kernels ran; one that was told of is
	 * where it was told */
	j = begin(&t, false);
	give(j, make_context(&m, 10, 2, 1, 7, primary, 1));
	for (uint32_t tid = 11; tid < 13; tid++) {
		if (tid == 12)
			placed(j, &t, "cudaSetDevice", 12, U(6));
		p = placed(j, &t, "cudaLaunchKernel", tid, U(1), U(1), U(1), U(1), U(1), U(0), U(0),
			   U(0));
		CHECK(PLACE(tid == 12 ? 6 : -1, -1, -1));
		give(j, make_cause(&m, 10, tid, tid, row("cudaLaunchKernel"), p->start_ns + 10,
				   p->start_ns + 20));
		give(j, make_kernel(&m, MAKE_AT(10, 1, 2, 7, tid, 5000, 6000), 1, 1, 1));
		CHECK(last(&t)->kind == CT_KERNEL && last(&t)->tid == tid);
		p = placed(j, &t, "cudaMemsetAsync", tid, U(1), U(2), U(3), U(0));
		CHECK(tid == 12 ? PLACE(6, -1, -1) : PLACE(1, 2, 7));
	}
	placed(j, &t, "cudaSetDevice", 11, U(6));
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(6, -1, -1));
	join_close(j);
	taker_free(&t);

	/* when not all such calls come, none is believed; what the agent tells of streams holds */
	{
		struct join_opts opts = { 0 };

		j = join_open(&opts, take, &t);
	}
	give(j, make_context(&m, 10, 2, 1, 7, primary, 1));
	give(j, make_stream(&m, 10, 13, 2, 0x5500, 1, 1));
	placed(j, &t, "cudaSetDevice", 11, U(1));
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	p = placed(j, &t, "cudaMemsetAsync", 11, U(1), U(2), U(3), U(0x5500));
	CHECK(PLACE(1, 2, 13));
	join_close(j);
	taker_free(&t);
}

int main(void)
{
	RUN(test_where);
	return unit_end();
}
