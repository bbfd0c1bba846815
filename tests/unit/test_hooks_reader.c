/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hooks_reader.c - the way of records from the areas of processes to the batch. Threads of this
 * program write as hooks do (target/hooks/ring_write.h), at full rate; each record has its thread's number and its own.
 * What is checked are numbers of records and their order, never a time.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../target/hooks/ring_write.h"
#include "../../user/api/api.h"
#include "../../user/source/agent/agent_tids.h"
#include "../../user/source/hooks/hooks_reader.h"
#include "../../user/util/now.h"
#include "random.h"
#include "unit.h"

#define RING_BYTES 65536u
#define WRITERS 4
#define QUEUE_BYTES (64u << 20)

static struct agent_tids *tids;
static int row_get;

/* ---- an area, and who writes to it ---- */

struct area {
	struct hooks_ring *ring;
	struct hooks_area *map; /* as the process has it */
};

static void area_open(struct area *a)
{
	struct hooks_ring_opts o = {
		.threads = WRITERS, .ring_bytes = RING_BYTES, .pid = getpid(), .tids = tids
	};
	int fd;

	a->ring = hooks_ring_open(&o, &fd);
	if (!a->ring)
		abort();
	a->map = mmap(NULL, hooks_area_bytes(WRITERS, RING_BYTES, 0), PROT_READ | PROT_WRITE,
		      MAP_SHARED, fd, 0);
	if (a->map == MAP_FAILED)
		abort();
	close(fd);
	__atomic_store_n(&a->map->blocks, WRITERS, __ATOMIC_RELEASE);
}

static void area_close(struct area *a)
{
	munmap(a->map, hooks_area_bytes(WRITERS, RING_BYTES, 0));
	hooks_ring_close(a->ring);
}

struct record {
	struct ct_call c;
	uint64_t words[2]; /* the block, and the record's number there */
};

/* Begins an entry, at its time, and writes all but the word that makes it complete. False: there is no room. */
static bool begin(struct area *a, uint32_t block, uint64_t number, __u64 *tag_at)
{
	struct hooks_thread *t = hooks_block(a->map, block, RING_BYTES);
	struct record r = { .c.h = { .size = sizeof(r), .kind = CT_CALL },
			    .c.func = (uint16_t)row_get,
			    .c.nwords = 2,
			    .words = { block, number } };
	void *to = ring_take(t, RING_BYTES, sizeof(r), tag_at);

	if (!to)
		return false;
	r.c.h.tid = (uint32_t)getpid();
	r.c.h.start_ns = r.c.h.end_ns = now_ns();
	ring_copy(to, &r, sizeof(r));
	return true;
}

static bool put(struct area *a, uint32_t block, uint64_t number)
{
	__u64 tag_at;

	if (!begin(a, block, number, &tag_at))
		return false;
	ring_commit(hooks_block(a->map, block, RING_BYTES), RING_BYTES, tag_at);
	return true;
}

struct writer {
	struct area *area;
	uint32_t block;
	uint64_t n;
	bool patient; /* waits for room */
	pthread_t thread;
};

static void *write_all(void *ctx)
{
	struct writer *w = ctx;

	for (uint64_t i = 0; i < w->n; i++) {
		while (!put(w->area, w->block, i))
			if (!w->patient) {
				ring_add(&hooks_block(w->area->map, w->block, RING_BYTES)->lost, 1);
				break;
			} else {
				sched_yield();
			}
	}
	return NULL;
}

static void write_begin(struct writer *w, struct area *a, uint64_t n, bool patient)
{
	for (uint32_t i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ .area = a, .block = i, .n = n, .patient = patient };
		if (pthread_create(&w[i].thread, NULL, write_all, &w[i]))
			abort();
	}
}

static void write_end(struct writer *w)
{
	for (int i = 0; i < WRITERS; i++)
		pthread_join(w[i].thread, NULL);
}

/* ---- who takes ---- */

struct seen {
	uint64_t n, lost, wrong, next[WRITERS];
	uint64_t complete_ns,
		late; /* what the reader has said, and records that it should have handed out before */
};

