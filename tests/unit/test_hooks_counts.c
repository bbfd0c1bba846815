/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hooks_counts.c - calls counted inside a process, and their sums: what is done at a hook
 * (target/hooks/capture.c, target/hooks/counts.c) is called here as the engine calls it, and the reader of
 * user/source/hooks makes CT_CALL_COUNT records of the area. Also with an area that makes no sense.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../target/hooks/capture.h"
#include "../../target/hooks/allocations.h"
#include "../../target/hooks/reach.h"
#include "../../user/source/agent/agent_process.h"
#include "../../user/source/agent/agent_tids.h"
#include "../../user/source/hooks/hooks_counts.h"
#include "api_row.h"
#include "random.h"
#include "unit.h"

#define RING_BYTES 65536u
#define BLOCKS 64u
#define THREADS 4
#define CALLS 20000
#define CALL_COUNTS 96
#define UNTIL (1ULL << 62) /* what is handed out was counted until then */

static int row_malloc, row_free, row_get, row_copy, row_launch, row_sync;
static struct agent_tids *tids;
static struct hooks_ring *ring;
static struct hooks_counts *counts;
static struct hooks_muted *muted;
static struct capture_plan plan;

/* the engine's */
struct hook_within engine_parts;

struct hook_thread *hook_self(void)
{
	return NULL;
}

void hook_count_into(struct hook_thread *t, __u64 *into)
{
	t->counts = into;
}

bool hook_is_under_way(const struct hook_frame *f)
{
	return f->number != 13;
}

bool hook_is_busy(const struct hook_frame *f)
{
	(void)f;
	return false;
}

/* ---- what is handed out ---- */

struct seen {
	struct ct_call_count t[CALL_COUNTS];
	uint64_t in_hist[CALL_COUNTS]; /* calls in the record's histogram */
	int n;
	bool valid;
};

static int see(void *ctx, const struct ct_hdr *h)
{
	const struct ct_call_count *t = (const struct ct_call_count *)h;
	struct seen *s = ctx;

	s->valid &= h->kind == CT_CALL_COUNT && h->end_ns == UNTIL && !record_check(h, h->size) &&
		    (h->pid == (uint32_t)getpid() || !h->pid);
	if (s->n == CALL_COUNTS)
		return 0;
	s->t[s->n] = *t;
	for (uint32_t i = 0; i < t->nbuckets; i++)
		s->in_hist[s->n] += t->hist[i];
	s->n++;
	return 0;
}

static uint64_t started(void)
{
	return agent_process_started_ns(getpid());
}

static struct seen read_counts(void)
{
	struct seen s = { .valid = true };

	hooks_counts_begin(counts);
	if (ring)
		hooks_counts_add(counts, ring, started());
	CHECK_EQ(0, hooks_counts_emit(counts, UNTIL, see, &s));
	CHECK(s.valid);
	return s;
}

static const struct ct_call_count *of(const struct seen *s, int row, int sub, uint64_t by)
{
	static const struct ct_call_count none;

	for (int i = 0; i < s->n; i++)
		if (s->t[i].func == row && s->t[i].sub == sub && s->t[i].by == by &&
		    s->t[i].how != CT_BY_SIZE && s->t[i].h.pid)
			return &s->t[i];
	return &none;
}

/* ---- calls ---- */

static void set_up(struct ct_config config)
{
	struct hooks_ring_opts o = { .threads = BLOCKS,
				     .ring_bytes = RING_BYTES,
				     .cells = 4096,
				     .pid = getpid(),
				     .tids = tids };
	struct hooks_start s = { .version = HOOKS_VERSION,
				 .threads = o.threads,
				 .ring_bytes = o.ring_bytes,
				 .cells = o.cells,
				 .min_ticks = config.filter.min_duration_ns };
	int rows[] = { row_malloc, row_free, row_get, row_copy, row_launch, row_sync }, fd;

	config.count = 1;
	s.config = config;
	memset(&plan, 0, sizeof(plan));
	plan.count = true;
	plan.count_by = config.count_by;
	plan.hist = config.hist;
	plan.sizes = config.sizes;
	plan.no_return = config.no_return;
	ring = hooks_ring_open(&o, &fd);
	CHECK(ring && !capture_open(fd, &s));
	close(fd);
	hooks_ring_phase(ring, CT_PHASE_RUNNING);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ct_spec spec;

		CHECK(!api_spec(rows[i], API_ARCH_HERE, true, &spec));
		capture_spec((unsigned int)rows[i], &spec);
		plan_add(plan.capture, rows[i]);
		plan_add(plan.shown, rows[i]);
	}
	muted = hooks_muted_open(&plan);
	CHECK(muted != NULL);
	counts = hooks_counts_open(&plan, muted);
	CHECK(counts != NULL);
}

