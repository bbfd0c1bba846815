/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hang.c - what is a hang and what is none, in looks that are made up: ranks of communicators, their counts, the
 * calls that threads are inside of, and what processes do, at times that pass as fast as the test runs.
 */
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "../../user/stuck/hang/hang_text.h"

#define S 1000000000ULL
#define OVER (15 * S)
#define STEP (4 * S)
#define RANKS 8

/* A rank at the next look. */
struct rank {
	uint64_t hash;
	int rank, of;
	uint64_t all_reduces, broadcasts;
	uint64_t changed_ns; /* kept by look() */
	uint32_t pid;
	bool gone;
};

static struct hang *h;
static uint64_t now;
static struct rank ranks[64];
static size_t nranks;
static struct hang_proc procs[64];
static size_t nprocs;
static struct hang_call calls[64];
static size_t ncalls;
static uint64_t odd, circle; /* communicators */

static bool is_odd(void *ctx, uint64_t hash)
{
	(void)ctx;
	return odd && hash == odd;
}

static bool is_circle(void *ctx, uint64_t hash)
{
	(void)ctx;
	return circle && hash == circle;
}

static struct hang_proc *proc(uint32_t pid)
{
	for (size_t i = 0; i < nprocs; i++)
		if (procs[i].pid == pid)
			return &procs[i];
	procs[nprocs] = (struct hang_proc){
		.pid = pid, .began = 1, .name = "train", .state = 'S', .wait = "futex_wait"
	};
	return &procs[nprocs++];
}

/* A communicator of n ranks, whose processes are first, first + 1... */
static void job(uint64_t hash, int n, uint32_t first)
{
	for (int i = 0; i < n; i++) {
		ranks[nranks++] = (struct rank){ .hash = hash,
						 .rank = i,
						 .of = n,
						 .changed_ns = now,
						 .pid = first + (uint32_t)i };
		proc(first + (uint32_t)i);
	}
}

static struct rank *rank_of(uint64_t hash, int rank)
{
	for (size_t i = 0; i < nranks; i++)
		if (ranks[i].hash == hash && ranks[i].rank == rank)
			return &ranks[i];
	abort();
}

static void all_reduce(uint64_t hash, int rank)
{
	struct rank *r = rank_of(hash, rank);

	r->all_reduces++;
	r->changed_ns = now;
}

static void waits(uint32_t pid)
{
	calls[ncalls] = (struct hang_call){ .pid = pid, .tid = pid, .since_ns = now };
	strcpy(calls[ncalls++].name, "cudaStreamSynchronize");
}

static void returns(uint32_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < ncalls; i++)
		if (calls[i].pid != pid)
			calls[n++] = calls[i];
	ncalls = n;
}

static void begin(void)
{
	h = hang_open(OVER);
	now = 1000 * S;
	nranks = nprocs = ncalls = 0;
	odd = circle = 0;
}

static void end(void)
{
	hang_close(h);
}

static struct nccl_job members(void)
{
	struct nccl_job j = { .n = 0 };

	for (size_t i = 0; i < nranks; i++) {
		const struct rank *r = &ranks[i];
		struct nccl_member *m = r->gone ? NULL : nccl_job_add(&j);

		if (!m)
			continue;
		m->hash = r->hash;
		m->rank = r->rank;
		m->nranks = r->of;
		m->device = r->rank;
		m->pid = r->pid;
		strcpy(m->comm, "train");
		m->ts_ns = now;
		m->still_ns = now - r->changed_ns >= OVER ? now - r->changed_ns : 0;
		m->ncounts = 2;
		strcpy(m->counts[0].kind, "AllReduce");
		m->counts[0].n = r->all_reduces;
		strcpy(m->counts[1].kind, "Broadcast");
		m->counts[1].n = r->broadcasts;
	}
	nccl_job_sort(&j);
	return j;
}

/* One look, a step later. Returns how many incidents there are. */
static int look(const struct hang_incident **list)
{
	struct nccl_job j;
	struct hang_look l;
	int n;

	now += STEP;
	j = members();
	l = (struct hang_look){ .at_ns = now,
				.procs = procs,
				.nprocs = nprocs,
				.calls = calls,
				.ncalls = ncalls,
				.job = &j,
				.differs = is_odd,
				.circles = is_circle };
	n = hang_look(h, &l, list);
	nccl_job_free(&j);
	return n;
}

