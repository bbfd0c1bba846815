/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack.c - see stack.h. It follows bpf/stack.bpf.h. The copy is made by the kernel, straight into the ring:
 * the program's stack may be too small for a second copy.
 */
#include "stack.h"

#include <sys/uio.h>

#include "../engine/engine.h"
#include "ring_write.h"
#include "../common/sys.h"

#define PAGE 4096
#define PAGES (CT_STACK_MAX / PAGE + 1)
/* above the begin of the main thread's stack: argc and the first of argv */
#define START_BYTES 64

/* the dynamic loader's: where the main thread's stack begins */
extern void *__libc_stack_end __attribute__((weak));

/* How many bytes from sp on are mapped without a gap; at most CT_STACK_MAX + a page. (sys.h says what
 * the system call is.) */
static __u64 mapped_bytes(__u64 sp)
{
	__u64 page = sp & ~(__u64)(PAGE - 1), n = 1; /* we run on the first one */

	while (n < PAGES && sys_readable(page + n * PAGE))
		n++;
	return page + n * PAGE - sp;
}

/* What is above the first frame of a stack is wanted by no unwinder: the thread's control block, and the
 * arguments and environment of the program. */
static __u64 end_of(__u64 sp, __u64 end)
{
	__u64 block = 0, first = 0;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(block));
#else
	block = (__u64)(size_t)__builtin_thread_pointer();
#endif
	if (&__libc_stack_end)
		first = (__u64)__libc_stack_end + START_BYTES;
	if (block > sp && block < end)
		end = block;
	if (first > sp && first < end)
		end = first;
	return end;
}

/* The words that lead to stubs. On aarch64 it is not known which ones they are. */
static void put_true_returns(struct ct_user_stack *s, const struct hooks_thread *t, __u32 d,
			     __u64 len)
{
#if defined(__x86_64__)
	(void)len;
	for (__u32 i = 0; i < d && i < CT_MAX_FRAMES; i++)
		s->saved[i] = (struct ct_saved){ t->calls[i].sp, t->calls[i].ip };
	s->nsaved = (__u8)d;
#else
	volatile __u64 *words = (volatile __u64 *)s->bytes;

	(void)t;
	for (__u64 i = 0; d && i < len / 8; i++)
		words[i] = hook_true_return(words[i]);
#endif
}

bool stack_send(struct hooks_thread *t, __u32 d, __u64 ring_bytes, int pid)
{
	static const struct ct_user_stack none;
	const struct hooks_call *f = &t->calls[d];
	__u64 sp = f->sp + 8, mapped = mapped_bytes(sp), len, tag_at;
	struct iovec there, here;
	struct ct_user_stack *s;
	bool cut;

	len = end_of(sp, sp + mapped) - sp;
	cut = len > CT_STACK_MAX;
	if (cut)
		len = CT_STACK_MAX;
	s = ring_take(t, ring_bytes, sizeof(*s) + ((len + 7) & ~7ULL), &tag_at);
	if (!s)
		return false;
	ring_copy(s, &none, sizeof(*s));
	here = (struct iovec){ s->bytes, len };
	there = (struct iovec){ (void *)sp, len };
	if (sys_call(SYS_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0) != (long)len)
		cut = true; /* another thread has unmapped it meanwhile */
	for (__u64 i = len; i & 7; i++)
		((volatile __u8 *)s->bytes)[i] = 0;
	s->h.kind = CT_USER_STACK;
	s->h.pid = f->rec.h.pid;
	s->h.tid = f->rec.h.tid;
	s->h.start_ns = f->rec.h.start_ns;
	s->h.end_ns = f->rec.h.end_ns;
	s->ip = f->ip;
	s->sp = sp;
#if defined(__x86_64__)
	s->bp = f->regs[1];
	s->regs[0] = f->regs[0];
	for (unsigned int i = 2; i < 6; i++)
		s->regs[i - 1] = f->regs[i];
#else
	s->bp = f->regs[10];
	for (unsigned int i = 0; i < 10; i++)
		s->regs[i] = f->regs[i];
#endif
	put_true_returns(s, t, d, len);
	s->len = (__u32)len;
	s->cut = cut;
	s->h.size = (__u16)(sizeof(*s) + ((len + 7) & ~7ULL));
	ring_commit(t, ring_bytes, tag_at);
	return true;
}
