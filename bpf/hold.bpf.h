/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * hold.bpf.h - a thread that has just loaded a library waits for a moment, so that the library has
 * its probes before its code runs. For processes that run already: one that is started here is
 * stopped by its tracer (ct_dl_state), which costs it nothing.
 *
 * A uprobe's program cannot sleep until somebody answers: it looks again and again, for HOLD_NS
 * at most, and no more when the time that all threads waited comes to HOLD_ALL_NS, or when
 * nobody answered the last time. It is loaded as one that may sleep where the kernel has such
 * (bpf_load.c says why), and does not. User space looks at what processes have mapped, and then
 * says up to which question it has done so.
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

/* By tgid. Only of traced processes. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ct_load);
} loads SEC(".maps");

__u64 looks_asked;  /* how often it was asked for */
__u64 looks_done;   /* the last question that was answered; written by user space */
__u64 held_ns;	    /* that all threads have waited */
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

/* It does not sleep: a page that is never served would hold up every tracer of the machine. On a
 * kernel without preemption whoever answers may need this very processor: then the thread waits
 * in vain, once. */
static long hold_step(__u32 i, struct hold *h)
{
	return is_answered(h->question) || bpf_ktime_get_ns() > h->until_ns;
}

static __always_inline struct ct_load *load_of(__u32 tgid)
{
	struct ct_load none = {}, *load = bpf_map_lookup_elem(&loads, &tgid);

	if (load)
		return load;
	bpf_map_update_elem(&loads, &tgid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&loads, &tgid);
}

/* The loader calls _dl_debug_state before it maps anything, too: then no executable page is new,
 * and nobody waits. */
static __noinline int hold(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 begin = bpf_ktime_get_ns(), pages = BPF_CORE_READ(task, mm, exec_vm);
	struct ct_load *load = load_of(bpf_get_current_pid_tgid() >> 32);
	struct hold h = { .until_ns = begin + HOLD_NS };
	bool useless = held_ns > HOLD_ALL_NS || held_in_vain == looks_done + 1, answered;

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
