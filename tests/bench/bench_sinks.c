/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_sinks.c - what the consumer pays for one call: check, process table, filter, decoding,
 * formatting, writing. Feeds records of three functions in turn (a small, a large and a throttled
 * one) to each format, and prints the best of some rounds in nanoseconds a call. Arguments: the
 * number of calls of a round (default 1000000), a directory for the file (default /tmp). For the
 * timelines also a launch and its kernel, and the memory that they take.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../user/event/select.h"
#include "../../user/flow/sink.h"
#include "../unit/make_call.h"
#include "../unit/make_device.h"

#define ROUNDS 5

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

struct pipeline {
	struct process_table *procs;
	struct filter filter;
	struct sink sink;
	uint64_t shown;
};

static void take(struct pipeline *p, const struct ct_hdr *rec)
{
	struct event ev = { .rec = rec };

	if (record_check(rec, rec->size) || process_table_record(p->procs, rec))
		return;
	ev.proc = process_table_find(p->procs, rec->pid);
	if (filter_match(&p->filter, &ev))
		p->shown += (uint64_t)p->sink.ops->event(&p->sink, &ev);
}

static double one(const struct sink_ops *ops, struct made_call *calls, int ncalls, long n,
		  const char *path)
{
	uint64_t shown[CT_MAX_FUNCS / 64], begin, took;
	struct sink_end end = { .reason = "finished" };
	struct pipeline p = { .filter = { .shown = shown }, .sink = { .ops = ops } };
	struct sink_opts opts = { 0 };
	struct out out;

	memset(shown, 0xff, sizeof(shown));
	p.procs = process_table_open();
	if (!p.procs || out_open(&out, path, false))
		return -1;
	opts.out = &out;
	ops->open(&p.sink, &opts);
	begin = cpu_ns();
	for (long i = 0; i < n; i++) {
		struct ct_call *c = &calls[i % ncalls].c;

		c->h.start_ns = 1234018000 + (uint64_t)i * 1500;
		c->h.end_ns = c->h.start_ns + 700;
		take(&p, &c->h);
		if (!(i & 1023))
			out_sync(&out);
	}
	ops->close(&p.sink, &end);
	out_close(&out);
	took = cpu_ns() - begin;
	process_table_close(p.procs);
	return (double)took / (double)n;
}

/*
 * What the sinks for other programs pay for a launch and its kernel, which comes `late` launches
 * later, in nanoseconds a record.
 */
static double pairs(const struct sink_ops *ops, struct made_call *launch, long n, long late,
		    const char *path)
{
	static const struct kernel_name name = { .mangled = "_Z4gemmPfS_",
						 .full = "gemm(float*)",
						 .brief = "gemm" };
	struct process proc = {
		.pid = 12345, .shown_pid = 12345, .start_boottime_ns = 42, .comm = "bench"
	};
	struct sink_end end = { .reason = "finished" };
	struct sink sink = { .ops = ops };
	struct made_device m;
	struct sink_opts opts = { 0 };
	struct out out;
	uint64_t begin;

	if (out_open(&out, path, false))
		return -1;
	opts.out = &out;
	ops->open(&sink, &opts);
	make_kernel(&m, MAKE_AT(12345, 0, 1, 7, 1, 0, 0), 1, 4096, 256);
	begin = cpu_ns();
	for (long i = 0; i < n + late; i++) {
		struct event ev = { .proc = &proc, .kernel = &name };
		struct cause cause = { .tid = 12345 };
		uint64_t from = 1234018000 + (uint64_t)i * 4000;

		if (i < n) {
			launch->c.h.start_ns = from;
			launch->c.h.end_ns = from + 2500;
			ev.rec = &launch->c.h;
			ev.number = (uint32_t)i + 1;
			ops->event(&sink, &ev);
		}
		if (i >= late) {
			cause.start_ns = from - (uint64_t)late * 4000;
			cause.end_ns = cause.start_ns + 2500;
			m.h.start_ns = cause.start_ns + 3000;
			m.h.end_ns = m.h.start_ns + 3900;
			ev.rec = &m.h;
			ev.number = (uint32_t)(i - late) + 1;
			ev.cause = &cause;
			ops->event(&sink, &ev);
		}
		if (!(i & 1023))
			out_sync(&out);
	}
	ops->close(&sink, &end);
	out_close(&out);
	return (double)(cpu_ns() - begin) / (double)(2 * n);
}

static void all_pairs(struct made_call *launch, long n)
{
	static const struct sink_ops *const all[] = { &sink_perfetto, &sink_chrome };

	for (size_t s = 0; s < ARRAY_LEN(all); s++) {
		double best = 1e9;
		struct rusage use;

		for (int round = 0; round < ROUNDS; round++) {
			double t = pairs(all[s], launch, n, 25000, "/dev/null");

			best = t < best ? t : best;
		}
		getrusage(RUSAGE_SELF, &use);
		printf("%-8s launches and kernels, 100 ms late: %4.0f ns a record, %.0f records/s; "
		       "%ld MiB at most\n",
		       all[s]->name, best, 1e9 / best, use.ru_maxrss / 1024);
	}
}

int main(int argc, char **argv)
{
	static const struct sink_ops *const all[] = { &sink_table, &sink_json, &sink_count,
						      &sink_perfetto, &sink_chrome };
	static const uint64_t devptr = 0x7f81dc800000;
	static const int32_t device = 1;
	static struct made_call calls[3];
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
	char file[512];

	snprintf(file, sizeof(file), "%s/ct_bench_sinks.%d", argc > 2 ? argv[2] : "/tmp",
		 (int)getpid());
	make_mem(0x1000, &devptr, sizeof(devptr));
	make_mem(0x2000, &device, sizeof(device));
	if (!make_call(&calls[0], "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(1048576)) ||
	    !make_call(&calls[1], "cudaLaunchKernel", CT_CALL, 0, 0, U(0x7f8b3c4d2a00),
		       4096 | U(1) << 32, U(1), 256 | U(1) << 32, U(1), U(0x7ffc00101010), U(0),
		       U(0x55aa00112233)) ||
	    !make_call(&calls[2], "cudaGetDevice", CT_CALL, 0, 0, U(0x2000)))
		return 1;
	all_pairs(&calls[1], n);
	for (size_t s = 0; s < ARRAY_LEN(all); s++) {
		for (int to_file = 0; to_file < 2; to_file++) {
			double best[3] = { 1e9, 1e9, 1e9 }, mixed = 1e9;

			for (int round = 0; round < ROUNDS; round++) {
				const char *path = to_file ? file : "/dev/null";
				double t = one(all[s], calls, 3, n, path);

				mixed = t < mixed ? t : mixed;
				for (int k = 0; k < 3; k++) {
					t = one(all[s], &calls[k], 1, n / 4, path);
					best[k] = t < best[k] ? t : best[k];
				}
			}
			printf("%-8s to %-9s  ns a call: %4.0f mixed, %4.0f cudaMalloc, %4.0f "
			       "cudaLaunchKernel, %4.0f cudaGetDevice\n",
			       all[s]->name, to_file ? "a file" : "/dev/null", mixed, best[0],
			       best[1], best[2]);
		}
	}
	unlink(file);
	return 0;
}