/* Looks for so long as a hang takes to be found; at all of them but the last nothing may be. Returns the only
 * incident of the last one; NULL: there is none. */
static const struct hang_incident *found_in_time(void)
{
	const struct hang_incident *list;
	int n = 0;

	for (uint64_t from = now; now < from + OVER + STEP && !n;)
		n = look(&list);
	CHECK(n <= 1);
	return n == 1 ? list : NULL;
}

static void expect(const struct hang_incident *a, enum hang_kind kind, bool at_work,
		   enum hang_doing doing, uint32_t pid)
{
	CHECK(a);
	if (!a)
		return;
	CHECK_EQ(kind, a->kind);
	CHECK_EQ(at_work, a->at_work);
	CHECK(a->fresh);
	CHECK(a->nculprits > 0);
	CHECK_EQ(doing, a->culprits[0].doing);
	CHECK_EQ(pid, a->culprits[0].pid);
}

static void absent_job(void)
{
	job(1, RANKS, 100);
	for (int i = 0; i < RANKS - 1; i++) {
		all_reduce(1, i);
		waits(100 + (uint32_t)i);
	}
}

static const uint32_t last = 100 + RANKS - 1;

static void test_absent(void)
{
	const struct hang_incident *a, *list;
	struct text claim = { 0 };
	struct hang_words words = { 0 };

	begin();
	absent_job();
	a = found_in_time();
	expect(a, HANG_ABSENT, false, HANG_WAITS, last);
	CHECK_EQ(RANKS - 1, a->waiting);
	CHECK_EQ(RANKS, (int)a->npids);
	words.at_ns = a->since_ns + 16 * S + S / 4;
	hang_claim(&claim, a, &words);
	text_mem(&claim, "", 1);
	CHECK_TEXT("7 ranks wait in AllReduce #1 of communicator 0x1 for rank 7 (train, PID 107), "
		   "which "
		   "waits in futex_wait, for 16.2s",
		   claim.s);
	text_free(&claim);
	/* the same hang is found once */
	CHECK_EQ(1, look(&list));
	CHECK(!list->fresh);
	CHECK_EQ(1, list->number);
	/* and is over when the rank comes */
	all_reduce(1, RANKS - 1);
	for (uint32_t i = 0; i < RANKS; i++)
		returns(100 + i);
	CHECK_EQ(0, look(&list));
	CHECK_EQ(1, (int)hang_ended(h, &list));
	CHECK_EQ(1, list->number);
	end();
}

/* What the rank that the others wait for is at. */
static const struct doing_row {
	const char *name;
	char state;
	uint32_t tracer;
	bool inside, holds;
	uint64_t cpu, io, child, calls; /* each look adds so much; calls: that return */
	enum hang_doing doing;
	bool at_work;
} doing_rows[] = {
	{ "stopped", 'T', 0, false, false, 0, 0, 0, 0, HANG_STOPPED, false },
	{ "debugged", 't', 77, false, false, 0, 0, 0, 0, HANG_DEBUGGED, false },
	{ "stopped, and started by us", 't', 0, false, false, 0, 0, 0, 0, HANG_STOPPED, false },
	{ "debugged and stopped", 'T', 77, false, false, 0, 0, 0, 0, HANG_DEBUGGED, false },
	{ "inside", 'S', 0, true, false, 0, 0, 0, 0, HANG_INSIDE, false },
	{ "inside, spins", 'R', 0, true, false, STEP, 0, 0, 0, HANG_INSIDE, false },
	{ "holds the lock", 'S', 0, true, true, 0, 0, 0, 0, HANG_LOCK, false },
	{ "ended", 0, 0, false, false, 0, 0, 0, 0, HANG_ENDED, false },
	{ "waits", 'S', 0, false, false, 0, 0, 0, 0, HANG_WAITS, false },
	{ "a heartbeat", 'S', 0, false, false, STEP / 50, 4096, 0, 0, HANG_WAITS, false },
	{ "computes without a processor", 'R', 0, false, false, 0, 0, 0, 0, HANG_COMPUTES, true },
	{ "computes", 'S', 0, false, false, STEP, 0, 0, 0, HANG_COMPUTES, true },
	{ "a checkpoint", 'D', 0, false, false, STEP / 50, 100 << 20, 0, 0, HANG_FILES, true },
	{ "a compiler", 'S', 0, false, false, 0, 0, STEP, 0, HANG_CHILD, true },
	{ "an evaluation", 'S', 0, false, false, 0, 0, 0, 1, HANG_OTHER_CALL, true },
};

