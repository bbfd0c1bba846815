// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * cudatrace.bpf.c - the kernel side: captures calls at entry, pairs them with their return, and sends one record each.
 *
 * How it works. Every probed function runs the same two handlers. What to capture of a function is data: the attach
 * cookie names a row, specs[] says how many argument words and which pieces of user memory. At entry the record is built
 * in a frame of the thread's in-flight stack (task storage); at return it gets its result and outputs and goes to the
 * ring buffer in one piece. Frames are told apart by the stack pointer: at entry it points to the return address, and at
 * return it is back where it was, tail calls included.
 *
 * User memory is read before the ring is touched, first without faulting, then by bpf_copy_from_user where the kernel
 * lets uprobe programs sleep: strings in .rodata that nobody touched yet are not resident.
 *
 * This file knows no function by name and no file.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "cudatrace.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SIGURG 23
#define VM_EXEC 0x4
#define MAX_PID_NS_LEVEL 32 /* <linux/pid_namespace.h> */
#define NOT_READY 600 /* cudaErrorNotReady, CUDA_ERROR_NOT_READY */
#define WAKE_EVERY 1024 /* records of one thread; the reader's timer sees to the rest */

const volatile struct ct_config config;
const volatile struct ct_spec specs[CT_MAX_FUNCS];
bool muted[CT_MAX_FUNCS]; /* no longer wanted: their probes are about to go */
bool ready; /* set once everything is attached, so that all functions begin at the same moment */

struct frame {
	__u64 sp, ip, cookie;
	__u32 len; /* bytes used of data[] */
	__u8 spec_flags;
	__u8 pad[3];
	struct ct_call rec;
	__u64 data[(CT_DATA_MAX + CT_READ_MAX) / 8]; /* continues rec.words; the slack is for the verifier */
};

struct thread {
	__u64 id; /* as bpf_get_current_pid_tgid() has it; 0: the process filter has not let it pass (yet) */
	__u32 depth;
	__u32 sent; /* records; wraps */
	bool announced; /* its CT_PROCESS record was sent */
	struct frame frames[CT_MAX_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} ring SEC(".maps");

/* The traced processes: tgid -> 1. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} pids SEC(".maps");

/* Processes whose CT_PROCESS was sent: tgid -> start time. An evicted one is announced again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ct_counters);
} counters SEC(".maps");

/* Kernels without cookies: the function at a place in a file, filled by user space as files are attached... */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct ct_where);
	__type(value, __u64);
} by_offset SEC(".maps");

/* ...and the answers for the addresses seen so far, made stale by a new `gen` whenever a mapping may have changed. */
struct at_address {
	__u32 tgid, gen;
	__u64 ip;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct at_address);
	__type(value, __u64);
} by_address SEC(".maps");
__u32 address_gen;

