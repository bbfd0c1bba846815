// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * host.bpf.c - the kernel side of host states: when the threads of some processes are on the CPU, when
 * they are off it, and why. It is an object of its own, which is loaded for `why` and --host alone.
 *
 * How it works. A bit for each process number says whether any of its threads is watched: all that other
 * processes pay is the look at two bits at each switch. A watched thread has a struct host_thread in task
 * storage, or in a table on kernels that take memory for task storage in a way that is not safe under the lock
 * of a run queue. When it leaves the CPU, Python's frames are read, for its memory can be read only then. When
 * it is woken, who did it is noted. When it is on the CPU again, and was off it for long enough, the reason is read
 * from its registers, which lie at the end of its kernel stack: the system call, its descriptor or its
 * futex; and one record says all of it. All threads of the processes that the user named are watched,
 * and those that these fork; whoever ends a wait of CT_HOST_GROW_NS or more is watched from then on.
 *
 * The programs at a switch run under the lock of the run queue: they read no memory that may fault, and
 * never wake anybody. User space takes the ring by a timer.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../wire/host_wire.h"
#include "pid_ns.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PF_EXITING 0x4
#define PF_KTHREAD 0x200000
#define TASK_DEAD 0x80
#define TASK_NEW 0x1 /* as one that sleeps: what it waits for is over at once */
#define PY_THREADS 128
#define PY_AGAIN_NS 50000000ULL /* a thread that had no Python may have some */
#define BPF_F_USER_STACK 256	/* <linux/bpf.h> */

struct host_thread {
	__u64 on_ns, off_ns; /* off_ns 0: it is on the CPU */
	__u64 started_ns;    /* of the task: another one may get its number */
	__u64 begun_ns;	     /* when the process began, CLOCK_BOOTTIME */
	__u64 folded_ns;
	__u64 py_state, py_absent_ns;
	__u32 py_generation, own_tid;
	__u32 ns_tid, ns_tgid;
	__u32 folded, pad;
	struct ct_host_raw raw, sample;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct host_thread);
} host_threads SEC(".maps");

/* By thread number, where by_tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CT_HOST_THREADS);
	__type(key, __u32);
	__type(value, struct host_thread);
} host_table SEC(".maps");

/* The processes of which each thread is watched. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} host_whole SEC(".maps");

/* The processes that the user named, by their number in the tracer's namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u8);
} host_wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ct_host_python);
} host_pythons SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} host_ring SEC(".maps");

/* Before Linux 6.4 task storage takes memory from the kernel's general allocator, which may wake a thread: under the
 * lock of a run queue, or of a task, that can stop the machine. */
const volatile bool by_tid;
const volatile __u32 ns_inum;
/* cudatrace itself, and what it started to trace a program: nobody waits for it of his own will */
const volatile __u32 our_pid;
const volatile __s32 nr_futex;
const volatile __u64 stack_bytes; /* of a thread's stack in the kernel */
const volatile __u64 fd_calls[CT_HOST_SYSCALLS / 64];

__u64 watched[CT_HOST_TGIDS / 64];
__u64 host_lost, host_unwatched;		    /* records without room; threads without room */
__u32 host_have_pythons;			    /* there was one */
__u64 host_nothing[sizeof(struct host_thread) / 8]; /* zeros */

static __always_inline bool is_watched(__u32 tgid)
{
	return watched[(tgid % CT_HOST_TGIDS) / 64] >> (tgid % 64) & 1;
}

static __always_inline void watch(__u32 tgid)
{
	__sync_fetch_and_or(&watched[(tgid % CT_HOST_TGIDS) / 64], 1ULL << (tgid % 64));
}

static __always_inline void watch_whole(__u32 tgid)
{
	__u8 one = 1;

	if (!bpf_map_update_elem(&host_whole, &tgid, &one, BPF_ANY))
		watch(tgid);
	else
		__sync_fetch_and_add(&host_unwatched, 1);
}

