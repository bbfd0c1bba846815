/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * state.bpf.h - the data of the kernel side: the run's configuration, each thread's stack of calls
 * in flight, the maps, the counters; and how a record is sent. Knows no BPF program.
 */
#ifndef CT_STATE_BPF_H
#define CT_STATE_BPF_H

#define VM_EXEC 0x4
#define EEXIST 17
#define NOT_READY 600 /* cudaErrorNotReady, CUDA_ERROR_NOT_READY */
/* user space is woken at every so many records of one thread, and at its first, so that it can read
 * names from the process before the process ends */
#define WAKE_EVERY 1024

#if defined(__TARGET_ARCH_x86)
#define REG_WORDS 6
#define SAVED_REGS 5 /* rbx, r12 to r15 */
#define RETURN_ADDRESS(ctx, sp, out) bpf_probe_read_user(out, 8, (void *)(sp))
#define ENTRY_SP(ctx) PT_REGS_SP(ctx)
#define RETURN_SP(ctx) (PT_REGS_SP(ctx) - 8) /* ret has popped the return address */
#define CALLER_SP(sp) ((sp) + 8)
#define STACK_ARGS(sp) ((sp) + 8)
#else
#define REG_WORDS 8
#define SAVED_REGS 10 /* x19 to x28 */
#define RETURN_ADDRESS(ctx, sp, out) (*(out) = PT_REGS_RET(ctx), 0)
#define ENTRY_SP(ctx) PT_REGS_SP(ctx)
#define RETURN_SP(ctx) PT_REGS_SP(ctx)
#define CALLER_SP(sp) (sp)
#define STACK_ARGS(sp) (sp)
#endif

const volatile struct ct_config config;
const volatile struct ct_spec specs[CT_MAX_FUNCS];
__u8 sampled[CT_MAX_FUNCS]; /* enum ct_sampled */
__u32 tensors[CT_SYMBOLS];  /* what is read of an operator's arguments: CT_TENSORS_*() */
bool sampling;		    /* true if any of them is not CT_SAMPLED_NO */
/* number of windows so far; user space writes it before it changes `sampled` */
__u32 window;
bool want_nested; /* rows with CT_S_NESTED are also captured inside other calls */
__u64 forgets;	  /* number of entries so far of calls that unload kernels */
__u32 phase;	  /* enum ct_phase */
__u64 stopped_ns; /* from CT_PHASE_CLOSING on: when user space stopped tracing */

/* Is the record of a frame still to be sent? */
enum owed { OWED_NOT, OWED, OWED_BY_LAST_LOOK };

struct frame {
	__u64 sp, ip, cookie;
	/* with config.stacks: the true return address, which a pending return probe hides */
	__u64 ip_to;
	__u64 bp, regs[SAVED_REGS]; /* with config.stacks: the caller's callee-saved registers */
	/* the address where the last cut string continues; cut_len bytes of it were read */
	__u64 cut_at;
	__u32 cut_len, cut_read;
	/* for a call without a return probe: the return address on its stack; else 0 */
	__u64 returns_to;
	/* with in_trampoline: what stands in place of the return address */
	__u64 in_place;
	__u32 owed;	   /* enum owed */
	__u32 interrupted; /* a signal was delivered to the thread while this call was under way */
	__u32 len;	   /* bytes used of data[] */
	__u8 spec_flags;
	__u8 sampled; /* enum ct_sampled, at its entry: COUNTED: counted and not sent */
	/* a signal was delivered when the function had returned, but the kernel did not know yet */
	bool in_trampoline;
	bool frees;  /* the memory that it frees was removed from `held` at its entry */
	__u8 before; /* how many earlier calls are counted together with it */
	/* with config.layers: the number of the innermost open scope, as innermost() gives it */
	__u32 scope;
	__u64 freed_bytes; /* the size of that memory, bytes */
	struct ct_call rec;
	/* continues rec.words; the slack is for the verifier */
	__u64 data[(CT_DATA_MAX + CT_READ_MAX) / 8];
};

struct thread {
	/* as bpf_get_current_pid_tgid() returns it; 0: the process filter has not accepted it
	 * (yet) */
	__u64 id;
	__u32 depth;
	__u32 sent; /* records; wraps */
	/* differs between processes that had the same pid; known once the process is announced */
	__u32 start;
	bool announced; /* its CT_PROCESS record was sent */
	bool beside;	/* its process is CT_PID_BESIDE */
	/* calls of functions that are CT_SAMPLED_INSIDE, since the last one that was COUNTED;
	 * CT_UNSURE_MAX at most */
	__u8 unsure;
	/* the last window in which the thread was certainly not inside a call whose entry no probe
	 * saw */
	__u32 window;
	__u64 cgroup_id; /* with config.cgroup_id: the thread's cgroup when it was accepted */
	/* the mapping in which the thread's stack was last seen; 0: not known */
	__u64 stack_start, stack_end;
	/* with config.reach: the stacks that it used in the round reach_round; see reach.bpf.h */
	__u32 reach_round, nreach;
	struct ct_reach reach[CT_REACHES];
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

/* The traced processes: tgid -> enum ct_pid. */
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

/* For kernels without cookies: the function at a place in a file. User space fills this map when it
 * attaches files. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct ct_where);
	__type(value, __u64);
} by_offset SEC(".maps");

/* The functions found for the addresses seen so far. A new `gen` makes them invalid whenever a
 * mapping may have changed. */
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

/* Keeps the compiler from removing an upper bound, or from changing it into code that the verifier
 * cannot follow. */
#define BOUND(x, max)                \
	do {                         \
		barrier_var(x);      \
		if ((x) > (max))     \
			(x) = (max); \
	} while (0)

/* The add is atomic because programs cannot migrate to another CPU but may be preempted. */
#define COUNT(field)                                         \
	do {                                                 \
		struct ct_counters *_c = cpu_counters();     \
		if (_c)                                      \
			__sync_fetch_and_add(&_c->field, 1); \
	} while (0)

/* ---- sending ---- */

__u64 lost_unsent; /* records that did not fit, and that no record's hdr.lost has reported yet */

/* The number of records lost since the last sent one, for the header of the next one. It is read
 * for every record, but written only when something was lost. */
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

/* Calls of rows that name kernels are sent whatever the user asked for. The driver's launches
 * inside other calls are sent on demand. */
static __always_inline bool is_sent(const struct frame *f)
{
	return f->spec_flags & (CT_S_SHOWN | CT_S_ALWAYS) ||
	       (f->rec.depth && (f->spec_flags & CT_S_NESTED));
}

static __always_inline void send_call(struct thread *t, struct frame *f)
{
	__u32 len = f->len;

	if (len > CT_DATA_MAX || !(is_sent(f) || t->beside) ||
	    (config.count && !(f->spec_flags & (CT_S_ALWAYS | CT_S_NESTED))))
		return; /* the frame is only kept so that calls inside it fold, or to be counted */
	/* there is room: no plan takes more than CT_PLAN_MAX. The stack's id follows. */
	if (config.layers && len <= CT_PLAN_MAX) {
		*(__u64 *)((void *)f->data + (len & ~7U)) = f->scope;
		f->rec.h.flags |= CT_F_SCOPE;
		len += 8;
	}
	send(&f->rec.h, sizeof(f->rec) + len, true,
	     t->sent++ % WAKE_EVERY ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
}

#endif
