/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_advise.c - how long the rules of advise take for a long recording: steps of a training
 * of 8 processes on a device each, of launches, kernels, copies, allocations and waits, with
 * 2000 stacks and 500 kernels; every fourth record is out of order by some places. Then as many
 * of what takes the most memory: 200 processes on 4 devices each, with everything new each time.
 * Arguments: records (default 5000000), seconds that it may take (default: no limit), MiB that
 * it may take (default 200; what the rules keep, without what makes the records). Prints
 * processor time, and the memory at its most.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "../../user/advise/advise.h"
#include "../unit/make_call.h"
#include "../unit/make_device.h"
#include "../unit/random.h"

#define PROCS 8
#define STACKS 2000
#define KERNELS 500

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static long rss_mib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss / 1024;
}

static struct made_call launch, copy, alloc, back, sync_call;
static struct made_device kernel, moved;
static struct stack_frame frames[STACKS];
static const struct stack_frame *lists[STACKS];
static struct stack stacks[STACKS];
static char names[KERNELS][64];
static struct kernel_name kernels[KERNELS];
static struct process procs[PROCS];
static uint64_t address = 0xd000;
static struct advice *advice;

static void make(void)
{
	make_mem(0x1000, &address, sizeof(address));
	make_call(&launch, "cudaLaunchKernel", CT_CALL, 0, 0, U(0x5000), 8 | U(1) << 32, U(1),
		  256 | U(1) << 32, U(1), U(0x6000), U(0), U(0x5600));
	make_call(&copy, "cudaMemcpyAsync", CT_CALL, 0, 0, U(0xd000), U(0xa000), U(4096), U(1),
		  U(0x5600));
	make_call(&alloc, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(4096));
	make_call(&back, "cudaFree", CT_CALL, 0, 0, U(0xd000));
	make_call(&sync_call, "cudaStreamSynchronize", CT_CALL, 0, 0, U(0x5600));
	make_kernel(&kernel, MAKE_AT(1, 0, 1, 13, 1, 0, 0), 1, 8, 256);
	make_copy(&moved, MAKE_AT(1, 0, 1, 7, 1, 0, 0), CT_COPY_HTOD, CT_MEM_PAGEABLE,
		  CT_MEM_DEVICE, 4096);
	moved.copy.flags = CT_W_ASYNC;
	for (int i = 0; i < STACKS; i++) {
		frames[i] = (struct stack_frame){
			CT_FRAME_PYTHON,       (uint32_t)i, 0x1000, 0, "forward", NULL,
			"/srv/train/model.py", NULL
		};
		lists[i] = &frames[i];
		stacks[i] =
			(struct stack){ .id = (uint32_t)i + 1, .nframes = 1, .frames = &lists[i] };
	}
	for (int i = 0; i < KERNELS; i++) {
		snprintf(names[i], sizeof(names[i]), "void at::native::kernel<%d>(int, float*)", i);
		kernels[i] =
			(struct kernel_name){ names[i], names[i], names[i], CT_NAME_DEVICE, false };
	}
	for (uint32_t i = 0; i < PROCS; i++)
		procs[i] = (struct process){ .pid = i + 1,
					     .shown_pid = i + 1,
					     .start_boottime_ns = 1ULL << 40,
					     .comm = "python3" };
}

static void give(struct ct_hdr *h, int proc, uint64_t start, uint64_t took,
		 const struct cause *cause, long i)
{
	h->pid = (uint32_t)proc + 1;
	h->tid = (uint32_t)proc + 1 + (uint32_t)(i % 3 == 0);
	h->start_ns = start;
	h->end_ns = start + took;
	if (advise_event(advice, &(struct event){ .rec = h,
						  .proc = &procs[proc],
						  .cause = cause,
						  .kernel = &kernels[i % KERNELS],
						  .stack = &stacks[i % STACKS],
						  .device = 0,
						  .context = 1,
						  .stream = 13 }) < 0)
		exit(1);
}