static __always_inline struct ct_counters *cpu_counters(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

/* Keeps the compiler from reasoning away, or folding into something the verifier cannot follow, an upper bound. */
#define BOUND(x, max)                                                                                                  \
	do {                                                                                                           \
		barrier_var(x);                                                                                        \
		if ((x) > (max))                                                                                       \
			(x) = (max);                                                                                   \
	} while (0)

/* Programs run with migration off but may be preempted: hence the atomic. */
#define COUNT(field)                                                                                                   \
	do {                                                                                                           \
		struct ct_counters *_c = cpu_counters();                                                               \
		if (_c)                                                                                                \
			__sync_fetch_and_add(&_c->field, 1);                                                           \
	} while (0)

/* ---- sending ---------------------------------------------------------------------------------------- */

__u64 lost_unsent; /* records that found no room and that no record's hdr.lost has told of yet */

/* The loss since the last record, to ride in the next one's header. Read for every record, written only when something is
 * lost. */
static __always_inline __u16 take_lost(void)
{
	__u64 unsent = lost_unsent;

	if (!unsent)
		return 0;
	unsent = __sync_lock_test_and_set(&lost_unsent, 0);
	if (unsent > 0xffff) {
		__sync_fetch_and_add(&lost_unsent, unsent - 0xffff);
		unsent = 0xffff;
	}
	return unsent;
}

static __always_inline long send(struct ct_hdr *h, __u32 size, bool call, __u64 flags)
{
	long err;

	h->size = size;
	h->lost = take_lost();
	err = bpf_ringbuf_output(&ring, h, size, flags);
	if (err) {
		if (h->lost || call)
			__sync_fetch_and_add(&lost_unsent, h->lost + call);
		if (call)
			COUNT(lost[CT_LOSS_RING]);
	}
	return err;
}

static __always_inline void send_call(struct thread *t, struct frame *f)
{
	__u32 len = f->len;

	if (len > CT_DATA_MAX || (!(f->spec_flags & (CT_S_SHOWN | CT_S_ALWAYS))))
		return; /* there only so that the calls inside it fold */
	send(&f->rec.h, sizeof(f->rec) + len, true, ++t->sent % WAKE_EVERY ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
}

/* A call that will not return. */
static __always_inline void send_unfinished(struct thread *t, struct frame *f, __u64 now)
{
	f->rec.h.flags |= CT_F_UNFINISHED;
	f->rec.h.end_ns = now;
	COUNT(unfinished);
	send_call(t, f);
}

/* ---- processes -------------------------------------------------------------------------------------- */

/* The process's number in the tracer's pid namespace; 0 when it has none there. */
static __always_inline __u32 pid_in_ns(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid up = {};
	__u32 i, level;

	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	for (i = 0; i < MAX_PID_NS_LEVEL; i++) {
		if (i > level)
			break;
		if (bpf_core_read(&up, sizeof(up), &pid->numbers[i]))
			break;
		if (BPF_CORE_READ(up.ns, ns.inum) == config.ns_inum)
			return up.nr;
	}
	return 0;
}

static __always_inline long send_process(struct task_struct *task, __u16 kind)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct ct_process p = {};

	p.h.kind = kind;
	p.h.pid = BPF_CORE_READ(task, tgid);
	p.h.tid = BPF_CORE_READ(task, pid);
	p.h.start_ns = p.h.end_ns = bpf_ktime_get_ns();
	p.start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
	p.cgroup_id = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
	p.uid = BPF_CORE_READ(leader, cred, uid.val);
	p.gid = BPF_CORE_READ(leader, cred, gid.val);
	p.ns_pid = pid_in_ns(leader);
	p.ppid = BPF_CORE_READ(leader, real_parent, tgid);
	BPF_CORE_READ_STR_INTO(&p.comm, leader, comm);
	return send(&p.h, sizeof(p), false, BPF_RB_NO_WAKEUP);
}

/* Sends CT_PROCESS at the first call of a process. Marked as sent only when it was. */
static __noinline int announce(struct thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 start = BPF_CORE_READ(task, group_leader, start_boottime);
	__u32 tgid = BPF_CORE_READ(task, tgid);
	__u64 *sent;

	if (!t)
		return 0;
	sent = bpf_map_lookup_elem(&procs, &tgid);
	if (!sent || *sent != start) {
		if (send_process(task, CT_PROCESS))
			return 0;
		bpf_map_update_elem(&procs, &tgid, &start, BPF_ANY);
	}
	t->announced = true;
	return 0;
}

/* Is the current task below the wanted cgroup? Asked once for each thread. */
static __noinline int in_cgroup(void)
{
	__u64 id;
	int level;

	for (level = 0; level < 32; level++) {
		id = bpf_get_current_ancestor_cgroup_id(level);
		if (!id)
			break;
		if (id == config.cgroup_id)
			return 1;
	}
	return 0;
}

/* The thread's in-flight stack, or NULL when this process is not traced (no storage is made for it). */
static __always_inline struct thread *thread_get(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);
	__u32 tgid;

	if (t && t->id)
		return t;
	if (config.filter_pids) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		if (!bpf_map_lookup_elem(&pids, &tgid))
			return NULL;
	}
	if (config.cgroup_id && !in_cgroup())
		return NULL;
	if (!t)
		t = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		COUNT(lost[CT_LOSS_STORAGE]);
	else
		t->id = bpf_get_current_pid_tgid();
	return t;
}

/* ---- reading the target's memory ---------------------------------------------------------------------- */

static __always_inline long read_user(void *dst, __u32 len, __u64 addr)
{
	long err = bpf_probe_read_user(dst, len, (void *)addr);

	if (err && config.sleepable)
		err = bpf_copy_from_user(dst, len, (void *)addr);
	return err;
}

