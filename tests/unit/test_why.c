/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_why.c - gaps that are divided: stories of one device and some threads, each with the causes that
 * must be found, to the nanosecond; and dice, whose parts must add up all the same.
 */
#include <stdlib.h>

#include "unit.h"
#include "../../user/api/api.h"
#include "../../user/gaps/why.h"

#define MS 1000000ULL
#define PID 100

static struct why *w;
static struct process_table *procs;
static const struct why_part *parts;
static size_t nparts;

static void give(const struct ct_hdr *h, const struct cause *cause)
{
	struct event ev = { .rec = h, .cause = cause };

	ev.proc = process_table_find(procs, h->pid);
	CHECK(!record_check(h, h->size));
	CHECK_EQ(1, why_event(w, &ev));
}

static void begin(void)
{
	w = why_open();
	procs = process_table_open();
}

static void finish(void)
{
	parts = why_finish(w, NULL, &nparts);
	CHECK(parts);
	for (size_t i = 0; i < nparts; i++) {
		uint64_t sum = 0;

		for (size_t k = 0; k < parts[i].ncauses; k++)
			sum += parts[i].causes[k].ns;
		CHECK_EQ(parts[i].idle_ns, sum);
		CHECK_EQ(parts[i].to_ns - parts[i].from_ns, parts[i].idle_ns + parts[i].busy_ns);
		sum = 0;
		for (size_t k = 0; k < parts[i].npath; k++)
			sum += parts[i].path[k].ns;
		if (parts[i].is_device)
			CHECK_EQ(parts[i].to_ns - parts[i].from_ns, sum);
	}
}

static void end(void)
{
	why_close(w);
	process_table_close(procs);
}

static uint64_t found(size_t part, const char *word, const char *text)
{
	for (size_t k = 0; part < nparts && k < parts[part].ncauses; k++)
		if (!strcmp(why_word(parts[part].causes[k].kind), word) &&
		    !strcmp(parts[part].causes[k].text, text))
			return parts[part].causes[k].ns;
	return 0;
}

static uint64_t on_path(const char *word, const char *text)
{
	for (size_t k = 0; nparts && k < parts[0].npath; k++)
		if (!strcmp(why_word(parts[0].path[k].kind), word) &&
		    !strcmp(parts[0].path[k].text, text))
			return parts[0].path[k].ns;
	return 0;
}

/* A call of thread `tid`. */
static void calls(const char *name, uint32_t tid, uint64_t from, uint64_t to)
{
	struct {
		struct ct_call c;
		uint64_t words[CT_MAX_WORDS];
	} r = { .c = { .h = { .size = sizeof(r.c) + 8 * CT_MAX_WORDS,
			      .kind = CT_CALL,
			      .pid = PID,
			      .tid = tid,
			      .start_ns = from,
			      .end_ns = to },
		       .func = (uint16_t)api_next(name, -1),
		       .nwords = CT_MAX_WORDS } };

	give(&r.c.h, NULL);
}

/* Work from..to, launched by thread `tid` in launch..+10 us. launch 0: not seen. */
static void works(uint64_t from, uint64_t to, uint32_t tid, uint64_t launch)
{
	struct ct_set s = { .w.h = { .size = sizeof(s),
				     .kind = CT_SET,
				     .pid = PID,
				     .tid = tid,
				     .start_ns = from,
				     .end_ns = to },
			    .w.call_ns = launch };
	struct cause c = { .start_ns = launch, .end_ns = launch + 10000, .tid = tid };

	give(&s.w.h, launch ? &c : NULL);
}

static struct ct_host_segment off(uint32_t tid, uint64_t run, uint64_t from, uint64_t to,
				  uint8_t state, uint8_t reason)
{
	struct ct_host_segment s = { .h = { .size = sizeof(s),
					    .kind = CT_HOST_SEGMENT,
					    .pid = PID,
					    .tid = tid,
					    .start_ns = from,
					    .end_ns = to },
				     .run_ns = run,
				     .state = state,
				     .reason = reason,
				     .wake_ns = state == CT_HOST_BLOCKED ? to : 0 };

	snprintf(s.comm, sizeof(s.comm), "t%u", tid);
	return s;
}

