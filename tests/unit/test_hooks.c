/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hooks.c - calls recorded inside a process, and read: what is done at a hook (target/hooks/capture.c)
 * is called here as the engine calls it, in this process, and the reader of user/source/hooks reads the
 * area that it writes to. Also with an area, and messages, that make no sense.
 */
#include <errno.h>
#include <poll.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../target/hooks/capture.h"
#include "../../target/hooks/layers.h"
#include "../../target/hooks/muted_funcs.h"
#include "../../user/source/agent/agent_process.h"
#include "../../user/source/agent/agent_tids.h"
#include "../../user/source/hooks/hooks.h"
#include "../../user/source/host.h"
#include "../../user/source/hooks/hooks_peer.h"
#include "../../user/util/msg.h"
#include "../../user/util/now.h"
#include "../hooks/lines.h"
#include "api_row.h"
#include "random.h"
#include "unit.h"

#define RING_BYTES 65536u
#define THREADS 8
#define CALLS 20000

static int row_malloc, row_free, row_driver, row_get, row_sync, row_push, row_pop, row_mark, row_mm,
	row_reduce;
static struct hooks_ring *ring;
static struct agent_tids *tids;
static int64_t ahead_ns; /* of the process's clock */
static bool gone[64];	 /* calls, by number, that were jumped over */

/* the engine's */
bool hook_is_under_way(const struct hook_frame *f)
{
	return f->number >= 64 || !gone[f->number];
}

static bool
	busy[64]; /* calls, by number, whose entry or return a signal handler has left by a jump */

bool hook_is_busy(const struct hook_frame *f)
{
	return f->number < 64 && busy[f->number];
}

static struct hook_thread this_thread;

struct hook_within engine_parts;

struct hook_thread *hook_self(void)
{
	return &this_thread;
}

void hook_count_into(struct hook_thread *t, __u64 *counts)
{
	t->counts = counts;
}

/* Called when the engine begins to count calls by the runtime. */
static void (*folding)(void);

void engine_fold_within(__u64 lo, __u64 bytes)
{
	(void)lo;
	if (bytes && folding)
		folding();
}

void engine_count(__u32 mask, __u32 id, __u32 flags)
{
	(void)mask;
	(void)id;
	(void)flags;
}

void engine_forget_counts(void)
{
	this_thread.counts = NULL;
}

/* ---- what the reader hands out ---- */

struct seen {
	unsigned int calls, enters, unfinished, names;
	uint64_t lost, last_end, first_word[THREADS + 2];
	bool order, valid;
	struct {
		struct ct_call c;
		uint64_t data[CT_DATA_MAX / 8];
	} last;
	int tid_of[THREADS + 2], ntids;
	bool sequences; /* the first words of each thread count up */
};

static int thread_of(struct seen *s, uint32_t tid)
{
	for (int i = 0; i < s->ntids; i++)
		if (s->tid_of[i] == (int)tid)
			return i;
	if (s->ntids < THREADS + 2)
		s->tid_of[s->ntids++] = (int)tid;
	return s->ntids - 1;
}

static int see(void *ctx, const struct ct_hdr *h)
{
	const struct ct_call *c = (const struct ct_call *)h;
	struct seen *s = ctx;
	int i;

	s->valid &= !record_check(h, h->size) && h->pid == (uint32_t)getpid();
	s->lost += h->lost;
	s->names += h->kind == CT_THREAD_NAME;
	if (h->kind != CT_CALL && h->kind != CT_ENTER)
		return 0;
	s->order &= h->end_ns >= s->last_end;
	s->last_end = h->end_ns;
	s->enters += h->kind == CT_ENTER;
	s->calls += h->kind == CT_CALL;
	s->unfinished += !!(h->flags & CT_F_UNFINISHED);
	memcpy(&s->last, c, h->size);
	i = thread_of(s, h->tid);
	if (s->sequences && c->func == row_free) {
		if (c->words[0] != s->first_word[i])
			s->sequences = false;
		s->first_word[i] = c->words[0] + 1;
	}
	return 0;
}

static int read_all(struct seen *s, bool last)
{
	struct hooks_batch *b = hooks_batch_open();
	int err = hooks_ring_read(ring, b, last);

	s->valid = s->order = true;
	s->last_end = 0;
	hooks_batch_emit(b, see, s);
	hooks_batch_close(b);
	return err;
}

/* ---- calls ---- */

static void set_up(struct ct_config config)
{
	struct hooks_ring_opts o = {
		.threads = 64,
		.ring_bytes = RING_BYTES,
		.pid = getpid(),
		.tids = tids,
		.layers = config.layers,
		.ahead_ns = ahead_ns,
	};
	struct hooks_start s = { .version = HOOKS_VERSION,
				 .threads = o.threads,
				 .ring_bytes = o.ring_bytes,
				 .min_ticks = config.filter.min_duration_ns,
				 .config = config };
	int rows[] = { row_malloc, row_free, row_driver, row_get, row_sync,
		       row_push,   row_pop,  row_mark,	 row_mm,  row_reduce };
	int fd;

	ring = hooks_ring_open(&o, &fd);
	CHECK(ring && !capture_open(fd, &s));
	close(fd);
	hooks_ring_phase(ring, CT_PHASE_RUNNING);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ct_spec spec;

		CHECK(!api_spec(rows[i], API_ARCH_HERE, true, &spec));
		capture_spec((unsigned int)rows[i], &spec);
	}
	memset(gone, 0, sizeof(gone));
}

static void tear_down(void)
{
	capture_close();
	hooks_ring_close(ring);
	ring = NULL;
}

/* Stack pointers need only be in order: the one of a call inside another is lower. */
static bool begin(struct hook_frame *f, int row, uint64_t number, uint64_t sp, uint64_t first,
		  uint64_t second)
{
	struct {
		struct hook_regs r;
		uint64_t stack[16];
	} regs = { .r = { .args = { first, second } } };

	*f = (struct hook_frame){ .sp = sp, .number = number, .id = (uint32_t)row };
	return capture_enters(f, &regs.r, CT_COOKIE(row, false));
}

static void call_at(uint64_t sp, int row, uint64_t number, uint64_t first, uint64_t second,
		    uint64_t result)
{
	struct hook_frame f;

	if (begin(&f, row, number, sp, first, second))
		capture_leaves(&f, f.id, result);
}

static void call(int row, uint64_t number, uint64_t first, uint64_t second, uint64_t result)
{
	call_at(1 << 20, row, number, first, second, result);
}

static void test_one_call(void)
{
	uint64_t pointer = 0x7f0000001200;
	struct seen s = { 0 };

	set_up((struct ct_config){ 0 });
	call(row_malloc, 1, (uint64_t)(uintptr_t)&pointer, 4096, 0);
	CHECK_EQ(0, read_all(&s, false));
	CHECK(s.valid);
	CHECK_EQ(1, s.calls);
	CHECK_EQ(row_malloc, s.last.c.func);
	CHECK_EQ(4096, s.last.c.words[1]);
	CHECK_EQ(1, s.last.c.got);
	CHECK_EQ(pointer, s.last.c.words[s.last.c.nwords]);
	CHECK_EQ(getpid(), s.last.c.h.tid);
	CHECK(s.last.c.h.end_ns >= s.last.c.h.start_ns);
	/* one that failed has written nothing, and nothing is read: not even a bad address */
	call(row_malloc, 2, 8, 4096, 2);
	CHECK_EQ(0, read_all(&s, false));
	CHECK_EQ(2, s.calls);
	CHECK_EQ(0, s.last.c.got);
	CHECK_EQ(2, s.last.c.ret);
	tear_down();
}

