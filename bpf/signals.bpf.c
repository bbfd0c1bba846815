// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * signals.bpf.c - the kernel side of the source of signals that end processes. It is an object of its own, which is loaded
 * for `watch` alone.
 *
 * When such a signal is sent to a process that is watched, who sent it is noted, and the process is marked. A thread
 * of a marked process that the signal ends, and each other thread that goes with it, comes by once more before it is
 * gone: its registers and its stack are sent then, from within itself, as nobody else could read them later. Nothing is
 * stopped, and nothing waits for us. Programs that no such signal is sent to pay nothing.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../wire/cudatrace.h"
#include "pid_ns.bpf.h"
#include "regs.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PF_KTHREAD 0x200000
#define LEVELS 16	      /* of parents, among which one that is wanted is looked for */
#define PIECE 512	      /* of a stack */
#define AGAIN_NS 100000000ULL /* a signal that a handler takes again and again is told so often */

enum {
	SIG_QUIT = 3,
	SIG_ILL = 4,
	SIG_ABRT = 6,
	SIG_BUS = 7,
	SIG_FPE = 8,
	SIG_KILL = 9,
	SIG_SEGV = 11,
	SIG_TERM = 15
};
#define ENDING                                                                             \
	(1u << SIG_QUIT | 1u << SIG_ILL | 1u << SIG_ABRT | 1u << SIG_BUS | 1u << SIG_FPE | \
	 1u << SIG_KILL | 1u << SIG_SEGV | 1u << SIG_TERM)

const volatile __u32 ns_inum; /* of the tracer's pid namespace */
const volatile __u32 our_pid; /* there */
const volatile bool every, follow;
__u64 signals_lost;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} signals SEC(".maps");

/* The processes that the user named, by their number in the tracer's namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u8);
} signals_wanted SEC(".maps");

/* The processes to which a signal was sent, by tgid. */
struct mark {
	__u32 threads; /* of the process, that were handed over */
	__u32 signal;  /* the last with a handler, and when it was sent */
	__u64 sent_ns;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct mark);
} signals_marked SEC(".maps");

static __always_inline __u32 shown(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);

	return pid ? pid_number_in(pid, BPF_CORE_READ(pid, level), ns_inum) : 0;
}

static __noinline int is_wanted(struct task_struct *task)
{
	struct task_struct *p = BPF_CORE_READ(task, group_leader), *parent;
	__u32 number;
	int i;

	if (every)
		return 1;
	for (i = 0; i < LEVELS; i++) {
		number = shown(p);
		if (number && bpf_map_lookup_elem(&signals_wanted, &number))
			return 1;
		parent = BPF_CORE_READ(p, real_parent, group_leader);
		if (!follow || !parent || parent == p)
			return 0;
		p = parent;
	}
	return 0;
}

static __always_inline bool has_handler(struct task_struct *task, int sig)
{
	struct sighand_struct *all = BPF_CORE_READ(task, sighand);
	struct k_sigaction *a = (void *)all + bpf_core_field_offset(struct sighand_struct, action) +
				(sig - 1) * bpf_core_type_size(struct k_sigaction);

	return all && (unsigned long)BPF_CORE_READ(a, sa.sa_handler) > 1; /* SIG_DFL, SIG_IGN */
}

static __always_inline void head(struct ct_signal *s, struct task_struct *task, __u8 what)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	__builtin_memset(s, 0, sizeof(*s));
	s->h.size = sizeof(*s);
	s->h.kind = CT_SIGNAL;
	s->h.start_ns = s->h.end_ns = bpf_ktime_get_ns();
	s->what = what;
	s->begun_ns =
		s->h.start_ns - (bpf_ktime_get_boot_ns() - BPF_CORE_READ(leader, start_boottime));
	s->tgid = BPF_CORE_READ(task, tgid);
	s->tid = BPF_CORE_READ(task, pid);
	s->shown_tgid = shown(leader);
	s->shown_tid = shown(task);
	s->parent = BPF_CORE_READ(leader, real_parent, tgid);
}

/* Who sent it, by the first members of struct kernel_siginfo, whose places are fixed; 0 and 1 stand for a person's
 * signal and for the kernel's. */
