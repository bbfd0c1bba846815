/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_nsys.c - rows a second into a database of nsys-sqlite: two calls, a kernel and a copy in
 * turn, with 1000 kernels' names. Arguments: rows (default 1000000), a directory for the file
 * (default /tmp). Prints processor time, and the memory at its most.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../unit/make_play.h"

#define KERNELS 1000

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	static char names[KERNELS][2][128];
	static struct kernel_name kernels[KERNELS];
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
	struct sink_opts opts = { .version = "bench", .start_ns = PLAY_START };
	struct sink_end end = { .reason = "finished" };
	struct made_device kernel, copy;
	struct made_call call;
	struct rusage usage;
	struct play p;
	char path[512];
	uint64_t begin;

	for (int i = 0; i < KERNELS; i++) {
		snprintf(names[i][0], 128,
			 "_ZN2at6native29vectorized_elementwise_kernelILi%dEEEviPfS2_", i);
		snprintf(names[i][1], 128,
			 "void at::native::vectorized_elementwise_kernel<%d>(int, float*, float*)",
			 i);
		kernels[i] = (struct kernel_name){ names[i][0], names[i][1], names[i][1],
						   CT_NAME_DEVICE, false };
	}
	snprintf(path, sizeof(path), "%s/ct_bench_nsys.%d", argc > 2 ? argv[2] : "/tmp",
		 (int)getpid());
	opts.path = path;
	play_begin(&p, &sink_nsys, &opts);
	play_devices(&p);
	PLAY_LAUNCH(&call, 0);
	make_kernel(&kernel, PLAY_AT(1, 0, 0), 1, 8, 256);
	make_copy(&copy, PLAY_AT(1, 0, 0), CT_COPY_HTOD, CT_MEM_PINNED, CT_MEM_DEVICE, 4096);
	begin = cpu_ns();
	for (long i = 0; i < n; i += 4) {
		struct ct_hdr *recs[4] = { &call.c.h, &kernel.h, &call.c.h, &copy.h };

		for (int k = 0; k < 4; k++) {
			recs[k]->pid = recs[k]->tid = 100;
			recs[k]->start_ns = PLAY_START + (uint64_t)(i + k) * 1000;
			recs[k]->end_ns = recs[k]->start_ns + 700;
			play_give(&p, (struct event){ .rec = recs[k],
						      .number = (uint32_t)(i / 4 + 1),
						      .kernel = &kernels[i / 4 % KERNELS] });
		}
	}
	play_end(&p, &end);
	begin = cpu_ns() - begin;
	getrusage(RUSAGE_SELF, &usage);
	unlink(path);
	printf("nsys-sqlite  %.0f rows a second of processor time (%.0f ns a row), %ld MiB of "
	       "memory at most\n",
	       (double)n * 1e9 / (double)begin, (double)begin / (double)n, usage.ru_maxrss / 1024);
	return unit_failed != 0;
}