/* Times of a process whose clock is another one: as ours, and never before its begin. */
static void test_clock_ahead(void)
{
	uint64_t before = now_ns();
	struct seen s = { 0 };

	ahead_ns = -3600 * 1000000000LL;
	set_up((struct ct_config){ 0 });
	call(row_free, 1, 0, 0, 0);
	CHECK_EQ(0, read_all(&s, false));
	CHECK_EQ(1, s.calls);
	/* an hour from now has not been yet */
	CHECK(s.last.c.h.end_ns >= before && s.last.c.h.end_ns <= now_ns());
	tear_down();
	ahead_ns = INT64_MAX;
	set_up((struct ct_config){ 0 });
	call(row_free, 2, 0, 0, 0);
	CHECK_EQ(0, read_all(&s, false));
	CHECK_EQ(2, s.calls);
	CHECK_EQ(0, s.last.c.h.start_ns);
	CHECK_EQ(0, s.last.c.h.end_ns);
	tear_down();
	ahead_ns = 0;
	CHECK_EQ(5, agent_process_ours(12, 7));
	CHECK_EQ(19, agent_process_ours(12, -7));
	CHECK(agent_process_ours(12, INT64_MIN) == (1ULL << 63) + 12);
	CHECK(agent_process_ours(UINT64_MAX - 3, -7) == UINT64_MAX);
}

static void test_inside(void)
{
	struct hook_frame outer, inner;
	struct hooks_ring_counts c;
	struct seen s = { 0 };

	set_up((struct ct_config){ 0 });
	CHECK(begin(&outer, row_sync, 1, 2000, 0, 0));
	CHECK(!begin(&inner, row_driver, 2, 1000, 0, 0));
	capture_leaves(&outer, outer.id, 0);
	read_all(&s, false);
	CHECK_EQ(1, s.calls);
	CHECK_EQ(row_sync, s.last.c.func);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(1, c.folded);
	tear_down();
	/* --nested has both, the inner one first */
	s = (struct seen){ 0 };
	set_up((struct ct_config){ .nested = 1, .enter = 1 });
	CHECK(begin(&outer, row_sync, 1, 2000, 0, 0));
	CHECK(begin(&inner, row_driver, 2, 1000, 0, 0));
	capture_leaves(&inner, inner.id, 0);
	read_all(&s, false);
	CHECK_EQ(1, s.last.c.depth);
	capture_leaves(&outer, outer.id, 0);
	read_all(&s, false);
	CHECK_EQ(2, s.calls);
	CHECK_EQ(2, s.enters);
	CHECK_EQ(0, s.last.c.depth);
	tear_down();
}

static void test_jumped_over(void)
{
	struct hook_frame outer, inner;
	struct seen s = { 0 };

	set_up((struct ct_config){ .nested = 1 });
	CHECK(begin(&outer, row_sync, 1, 2000, 0, 0));
	CHECK(begin(&inner, row_driver, 2, 1000, 0, 0));
	/* a longjmp out of both, and the next call */
	gone[1] = gone[2] = true;
	call(row_get, 3, 0, 0, 0);
	read_all(&s, false);
	CHECK_EQ(3, s.calls);
	CHECK_EQ(2, s.unfinished);
	CHECK_EQ(0, s.last.c.depth);
	/* the outer one returns: what was left inside of it did not */
	CHECK(begin(&outer, row_sync, 4, 2000, 0, 0));
	CHECK(begin(&inner, row_driver, 5, 1000, 0, 0));
	capture_leaves(&outer, outer.id, 0);
	read_all(&s, false);
	CHECK_EQ(5, s.calls);
	CHECK_EQ(3, s.unfinished);
	tear_down();
}

static void test_filters(void)
{
	struct hooks_ring_counts c;
	struct seen s = { 0 };

	set_up((struct ct_config){ .filter.failed_only = 1 });
	call(row_sync, 1, 0, 0, 0);
	call(row_sync, 2, 0, 0, 700);
	read_all(&s, false);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(1, s.calls);
	CHECK_EQ(1, c.filtered);
	tear_down();
	s = (struct seen){ 0 };
	set_up((struct ct_config){ .filter.min_size_bytes = 4096 });
	call(row_malloc, 1, 0, 4095, 0);
	call(row_malloc, 2, 0, 4096, 0);
	read_all(&s, false);
	CHECK_EQ(1, s.calls);
	tear_down();
	s = (struct seen){ 0 };
	set_up((struct ct_config){ .filter.min_duration_ns = 3600000000000ULL });
	call(row_sync, 1, 0, 0, 0);
	read_all(&s, false);
	CHECK_EQ(0, s.calls);
	tear_down();
	s = (struct seen){ 0 };
	set_up((struct ct_config){ .no_return = 1 });
	CHECK(!begin(&(struct hook_frame){ 0 }, row_sync, 1, 1000, 0, 0));
	read_all(&s, false);
	CHECK_EQ(CT_F_NO_RETURN, s.last.c.h.flags);
	tear_down();
}

/* Calls that the engine only counts: those inside a recorded call are a part of it, and what is read is what
 * was counted. */
static void test_muted(void)
{
	struct hooks_ring_counts counts;
	struct hook_frame f;
	uint64_t *outside;

	set_up((struct ct_config){ 0 });
	this_thread.counts = NULL;
	CHECK(begin(&f, row_free, 1, 1000, 1, 0));
	CHECK(!this_thread.counts); /* nothing is muted yet */
	capture_leaves(&f, (uint64_t)row_free, 0);
	capture_mutes();
	capture_counts(&this_thread);
	outside = (uint64_t *)this_thread.counts;
	CHECK(outside != NULL);
	outside[3] += 5;
	CHECK(begin(&f, row_free, 2, 1000, 1, 0));
	CHECK((uint64_t *)this_thread.counts != outside);
	this_thread.counts[3] += 2;
	capture_leaves(&f, (uint64_t)row_free, 0);
	CHECK((uint64_t *)this_thread.counts == outside);
	outside[HOOKS_MUTED]++;
	CHECK_EQ(5, hooks_ring_muted(ring, 3));
	CHECK_EQ(0, hooks_ring_muted(ring, 2));
	hooks_ring_counts(ring, &counts);
	CHECK_EQ(3, counts.folded);
	tear_down();
	/* nested calls are shown: they count like the others */
	set_up((struct ct_config){ .nested = true });
	capture_mutes();
	CHECK(begin(&f, row_free, 1, 1000, 1, 0));
	this_thread.counts[1]++;
	capture_leaves(&f, (uint64_t)row_free, 0);
	CHECK_EQ(1, hooks_ring_muted(ring, 1));
	tear_down();
	this_thread.counts = NULL;
}