static __always_inline long read_user_str(void *dst, __u32 len, __u64 addr)
{
	long n = bpf_probe_read_user_str(dst, len, (void *)addr);
	char c;

	if (n >= 0 || !config.sleepable)
		return n;
	/* Fault the string's first page in, and the next one should it reach there; then try again. */
	if (bpf_copy_from_user(&c, 1, (void *)addr))
		return n;
	n = bpf_probe_read_user_str(dst, len, (void *)addr);
	if (n >= 0)
		return n;
	if (bpf_copy_from_user(&c, 1, (void *)((addr | 4095) + 1)))
		return n;
	return bpf_probe_read_user_str(dst, len, (void *)addr);
}

/* A word that a read refers to: an argument, or a field of an earlier read. start[] holds where each read's bytes begin
 * in data[], ~0 when it failed. */
static __always_inline bool read_source(struct frame *f, const __u16 *start, __u8 from, __u16 off, __u64 *val)
{
	__u32 at;

	if (from & CT_FROM_READ) {
		at = start[from & 7];
		if (at == 0xffff)
			return false;
		at += off;
	} else {
		at = (from & (CT_MAX_WORDS - 1)) * 8;
	}
	if (at > CT_DATA_MAX)
		return false;
	bpf_probe_read_kernel(val, 8, (void *)f->data + at);
	return true;
}

/* Carries out the reads [first, end) of a function's spec, appending to the frame. */
static __noinline int do_reads(struct frame *f, __u32 func, __u32 when)
{
	__u16 start[8] = { 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff };
	const volatile struct ct_spec *spec;
	__u32 i, len, off, nreads, bytes;
	__u64 ptr, count;
	long n;

	if (!f || func >= CT_MAX_FUNCS)
		return 0;
	spec = &specs[func];
	nreads = spec->nreads;
	for (i = 0; i < CT_MAX_READS; i++) {
		const volatile struct ct_read *r = &spec->reads[i];

		if (i >= nreads)
			break;
		if (r->when != when)
			continue;
		off = f->len;
		len = r->len;
		if (len > CT_READ_MAX || off > CT_DATA_MAX - 8)
			break;
		if (!read_source(f, start, r->from, r->off, &ptr) || !ptr)
			continue;
		if (r->kind == CT_READ_BYTES) {
			if (!len || off + len > CT_DATA_MAX)
				break;
			if (read_user((void *)f->data + off, len, ptr))
				continue;
			start[i & 7] = off;
			f->len = off + ((len + 7) & ~7U);
		} else if (r->kind == CT_READ_STR) {
			if (!len || off + 8 + len > CT_DATA_MAX)
				break;
			n = read_user_str((void *)f->data + off + 8, len, ptr);
			if (n <= 0 || n > CT_READ_MAX)
				continue;
			count = n;
			if (n == len)
				count |= CT_STR_CUT;
			*(__u64 *)((void *)f->data + (off & ~7U)) = count;
			f->len = off + 8 + ((n + 7) & ~7U);
		} else {
			if (!read_source(f, start, r->count_from, r->count_off, &count))
				continue;
			count = (__u32)count;
			bytes = len;
			if (count * r->elem < len)
				bytes = count * r->elem;
			if (off + 8 + len > CT_DATA_MAX || bytes > CT_READ_MAX)
				break;
			if (!bytes || read_user((void *)f->data + off + 8, bytes, ptr))
				continue;
			count = count * r->elem > bytes ? bytes | CT_STR_CUT : bytes;
			*(__u64 *)((void *)f->data + (off & ~7U)) = count;
			f->len = off + 8 + ((bytes + 7) & ~7U);
		}
		f->rec.got |= 1U << i;
	}
	return 0;
}

/* ---- the in-flight stack ------------------------------------------------------------------------------ */

#if defined(__TARGET_ARCH_x86)
#define REG_WORDS 6
#define RETURN_ADDRESS(ctx, sp, out) bpf_probe_read_user(out, 8, (void *)(sp))
#define ENTRY_SP(ctx) PT_REGS_SP(ctx)
#define RETURN_SP(ctx) (PT_REGS_SP(ctx) - 8) /* ret has popped the return address */
#define STACK_ARGS(sp) ((sp) + 8)
#else
#define REG_WORDS 8
#define RETURN_ADDRESS(ctx, sp, out) (*(out) = PT_REGS_RET(ctx), 0)
#define ENTRY_SP(ctx) PT_REGS_SP(ctx)
#define RETURN_SP(ctx) PT_REGS_SP(ctx)
#define STACK_ARGS(sp) (sp)
#endif