static void waits(struct ct_host_segment s, uint8_t by, uint32_t other)
{
	s.by = by;
	s.other_tid = other;
	s.other_pid = PID;
	give(&s.h, NULL);
}

/* The time of a file, of a CPU that another one had, and of the launch. */
static void test_one_thread(void)
{
	struct ct_host_segment s;

	begin();
	works(0 + MS, 2 * MS, 1, MS - 20000);
	works(12 * MS, 13 * MS, 1, 11 * MS);
	s = off(1, 0, 3 * MS, 6 * MS, CT_HOST_BLOCKED, CT_HOST_FILE);
	s.wake_ns = 5 * MS;
	snprintf(s.object, sizeof(s.object), "a\nb");
	waits(s, CT_HOST_BY_INTERRUPT, 0);
	s = off(1, 6 * MS, 7 * MS, 9 * MS, CT_HOST_READY, 0);
	snprintf(s.other, sizeof(s.other), "ffmpeg");
	waits(s, CT_HOST_BY_NOBODY, 7);
	waits(off(1, 9 * MS, 20 * MS, 20 * MS, CT_HOST_RUNNING, 0), 0, 0);
	finish();
	CHECK_EQ(1, nparts);
	CHECK_EQ(2 * MS, found(0, "file", "reads or writes a\\012b"));
	CHECK_EQ(MS, found(0, "woken-late", "ready, no CPU: woken and not yet on one"));
	CHECK_EQ(2 * MS, found(0, "displaced", "ready, no CPU: displaced by ffmpeg"));
	CHECK_EQ(MS - 10000, found(0, "launch-latency", "launch latency"));
	/* on the CPU: 2..3, 6..7, 9..11, and the launch's own 10 us, which no call covers */
	CHECK_EQ(4 * MS + 10000, found(0, "running", "running t1, too briefly for a sample"));
	CHECK_EQ(10 * MS, parts[0].known_ns);
	end();
}

/* A wait is charged to what the one who ended it did meanwhile, and to what that one waited for. */
static void test_chain(void)
{
	begin();
	works(MS, 2 * MS, 1, MS - 20000);
	works(10 * MS, 11 * MS, 1, 10 * MS - 10000);
	waits(off(1, 0, 2 * MS, 10 * MS - 10000, CT_HOST_BLOCKED, CT_HOST_PIPE), CT_HOST_BY_THREAD,
	      2);
	waits(off(1, 10 * MS - 10000, 20 * MS, 20 * MS, CT_HOST_RUNNING, 0), 0, 0);
	/* 2 slept to 4, waited for 3 to 7, which read a file from 5 on */
	waits(off(2, 0, MS, 4 * MS, CT_HOST_BLOCKED, CT_HOST_SLEEP), CT_HOST_BY_INTERRUPT, 0);
	waits(off(2, 4 * MS, 4 * MS, 7 * MS, CT_HOST_BLOCKED, CT_HOST_LOCK), CT_HOST_BY_THREAD, 3);
	waits(off(2, 7 * MS, 20 * MS, 20 * MS, CT_HOST_RUNNING, 0), 0, 0);
	waits(off(3, 0, 5 * MS, 7 * MS, CT_HOST_BLOCKED, CT_HOST_FILE), CT_HOST_BY_INTERRUPT, 0);
	finish();
	CHECK_EQ(2 * MS, found(0, "sleep", "waits for a pipe <- t2: sleeps"));
	CHECK_EQ(2 * MS,
		 found(0, "file",
		       "waits for a pipe <- t2: waits for a lock <- t3: reads or writes a file"));
	CHECK_EQ(MS, found(0, "running",
			   "waits for a pipe <- t2: waits for a lock <- t3: running t3, too "
			   "briefly for a sample"));
	CHECK_EQ(3 * MS - 10000,
		 found(0, "running",
		       "waits for a pipe <- t2: running t2, too briefly for a sample"));
	end();
}

