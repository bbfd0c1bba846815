/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * stack.bpf.h - the user stack of a call, from the caller's frame on: a copy of its memory with
 * the registers that an unwinder begins from, or the addresses that a walk along frame pointers
 * gives.
 */
#ifndef CT_STACK_BPF_H
#define CT_STACK_BPF_H

#define BPF_F_USER_STACK 256 /* <linux/bpf.h> */
#define PAGE_LEFT(addr) (4096 - ((addr)&4095))
/* bytes above mm->start_stack: argc and the first of argv, which unwinders may take for the frame
 * of _start */
#define START_BYTES 64

/* The range of the stack that sp points into: [start, end). */
struct stack_range {
	__u64 sp, start, end;
};

/*
 * Above the first frame of a stack lies what no unwinder asks for. The main thread's stack
 * begins below the program's arguments and environment. The C libraries put the stack of another
 * thread and what they know of it into one mapping: on x86-64 the thread pointer leads to the
 * latter, which is above the stack (2304 bytes of it in glibc).
 */
static long find_range(struct task_struct *task, struct vm_area_struct *vma, struct stack_range *r)
{
	__u64 first = BPF_CORE_READ(task, mm, start_stack), end;

	r->start = vma->vm_start;
	r->end = vma->vm_end;
	end = first + START_BYTES;
	if (first >= r->start && end < r->end)
		r->end = end;
#if defined(__TARGET_ARCH_x86)
	end = BPF_CORE_READ(task, thread.fsbase);
	if (end > r->sp && end < r->end)
		r->end = end;
#endif
	return 0;
}

/* Returns the number of bytes between sp and the end of the stack. 0: not known, because the
 * mappings are being changed. It is looked up once for each thread, and again when sp is in another
 * mapping. */
static __noinline __u64 stack_bytes(struct thread *t, __u64 sp)
{
	struct stack_range r = { .sp = sp };

	if (!t)
		return 0;
	if (sp < t->stack_start || sp >= t->stack_end) {
		bpf_find_vma(bpf_get_current_task_btf(), sp, find_range, &r, 0);
		t->stack_start = r.start;
		t->stack_end = r.end;
	}
	return sp < t->stack_end ? t->stack_end - sp : 0;
}

/* Fills the head of the record for the call in frame number d. Not static, so that the verifier
 * checks it once and not for each size of stack. */
__noinline int stack_head(struct ct_user_stack *s, struct thread *t, struct frame *f, __u32 d,
			  __u64 now)
{
	__u32 i;

	if (!s || !t || !f)
		return 0;
	__builtin_memset(s, 0, sizeof(*s));
	s->h.size = sizeof(*s);
	s->h.kind = CT_USER_STACK;
	s->h.pid = f->rec.h.pid;
	s->h.tid = f->rec.h.tid;
	s->h.start_ns = f->rec.h.start_ns;
	s->h.end_ns = now;
	s->ip = f->ip_to;
	s->sp = CALLER_SP(f->sp);
	s->bp = f->bp;
	__builtin_memcpy(s->regs, f->regs, sizeof(f->regs));
	for (i = 0; i < CT_MAX_FRAMES; i++) {
		if (i >= d)
			break;
		s->saved[i].sp = t->frames[i].sp;
		s->saved[i].ip = t->frames[i].ip_to;
		s->nsaved = i + 1;
	}
	return 0;
}

/*
 * Copies the stack piece by piece, for when not all of it is resident: a page inside a large array
 * of a frame may never have been touched. A piece that cannot be read becomes zeros, like a page
 * that was never written. A piece does not cross a page border. `room` is a constant.
 */