/* Sends and drops the frames that lie below sp: their functions were left without a return (longjmp, exception). */
static __noinline int sweep(struct thread *t, __u64 sp)
{
	__u64 now = bpf_ktime_get_ns();
	struct frame *f;
	__u32 i, d;

	if (!t)
		return 0;
	for (i = 0; i < CT_MAX_FRAMES; i++) {
		d = t->depth - 1;
		if (d >= CT_MAX_FRAMES)
			break;
		f = &t->frames[d];
		if (f->sp >= sp)
			break;
		t->depth = d;
		send_unfinished(t, f, now);
	}
	return 0;
}

static long has_no_file(struct task_struct *task, struct vm_area_struct *vma, __u32 *no_file)
{
	*no_file = !vma->vm_file;
	return 0;
}

/*
 * An entry at the stack pointer of the call in flight, in another function: a tail call, or a new call from where the
 * first one was left by longjmp? In a tail call the return address is the pending return probe's trampoline, which lies
 * in a mapping of no file; a new call's lies in the caller's code.
 */
static __noinline int is_tail_call(__u64 return_address)
{
	__u32 no_file = 0;

	if (bpf_find_vma(bpf_get_current_task_btf(), return_address, has_no_file, &no_file, 0))
		return 1;
	return no_file;
}

static __always_inline void copy_words(struct pt_regs *ctx, struct frame *f, __u32 nwords, __u64 sp)
{
	f->data[0] = PT_REGS_PARM1(ctx);
	f->data[1] = PT_REGS_PARM2(ctx);
	f->data[2] = PT_REGS_PARM3(ctx);
	f->data[3] = PT_REGS_PARM4(ctx);
	f->data[4] = PT_REGS_PARM5(ctx);
#if defined(__TARGET_ARCH_x86)
	f->data[5] = ctx->r9;
#else
	f->data[5] = ctx->regs[5];
	f->data[6] = ctx->regs[6];
	f->data[7] = ctx->regs[7];
#endif
	if (nwords > REG_WORDS) {
		__u64 n = (nwords - REG_WORDS) * 8;

		BOUND(n, (CT_MAX_WORDS - REG_WORDS) * 8);
		/* The stack is resident: it has just been written. */
		if (bpf_probe_read_user(&f->data[REG_WORDS], n, (void *)STACK_ARGS(sp)))
			__builtin_memset(&f->data[REG_WORDS], 0, (CT_MAX_WORDS - REG_WORDS) * 8);
	}
	f->len = nwords * 8;
}