static void tear_down(void)
{
	capture_close();
	hooks_ring_close(ring);
	ring = NULL;
	hooks_counts_close(counts);
	hooks_muted_close(muted);
}

static bool begin(struct hook_frame *f, int row, uint64_t number, uint64_t sp, const uint64_t *args)
{
	struct {
		struct hook_regs r;
		uint64_t stack[16];
	} regs = { 0 };

	memcpy(regs.r.args, args, sizeof(regs.r.args));
	*f = (struct hook_frame){ .sp = sp, .number = number, .id = (uint32_t)row };
	return capture_enters(f, &regs.r, CT_COOKIE(row, false));
}

static void call(int row, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth,
		 uint64_t result)
{
	uint64_t args[HOOK_ARGS] = { first, second, third, fourth };
	struct hook_frame f;

	if (begin(&f, row, 1, 1 << 20, args))
		capture_leaves(&f, f.id, result);
}

/* The stack of a handler lies below. */
static void call_of_handler(void)
{
	uint64_t args[HOOK_ARGS] = { 0 };
	struct hook_frame f;

	if (begin(&f, row_get, 1, 1 << 19, args))
		capture_leaves(&f, f.id, 0);
}

/* ---- */

static void test_sums(void)
{
	const struct ct_call_count *t;
	struct seen s;

	set_up((struct ct_config){ .hist = CT_HIST_BY_KEY });
	for (int i = 0; i < 10; i++)
		call(row_get, 0, 0, 0, 0, i < 3 ? 2 : 0);
	for (int i = 0; i < 7; i++)
		call(row_copy, 0, 0, 1000, i < 2 ? 1 : 2, 0);
	call(row_copy, 0, 0, 5000, 2, 1); /* failed: it moved nothing */
	s = read_counts();
	CHECK_EQ(3, s.n);
	t = of(&s, row_get, 0, 0);
	CHECK_EQ(10, t->sums.calls);
	CHECK_EQ(3, t->sums.failed);
	CHECK_EQ(10, t->sums.timed);
	CHECK_EQ(0, t->h.flags);
	CHECK_EQ((uint32_t)(started() >> 10), t->start);
	CHECK(t->sums.min_ns <= t->sums.max_ns && t->sums.max_ns <= t->sums.ns);
	CHECK(t->sums.min_ns * 10 <= t->sums.ns && t->sums.ns <= t->sums.max_ns * 10);
	CHECK_EQ(CT_HIST_BUCKETS, t->nbuckets);
	for (int i = 0; i < s.n; i++)
		CHECK_EQ(s.t[i].sums.calls, s.in_hist[i]);
	CHECK_EQ(2, of(&s, row_copy, 1, 0)->sums.calls);
	CHECK_EQ(2000, of(&s, row_copy, 1, 0)->sums.bytes);
	CHECK_EQ(6, of(&s, row_copy, 2, 0)->sums.calls);
	CHECK_EQ(5000, of(&s, row_copy, 2, 0)->sums.bytes);
	CHECK_EQ(1, of(&s, row_copy, 2, 0)->sums.failed);
	tear_down();
}