#define STACK_PIECE 128
#define COPY_PIECES(bytes, room)                                                           \
	do {                                                                               \
		__u32 first = STACK_PIECE - (sp & (STACK_PIECE - 1)), at = first, i;       \
                                                                                           \
		bpf_probe_read_user(bytes, first, (void *)sp);                             \
		for (i = 0; i < (room) / STACK_PIECE - 1; i++) {                           \
			at = first + i * STACK_PIECE;                                      \
			if (at >= len)                                                     \
				break;                                                     \
			bpf_probe_read_user((bytes) + at, STACK_PIECE, (void *)(sp + at)); \
		}                                                                          \
		/* the rest of the room, word by word */                                   \
		for (i = 0; i < STACK_PIECE / 8; i++) {                                    \
			at = first + ((room) / STACK_PIECE - 1) * STACK_PIECE + i * 8;     \
			if (at >= len || at > (room)-8)                                    \
				break;                                                     \
			bpf_probe_read_user((bytes) + at, 8, (void *)(sp + at));           \
		}                                                                          \
	} while (0)

/* A copy of up to `room` bytes. The size of a ring reservation must be constant, so a stack uses
 * the smallest size class that it fits into. */
#define SEND_COPY(room)                                                             \
	do {                                                                        \
		struct {                                                            \
			struct ct_user_stack s;                                     \
			__u8 bytes[room];                                           \
		} *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);                   \
                                                                                    \
		if (!r)                                                             \
			goto lost;                                                  \
		stack_head(&r->s, t, f, d, now);                                    \
		BOUND(len, room);                                                   \
		if (config.frame_pointers) {                                        \
			long n = bpf_get_stack(ctx, r->bytes, CT_ADDRESSES_MAX * 8, \
					       BPF_F_USER_STACK);                   \
                                                                                    \
			r->s.how = CT_STACK_ADDRESSES;                              \
			r->s.len = n < 0 ? 0 : n;                                   \
			r->s.cut = n == CT_ADDRESSES_MAX * 8;                       \
		} else {                                                            \
			if (bpf_probe_read_user(r->bytes, len, (void *)sp)) {       \
				COPY_PIECES(r->bytes, room);                        \
				/* the thread may be on another stack now */        \
				t->stack_end = 0;                                   \
			}                                                           \
			r->s.len = len;                                             \
			r->s.cut = cut;                                             \
		}                                                                   \
		r->s.h.size = sizeof(r->s) + ((r->s.len + 7) & ~7U);                \
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);                            \
	} while (0)

/* Sends the stack of the call in frame number d, before the call's own record. */
static __noinline int send_stack(struct pt_regs *ctx, struct thread *t, struct frame *f, __u32 d)
{
	__u64 now = bpf_ktime_get_ns(), sp, len;
	bool cut = false;

	if (!t || !f)
		return 0;
	if (config.python && python_stack(f->rec.h.start_ns) && config.python_only == CT_PY_FIRST)
		return 0;
	if (config.python_only == CT_PY_ALONE)
		return 0;
	sp = CALLER_SP(f->sp);
	if (config.frame_pointers) {
		len = CT_ADDRESSES_MAX * 8;
	} else {
		len = stack_bytes(t, sp);
		if (!len) {
			len = PAGE_LEFT(sp);
			cut = true;
		}
		if (len > CT_STACK_MAX) {
			len = CT_STACK_MAX;
			cut = true;
		}
	}
	if (len <= 512)
		SEND_COPY(512);
	else if (len <= 1024)
		SEND_COPY(1024);
	else if (len <= 1536)
		SEND_COPY(1536);
	else if (len <= 2048)
		SEND_COPY(2048);
	else if (len <= 2560)
		SEND_COPY(2560);
	else if (len <= 3072)
		SEND_COPY(3072);
	else if (len <= 4096)
		SEND_COPY(4096);
	else if (len <= 5120)
		SEND_COPY(5120);
	else if (len <= 6144)
		SEND_COPY(6144);
	else if (len <= 8192)
		SEND_COPY(8192);
	else if (len <= 12288)
		SEND_COPY(12288);
	else
		SEND_COPY(CT_STACK_MAX);
	return 0;
lost:
	COUNT(lost[CT_LOSS_STACK]);
	return 0;
}

#endif