/* The number of a pid in the tracer's namespace; 0: it is not visible there. */
static __noinline __u32 ns_number(struct pid *pid)
{
	return pid ? pid_number_in(pid, BPF_CORE_READ(pid, level), ns_inum) : 0;
}

/* The thread's number in its own namespace, as Python keeps it. */
static __noinline __u32 own_number(struct task_struct *task)
{
	return pid_own_number(task);
}

/* What is known of a thread; NULL: it is not watched. */
static __always_inline struct host_thread *thread_of(struct task_struct *task)
{
	__u32 tid = task->pid;
	struct host_thread *t;

	if (!by_tid)
		return bpf_task_storage_get(&host_threads, task, 0, 0);
	t = bpf_map_lookup_elem(&host_table, &tid);
	return t && t->started_ns == task->start_boottime ? t : NULL;
}

static __always_inline struct host_thread *make(struct task_struct *task)
{
	__u32 tid = task->pid;

	if (!by_tid)
		return bpf_task_storage_get(&host_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread_of(task) && bpf_map_update_elem(&host_table, &tid, &host_nothing, BPF_ANY))
		return NULL;
	return bpf_map_lookup_elem(&host_table, &tid);
}

static __always_inline void forget(struct task_struct *task)
{
	__u32 tid = task->pid;

	if (by_tid)
		bpf_map_delete_elem(&host_table, &tid);
}

static __always_inline struct host_thread *become(struct task_struct *task, __u64 now)
{
	struct host_thread *t = make(task);

	if (!t) {
		__sync_fetch_and_add(&host_unwatched, 1);
		return NULL;
	}
	if (!t->own_tid) {
		t->own_tid = own_number(task);
		t->ns_tid = ns_number(BPF_CORE_READ(task, thread_pid));
		t->ns_tgid = ns_number(BPF_CORE_READ(task, group_leader, thread_pid));
		t->begun_ns = BPF_CORE_READ(task, group_leader, start_boottime);
		t->started_ns = task->start_boottime;
		t->on_ns = now;
	}
	return t;
}

/* The thread's own, if it is watched. */
static __always_inline struct host_thread *member(struct task_struct *task, __u64 now)
{
	struct host_thread *t = thread_of(task);
	__u32 tgid = task->tgid;

	if (t || !bpf_map_lookup_elem(&host_whole, &tgid))
		return t;
	return become(task, now);
}

/* ---- Python ---- */

static __always_inline __u64 user_word(__u64 at)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)at);
	return word;
}

static __always_inline __u32 native_tid(const struct ct_python *p, __u64 state)
{
	__u64 word = user_word(state + p->thread_native_id);

	return p->pthread_tid ? user_word(word + p->pthread_tid) : word;
}

static __noinline __u64 find_state(const struct ct_python *p, __u32 tid)
{
	__u64 state = user_word(p->runtime + p->runtime_interpreters_head);

	state = state ? user_word(state + p->interp_threads_head) : 0;
	for (int i = 0; i < PY_THREADS && state; i++) {
		if (native_tid(p, state) == tid)
			return state;
		state = user_word(state + p->thread_next);
	}
	return 0;
}

static __always_inline __u64 state_of(struct host_thread *t, const struct ct_python *p, __u64 now)
{
	if (t->py_generation == p->generation) {
		if (t->py_state && native_tid(p, t->py_state) == t->own_tid)
			return t->py_state;
		if (!t->py_state && now - t->py_absent_ns < PY_AGAIN_NS)
			return 0;
	}
	t->py_generation = p->generation;
	t->py_state = find_state(p, t->own_tid);
	t->py_absent_ns = now;
	return t->py_state;
}

/* The frames of the thread that runs now, innermost first, without the code objects' checks: user space
 * reads these. */
