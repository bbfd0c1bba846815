/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_frames.c - see python_frames.h. It runs on the program's thread, under the rules of engine.h for entry()
 * and leave(): no libc, no vector registers, little stack. The data lies in memory of the thread,
 * which is mapped at the thread's first stack and is used again by the next thread with its block.
 */
#include "python_frames.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

#include "ring_write.h"
#include "../common/sys.h"

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define BOUND(x, max)                \
	do {                         \
		if ((x) > (max))     \
			(x) = (max); \
	} while (0)

static struct ct_python interpreter;
static __u32 generation; /* of `interpreter`; it counts how often that was set */
static __u32 is_set;
static int own_pid;

static long read_safely(void *to, __u32 len, __u64 from)
{
	struct iovec here = { to, len }, there = { (void *)from, len };

	return sys_call(SYS_process_vm_readv, own_pid, (long)&here, 1, (long)&there, 1, 0) !=
	       (long)len;
}

static long py_read(void *to, __u32 len, __u64 from);

static __u64 py_now(void)
{
	struct timespec ts = { 0 };

	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0, 0, 0, 0);
	return (__u64)ts.tv_sec * 1000000000ULL + (__u64)ts.tv_nsec;
}

static __u32 py_pid(void)
{
	return (__u32)own_pid;
}

/* The user side knows to which thread the block belongs. */
static __u32 py_tid(void)
{
	return 0;
}

/* The code objects that this thread has sent (code ^ check): SENT_WAYS places for each value of
 * some bits of the address. A code object that is replaced here is sent again. */
#define SENT_SETS 256
#define SENT_WAYS 4
#define MAPPED 256
#define PY_THREAD_OWN               \
	__u32 busy, next;           \
	struct hooks_thread *block; \
	__u64 ring_bytes;           \
	__u64 sure_state;           \
	__u64 mapped_since;         \
	__u64 mapped[MAPPED];       \
	__u64 sent[SENT_SETS][SENT_WAYS];
#define PY_BUFFERS 8
#define PY_LOOP(n, fn, ctx)                              \
	do {                                             \
		for (__u32 turn = 0; turn < (n); turn++) \
			if (fn(turn, ctx))               \
				break;                   \
	} while (0)
#include "../../capture/python_walk.h"

/* all zeros, and present only when they are used */
static struct py_buffer buffers[PY_BUFFERS];
static struct py_thread *threads[HOOKS_THREADS_MAX];

static __thread struct py_thread *walker __attribute__((tls_model("initial-exec")));

/* ---- the program's memory ---- */

/*
 * A system call for each word takes 1 us. It is needed if the memory may be unmapped at that
 * moment. But the thread that made the interpreter is also the one that ends it. So while this
 * thread is in a call, nobody frees its state, its frames, or what these refer to. This memory is
 * therefore loaded directly, from pages that were seen to be mapped (if we misunderstood the
 * interpreter, they might not be). The states of other threads are never loaded directly.
 */
static bool py_is_sure(const struct py_thread *t)
{
	return t->sure_state && t->sure_state == t->state;
}

static void py_not_sure(struct py_thread *t)
{
	t->sure_state = 0;
}

/* Its state is the first one that was made, which is the last of the list, of the only interpreter. */
static void become_sure(struct py_thread *t, const struct ct_python *p)
{
	__u64 head = 0, more = 1, next = 1;

	if (t->sure_state || !t->state)
		return;
	if (!read_safely(&head, 8, p->runtime + p->runtime_interpreters_head) && head &&
	    !read_safely(&more, 8, head + p->interp_next) && !more &&
	    !read_safely(&next, 8, t->state + p->thread_next) && !next)
		t->sure_state = t->state;
}

/* A page that was seen to be mapped is assumed to stay mapped for some 100 ms. */
#define MAPPED_TICKS (1ULL << 28)
#define PAGE 4096ULL
static bool is_mapped(struct py_thread *t, __u64 address)
{
	__u64 page = address & ~(PAGE - 1), *place = &t->mapped[page / PAGE % MAPPED];

	if (*place == page)
		return page;
	if (!page || !sys_readable(page))
		return false;
	*place = page;
	return true;
}

static void forget_mapped(struct py_thread *t)
{
	for (int i = 0; i < MAPPED; i++)
		((volatile __u64 *)t->mapped)[i] = 0;
	t->mapped_since = t->start_ns;
}