/* Calls inside calls are folded; one that was jumped over is counted, without a time. */
static void test_calls_under_way(void)
{
	uint64_t args[HOOK_ARGS] = { 0 };
	struct hook_frame outer, inner;
	struct hooks_ring_counts c;
	struct seen s;

	set_up((struct ct_config){ 0 });
	CHECK(begin(&outer, row_sync, 1, 2000, args));
	CHECK(!begin(&inner, row_get, 2, 1000, args));
	s = read_counts();
	CHECK_EQ(0, s.n);
	capture_leaves(&outer, outer.id, 0);
	CHECK(begin(&outer, row_sync, 13, 2000, args));
	call(row_get, 0, 0, 0, 0, 0);
	s = read_counts();
	CHECK_EQ(2, of(&s, row_sync, 0, 0)->sums.calls);
	CHECK_EQ(1, of(&s, row_sync, 0, 0)->sums.timed);
	CHECK_EQ(1, of(&s, row_get, 0, 0)->sums.calls);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(1, c.folded);
	CHECK_EQ(1, c.unfinished);
	CHECK_EQ(0, c.received + c.lost);
	tear_down();
}

/* Without returns each call is counted at its entry, and has no time. */
static void test_entries(void)
{
	struct seen s;

	set_up((struct ct_config){ .no_return = 1 });
	for (int i = 0; i < 5; i++)
		call(row_get, 0, 0, 0, 0, 2);
	s = read_counts();
	CHECK_EQ(1, s.n);
	CHECK_EQ(5, s.t[0].sums.calls);
	CHECK_EQ(0, s.t[0].sums.timed);
	CHECK_EQ(0, s.t[0].sums.ns + s.t[0].sums.min_ns + s.t[0].sums.failed);
	tear_down();
}

/* What a call frees is what another one allocated there. */
static void test_memory(void)
{
	uint64_t out[2] = { 0x700000000, 0x700001000 };
	struct seen s;

	set_up((struct ct_config){ .memory = 1 });
	call(row_malloc, (uint64_t)(uintptr_t)&out[0], 4096, 0, 0, 0);
	call(row_malloc, (uint64_t)(uintptr_t)&out[1], 100, 0, 0, 0);
	call(row_free, out[0], 0, 0, 0, 1); /* fails, and frees nothing */
	call(row_free, out[0], 0, 0, 0, 0);
	call(row_free, out[0], 0, 0, 0, 0); /* not held any more */
	call(row_free, 0x123000, 0, 0, 0, 0);
	call(row_malloc, (uint64_t)(uintptr_t)&out[1], 70, 0, 0, 0); /* its free was not seen */
	s = read_counts();
	CHECK_EQ(4266, of(&s, row_malloc, 0, 0)->sums.bytes);
	CHECK_EQ(100, of(&s, row_malloc, 0, 0)->sums.unheld_bytes);
	CHECK_EQ(0, of(&s, row_malloc, 0, 0)->sums.unheld);
	CHECK_EQ(4096, of(&s, row_free, 0, 0)->sums.bytes);
	CHECK_EQ(2, of(&s, row_free, 0, 0)->sums.unsized);
	tear_down();
}

/* More than there is room for near one place: it is said, and the rest is right. */
static void test_held(void)
{
	__u64 in = 0, had, bytes;

	CHECK_EQ(0, held_open());
	for (uint64_t i = 1; i <= 3000000; i++)
		in += held_put(i << 9, i, &had);
	CHECK(in > 900000 && in < 3000000);
	for (uint64_t i = 1; i <= 3000000; i++)
		if (held_take(i << 9, &bytes)) {
			in--;
			if (bytes != i)
				CHECK_EQ(i, bytes);
		}
	CHECK_EQ(0, in);
	CHECK(!held_take(0, &bytes) && !held_put(0, 1, &had));
	CHECK(held_put(512, 7, &had) && held_back(512, 9) && held_take(512, &bytes) && bytes == 7);
	CHECK(!held_back(512, 9) && held_take(512, &bytes) && bytes == 9);
}