/* Two that wait for each other, an interrupt that came while an innocent one ran, a waker that was not watched. */
static void test_ends_of_chains(void)
{
	struct ct_host_segment s;

	begin();
	works(MS, 2 * MS, 1, MS - 20000);
	works(10 * MS, 11 * MS, 1, 10 * MS - 10000);
	waits(off(1, 0, 2 * MS, 5 * MS, CT_HOST_BLOCKED, CT_HOST_LOCK), CT_HOST_BY_THREAD, 2);
	waits(off(1, 5 * MS, 5 * MS, 6 * MS, CT_HOST_BLOCKED, CT_HOST_SOCKET), CT_HOST_BY_INTERRUPT,
	      2);
	s = off(1, 6 * MS, 6 * MS, 8 * MS, CT_HOST_BLOCKED, CT_HOST_PIPE);
	snprintf(s.other, sizeof(s.other), "cat");
	waits(s, CT_HOST_BY_THREAD, 77);
	/* from 8 to 9 records are missing */
	waits(off(1, 9 * MS, 20 * MS, 20 * MS, CT_HOST_RUNNING, 0), 0, 0);
	waits(off(2, 0, MS, 5 * MS, CT_HOST_BLOCKED, CT_HOST_LOCK), CT_HOST_BY_THREAD, 1);
	finish();
	CHECK_EQ(3 * MS,
		 found(0, "lock", "waits for a lock <- t2: waits for a lock, in turn with t1"));
	CHECK_EQ(MS, found(0, "socket", "waits for a socket"));
	CHECK_EQ(2 * MS, found(0, "pipe", "waits for a pipe, ended by cat"));
	CHECK_EQ(MS, found(0, "lost", "records lost"));
	end();
}

/* Python's lock is charged to its holder's samples; the holder's part in a chain is not said twice. */
static void test_gil(void)
{
	struct ct_host_segment s;

	begin();
	works(MS, 2 * MS, 1, MS - 20000);
	works(10 * MS, 11 * MS, 1, 10 * MS - 10000);
	waits(off(1, 0, 2 * MS, 10 * MS - 10000, CT_HOST_BLOCKED, CT_HOST_GIL),
	      CT_HOST_BY_INTERRUPT, 2);
	waits(off(1, 10 * MS - 10000, 20 * MS, 20 * MS, CT_HOST_RUNNING, 0), 0, 0);
	for (int i = 0; i < 4; i++) {
		s = off(2, 0, (uint64_t)(3 + i) * MS, (uint64_t)(3 + i) * MS, CT_HOST_SAMPLED,
			i ? CT_HOST_USER : CT_HOST_GC);
		give(&s.h, NULL);
	}
	waits(off(2, 0, 20 * MS, 20 * MS, CT_HOST_RUNNING, 0), 0, 0);
	finish();
	CHECK_EQ((8 * MS - 10000) / 4,
		 found(0, "garbage-collection", "waits for the GIL <- t2: garbage collection"));
	CHECK_EQ((8 * MS - 10000) / 4 * 3, found(0, "running", "waits for the GIL <- t2: running"));
	end();
}

/* A name with what a terminal obeys, and of which the escapes are longer than a name. */
static void test_names(void)
{
	struct ct_host_segment s = off(1, 0, 20 * MS, 20 * MS, CT_HOST_RUNNING, 0);

	begin();
	works(MS, 2 * MS, 1, MS - 20000);
	works(10 * MS, 11 * MS, 1, 10 * MS - 10000);
	snprintf(s.comm, sizeof(s.comm), "\033[2Jabcdefghijk");
	waits(s, 0, 0);
	finish();
	CHECK_EQ(8 * MS, found(0, "running", "running \\033[2Jabcdefgh, too briefly for a sample"));
	end();
}

/* Launched before the gap; not seen to be launched; by a thread that is not watched. */
static void test_unknown(void)
{
	begin();
	works(MS, 2 * MS, 1, MS - 20000);
	works(4 * MS, 5 * MS, 1, MS + 20000);
	works(6 * MS, 7 * MS, 1, 0);
	works(9 * MS, 10 * MS, 5, 9 * MS - 10000);
	waits(off(1, 0, 20 * MS, 20 * MS, CT_HOST_RUNNING, 0), 0, 0);
	finish();
	CHECK_EQ(2 * MS, found(0, "device", "a set was launched before, and waited on the device"));
	CHECK_EQ(MS, found(0, "launch-not-seen", "the launch was not seen"));
	CHECK_EQ(2 * MS, found(0, "not-traced", "thread not traced"));
	CHECK_EQ(2 * MS, parts[0].known_ns);
	end();
}

