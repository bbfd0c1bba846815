/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_backlog.c - the way out of the ring buffer, on a ring that this test fills as the kernel
 * does: what does not fit is refused. A reader that stalls is one whose function does not return
 * before the ring has been filled many times over.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../user/source/bpf/backlog.h"
#include "../../user/source/cgroup.h"
#include "unit.h"

#define RING_BYTES (256u << 10)
#define PATIENCE_S 20 /* for the thread to come: only a broken one is waited for so long */

struct fake {
	struct ring ring;
	unsigned long consumer, producer;
	uint8_t *data;
	uint64_t put, put_bytes, refused;
};

/* The number of a record, as often as fits into one of a size that goes with it. */
static size_t size_of(uint64_t number)
{
	return 8 + number * 40 % 1000;
}

static void fake_open(struct fake *f, uint32_t size)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	memset(f, 0, sizeof(*f));
	if (fd < 0 || ftruncate(fd, size) < 0)
		abort();
	/* the data twice, one after the other, so that no record has a seam */
	f->data = mmap(NULL, 2 * (size_t)size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++)
		if (mmap(f->data + (size_t)i * size, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			abort();
	close(fd);
	f->ring = (struct ring){ .map_fd = -1,
				 .size = size,
				 .mask = size - 1,
				 .consumer = &f->consumer,
				 .producer = &f->producer,
				 .data = f->data };
}

static void fake_close(struct fake *f)
{
	munmap(f->data, 2 * (size_t)f->ring.size);
}

static bool put(struct fake *f, uint32_t flags)
{
	uint64_t number = f->put;
	size_t size = size_of(number), all = (size + BPF_RINGBUF_HDR_SZ + 7) & ~(size_t)7;
	uint8_t *at = f->data + (f->producer & f->ring.mask);
	uint32_t len = (uint32_t)size | flags;

	if (f->producer + all - __atomic_load_n(&f->consumer, __ATOMIC_ACQUIRE) > f->ring.mask)
		return false;
	for (size_t i = 0; i < size; i++)
		at[BPF_RINGBUF_HDR_SZ + i] = (uint8_t)(number >> i % 8 * 8);
	__atomic_store_n((uint32_t *)(void *)at, len, __ATOMIC_RELEASE);
	__atomic_store_n(&f->producer, f->producer + all, __ATOMIC_RELEASE);
	if (!flags) {
		f->put++;
		f->put_bytes += all;
	}
	return true;
}

/* Waits for room as no traced program would: what is tested is that room comes. */
static bool put_patiently(struct fake *f)
{
	time_t until = time(NULL) + PATIENCE_S;

	while (!put(f, 0)) {
		if (time(NULL) > until)
			return false;
		usleep(1000);
	}
	return true;
}

struct reader {
	struct fake *fake;
	uint64_t got, wrong;
	uint64_t stop_at;  /* answers this record with -EINTR */
	uint64_t stall_at; /* does not return from this record before so much has been put */
	uint64_t stall_puts, stall_bytes, stall_more_bytes;
	bool stuck;
};

static void stall(struct reader *r)
{
	struct fake *f = r->fake;
	uint64_t begin = f->put_bytes;

	while (r->stall_puts && !r->stuck) {
		r->stuck = !put_patiently(f);
		r->stall_puts--;
	}
	while (f->put_bytes - begin < r->stall_bytes && !r->stuck)
		r->stuck = !put_patiently(f);
	for (uint64_t bytes = 0; bytes < r->stall_more_bytes; bytes += 500) {
		if (!put(f, 0))
			f->refused++;
		if (bytes % 64000 == 0) /* the thread's turn */
			usleep(1000);
	}
}

static int take(void *ctx, const void *rec, size_t size)
{
	struct reader *r = ctx;
	const uint8_t *data = rec;
	uint64_t number = r->got++;

	if (number + 1 == r->stall_at)
		stall(r);
	/* after the stall, too, it is what it was */
	r->wrong += size != size_of(number);
	for (size_t i = 0; i < size; i++)
		r->wrong += data[i] != (uint8_t)(number >> i % 8 * 8);
	return number + 1 == r->stop_at ? -EINTR : 0;
}

static void test_in_time(enum backlog_when when)
{
	struct fake f;
	struct reader r = { .fake = &f, .stop_at = 7 };
	struct backlog *b;

	fake_open(&f, RING_BYTES);
	b = backlog_open(&f.ring, when, 1 << 20);
	CHECK(b);
	CHECK(backlog_read(b, 100, take, &r) == 0);
	for (int i = 0; i < 20; i++)
		CHECK(put_patiently(&f));
	CHECK(put(&f, BPF_RINGBUF_DISCARD_BIT));
	CHECK(put_patiently(&f));
	CHECK(backlog_read(b, 5, take, &r) == 5);
	CHECK(backlog_read(b, 100, take, &r) == -EINTR);
	CHECK(r.got == 7);
	CHECK(backlog_read(b, 100, take, &r) == 14);
	CHECK(backlog_read(b, 100, take, &r) == 0);
	CHECK(r.got == 21 && !r.wrong);
	backlog_close(b);
	CHECK(f.consumer == f.producer);
	fake_close(&f);
}

/* What is being written holds up what comes behind it, and is not taken half. */
static void test_busy(void)
{
	struct fake f;
	struct reader r = { .fake = &f };
	struct backlog *b;
	uint32_t *head;

	fake_open(&f, RING_BYTES);
	b = backlog_open(&f.ring, BACKLOG_LATE, 1 << 20);
	CHECK(put(&f, 0));
	head = (uint32_t *)(void *)(f.data + f.producer);
	CHECK(put(&f, BPF_RINGBUF_BUSY_BIT));
	CHECK(backlog_read(b, 100, take, &r) == 1);
	CHECK(backlog_read(b, 100, take, &r) == 0);
	__atomic_store_n(head, *head & ~BPF_RINGBUF_BUSY_BIT, __ATOMIC_RELEASE);
	f.put++;
	CHECK(put(&f, 0));
	CHECK(backlog_read(b, 100, take, &r) == 2);
	CHECK(r.got == 3 && !r.wrong);
	backlog_close(b);
	fake_close(&f);
}

#define MS 1000000ULL

/* Up to when all has been handed out: not further while a record is being written, or waits; and so far otherwise. */
static void test_complete(enum backlog_when when)
{
	const uint64_t asked = 1000 * MS, last = 900 * MS, allowed = last - 20 * MS;
	struct fake f;
	struct reader r = { .fake = &f };
	struct backlog *b;
	unsigned long mark;
	uint32_t *head;

	fake_open(&f, RING_BYTES);
	b = backlog_open(&f.ring, when, 1 << 20);
	CHECK_EQ(asked, backlog_complete(b, backlog_mark(b), asked, 0, 5));
	CHECK(put_patiently(&f));
	mark = backlog_mark(b);
	CHECK_EQ(allowed, backlog_complete(b, mark, asked, last, 5));
	CHECK_EQ(5, backlog_complete(b, mark, asked, 0, 5));
	CHECK_EQ(990 * MS, backlog_complete(b, mark, asked, last, 990 * MS));
	CHECK_EQ(1, backlog_read(b, 100, take, &r));
	CHECK_EQ(asked, backlog_complete(b, mark, asked, last, 5));
	/* what was begun later does not count */
	head = (uint32_t *)(void *)(f.data + f.producer);
	CHECK(put(&f, BPF_RINGBUF_BUSY_BIT));
	CHECK_EQ(asked, backlog_complete(b, mark, asked, last, 5));
	/* an empty read, though one is begun, and others wait behind it */
	f.put++;
	CHECK(put(&f, 0));
	mark = backlog_mark(b);
	CHECK_EQ(0, backlog_read(b, 100, take, &r));
	CHECK_EQ(allowed, backlog_complete(b, mark, asked, last, 5));
	__atomic_store_n(head, *head & ~BPF_RINGBUF_BUSY_BIT, __ATOMIC_RELEASE);
	/* a pause in between */
	r.stop_at = 2;
	CHECK_EQ(-EINTR, backlog_read(b, 100, take, &r));
	CHECK_EQ(allowed, backlog_complete(b, mark, asked, last, 5));
	CHECK_EQ(1, backlog_read(b, 100, take, &r));
	CHECK_EQ(asked, backlog_complete(b, mark, asked, last, 5));
	CHECK(r.got == 3 && !r.wrong);
	backlog_close(b);
	fake_close(&f);
}

/* The reader is held up in its first record while the ring is filled many times over. */
static void test_stall(enum backlog_when when)
{
	struct fake f;
	struct reader r = { .fake = &f, .stall_at = 1, .stall_puts = 4000 };
	struct backlog *b;

	fake_open(&f, RING_BYTES);
	b = backlog_open(&f.ring, when, 64 << 20);
	for (int i = 0; i < 10; i++)
		CHECK(put_patiently(&f));
	CHECK(backlog_read(b, 1000000, take, &r) == 4010);
	CHECK(!r.stuck);
	CHECK(r.got == 4010 && !r.wrong);
	CHECK(f.put_bytes > 6 * RING_BYTES);
	/* and again, from a queue that has been emptied */
	r.stall_at = 4011;
	r.stall_puts = 1000;
	CHECK(put_patiently(&f));
	CHECK(backlog_read(b, 1000000, take, &r) == 1001);
	CHECK(!r.stuck && !r.wrong);
	backlog_close(b);
	fake_close(&f);
}

/* The queue has a bound: then the ring fills, and what it refuses is the kernel's to count. */
static void test_bound(enum backlog_when when)
{
	const uint64_t max_bytes = 1 << 20;
	struct fake f;
	struct reader r = {
		.fake = &f, .stall_at = 1, .stall_bytes = max_bytes, .stall_more_bytes = 4 << 20
	};
	struct backlog *b;
	long n;

	fake_open(&f, RING_BYTES);
	b = backlog_open(&f.ring, when, max_bytes);
	CHECK(put_patiently(&f));
	n = backlog_read(b, 1000000, take, &r);
	CHECK(!r.stuck);
	CHECK(f.refused);
	CHECK(n >= 0 && (uint64_t)n == f.put);
	CHECK(r.got == f.put && !r.wrong);
	CHECK(f.put_bytes >= max_bytes);
	/* the queue, at most one chunk more, the ring, and what the reader had: nothing else
	 * holds any */
	CHECK(f.put_bytes <= max_bytes + (128 << 10) * 2 + RING_BYTES);
	/* there is room again */
	r.stall_at = f.put + 1;
	r.stall_bytes = max_bytes;
	r.stall_more_bytes = 0;
	CHECK(put_patiently(&f));
	CHECK(backlog_read(b, 1000000, take, &r) > 0);
	CHECK(!r.stuck);
	CHECK(r.got == f.put && !r.wrong);
	backlog_close(b);
	fake_close(&f);
}

/* Closed while much is in the queue. */
static void test_dropped(void)
{
	struct fake f;
	struct reader r = { .fake = &f, .stall_at = 1, .stall_puts = 2000, .stop_at = 1 };
	struct backlog *b;

	fake_open(&f, RING_BYTES);
	b = backlog_open(&f.ring, BACKLOG_LATE, 64 << 20);
	CHECK(put_patiently(&f));
	CHECK(backlog_read(b, 1000000, take, &r) == -EINTR);
	CHECK(!r.stuck);
	backlog_close(b);
	backlog_close(NULL);
	fake_close(&f);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

/* What bounds the queue beside its own bound: the memory of the cgroup, or of one above it. */
static void test_memory_max(void)
{
	char root[] = "/tmp/cudatrace-cgroup.XXXXXX", path[64], self[64], cmd[128];

	if (!mkdtemp(root))
		abort();
	snprintf(self, sizeof(self), "%s/self", root);
	snprintf(path, sizeof(path), "%s/pod/container", root);
	snprintf(cmd, sizeof(cmd), "mkdir -p %s", path);
	CHECK(!system(cmd));
	CHECK(cgroup_memory_max(root, self) == UINT64_MAX); /* no file */
	write_file(root, "self", "4:memory:/other\n0::/pod/container\n");
	CHECK(cgroup_memory_max(root, self) == UINT64_MAX); /* no limits */
	write_file(root, "pod/memory.max", "max\n");
	CHECK(cgroup_memory_max(root, self) == UINT64_MAX);
	write_file(root, "pod/container/memory.max", "268435456\n");
	CHECK(cgroup_memory_max(root, self) == 268435456);
	write_file(root, "pod/memory.max", "1048576\n");
	CHECK(cgroup_memory_max(root, self) == 1048576);
	write_file(root, "memory.max", "4096\n"); /* of a namespace's root */
	CHECK(cgroup_memory_max(root, self) == 4096);
	write_file(root, "self", "0::/\n");
	CHECK(cgroup_memory_max(root, self) == 4096);
	write_file(root, "memory.max", "none of your business\n");
	CHECK(cgroup_memory_max(root, self) == UINT64_MAX);
	write_file(root, "self", "9:name=systemd:/\n"); /* v1 alone, without the controller */
	CHECK(cgroup_memory_max(root, self) == UINT64_MAX);
	snprintf(cmd, sizeof(cmd), "mkdir -p %s/memory/pod/container", root);
	CHECK(!system(cmd));
	write_file(root, "self", "9:name=systemd:/\n4:cpu,memory:/pod/container\n");
	CHECK(cgroup_memory_max(root, self) == UINT64_MAX);
	write_file(root, "memory/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
	write_file(root, "memory/pod/container/memory.limit_in_bytes", "268435456\n");
	CHECK(cgroup_memory_max(root, self) == 268435456);
	write_file(root, "memory/pod/memory.limit_in_bytes", "1048576\n");
	CHECK(cgroup_memory_max(root, self) == 1048576);
	/* of a container, which sees its own as the root */
	write_file(root, "self", "4:memory:/of/the/host\n");
	write_file(root, "memory/memory.limit_in_bytes", "4096\n");
	CHECK(cgroup_memory_max(root, self) == 4096);
	/* both, as systemd's hybrid has it */
	write_file(root, "self", "4:memory:/pod\n0::/pod/container\n");
	write_file(root, "pod/memory.max", "2048\n");
	CHECK(cgroup_memory_max(root, self) == 2048);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	CHECK(!system(cmd));
}

int main(void)
{
	static const enum backlog_when whens[] = { BACKLOG_LATE, BACKLOG_EARLY };

	for (int i = 0; i < 2; i++) {
		RUN(test_in_time, whens[i]);
		RUN(test_complete, whens[i]);
		RUN(test_stall, whens[i]);
		RUN(test_bound, whens[i]);
	}
	RUN(test_busy);
	RUN(test_dropped);
	RUN(test_memory_max);
	return unit_end();
}
