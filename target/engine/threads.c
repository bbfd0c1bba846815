/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.c - areas for the threads that make hooked calls. A thread takes one at its first call,
 * without a lock and, if an area is ready, without a system call, because a sandbox may allow only
 * a few. An area is used again when its thread has ended. The kernel says so, or a new thread has
 * the same control block. An area is kept if a coroutine may still return through it.
 */
#include <errno.h>
#include <linux/types.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine_state.h"

/* owners[]: the thread's control block, or one of these */
#define UNMAPPED 0UL
#define FREE 2UL
#define LOCKED 4UL /* a thread is changing the area */
/* the thread has ended, but a return address on a stack still points to a stub of the area */
#define KEPT 6UL

#define READY 16 /* number of areas that are kept ready */

static uintptr_t owners[HOOK_AREAS];
static unsigned int mapped; /* areas whose mapping was begun; may be larger than areas_max */
/* areas for which there are addresses: fewer in a program that limits its address space */
static unsigned int areas_max = HOOK_AREAS;
static int process;
static int tid_at; /* offset of the thread id in the C library's control block; 0: not known */
static __thread unsigned int refused __attribute__((tls_model("initial-exec")));

static uintptr_t self(void)
{
#if defined(__x86_64__)
	uintptr_t tcb;

	__asm__("mov %%fs:0, %0" : "=r"(tcb));
	return tcb;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

static int thread_id(void)
{
	return tid_at ? *(volatile int *)(self() + (uintptr_t)tid_at)
		      : (int)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

unsigned int threads_used(void)
{
	unsigned int n = __atomic_load_n(&mapped, __ATOMIC_ACQUIRE);

	return n < areas_max ? n : areas_max;
}

void threads_fit(__u64 bytes)
{
	unsigned int had = areas_max,
		     most = (unsigned int)(bytes / HOOK_AREA < had ? bytes / HOOK_AREA : had), n;

	/* A thread that takes an area at this moment has a number below `mapped`, or will see the new limit. */
	__atomic_store_n(&areas_max, most, __ATOMIC_SEQ_CST);
	n = __atomic_load_n(&mapped, __ATOMIC_SEQ_CST);
	n = n < had ? n : had;
	if (most < n) {
		most = n;
		__atomic_store_n(&areas_max, most, __ATOMIC_SEQ_CST);
	}
	if (most < had)
		sys_call(SYS_munmap, (long)(areas_begin() + (size_t)most * HOOK_AREA),
			 (long)((size_t)(had - most) * HOOK_AREA), 0, 0, 0, 0);
}

bool threads_has(unsigned int i)
{
	uintptr_t owner = __atomic_load_n(&owners[i], __ATOMIC_ACQUIRE);

	return owner != UNMAPPED && owner != FREE && owner != LOCKED;
}

static bool take(unsigned int i, uintptr_t was, uintptr_t to)
{
	return __atomic_compare_exchange_n(&owners[i], &was, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static void set(unsigned int i, uintptr_t to)
{
	__atomic_store_n(&owners[i], to, __ATOMIC_RELEASE);
}

/* Returns whether a return address on a stack still leads into the area. (Its thread has ended, but
 * another thread may have continued its coroutine.) */
static bool is_led_to(unsigned int i)
{
	struct hook_frame *f = area_frames(area_at(i));

	for (int k = 0; k < HOOK_DEPTH; k++)
		if (f[k].state != HOOK_BUSY && call_is_led_to(&f[k]))
			return true;
	return false;
}

static void clear(unsigned int i)
{
	struct area *a = area_at(i);
	/* The first one is not a frame: call_enter() reads this word below the lowest frame. */
	struct hook_frame *f = area_frames(a) - 1;

	for (int k = 0; k <= HOOK_DEPTH; k++)
		f[k].state = HOOK_BUSY;
	a->lo = a->hi = 0;
	a->thread.index = i;
	a->thread.tid = 0;
	a->thread.data = 0;
	set_counts(&a->thread, NULL);
}

#if defined(__x86_64__)
static void write_stub(char *at)
{
	static const unsigned char code[] = {
		0x41, 0xff, 0xd3,			  /* call *%r11 */
		0x4c, 0x8d, 0x15, 0xf6, 0x3f, 0x00, 0x00, /* lea its frame(%rip), %r10 */
		0xff, 0x25, 0x00, 0x00, 0x00, 0x00,	  /* jmp *0(%rip) */
	};
	void (*to)(void) = hooks_return;

	_Static_assert(0x3ff6 == HOOK_PART - 10, "from the lea's end to the frame");
	for (unsigned int i = 0; i < sizeof(code); i++)
		at[i] = (char)code[i];
	*(void (**)(void))(at + sizeof(code)) = to;
}
#else
static void write_stub(char *at)
{
	static const unsigned int code[] = {
		0xd63f0200, /* blr x16 */
		0x1001ffea, /* adr x10, its frame */
		0x58000051, /* ldr x17, #8 */
		0xd61f0220, /* br x17 */
	};
	void (*to)(void) = hooks_return;

	_Static_assert(0x1001ffea == (0x1000000a | (HOOK_PART - 4) / 4 << 5), "the adr's offset");
	for (unsigned int i = 0; i < 4; i++)
		((unsigned int *)at)[i] = code[i];
	*(void (**)(void))(at + sizeof(code)) = to;
}
#endif

static bool map(unsigned int i)
{
	char *code = areas_begin() + (size_t)i * HOOK_AREA;
	long got = sys_call(SYS_mmap, (long)code, HOOK_AREA, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (got != (long)code)
		return false;
	for (int k = 0; k < HOOK_DEPTH; k++)
		write_stub(code + AREA_FIRST + k * FRAME_SIZE);
	clear(i);
#if !defined(__x86_64__)
	__builtin___clear_cache(code, code + HOOK_PART);
#endif
	return !sys_call(SYS_mprotect, (long)code, HOOK_PART, PROT_READ | PROT_EXEC, 0, 0, 0);
}

/* Returns a new area, which is locked, or HOOK_AREAS if there is none. */
static unsigned int map_another(void)
{
	unsigned int i;

	if (threads_used() == areas_max)
		return HOOK_AREAS;
	i = __atomic_fetch_add(&mapped, 1, __ATOMIC_SEQ_CST);
	if (i >= __atomic_load_n(&areas_max, __ATOMIC_SEQ_CST))
		return HOOK_AREAS;
	set(i, LOCKED);
	if (map(i))
		return i;
	set(i, UNMAPPED); /* it is never tried again */
	return HOOK_AREAS;
}

static bool is_alive(int tid)
{
	return sys_call(SYS_tgkill, process, tid, 0, 0, 0, 0) != -ESRCH;
}

static void end(unsigned int i)
{
	struct area *a = area_at(i);

	if (engine_ops && engine_ops->ended)
		engine_ops->ended(&a->thread);
	a->thread.data = 0;
	set_counts(&a->thread, NULL);
	if (is_led_to(i)) {
		set(i, KEPT);
		return;
	}
	clear(i);
	set(i, FREE);
}

void threads_drop_gone(void)
{
	unsigned int n = threads_used();

	for (unsigned int i = 0; i < n; i++) {
		uintptr_t owner = __atomic_load_n(&owners[i], __ATOMIC_ACQUIRE);

		if (owner == KEPT && take(i, KEPT, LOCKED)) {
			if (is_led_to(i)) {
				set(i, KEPT);
			} else {
				clear(i);
				set(i, FREE);
			}
			continue;
		}
		if (owner <= KEPT || is_alive((int)area_at(i)->thread.tid) ||
		    !take(i, owner, LOCKED))
			continue;
		/* Checked again, because a new thread with the same control block may have taken
		 * the area in the meantime. */
		if (is_alive((int)area_at(i)->thread.tid))
			set(i, owner);
		else
			end(i);
	}
}

static struct area *begin(unsigned int i, uintptr_t me)
{
	struct area *a = area_at(i);

	clear(i);
	a->thread.tid = (__u32)thread_id();
	set(i, me);
	return a;
}

bool threads_is_here(void)
{
	return sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0) == process;
}

struct area *threads_get(void)
{
	uintptr_t me = self();
	unsigned int n = threads_used(), i;

	if (refused && --refused)
		return NULL;
	for (i = 0; i < n; i++)
		if (__atomic_load_n(&owners[i], __ATOMIC_ACQUIRE) == me && take(i, me, LOCKED))
			end(i); /* of an earlier thread with the same control block */
	for (int again = 0; again < 2; again++) {
		n = threads_used();
		for (i = 0; i < n; i++)
			if (__atomic_load_n(&owners[i], __ATOMIC_ACQUIRE) == FREE &&
			    take(i, FREE, LOCKED))
				return begin(i, me);
		if (call_is_sandboxed())
			break;
		i = map_another();
		if (i < HOOK_AREAS)
			return begin(i, me);
		threads_drop_gone();
	}
	refused = 4096; /* number of calls until the next attempt */
	return NULL;
}

/* Called in a forked child for the areas of its parent. At most one of the parent's threads exists
 * here, and its control block has the child's id. */
static void forget_others(void)
{
	unsigned int n = threads_used();

	for (unsigned int i = 0; i < n; i++) {
		uintptr_t owner = owners[i];
		struct area *a = area_at(i);

		if (owner == UNMAPPED || owner == FREE)
			continue;
		a->thread.data = 0;
		set_counts(&a->thread, NULL);
		if (owner == LOCKED || !tid_at)
			set(i, KEPT);
		else if (owner > KEPT && sys_readable(owner + (uintptr_t)tid_at) &&
			 *(volatile int *)(owner + (uintptr_t)tid_at) == process)
			a->thread.tid = (__u32)process;
	}
}

int threads_open(void)
{
	int now = getpid(), before = process;

	process = now;
	tid_at = 0;
#if defined(__x86_64__) && defined(__GLIBC__)
	/* struct pthread.tid since glibc 2.4; used only if the value is right */
	if (*(volatile int *)(self() + 720) == (int)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0))
		tid_at = 720;
#elif defined(__aarch64__) && defined(__GLIBC__)
	/* the same; on this processor struct pthread ends where the thread pointer points to */
	if (*(volatile int *)((uintptr_t)pthread_self() + 208) ==
	    (int)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0))
		tid_at = (int)((uintptr_t)pthread_self() + 208 - self());
#endif
	if (before && before != now)
		forget_others();
	threads_top_up();
	return threads_used() ? 0 : -ENOMEM;
}

void threads_top_up(void)
{
	unsigned int n = threads_used(), ready = 0, i;

	for (i = 0; i < n; i++)
		ready += __atomic_load_n(&owners[i], __ATOMIC_RELAXED) == FREE;
	for (; ready < READY; ready++) {
		i = map_another();
		if (i == HOOK_AREAS)
			return;
		set(i, FREE);
	}
}

unsigned int threads_count(void)
{
	unsigned int n = threads_used(), count = 0;

	for (unsigned int i = 0; i < n; i++)
		count += __atomic_load_n(&owners[i], __ATOMIC_RELAXED) > KEPT;
	return count;
}

void threads_end(void)
{
	unsigned int n = threads_used();

	for (unsigned int i = 0; i < n; i++) {
		struct area *a = area_at(i);

		if (!threads_has(i))
			continue;
		if (engine_ops && engine_ops->ended)
			engine_ops->ended(&a->thread);
		a->thread.data = 0;
		set_counts(&a->thread, NULL);
	}
}