static int see(void *ctx, const struct ct_hdr *h)
{
	const struct record *r = (const struct record *)h;
	struct seen *s = ctx;
	uint64_t block = r->words[0] % WRITERS;

	s->n++;
	s->lost += h->lost;
	s->late += h->end_ns < s->complete_ns;
	s->wrong += h->size != sizeof(*r) || r->words[0] != block || r->words[1] < s->next[block] ||
		    r->c.func != row_get || h->pid != (uint32_t)getpid();
	s->next[block] = r->words[1] + 1;
	return 0;
}

static int read_some(struct hooks_reader *r, struct hooks_batch *b, struct seen *s)
{
	int err = hooks_reader_read(r, b);
	uint64_t complete_ns = hooks_reader_complete(r);

	hooks_batch_emit(b, see, s);
	CHECK(complete_ns >= s->complete_ns);
	s->complete_ns = complete_ns;
	return err;
}

/* All of a ring, whose writers have ended; what others wrote comes before it. */
static void read_last(struct hooks_reader *r, struct hooks_ring *ring, struct hooks_batch *b,
		      emit_fn fn, void *ctx)
{
	int err;

	do {
		err = hooks_reader_last(r, ring, b);
		hooks_batch_emit(b, fn, ctx);
	} while (err == 1);
	CHECK_EQ(0, err);
}

static uint64_t lost_of(struct area *a)
{
	struct hooks_ring_counts c;

	hooks_ring_counts(a->ring, &c);
	CHECK_EQ(0, c.malformed);
	return c.lost;
}

/* ---- tests ---- */

static uint64_t random_state = RANDOM_SEED;

static uint64_t random_number(void)
{
	return random_next(&random_state);
}

/* What is packed comes out again, whatever sizes follow each other. */
static void test_pack(void)
{
	struct hooks_pack in = { 0 }, out = { 0 };
	static uint64_t packed[8 << 10], got[HOOKS_RECORD_MAX / 8];

	for (int i = 0; i < 2000; i++) {
		union {
			struct ct_hdr h;
			uint64_t words[HOOKS_RECORD_MAX / 8];
		} rec;
		size_t most = i % 10 ? 40 : HOOKS_RECORD_MAX / 8, n;

		for (size_t k = 0; k < HOOKS_RECORD_MAX / 8; k++)
			rec.words[k] = random_number() % 4 ? k : random_number();
		rec.h.size = (uint16_t)(sizeof(rec.h) +
					random_number() % (most - sizeof(rec.h) / 8 + 1) * 8);
		n = hooks_pack_put(&in, packed, &rec.h, &rec.words[sizeof(rec.h) / 8]);
		CHECK(n <= HOOKS_PACKED_MAX(rec.h.size) && n % 8 == 0);
		CHECK_EQ(n, hooks_pack_get(&out, packed, got));
		CHECK(!memcmp(got, &rec, rec.h.size));
	}
}

/* sent = received + lost, whoever is faster, and in order. */
static void full_rate(bool thread, uint64_t max_bytes)
{
	struct hooks_reader *r = hooks_reader_open(max_bytes, thread);
	struct hooks_batch *b = hooks_batch_open();
	struct writer w[WRITERS];
	struct seen s = { 0 };
	struct area a;
	uint64_t written_ns;

	area_open(&a);
	CHECK_EQ(0, hooks_reader_add(r, a.ring));
	CHECK_EQ(0, hooks_reader_add(r, a.ring));
	write_begin(w, &a, 100000, false);
	for (int i = 0; i < 30; i++)
		read_some(r, b, &s);
	write_end(w);
	written_ns = now_ns();
	/* what was written before a call is there after it, and that is said */
	while (read_some(r, b, &s) == 1)
		;
	CHECK(s.complete_ns > written_ns);
	CHECK_EQ(0, s.late);
	CHECK_EQ(WRITERS * 100000, s.n + lost_of(&a));
	CHECK_EQ(0, s.wrong);
	/* the next record of each says what was lost before it, as far as a head has room */
	for (uint32_t i = 0; i < WRITERS; i++)
		for (uint64_t k = 0; k < 2; k++)
			CHECK(put(&a, i, 100000 + k));
	read_some(r, b, &s);
	CHECK_EQ(WRITERS * 100002, s.n + lost_of(&a));
	CHECK_EQ(lost_of(&a), s.lost);
	CHECK_EQ(0, s.wrong);
	hooks_reader_remove(r, a.ring);
	area_close(&a);
	hooks_batch_close(b);
	hooks_reader_close(r);
}