/* Returns 0 when the return is wanted, 1 when not (a session program's answer). */
static __always_inline int enter(struct pt_regs *ctx, __u64 cookie)
{
	__u32 func = CT_COOKIE_FUNC(cookie), d, depth = 0, nwords;
	const volatile struct ct_spec *spec;
	__u64 sp = ENTRY_SP(ctx), ip = PT_REGS_IP(ctx);
	struct frame *f, *top;
	struct thread *t;
	__u8 flags;

	if (!ready || func >= CT_MAX_FUNCS)
		return 1;
	spec = &specs[func];
	flags = spec->flags;
	t = thread_get();
	if (!t)
		return 1;
	d = t->depth;
	if (d) {
		if (d > CT_MAX_FRAMES)
			return 1;
		top = &t->frames[(d - 1) & (CT_MAX_FRAMES - 1)];
		if (top->sp < sp) {
			sweep(t, sp);
			d = t->depth;
			top = &t->frames[(d - 1) & (CT_MAX_FRAMES - 1)];
		}
	}
	if (d) {
		if (top->sp == sp) {
			__u64 to = 0;

			/*
			 * While a file's links are being replaced both are on the same function, and the newer
			 * one's program runs first (consumer_add() in kernel/events/uprobes.c adds at the head).
			 * An older one's frame under a newer entry is of a call whose return went with its link.
			 */
			if (top->ip == ip && (top->cookie > cookie || config.by_address))
				return 1;
			RETURN_ADDRESS(ctx, sp, &to);
			if (top->ip == ip || !is_tail_call(to)) {
				sweep(t, sp + 1);
				d = t->depth;
				top = &t->frames[(d - 1) & (CT_MAX_FRAMES - 1)];
			}
		}
	}
	if (d && d <= CT_MAX_FRAMES) {
		depth = top->rec.depth + !(top->spec_flags & CT_S_INTERNAL);
		if (depth && !config.nested && !(flags & CT_S_ALWAYS)) {
			COUNT(folded);
			return 1;
		}
		if (d >= CT_MAX_FRAMES) {
			COUNT(lost[CT_LOSS_DEPTH]);
			return 1;
		}
	}
	nwords = spec->nwords;
	if (nwords > CT_MAX_WORDS)
		return 1;
	f = &t->frames[d & (CT_MAX_FRAMES - 1)];
	if (muted[func]) {
		f->sp = sp;
		f->ip = 0;
		return 1;
	}
	copy_words(ctx, f, nwords, sp);
	if (config.min_size_bytes && (flags & CT_S_MATCH_SIZE) &&
	    f->data[spec->size_word & (CT_MAX_WORDS - 1)] < config.min_size_bytes) {
		f->sp = sp;
		f->ip = 0;
		COUNT(filtered);
		return 1;
	}
	if (!t->announced)
		announce(t);
	f->sp = sp;
	f->ip = ip;
	f->cookie = cookie;
	f->spec_flags = flags;
	f->rec.h.kind = CT_CALL;
	f->rec.h.flags = (CT_COOKIE_PER_THREAD(cookie) ? CT_F_PER_THREAD : 0) |
			 ((flags & CT_S_SHOWN) && (!depth || config.nested) ? 0 : CT_F_HIDDEN);
	f->rec.h.pid = t->id >> 32;
	f->rec.h.tid = t->id;
	f->rec.func = func;
	f->rec.nwords = nwords;
	f->rec.depth = depth;
	f->rec.got = 0;
	f->rec.ret = 0;
	if (spec->nentry)
		do_reads(f, func, CT_AT_ENTRY);
	f->rec.h.start_ns = f->rec.h.end_ns = bpf_ktime_get_ns();
	if (config.enter) {
		f->rec.h.kind = CT_ENTER;
		send_call(t, f);
		f->rec.h.kind = CT_CALL;
	}
	if (config.no_return || (flags & CT_S_CALLBACK)) {
		f->rec.h.flags |= CT_F_NO_RETURN;
		f->ip = 0;
		if (!config.enter)
			send_call(t, f);
		return 1;
	}
	t->depth = d + 1;
	return 0;
}

/* The frame is told by the stack pointer alone: of functions that tail-call each other, which share it, the kernel runs
 * the return handlers newest first. */
static __always_inline int leave(struct pt_regs *ctx)
{
	__u64 sp = RETURN_SP(ctx), now = bpf_ktime_get_ns();
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);
	const volatile struct ct_spec *spec;
	struct frame *f;
	__u32 d, func, ret;
	bool failed;

	if (!ready)
		return 0;
	if (!t) {
		/* Not traced, or a call that began before the attach. */
		if (!config.filter_pids && !config.cgroup_id)
			COUNT(lost[CT_LOSS_ORPHAN]);
		return 0;
	}
	d = t->depth - 1;
	if (d >= CT_MAX_FRAMES) {
		/* A frame with ip 0 is done with; where the entry cannot call its return off, its return may follow,
		 * or a second one: of a tail call, or of a link that is being replaced. */
		f = &t->frames[0];
		if (t->id && (f->sp != sp || f->ip))
			COUNT(lost[CT_LOSS_ORPHAN]);
		return 0;
	}
	f = &t->frames[d];
	if (f->sp < sp) {
		sweep(t, sp);
		d = t->depth - 1;
		if (d >= CT_MAX_FRAMES) {
			COUNT(lost[CT_LOSS_ORPHAN]);
			return 0;
		}
		f = &t->frames[d];
	}
	if (f->sp != sp)
		return 0; /* inside another call and folded, or the stack was full */
	func = f->rec.func;
	if (func >= CT_MAX_FUNCS)
		return 0;
	t->depth = d;
	f->ip = 0;
	spec = &specs[func];
	f->rec.ret = PT_REGS_RC(ctx);
	f->rec.h.end_ns = now;
	ret = f->rec.ret;
	failed = (spec->flags & CT_S_ERROR) && ret;
	if (config.failed_only && (!failed || ((spec->flags & CT_S_NOT_READY) && ret == NOT_READY))) {
		COUNT(filtered);
		return 0;
	}
	if (config.min_duration_ns && now - f->rec.h.start_ns < config.min_duration_ns) {
		COUNT(filtered);
		return 0;
	}
	if (!failed && spec->nreads > spec->nentry)
		do_reads(f, func, CT_AT_RETURN);
	send_call(t, f);
	return 0;
}