/* A key that finds no cell, and the histograms and sizes of launches and copies. */
static void test_keys(void)
{
	struct hooks_ring_counts c;
	uint64_t calls = 0;
	struct seen s;

	set_up((struct ct_config){ .count_by = CT_BY_KERNEL });
	for (uint64_t i = 0; i < 5000; i++)
		call(row_launch, 0x1000 + i, 0, 0, 0, 0);
	for (int i = 0; i < 100; i++)
		call(row_launch, 0x1000, 0, 0, 0, 0);
	s = read_counts();
	hooks_ring_counts(ring, &c);
	CHECK_EQ(CALL_COUNTS, s.n);
	CHECK_EQ(5000 - 4096, c.no_cell);
	for (int i = 0; i < s.n; i++)
		calls += s.t[i].sums.calls;
	CHECK_EQ(CALL_COUNTS + (of(&s, row_launch, 0, 0x1000)->sums.calls ? 100 : 0), calls);
	tear_down();
	set_up((struct ct_config){ .sizes = 1, .hist = CT_HIST_BY_FUNCTION });
	call(row_copy, 0, 0, 1000, 1, 0);
	call(row_copy, 0, 0, 3000, 1, 0);
	s = read_counts();
	CHECK_EQ(3, s.n);
	CHECK_EQ(CT_BY_SIZE, s.t[0].how);
	CHECK_EQ(4000, s.t[0].sums.asked[0]);
	CHECK_EQ(2, s.in_hist[0]);
	CHECK_EQ(2, s.t[1].sums.calls);
	CHECK_EQ(0, s.t[1].nbuckets);
	CHECK_EQ(0, s.t[2].h.pid);
	CHECK_EQ(2, s.in_hist[2]);
	tear_down();
}

static void *many_calls(void *unused)
{
	for (int i = 0; i < CALLS; i++)
		call(row_copy, 0, 0, 3, i & 1, 0);
	return unused;
}

/* No call is missing or twice there, whoever makes them. */
static void test_threads(void)
{
	pthread_t threads[THREADS];
	struct seen s;

	set_up((struct ct_config){ .hist = CT_HIST_BY_KEY });
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, many_calls, NULL));
	for (int i = 0; i < 100; i++)
		read_counts();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	s = read_counts();
	CHECK_EQ(2, s.n);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(THREADS * CALLS / 2, s.t[i].sums.calls);
		CHECK_EQ(THREADS * CALLS / 2 * 3, s.t[i].sums.bytes);
		CHECK_EQ(THREADS * CALLS / 2, s.in_hist[i]);
	}
	tear_down();
	set_up((struct ct_config){ .count_by = CT_BY_THREAD });
	for (int i = 0; i < THREADS; i++) {
		CHECK(!pthread_create(&threads[i], NULL, many_calls, NULL));
		pthread_join(threads[i], NULL);
	}
	s = read_counts();
	CHECK_EQ(2 * THREADS, s.n);
	for (int i = 0; i < s.n; i++) {
		CHECK_EQ(CALLS / 2, s.t[i].sums.calls);
		CHECK(s.t[i].h.tid == s.t[i].by && s.t[i].h.tid);
	}
	tear_down();
}

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	(void)sig;
	for (int i = 0; i < 3; i++)
		call_of_handler();
	signals++;
}

/* A signal may come between any two instructions, and its handler make calls. */
static void test_signals(void)
{
	struct itimerval every = { { 0, 100 }, { 0, 100 } }, never = { 0 };
	unsigned int made = 0;
	uint64_t calls = 0;
	struct seen s;

	set_up((struct ct_config){ .nested = 1, .count_by = CT_BY_STREAM });
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &every, NULL);
	while (signals < 300) {
		/* each round makes a new key at the most dangerous moment */
		for (int i = 0; i < 100; i++)
			call(row_get, 0, 0, 0, 0, 0);
		made += 100;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	s = read_counts();
	for (int i = 0; i < s.n; i++)
		calls += s.t[i].sums.calls;
	CHECK_EQ(made + 3 * (unsigned int)signals, calls);
	tear_down();
}

/* A child's calls are not its parent's; what a process left stays, and is handed out for the last
 * time when it does not run any more. */
