/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_trace.c - what a recording costs: nanoseconds a call for check, process table, filter
 * and the recording sink, bytes a call on disk, and how fast the file is read back, to a
 * counting sink. Three mixes: a tight loop of one function; launches as a step of PyTorch makes
 * them; the same with the device's records (bytes: of both together, for each call). Times have
 * the noise of real ones: their low bytes do not compress. Arguments: calls of a round (default
 * 2000000), a directory for the file (default /tmp).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../user/event/select.h"
#include "../../user/flow/sink.h"
#include "../../user/trace/reader.h"
#include "../unit/make_call.h"
#include "../unit/random.h"

#define ROUNDS 3
#define KERNELS 40 /* of a step */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static uint64_t seed = RANDOM_SEED;
static uint64_t rnd(void)
{
	return random_next(&seed);
}

/* About the mean, mostly below it, with a tail: as durations are. */
static uint64_t noise(uint64_t mean)
{
	uint64_t v = mean * 3 / 4 + rnd() % (mean / 4 + 1);

	return rnd() % 16 ? v : v + rnd() % (mean * 8);
}

struct pipeline {
	struct process_table *procs;
	struct filter filter;
	struct sink sink;
	uint64_t n;
};

static void take(struct pipeline *p, const struct ct_hdr *rec)
{
	struct event ev = { .rec = rec };

	if (record_check(rec, rec->size) || process_table_record(p->procs, rec))
		return;
	ev.proc = process_table_find(p->procs, rec->pid);
	if (filter_match(&p->filter, &ev))
		p->n += p->sink.ops->event(&p->sink, &ev) > 0;
}

static struct made_call loop_call, launches[KERNELS], others[4];
static uint64_t now_ns = 1000000000000, stream_ns;
static uint32_t correlation;

static void call(struct pipeline *p, struct ct_call *c, uint64_t gap, uint64_t took)
{
	c->h.start_ns = now_ns + noise(gap);
	c->h.end_ns = now_ns = c->h.start_ns + noise(took);
	correlation++;
	take(p, &c->h);
}

static void kernel(struct pipeline *p, int i, const struct ct_call *by)
{
	static uint64_t grid_id;
	struct ct_kernel k = { .w = { .h = { .size = sizeof(k),
					     .kind = CT_KERNEL,
					     .pid = by->h.pid,
					     .tid = by->h.tid },
				      .context = 1,
				      .stream = 7,
				      .correlation = correlation,
				      .call_ns = by->h.start_ns,
				      .func = by->func,
				      .channel = 8 },
			       .name = CT_HANDLE_DEVICE | (uint64_t)i,
			       .grid = { 100u + (uint32_t)i * 7, 1, 1 },
			       .block = { 128, 1, 1 },
			       .registers = 32,
			       .executed_shared = 16384,
			       .grid_id = ++grid_id };

	if (stream_ns < by->h.end_ns)
		stream_ns = by->h.end_ns + noise(3000);
	k.w.h.start_ns = stream_ns + noise(1200);
	k.w.h.end_ns = stream_ns = k.w.h.start_ns + noise(2000 + (uint64_t)i * 900);
	take(p, &k.w.h);
}

/* One call of the mix; with device 1 and its kernel. */
static void one(struct pipeline *p, int mix, long i)
{
	int k = (int)(i % (KERNELS + 4));

	if (!mix) {
		call(p, &loop_call.c, 400, 700);
		return;
	}
	if (k >= KERNELS) {
		call(p, &others[k - KERNELS].c, 2000, 900);
		return;
	}
	/* what a step computes anew each time: the address of its arguments, and of its outputs */
	launches[k].c.words[5] = 0x7ffc00100000 + (rnd() % 64) * 16;
	call(p, &launches[k].c, 5000, 4000);
	if (mix == 2)
		kernel(p, k, &launches[k].c);
}