/* ---- the programs -------------------------------------------------------------------------------------- */

struct where_ctx {
	__u64 ip;
	struct ct_where w;
};

static long where_is(struct task_struct *task, struct vm_area_struct *vma, struct where_ctx *c)
{
	struct inode *inode = BPF_CORE_READ(vma, vm_file, f_inode);


	c->w.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	c->w.ino = BPF_CORE_READ(inode, i_ino);
	c->w.offset = c->ip - BPF_CORE_READ(vma, vm_start) + (BPF_CORE_READ(vma, vm_pgoff) << 12);
	return 0;
}

/* Which function is at this address? ~0: not known. */
static __noinline __u64 cookie_of(__u64 ip)
{
	struct at_address key = { .tgid = bpf_get_current_pid_tgid() >> 32, .gen = address_gen, .ip = ip };
	struct where_ctx c = { .ip = ip };
	__u64 *cookie, found;

	cookie = bpf_map_lookup_elem(&by_address, &key);
	if (cookie)
		return *cookie;
	if (bpf_find_vma(bpf_get_current_task_btf(), ip, where_is, &c, 0))
		return ~0ULL;
	cookie = bpf_map_lookup_elem(&by_offset, &c.w);
	if (!cookie)
		return ~0ULL;
	found = *cookie;
	bpf_map_update_elem(&by_address, &key, &found, BPF_ANY);
	return found;
}

/* Attached as uprobe_multi, or as perf events with or without cookies. */
SEC("uprobe.s")
int ct_enter(struct pt_regs *ctx)
{
	__u64 cookie;

	if (config.by_address) {
		if (!ready)
			return 0;
		cookie = cookie_of(PT_REGS_IP(ctx));
		if (cookie == ~0ULL) {
			if (thread_get())
				COUNT(lost[CT_LOSS_FUNCTION]);
			return 0;
		}
	} else {
		cookie = bpf_get_attach_cookie(ctx);
	}
	enter(ctx, cookie);
	return 0;
}

SEC("uretprobe.s")
int ct_exit(struct pt_regs *ctx)
{
	return leave(ctx);
}

extern bool bpf_session_is_return(void) __ksym __weak;

/* Attached as uprobe_session: one program, called at entry and, when that returned 0, at return. */
SEC("uprobe.s")
int ct_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return())
		return leave(ctx);
	return enter(ctx, bpf_get_attach_cookie(ctx));
}

/* On ld.so's _dl_debug_state: stops the thread that maps a library, before that library's code runs. The signal never
 * reaches the program: it is traced, and the tracer swallows it. */
SEC("uprobe.s")
int ct_dl_state(struct pt_regs *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;


	if (config.stop_on_map && bpf_map_lookup_elem(&pids, &tgid))
		bpf_send_signal_thread(SIGURG);
	return 0;
}