/* The host computes while the device works: its time is the whole way, although the device was idle for half of
 * it only, and the device's work is the bound of what can be gained. */
static void test_path_of_host(void)
{
	begin();
	for (uint64_t i = 1; i <= 3; i++)
		works(10 * i * MS, (10 * i + 5) * MS, 1, 10 * i * MS - 10000);
	waits(off(1, 0, 40 * MS, 40 * MS, CT_HOST_RUNNING, 0), 0, 0);
	finish();
	CHECK_EQ(10 * MS, parts[0].idle_ns);
	CHECK_EQ(5 * MS, on_path("device-work", "the GPU works: a set"));
	CHECK_EQ(20 * MS, on_path("running", "running t1, too briefly for a sample"));
	CHECK_EQ(15 * MS, parts[0].least_ns);
	end();
}

/* It waits for the device after each launch: the way changes between both. */
static void test_path_through_waits(void)
{
	begin();
	for (uint64_t i = 1; i <= 3; i++) {
		works(10 * i * MS, (10 * i + 5) * MS, 1, 10 * i * MS - 10000);
		calls("cudaStreamSynchronize", 1, 10 * i * MS, (10 * i + 5) * MS + 30000);
	}
	waits(off(1, 0, 40 * MS, 40 * MS, CT_HOST_RUNNING, 0), 0, 0);
	finish();
	CHECK_EQ(15 * MS, on_path("device-work", "the GPU works: a set"));
	CHECK_EQ(60000, on_path("cuda-call", "inside cudaStreamSynchronize"));
	CHECK_EQ(10 * MS - 60000, on_path("running", "running t1, too briefly for a sample"));
	end();
}

/* Work that waited for the work before it in its stream: the host's time is not on the way. */
static void test_path_of_device(void)
{
	begin();
	works(10 * MS, 15 * MS, 1, 10 * MS - 10000);
	works(15 * MS + 1000, 20 * MS, 1, 12 * MS);
	works(20 * MS + 1000, 25 * MS, 1, 13 * MS);
	waits(off(1, 0, 40 * MS, 40 * MS, CT_HOST_RUNNING, 0), 0, 0);
	finish();
	CHECK_EQ(15 * MS - 2000, on_path("device-work", "the GPU works: a set"));
	CHECK_EQ(2000, on_path("launch-latency", "launch latency"));
	CHECK_EQ(2, parts[0].npath);
	end();
}

/* Ten steps, one of which waited for a file for 7 ms more, and ran for 2 more. */
static void test_slow_step(void)
{
	uint64_t at = MS;

	begin();
	for (int i = 0; i < 10; i++) {
		bool slow = i == 6;
		uint64_t run = at + MS, file = run + (slow ? 8 : 1) * MS,
			 launch = file + (slow ? 3 : 1) * MS;
		struct ct_host_segment s = off(1, at, run, file, CT_HOST_BLOCKED, CT_HOST_FILE);

		snprintf(s.object, sizeof(s.object), "shard-%s.tar", slow ? "21" : "1");
		waits(s, CT_HOST_BY_INTERRUPT, 0);
		calls("cudaLaunchKernel", 1, launch, launch + 10000);
		calls("cudaGraphLaunch", 1, launch + 20000, launch + 30000);
		works(launch + 10000, launch + MS, 1, launch);
		waits(off(1, file, launch + MS, launch + MS, CT_HOST_BLOCKED, CT_HOST_SLEEP),
		      CT_HOST_BY_INTERRUPT, 0);
		at = launch + MS;
	}
	finish();
	CHECK_EQ(10, parts[0].steps.n);
	CHECK_EQ(4 * MS, parts[0].steps.median_ns);
	CHECK_EQ(1, parts[0].steps.nslow);
	CHECK_EQ(9 * MS, parts[0].steps.slow[0].more_ns);
	CHECK_EQ(6, parts[0].steps.slow[0].number);
	CHECK_EQ(2, parts[0].steps.slow[0].nmore);
	CHECK_TEXT("reads or writes shard-21.tar", parts[0].steps.slow[0].more[0].text);
	CHECK_EQ(8 * MS, parts[0].steps.slow[0].more[0].ns);
	CHECK_TEXT("running t1", parts[0].steps.slow[0].more[1].text);
	CHECK_EQ(2 * MS, parts[0].steps.slow[0].more[1].ns);
	end();
}