static void doing(const struct doing_row *r)
{
	const struct hang_incident *list = NULL;
	int n = 0;

	begin();
	absent_job();
	if (r->inside)
		waits(last);
	for (uint64_t from = now; now < from + OVER + STEP && !n;) {
		struct hang_proc *p = proc(last);

		p->state = r->state;
		p->tracer = r->tracer;
		p->holder = r->holds ? last : 0;
		p->cpu_ns += r->cpu;
		p->io_bytes += r->io;
		p->child_ns += r->child;
		if (r->calls)
			hang_progress(h, last, now + STEP - S, false);
		n = look(&list);
	}
	CHECK_EQ(1, n);
	expect(list, HANG_ABSENT, r->at_work, r->doing, last);
	end();
}

static void test_doing(void)
{
	for (size_t i = 0; i < sizeof(doing_rows) / sizeof(doing_rows[0]); i++) {
		CASE_ROW("%s", doing_rows[i].name);
		doing(&doing_rows[i]);
	}
}

/* A rank that was at work and then stands still is a hang that was none before. */
static void test_work_ends(void)
{
	const struct hang_incident *list = NULL;
	int n = 0;

	begin();
	absent_job();
	for (int i = 0; i < 5; i++) {
		proc(last)->cpu_ns += STEP;
		n = look(&list);
	}
	CHECK_EQ(1, n);
	CHECK(list->at_work);
	for (int i = 0; i < 4 && n == 1 && list->at_work; i++)
		n = look(&list);
	expect(list, HANG_ABSENT, false, HANG_WAITS, last);
	CHECK_EQ(1, list->number);
	/* it is said once, though the rank works again and again */
	for (int i = 0; i < 20; i++) {
		proc(last)->cpu_ns += i % 4 ? 0 : STEP;
		CHECK_EQ(1, look(&list));
		CHECK(!list->fresh && list->hung);
	}
	end();
}

static void test_all_in(void)
{
	const struct hang_incident *a;
	struct text claim = { 0 };
	struct hang_words words = { 0 };

	begin();
	absent_job();
	all_reduce(1, RANKS - 1);
	waits(last);
	a = found_in_time();
	CHECK(a && a->kind == HANG_ALL_IN && !a->at_work && !a->nculprits);
	end();
	/* half of the ranks are on another machine */
	begin();
	absent_job();
	all_reduce(1, RANKS - 1);
	waits(last);
	for (size_t i = 0; i < nranks; i++)
		ranks[i].of = 2 * RANKS;
	a = found_in_time();
	CHECK(a && a->kind == HANG_ALL_IN);
	words.at_ns = a ? a->since_ns + 15 * S : 0;
	if (a)
		hang_claim(&claim, a, &words);
	text_mem(&claim, "", 1);
	CHECK_TEXT("all ranks that were seen have begun AllReduce #1 of communicator 0x1, and it "
		   "does not "
		   "end: a device or the network, or a rank of another machine, for 15.0s",
		   claim.s);
	text_free(&claim);
	end();
	/* one of them is stopped */
	begin();
	absent_job();
	all_reduce(1, RANKS - 1);
	proc(last)->state = 'T';
	a = found_in_time();
	expect(a, HANG_ALL_IN, false, HANG_STOPPED, last);
	end();
}

/* With the work of devices: as long as some of it completes it is slow. */
static void test_slow(void)
{
	const struct hang_incident *list;

	begin();
	absent_job();
	all_reduce(1, RANKS - 1);
	for (int i = 0; i < 20; i++) {
		hang_progress(h, 100, now + STEP - S, true);
		CHECK_EQ(0, look(&list));
	}
	end();
}