/* A call of the runtime that makes a query, which is counted as a part of it. */
static void query_inside(void)
{
	struct hook_frame f;

	CHECK(begin(&f, row_free, 1, 1000, 1, 0));
	capture_counts(&this_thread);
	this_thread.counts[HOOKS_MUTED]++;
	capture_leaves(&f, (uint64_t)row_free, 0);
}

/* The first function is muted while a thread is in a call whose queries are counted at once: the
 * thread's later calls are not counted as a part of that call. */
static void test_muted_meanwhile(void)
{
	struct hooks_mute m = {
		.func = (uint32_t)row_get, .number = 3, .within = 4096, .within_bytes = 4096
	};
	struct hooks_ring_counts counts;

	set_up((struct ct_config){ 0 });
	muted_begin();
	folding = query_inside;
	muted_take(&m);
	folding = NULL;
	if (!this_thread.counts)
		capture_counts(&this_thread);
	this_thread.counts[3] += 5;
	CHECK_EQ(5, hooks_ring_muted(ring, 3));
	hooks_ring_counts(ring, &counts);
	CHECK_EQ(1, counts.folded);
	tear_down();
	muted_begin();
}

/* What does not fit is counted, exactly, and told by the record that comes next. */
static void test_full(void)
{
	struct hooks_ring_counts c;
	struct seen s = { .sequences = true };
	unsigned int before;

	set_up((struct ct_config){ 0 });
	for (int i = 0; i < CALLS; i++)
		call(row_free, (uint64_t)i + 100, (uint64_t)i, 0, 0);
	read_all(&s, false);
	hooks_ring_counts(ring, &c);
	CHECK(s.calls > RING_BYTES / 128 && s.calls < CALLS);
	CHECK_EQ(CALLS, s.calls + c.lost);
	CHECK_EQ(s.calls, c.received);
	CHECK(s.sequences);
	before = s.calls;
	s.sequences = false;
	call(row_free, CALLS + 100, 0, 0, 0);
	read_all(&s, false);
	CHECK_EQ(before + 1, s.calls);
	/* the first record after the loss has it, as far as a header has room */
	CHECK_EQ(CALLS - before, s.lost);
	tear_down();
}

/* The ring's end lies at all places of a record. */
static void test_rounds(void)
{
	struct seen s = { .sequences = true };

	set_up((struct ct_config){ 0 });
	for (int i = 0; i < CALLS; i++) {
		uint64_t pointer = 0;

		call(row_free, (uint64_t)i + 100, (uint64_t)i, 0, 0);
		if (i % 3 == 0)
			call(row_malloc, (uint64_t)i + 100, (uint64_t)(uintptr_t)&pointer, 8, 0);
		if (i % 50 == 0)
			read_all(&s, false);
	}
	read_all(&s, false);
	CHECK_EQ(CALLS + (CALLS + 2) / 3, s.calls);
	CHECK(s.sequences);
	CHECK_EQ(0, s.lost);
	tear_down();
}

static void *many_calls(void *unused)
{
	for (int i = 0; i < CALLS; i++)
		call(row_free, (uint64_t)i + 100, (uint64_t)i, 0, 0);
	return unused;
}

/* sent = received + lost, whoever is faster. */
static void test_threads(void)
{
	struct hooks_ring_counts c;
	pthread_t threads[THREADS];
	struct seen s = { 0 };

	set_up((struct ct_config){ 0 });
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, many_calls, NULL));
	for (int i = 0; i < 200; i++)
		read_all(&s, false);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (read_all(&s, false) == 1)
		;
	hooks_ring_counts(ring, &c);
	CHECK_EQ(THREADS * CALLS, s.calls + c.lost);
	CHECK_EQ(THREADS, s.ntids);
	tear_down();
}

static void *one_call_each(void *unused)
{
	call(row_free, 100, 0, 0, 0);
	return unused;
}

static void run_threads(int n)
{
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		CHECK(!pthread_create(&thread, NULL, one_call_each, NULL));
		pthread_join(thread, NULL);
	}
}

/* Blocks of threads that have ended are used again; who finds none is counted. */
static void test_many_threads(void)
{
	struct hooks_batch *b = hooks_batch_open();
	struct hooks_ring_counts c;
	struct seen s = { 0 };

	set_up((struct ct_config){ 0 });
	run_threads(66);
	read_all(&s, false);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(64, s.calls);
	CHECK_EQ(2, c.no_block);
	CHECK_EQ(0, hooks_ring_sweep(ring, hooks_ring_rest, b, b));
	hooks_batch_close(b);
	run_threads(10);
	read_all(&s, false);
	CHECK_EQ(74, s.calls);
	tear_down();
}

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	(void)sig;
	for (int i = 0; i < 3; i++)
		call_at(1 << 19, row_get, 1000000, 0, 0, 0);
	signals++;
}

/* A signal may come between any two instructions, and its handler make calls. */
static void test_signals(void)
{
	struct itimerval every = { { 0, 100 }, { 0, 100 } }, never = { 0 };
	struct hooks_ring_counts c;
	struct seen s = { 0 };
	unsigned int made = 0;
	int more;

	set_up((struct ct_config){ .nested = 1 });
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &every, NULL);
	while (signals < 300) {
		for (int i = 0; i < 100; i++)
			call(row_free, (uint64_t)i + 100, 0, 0, 0);
		made += 100;
		read_all(&s, false);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	do
		more = read_all(&s, false);
	while (more == 1);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(made + 3 * (unsigned int)signals, s.calls + c.lost);
	tear_down();
}