static __always_inline void name_sender(struct ct_signal *s, void *info, struct task_struct *by)
{
	struct {
		__s32 signo, error, code, pad;
		__u64 address;
	} i = {};

	if ((unsigned long)info > 1)
		bpf_probe_read_kernel(&i, sizeof(i), info);
	s->code = i.code;
	if ((unsigned long)info == 1 || i.code > 0) {
		s->by = CT_SIGNAL_BY_KERNEL;
		s->address = (unsigned long)info > 1 ? i.address : 0;
		return;
	}
	s->by = (__u32)by->tgid == s->tgid ? CT_SIGNAL_BY_ITSELF : CT_SIGNAL_BY_PROCESS;
	s->sender = by->tgid;
	s->shown_sender = shown(BPF_CORE_READ(by, group_leader));
	BPF_CORE_READ_STR_INTO(&s->by_comm, by, group_leader, comm);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(ct_signal_sent, int sig, void *info, struct task_struct *task, int group, int result)
{
	struct task_struct *by = bpf_get_current_task_btf();
	struct ct_signal *s;
	struct mark *m, new = {};
	__u32 tgid = task->tgid;
	bool handled;

	/* a result of its own: it is ignored, or there is one already */
	if (result || sig < 1 || sig > 31 || !(ENDING >> sig & 1) ||
	    BPF_CORE_READ(task, flags) & PF_KTHREAD || !is_wanted(task))
		return 0;
	handled = sig != SIG_KILL && has_handler(task, sig);
	m = bpf_map_lookup_elem(&signals_marked, &tgid);
	if (m && handled && m->signal == (__u32)sig && bpf_ktime_get_ns() - m->sent_ns < AGAIN_NS)
		return 0;
	s = bpf_ringbuf_reserve(&signals, sizeof(*s), 0);
	if (!s) {
		__sync_fetch_and_add(&signals_lost, 1);
		return 0;
	}
	head(s, task, CT_SIGNAL_SENT);
	s->signal = sig;
	s->handled = handled;
	BPF_CORE_READ_STR_INTO(&s->comm, task, group_leader, comm);
	name_sender(s, info, by);
	if (s->by == CT_SIGNAL_BY_PROCESS && s->shown_sender == our_pid) {
		bpf_ringbuf_discard(s, 0);
		return 0;
	}
	new.signal = handled ? sig : 0;
	new.sent_ns = s->h.start_ns;
	bpf_ringbuf_submit(s, 0);
	if (m) {
		m->signal = new.signal;
		m->sent_ns = new.sent_ns;
	} else {
		bpf_map_update_elem(&signals_marked, &tgid, &new, BPF_NOEXIST);
	}
	return 0;
}

/* The handler is none where the signal ends the process. A thread that goes because another one does gets SIGKILL. */
SEC("tp_btf/signal_deliver")
int BPF_PROG(ct_signal_ends, int sig, void *info, struct k_sigaction *action)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task->tgid, i;
	struct mark *m;
	struct {
		struct ct_signal s;
		__u8 bytes[CT_SIGNAL_STACK];
	} * r;
	struct user_part regs;

	if (sig < 1 || sig > 31 || !(ENDING >> sig & 1))
		return 0;
	m = bpf_map_lookup_elem(&signals_marked, &tgid);
	if (!m || (sig != SIG_KILL && BPF_CORE_READ(action, sa.sa_handler)) ||
	    bpf_probe_read_kernel(&regs, sizeof(regs),
				  (char *)bpf_task_pt_regs(task) + USER_PART_AT) ||
	    !USER_MODE(&regs) || __sync_fetch_and_add(&m->threads, 1) >= CT_SIGNAL_THREADS)
		return 0;
	r = bpf_ringbuf_reserve(&signals, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&signals_lost, 1);
		return 0;
	}
	head(&r->s, task, CT_SIGNAL_THREAD);
	r->s.signal = sig;
	bpf_probe_read_kernel_str(r->s.comm, sizeof(r->s.comm), task->comm);
	COPY_USER_REGS(&r->s, &regs);
	for (i = 0; i < CT_SIGNAL_STACK / PIECE; i++) {
		if (bpf_probe_read_user(r->bytes + i * PIECE, PIECE, (void *)(r->s.sp + i * PIECE)))
			break;
		r->s.len = (i + 1) * PIECE;
	}
	r->s.h.size += r->s.len;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

/* When several threads end together, each of them finds that none is left: only one of them removes the mark. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(ct_signal_ended, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct ct_signal *s;

	if (BPF_CORE_READ(task, signal, live.counter) > 0 ||
	    bpf_map_delete_elem(&signals_marked, &tgid))
		return 0;
	s = bpf_ringbuf_reserve(&signals, sizeof(*s), 0);
	if (!s) {
		__sync_fetch_and_add(&signals_lost, 1);
		return 0;
	}
	head(s, task, CT_SIGNAL_EXIT);
	s->status = BPF_CORE_READ(task, signal, group_exit_code);
	if (!s->status)
		s->status = task->exit_code;
	bpf_ringbuf_submit(s, 0);
	return 0;
}
