/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_expose.c - counts as metrics: what a series is, that none goes backwards whatever
 * processes do, that there is never more than a bounded number of them, both text formats to the
 * letter, what an Accept header asks for.
 */
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include "../../user/event/device.h"
#include "../../user/metrics/expose.h"
#include "holes_made.h"
#include "api_row.h"
#include "unit.h"

#define S 1000000000ULL

static struct expose *x;
static struct expose_opts opts;
static struct losses losses;
static uint64_t now = 1000 * S, counters_ns;

static void begin(unsigned int groups, unsigned int kernels)
{
	opts = (struct expose_opts){ .version = "1.2",
				     .host = "node\"1",
				     .groups = groups,
				     .kernels = kernels,
				     .entries = 4000 };
	x = expose_open(&opts);
	if (!x)
		abort();
}

static void end(void)
{
	expose_close(x);
}

static struct process process(uint32_t pid, uint32_t start, const char *comm)
{
	struct process p = { .pid = pid, .start_boottime_ns = (uint64_t)start << 10 };

	snprintf(p.comm, sizeof(p.comm), "%s", comm);
	return p;
}

static union {
	struct ct_call_count t;
	char room[sizeof(struct ct_call_count) + sizeof(struct ct_hist)];
} made;

static struct ct_call_count *call_count(uint32_t pid, uint32_t start, const char *func,
					uint64_t calls)
{
	memset(&made, 0, sizeof(made));
	made.t.h = (struct ct_hdr){ .size = sizeof(made.t), .kind = CT_CALL_COUNT, .pid = pid };
	made.t.func = (uint16_t)row(func);
	made.t.start = start;
	made.t.sums.calls = calls;
	return &made.t;
}

static void give(const struct process *p, struct ct_call_count *t)
{
	struct event ev = { .rec = &t->h, .proc = p };

	CHECK(!expose_event(x, &ev));
}

/* A reading of one process with one function. */
static void reading(const struct process *p, const char *func, uint64_t calls, bool last)
{
	struct ct_call_count *t =
		call_count(p->pid, (uint32_t)(p->start_boottime_ns >> 10), func, calls);

	expose_begin(x, now);
	t->h.flags = last ? CT_F_LAST : 0;
	give(p, t);
}

static void tell(const struct process *p, uint16_t kind)
{
	struct ct_process r = { .h = { .size = sizeof(r), .kind = kind, .pid = p->pid } };
	struct event ev = { .rec = &r.h, .proc = p };

	CHECK(!expose_event(x, &ev));
}

static char *text(enum expose_format format)
{
	struct expose_about about = {
		.losses = &losses, .start_time_s = 7, .now_ns = now, .counters_ns = counters_ns
	};
	char path[] = "/tmp/cudatrace-expose-XXXXXX";
	int fd = mkstemp(path);
	struct out out;
	char *all;

	if (fd < 0 || out_open_fd(&out, fd, "text"))
		abort();
	expose_write(x, format, &about, &out);
	CHECK(!out_close(&out));
	close(fd);
	all = unit_read(path);
	unlink(path);
	if (!all)
		abort();
	return all;
}