static void test_processes(void)
{
	struct seen s;
	int status;
	pid_t child;

	set_up((struct ct_config){ 0 });
	call(row_get, 0, 0, 0, 0, 0);
	child = fork();
	if (!child) {
		for (int i = 0; i < 50; i++)
			call(row_get, 0, 0, 0, 0, 0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	call(row_get, 0, 0, 0, 0, 0);
	s = read_counts();
	CHECK_EQ(2, of(&s, row_get, 0, 0)->sums.calls);
	hooks_counts_keep(counts, ring, started());
	hooks_ring_close(ring);
	ring = NULL;
	s = read_counts();
	CHECK_EQ(2, of(&s, row_get, 0, 0)->sums.calls);
	CHECK_EQ(0, of(&s, row_get, 0, 0)->h.flags);
	tear_down();
	set_up((struct ct_config){ 0 });
	call(row_get, 0, 0, 0, 0, 0);
	/* another process, which had this one's number */
	hooks_counts_keep(counts, ring, started() + (1ULL << 30));
	s = read_counts();
	CHECK_EQ(2, s.n);
	CHECK_EQ(CT_F_LAST, s.t[0].h.flags ^ s.t[1].h.flags);
	s = read_counts();
	CHECK_EQ(1, s.n);
	CHECK_EQ(0, s.t[0].h.flags);
	tear_down();
}

/* ---- what makes no sense ---- */

static uint64_t random_state = RANDOM_SEED;

static uint64_t random_number(void)
{
	return random_next(&random_state);
}

static void *mapped_area(void)
{
	char line[512];
	void *found = NULL;
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;

	/* the reader's own mapping: any of the two */
	while (f && !found && fgets(line, sizeof(line), f))
		if (strstr(line, "cudatrace-hooks") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			found = (void *)start;
	if (f)
		fclose(f);
	return found;
}

/* Sums that a process writes into its cells: those of all processes together do not wrap around. */
static void test_forged_sums(void)
{
	const struct ct_call_count *t;
	struct ct_entry *cells;
	uint64_t all = 0;
	struct seen s;
	void *area;

	set_up((struct ct_config){ .count_by = CT_BY_THREAD });
	call(row_get, 0, 0, 0, 0, 0);
	call(row_sync, 0, 0, 0, 0, 0);
	area = mapped_area();
	if (!CHECK(area))
		return;
	cells = hooks_cells(area, BLOCKS, RING_BYTES);
	for (int i = 0; i < 2; i++) {
		cells[i].n.calls = cells[i].n.failed = cells[i].n.untimed = UINT64_MAX;
		cells[i].n.ns = cells[i].n.bytes = UINT64_MAX;
	}
	s = read_counts();
	CHECK_EQ(2, s.n);
	for (int i = 0; i < s.n; i++) {
		t = &s.t[i];
		CHECK(t->sums.calls && t->sums.calls <= UINT64_MAX >> 20);
		CHECK(t->sums.failed <= t->sums.calls);
		CHECK(t->sums.ns <= UINT64_MAX >> 8 && t->sums.bytes <= UINT64_MAX >> 8);
		all += t->sums.calls;
	}
	CHECK(all > UINT64_MAX >> 20);
	tear_down();
}

/* ---- calls that the area does not have ---- */

static struct ct_call *call_under_way(int func, uint32_t tid, uint16_t flags)
{
	static union {
		struct ct_call c;
		char room[sizeof(struct ct_call) + CT_MAX_WORDS * 8];
	} r;

	memset(&r, 0, sizeof(r));
	r.c.h = (struct ct_hdr){ .size = sizeof(r),
				 .kind = CT_CALL,
				 .flags = flags,
				 .pid = (uint32_t)getpid(),
				 .tid = tid };
	r.c.func = (uint16_t)func;
	r.c.nwords = 1;
	r.c.words[0] = 0x1234;
	return &r.c;
}

/* A process was killed in calls: they count, without a time, by the key that the others have. */
static void test_unfinished(void)
{
	static const struct {
		uint8_t by;
		uint64_t key;
	} rows[] = { { CT_BY_FUNCTION, 0 },
		     { CT_BY_ASKED, 0 },
		     { CT_BY_THREAD, 77 },
		     { CT_BY_KERNEL, 0x1234 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ct_call_count *t;
		struct seen s;

		CASE_ROW("%u", rows[i].by);
		set_up((struct ct_config){ .count_by = rows[i].by });
		hooks_counts_unfinished(counts, call_under_way(row_launch, 77, 0), started());
		hooks_counts_unfinished(counts, call_under_way(row_launch, 77, 0), started());
		/* of cudatrace's own needs, and of a function that nobody asked for */
		hooks_counts_unfinished(counts, call_under_way(row_launch, 77, CT_F_HIDDEN),
					started());
		plan_remove(plan.shown, row_get);
		hooks_counts_unfinished(counts, call_under_way(row_get, 77, 0), started());
		s = read_counts();
		CHECK_EQ(1, s.n);
		t = of(&s, row_launch, 0, rows[i].key);
		CHECK_EQ(2, t->sums.calls);
		CHECK_EQ(0, t->sums.timed);
		CHECK_EQ(0, t->sums.failed);
		CHECK_EQ(0, t->sums.ns);
		/* whether they would have failed is not known */
		plan.filter.failed_only = true;
		hooks_counts_unfinished(counts, call_under_way(row_launch, 77, 0), started());
		plan.filter = (struct ct_filter){ .succeeded_only = true };
		hooks_counts_unfinished(counts, call_under_way(row_launch, 77, 0), started());
		s = read_counts();
		CHECK_EQ(2, of(&s, row_launch, 0, rows[i].key)->sums.calls);
		tear_down();
	}
}

/* More keys than there is room for: what finds none is counted, in each reading once, and for good what was kept. */
static void test_no_room(void)
{
	struct seen s;

	set_up((struct ct_config){ .count_by = CT_BY_KERNEL });
	hooks_counts_close(counts);
	plan.call_counts_max = 4;
	counts = hooks_counts_open(&plan, muted);
	for (uint64_t i = 0; i < 10; i++)
		call(row_launch, 0x1000 + i, 0, 0, 0, 0);
	CHECK_EQ(0, hooks_counts_lost(counts));
	for (int i = 0; i < 2; i++) {
		s = read_counts();
		CHECK_EQ(4, s.n);
		CHECK_EQ(6, hooks_counts_lost(counts));
	}
	hooks_counts_keep(counts, ring, started());
	hooks_counts_unfinished(counts, call_under_way(row_launch, 1, 0), started());
	CHECK_EQ(7, hooks_counts_lost(counts));
	hooks_ring_close(ring);
	ring = NULL;
	s = read_counts();
	CHECK_EQ(4, s.n);
	CHECK_EQ(7, hooks_counts_lost(counts));
	tear_down();
}

/* Calls of a muted function are counted apart from the cells, and no process says more of them than it can have made. */
static void test_muted_calls(void)
{
	struct ct_call often = { .h = { .pid = 1, .end_ns = 1 }, .func = (uint16_t)row_get };
	const struct ct_call_count *t;
	struct hooks_thread *thread;
	struct seen s;
	void *area;

	set_up((struct ct_config){ 0 });
	call(row_get, 0, 0, 0, 0, 0);
	for (int i = 0; i < 100000 && hooks_muted_call(muted, &often) < 0; i++)
		;
	CHECK_EQ(1, hooks_muted_n(muted));
	area = mapped_area();
	if (!CHECK(area))
		return;
	thread = hooks_block(area, 0, RING_BYTES);
	thread->muted[0] = 41;
	s = read_counts();
	t = of(&s, row_get, 0, 0);
	CHECK_EQ(1, s.n);
	CHECK_EQ(1, t->sums.calls);
	CHECK_EQ(41, t->unseen.calls);
	thread->muted[0] = UINT64_MAX;
	s = read_counts();
	t = of(&s, row_get, 0, 0);
	CHECK_EQ(1, t->sums.calls);
	CHECK_EQ((int64_t)HOOKS_CALLS_MAX, t->unseen.calls);
	/* in two readings, and kept */
	hooks_counts_keep(counts, ring, started());
	hooks_counts_keep(counts, ring, started());
	s = read_counts();
	CHECK_EQ((int64_t)HOOKS_CALLS_MAX, of(&s, row_get, 0, 0)->unseen.calls);
	tear_down();
}

/* The durations of a process that has ended stay in those of all processes. */
static void test_hists_of_ended(void)
{
	struct seen s;

	set_up((struct ct_config){ .hist = CT_HIST_BY_FUNCTION });
	for (int i = 0; i < 3; i++)
		call(row_get, 0, 0, 0, 0, 0);
	hooks_counts_keep(counts, ring, started() + (1ULL << 30));
	hooks_ring_close(ring);
	ring = NULL;
	s = read_counts();
	CHECK_EQ(2, s.n);
	CHECK_EQ(CT_F_LAST, s.t[0].h.flags);
	CHECK_EQ(3, s.in_hist[1]);
	s = read_counts();
	CHECK_EQ(1, s.n);
	CHECK_EQ(0, s.t[0].h.pid);
	CHECK_EQ(row_get, s.t[0].func);
	CHECK_EQ(3, s.in_hist[0]);
	tear_down();
}

/* Whatever the cells hold, what comes out is a record, and all ends. */
static void test_hostile_cells(void)
{
	for (int round = 0; round < 20; round++) {
		struct ct_entry *cells;
		struct seen s;
		void *area;

		set_up((struct ct_config){ .hist = CT_HIST_BY_KEY,
					   .sizes = round % 2 ? 1 : 0,
					   .count_by = CT_BY_THREAD });
		for (int i = 0; i < 100; i++)
			call(row_copy, 0, 0, (uint64_t)i, 1, 0);
		area = mapped_area();
		if (!CHECK(area))
			return;
		cells = hooks_cells(area, BLOCKS, RING_BYTES);
		((struct hooks_area *)area)->cells = 100 + (uint32_t)(random_number() % 100000);
		for (int i = 0; i < 100; i++) {
			uint64_t *words = (uint64_t *)&cells[i];

			for (size_t k = 0; k < sizeof(*cells) / 8; k++)
				words[k] = random_number() >> (random_number() % 64);
			cells[i].key.func %= round < 10 ? 4 * (unsigned int)api_nfuncs : 65535;
			cells[i].key.how = (__u8)(random_number() % 8);
		}
		s = read_counts();
		CHECK(s.valid);
		tear_down();
	}
}

/* ---- what is accessible ---- */

static bool is_accessible(const void *at)
{
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)at, 1 };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

static struct hooks_start start_with(uint32_t ring_bytes, uint32_t cells)
{
	return (struct hooks_start){ .threads = 64, .ring_bytes = ring_bytes, .cells = cells };
}

static void *map_anew(void *over, size_t bytes, int fd, const struct hooks_start *s)
{
	void *at;

	/* the area of an earlier attach was left at its end */
	if (over)
		CHECK(reach_map(NULL, 0, -1) == over);
	at = reach_map(over, bytes, fd);
	CHECK((!over || at == over) && at != MAP_FAILED && !reach_begin(at, s));
	return at;
}

/* Parts of an area become accessible when they are asked for, and stay so in what replaces it. */
static void test_accessible(void)
{
	struct hooks_start s = start_with(65536, 8192), other = start_with(4096, 0);
	size_t bytes = hooks_area_bytes(s.threads, s.ring_bytes, s.cells);
	int fd = memfd_create("area", 0);
	char *at, *block, *lists;
	struct ct_entry *cells;

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	at = map_anew(NULL, bytes, fd, &s);
	cells = hooks_cells(at, s.threads, s.ring_bytes);
	block = (char *)hooks_block(at, 8, s.ring_bytes);
	lists = (char *)hooks_lists(at, 8, s.threads, s.ring_bytes);
	CHECK(is_accessible(at) && !is_accessible(block) && !is_accessible(lists));
	CHECK(is_accessible(cells) && !is_accessible(cells + 2048));
	CHECK(reach_blocks() < 9 && reach_cells() < 2049);

	CHECK(!reach_more_blocks(9) && !reach_more_cells(2049));
	CHECK_EQ(9, reach_blocks());
	CHECK(reach_cells() >= 2049 && reach_cells() < 8192);
	CHECK(is_accessible(block + hooks_block_bytes(s.ring_bytes) - 1) && is_accessible(lists));
	CHECK(is_accessible(cells + 2048) && is_accessible(hooks_extras(cells, s.cells) + 2048));
	CHECK(!is_accessible(hooks_block(at, 9, s.ring_bytes)));
	CHECK(!is_accessible(cells + reach_cells()));
	CHECK(!is_accessible(hooks_extras(cells, s.cells) + reach_cells()));
	CHECK(!reach_more_cells(8192) && reach_more_cells(8193) && reach_more_blocks(65));
	CHECK_EQ(8192, reach_cells());

	/* the end, then an area of another layout, and of the same */
	CHECK(reach_map(at, bytes, -1) == at);
	CHECK(reach_more_blocks(10) && reach_more_cells(1));
	CHECK_EQ(0, reach_blocks());
	CHECK_EQ(0, reach_cells());
	CHECK(is_accessible(block) && is_accessible(lists) && is_accessible(cells + 8191));
	CHECK(!is_accessible(hooks_block(at, 9, s.ring_bytes)));
	map_anew(at, bytes, fd, &other);
	CHECK(!reach_more_blocks(64) && reach_more_cells(1));
	CHECK(is_accessible(hooks_block(at, 63, other.ring_bytes)));
	CHECK(is_accessible(block) && is_accessible(cells + 8191));
	for (uint32_t bytes_each = 8192; bytes_each < 65536; bytes_each *= 2) {
		other = start_with(bytes_each, 1024);
		map_anew(at, bytes, fd, &other);
		CHECK(!reach_more_blocks(20) && !reach_more_cells(1024));
		map_anew(at, bytes, fd, &s);
		CHECK(is_accessible(hooks_block(at, 19, bytes_each)));
		CHECK(is_accessible(hooks_lists(at, 19, other.threads, bytes_each)));
		CHECK(is_accessible(block) && is_accessible(lists) && is_accessible(cells + 8191));
	}
	munmap(at, bytes);
	close(fd);
}

/* More threads and kinds of calls than are accessible at the begin. */
static void *one_thread(void *arg)
{
	uint64_t args[HOOK_ARGS] = { 0 };
	struct hook_frame f;

	if (begin(&f, row_get, 1, 0x1000, args))
		capture_leaves(&f, f.id, 0);
	return arg;
}
static void test_more_than_at_begin(void)
{
	struct seen s;

	set_up((struct ct_config){ .count_by = CT_BY_THREAD });
	for (uint32_t i = 0; i < BLOCKS; i++) {
		pthread_t t;

		CHECK(!pthread_create(&t, NULL, one_thread, NULL) && !pthread_join(t, NULL));
	}
	CHECK_EQ(BLOCKS, reach_blocks());
	s = read_counts();
	CHECK_EQ(BLOCKS, s.n);
	tear_down();
}

int main(void)
{
	pid_t inner;

	tids = agent_tids_open(getpid(), &inner);
	row_malloc = row("cudaMalloc");
	row_free = row("cudaFree");
	row_get = row("cudaGetDevice");
	row_copy = row("cudaMemcpy");
	row_launch = row("cudaLaunchKernel");
	row_sync = row("cudaDeviceSynchronize");
	RUN(test_sums);
	RUN(test_calls_under_way);
	RUN(test_entries);
	RUN(test_memory);
	RUN(test_held);
	RUN(test_keys);
	RUN(test_threads);
	RUN(test_signals);
	RUN(test_processes);
	RUN(test_forged_sums);
	RUN(test_unfinished);
	RUN(test_no_room);
	RUN(test_muted_calls);
	RUN(test_hists_of_ended);
	RUN(test_hostile_cells);
	RUN(test_more_than_at_begin);
	/* last: it takes the place of the area of the others */
	RUN(test_accessible);
	agent_tids_close(tids);
	return unit_end();
}
