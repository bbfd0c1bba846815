/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * python.bpf.h - the Python frames of the current thread at the moment of a call.
 *
 * Part of cudatrace.bpf.c, which includes it below its section "sending": it uses config (python),
 * send(), COUNT() and BOUND(). python_stack() is what the call's program calls, before it sends the
 * CT_USER_STACK; python_fork() and python_gone() keep the map `pythons` true while processes come
 * and go; user space fills it (user/source/bpf/pythons.c).
 *
 * Programs may be preempted, and other threads of the program run: what is gathered lies in task
 * storage, and code objects, which are large and rare, in one of a few buffers that a program
 * takes for itself. All reads come before the ring is touched. The walk
 * itself is in python_walk.h.
 */
#define PY_SENT_MAX 32768 /* code objects that are known to have been sent */
#define PY_BUFFERS 8
#define PY_RECENT 64 /* a power of two */

/* The processes that have an interpreter: tgid -> the layout of its data. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct ct_python);
} pythons SEC(".maps");

static __always_inline long py_read(void *dst, __u32 len, __u64 addr)
{
	return bpf_probe_read_user(dst, len, (void *)addr);
}

static __always_inline __u64 py_now(void)
{
	return bpf_ktime_get_ns();
}

static __always_inline __u32 py_pid(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

static __always_inline __u32 py_tid(void)
{
	return bpf_get_current_pid_tgid();
}

/* code objects (code ^ check) of which this thread knows that they were sent: the next call has
 * most of them too */
#define PY_THREAD_OWN __u64 recent[PY_RECENT];
#define PY_LOOP(n, fn, ctx) bpf_loop(n, fn, ctx, 0)
#include "../capture/python_walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct py_thread);
} py_threads SEC(".maps");

/* The code objects that were sent. An evicted one is sent again. */
struct py_sent {
	__u32 tgid, generation;
	__u64 code, check;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PY_SENT_MAX);
	__type(key, struct py_sent);
	__type(value, __u32);
} py_sent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PY_BUFFERS);
	__type(key, __u32);
	__type(value, struct py_buffer);
} py_buffers SEC(".maps");

static __always_inline long py_send(struct py_thread *t, struct ct_hdr *h, __u32 size)
{
	return send(h, size, false, BPF_RB_NO_WAKEUP);
}

static __always_inline bool py_is_sent(struct py_thread *t, const struct ct_python *p, __u64 code,
				       __u64 check)
{
	struct py_sent key = {
		.tgid = py_pid(), .generation = p->generation, .code = code, .check = check
	};

	if (t->recent[(code >> 4) % PY_RECENT] == (code ^ check))
		return true;
	if (!bpf_map_lookup_elem(&py_sent, &key))
		return false;
	t->recent[(code >> 4) % PY_RECENT] = code ^ check;
	return true;
}

static __always_inline void py_set_sent(struct py_thread *t, const struct ct_python *p, __u64 code,
					__u64 check)
{
	struct py_sent key = {
		.tgid = py_pid(), .generation = p->generation, .code = code, .check = check
	};
	__u32 one = 1;

	bpf_map_update_elem(&py_sent, &key, &one, BPF_ANY);
}

static __always_inline struct py_buffer *py_buffer_take(__u32 i)
{
	__u32 which = (bpf_get_smp_processor_id() + i) % PY_BUFFERS;
	struct py_buffer *b = bpf_map_lookup_elem(&py_buffers, &which);

	return b && !__sync_val_compare_and_swap(&b->busy, 0, 1) ? b : NULL;
}

static __always_inline void py_buffer_give(struct py_buffer *b)
{
	__sync_lock_test_and_set(&b->busy, 0);
}

static __always_inline bool py_is_sure(const struct py_thread *t)
{
	return false;
}

static __always_inline void py_not_sure(struct py_thread *t)
{
}

static __always_inline void py_lost(void)
{
	COUNT(lost[CT_LOSS_STACK]);
}

static __always_inline __u64 py_own_tid(void)
{
	return pid_own_number(bpf_get_current_task_btf());
}

/* ---- what cudatrace.bpf.c calls ---- */

/* Sends the Python frames of the current thread, for its call that began at start_ns. Returns 1 if
 * there were any. */
static __noinline int python_stack(__u64 start_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	const struct ct_python *p = bpf_map_lookup_elem(&pythons, &tgid);
	struct py_thread *t;

	if (!p)
		return 0;
	t = bpf_task_storage_get(&py_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		COUNT(lost[CT_LOSS_STACK]);
		return 0;
	}
	/* the process's first call, or its first after exec */
	if (t->generation != p->generation) {
		t->generation = p->generation;
		t->own_tid = py_own_tid();
		t->state = t->absent_ns = 0;
		__builtin_memset(t->recent, 0, sizeof(t->recent));
	}
	t->start_ns = t->end_ns = start_ns;
	return py_walk_thread(t, p);
}

/* A child has its parent's memory, and so its interpreter. */
static __always_inline void python_fork(__u32 parent_tgid, __u32 child_tgid)
{
	struct ct_python *p = bpf_map_lookup_elem(&pythons, &parent_tgid);

	if (p)
		bpf_map_update_elem(&pythons, &child_tgid, p, BPF_ANY);
}

/* Called when a process has ended or has executed another program. */
static __always_inline void python_gone(__u32 tgid)
{
	bpf_map_delete_elem(&pythons, &tgid);
}