/* The value of a series, as text; "" if it is not there. */
static const char *value(const char *series)
{
	char *all = text(EXPOSE_TEXT), *at = all;
	static char got[64];
	size_t n = strlen(series);

	got[0] = '\0';
	for (; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (!strncmp(at, series, n) && at[n] == ' ')
			snprintf(got, sizeof(got), "%.*s", (int)strcspn(at + n + 1, "\n"),
				 at + n + 1);
	free(all);
	return got;
}

static int count_lines(const char *prefix)
{
	char *all = text(EXPOSE_TEXT), *at = all;
	int n = 0;

	for (; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		n += !strncmp(at, prefix, strlen(prefix));
	free(all);
	return n;
}

#define MALLOCS(process) "cudatrace_memory_allocation_calls_total{process=\"" process "\"}"

static void memory(const struct process *p, const char *func, uint64_t calls, uint64_t bytes,
		   uint64_t odd, uint64_t not_held, bool last)
{
	struct ct_call_count *t =
		call_count(p->pid, (uint32_t)(p->start_boottime_ns >> 10), func, calls);

	t->sums.bytes = bytes;
	t->sums.threads = odd;
	t->sums.shared = not_held;
	t->h.flags = last ? CT_F_LAST : 0;
	give(p, t);
}

#define IN_USE(process, memory) \
	"cudatrace_memory_in_use_bytes{process=\"" process "\",memory=\"" memory "\"}"
#define FREED(process) "gpu_cuda_memory_free_bytes_total{process=\"" process "\"}"
#define UNKNOWN(process) "cudatrace_memory_free_unknown_calls_total{process=\"" process "\"}"
#define FORGOTTEN(process) \
	"cudatrace_memory_allocation_forgotten_calls_total{process=\"" process "\"}"

static void test_memory(void)
{
	struct process a = process(10, 5, "app"), b = process(11, 6, "app"),
		       c = process(11, 6, "next");

	begin(0, 0);
	memory(&a, "cudaMalloc", 3, 3000, 0, 0, false);
	CHECK_TEXT("", value(IN_USE("app", "device")));
	CHECK_TEXT("", value(FREED("app")));
	end();

	begin(0, 0);
	expose_close(x);
	opts.memory = true;
	x = expose_open(&opts);
	expose_begin(x, now);
	memory(&a, "cudaMalloc", 3, 3000, 1, 1000, false);
	memory(&a, "cudaHostAlloc", 1, 50, 0, 0, false);
	memory(&b, "cudaMalloc", 1, 400, 0, 0, false);
	CHECK_TEXT("2400", value(IN_USE("app", "device")));
	CHECK_TEXT("50", value(IN_USE("app", "host")));
	CHECK_TEXT("1", value(FORGOTTEN("app")));
	CHECK_TEXT("3450", value("gpu_cuda_memory_allocations_bytes_total{process=\"app\"}"));
	expose_begin(x, now);
	memory(&a, "cudaMalloc", 3, 3000, 1, 1000, false);
	memory(&a, "cudaFree", 3, 1500, 1, 0, false);
	memory(&b, "cudaMalloc", 1, 400, 0, 0, false);
	CHECK_TEXT("900", value(IN_USE("app", "device")));
	CHECK_TEXT("1500", value(FREED("app")));
	CHECK_TEXT("1", value(UNKNOWN("app")));
	CHECK_TEXT("1", value(FORGOTTEN("app")));
	/* threads of launches are none of this */
	memory(&a, "cudaLaunchKernel", 3, 0, 4096, 8, false);
	CHECK_TEXT("900", value(IN_USE("app", "device")));
	/* it becomes another program, which holds what it takes itself */
	tell(&c, CT_EXEC);
	memory(&c, "cudaMalloc", 2, 410, 0, 0, false);
	CHECK_TEXT("500", value(IN_USE("app", "device")));
	CHECK_TEXT("10", value(IN_USE("next", "device")));
	/* what has ended holds nothing, and what it gave back stays */
	expose_begin(x, now);
	memory(&a, "cudaLaunchKernel", 3, 0, 4096, 8, true);
	memory(&a, "cudaMalloc", 3, 3000, 1, 1000, true);
	memory(&a, "cudaHostAlloc", 1, 50, 0, 0, true);
	memory(&a, "cudaFree", 3, 1500, 1, 0, true);
	CHECK_TEXT("", value(IN_USE("app", "device")));
	CHECK_TEXT("1500", value(FREED("app")));
	CHECK_TEXT("10", value(IN_USE("next", "device")));
	end();
}

static void test_process_ends(void)
{
	struct process a = process(10, 5, "app"), b = process(11, 6, "app");

	begin(0, 0);
	reading(&a, "cudaMalloc", 10, false);
	give(&b, call_count(11, 6, "cudaMalloc", 4));
	CHECK_TEXT("14", value(MALLOCS("app")));
	CHECK_TEXT("2", value("cudatrace_processes"));
	CHECK_TEXT("2", value("cudatrace_tally_entries"));
	reading(&a, "cudaMalloc", 12, true);
	CHECK_TEXT("16", value(MALLOCS("app")));
	CHECK_TEXT("1", value("cudatrace_processes"));
	reading(&b, "cudaMalloc", 4, true);
	CHECK_TEXT("16", value(MALLOCS("app")));
	CHECK_TEXT("0", value("cudatrace_tally_entries"));
	/* another one of the same number, of whom nothing but counts is known: the table still
	 * has the old one's name */
	reading(&(struct process){ .pid = 10, .start_boottime_ns = 9 << 10, .comm = "new" },
		"cudaMalloc", 3, false);
	CHECK_TEXT("16", value(MALLOCS("app")));
	CHECK_TEXT("3", value(MALLOCS("new")));
	end();
}

/* The counts of a process that has ended come when its number is another's already. */
static void test_number_is_anothers(void)
{
	struct process a = process(10, 5, "old"), b = process(10, 7, "young");

	begin(0, 0);
	reading(&a, "cudaMalloc", 10, false);
	expose_begin(x, now);
	made.t.h.flags = CT_F_LAST;
	give(&b, call_count(10, 7, "cudaMalloc", 1));
	give(&b, call_count(10, 5, "cudaMalloc", 11));
	CHECK_TEXT("11", value(MALLOCS("old")));
	CHECK_TEXT("1", value(MALLOCS("young")));
	/* of one that was never looked at while it lived nobody knows the name */
	give(&b, call_count(10, 6, "cudaMalloc", 2));
	CHECK_TEXT("2", value(MALLOCS("?")));
	CHECK_TEXT("1", value(MALLOCS("young")));
	end();
}

static void test_exec(void)
{
	struct process p = process(10, 5, "sh");

	begin(0, 0);
	reading(&p, "cudaMalloc", 10, false);
	snprintf(p.comm, sizeof(p.comm), "python3");
	tell(&p, CT_EXEC);
	reading(&p, "cudaMalloc", 15, false);
	CHECK_TEXT("10", value(MALLOCS("sh")));
	CHECK_TEXT("5", value(MALLOCS("python3")));
	/* the kernel side made the entry anew */
	reading(&p, "cudaMalloc", 2, false);
	CHECK_TEXT("10", value(MALLOCS("sh")));
	CHECK_TEXT("7", value(MALLOCS("python3")));
	end();
}

static void test_container(void)
{
	struct process_info info = {
		.container = "0123abcd", .pod = "11-22", .exe = "", .cmdline = ""
	};
	struct process p = process(10, 5, "a\"b\\c\n\xff");

	begin(0, 0);
	reading(&p, "cudaMalloc", 1, false);
	CHECK_TEXT("1", value(MALLOCS("a\\\"b\\\\c??")));
	p.info = &info;
	tell(&p, CT_PROCESS_INFO);
	reading(&p, "cudaMalloc", 3, false);
	CHECK_TEXT("1", value(MALLOCS("a\\\"b\\\\c??")));
	CHECK_TEXT("2", value("cudatrace_memory_allocation_calls_total{process=\"a\\\"b\\\\c??\","
			      "container_id=\"0123abcd\",pod_uid=\"11-22\"}"));
	end();
}

static void test_too_many_kinds(void)
{
	char name[16];

	begin(3, 0);
	for (uint32_t i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "app%u", i);
		reading(&(struct process){ .pid = i + 1, .start_boottime_ns = 5 << 10, .comm = "" },
			"cudaMalloc", 0, true);
		struct process p = process(i + 1, 5, name);
		reading(&p, "cudaMalloc", 10 + i, false);
	}
	CHECK(count_lines("cudatrace_memory_allocation_calls_total") <= 4);
	CHECK_TEXT("10", value(MALLOCS("app0")));
	CHECK(strcmp("", value(MALLOCS("other"))));
	CHECK_TEXT("", value(MALLOCS("app7")));
	end();
}

/* A kind of process of which none has lived for long makes room; one that lives does not. */
static void test_kinds_make_room(void)
{
	struct process a = process(1, 5, "a"), b = process(2, 5, "b"), c = process(3, 5, "c"),
		       d = process(4, 5, "d");

	begin(2, 0);
	reading(&a, "cudaMalloc", 1, true);
	reading(&b, "cudaMalloc", 2, false);
	reading(&c, "cudaMalloc", 4, false);
	CHECK_TEXT("4", value(MALLOCS("other")));
	CHECK_TEXT("1", value(MALLOCS("a")));
	now += 400 * S;
	reading(&d, "cudaMalloc", 8, false);
	CHECK_TEXT("", value(MALLOCS("a")));
	CHECK_TEXT("2", value(MALLOCS("b")));
	CHECK_TEXT("4", value(MALLOCS("other")));
	CHECK_TEXT("8", value(MALLOCS("d")));
	end();
}

static void size_row(struct ct_call_count *t, const char *func, uint8_t kind, uint64_t by,
		     uint64_t sum, uint64_t sum2)
{
	t->func = (uint16_t)row(func);
	t->sub = kind;
	t->how = CT_BY_SIZE;
	t->by = by;
	t->sums.bytes = sum;
	t->sums.threads = sum2;
	t->nbuckets = 2 * CT_SIZE_BUCKETS;
}

static void test_sizes(void)
{
	struct process p = process(1, 5, "a");
	struct ct_call_count *t = call_count(1, 5, "cudaMalloc", 0);

	begin(0, 0);
	/* two launches: of 1 and of 5 blocks, of 32 and of 33 threads */
	size_row(t, "cudaMalloc", 0, CT_OF_LAUNCHES, 6, 65);
	t->hist[0] = t->hist[3] = 1;
	t->hist[CT_SIZE_BUCKETS + 5] = t->hist[CT_SIZE_BUCKETS + 6] = 1;
	expose_begin(x, now);
	give(&p, t);
	CHECK_TEXT("1", value("gpu_cuda_kernel_grid_size_bucket{process=\"a\",le=\"1.0\"}"));
	CHECK_TEXT("1", value("gpu_cuda_kernel_grid_size_bucket{process=\"a\",le=\"4.0\"}"));
	CHECK_TEXT("2", value("gpu_cuda_kernel_grid_size_bucket{process=\"a\",le=\"16.0\"}"));
	CHECK_TEXT("2",
		   value("gpu_cuda_kernel_grid_size_bucket{process=\"a\",le=\"1.6777216e+07\"}"));
	CHECK_TEXT("6", value("gpu_cuda_kernel_grid_size_sum{process=\"a\"}"));
	CHECK_TEXT("1", value("gpu_cuda_kernel_block_size_bucket{process=\"a\",le=\"32.0\"}"));
	CHECK_TEXT("2", value("gpu_cuda_kernel_block_size_bucket{process=\"a\",le=\"64.0\"}"));
	CHECK_TEXT("65", value("gpu_cuda_kernel_block_size_sum{process=\"a\"}"));
	/* one more launch, past the end of a counter of 32 bits */
	t->hist[0] = ~0u;
	give(&p, t);
	t->hist[0] = 1;
	give(&p, t);
	CHECK_TEXT("4294967298", value("gpu_cuda_kernel_grid_size_count{process=\"a\"}"));
	/* copies: by the kind that the call says, or by the function's name */
	t = call_count(1, 5, "cudaMalloc", 0);
	size_row(t, "cudaMemcpy", 1, CT_OF_COPIES, 1 << 20, 0);
	t->hist[20] = 1;
	give(&p, t);
	t = call_count(1, 5, "cudaMalloc", 0);
	size_row(t, "cuMemcpyDtoH_v2", 0, CT_OF_COPIES, 64, 0);
	t->hist[6] = 1;
	give(&p, t);
	CHECK_TEXT("1048576", value("gpu_cuda_memory_copies_bytes_sum{process=\"a\",cuda_memcpy_"
				    "kind=\"HostToDevice\"}"));
	CHECK_TEXT("0", value("gpu_cuda_memory_copies_bytes_bucket{process=\"a\",cuda_memcpy_kind="
			      "\"HostToDevice\",le=\"262144.0\"}"));
	CHECK_TEXT("1", value("gpu_cuda_memory_copies_bytes_bucket{process=\"a\",cuda_memcpy_kind="
			      "\"HostToDevice\",le=\"1.048576e+06\"}"));
	CHECK_TEXT("1", value("gpu_cuda_memory_copies_bytes_bucket{process=\"a\",cuda_memcpy_kind="
			      "\"DeviceToHost\",le=\"64.0\"}"));
	end();
}

static void test_durations(void)
{
	struct process none = { .comm = "?" };
	struct ct_call_count *t = call_count(0, 0, "cudaMalloc", 0);

	begin(0, 0);
	CHECK(!count_lines("cudatrace_call_duration_seconds"));
	t->nbuckets = CT_HIST_BUCKETS;
	t->hist[ct_hist_bucket(1500)] = 3; /* in (1.024 us, 2.048 us] */
	t->hist[ct_hist_bucket(20 * S)] = ~0u;
	give(&none, t);
	t->hist[ct_hist_bucket(20 * S)] = 1;
	give(&none, t);
	CHECK_TEXT(
		"0",
		value("cudatrace_call_duration_seconds_bucket{class=\"memory\",le=\"1.024e-06\"}"));
	CHECK_TEXT(
		"3",
		value("cudatrace_call_duration_seconds_bucket{class=\"memory\",le=\"2.048e-06\"}"));
	CHECK_TEXT("3", value("cudatrace_call_duration_seconds_bucket{class=\"memory\",le=\"0."
			      "008388608\"}"));
	CHECK_TEXT("4294967300", value("cudatrace_call_duration_seconds_count{class=\"memory\"}"));
	end();
}

#define LAUNCHES(process, kernel) \
	"cudatrace_kernel_launches_total{process=\"" process "\",kernel=\"" kernel "\"}"

static void launch(const struct process *p, uint64_t handle, const char *name, uint64_t calls,
		   bool last)
{
	struct ct_call_count *t = call_count(p->pid, 5, "cudaLaunchKernel", calls);
	struct kernel_name k = { .mangled = name, .full = name, .brief = name };
	struct event ev = { .rec = &t->h, .proc = p, .kernel = name ? &k : NULL };

	t->how = CT_BY_KERNEL;
	t->by = handle;
	t->h.flags = last ? CT_F_LAST : 0;
	CHECK(!expose_event(x, &ev));
}

static void test_kernels(void)
{
	struct process p = process(1, 5, "a"), q = process(2, 5, "b");
	struct ct_name n = { .h = { .size = sizeof(n), .kind = CT_NAME, .pid = 2 }, .handle = 77 };
	struct kernel_name late = { .mangled = "late", .full = "late", .brief = "late" };
	struct event ev = { .rec = &n.h, .proc = &q, .kernel = &late };

	begin(0, 2);
	expose_begin(x, now);
	launch(&p, 1, "gemm<float>", 10, false);
	launch(&p, 2, "copy", 1, false);
	launch(&p, 3, "often", 100, false);
	CHECK_TEXT("10", value(LAUNCHES("a", "gemm<float>")));
	CHECK_TEXT("1", value(LAUNCHES("a", "copy")));
	CHECK_TEXT("100", value(LAUNCHES("a", "other")));
	CHECK_TEXT("", value(LAUNCHES("a", "often")));
	/* from the next reading on the one with many more has the place of the one with the
	 * fewest; nothing goes backwards */
	expose_begin(x, now);
	launch(&p, 1, "gemm<float>", 10, false);
	launch(&p, 2, "copy", 3, false);
	launch(&p, 3, "often", 150, false);
	CHECK_TEXT("10", value(LAUNCHES("a", "gemm<float>")));
	CHECK_TEXT("50", value(LAUNCHES("a", "often")));
	CHECK_TEXT("102", value(LAUNCHES("a", "other")));
	CHECK_TEXT("", value(LAUNCHES("a", "copy")));
	/* in all functions together they are one */
	CHECK_TEXT("163", value("gpu_cuda_kernel_launch_calls_total{process=\"a\"}"));
	/* a name that was forgotten when its process ended */
	CHECK(!expose_event(x, &ev));
	launch(&q, 77, NULL, 1000, true);
	launch(&q, 78, NULL, 1, true);
	CHECK_TEXT("1001", value(LAUNCHES("b", "other")));
	expose_begin(x, now);
	launch(&q, 78, NULL, 1, true);
	end();
	begin(0, 2);
	CHECK(!expose_event(x, &ev));
	launch(&q, 77, NULL, 1000, false);
	launch(&q, 78, NULL, 1, true);
	CHECK_TEXT("1000", value(LAUNCHES("b", "late")));
	CHECK_TEXT("1", value(LAUNCHES("b", "unknown")));
	end();
}

/* ---- collectives ---- */

static struct {
	struct ct_scope s;
	char text[24];
	struct ct_collective c;
} nccl;

/* The begin or the end of an all-reduce of 1000 bytes. */
static void reduce(const struct process *p, uint16_t kind, uint64_t hash, uint32_t rank,
		   uint64_t sequence)
{
	struct event ev = { .rec = &nccl.s.h, .proc = p };

	memset(&nccl, 0, sizeof(nccl));
	nccl.s.h = (struct ct_hdr){ .size = sizeof(nccl), .kind = kind, .pid = p->pid };
	nccl.s.kind = CT_SCOPE_COLLECTIVE;
	nccl.s.text_len = 13;
	nccl.s.layer_len = 4;
	memcpy(nccl.text, "ncclAllReducenccl", 17);
	nccl.c.flags = CT_COLLECTIVE_COUNT | (kind == CT_SCOPE_END ? CT_COLLECTIVE_RETURNED : 0);
	nccl.c.bytes = 1000;
	nccl.c.hash = hash;
	nccl.c.rank = rank;
	nccl.c.ranks = 8;
	nccl.c.sequence = sequence;
	CHECK(expose_event(x, &ev) >= 0);
}

#define REDUCES(what, comm, rank)                                                            \
	"cudatrace_collective_" what "{process=\"a\",communicator=\"" comm "\",rank=\"" rank \
	"\",ranks=\"8\""
#define FUNC ",function=\"ncclAllReduce\"}"

static void begin_collectives(unsigned int groups)
{
	begin(groups, 0);
	expose_close(x);
	opts.collectives = true;
	x = expose_open(&opts);
	if (!x)
		abort();
	expose_begin(x, now);
}

static void test_collectives(void)
{
	struct process p = process(1, 5, "a");
	struct event ev = { .rec = &nccl.s.h, .proc = &p };

	begin_collectives(0);
	reduce(&p, CT_SCOPE_BEGIN, 0x8f31, 3, 41);
	CHECK_TEXT("0", value(REDUCES("calls_total", "0x8f31", "3") FUNC));
	CHECK_TEXT("41", value(REDUCES("sequence", "0x8f31", "3") "}"));
	reduce(&p, CT_SCOPE_END, 0x8f31, 3, 41);
	reduce(&p, CT_SCOPE_END, 0x8f31, 3, 42);
	CHECK_TEXT("2", value(REDUCES("calls_total", "0x8f31", "3") FUNC));
	CHECK_TEXT("2000", value(REDUCES("bytes_total", "0x8f31", "3") FUNC));
	CHECK_TEXT("41", value(REDUCES("sequence", "0x8f31", "3") "}"));
	/* what failed, and what is a part of another call, do not count */
	nccl.c.ret = 4;
	CHECK_EQ(1, expose_event(x, &ev));
	nccl.c.ret = 0;
	nccl.c.flags |= CT_COLLECTIVE_INNER;
	CHECK_EQ(1, expose_event(x, &ev));
	CHECK_TEXT("2", value(REDUCES("calls_total", "0x8f31", "3") FUNC));
	reduce(&p, CT_SCOPE_END, 0, CT_UNKNOWN, 0);
	CHECK_TEXT("1", value(REDUCES("calls_total", "?", "?") FUNC));
	CHECK_EQ(1, count_lines("cudatrace_collective_sequence{"));
	end();
	begin(0, 0); /* without the layer there are none */
	reduce(&p, CT_SCOPE_END, 0x8f31, 3, 41);
	CHECK_EQ(0, count_lines("cudatrace_collective"));
	end();
}

/* A program that makes communicators without end has its share of the series, and all are counted. */
static void test_many_communicators(void)
{
	struct process p = process(1, 5, "a"), q = process(2, 5, "b");
	uint64_t began = now;

	begin_collectives(0);
	for (uint64_t i = 1; i <= 5000; i++)
		reduce(&p, CT_SCOPE_END, i, 0, 1);
	CHECK_EQ(1024 + 1, count_lines("cudatrace_collective_calls_total{process=\"a\""));
	CHECK_TEXT("3976", value("cudatrace_collective_calls_total{process=\"a\",communicator="
				 "\"other\",rank=\"?\",ranks=\"?\"" FUNC));
	reduce(&q, CT_SCOPE_END, 7, 0, 1);
	CHECK_EQ(1, count_lines("cudatrace_collective_calls_total{process=\"b\""));
	/* those that have not been used for five minutes give way */
	now += 301 * S;
	expose_begin(x, now);
	reduce(&p, CT_SCOPE_END, 6000, 0, 1);
	CHECK_TEXT("1", value(REDUCES("calls_total", "0x1770", "0") FUNC));
	CHECK_EQ(1, count_lines("cudatrace_collective_calls_total{"));
	now = began;
	end();
}

/* The place of a kind of processes goes to another one, with its series. */
static void test_collectives_of_another_kind(void)
{
	struct process p = process(1, 5, "a"), q = process(2, 5, "b");
	uint64_t began = now;

	begin_collectives(1);
	reduce(&p, CT_SCOPE_END, 7, 0, 1);
	now += 301 * S;
	expose_begin(x, now);
	reduce(&q, CT_SCOPE_END, 8, 0, 1);
	CHECK_EQ(0, count_lines("cudatrace_collective_calls_total{process=\"a\""));
	CHECK_EQ(1, count_lines("cudatrace_collective_calls_total{process=\"b\""));
	now = began;
	end();
}

static void test_many(void)
{
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, took;
	struct ct_call_count *t = call_count(1, 5, "cudaMalloc", 0);
	char series[200];

	begin(0, 0);
	for (int round = 1; round <= 2; round++) {
		expose_begin(x, now);
		for (uint32_t pid = 1; pid <= 10000; pid++) {
			struct process p = process(pid, 5, "app");

			for (int f = 0; f < 40; f++) {
				struct event ev = { .rec = &t->h, .proc = &p };

				t->h.pid = pid;
				t->func = (uint16_t)f;
				t->sums.calls = (uint64_t)round;
				if (expose_event(x, &ev))
					abort();
			}
		}
	}
	took = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	CHECK_TEXT("400000", value("cudatrace_tally_entries"));
	CHECK(count_lines("cudatrace_calls_total{process=\"app\",") == 40);
	snprintf(
		series, sizeof(series),
		"cudatrace_calls_total{process=\"app\",domain=\"%s\",class=\"%s\",function=\"%s\"}",
		api_domain_name(api_funcs[7].domain), api_class_name(api_funcs[7].class),
		api_funcs[7].name);
	CHECK_TEXT("20000", value(series));
	CHECK_TEXT("0", value("cudatrace_series_without_room_total"));
	/* the kernel side takes 90 MB for so many */
	CHECK(took < 100u << 20);
	end();
}

static void test_devices(void)
{
	union {
		struct ct_device d;
		char room[sizeof(struct ct_device) + 16];
	} d = { .d = { .h = { .size = sizeof(d), .kind = CT_DEVICE },
		       .id = 1,
		       .memory_bytes = 1000,
		       .name_len = 5,
		       .uuid = { 0x4b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } } };
	union {
		struct ct_metric m;
		char room[sizeof(struct ct_metric) + 16];
	} m = { .m = { .h = { .size = sizeof(m), .kind = CT_METRIC },
		       .id = 3,
		       .name_len = 3,
		       .unit_len = 1 } };
	union {
		struct ct_counter c;
		char room[sizeof(struct ct_counter) + 2 * sizeof(struct ct_value)];
	} c = { .c = { .h = { .size = sizeof(c), .kind = CT_COUNTER, .end_ns = now },
		       .device = 1,
		       .n = 2 } };
	static const char labels[] =
		"{gpu=\"1\",UUID=\"GPU-4b010203-0405-0607-0809-0a0b0c0d0e0f\",device=\"nvidia1\","
		"modelName=\"H\\\"200\",Hostname=\"node\\\"1\"}";
	struct metric_table *metrics = metric_table_open();
	struct process none = { .comm = "?" };
	struct event ev = { .proc = &none, .metrics = metrics };
	double gpu = 25, used = 250;
	struct holes *holes;
	char series[400];

	memcpy(d.d.name, "H\"200", 5);
	begin(0, 0);
	memcpy(m.m.text, "gpu%", 4);
	CHECK(metrics && !metric_table_record(metrics, &m.m.h));
	m.m.id = 4;
	m.m.name_len = 8;
	memcpy(m.m.text, "mem_usedB", 9);
	CHECK(!metric_table_record(metrics, &m.m.h));
	ev.rec = &d.d.h;
	CHECK(!expose_event(x, &ev));
	c.c.values[0].metric = 3;
	memcpy(&c.c.values[0].bits, &gpu, sizeof(gpu));
	c.c.values[1].metric = 4;
	memcpy(&c.c.values[1].bits, &used, sizeof(used));
	ev.rec = &c.c.h;
	CHECK(!expose_event(x, &ev));
	/* not asked for: nothing is said of them */
	CHECK(!count_lines("hw_") && !count_lines("cudatrace_counters_up"));
	CHECK_TEXT("1", value("cudatrace_queries_counted"));
	CHECK_TEXT("0", value("cudatrace_unprobed_processes_total{ended=\"false\"}"));
	CHECK_TEXT("0", value("cudatrace_unprobed_processes_total{ended=\"true\"}"));
	losses.holes = holes = holes_of_unprobed(5, 2, 12500000, false);
	CHECK_TEXT("3", value("cudatrace_unprobed_processes_total{ended=\"false\"}"));
	CHECK_TEXT("2", value("cudatrace_unprobed_processes_total{ended=\"true\"}"));
	CHECK_TEXT("0.0125", value("cudatrace_unprobed_time_max_seconds"));
	holes_close(holes);
	losses.holes = NULL;
	CHECK_TEXT("0", value("cudatrace_unhooked_functions_total"));
	losses.holes = holes = holes_of_number(CT_HOLE_UNHOOKED, 49);
	CHECK_TEXT("49", value("cudatrace_unhooked_functions_total"));
	holes_close(holes);
	losses.holes = NULL;
	CHECK_TEXT("0", value("cudatrace_partly_hooked_functions_total"));
	losses.holes = holes = holes_of_number(CT_HOLE_PARTLY_HOOKED, 7);
	CHECK_TEXT("7", value("cudatrace_partly_hooked_functions_total"));
	holes_close(holes);
	losses.holes = NULL;
	CHECK_TEXT("0", value("cudatrace_interrupted_functions_total"));
	losses.holes = holes = holes_of_number(CT_HOLE_INTERRUPTED, 3);
	CHECK_TEXT("3", value("cudatrace_interrupted_functions_total"));
	holes_close(holes);
	losses.holes = NULL;
	CHECK(!count_lines("cudatrace_probe_"));
	counters_ns = S;
	snprintf(series, sizeof(series), "hw_gpu_utilization_ratio%s", labels);
	CHECK_TEXT("0.25", value(series));
	CHECK_TEXT("1", value("cudatrace_counters_up"));
	/* suspect: left out */
	c.c.values[0].flags = CT_VALUE_SUSPECT;
	CHECK(!expose_event(x, &ev));
	CHECK_TEXT("", value(series));
	snprintf(series, sizeof(series), "hw_gpu_memory_utilization_ratio%s", labels);
	CHECK_TEXT("0.25", value(series));
	/* the counters are gone: what they said is not said again */
	now += 60 * S;
	CHECK_TEXT("", value(series));
	CHECK_TEXT("0", value("cudatrace_counters_up"));
	snprintf(series, sizeof(series), "hw_gpu_memory_limit_bytes%s", labels);
	CHECK_TEXT("1000", value(series));
	counters_ns = 0;
	metric_table_close(metrics);
	end();
}

/* Up to `upto` of what a family begins with. */
static void golden(enum expose_format format, const char *from, const char *want)
{
	char *all = text(format), *at = strstr(all, from);

	CHECK(at);
	if (at)
		at[strlen(want) < strlen(at) ? strlen(want) : strlen(at)] = '\0';
	CHECK_TEXT(want, at ? at : "");
	free(all);
}

static void test_formats(void)
{
	struct process p = process(1, 5, "a");
	struct ct_call_count *t = call_count(1, 5, "cudaMalloc", 2);

	begin(0, 0);
	t->sums.bytes = 300;
	t->sums.ns = 1500;
	give(&p, t);
	golden(EXPOSE_TEXT, "# HELP gpu_cuda_memory_allocations",
	       "# HELP gpu_cuda_memory_allocations_bytes_total Bytes allocated, of all kinds of "
	       "memory.\n"
	       "# TYPE gpu_cuda_memory_allocations_bytes_total counter\n"
	       "gpu_cuda_memory_allocations_bytes_total{process=\"a\"} 300\n"
	       "# HELP gpu_cuda_memset_bytes_total ");
	golden(EXPOSE_OPENMETRICS, "# HELP gpu_cuda_memory_allocations",
	       "# HELP gpu_cuda_memory_allocations_bytes Bytes allocated, of all kinds of memory.\n"
	       "# TYPE gpu_cuda_memory_allocations_bytes counter\n"
	       "# UNIT gpu_cuda_memory_allocations_bytes bytes\n"
	       "gpu_cuda_memory_allocations_bytes_total{process=\"a\"} 300\n"
	       "# HELP gpu_cuda_memset_bytes ");
	golden(EXPOSE_OPENMETRICS, "cudatrace_call_time_seconds_total{",
	       "cudatrace_call_time_seconds_total{process=\"a\",domain=\"runtime\",class="
	       "\"memory\",function=\"cudaMalloc\"} 1.5e-06\n");
	golden(EXPOSE_OPENMETRICS, "cudatrace_build_info{",
	       "cudatrace_build_info{version=\"1.2\"} 1\n# EOF\n");
	golden(EXPOSE_TEXT, "cudatrace_build_info{", "cudatrace_build_info{version=\"1.2\"} 1\n");
	end();
}

static void test_accept(void)
{
	static const struct {
		const char *accept;
		enum expose_format want;
	} cases[] = {
		{ NULL, EXPOSE_TEXT },
		{ "", EXPOSE_TEXT },
		{ "*/*", EXPOSE_TEXT },
		{ "text/html,application/xhtml+xml,*/*;q=0.8", EXPOSE_TEXT },
		{ "application/openmetrics-text", EXPOSE_OPENMETRICS },
		{ "Application/OpenMetrics-Text; version=1.0.0; charset=utf-8",
		  EXPOSE_OPENMETRICS },
		/* Prometheus 2.42 and 3 */
		{ "application/openmetrics-text;version=1.0.0,application/"
		  "openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  EXPOSE_OPENMETRICS },
		{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/"
		  "plain;version=0.0.4;q=0.3,*/*;q=0.2",
		  EXPOSE_OPENMETRICS },
		{ "text/plain;version=0.0.4;q=1,*/*;q=0.1", EXPOSE_TEXT },
		{ "text/plain; q=0.3, application/openmetrics-text; q=0.2", EXPOSE_TEXT },
		{ "text/plain; q=0.2, application/openmetrics-text; q=0.3", EXPOSE_OPENMETRICS },
		{ "application/openmetrics-text; q=0, */*", EXPOSE_TEXT },
		{ "application/openmetrics-text;q=0", EXPOSE_TEXT },
		{ "application/openmetrics-text;q=0.000", EXPOSE_TEXT },
		{ "text/plain;q=0, */*", EXPOSE_OPENMETRICS },
		{ "application/*", EXPOSE_OPENMETRICS },
		{ "text/*;q=0.9, application/*;q=0.91", EXPOSE_OPENMETRICS },
		{ "application/openmetrics-text;version=2.0.0", EXPOSE_TEXT },
		{ "application/openmetrics-text-not;q=1", EXPOSE_TEXT },
		{ "application/openmetrics-text;q=7", EXPOSE_TEXT },
		{ "application/openmetrics-text;q=x", EXPOSE_TEXT },
		{ ",,;;q=,/,\t;q=1;=", EXPOSE_TEXT },
		{ "application/"
		  "vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
		  EXPOSE_TEXT },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK(expose_wants(cases[i].accept) == cases[i].want);
		if (expose_wants(cases[i].accept) != cases[i].want)
			printf("  %s\n", cases[i].accept ? cases[i].accept : "(none)");
	}
}

/* A reading of a function that is on duty: what is counted, and what is estimated beside it. */
static void estimate(const struct process *p, uint64_t counted, int64_t unseen, int64_t error,
		     bool last)
{
	struct ct_call_count *t = call_count(p->pid, (uint32_t)(p->start_boottime_ns >> 10),
					     "cudaLaunchKernel", counted);

	t->sums.timed = counted;
	t->sums.ns = counted * 1000000;
	t->sums.failed = 2;
	t->unseen = (struct ct_estimated){ unseen, error, error };
	t->h.flags = last ? CT_F_LAST : 0;
	expose_begin(x, now);
	give(p, t);
}

/* The lines of these families, without their comments. */
static const char *lines_of(const char *const *prefixes)
{
	static char got[4096];
	char *all = text(EXPOSE_TEXT);
	size_t n = 0;

	got[0] = '\0';
	for (char *at = strtok(all, "\n"); at; at = strtok(NULL, "\n"))
		for (const char *const *p = prefixes; *p; p++)
			if (!strncmp(at, *p, strlen(*p)))
				n += (size_t)snprintf(got + n, sizeof(got) - n, "%s\n", at);
	free(all);
	return got;
}

#define OF_LAUNCH                                                       \
	"process=\"app\",domain=\"runtime\",class=\"launch\",function=" \
	"\"cudaLaunchKernel\""
#define OF_MALLOC "process=\"app\",domain=\"runtime\",class=\"memory\",function=\"cudaMalloc\""

static void test_estimates(void)
{
	static const char *const of[] = { "cudatrace_calls_total",
					  "cudatrace_calls_e",
					  "cudatrace_call_",
					  "cudatrace_probe_",
					  "cudatrace_programs",
					  "gpu_cuda_kernel_launch_calls",
					  NULL };
	struct process a = process(10, 5, "app");

	begin(0, 0);
	reading(&a, "cudaMalloc", 7, false);
	/* calls with sizes that cannot be */
	made.t.sums.odd = 3;
	expose_begin(x, now);
	give(&a, &made.t);
	CHECK_TEXT("3", value("cudatrace_call_impossible_sizes_total{process=\"app\"}"));
	CHECK(!count_lines("cudatrace_calls_estimated") && !count_lines("cudatrace_calls_error"));
	losses.probes = (struct probe_cost){ .reported = true,
					     .duty = 0.05,
					     .cost = 0.0075,
					     .max_cost = 0.01,
					     .ns = 1500000000,
					     .cpu_ns = 300000000000,
					     .functions = 3 };
	estimate(&a, 1000, 19000, 400, false);
	CHECK_TEXT("gpu_cuda_kernel_launch_calls_total{process=\"app\"} 20000\n"
		   "cudatrace_calls_total{" OF_MALLOC "} 7\n"
		   "cudatrace_calls_total{" OF_LAUNCH "} 20000\n"
		   "cudatrace_call_failures_total{" OF_MALLOC "} 0\n"
		   "cudatrace_call_failures_total{" OF_LAUNCH "} 2\n"
		   "cudatrace_call_impossible_sizes_total{process=\"app\"} 3\n"
		   "cudatrace_call_time_seconds_total{" OF_MALLOC "} 0\n"
		   "cudatrace_call_time_seconds_total{" OF_LAUNCH "} 20\n"
		   "cudatrace_calls_estimated_total{" OF_LAUNCH "} 19000\n"
		   "cudatrace_calls_error{" OF_LAUNCH "} 400\n"
		   "cudatrace_probe_cost_seconds_total 1.5\n"
		   "cudatrace_programs_cpu_seconds_total 300\n"
		   "cudatrace_probe_duty_ratio 0.05\n"
		   "cudatrace_probe_duty_functions 3\n"
		   "cudatrace_probe_cost_ratio 0.0075\n"
		   "cudatrace_probe_cost_limit_ratio 0.01\n",
		   lines_of(of));
#define ALL_LAUNCHES "gpu_cuda_kernel_launch_calls_total{process=\"app\"}"
#define ERRORS "cudatrace_calls_error{" OF_LAUNCH "}"
	/* an estimate that becomes less takes nothing back, and what comes then counts from there */
	estimate(&a, 1100, 17000, 300, false);
	CHECK_TEXT("20000", value(ALL_LAUNCHES));
	CHECK_TEXT("300", value(ERRORS));
	estimate(&a, 1200, 19800, 310, false);
	CHECK_TEXT("21000", value(ALL_LAUNCHES));
	/* nothing is known of it any more: no new beginning either */
	estimate(&a, 1200, 0, 0, false);
	CHECK_TEXT("21000", value(ALL_LAUNCHES));
	estimate(&a, 1300, 19900, 320, true);
	CHECK_TEXT("21200", value(ALL_LAUNCHES));
	CHECK_TEXT("320", value(ERRORS));
	losses.probes = (struct probe_cost){ 0 };
	end();
}

int main(void)
{
	RUN(test_memory);
	RUN(test_process_ends);
	RUN(test_number_is_anothers);
	RUN(test_exec);
	RUN(test_container);
	RUN(test_too_many_kinds);
	RUN(test_kinds_make_room);
	RUN(test_sizes);
	RUN(test_durations);
	RUN(test_kernels);
	RUN(test_collectives);
	RUN(test_many_communicators);
	RUN(test_collectives_of_another_kind);
	RUN(test_many);
	RUN(test_devices);
	RUN(test_formats);
	RUN(test_accept);
	RUN(test_estimates);
	return unit_end();
}