/* A thread has begun an entry, and has no processor to complete it: what it says of has not been handed out, though there is nothing
 * to read. */
static void test_begun(bool thread)
{
	struct hooks_reader *r = hooks_reader_open(QUEUE_BYTES, thread);
	struct hooks_batch *b = hooks_batch_open();
	struct seen s = { 0 };
	uint64_t begun_ns;
	__u64 tag_at;
	struct area a;

	area_open(&a);
	CHECK_EQ(0, hooks_reader_add(r, a.ring));
	CHECK(put(&a, 0, 0));
	CHECK(begin(&a, 1, 0, &tag_at));
	begun_ns = now_ns();
	for (int i = 0; i < 20; i++) {
		CHECK(put(&a, 0, (uint64_t)i + 1));
		read_some(r, b, &s);
		usleep(500); /* the reader's thread looks too */
	}
	CHECK_EQ(21, s.n);
	CHECK(s.complete_ns < begun_ns);
	ring_commit(hooks_block(a.map, 1, RING_BYTES), RING_BYTES, tag_at);
	read_some(r, b, &s);
	CHECK_EQ(22, s.n);
	CHECK(s.complete_ns > begun_ns);
	CHECK_EQ(0, s.late);
	hooks_reader_remove(r, a.ring);
	area_close(&a);
	hooks_batch_close(b);
	hooks_reader_close(r);
}

static void test_full_rate(void)
{
	full_rate(true, QUEUE_BYTES);
	full_rate(true, 0); /* one chunk */
	full_rate(false, QUEUE_BYTES);
}

/* While nobody takes them, records of many times the rings' size are moved on, and none is lost. */
static void test_stalled(void)
{
	struct hooks_reader *r = hooks_reader_open(QUEUE_BYTES, true);
	struct hooks_batch *b = hooks_batch_open();
	uint64_t n = 20 * RING_BYTES / sizeof(struct record);
	struct writer w[WRITERS];
	struct seen s = { 0 };
	struct area a;

	area_open(&a);
	CHECK_EQ(0, hooks_reader_add(r, a.ring));
	write_begin(w, &a, n, true);
	write_end(w);
	while (read_some(r, b, &s) == 1)
		;
	CHECK_EQ(WRITERS * n, s.n);
	CHECK_EQ(0, s.wrong);
	CHECK_EQ(0, lost_of(&a));
	hooks_reader_remove(r, a.ring);
	area_close(&a);
	hooks_batch_close(b);
	hooks_reader_close(r);
}

/* The queue has an end: what it holds and the rings hold is received, the rest was counted. */
static void test_bounded(void)
{
	struct hooks_reader *r = hooks_reader_open(300 << 10, true);
	struct hooks_batch *b = hooks_batch_open();
	struct writer w[WRITERS];
	struct seen s = { 0 };
	struct area a;

	area_open(&a);
	CHECK_EQ(0, hooks_reader_add(r, a.ring));
	write_begin(w, &a, 100000, false);
	write_end(w);
	while (read_some(r, b, &s) == 1)
		;
	/* two chunks, one more that is made room for while this reads, and the rings; a packed record of
	 * these takes no less than 32 bytes */
	CHECK(s.n <= (3 * (128 << 10) + WRITERS * RING_BYTES) / 32);
	CHECK(lost_of(&a) > 0);
	CHECK_EQ(WRITERS * 100000, s.n + lost_of(&a));
	hooks_reader_remove(r, a.ring);
	area_close(&a);
	hooks_batch_close(b);
	hooks_reader_close(r);
}

struct two {
	struct seen come, stays;
};

/* Records of both areas come in one batch: those of the first have numbers from FIRST on. */
#define FIRST 1000000000u

static int see_two(void *ctx, const struct ct_hdr *h)
{
	struct two *t = ctx;

	return see(((const struct record *)h)->words[1] < FIRST ? &t->come : &t->stays, h);
}

static void *write_on(void *ctx)
{
	struct writer *w = ctx;

	for (uint64_t i = 0; !__atomic_load_n(&w->patient, __ATOMIC_RELAXED); i++, w->n++)
		if (!put(w->area, w->block, FIRST + i))
			ring_add(&hooks_block(w->area->map, w->block, RING_BYTES)->lost, 1);
	return NULL;
}