/* A child has the hooks, and an area that is not its own. */
static void test_fork(void)
{
	struct seen s = { 0 };
	int status;
	pid_t child;

	set_up((struct ct_config){ 0 });
	call(row_free, 1, 0, 0, 0);
	child = fork();
	if (!child) {
		call(row_free, 2, 0, 0, 0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	call(row_free, 3, 0, 0, 0);
	read_all(&s, false);
	CHECK_EQ(2, s.calls);
	tear_down();
}

/* Calls under way are seen from outside. */
static void test_under_way(void)
{
	struct hooks_batch *b = hooks_batch_open();
	struct hook_frame outer;
	struct seen s = { .order = true, .valid = true };

	set_up((struct ct_config){ 0 });
	CHECK(begin(&outer, row_free, 1, 2000, 77, 0));
	CHECK_EQ(0, hooks_ring_inflight(ring, CT_F_UNFINISHED | CT_F_PENDING, 0, now_ns(), -1, b));
	hooks_batch_emit(b, see, &s);
	CHECK_EQ(1, s.calls);
	CHECK_EQ(77, s.last.c.words[0]);
	CHECK_EQ(CT_F_UNFINISHED | CT_F_PENDING, s.last.c.h.flags);
	CHECK_EQ(1, hooks_ring_returning(ring, UINT64_MAX));
	capture_leaves(&outer, outer.id, 0);
	CHECK_EQ(0, hooks_ring_returning(ring, UINT64_MAX));
	/* nothing begins any more once the trace is closing */
	hooks_ring_phase(ring, CT_PHASE_CLOSING);
	CHECK(!begin(&outer, row_free, 2, 2000, 77, 0));
	hooks_batch_close(b);
	tear_down();
}

/* ---- scopes ---- */

#define SCOPED_MAX 128
struct scoped {
	unsigned int n;
	struct {
		int row;
		uint16_t kind;
		uint32_t scope, parent; /* of a call: the one around it, and 0 */
		uint64_t first;
	} at[SCOPED_MAX];
};

static int see_scope(void *ctx, const struct ct_hdr *h)
{
	const struct ct_call *c = (const struct ct_call *)h;
	struct scoped *s = ctx;
	uint64_t word;

	CHECK(!record_check(h, h->size));
	if (h->kind == CT_THREAD_NAME)
		return 0;
	CHECK(h->flags & CT_F_SCOPE);
	memcpy(&word, (const char *)h + h->size - 8, 8);
	if (!CHECK(s->n < SCOPED_MAX))
		return 0;
	s->at[s->n].row = (int)c->func;
	s->at[s->n].kind = h->kind;
	s->at[s->n].scope = (uint32_t)word;
	s->at[s->n].parent = (uint32_t)(word >> 32);
	s->at[s->n++].first = c->words[0];
	return 0;
}

static struct scoped read_scopes(void)
{
	struct hooks_batch *b = hooks_batch_open();
	struct scoped s = { 0 };

	CHECK_EQ(0, hooks_ring_read(ring, b, false));
	hooks_batch_emit(b, see_scope, &s);
	hooks_batch_close(b);
	return s;
}

static void is_scope(const struct scoped *s, unsigned int i, int row, uint16_t kind, uint32_t scope,
		     uint32_t parent)
{
	if (!CHECK(i < s->n))
		return;
	CHECK_EQ(row, s->at[i].row);
	CHECK_EQ(kind, s->at[i].kind);
	CHECK_EQ(scope, s->at[i].scope);
	CHECK_EQ(parent, s->at[i].parent);
}

/* Ranges, a collective in them, and calls in both. */
static void test_scopes(void)
{
	struct hook_frame reduce, sync;
	struct hooks_ring_counts c;
	struct scoped s;

	set_up((struct ct_config){ .layers = 1 });
	CHECK(!begin(&sync, row_push, 1, 5000, (uint64_t)(uintptr_t) "outer", 0));
	CHECK(!begin(&sync, row_push, 2, 5000, (uint64_t)(uintptr_t) "inner", 0));
	CHECK(begin(&reduce, row_reduce, 3, 4000, 1, 2));
	CHECK(begin(&sync, row_sync, 4, 3000, 0, 0));
	CHECK(!capture_leaves(&sync, sync.id, 0));
	CHECK(!capture_leaves(&reduce, reduce.id, 0));
	CHECK(!begin(&sync, row_mark, 5, 5000, (uint64_t)(uintptr_t) "mark", 0));
	CHECK(!begin(&sync, row_pop, 6, 5000, 0, 0));
	call(row_get, 7, 0, 0, 0);
	CHECK(!begin(&sync, row_pop, 8, 5000, 0, 0));
	CHECK(!begin(&sync, row_pop, 9, 5000, 0, 0)); /* nothing is open */
	call(row_get, 10, 0, 0, 0);
	s = read_scopes();
	CHECK_EQ(10, s.n);
	is_scope(&s, 0, row_push, CT_LAYER_BEGIN, 1, 0);
	is_scope(&s, 1, row_push, CT_LAYER_BEGIN, 2, 1);
	is_scope(&s, 2, row_reduce, CT_LAYER_BEGIN, 3, 2);
	is_scope(&s, 3, row_sync, CT_CALL, 3, 0);
	is_scope(&s, 4, row_reduce, CT_LAYER_END, 3, 2);
	is_scope(&s, 5, row_mark, CT_LAYER_BEGIN, 0, 2);
	is_scope(&s, 6, row_pop, CT_LAYER_END, 2, 1);
	is_scope(&s, 7, row_get, CT_CALL, 1, 0);
	is_scope(&s, 8, row_pop, CT_LAYER_END, 1, 0);
	is_scope(&s, 9, row_get, CT_CALL, 0, 0);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(1, c.scopes_unbegun);
	CHECK_EQ(0, c.scopes_dropped);
	tear_down();
}

static bool operator(struct hook_frame *f, uint64_t number, uint64_t sp, uint32_t symbol)
{
	struct hook_regs r = { 0 };

	*f = (struct hook_frame){ .sp = sp,
				  .number = number,
				  .id = (uint32_t)(CT_COOKIE(row_mm, false) |
						   CT_COOKIE_OF(symbol, false)) };
	return capture_enters(f, &r, f->id);
}

/* Operators that exceptions leave, and that are nested deeper than there is room. */
static void test_operators(void)
{
	struct hook_frame f[70];
	struct hooks_ring_counts c;
	struct scoped s;

	set_up((struct ct_config){ .layers = 1 });
	CHECK(operator(&f[0], 1, 5000, 7));
	CHECK(operator(&f[1], 2, 4000, 8));
	CHECK(operator(&f[2], 3, 3000, 9));
	/* an exception out of two: the first one returns, and is the next one's parent no more */
	gone[2] = gone[3] = true;
	CHECK(!capture_leaves(&f[0], f[0].id, 0));
	CHECK(operator(&f[1], 4, 5000, 8));
	/* left, and its place on the stack is what the next one has */
	gone[4] = true;
	CHECK(operator(&f[2], 5, 5000, 9));
	CHECK(!capture_leaves(&f[2], f[2].id, 0));
	s = read_scopes();
	CHECK_EQ(7, s.n);
	is_scope(&s, 0, row_mm, CT_LAYER_BEGIN, 1, 0);
	CHECK_EQ(7, s.at[0].first);
	is_scope(&s, 1, row_mm, CT_LAYER_BEGIN, 2, 1);
	is_scope(&s, 2, row_mm, CT_LAYER_BEGIN, 3, 2);
	is_scope(&s, 3, row_mm, CT_LAYER_END, 1, 0);
	is_scope(&s, 4, row_mm, CT_LAYER_BEGIN, 4, 0);
	is_scope(&s, 5, row_mm, CT_LAYER_BEGIN, 5, 0);
	is_scope(&s, 6, row_mm, CT_LAYER_END, 5, 0);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(0, c.scopes_unbegun);
	for (unsigned int i = 0; i < 70; i++)
		CHECK_EQ(i < 64, operator(&f[i], 100 + i, 100000 - i * 100, 7));
	for (unsigned int i = 64; i--;)
		CHECK(!capture_leaves(&f[i], f[i].id, 0));
	s = read_scopes();
	CHECK_EQ(128, s.n);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(6, c.scopes_dropped);
	CHECK_EQ(0, c.scopes_unbegun);
	tear_down();
}

/* Returns whether the page was read when an operator is called with an optional tensor whose address is
 * there. */
static bool reads_tensor(uint64_t number, bool has_value)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t optional[2] = { (uint64_t)(uintptr_t)page, has_value };
	struct hook_regs r = { .args = { (uint64_t)(uintptr_t)optional } };
	unsigned char present = 2;
	struct hook_frame f = { .sp = 5000,
				.number = number,
				.id = (uint32_t)(CT_COOKIE(row_mm, false) |
						 CT_COOKIE_OF(7, false)) };

	layers_tensors(f.id, CT_TENSORS_LAYOUT(0, 0, 0) | CT_TENSORS_OPTIONAL);
	CHECK(capture_enters(&f, &r, f.id));
	CHECK(!capture_leaves(&f, f.id, 0));
	CHECK(!mincore(page, 4096, &present));
	munmap(page, 4096);
	layers_tensors(f.id, 0);
	return present & 1;
}

/* An optional tensor without a value may have any address: nothing is read there. */
static void test_optional(void)
{
	set_up((struct ct_config){ .layers = 1 });
	CHECK(reads_tensor(1, true));
	CHECK(!reads_tensor(2, false));
	tear_down();
}

/* What the engine did not let through. */
static void test_missed(void)
{
	struct hooks_ring_counts c;

	set_up((struct ct_config){ .layers = 1 });
	capture_missed(CT_COOKIE(row_get, false), HOOK_MISS_DEEP);
	capture_missed(CT_COOKIE(row_mm, false), HOOK_MISS_DEEP);
	capture_missed(CT_COOKIE(row_get, false), HOOK_MISS_THREADS);
	capture_missed(CT_COOKIE(row_get, false), HOOK_MISS_LEFT);
	capture_missed(CT_COOKIE(row_mm, false), HOOK_MISS_LEFT);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(1, c.deep);
	CHECK_EQ(1, c.left);
	CHECK_EQ(2, c.scopes_dropped);
	CHECK_EQ(1, c.no_block);
	tear_down();
}

static unsigned int handled, refused;

static void on_scopes_signal(int sig)
{
	struct hook_frame f;
	uint64_t sp = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	(void)sig;
	handled++;
	if (operator(&f, 1000000 + handled, sp - 5000, 7))
		capture_leaves(&f, f.id, 0);
	else
		refused++;
	if (!begin(&f, row_push, 2, sp - 5000, (uint64_t)(uintptr_t) "handler", 0))
		begin(&f, row_pop, 3, sp - 5000, 0, 0);
}

/* Signals at any instruction, whose handlers call layers: all that began ends, or is counted. */
static void test_scopes_signals(void)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	uint64_t begun = 0, ended = 0, sp;
	struct hooks_ring_counts c;
	struct hook_frame f, call;

	set_up((struct ct_config){ .layers = 1 });
	signal(SIGALRM, on_scopes_signal);
	handled = refused = 0;
	setitimer(ITIMER_REAL, &often, NULL);
	sp = (uint64_t)(uintptr_t)__builtin_frame_address(0) - 1000;
	for (unsigned int i = 1; handled < 200; i++) {
		struct scoped s;

		begin(&f, row_push, 60, sp, (uint64_t)(uintptr_t) "outer", 0);
		if (operator(&f, 100 + i, sp - 500, 8)) {
			if (begin(&call, row_get, 50, sp - 700, 0, 0))
				capture_leaves(&call, call.id, 0);
			capture_leaves(&f, f.id, 0);
		}
		begin(&f, row_pop, 61, sp, 0, 0);
		s = read_scopes();
		for (unsigned int k = 0; k < s.n; k++) {
			begun += s.at[k].kind == CT_LAYER_BEGIN;
			ended += s.at[k].kind == CT_LAYER_END;
		}
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	CHECK(begun >= 200);
	CHECK_EQ(begun, ended);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(0, c.scopes_unbegun);
	CHECK(c.scopes_dropped >= refused);
	CHECK_EQ(0, c.lost);
	tear_down();
}

/* ---- what makes no sense ---- */

static uint64_t random_state = RANDOM_SEED;

static uint64_t random_number(void)
{
	return random_next(&random_state);
}

static struct hooks_thread *block(uint32_t i, size_t *bytes, char **area)
{
	char line[512], *found = NULL;
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;

	*bytes = hooks_area_bytes(64, RING_BYTES, 0);
	/* the reader's own mapping: any of the two */
	while (f && !found && fgets(line, sizeof(line), f))
		if (strstr(line, "cudatrace-hooks") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			found = (char *)start;
	if (f)
		fclose(f);
	*area = found;
	return found ? hooks_block(found, i, RING_BYTES) : NULL;
}

/* A signal handler leaves entry() or leave() by a jump. The next call at the same place of the stack is not a part of that
 * call, which is counted as lost; calls further down may be the handler's, and are. */
static void test_left_inside(void)
{
	struct hooks_ring_counts c;
	struct hook_frame f, inner;
	struct hooks_thread *t;
	struct seen s = { 0 };
	size_t bytes;
	char *area;

	set_up((struct ct_config){ 0 });
	call(row_free, 1, 0, 0, 0);
	t = block(0, &bytes, &area);
	if (!CHECK(t))
		return;
	t->calls[0].sp = 1 << 20;
	t->depth = 1;
	CHECK(!begin(&inner, row_free, 2, 1000, 0, 0));
	call(row_free, 3, 0, 0, 0);
	read_all(&s, false);
	CHECK_EQ(2, s.calls);
	CHECK_EQ(0, s.last.c.depth);
	/* the same in leave(), when it may have written the record or not */
	CHECK(begin(&f, row_free, 4, 1 << 20, 0, 0));
	busy[4] = true;
	t->calls[0].owed = 0;
	CHECK(!begin(&inner, row_free, 5, 1000, 0, 0));
	call(row_free, 6, 0, 0, 0);
	read_all(&s, false);
	CHECK_EQ(3, s.calls);
	CHECK_EQ(0, s.unfinished);
	CHECK_EQ(0, t->depth);
	hooks_ring_counts(ring, &c);
	CHECK_EQ(2, c.folded);
	CHECK_EQ(2, c.left);
	CHECK_EQ(0, c.deep);
	busy[4] = false;
	tear_down();
}

/* Whatever the area holds, what comes out is a record, and all ends. */
static void test_hostile_area(void)
{
	for (int round = 0; round < 40; round++) {
		struct hooks_batch *b = hooks_batch_open();
		struct seen s = { .valid = true, .order = true };
		struct hooks_ring_counts c;
		struct hooks_thread *t;
		size_t bytes;
		char *area;

		set_up((struct ct_config){ 0 });
		for (int i = 0; i < 100; i++)
			call(row_malloc, (uint64_t)i + 100, 0, (uint64_t)i, 0);
		t = block(0, &bytes, &area);
		if (!CHECK(t))
			return;
		if (round < 10) /* all of it */
			for (size_t i = 0; i < bytes; i += 8 + random_number() % 4096)
				memcpy(area + (i & ~7UL), &(uint64_t){ random_number() }, 8);
		else if (round < 20) /* a block's head */
			for (size_t i = 0; i < HOOKS_BLOCK_HEAD; i += 8)
				((uint64_t *)t)[i / 8] = random_number() >> (random_number() % 64);
		else /* records that are announced right, with heads that are not */
			for (int i = 0; i < 60; i++) {
				size_t at = (random_number() % 8000) & ~7UL;

				hooks_ring(t)[at] = (char)random_number();
			}
		if (round % 2)
			((struct hooks_area *)area)->blocks = (uint32_t)random_number();
		hooks_ring_read(ring, b, round % 3 == 0);
		hooks_ring_inflight(ring, CT_F_UNFINISHED, 0, now_ns(), -1, b);
		hooks_ring_returning(ring, 1000);
		hooks_ring_sweep(ring, hooks_ring_rest, b, b);
		hooks_ring_counts(ring, &c);
		hooks_batch_emit(b, see, &s);
		CHECK(s.valid);
		CHECK(s.order);
		hooks_batch_close(b);
		tear_down();
	}
}

struct counting_on {
	struct hooks_area *head;
	__u64 *word;
	uint64_t made;
};

/* Counts as a stub does, which does not look at the phase: a million at once when it has changed. */
static void *counts_on(void *arg)
{
	struct counting_on *c = arg;

	while (__atomic_load_n(&c->head->phase, __ATOMIC_ACQUIRE) == CT_PHASE_RUNNING) {
		__atomic_add_fetch(&c->made, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(c->word, 1, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(c->word, 1000000, __ATOMIC_RELAXED);
	return NULL;
}

/* The number of calls that are only counted is never higher than how many were made until the end. */
static void test_counted_after_the_end(void)
{
	for (int i = 0; i < 50; i++) {
		struct counting_on c = { 0 };
		struct hooks_thread *t;
		pthread_t thread;
		size_t bytes;
		char *area;

		set_up((struct ct_config){ 0 });
		call(row_free, 1, 0, 0, 0);
		t = block(0, &bytes, &area);
		if (!CHECK(t))
			return;
		c.head = (struct hooks_area *)area;
		c.head->blocks = 64; /* all are looked at */
		c.word = &t->muted[HOOKS_MUTED - 1];
		CHECK(!pthread_create(&thread, NULL, counts_on, &c));
		while (__atomic_load_n(&c.made, __ATOMIC_RELAXED) < 100)
			sched_yield();
		hooks_ring_phase(ring, CT_PHASE_CLOSING);
		pthread_join(thread, NULL);
		CHECK(hooks_ring_muted(ring, HOOKS_MUTED - 1) <= c.made);
		CHECK(hooks_ring_muted(ring, HOOKS_MUTED - 1) >= 99);
		tear_down();
	}
}

/* Counters of losses that a process fills with ones: their sums would wrap around to nothing, or take away what another
 * process has lost. Each is one that makes no sense; a large one that may be true counts as it is. */
static void test_hostile_counters(void)
{
	struct hooks_ring_counts c;
	struct hooks_thread *t;
	struct hooks_area *head;
	size_t bytes;
	char *area;

	set_up((struct ct_config){ 0 });
	call(row_free, 1, 0, 0, 0);
	t = block(0, &bytes, &area);
	if (!CHECK(t))
		return;
	head = (struct hooks_area *)area;
	head->blocks = 2;
	for (uint32_t i = 0; i < 2; i++) {
		t = hooks_block(area, i, RING_BYTES);
		t->lost = t->folded = t->filtered = t->deep = t->no_cell = t->no_stack = UINT64_MAX;
		t->unfinished = t->scopes_dropped = t->scopes_unbegun = t->left = UINT64_MAX;
		t->muted[HOOKS_MUTED] = UINT64_MAX;
	}
	head->too_deep = head->scopes_dropped = head->interrupted = head->left = UINT64_MAX;
	hooks_ring_counts(ring, &c);
	CHECK_EQ(2 * 11 + 4, c.malformed);
	CHECK_EQ(0,
		 c.lost + c.folded + c.filtered + c.deep + c.no_cell + c.no_stack + c.unfinished);
	CHECK_EQ(0, c.scopes_dropped + c.scopes_unbegun + c.interrupted + c.left);
	for (uint32_t i = 0; i < 2; i++)
		hooks_block(area, i, RING_BYTES)->lost = 1ULL << 43;
	head->interrupted = HOOKS_FUNCS_MAX + 1; /* more functions than there can be */
	hooks_ring_counts(ring, &c);
	CHECK_EQ(1ULL << 44, c.lost);
	CHECK_EQ(0, c.interrupted);
	CHECK_EQ(2 * 10 + 4, c.malformed);
	head->interrupted = HOOKS_FUNCS_MAX;
	hooks_ring_counts(ring, &c);
	CHECK_EQ(HOOKS_FUNCS_MAX, c.interrupted);
	CHECK_EQ(2 * 10 + 3, c.malformed);
	tear_down();
}

/* An entry that nobody completes, since its thread was killed: the next ones are read. */
static void test_incomplete(void)
{
	struct seen s = { 0 };
	struct hooks_thread *t;
	size_t bytes;
	char *area;

	set_up((struct ct_config){ 0 });
	call(row_free, 1, 0, 0, 0);
	t = block(0, &bytes, &area);
	if (!CHECK(t))
		return;
	t->head += 64;
	call(row_free, 2, 5, 0, 0);
	CHECK_EQ(0, read_all(&s, false));
	CHECK_EQ(1, s.calls);
	CHECK_EQ(0, read_all(&s, true));
	CHECK_EQ(2, s.calls);
	CHECK_EQ(5, s.last.c.words[0]);
	tear_down();
}

/* How much memory the area takes. */
static uint64_t area_memory(void)
{
	char path[64], to[64];
	struct stat st;

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, to, sizeof(to) - 1);
		to[n < 0 ? 0 : n] = '\0';
		if (strstr(to, "cudatrace-hooks") && !fstat(fd, &st))
			return (uint64_t)st.st_blocks * 512;
	}
	return 0;
}

/* Blocks and cells that the process says are in use, and rings that it says are full: what nobody has
 * written is not read, because a page that is read comes into being, and is charged to the reader. */
static void test_nothing_written(void)
{
	struct seen s = { 0 };
	struct hooks_thread *t;
	size_t bytes;
	uint64_t had;
	char *area;

	set_up((struct ct_config){ 0 });
	call(row_free, 1, 0, 0, 0);
	t = block(0, &bytes, &area);
	if (!CHECK(t))
		return;
	CHECK(!mprotect(area, bytes, PROT_READ | PROT_WRITE));
	((struct hooks_area *)area)->blocks = 64;
	((struct hooks_area *)area)->gone = 1;
	t = hooks_block(area, 7, RING_BYTES);
	t->owner = HOOKS_USED;
	t->tid = (uint32_t)getpid();
	t->depth = CT_MAX_FRAMES;
	t->head = RING_BYTES;
	had = area_memory();
	CHECK(had > 0 && had < RING_BYTES);
	CHECK_EQ(0, read_all(&s, false));
	CHECK_EQ(1, s.calls);
	CHECK_EQ(0, hooks_ring_muted(ring, 0));
	hooks_ring_returning(ring, 1);
	CHECK_EQ(had, area_memory());
	/* nobody has as much to say without writing a word of it */
	CHECK_EQ(-EBADMSG, read_all(&s, true));
	CHECK(hooks_ring_broken(ring));
	CHECK_EQ(had, area_memory());
	tear_down();
}

/* A record of which the process has written the head alone: the rest is 0, and takes no memory. */
static void test_half_written(void)
{
	struct seen s = { 0 };
	struct hooks_thread *t;
	struct ct_hdr *h;
	size_t bytes;
	uint64_t had;
	char *area;

	set_up((struct ct_config){ 0 });
	call(row_free, 1, 0, 0, 0);
	t = block(0, &bytes, &area);
	if (!CHECK(t))
		return;
	CHECK(!mprotect(area, bytes, PROT_READ | PROT_WRITE));
	((struct hooks_area *)area)->blocks = 2;
	t = hooks_block(area, 1, RING_BYTES);
	t->owner = HOOKS_USED;
	h = (struct ct_hdr *)(hooks_ring(t) + 8);
	h->size = HOOKS_RECORD_MAX / 8 * 8;
	h->kind = CT_CALL;
	*(uint64_t *)hooks_ring(t) = hooks_tag(0);
	t->head = hooks_entry_bytes(h->size);
	had = area_memory();
	CHECK_EQ(-EBADMSG, read_all(&s, true));
	CHECK_EQ(had, area_memory());
	tear_down();
}

/* Once the process has written, nobody takes pages of the area away, or maps it anew to write to it: what
 * is there when it is looked at is there when it is read. */
static void test_pages_stay(void)
{
	struct seen s = { 0 };
	size_t bytes;
	char *area;

	set_up((struct ct_config){ 0 });
	call(row_free, 1, 0, 0, 0);
	if (!CHECK(block(0, &bytes, &area)))
		return;
	CHECK_EQ(0, read_all(&s, false));
	CHECK(madvise(area, 4096, MADV_REMOVE) && errno == EPERM);
	call(row_free, 2, 7, 0, 0);
	CHECK_EQ(0, read_all(&s, false));
	CHECK_EQ(2, s.calls);
	tear_down();
}

/* The size of the area cannot be changed by who has its descriptor. */
static void test_sealed(void)
{
	struct hooks_ring_opts o = {
		.threads = 1, .ring_bytes = 4096, .pid = getpid(), .tids = tids
	};
	struct hooks_ring *r;
	int fd;

	r = hooks_ring_open(&o, &fd);
	CHECK(r != NULL);
	CHECK(ftruncate(fd, 0) && errno == EPERM);
	CHECK(ftruncate(fd, 1 << 30) && errno == EPERM);
	close(fd);
	hooks_ring_close(r);
}

/* ---- messages ---- */

static void test_messages(void)
{
	struct hooks_hello h = { .h = { sizeof(h), HOOKS_HELLO, 0 } };
	struct {
		struct hooks_installed i;
		__s32 err[3];
	} in = { .i = { .h = { sizeof(in), HOOKS_INSTALLED, 0 }, .n = 3 } };
	struct {
		struct meet_say say;
		char text[5];
	} __attribute__((packed)) say = { .say = { .h = { sizeof(say), HOOKS_SAY, 0 }, .len = 5 } };

	CHECK_EQ(HOOKS_HELLO, hooks_msg_check(&h, sizeof(h)));
	CHECK_EQ(-1, hooks_msg_check(&h, sizeof(h) - 1));
	h.h.size++;
	CHECK_EQ(-1, hooks_msg_check(&h, sizeof(h)));
	CHECK_EQ(HOOKS_INSTALLED, hooks_msg_check(&in, sizeof(in)));
	in.i.n = 4;
	CHECK_EQ(-1, hooks_msg_check(&in, sizeof(in)));
	CHECK_EQ(HOOKS_SAY, hooks_msg_check(&say, sizeof(say)));
	say.say.len = 6;
	CHECK_EQ(-1, hooks_msg_check(&say, sizeof(say)));
	say.say.h.type = 99;
	CHECK_EQ(-1, hooks_msg_check(&say, sizeof(say)));
}

/* ---- the listener ---- */

static int closed_silent;

static void count_silent(const char *text)
{
	closed_silent += strstr(text, "sent nothing, and too many such connections") != NULL;
}

/* A connection to the socket that the program's environment names. Returns it. */
static int connect_to(char *const *env)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	for (; *env; env++)
		if (!strncmp(*env, HOOKS_ENV "=", sizeof(HOOKS_ENV)))
			CHECK_EQ(1, sscanf(strstr(*env, "path="), "path=%107s", addr.sun_path));
	CHECK(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

static int emit_nothing(void *ctx, const struct ct_hdr *h)
{
	(void)ctx, (void)h;
	return 0;
}

/* One process cannot take the room of all by connections over which it says nothing. */
static void test_silent(void)
{
	char *const cmd[] = { (char *)"true", NULL };
	struct capture_plan plan = { .ring_bytes = 1 << 20, .cmd = cmd, .follow = true };
	struct source src = { .ops = &source_hooks };
	struct pollfd ends[10];

	closed_silent = 0;
	msg_taker = count_silent;
	CHECK(!source_hooks.prepare(&src, &plan));
	CHECK(!source_hooks.open(&src, &plan));
	for (int i = 0; i < 10; i++)
		ends[i] = (struct pollfd){ .fd = connect_to(plan.env) };
	CHECK(source_hooks.drain(&src, emit_nothing, NULL) >= 0);
	msg_taker = NULL;
	CHECK_EQ(6, closed_silent);
	/* the oldest have been closed; a later one may be taken for the next program of its process */
	CHECK(poll(ends, 10, 0) >= 6);
	for (int i = 0; i < 10; i++)
		close(ends[i].fd);
	source_hooks.close(&src);
}

/* ---- the clock ---- */

static void test_clock(void)
{
	struct hooks_clock *c = calloc(1, 1 << 20);
	uint64_t before, after, middle;

	/* two ticks a nanosecond, then three: what lies between two readings is on the line */
	hooks_clock_put(c, 1000, 5000);
	hooks_clock_put(c, 3000, 6000);
	hooks_clock_put(c, 6000, 7000);
	CHECK_EQ(5500, hooks_clock_ns(c, 2000));
	CHECK_EQ(6000, hooks_clock_ns(c, 3000));
	CHECK_EQ(6500, hooks_clock_ns(c, 4500));
	CHECK_EQ(8000, hooks_clock_ns(c, 9000));
	CHECK_EQ(4750, hooks_clock_ns(c, 500));
	/* one that runs backwards is left out */
	hooks_clock_put(c, 5000, 8000);
	CHECK_EQ(8000, hooks_clock_ns(c, 9000));
	/* more than are kept */
	for (uint64_t i = 1; i < 10000; i++)
		hooks_clock_put(c, 6000 + i * 10, 7000 + i * 5);
	CHECK_EQ(7000 + 9999 * 5, hooks_clock_ns(c, 6000 + 99990));
	CHECK_EQ(7000 + 9000 * 5 + 2, hooks_clock_ns(c, 6000 + 90005));
	free(c);
	if (!hooks_clock_usable())
		return;
	/* against the clock itself: by less than what a reading of it takes, however long that is */
	c = hooks_clock_open();
	hooks_clock_mark(c);
	before = now_ns();
	middle = __builtin_ia32_rdtsc();
	after = now_ns();
	CHECK(hooks_clock_ns(c, middle) + hooks_clock_error_ns(c) + 2000 >= before);
	CHECK(hooks_clock_ns(c, middle) <= after + hooks_clock_error_ns(c) + 2000);
	hooks_clock_close(c);
}

/* ---- processes ---- */

static int see_life(void *ctx, const struct ct_hdr *h)
{
	struct ct_hdr **at = ctx;

	CHECK(!record_check(h, h->size));
	memcpy(*at, h, h->size);
	*at = (struct ct_hdr *)((char *)*at + h->size);
	return 0;
}

/* A child that has ended, before and after its parent has waited for it. */
static void test_life(void)
{
	struct hooks_batch *b = hooks_batch_open();
	struct hooks_life me, l;
	struct {
		struct ct_fork fork;
		struct ct_process exec;
		struct ct_exit exit;
	} seen;
	void *at = &seen;
	int go[2], status;
	char c = 0;
	pid_t pid;

	CHECK(!pipe(go));
	pid = fork();
	if (!pid) {
		close(go[1]);
		_exit(read(go[0], &c, 1) ? 9 : 7);
	}
	close(go[0]);
	hooks_life_open(&me, getpid());
	hooks_life_open(&l, pid);
	CHECK(!hooks_life_gone(&l));
	CHECK(hooks_life_is_kin(&me, pid, geteuid()));
	CHECK(hooks_life_is_kin(&me, pid, geteuid() + 1)); /* its parent is told by the kernel */
	CHECK(!hooks_life_is_kin(&me, 1, geteuid() + 1));
	CHECK(!hooks_life_is_kin(&me, 0, geteuid()));
	/* a program whose last records come late is another one before they are handed out */
	CHECK(!hooks_life_tell(b, CT_EXEC, pid, 50));
	CHECK(!hooks_life_fork(b, getpid(), 0, pid, 40));
	close(go[1]);
	CHECK(!waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT));
	CHECK(hooks_life_gone(&l));
	CHECK_EQ(7 << 8, hooks_life_status(&l));
	CHECK(!hooks_life_exit(b, pid, hooks_life_status(&l), 60));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(hooks_life_gone(&l));
	status = hooks_life_status(&l);
	CHECK(status == 7 << 8 || status == HOOKS_STATUS_UNKNOWN);
	CHECK(!hooks_life_tell(b, CT_PROCESS, pid, 70)); /* it is gone: nothing to tell */
	CHECK(!hooks_batch_emit(b, see_life, &at));
	CHECK(at == &seen + 1);
	CHECK_EQ(CT_FORK, seen.fork.h.kind);
	CHECK_EQ(getpid(), seen.fork.h.pid);
	CHECK_EQ(pid, seen.fork.child_pid);
	CHECK_EQ(CT_EXEC, seen.exec.h.kind);
	CHECK_EQ(50, seen.exec.h.start_ns);
	CHECK_EQ(getpid(), seen.exec.ppid);
	CHECK_EQ(7 << 8, seen.exit.status);
	hooks_life_close(&l);
	hooks_life_close(&me);
	hooks_batch_close(b);
}

static void lines_calls(void)
{
	static __thread uint64_t n;
	uint64_t pointer = 0x7f0000001200;

	for (int i = 0; i < 20; i++, n += 3) {
		call(row_free, n + 1, n, 0, 0);
		call(row_malloc, n + 2, (uint64_t)(uintptr_t)&pointer, 4096, 0);
		call(row_get, n + 3, 0, 0, 0);
	}
}

/* The shared memory that records are written to, as this process has it. */
static void add_area(struct lines *l)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t from = 0, to = 0;
	char line[512];

	while (f && !to && fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:") && sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) != 2)
			to = 0;
	if (f)
		fclose(f);
	CHECK(to > from);
	lines_add(l, (const void *)(uintptr_t)from, (const void *)(uintptr_t)to);
}

/* No line of the cache is written to by the calls of two threads. */
static void test_lines(void)
{
	extern char __data_start[], _end[]; /* the linker's */
	struct lines l = { .work = lines_calls };
	const void *at = NULL;
	long alone = 0, both;

	set_up((struct ct_config){ 0 });
	lines_calls();
	lines_add(&l, __data_start, _end);
	add_area(&l);
	both = lines_shared(&l, &alone, &at);
	if (both)
		printf("the line at %p is written to by both threads\n", at);
	CHECK_EQ(0, both);
	/* its head, a call under way, and the ring */
	CHECK(alone > 20 * 3);
	tear_down();
}

/* The form of the kernel in /proc/PID/status. */
static void test_shadow_stacks(void)
{
	CHECK(host_shadow_stack("Name:\tapp\nx86_Thread_features:\tshstk \n"));
	CHECK(host_shadow_stack(
		"x86_Thread_features:\tshstk wrss \nx86_Thread_features_locked:\t\n"));
	CHECK(!host_shadow_stack("Name:\tapp\nx86_Thread_features:\t\n"
				 "x86_Thread_features_locked:\tshstk wrss \n"));
	CHECK(!host_shadow_stack("Name:\tshstk\nState:\tR\n"));
	CHECK(!host_shadow_stack(""));
}

int main(void)
{
	pid_t inner;

	tids = agent_tids_open(getpid(), &inner);
	row_malloc = row("cudaMalloc");
	row_free = row("cudaFree");
	row_driver = row("cuMemFree_v2");
	row_get = row("cudaGetDevice");
	row_sync = row("cudaDeviceSynchronize");
	row_push = row("nvtxRangePushA");
	row_pop = row("nvtxRangePop");
	row_mark = row("nvtxMarkA");
	row_mm = row("_ZN2at4_ops2mm4callERKNS_6TensorE");
	row_reduce = row("ncclAllReduce");
	RUN(test_one_call);
	RUN(test_clock_ahead);
	RUN(test_inside);
	RUN(test_jumped_over);
	RUN(test_left_inside);
	RUN(test_filters);
	RUN(test_muted);
	RUN(test_muted_meanwhile);
	RUN(test_full);
	RUN(test_rounds);
	RUN(test_threads);
	RUN(test_many_threads);
	RUN(test_signals);
	RUN(test_fork);
	RUN(test_under_way);
	RUN(test_scopes);
	RUN(test_operators);
	RUN(test_optional);
	RUN(test_missed);
	RUN(test_scopes_signals);
	RUN(test_hostile_area);
	RUN(test_counted_after_the_end);
	RUN(test_hostile_counters);
	RUN(test_incomplete);
	RUN(test_nothing_written);
	RUN(test_half_written);
	RUN(test_pages_stay);
	RUN(test_sealed);
	RUN(test_messages);
	RUN(test_silent);
	RUN(test_clock);
	RUN(test_shadow_stacks);
	RUN(test_lines);
	RUN(test_life);
	agent_tids_close(tids);
	return unit_end();
}