/* Three steps of a process that ends, and then ten of another one that gets its number, in the same thread's. */
static void test_number_again(void)
{
	struct ct_exit gone = { .h = { .size = sizeof(gone), .kind = CT_EXIT, .pid = PID } };
	struct ct_process next = {
		.h = { .size = sizeof(next), .kind = CT_PROCESS, .pid = PID, .tid = PID },
		.start_boottime_ns = 9
	};
	uint64_t at = MS;

	begin();
	for (int i = 0; i < 13; i++) {
		uint64_t launch = at + (i < 3 ? 1 : 3) * MS;

		if (i == 3) {
			gone.h.start_ns = gone.h.end_ns = at;
			next.h.start_ns = next.h.end_ns = at;
			CHECK_EQ(0, why_event(w, &(struct event){ .rec = &gone.h }));
			CHECK_EQ(0, why_event(w, &(struct event){ .rec = &next.h }));
		}
		calls("cudaLaunchKernel", 1, launch, launch + 10000);
		calls("cudaGraphLaunch", 1, launch + 20000, launch + 30000);
		works(launch + 10000, launch + MS, 1, launch);
		at = launch + MS;
	}
	finish();
	CHECK_EQ(1, nparts);
	CHECK_EQ(4 * MS, parts[0].steps.median_ns);
	end();
}

/* The first step begins before the device's first work, which comes late: the device is not busy up to then. */
static void test_slow_first_step(void)
{
	uint64_t at = MS;

	begin();
	for (int i = 0; i < 10; i++) {
		uint64_t late = i ? 0 : 9 * MS, to = at + 4 * MS + late;

		calls("cudaLaunchKernel", 1, at, at + 10000);
		calls("cudaGraphLaunch", 1, at + 20000, at + 30000);
		works(at + late + 10000, at + late + MS, 1, at);
		waits(off(1, at, at + 30000, to, CT_HOST_BLOCKED, CT_HOST_SLEEP),
		      CT_HOST_BY_INTERRUPT, 0);
		at = to;
	}
	finish();
	CHECK_EQ(4 * MS, parts[0].steps.median_ns);
	CHECK_EQ(1, parts[0].steps.nslow);
	CHECK_EQ(9 * MS, parts[0].steps.slow[0].more_ns);
	CHECK_EQ(1, parts[0].steps.slow[0].nmore);
	CHECK_TEXT("launch latency", parts[0].steps.slow[0].more[0].text);
	CHECK_EQ(9 * MS, parts[0].steps.slow[0].more[0].ns);
	end();
}

/* Work of a device and a stream, launched together with other work of one call at `launch`. */
static void works_on(uint32_t device, uint32_t stream, uint64_t from, uint64_t to, uint64_t launch)
{
	struct ct_set s = { .w = { .device = device, .stream = stream, .call_ns = launch } };
	struct cause c = { .start_ns = launch, .end_ns = launch + 10000, .tid = 1 };

	s.w.h = (struct ct_hdr){ .size = sizeof(s),
				 .kind = CT_SET,
				 .pid = PID,
				 .tid = 1,
				 .start_ns = from,
				 .end_ns = to };
	give(&s.w.h, &c);
}

static void stream_waits(uint32_t device, uint32_t stream, uint64_t ns)
{
	struct ct_sync y = { .w = { .device = device, .stream = stream },
			     .type = CT_SYNC_STREAM_WAIT };

	y.w.h = (struct ct_hdr){ .size = sizeof(y),
				 .kind = CT_SYNC,
				 .pid = PID,
				 .tid = 1,
				 .start_ns = ns,
				 .end_ns = ns };
	give(&y.w.h, NULL);
}

