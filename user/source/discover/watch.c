/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.c - the kernel's mmap records.
 *
 * A software event that never counts (PERF_COUNT_SW_DUMMY) with attr.mmap makes the kernel write a
 * record for each mapping with PROT_EXEC, in whatever process. Per CPU and not per process: an
 * event for a process is one for a thread, and an inherited one must be opened on each CPU again,
 * so that a process of 200 threads on 128 CPUs would take 25 600 of them. The caller picks out the
 * processes it wants.
 *
 * All events hang in one epoll descriptor, for the loop to wait on. Which one is ready is not
 * asked of it, because polling an event clears its readiness; an idle ring is told by two words
 * of memory.
 */
#include "watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Powers of two. A program that starts makes some KiB of records. The kernel counts these pages,
 * of all tracers of a user. */
#define RING_PAGES 32
#define RING_PAGES_LEAST 8

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

struct watch {
	int epoll_fd;
	long page_size;
	unsigned int pages; /* of each ring */
	struct ring *rings;
	int nrings;
	char *record; /* a record that wraps around, in one piece: at most 64 KiB */
};

struct mmap2 {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char filename[];
};

static int ring_add(struct watch *w, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1, /* each record ends with its time */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.mmap = 1,
		.mmap2 = 1,
		.exclude_kernel = 1,
		.watermark = 1, /* wakeup_events would count samples only, and there are none */
		.wakeup_watermark = 1,
	};
	struct epoll_event ev = { .events = EPOLLIN };
	struct ring *r = &w->rings[w->nrings];
	int err;

	r->fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	r->page = mmap(NULL, (1 + w->pages) * w->page_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       r->fd, 0);
	if (r->page == MAP_FAILED || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, r->fd, &ev)) {
		err = -errno;
		if (r->page != MAP_FAILED)
			munmap(r->page, (1 + w->pages) * w->page_size);
		close(r->fd);
		return err;
	}
	w->nrings++;
	return 0;
}

static int open_pages(struct watch **out, unsigned int pages)
{
	long ncpus = sysconf(_SC_NPROCESSORS_CONF);
	struct watch *w = calloc(1, sizeof(*w));
	int err = 0;

	*out = NULL;
	if (!w || ncpus < 1) {
		free(w);
		return -ENOMEM;
	}
	w->page_size = sysconf(_SC_PAGESIZE);
	w->pages = pages;
	w->rings = calloc(ncpus, sizeof(*w->rings));
	w->record = malloc(65536);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!w->rings || !w->record || w->epoll_fd < 0)
		err = w->epoll_fd < 0 ? -errno : -ENOMEM;
	for (int cpu = 0; !err && cpu < ncpus; cpu++) {
		err = ring_add(w, cpu);
		if (err == -ENODEV || err == -ENXIO) /* this CPU is off */
			err = 0;
	}
	if (!err && !w->nrings)
		err = -ENODEV;
	if (err) {
		watch_close(w);
		return err;
	}
	*out = w;
	return 0;
}

int watch_open(struct watch **out)
{
	int err = open_pages(out, RING_PAGES);

	return err == -EPERM ? open_pages(out, RING_PAGES_LEAST) : err;
}

int watch_fd(const struct watch *w)
{
	return w->epoll_fd;
}

/* A record that arrived whole. Returns 1 when it says that others were lost. */
static int one(const struct perf_event_header *h, watch_fn fn, void *ctx)
{
	const struct mmap2 *m = (const void *)h;
	struct watch_map map;

	if (h->type == PERF_RECORD_LOST)
		return 1;
	if (h->type != PERF_RECORD_MMAP2 || h->size <= sizeof(*m) + sizeof(map.time_ns))
		return 0;
	if (!memchr(m->filename, 0, h->size - sizeof(*m) - sizeof(map.time_ns)))
		return 0;
	map = (struct watch_map){ .pid = m->pid,
				  .addr = m->addr,
				  .len = m->len,
				  .major = m->maj,
				  .minor = m->min,
				  .ino = m->ino,
				  .generation = m->ino_generation,
				  .name = m->filename };
	memcpy(&map.time_ns, (const char *)h + h->size - sizeof(map.time_ns), sizeof(map.time_ns));
	fn(ctx, &map);
	return 0;
}

int watch_drain(struct watch *w, watch_fn fn, void *ctx)
{
	uint64_t size = w->pages * w->page_size;
	int lost = 0;

	for (int i = 0; i < w->nrings; i++) {
		struct perf_event_mmap_page *page = w->rings[i].page;
		const char *data = (const char *)page + w->page_size;
		uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
			 tail = page->data_tail;

		while (tail < head) {
			const struct perf_event_header *h = (const void *)(data + tail % size);
			uint64_t len = h->size, first = size - tail % size;

			if (len < sizeof(*h) || len > head - tail) {
				lost = 1;
				tail = head;
				break;
			}
			if (len > first) {
				memcpy(w->record, h, first);
				memcpy(w->record + first, data, len - first);
				h = (const void *)w->record;
			}
			lost |= one(h, fn, ctx);
			tail += len;
		}
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
	return lost;
}

void watch_close(struct watch *w)
{
	if (!w)
		return;
	for (int i = 0; i < w->nrings; i++) {
		munmap(w->rings[i].page, (1 + w->pages) * w->page_size);
		close(w->rings[i].fd);
	}
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	free(w->rings);
	free(w->record);
	free(w);
}