static __noinline int py_frames(struct ct_host_raw *r, const struct ct_python *p, __u64 state)
{
	__u8 raw[CT_PY_FRAME_BYTES] __attribute__((aligned(8)));
	__u64 frame = user_word(state + p->thread_frame);
	__u32 n = 0;

	if (p->cframe_frame != CT_PY_NONE)
		frame = user_word(frame + p->cframe_frame);
	for (int i = 0; i < CT_HOST_FRAMES + 4 && frame; i++) {
		__u32 code_at = p->frame_code, prev_at = p->frame_previous,
		      instr_at = p->frame_instr, owner_at = p->frame_owner;
		__u64 code, instr;

		if (bpf_probe_read_user(raw, sizeof(raw), (void *)(frame + p->frame_at)))
			break;
		if (code_at > CT_PY_FRAME_BYTES - 8 || prev_at > CT_PY_FRAME_BYTES - 8 ||
		    instr_at > CT_PY_FRAME_BYTES - 8 || owner_at > CT_PY_FRAME_BYTES - 1)
			break;
		frame = *(__u64 *)(raw + (prev_at & ~7U));
		if (p->owner_shim != CT_PY_NONE && raw[owner_at] >= p->owner_shim)
			continue;
		code = *(__u64 *)(raw + (code_at & ~7U)) & ~7ULL;
		instr = *(__u64 *)(raw + (instr_at & ~7U));
		if (n >= CT_HOST_FRAMES)
			break;
		r->frames[n].code = code;
		r->frames[n].check = 0;
		r->frames[n].instr = p->code_instrs == CT_PY_NONE
					     ? (__u32)instr * 2
					     : (__u32)(instr - code - p->code_instrs);
		r->frames[n].flags = 0;
		n++;
	}
	r->nframes = n;
	return 0;
}

static __always_inline void look_at_python(struct host_thread *t, struct ct_host_raw *r, __u32 tgid,
					   __u64 now)
{
	const struct ct_host_python *p;
	__u64 state, holder;

	if (!host_have_pythons)
		return;
	p = bpf_map_lookup_elem(&host_pythons, &tgid);
	if (!p)
		return;
	if (p->gc && (user_word(p->gc) & 0xff))
		r->flags |= CT_HOST_F_GC;
	if (r->state && r->nr == nr_futex && p->gil_from && r->arg >= p->gil_from &&
	    r->arg < p->gil_until) {
		r->flags |= CT_HOST_F_GIL;
		/* the holder's number is one of its own namespace: elsewhere another thread has it */
		holder = p->gil_holder && t->own_tid == r->tid ? user_word(p->gil_holder) : 0;
		if (holder && (__u32)user_word(p->gil_locked) == 1)
			r->holder = native_tid(&p->py, holder);
	}
	state = state_of(t, &p->py, now);
	if (state)
		py_frames(r, &p->py, state);
}

/* ---- why a thread is off the CPU ---- */

static __always_inline void registers(struct task_struct *task, struct ct_host_raw *r)
{
	struct pt_regs *regs;

	r->nr = -1;
	r->arg = 0;
	if (task->flags & PF_KTHREAD)
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	r->nr = regs->orig_ax;
	r->arg = regs->di;
#else
	r->nr = BPF_CORE_READ(regs, syscallno);
	r->arg = BPF_CORE_READ(regs, orig_x0);
#endif
}

/* Is the task inside a system call, so that it does what it does itself? */
static __always_inline bool in_call(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	return (long)BPF_CORE_READ(regs, orig_ax) >= 0;
#else
	return BPF_CORE_READ(regs, syscallno) >= 0;
#endif
}

