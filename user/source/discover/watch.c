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
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../tracefs.h"

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
	bool tasks;	    /* records of processes and threads too */
	/* of the trace event that has clone(2)'s flags, and where these are in it; id 0: there is none */
	unsigned int flags_id, flags_at;
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

/* Both end with what sample_id_all adds. */
struct task {
	struct perf_event_header h;
	uint32_t pid, parent, tid, parent_tid;
	uint64_t time_ns;
};
struct comm {
	struct perf_event_header h;
	uint32_t pid, tid;
	char comm[];
};
struct sample {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t size;
	char raw[];
};

/* A number in the text of a file below tracefs's root, behind `key`. 0: it is not there. */
static unsigned int number_of(int root, const char *path, const char *key)
{
	int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *at;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strstr(text, key);
	return at ? (unsigned int)strtoul(at + strlen(key), NULL, 10) : 0;
}

/* Which trace event has the flags: the records of processes and threads lack them. */
static void find_flags(struct watch *w)
{
	static const char format[] = "events/task/task_newtask/format";
	int root = tracefs_root();

	if (root < 0)
		return;
	w->flags_id = number_of(root, format, "ID: ");
	w->flags_at = number_of(root, format, "clone_flags;\toffset:");
	if (!w->flags_at)
		w->flags_id = 0;
	close(root);
}

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

	if (w->tasks) {
		attr.task = attr.comm = attr.comm_exec = 1;
		attr.wakeup_watermark = (uint32_t)(w->pages * w->page_size / 2);
		attr.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_RAW;
	}
	if (w->flags_id) {
		attr.type = PERF_TYPE_TRACEPOINT;
		attr.config = w->flags_id;
		attr.exclude_kernel = 0;
	}
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

static int open_pages(struct watch **out, unsigned int pages, bool tasks)
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
	w->tasks = tasks;
	if (tasks)
		find_flags(w);
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

static int open_rings(struct watch **out, bool tasks)
{
	int err = open_pages(out, RING_PAGES, tasks);

	return err == -EPERM ? open_pages(out, RING_PAGES_LEAST, tasks) : err;
}

int watch_open(struct watch **out)
{
	return open_rings(out, false);
}

int watch_open_tasks(struct watch **out)
{
	return open_rings(out, true);
}

int watch_fd(const struct watch *w)
{
	return w->epoll_fd;
}

static void a_map(const struct perf_event_header *h, size_t trailer, watch_fn fn, void *ctx)
{
	const struct mmap2 *m = (const void *)h;
	struct watch_map map;

	if (h->size <= sizeof(*m) + trailer ||
	    !memchr(m->filename, 0, h->size - sizeof(*m) - trailer))
		return;
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
}

/* Of a kernel that is older than what is asked for a record may be shorter. */
static bool a_task(const struct watch *w, const struct perf_event_header *h, size_t trailer,
		   struct watch_task *out)
{
	const struct comm *c = (const void *)h;
	const struct sample *s = (const void *)h;
	const struct task *t = (const void *)h;

	if (h->type == PERF_RECORD_COMM && h->misc & PERF_RECORD_MISC_COMM_EXEC &&
	    h->size > sizeof(*c) + trailer && memchr(c->comm, 0, h->size - sizeof(*c) - trailer)) {
		*out = (struct watch_task){ WATCH_EXEC, .pid = (pid_t)c->pid,
					    .tid = (pid_t)c->tid };
		memcpy(&out->time_ns, (const char *)h + h->size - sizeof(uint64_t),
		       sizeof(uint64_t));
		out->comm = c->comm;
		return true;
	}
	if (h->type == PERF_RECORD_SAMPLE && w->flags_id && h->size >= sizeof(*s) &&
	    h->size - sizeof(*s) >= w->flags_at + sizeof(unsigned long)) {
		unsigned long flags;

		memcpy(&flags, s->raw + w->flags_at, sizeof(flags));
		*out = (struct watch_task){ WATCH_FLAGS, .parent = (pid_t)s->pid,
					    .parent_tid = (pid_t)s->tid, .time_ns = s->time_ns,
					    .flags = flags };
		return true;
	}
	if ((h->type != PERF_RECORD_FORK && h->type != PERF_RECORD_EXIT) || h->size < sizeof(*t))
		return false;
	*out = (struct watch_task){ h->type == PERF_RECORD_FORK ? WATCH_FORK : WATCH_EXIT,
				    .pid = (pid_t)t->pid,
				    .tid = (pid_t)t->tid,
				    .parent = (pid_t)t->parent,
				    .parent_tid = (pid_t)t->parent_tid,
				    .time_ns = t->time_ns };
	return true;
}

/* A record that arrived whole. Returns 1 when it says that others were lost. */
static int one(const struct watch *w, const struct perf_event_header *h, watch_fn fn,
	       watch_task_fn task, void *ctx)
{
	/* the time, and before it the numbers of the thread */
	size_t trailer = w->tasks ? 16 : 8;
	struct watch_task t;

	if (h->type == PERF_RECORD_LOST)
		return 1;
	if (h->type == PERF_RECORD_MMAP2)
		a_map(h, trailer, fn, ctx);
	else if (task && a_task(w, h, trailer, &t))
		task(ctx, &t);
	return 0;
}

int watch_drain(struct watch *w, watch_fn fn, void *ctx)
{
	return watch_drain_tasks(w, fn, NULL, ctx);
}

int watch_drain_tasks(struct watch *w, watch_fn fn, watch_task_fn task, void *ctx)
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
			lost |= one(w, h, fn, task, ctx);
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
