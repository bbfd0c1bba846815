/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * stack.bpf.h - the user stack of a call, from the caller's frame on: a copy of its memory with the registers that an
 * unwinder begins from, or the addresses that a walk along frame pointers gives.
 */
#ifndef CT_STACK_BPF_H
#define CT_STACK_BPF_H

#define BPF_F_USER_STACK 256 /* <linux/bpf.h> */
#define PAGE_LEFT(addr) (4096 - ((addr) & 4095))
#define START_BYTES 64 /* above mm->start_stack: argc and the first of argv, which _start's frame may be taken for */

/* Where a stack lies: [start, end). */
struct stack_range {
	__u64 start, end;
};

/* The main thread's stack begins below the program's arguments and environment. */
static long find_range(struct task_struct *task, struct vm_area_struct *vma, struct stack_range *r)
{
	__u64 first = BPF_CORE_READ(task, mm, start_stack);

	r->start = vma->vm_start;
	r->end = vma->vm_end;
	if (first >= r->start && first < r->end && first + START_BYTES < r->end)
		r->end = first + START_BYTES;
	return 0;
}

/* Bytes of stack above sp, up to the end of its mapping; 0: not known, because someone is changing the mappings. Asked once
 * for each thread, and again when sp is elsewhere. */
static __noinline __u64 stack_bytes(struct thread *t, __u64 sp)
{
	struct stack_range r = {};

	if (!t)
		return 0;
	if (sp < t->stack_start || sp >= t->stack_end) {
		bpf_find_vma(bpf_get_current_task_btf(), sp, find_range, &r, 0);
		t->stack_start = r.start;
		t->stack_end = r.end;
	}
	return sp < t->stack_end ? t->stack_end - sp : 0;
}

/* Fills the head of the record for the call in frame number d. */
static __always_inline void stack_head(struct ct_user_stack *s, struct thread *t, struct frame *f, __u32 d, __u64 now)
{
	__u32 i;

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
}

/* A copy of up to `room` bytes, a constant of the reservation. */
#define SEND_COPY(room)                                                                                                \
	do {                                                                                                           \
		struct {                                                                                               \
			struct ct_user_stack s;                                                                        \
			__u8 bytes[room];                                                                              \
		} *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);                                                      \
                                                                                                                       \
		if (!r)                                                                                                \
			goto lost;                                                                                     \
		stack_head(&r->s, t, f, d, now);                                                                       \
		BOUND(len, room);                                                                                      \
		if (config.frame_pointers) {                                                                           \
			long n = bpf_get_stack(ctx, r->bytes, CT_ADDRESSES_MAX * 8, BPF_F_USER_STACK);                 \
                                                                                                                       \
			r->s.how = CT_STACK_ADDRESSES;                                                                 \
			r->s.len = n < 0 ? 0 : n;                                                                      \
			r->s.cut = n == CT_ADDRESSES_MAX * 8;                                                          \
		} else {                                                                                               \
			/* without waiting for a page: a reservation holds up every later record */                    \
			if (bpf_probe_read_user(r->bytes, len, (void *)sp)) {                                          \
				/* swapped out since it was looked at, or another stack than it seemed */              \
				if (len > PAGE_LEFT(sp))                                                               \
					len = PAGE_LEFT(sp);                                                           \
				BOUND(len, room);                                                                      \
				if (bpf_probe_read_user(r->bytes, len, (void *)sp))                                    \
					len = 0;                                                                       \
				t->stack_end = 0;                                                                      \
				cut = true;                                                                            \
			}                                                                                              \
			r->s.len = len;                                                                                \
			r->s.cut = cut;                                                                                \
		}                                                                                                      \
		r->s.h.size = sizeof(r->s) + ((r->s.len + 7) & ~7U);                                                   \
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);                                                               \
	} while (0)

/* A page that lies within a large array of some frame may never have been touched: it is not there, and the copy waits for
 * none. */
static __always_inline void bring_in(__u64 sp, __u64 len)
{
	__u64 page = sp;
	__u32 i;
	char c;

	for (i = 0; i <= CT_STACK_MAX / 4096 && page < sp + len; i++) {
		if (bpf_probe_read_user(&c, 1, (void *)page))
			bpf_copy_from_user(&c, 1, (void *)page);
		page = (page | 4095) + 1;
	}
}

/* Sends the stack of the call in frame number d, before the call's own record. */
static __noinline int send_stack(struct pt_regs *ctx, struct thread *t, struct frame *f, __u32 d)
{
	__u64 now = bpf_ktime_get_ns(), sp, len;
	bool cut = false;

	if (!t || !f)
		return 0;
	if (config.python)
		python_stack(f->rec.h.start_ns);
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
		if (config.sleepable)
			bring_in(sp, len);
	}
	if (len <= 1024)
		SEND_COPY(1024);
	else if (len <= 4096)
		SEND_COPY(4096);
	else
		SEND_COPY(CT_STACK_MAX);
	return 0;
lost:
	COUNT(lost[CT_LOSS_STACK]);
	return 0;
}

#endif