static long py_read(void *to, __u32 len, __u64 from)
{
	struct py_thread *t = walker;
	volatile __u8 *bytes = to;
	__u32 i = 0;

	if (!py_is_sure(t) || len > PAGE || !is_mapped(t, from) || !is_mapped(t, from + len - 1))
		return read_safely(to, len, from);
	for (; i + 8 <= len; i += 8)
		*(volatile __u64 *)(bytes + i) = *(const volatile __u64 *)(from + i);
	for (; i < len; i++)
		bytes[i] = *(const volatile __u8 *)(from + i);
	return 0;
}

/* ---- what is sent ---- */

static long py_send(struct py_thread *t, struct ct_hdr *h, __u32 size)
{
	h->tid = t->block->tid;
	h->lost = 0;
	return !ring_put(t->block, t->ring_bytes, h, size);
}

static __u64 *set_of(struct py_thread *t, __u64 code)
{
	return t->sent[(code >> 4 ^ code >> 12) % SENT_SETS];
}

static bool py_is_sent(struct py_thread *t, const struct ct_python *p, __u64 code, __u64 check)
{
	const __u64 *set = set_of(t, code);

	(void)p;
	for (int i = 0; i < SENT_WAYS; i++)
		if (set[i] == (code ^ check))
			return true;
	return false;
}

static void py_set_sent(struct py_thread *t, const struct ct_python *p, __u64 code, __u64 check)
{
	(void)p;
	set_of(t, code)[t->next++ % SENT_WAYS] = code ^ check;
}

static struct py_buffer *py_buffer_take(__u32 i)
{
	__u64 free = 0;

	return __atomic_compare_exchange_n(&buffers[i].busy, &free, 1, 0, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED)
		       ? &buffers[i]
		       : NULL;
}

static void py_buffer_give(struct py_buffer *b)
{
	__atomic_store_n(&b->busy, 0, __ATOMIC_RELEASE);
}

static __thread bool piece_lost __attribute__((tls_model("initial-exec")));

static void py_lost(void)
{
	piece_lost = true;
}

void python_set(const struct ct_python *p, int pid)
{
	__atomic_store_n(&is_set, 0, __ATOMIC_SEQ_CST);
	interpreter = *p;
	own_pid = pid;
	generation++;
	interpreter.generation = generation;
	__atomic_store_n(&is_set, 1, __ATOMIC_RELEASE);
}

void python_forget(void)
{
	__atomic_store_n(&is_set, 0, __ATOMIC_SEQ_CST);
}

bool python_is_set(void)
{
	return __atomic_load_n(&is_set, __ATOMIC_ACQUIRE);
}

static struct py_thread *thread_of(__u32 block)
{
	struct py_thread *t, *none = NULL;
	long at;

	if (block >= HOOKS_THREADS_MAX)
		return NULL;
	t = __atomic_load_n(&threads[block], __ATOMIC_ACQUIRE);
	if (t)
		return t;
	at = sys_call(SYS_mmap, 0, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (at > -4096 && at < 0)
		return NULL;
	t = (struct py_thread *)at;
	if (__atomic_compare_exchange_n(&threads[block], &none, t, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return t;
	/* a signal handler of this thread was here before */
	sys_call(SYS_munmap, at, sizeof(*t), 0, 0, 0, 0);
	return none;
}

/* Forgets which code objects were sent, for another thread or another reader of the records. */
static void begin_anew(struct py_thread *t, __u32 tid)
{
	if (t->own_tid == tid && t->generation == interpreter.generation)
		return;
	t->own_tid = tid;
	t->generation = interpreter.generation;
	t->state = t->absent_ns = t->sure_state = 0;
	for (int i = 0; i < SENT_SETS * SENT_WAYS; i++)
		((volatile __u64 *)t->sent)[i] = 0;
}

bool python_send(struct hooks_thread *block, __u32 number, const struct hooks_call *f,
		 __u64 ring_bytes, bool *any)
{
	struct py_thread *t = thread_of(number);
	__u32 free = 0;

	*any = false;
	/* not free: a signal handler that came into this code makes a call with a stack */
	if (!t ||
	    !__atomic_compare_exchange_n(&t->busy, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	begin_anew(t, block->tid);
	t->block = block;
	t->ring_bytes = ring_bytes;
	t->start_ns = f->rec.h.start_ns;
	t->end_ns = f->rec.h.end_ns;
	piece_lost = false;
	walker = t;
	if (t->start_ns - t->mapped_since > MAPPED_TICKS)
		forget_mapped(t);
	*any = py_walk_thread(t, &interpreter);
	if (*any)
		become_sure(t, &interpreter);
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
	return !piece_lost;
}