/* A stream that waits for an event of another device: for what ran there, and before that for who launched it. */
static void test_other_device(void)
{
	begin();
	works_on(0, 7, MS, 2 * MS, MS - 20000);
	stream_waits(0, 7, MS + 50000);
	works_on(0, 7, 10 * MS, 11 * MS, MS + 60000);
	works_on(1, 9, 5 * MS, 10 * MS - 5000, 4 * MS);
	/* one without such a wait is blamed for nothing */
	works_on(0, 7, 20 * MS, 21 * MS, 3 * MS);
	works_on(1, 9, 12 * MS, 20 * MS - 5000, 4 * MS + 20000);
	waits(off(1, 0, 3 * MS, 4 * MS, CT_HOST_BLOCKED, CT_HOST_SLEEP), CT_HOST_BY_INTERRUPT, 0);
	waits(off(1, 4 * MS, 40 * MS, 40 * MS, CT_HOST_RUNNING, 0), 0, 0);
	finish();
	CHECK_EQ(2, nparts);
	CHECK_EQ(5 * MS, found(0, "other-device", "waits for GPU 1: a set"));
	CHECK_EQ(MS, found(0, "sleep", "waits for GPU 1 <- sleeps"));
	CHECK_EQ(MS - 10000, found(0, "launch-latency", "waits for GPU 1 <- launch latency"));
	CHECK_EQ(9 * MS, found(0, "device", "a set was launched before, and waited on the device"));
	end();
}

/* Between the pieces of work of one launch nobody on the host is asked; a copy that nothing overlaps is busy time. */
static void test_graph(void)
{
	begin();
	works(MS, 2 * MS, 1, MS - 20000);
	works(4 * MS, 5 * MS, 1, MS - 20000);
	finish();
	CHECK_EQ(2 * MS, found(0, "graph", "between the pieces of work of one launch"));
	CHECK_EQ(2 * MS, parts[0].copies_ns);
	end();
}

/* Without device work: of many threads those that launch most are divided, and the others are counted. */
static void test_many_threads(void)
{
	struct why_totals totals;

	begin();
	for (uint32_t tid = 1; tid <= 100; tid++)
		for (uint64_t i = 1; i <= 2 + tid % 3; i++)
			calls("cudaLaunchKernel", tid, i * MS, i * MS + 10000);
	finish();
	why_totals(w, &totals);
	CHECK_EQ(64, nparts);
	CHECK_EQ(36, totals.threads_left_out);
	CHECK_EQ(3 * MS, parts[0].to_ns - parts[0].from_ns - 10000);
	CHECK_EQ(2, parts[0].device);
	end();
}

/* Records in any order, with any times: the parts add up. */
static void test_dice(void)
{
	for (unsigned int seed = 1; seed <= 200; seed++) {
		srand(seed);
		begin();
		for (int i = 0; i < 40; i++) {
			uint64_t from = (uint64_t)rand() % 1000, run = (uint64_t)rand() % 1000;
			struct ct_host_segment s =
				off((uint32_t)rand() % 4, run, from, from + (uint64_t)rand() % 100,
				    (uint8_t)(rand() % 6), (uint8_t)(rand() % 20));

			s.wake_ns = (uint64_t)rand() % 1100;
			waits(s, (uint8_t)(rand() % 5), (uint32_t)rand() % 5);
			works(from, from + (uint64_t)rand() % 10, (uint32_t)rand() % 4,
			      (uint64_t)rand() % 1000);
		}
		finish();
		end();
	}
}

int main(void)
{
	RUN(test_one_thread);
	RUN(test_chain);
	RUN(test_ends_of_chains);
	RUN(test_gil);
	RUN(test_names);
	RUN(test_unknown);
	RUN(test_path_of_host);
	RUN(test_path_through_waits);
	RUN(test_path_of_device);
	RUN(test_slow_step);
	RUN(test_slow_first_step);
	RUN(test_number_again);
	RUN(test_other_device);
	RUN(test_graph);
	RUN(test_many_threads);
	RUN(test_dice);
	return unit_end();
}