static __noinline int name_file(struct task_struct *task, struct ct_host_raw *r)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;
	__u32 fd = r->arg;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), &files[fd]);
	if (!file)
		return 0;
	r->ino = BPF_CORE_READ(file, f_inode, i_ino);
	r->mode = BPF_CORE_READ(file, f_inode, i_mode);
	r->magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
	bpf_probe_read_kernel_str(r->name, sizeof(r->name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return 0;
}

static __always_inline bool is_throttled(struct task_struct *task)
{
	struct task_struct___throttled *new = (void *)task;
	struct task_struct___group *old = (void *)task;

	if (bpf_core_field_exists(new->throttled))
		return BPF_CORE_READ(new, throttled);
	if (bpf_core_field_exists(old->se.cfs_rq) &&
	    bpf_core_field_exists(((struct cfs_rq___throttled *)0)->throttle_count))
		return BPF_CORE_READ(old, se.cfs_rq, throttle_count) > 0;
	return false;
}

static __always_inline void send(struct ct_host_raw *r)
{
	__u32 n = r->nframes, size;

	if (n > CT_HOST_FRAMES)
		n = CT_HOST_FRAMES;
	size = __builtin_offsetof(struct ct_host_raw, frames) + n * sizeof(r->frames[0]);
	if (bpf_ringbuf_output(&host_ring, r, size, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&host_lost, 1);
}

/* What was not seen of a wait yet. */
static __always_inline void clear(struct ct_host_raw *r)
{
	r->what = CT_HOST_RAW_OFF;
	r->nframes = r->nips = 0;
	r->wake_ns = r->end_ns = 0;
	r->waker = r->waker_tgid = r->holder = 0;
	r->wakes = CT_HOST_BY_NOBODY;
	r->flags = 0;
	r->other[0] = 0;
}

/* What is known of the thread itself, and why it is off the CPU: it may be another one than that which runs. */
static __always_inline void describe(struct host_thread *t, struct task_struct *task,
				     struct ct_host_raw *r, __u32 state)
{
	r->tid = task->pid;
	r->tgid = task->tgid;
	r->ns_tid = t->ns_tid;
	r->ns_tgid = t->ns_tgid;
	r->begun_ns = t->begun_ns;
	r->state = state > 0xff ? 0xff : state;
	r->ino = 0;
	r->magic = 0;
	r->mode = 0;
	r->name[0] = 0;
	bpf_probe_read_kernel(r->comm, sizeof(r->comm), task->comm);
	registers(task, r);
	if (state && r->nr >= 0 && r->nr < CT_HOST_SYSCALLS &&
	    fd_calls[(r->nr & (CT_HOST_SYSCALLS - 1)) / 64] >> (r->nr & 63) & 1)
		name_file(task, r);
}

static __always_inline void leaves(struct task_struct *task, struct task_struct *next, bool preempt,
				   __u32 state, __u64 now)
{
	struct host_thread *t = member(task, now);
	struct ct_host_raw *r;

	if (!t)
		return;
	r = &t->raw;
	state = preempt ? 0 : state;
	clear(r);
	r->state = state > 0xff ? 0xff : state;
	r->off_ns = now;
	if (!state) {
		r->flags |= CT_HOST_F_PREEMPTED;
		r->waker = next->pid;
		r->waker_tgid = next->tgid;
		bpf_probe_read_kernel(r->other, sizeof(r->other), next->comm);
		if (is_throttled(task))
			r->flags |= CT_HOST_F_THROTTLED;
	}
	if (state & TASK_DEAD) {
		describe(t, task, r, state);
		r->what = CT_HOST_RAW_EXIT;
		r->on_ns = t->on_ns;
		r->end_ns = now;
		r->folded = t->folded;
		r->folded_ns = t->folded_ns;
		send(r);
		forget(task);
		return;
	}
	if (state && host_have_pythons && !(task->flags & (PF_EXITING | PF_KTHREAD))) {
		registers(task, r);
		look_at_python(t, r, task->tgid, now);
	}
	t->off_ns = now;
}

static __always_inline void comes(struct task_struct *task, __u64 now)
{
	struct host_thread *t = thread_of(task);
	struct ct_host_raw *r;

	if (!t || !t->off_ns)
		return;
	r = &t->raw;
	if (now - t->off_ns < CT_HOST_FOLD_NS) {
		t->folded_ns += now - t->off_ns;
		t->folded++;
		t->off_ns = 0;
		return;
	}
	describe(t, task, r, r->state);
	r->on_ns = t->on_ns;
	r->end_ns = now;
	r->folded = t->folded;
	r->folded_ns = t->folded_ns;
	send(r);
	t->on_ns = now;
	t->folded_ns = 0;
	t->folded = 0;
	t->off_ns = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(ct_host_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	bool out = is_watched(prev->tgid), in = is_watched(next->tgid);
	__u64 now;

	if (!out && !in)
		return 0;
	now = bpf_ktime_get_ns();
	if (out)
		leaves(prev, next, preempt, state, now);
	if (in)
		comes(next, now);
	return 0;
}

/* A program that we started is our child, too, and is watched from the start. */
static __always_inline bool is_ours(struct task_struct *task)
{
	__u32 tgid = task->tgid;

	return tgid == our_pid || ((__u32)BPF_CORE_READ(task, real_parent, tgid) == our_pid &&
				   !bpf_map_lookup_elem(&host_whole, &tgid));
}

SEC("tp_btf/sched_waking")
int BPF_PROG(ct_host_waking, struct task_struct *task)
{
	struct host_thread *t;
	struct task_struct *by;
	struct ct_host_raw *r;
	__u64 now, at, stack;

	if (!is_watched(task->tgid))
		return 0;
	t = thread_of(task);
	if (!t || !t->off_ns || t->raw.wake_ns)
		return 0;
	r = &t->raw;
	now = bpf_ktime_get_ns();
	by = bpf_get_current_task_btf();
	r->wake_ns = now;
	/* The context lies on the stack on which the waking runs: outside that of the task it is an
	 * interrupt's. An interrupt of user code runs on the task's own one: then the task is in no
	 * call. */
	at = (__u64)ctx;
	stack = (__u64)by->stack;
	if (at < stack || at >= stack + stack_bytes) {
		r->wakes = CT_HOST_BY_INTERRUPT;
		return 0;
	}
	if (by->flags & PF_KTHREAD) {
		r->wakes = CT_HOST_BY_KERNEL;
		bpf_probe_read_kernel(r->other, sizeof(r->other), by->comm);
		return 0;
	}
	/* one that ends wakes its parent, in a call or by a fault */
	if (!(by->flags & PF_EXITING) && !in_call(by)) {
		r->wakes = CT_HOST_BY_INTERRUPT;
		return 0;
	}
	r->wakes = CT_HOST_BY_THREAD;
	r->waker = by->pid;
	r->waker_tgid = by->tgid;
	bpf_probe_read_kernel(r->other, sizeof(r->other), by->comm);
	if (now - t->off_ns >= CT_HOST_GROW_NS && !is_ours(by) && !thread_of(by) && become(by, now))
		watch(by->tgid);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(ct_host_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 from = parent->tgid, to = child->tgid;
	__u64 now = bpf_ktime_get_ns();
	struct ct_host_python *p;
	struct host_thread *t;

	if (!is_watched(from) || !bpf_map_lookup_elem(&host_whole, &from))
		return 0;
	if (from != to)
		watch_whole(to);
	t = become(child, now);
	if (t && !t->off_ns) {
		/* it was made, and waits for a CPU */
		clear(&t->raw);
		t->raw.state = TASK_NEW;
		t->raw.wakes = CT_HOST_BY_THREAD;
		t->raw.waker = parent->pid;
		t->raw.waker_tgid = from;
		t->raw.off_ns = t->raw.wake_ns = now;
		t->off_ns = now;
	}
	if (from == to)
		return 0;
	p = bpf_map_lookup_elem(&host_pythons, &from);
	if (p)
		bpf_map_update_elem(&host_pythons, &to, p, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(ct_host_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	__u32 tgid = task->tgid, old = (__u32)old_pid;
	struct host_thread *t;

	if (!is_watched(tgid))
		return 0;
	bpf_map_delete_elem(&host_pythons, &tgid);
	/* a thread that was not the first has got the number of that one */
	if (by_tid && old_pid != task->pid)
		bpf_map_delete_elem(&host_table, &old);
	t = member(task, bpf_ktime_get_ns());
	if (!t)
		return 0;
	clear(&t->sample);
	describe(t, task, &t->sample, 0);
	t->sample.what = CT_HOST_RAW_EXEC;
	t->sample.on_ns = t->sample.off_ns = t->sample.end_ns = bpf_ktime_get_ns();
	send(&t->sample);
	return 0;
}

/* What is known of a process goes with its last thread: its number may be another one's soon, and there is room for
 * so many. Its bit stays, for the last switch of its threads. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(ct_host_gone, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (!is_watched(tgid) || BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	bpf_map_delete_elem(&host_whole, &tgid);
	bpf_map_delete_elem(&host_pythons, &tgid);
	return 0;
}

/* Where a thread is that is on the CPU: by a software clock of its own, in its own context. */
SEC("perf_event")
int ct_host_sample(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct host_thread *t;
	struct ct_host_raw *r;
	__u64 now = bpf_ktime_get_ns();
	long n;

	if (!is_watched(task->tgid))
		return 0;
	t = thread_of(task);
	if (!t)
		return 0;
	r = &t->sample;
	clear(r);
	describe(t, task, r, 0);
	r->what = CT_HOST_RAW_SAMPLE;
	r->on_ns = r->off_ns = r->end_ns = now;
	if ((long)PT_REGS_IP(ctx) < 0)
		r->flags |= CT_HOST_F_KERNEL;
	if (!(task->flags & PF_EXITING))
		look_at_python(t, r, task->tgid, now);
	if (!r->nframes) {
		n = bpf_get_stack(ctx, r->ips, sizeof(r->ips), BPF_F_USER_STACK);
		r->nips = n > 0 ? (__u64)n / 8 : 0;
	}
	send(r);
	return 0;
}

/* ---- what user space asks at the begin and at the end ---- */

static __always_inline __u32 state_now(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(old, state);
}

/* Watches the threads of the processes that are wanted, and of their children. A thread that waits already
 * has waited from now on. */
SEC("iter/task")
int ct_host_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 now = bpf_ktime_get_ns();
	struct host_thread *t;
	__u32 number, parent, tgid, state;

	if (!task || BPF_CORE_READ(task, flags) & PF_KTHREAD ||
	    BPF_CORE_READ(task, signal, live.counter) <= 0)
		return 0;
	tgid = task->tgid;
	number = ns_number(BPF_CORE_READ(task, group_leader, thread_pid));
	parent = BPF_CORE_READ(task, group_leader, real_parent, tgid);
	if (!(number && bpf_map_lookup_elem(&host_wanted, &number)) &&
	    !bpf_map_lookup_elem(&host_whole, &parent) && !bpf_map_lookup_elem(&host_whole, &tgid))
		return 0;
	watch_whole(tgid);
	/* one that has ended leaves no CPU any more, and would never be forgotten */
	if (task->exit_state)
		return 0;
	t = become(task, now);
	if (!t)
		return 0;
	state = state_now(task);
	clear(&t->sample);
	describe(t, task, &t->sample, state);
	bpf_seq_write(ctx->meta->seq, &t->sample, sizeof(t->sample));
	if (!state || t->off_ns)
		return 0;
	__builtin_memcpy(&t->raw, &t->sample, sizeof(t->raw));
	t->raw.off_ns = now;
	t->off_ns = now;
	return 0;
}

/* Where each watched thread is. */
SEC("iter/task")
int ct_host_end(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 now = bpf_ktime_get_ns();
	struct ct_host_raw *r;
	struct host_thread *t;

	if (!task)
		return 0;
	t = thread_of(task);
	if (!t)
		return 0;
	r = &t->raw;
	if (!t->off_ns) {
		r = &t->sample;
		clear(r);
		describe(t, task, r, 0);
		r->off_ns = now;
	} else
		describe(t, task, r, r->state);
	r->what = CT_HOST_RAW_NOW;
	r->on_ns = t->on_ns;
	r->end_ns = now;
	r->folded = t->folded;
	r->folded_ns = t->folded_ns;
	bpf_seq_write(ctx->meta->seq, r, sizeof(*r));
	return 0;
}
