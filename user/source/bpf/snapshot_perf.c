/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot_perf.c - where a running thread is: one sample of a clock event on it, with its user
 * registers and stack.
 *
 * The sample is taken in the timer's interrupt, on the thread's own kernel stack: the thread
 * loses some microseconds and is never stopped. Registers are the user's in any case, also when
 * the interrupt met the thread in the kernel.
 */
#include "snapshot.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERIOD_NS 50000
#define STACK_BYTES 32768
#define RING_BYTES 131072 /* room for a sample that wraps around, in pages of up to 64 KiB */

/* <asm/perf_regs.h>: registers in the order of their bits. */
#if defined(__x86_64__)
enum { R_BX = 1, R_BP = 6, R_SP = 7, R_IP = 8, R_12 = 20 };
#define REGS (1ULL << R_BX | 1ULL << R_BP | 1ULL << R_SP | 1ULL << R_IP | 0xfULL << R_12)
#define ABI_64 2
static void take_regs(struct snapshot_thread *t, const uint64_t *r)
{
	t->regs[0] = r[0];
	t->bp = r[1];
	t->sp = r[2];
	t->ip = r[3];
	memcpy(&t->regs[1], &r[4], 4 * sizeof(*r));
}
#else
enum { R_19 = 19 }; /* x19 to x29, lr, sp, pc */
#define REGS (0x3fffULL << R_19)
#define ABI_64 2
static void take_regs(struct snapshot_thread *t, const uint64_t *r)
{
	memcpy(t->regs, r, sizeof(t->regs));
	t->bp = r[10];
	t->lr = r[11];
	t->sp = r[12];
	t->ip = r[13];
}
#endif
#define NREGS ((size_t)__builtin_popcountll(REGS))

/* A sample's body: pid and tid, the ABI and the registers, the size asked for, the stack, the
 * size copied. */
static int take_sample(struct snapshot_thread *t, const uint8_t *at, size_t len)
{
	const size_t before = 8 + 8 + NREGS * 8 + 8;
	uint64_t abi, size, copied, regs[16];

	if (len < before)
		return -EBADMSG;
	memcpy(&abi, at + 8, 8);
	if (abi != ABI_64)
		return -ENOTSUP;
	memcpy(regs, at + 16, NREGS * 8);
	memcpy(&size, at + before - 8, 8);
	if (!size || size > len - before || len - before - size < 8)
		return -EBADMSG;
	memcpy(&copied, at + before + size, 8);
	if (copied > size)
		return -EBADMSG;
	t->stack = malloc(copied ? copied : 1);
	if (!t->stack)
		return -ENOMEM;
	memcpy(t->stack, at + before, copied);
	t->len = copied;
	take_regs(t, regs);
	t->sampled = true;
	return 0;
}

/* The first sample in the ring. */
static int read_ring(struct snapshot_thread *t, struct perf_event_mmap_page *page, long page_size)
{
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = 0;
	const uint8_t *data = (const uint8_t *)page + page_size;
	struct perf_event_header h;
	int err = -EAGAIN;

	/* from the beginning: the ring is new and larger than any record, so that nothing wraps */
	while (err == -EAGAIN && head - tail >= sizeof(h) && tail + sizeof(h) <= RING_BYTES) {
		memcpy(&h, data + tail, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail || tail + h.size > RING_BYTES)
			return -EBADMSG;
		if (h.type == PERF_RECORD_SAMPLE)
			err = take_sample(t, data + tail + sizeof(h), h.size - sizeof(h));
		tail += h.size;
	}
	return err;
}

int snapshot_sample(struct snapshot_thread *t, pid_t tid, int timeout_ms)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = PERIOD_NS,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = REGS,
		.sample_stack_user = STACK_BYTES,
		.wakeup_events = 1,
		.disabled = 1,
	};
	long page_size = sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page;
	struct pollfd p = { .events = POLLIN };
	int err, n;

	p.fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (p.fd < 0)
		return -errno;
	page = mmap(NULL, (size_t)page_size + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd,
		    0);
	if (page == MAP_FAILED) {
		err = -errno;
		close(p.fd);
		return err;
	}
	/* one overflow, and it is off again */
	if (ioctl(p.fd, PERF_EVENT_IOC_REFRESH, 1)) {
		err = -errno;
		goto out;
	}
	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	err = n < 0 ? -errno : read_ring(t, page, page_size);
out:
	munmap(page, (size_t)page_size + RING_BYTES);
	close(p.fd);
	return err;
}