static void training(long n)
{
	static uint64_t clocks[PROCS];

	for (long i = 0, k = 0; k < n; i++) {
		int p = (int)(i % PROCS);
		uint64_t now = 1000000000 + clocks[p];
		struct cause cause = { now, now + 4000, (uint32_t)p + 1, launch.c.func };

		give(&launch.c.h, p, now, 4000, NULL, i);
		kernel.kernel.name = CT_HANDLE_DEVICE | (uint64_t)(i % KERNELS);
		give(&kernel.h, p, now + (i % 4 ? 5000 : 90000), 3000 + (uint64_t)(i % 7) * 1000,
		     &cause, i);
		k += 2;
		if (i % 3 == 0) {
			give(&copy.c.h, p, now + 4000, 3000, NULL, i);
			give(&moved.h, p, now + 8000, 2000, &cause, i);
			k += 2;
		}
		if (i % 50 < 10) {
			give(&alloc.c.h, p, now + 8000, 90000, NULL, i);
			/* every tenth is never given back */
			address = back.c.words[0] = 0xd000 + (uint64_t)(i % 10 ? 0 : i) * 4096;
			memcpy((char *)alloc.c.words + alloc.c.nwords * 8, &address, 8);
			if (i % 10)
				give(&back.c.h, p, now + 98000, 50000, NULL, i);
			give(&sync_call.c.h, p, now + 150000, 30000, NULL, i);
			clocks[p] += 180000;
			k += 3;
		}
		clocks[p] += i % 20000 ? 12000 : 5000000;
	}
}

static uint64_t seed = RANDOM_SEED;
static uint32_t rnd(void)
{
	random_next(&seed);
	return (uint32_t)(seed >> 20);
}

static void wide(long n)
{
	struct ct_hdr *recs[] = { &launch.c.h, &kernel.h,  &copy.c.h,
				  &moved.h,    &alloc.c.h, &sync_call.c.h };

	for (long i = 0; i < n; i++) {
		struct ct_hdr *h = recs[i % 6];
		struct process proc = { .pid = rnd() % 200 + 1,
					.start_boottime_ns = 1ULL << 40,
					.comm = "wide" };
		uint64_t now = 1000000000 + (uint64_t)i * 3000 + rnd() % 20000000;
		struct cause cause = { now, now + 900000, proc.pid, launch.c.func };

		kernel.kernel.name = CT_HANDLE_DEVICE | rnd() % 100000;
		kernel.kernel.grid[0] = rnd() % 1000;
		kernel.work.device = moved.work.device = rnd() % 4;
		address = (uint64_t)rnd() << 12;
		memcpy((char *)alloc.c.words + alloc.c.nwords * 8, &address, 8);
		h->pid = proc.pid;
		h->tid = proc.pid * 1000 + rnd() % 100;
		h->start_ns = now;
		h->end_ns = now + rnd() % 1000000;
		if (advise_event(advice, &(struct event){ .rec = h,
							  .proc = &proc,
							  .cause = &cause,
							  .kernel = &kernels[rnd() % KERNELS],
							  .stack = &stacks[rnd() % STACKS],
							  .device = 0,
							  .context = 1,
							  .stream = 13 }) < 0)
			exit(1);
	}
}

/* Returns 1 when it took more than it may. */
static int measure(const char *name, void (*give_all)(long), long n, long limit_s, long limit_mib)
{
	static long before;
	long after;
	uint64_t begin = cpu_ns();
	size_t findings;

	before = before ? before : rss_mib();
	advice = advise_open(NULL);
	if (!advice)
		return 1;
	give_all(n);
	if (!advise_finish(advice, 0, &findings))
		return 1;
	begin = cpu_ns() - begin;
	after = rss_mib();
	printf("advise       %s: %ld records in %.2f s of processor time (%.0f ns a record), %zu "
	       "findings, %ld MiB of memory\n",
	       name, n, (double)begin / 1e9, (double)begin / (double)n, findings, after - before);
	advise_close(advice);
	if (limit_s && begin > (uint64_t)limit_s * 1000000000ULL)
		printf("advise       took longer than %ld s\n", limit_s);
	if (after - before > limit_mib)
		printf("advise       took more than %ld MiB\n", limit_mib);
	return (limit_s && begin > (uint64_t)limit_s * 1000000000ULL) || after - before > limit_mib;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 5000000,
	     limit_s = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	long limit_mib = argc > 3 ? strtol(argv[3], NULL, 10) : 200;
	int bad;

	make();
	bad = measure("a training", training, n, limit_s, limit_mib);
	return measure("all new", wide, n, 0, limit_mib) || bad;
}