static double write_one(int mix, long n, const char *path, double *bytes)
{
	struct sink_file file = { .path = path, .head = "format 1\n" };
	uint64_t shown[CT_MAX_FUNCS / 64], begin;
	struct sink_end end = { .reason = "finished" };
	struct pipeline p = { .filter = { .shown = shown, .definitions = true },
			      .sink = { .ops = &sink_trace } };
	struct sink_opts opts = { .file = &file };
	struct stat st;

	memset(shown, 0xff, sizeof(shown));
	remove(path);
	p.procs = process_table_open();
	if (!p.procs || sink_trace.open(&p.sink, &opts))
		exit(1);
	begin = cpu_ns();
	for (long i = 0; i < n; i++)
		one(&p, mix, i);
	sink_trace.close(&p.sink, &end);
	begin = cpu_ns() - begin;
	process_table_close(p.procs);
	*bytes = stat(path, &st) ? 0 : (double)st.st_size / (double)n;
	return (double)begin / (double)n;
}

static double read_one(const char *path)
{
	struct pipeline p = { .filter = { .shown = NULL }, .sink = { .ops = &sink_count } };
	struct sink_end end = { .reason = "finished" };
	struct sink_opts opts = { .look.counts_only = true };
	const struct ct_hdr *rec;
	struct reader *r;
	struct out out;
	uint64_t n = 0, begin;

	p.procs = process_table_open();
	if (!p.procs || out_open(&out, "/dev/null", false) || reader_open(&r, path))
		exit(1);
	opts.out = &out;
	sink_count.open(&p.sink, &opts);
	begin = cpu_ns();
	while (reader_next(r, &rec) == 1) {
		struct event ev = { .rec = rec };

		process_table_record(p.procs, rec);
		ev.proc = process_table_find(p.procs, rec->pid);
		if (filter_match(&p.filter, &ev))
			sink_count.event(&p.sink, &ev);
		n++;
	}
	begin = cpu_ns() - begin;
	sink_count.close(&p.sink, &end);
	out_close(&out);
	reader_close(r);
	process_table_close(p.procs);
	return (double)n * 1e3 / (double)begin;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "tight loop", "launches", "with device" };
	static const uint64_t devptr = 0x7f81dc800000;
	static const int32_t device = 1;
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 2000000;
	char path[512];

	snprintf(path, sizeof(path), "%s/ct_bench_trace.%d", argc > 2 ? argv[2] : "/tmp",
		 (int)getpid());
	make_mem(0x1000, &devptr, sizeof(devptr));
	make_mem(0x2000, &device, sizeof(device));
	if (!make_call(&loop_call, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(1048576)) ||
	    !make_call(&others[0], "cudaGetDevice", CT_CALL, 0, 0, U(0x2000)) ||
	    !make_call(&others[1], "cudaMemcpyAsync", CT_CALL, 0, 0, U(devptr), U(devptr + 65536),
		       U(4096), U(3), U(0)) ||
	    !make_call(&others[2], "cudaEventRecord", CT_CALL, 0, 0, U(0x55aa0010), U(0)) ||
	    !make_call(&others[3], "cudaStreamIsCapturing", CT_CALL, 0, 0, U(0), U(0x2000)))
		return 1;
	for (int i = 0; i < KERNELS; i++)
		make_call(&launches[i], "cudaLaunchKernel", CT_CALL, 0, 0,
			  U(0x7f8b3c4d2a00) + (uint64_t)i % 23 * 64, (100 + U(i) * 7) | U(1) << 32,
			  U(1), 128 | U(1) << 32, U(1), U(0x7ffc00101010), U(0), U(0));
	for (int mix = 0; mix < 3; mix++) {
		double best = 1e9, rate = 0, bytes = 0;

		for (int round = 0; round < ROUNDS; round++) {
			double t = write_one(mix, n, path, &bytes), r = read_one(path);

			best = t < best ? t : best;
			rate = r > rate ? r : rate;
		}
		printf("recording %-12s %5.0f ns a call, %5.2f bytes a call; replay to counts "
		       "%5.1f million records/s\n",
		       names[mix], best, bytes, rate);
	}
	unlink(path);
	return 0;
}
