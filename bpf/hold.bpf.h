/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * hold.bpf.h - a thread that has just loaded a library waits for a moment, so that the library has
 * its probes before its code runs. This is for threads that no tracer of ours has seized: those of
 * processes that already run. A program that cudatrace starts is stopped by its tracer instead
 * (halt.bpf.h).
 *
 * A uprobe's program cannot sleep until user space answers. It polls for at most HOLD_NS. It stops
 * doing so when all threads together have waited HOLD_ALL_NS, or when the last question was not
 * answered. It is loaded as a sleepable program if the kernel has these (bpf_load.c says why), but
 * it does not sleep. User space looks at what processes have mapped, and then writes the number of
 * the last question that it has answered.
 */
#ifndef CT_HOLD_BPF_H
#define CT_HOLD_BPF_H

#define HOLD_NS 100000000ULL
#define HOLD_ALL_NS 1000000000ULL
#define HOLD_STEPS (1 << 23) /* more turns of the loop than are possible in that time */

/* Carries the questions to user space and wakes it up. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* a page */
} looks SEC(".maps");

/* Keyed by tgid; contains only traced processes. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ct_load);
} loads SEC(".maps");

__u64 looks_asked;  /* number of questions so far */
__u64 looks_done;   /* the last answered question; written by user space */
__u64 held_ns;	    /* total time that all threads have waited */
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

/* It does not sleep: if a page were never served, every tracer of the machine would have to wait.
 * On a kernel without preemption the process that answers may need this processor. Then the thread
 * waits in vain, but only once. */
static long hold_step(__u32 i, struct hold *h)
{
	return is_answered(h->question) || *(volatile bool *)&tracer_gone ||
	       bpf_ktime_get_ns() > h->until_ns;
}

static __always_inline struct ct_load *load_of(__u32 tgid)
{
	struct ct_load none = {}, *load = bpf_map_lookup_elem(&loads, &tgid);

	if (load)
		return load;
	bpf_map_update_elem(&loads, &tgid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&loads, &tgid);
}

/* A thread has mapped files, and went on without having been looked at. */
static __always_inline void passed(__u32 tgid)
{
	struct ct_load *load = load_of(tgid);

	if (load)
		load->passed_ns = bpf_ktime_get_ns();
}

/* The loader calls _dl_debug_state also before it maps anything. Then no executable page is new,
 * and the thread does not wait. */
static __noinline int hold(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 begin = bpf_ktime_get_ns(), pages = BPF_CORE_READ(task, mm, exec_vm);
	struct ct_load *load = load_of(bpf_get_current_pid_tgid() >> 32);
	struct hold h = { .until_ns = begin + HOLD_NS };
	bool useless = held_ns > HOLD_ALL_NS || held_in_vain == looks_done + 1 || tracer_gone;
	bool answered;

	if (!load || load->pages == pages) {
		if (load)
			load->passed_ns = begin;
		return 0;
	}
	load->pages = pages;
	load->waiting_ns = begin;
	h.question = __sync_fetch_and_add(&looks_asked, 1) + 1;
	ask(task, false);
	if (!useless)
		bpf_loop(HOLD_STEPS, hold_step, &h, 0);
	answered = is_answered(h.question);
	if (!useless && !answered)
		held_in_vain = looks_done + 1;
	if (!useless)
		__sync_fetch_and_add(&held_ns, bpf_ktime_get_ns() - begin);
	if (answered)
		load->waited_ns = begin;
	else
		load->passed_ns = bpf_ktime_get_ns();
	load->waiting_ns = 0;
	return 0;
}

#endif