/* Areas come, are read to their end, and go, while another one is written to all the time: what each has
 * sent is received before it goes. Whose rest nobody wants is dropped. */
static void test_come_and_go(void)
{
	struct hooks_reader *r = hooks_reader_open(1 << 20, true);
	struct hooks_batch *b = hooks_batch_open();
	struct area stays;
	struct writer on = { .area = &stays };
	struct two t = { 0 };

	area_open(&stays);
	CHECK_EQ(0, hooks_reader_add(r, stays.ring));
	CHECK(!pthread_create(&on.thread, NULL, write_on, &on));
	for (int i = 0; i < 40; i++) {
		struct writer w[WRITERS];
		struct area a;

		area_open(&a);
		memset(&t.come, 0, sizeof(t.come));
		CHECK_EQ(0, hooks_reader_add(r, a.ring));
		write_begin(w, &a, 3000, false);
		for (int k = 0; k < 3; k++) {
			hooks_reader_read(r, b);
			hooks_batch_emit(b, see_two, &t);
		}
		write_end(w);
		if (i % 4 < 3) {
			read_last(r, a.ring, b, see_two, &t);
			CHECK_EQ(WRITERS * 3000, t.come.n + lost_of(&a));
		}
		CHECK_EQ(0, t.come.wrong);
		hooks_reader_remove(r, a.ring);
		area_close(&a);
	}
	__atomic_store_n(&on.patient, true, __ATOMIC_RELAXED);
	pthread_join(on.thread, NULL);
	read_last(r, stays.ring, b, see_two, &t);
	CHECK_EQ(on.n, t.stays.n + lost_of(&stays));
	CHECK_EQ(0, t.stays.wrong);
	/* the reader goes before its ring */
	hooks_reader_close(r);
	area_close(&stays);
	hooks_batch_close(b);
}

/* The block of a thread that has ended is read to its end and given back, and the next one's records are
 * not mixed up with it. */
static void test_sweep(void)
{
	struct hooks_reader *r = hooks_reader_open(QUEUE_BYTES, true);
	struct hooks_batch *b = hooks_batch_open();
	struct hooks_thread *t;
	struct seen s = { 0 };
	struct area a;

	area_open(&a);
	CHECK_EQ(0, hooks_reader_add(r, a.ring));
	for (uint32_t i = 0; i < 2; i++) {
		t = hooks_block(a.map, i, RING_BYTES);
		t->owner = HOOKS_USED;
		t->tid = i ? 0x7ffffff0 : (uint32_t)getpid();
		for (uint64_t k = 0; k < 100; k++)
			CHECK(put(&a, i, k));
	}
	CHECK_EQ(0, hooks_reader_sweep(r, a.ring, b));
	CHECK_EQ(HOOKS_FREE, t->owner);
	CHECK_EQ(HOOKS_USED, hooks_block(a.map, 0, RING_BYTES)->owner);
	CHECK_EQ(t->head, t->tail);
	CHECK(put(&a, 1, 100));
	read_some(r, b, &s);
	CHECK_EQ(201, s.n);
	CHECK_EQ(0, s.wrong);
	hooks_reader_remove(r, a.ring);
	area_close(&a);
	hooks_batch_close(b);
	hooks_reader_close(r);
}

struct vandal {
	struct area *area;
	bool stop;
};

static void *scribble(void *ctx)
{
	struct vandal *v = ctx;
	uint64_t x = 1;

	while (!__atomic_load_n(&v->stop, __ATOMIC_RELAXED)) {
		struct hooks_thread *t;
		uint64_t tail, at;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		t = hooks_block(v->area->map, (uint32_t)(x >> 60) % WRITERS, RING_BYTES);
		tail = __atomic_load_n(&t->tail, __ATOMIC_RELAXED);
		at = (tail + (x >> 40) % 4 * 8) & (RING_BYTES - 1);
		/* heads without end, skips, tags of records that have any size */
		__atomic_store_n(&t->head, x >> 33 & 1 ? tail + (x >> 40) % 80000 : x,
				 __ATOMIC_RELAXED);
		__atomic_store_n((uint64_t *)(hooks_ring(t) + at),
				 x >> 34 & 1   ? hooks_tag(tail)
				 : x >> 35 & 1 ? hooks_skip(tail)
					       : x >> 36 & 0xff,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&v->area->map->blocks, (uint32_t)(x >> 50), __ATOMIC_RELAXED);
	}
	return NULL;
}