static void test_differ(void)
{
	const struct hang_incident *a;

	begin();
	job(1, 2, 100);
	all_reduce(1, 0);
	rank_of(1, 1)->broadcasts++;
	a = found_in_time();
	CHECK(a && a->kind == HANG_DIFFER && a->nculprits == 2);
	end();
	/* all have begun it, with other counts: calls that were seen say so */
	begin();
	job(1, 2, 100);
	all_reduce(1, 0);
	all_reduce(1, 1);
	waits(100);
	odd = 1;
	a = found_in_time();
	CHECK(a && a->kind == HANG_DIFFER);
	end();
}

/* Two communicators, whose collectives two ranks call in another order. */
static void test_circle(void)
{
	const struct hang_incident *a;

	begin();
	job(1, 2, 100);
	job(2, 2, 100);
	all_reduce(1, 0);
	all_reduce(2, 1);
	a = found_in_time();
	CHECK(a && a->kind == HANG_CIRCLE && a->npids == 2);
	end();
	/* receives, which NCCL does not count */
	begin();
	job(1, 2, 100);
	waits(100);
	waits(101);
	circle = 1;
	a = found_in_time();
	CHECK(a && a->kind == HANG_CIRCLE);
	end();
}

/* Rank 0 waits for rank 1 in one group, which waits for rank 3 in another one: it is about rank 3. */
static void test_chain(void)
{
	const struct hang_incident *a;

	begin();
	job(1, 2, 100); /* 100, 101 */
	job(2, 3, 101); /* 101, 102, 103 */
	all_reduce(1, 0);
	all_reduce(2, 0);
	all_reduce(2, 1);
	a = found_in_time();
	expect(a, HANG_ABSENT, false, HANG_WAITS, 103);
	CHECK_EQ(2, (int)a->hash);
	CHECK_EQ(4, (int)a->npids);
	end();
}

static void test_died(void)
{
	const struct hang_incident *a, *list;

	begin();
	absent_job();
	CHECK_EQ(0, look(&list));
	rank_of(1, RANKS - 1)->gone = true;
	proc(last)->state = 0;
	CHECK_EQ(0, look(&list));
	a = found_in_time();
	expect(a, HANG_ABSENT, false, HANG_ENDED, last);
	end();
}

static void test_two_jobs(void)
{
	const struct hang_incident *list;
	int n = 0;

	begin();
	absent_job();
	job(2, 2, 200);
	all_reduce(2, 0);
	job(3, 2, 300); /* goes on */
	for (uint64_t from = now; now < from + OVER + STEP && n < 2;) {
		all_reduce(3, 0);
		all_reduce(3, 1);
		n = look(&list);
	}
	CHECK_EQ(2, n);
	CHECK(list[0].number != list[1].number);
	end();
}

/* One thread of a process without communicators. */
static void test_call(void)
{
	const struct hang_incident *a;

	begin();
	proc(100);
	waits(100);
	a = found_in_time();
	expect(a, HANG_CALL, false, HANG_INSIDE, 100);
	end();
}

/* A rank that comes late, in steps from the beginning of 3600 s, and what it does in each. */
static const struct pause {
	int from, to, rank;
	uint64_t io, child;
	bool calls;
} pauses[] = {
	{ 500, 560, 0, 500 << 20, 0, false }, /* a checkpoint */
	{ 600, 660, 3, 0, 0, true },	      /* an evaluation */
	{ 700, 760, 5, 0, STEP, false },      /* a compiler */
	{ 850, 852, 2, 0, 0, false },	      /* it is late, by less than the time of a hang */
};

/* A thread of a rank is inside a call while the others are elsewhere: it is about this one. */
static void test_one_inside(void)
{
	const struct hang_incident *a;

	begin();
	job(1, 3, 100);
	for (int i = 0; i < 3; i++)
		all_reduce(1, i);
	waits(101);
	a = found_in_time();
	expect(a, HANG_CALL, false, HANG_INSIDE, 101);
	CHECK_EQ(1, a ? (int)a->nculprits : 0);
	end();
	/* a call is older than the communicator has been still: what that says is waited for */
	begin();
	proc(100);
	waits(100);
	now += 14 * S;
	absent_job();
	a = found_in_time();
	expect(a, HANG_ABSENT, false, HANG_WAITS, last);
	end();
}

