/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * hold.bpf.h - a thread that has just loaded a library waits for a moment, so that the library has its probes before its code
 * runs. For processes that run already: one that is started here is stopped by its tracer (ct_dl_state), which costs it nothing.
 *
 * A uprobe's program cannot sleep until somebody answers: it looks again and again, for HOLD_NS at most, and no more when the
 * time that all threads waited comes to HOLD_ALL_NS, or when nobody answered the last time. User space looks at what
 * processes have mapped, and then says up to which question it has done so.
 */
#ifndef CT_HOLD_BPF_H
#define CT_HOLD_BPF_H

#define HOLD_NS 100000000ULL
#define HOLD_ALL_NS 1000000000ULL
#define HOLD_STEPS (1 << 23) /* more than there can be in that time */

/* The questions, for user space to wake up by. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* a page */
} looks SEC(".maps");

__u64 looks_asked; /* how often it was asked for */
__u64 looks_done;  /* the last question that was answered; written by user space */
__u64 held_ns;	   /* that all threads have waited */
__u64 held_in_vain; /* looks_done + 1 when a thread gave up; 0: none has */

static __always_inline void ask(struct task_struct *task, bool anew)
{
	struct ct_look look = { .ns_pid = pid_in_ns(task), .anew = anew };

	bpf_ringbuf_output(&looks, &look, sizeof(look), BPF_RB_FORCE_WAKEUP);
}

struct hold {
	__u64 question, until_ns;
};

static __always_inline bool is_answered(__u64 question)
{
	return *(volatile __u64 *)&looks_done >= question;
}

/* It does not sleep: a page that is never served would hold up every tracer of the machine. On a kernel without preemption whoever
 * answers may need this very processor: then the thread waits in vain, once. */
static long hold_step(__u32 i, struct hold *h)
{
	return is_answered(h->question) || bpf_ktime_get_ns() > h->until_ns;
}

static __noinline int hold(void)
{
	__u64 begin = bpf_ktime_get_ns();
	struct hold h = { .until_ns = begin + HOLD_NS };
	bool useless = held_ns > HOLD_ALL_NS || held_in_vain == looks_done + 1;

	h.question = __sync_fetch_and_add(&looks_asked, 1) + 1;
	ask(bpf_get_current_task_btf(), false);
	if (useless)
		return 0;
	bpf_loop(HOLD_STEPS, hold_step, &h, 0);
	if (!is_answered(h.question))
		held_in_vain = looks_done + 1;
	__sync_fetch_and_add(&held_ns, bpf_ktime_get_ns() - begin);
	return 0;
}

#endif