static int see_valid(void *ctx, const struct ct_hdr *h)
{
	struct two *t = ctx;

	CHECK(!record_check(h, h->size));
	return h->size == sizeof(struct record) && ((const struct record *)h)->words[1] >= FIRST
		       ? see(&t->stays, h)
		       : 0;
}

/* A process that writes nonsense, while it is read: all ends, and the other one's records are there. */
static void test_hostile(void)
{
	struct hooks_reader *r = hooks_reader_open(4 << 20, true);
	struct hooks_batch *b = hooks_batch_open();
	struct area stays;
	struct writer on = { .area = &stays };
	struct two t = { 0 };

	area_open(&stays);
	CHECK_EQ(0, hooks_reader_add(r, stays.ring));
	CHECK(!pthread_create(&on.thread, NULL, write_on, &on));
	for (int i = 0; i < 20; i++) {
		struct area bad;
		struct vandal v = { .area = &bad };
		pthread_t thread;

		area_open(&bad);
		CHECK_EQ(0, hooks_reader_add(r, bad.ring));
		CHECK(!pthread_create(&thread, NULL, scribble, &v));
		for (int k = 0; k < 5; k++) {
			hooks_reader_read(r, b);
			hooks_batch_emit(b, see_valid, &t);
		}
		hooks_reader_last(r, bad.ring, b);
		hooks_batch_emit(b, see_valid, &t);
		hooks_reader_remove(r, bad.ring);
		__atomic_store_n(&v.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		area_close(&bad);
	}
	__atomic_store_n(&on.patient, true, __ATOMIC_RELAXED);
	pthread_join(on.thread, NULL);
	read_last(r, stays.ring, b, see_valid, &t);
	CHECK_EQ(on.n, t.stays.n + lost_of(&stays));
	CHECK_EQ(0, t.stays.wrong);
	hooks_reader_remove(r, stays.ring);
	area_close(&stays);
	hooks_reader_close(r);
	hooks_batch_close(b);
}

static int see_nothing(void *ctx, const struct ct_hdr *h)
{
	(void)ctx;
	(void)h;
	return 0;
}

static void fill(struct area *a, uint64_t *n)
{
	for (uint32_t i = 0; i < WRITERS; i++)
		while (put(a, i, *n))
			(*n)++;
}

/* A process has ended, and a child of it has its memory and writes on and on: its records have an end, also if
 * the batch has room for few of them at a time. */
static void test_child_writes_on(void)
{
	struct hooks_reader *r = hooks_reader_open(1 << 20, false);
	struct hooks_batch *b = hooks_batch_open();
	const struct ct_thread_name other = { .h = { .size = sizeof(other),
						     .kind = CT_THREAD_NAME } };
	int room = 0, rounds = 0, err;
	uint64_t n = 0;
	struct area a;

	area_open(&a);
	CHECK_EQ(0, hooks_reader_add(r, a.ring));
	for (; !hooks_batch_full(b); room++)
		CHECK_EQ(0, hooks_batch_add(b, &other.h));
	do {
		hooks_batch_emit(b, see_nothing, NULL);
		for (int i = 1; i < room; i++)
			hooks_batch_add(b, &other.h);
		fill(&a, &n);
		err = hooks_reader_last(r, a.ring, b);
	} while (err == 1 && rounds++ < 100);
	CHECK_EQ(0, err);
	hooks_reader_remove(r, a.ring);
	area_close(&a);
	hooks_reader_close(r);
	hooks_batch_close(b);
}

int main(void)
{
	bool per_thread;
	pid_t inner;

	tids = agent_tids_open(getpid(), &inner);
	row_get = api_lookup("cudaGetDevice", 0, &per_thread);
	RUN(test_pack);
	RUN(test_full_rate);
	RUN(test_begun, true);
	RUN(test_begun, false);
	RUN(test_stalled);
	RUN(test_bounded);
	RUN(test_come_and_go);
	RUN(test_sweep);
	RUN(test_hostile);
	RUN(test_child_writes_on);
	agent_tids_close(tids);
	return unit_end();
}