/* A process that ends between the look at its threads and the one at itself hangs in no call. */
static void test_ends_inside(void)
{
	const struct hang_incident *list;
	uint64_t from;

	begin();
	job(1, 2, 100);
	for (int i = 0; i < 2; i++)
		all_reduce(1, i);
	waits(101);
	for (from = now; now + STEP < from + OVER;)
		CHECK_EQ(0, look(&list));
	proc(101)->state = 0;
	CHECK_EQ(0, look(&list));
	end();
}

/* A hang that is over while threads are still inside their calls is over once, and no other one begins. */
static void test_over_once(void)
{
	const struct hang_incident *list;

	begin();
	absent_job();
	for (int i = 0; i < 20; i++)
		look(&list);
	all_reduce(1, RANKS - 1);
	CHECK_EQ(0, look(&list));
	CHECK_EQ(1, (int)hang_ended(h, &list));
	CHECK_EQ(0, look(&list));
	CHECK_EQ(0, (int)hang_ended(h, &list));
	end();
	/* what falls apart stays one */
	begin();
	job(1, 2, 100);
	job(2, 2, 101);
	job(3, 2, 200);
	for (uint64_t hash = 1; hash <= 2; hash++)
		all_reduce(hash, 0);
	waits(100);
	waits(102);
	for (int i = 0; i < 6; i++)
		look(&list);
	CHECK_EQ(1, look(&list));
	for (size_t i = 0; i < nranks; i++)
		ranks[i].gone = ranks[i].hash != 3;
	CHECK_EQ(1, look(&list));
	CHECK_EQ(1, list->number);
	CHECK(!list->fresh);
	end();
}

/* A day of a job in which nothing hangs: steps, these pauses, and each hour the whole job is stopped for two minutes. */
static void test_noise(void)
{
	const struct hang_incident *list;
	int false_ones = 0, said = 0;

	begin();
	job(1, RANKS, 100);
	for (int i = 0; i < 24 * 3600 / 4; i++) {
		int at = i % 900;
		const struct pause *p = NULL;
		bool stopped = at >= 800 && at < 830;

		for (size_t k = 0; k < sizeof(pauses) / sizeof(pauses[0]); k++)
			if (at >= pauses[k].from && at <= pauses[k].to)
				p = &pauses[k];
		for (int r = 0; r < RANKS; r++)
			proc(100 + (uint32_t)r)->state = stopped ? 'T' : 'S';
		if (p && at == p->from)
			for (int r = 0; r < RANKS; r++)
				if (r != p->rank) {
					all_reduce(1, r);
					waits(100 + (uint32_t)r);
				}
		if (p && at == p->to) {
			all_reduce(1, p->rank);
			ncalls = 0;
		} else if (p) {
			proc(100 + (uint32_t)p->rank)->io_bytes += p->io;
			proc(100 + (uint32_t)p->rank)->child_ns += p->child;
			if (p->calls)
				hang_progress(h, 100 + (uint32_t)p->rank, now + STEP - S, false);
		}
		for (int r = 0; r < RANKS && !p && !stopped; r++)
			all_reduce(1, r);
		for (int k = look(&list); k-- > 0;) {
			false_ones += !list[k].at_work;
			said += list[k].fresh;
		}
	}
	CHECK_EQ(0, false_ones);
	CHECK_EQ(3 * 24, said);
	end();
}

/* Ranks without sense do no harm, and those of another communicator are found all the same. */
static void test_liar(void)
{
	const struct hang_incident *a;

	begin();
	job(1, 2, 100);
	rank_of(1, 0)->rank = -7;
	ranks[1].of = 2000000000;
	job(2, 2, 200);
	all_reduce(2, 0);
	a = found_in_time();
	expect(a, HANG_ABSENT, false, HANG_WAITS, 201);
	end();
}

int main(void)
{
	RUN(test_absent);
	RUN(test_doing);
	RUN(test_work_ends);
	RUN(test_all_in);
	RUN(test_slow);
	RUN(test_differ);
	RUN(test_circle);
	RUN(test_chain);
	RUN(test_died);
	RUN(test_two_jobs);
	RUN(test_call);
	RUN(test_one_inside);
	RUN(test_ends_inside);
	RUN(test_over_once);
	RUN(test_noise);
	RUN(test_liar);
	return unit_end();
}
