/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * halt.bpf.h - a thread of a program that cudatrace has started is stopped by its tracer. No signal
 * is sent: the program may block it, take it with sigtimedwait(2), or get it when the tracer has
 * died.
 *
 * A uprobe's program can stop nobody. It asks, and polls until the tracer has answered by
 * PTRACE_INTERRUPT, which takes some 50 us: the thread then stops before its next instruction,
 * whatever its mask. It does not wait for a tracer that has died or is stopped itself, and at most
 * HALT_NS for any other. When it has waited in vain, nobody waits until the tracer has taken the
 * next question.
 */
#ifndef CT_HALT_BPF_H
#define CT_HALT_BPF_H

#define HALT_NS CT_HALT_NS
#define HALT_QUEUED_NS 10000000ULL
#define HALT_STEPS (1 << 23) /* more turns of the loop than are possible in that time */
#define PF_EXITING 0x4	     /* <linux/sched.h> */
#define MAX_RT_PRIO 100
/* <linux/sched/signal.h> */
#define SIGNAL_STOP_STOPPED 0x1
#define SIGNAL_GROUP_EXIT 0x4

/* Carries the questions to the tracer and wakes it up. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* bytes: a page, or several */
} halts SEC(".maps");

__u64 halts_asked;	/* number of questions so far */
__u64 halts_taken;	/* how many of them the tracer has taken; written by it */
__u64 halted_in_vain;	/* halts_taken + 1 when a thread gave up; 0: none has */
__u64 halted[CT_HALTS]; /* the last question of this place that was answered; written by the tracer */
__u32 tracer_tgid;	/* initial namespace; written by user space */
bool tracer_gone;

/* The thread that has seized the task, if it is ours and can answer; else NULL. */
static __always_inline struct task_struct *tracer_of(struct task_struct *task)
{
	struct task_struct *tracer = task->parent;

	if (!task->ptrace || (__u32)tracer->tgid != tracer_tgid || tracer->flags & PF_EXITING ||
	    tracer->signal->flags & (SIGNAL_GROUP_EXIT | SIGNAL_STOP_STOPPED))
		return NULL;
	return tracer;
}

/* Was the task seized by us, who may be stopped or ending? */
static __always_inline bool is_seized(struct task_struct *task)
{
	return task->ptrace && (__u32)task->parent->tgid == tracer_tgid;
}

struct halt {
	__u64 question, since_ns;
};

static __always_inline bool is_halted(__u64 question)
{
	return *(volatile __u64 *)&halted[question % CT_HALTS] == question;
}

static __always_inline bool is_realtime(struct task_struct *tracer)
{
	return tracer->prio < MAX_RT_PRIO;
}

/* Is this processor the one that the tracer waits for? A kernel without preemption gives it away
 * only when we leave: then at once, before the thread's next instruction, as the tracer's thread has
 * a real-time priority. */
static __always_inline bool is_in_the_way(struct task_struct *tracer, __u64 waited_ns)
{
	return tracer->on_rq && !tracer->on_cpu &&
	       tracer->thread_info.cpu == bpf_get_smp_processor_id() &&
	       (waited_ns > HALT_QUEUED_NS || is_realtime(tracer));
}

static long halt_step(__u32 i, struct halt *h)
{
	struct task_struct *tracer = tracer_of(bpf_get_current_task_btf());
	__u64 waited_ns = bpf_ktime_get_ns() - h->since_ns;

	return is_halted(h->question) || !tracer || waited_ns > HALT_NS ||
	       is_in_the_way(tracer, waited_ns);
}

/* Returns whether the thread will be stopped before its next instruction. Not static, so that the
 * verifier checks it once. */
__noinline int halt(__u32 why)
{
	struct task_struct *task = bpf_get_current_task_btf(), *tracer = tracer_of(task);
	struct halt h = { .since_ns = bpf_ktime_get_ns() };
	struct ct_halt *question;

	if (!tracer)
		return 0;
	question = bpf_ringbuf_reserve(&halts, sizeof(*question), 0);
	if (!question)
		return 0;
	h.question = __sync_fetch_and_add(&halts_asked, 1) + 1;
	question->ns_tid = number_in_ns(task->thread_pid, task->thread_pid->level);
	question->why = why;
	question->number = h.question;
	question->at_ns = h.since_ns;
	bpf_ringbuf_submit(question, BPF_RB_FORCE_WAKEUP);
	if (halted_in_vain == halts_taken + 1)
		return 0;
	bpf_loop(HALT_STEPS, halt_step, &h, 0);
	if (is_halted(h.question))
		return 1;
	if (bpf_ktime_get_ns() - h.since_ns < HALT_QUEUED_NS)
		return tracer_of(task) && is_realtime(tracer);
	halted_in_vain = halts_taken + 1;
	return 0;
}

#endif