/* ---- the life of processes ------------------------------------------------------------------------------ */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(ct_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 ppid = parent->tgid, pid = child->tgid, one = 1;
	struct ct_fork r = {};

	if (ppid == pid || !config.follow || !bpf_map_lookup_elem(&pids, &ppid))
		return 0;
	bpf_map_update_elem(&pids, &pid, &one, BPF_ANY);
	r.h.kind = CT_FORK;
	r.h.pid = ppid;
	r.h.tid = parent->pid;
	r.h.start_ns = r.h.end_ns = bpf_ktime_get_ns();
	r.child_pid = pid;
	r.child_ns_pid = pid_in_ns(child);
	send(&r.h, sizeof(r), false, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Sends what the thread is still inside of. */
static __always_inline void abandon(struct task_struct *task)
{
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);

	if (!t)
		return;
	sweep(t, ~0ULL);
	t->frames[0].sp = 0;
	t->id = 0;
	t->announced = false;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(ct_exec, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	abandon(task);
	if (!bpf_map_lookup_elem(&procs, &tgid) && !(config.filter_pids && bpf_map_lookup_elem(&pids, &tgid)))
		return 0;
	bpf_map_delete_elem(&procs, &tgid);
	if (ready)
		send_process(task, CT_EXEC);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ct_gone, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct ct_exit r = {};
	bool known;

	abandon(task);
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	/* Threads that end together all find that none is left: the one that deletes speaks. */
	known = !bpf_map_delete_elem(&procs, &tgid);
	if (config.filter_pids)
		known = !bpf_map_delete_elem(&pids, &tgid);
	if (!known)
		return 0;
	r.h.kind = CT_EXIT;
	r.h.pid = tgid;
	r.h.tid = task->pid;
	r.h.start_ns = r.h.end_ns = bpf_ktime_get_ns();
	r.status = BPF_CORE_READ(task, signal, group_exit_code);
	if (!r.status)
		r.status = task->exit_code;
	send(&r.h, sizeof(r), false, BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- iterators: what user space asks, once and not for each call ------------------------------------------- */

/* Executable mappings of files, with the real inode: /proc/PID/maps shows overlayfs's own. */
SEC("iter/task_vma")
int ct_maps(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	struct task_struct *task = ctx->task;
	struct inode *inode;
	struct ct_vma v = {};

	/* Once for each process: by its leader, or by every thread when the leader has ended. */
	if (!task || !vma || (task->pid != task->tgid && BPF_CORE_READ(task, group_leader, mm)))
		return 0;
	if (!(vma->vm_flags & VM_EXEC) || !vma->vm_file)
		return 0;
	inode = BPF_CORE_READ(vma, vm_file, f_inode);
	v.pid = task->tgid;
	v.ns_pid = pid_in_ns(task);
	v.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	v.ino = BPF_CORE_READ(inode, i_ino);
	v.start = vma->vm_start;
	v.end = vma->vm_end;
	v.pgoff = vma->vm_pgoff;
	bpf_seq_write(ctx->meta->seq, &v, sizeof(v));
	return 0;
}

/* The calls that threads have been inside of for inflight_min_ns, as unfinished records. Frames are read while their
 * threads run: what is younger than that is left out, and what is older is not being written. */
__u64 inflight_min_ns;

SEC("iter/task")
int ct_inflight(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;
	__u64 now = bpf_ktime_get_ns();
	__u32 i;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	if (!t)
		return 0;
	for (i = 0; i < CT_MAX_FRAMES; i++) {
		struct frame *f = &t->frames[i];
		struct ct_call head;
		__u64 len = f->len;

		if (i >= t->depth)
			break;
		if (!(f->spec_flags & (CT_S_SHOWN | CT_S_ALWAYS)) || now - f->rec.h.start_ns < inflight_min_ns)
			continue;
		__builtin_memcpy(&head, &f->rec, sizeof(head));
		BOUND(len, CT_DATA_MAX);
		head.h.flags |= CT_F_UNFINISHED | (ready ? CT_F_PENDING : 0);
		head.h.end_ns = now;
		head.h.lost = 0;
		head.h.size = sizeof(head) + len;
		bpf_seq_write(ctx->meta->seq, &head, sizeof(head));
		bpf_seq_write(ctx->meta->seq, f->data, len);
	}
	return 0;
}

SEC("iter/task")
int ct_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ct_task t = {};

	if (!task)
		return 0;
	t.tgid = task->tgid;
	t.tid = task->pid;
	t.ns_tid = pid_in_ns(task);
	t.ns_tgid = pid_in_ns(BPF_CORE_READ(task, group_leader));
	t.ppid = BPF_CORE_READ(task, real_parent, tgid);
	t.ended = BPF_CORE_READ(task, signal, live.counter) <= 0;
	bpf_seq_write(ctx->meta->seq, &t, sizeof(t));
	return 0;
}

#include "snapshot.bpf.h"
