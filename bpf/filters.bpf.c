// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * filters.bpf.c - says that a process with hooks is setting a filter of its system calls (seccomp), before the
 * filter is there, however the system call is made. The process reads that in a page of places[] which it has
 * mapped, so nothing has to wake. A filter for all threads is also one for our thread there, which can do nothing
 * then but end, if it may.
 *
 * The kernel has no event of its own for this, and one at each system call would cost every program of the
 * machine. But it takes memory for each CPU when it makes a filter, which is rare (at a fork, too), and tells.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../wire/filters.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#if defined(__TARGET_ARCH_x86)
#define NR_PRCTL 157
#define NR_SECCOMP 317
#define NR_EXIT 60
#define ARCH_HERE 0xc000003e /* AUDIT_ARCH_X86_64 */
#define CALL_NUMBER(regs) BPF_CORE_READ(regs, orig_ax)
#define CALL_ARG(regs, n) ((n) ? BPF_CORE_READ(regs, si) : BPF_CORE_READ(regs, di))
#define CALL_FILTER(regs) BPF_CORE_READ(regs, dx)
#else
#define NR_PRCTL 167
#define NR_SECCOMP 277
#define NR_EXIT 93
#define ARCH_HERE 0xc00000b7 /* AUDIT_ARCH_AARCH64 */
#define CALL_NUMBER(regs) BPF_CORE_READ(regs, syscallno)
#define CALL_ARG(regs, n) ((n) ? BPF_CORE_READ(regs, regs[1]) : BPF_CORE_READ(regs, orig_x0))
#define CALL_FILTER(regs) BPF_CORE_READ(regs, regs[2])
#endif
#define SET_FILTER 1 /* SECCOMP_SET_MODE_FILTER */
#define TSYNC 1	     /* SECCOMP_FILTER_FLAG_TSYNC */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FILTER_PLACES);
	__type(key, __u32);
	__type(value, __u64); /* the kernel gives each element 8 bytes */
} places SEC(".maps");

/* Of a process, by its first thread: the number of its place. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} processes SEC(".maps");

/* ---- may a thread end under the filter? ---- */

/* The filter is a program of classic BPF over struct seccomp_data, which is run here for exit(0), as far as it is
 * made of what such programs are nearly always made of. */
struct filter_insn {
	__u16 code;
	__u8 jt, jf;
	__u32 k;
};
struct filter_prog {
	__u16 len;
	__u64 insns;
};
#define INSN_LOAD 0x20	/* BPF_LD | BPF_W | BPF_ABS */
#define INSN_AND 0x54	/* BPF_ALU | BPF_AND | BPF_K */
#define INSN_JUMP 0x05	/* BPF_JMP | BPF_JA */
#define INSN_EQUAL 0x15 /* BPF_JMP | BPF_JEQ | BPF_K, and so on */
#define INSN_GREATER 0x25
#define INSN_GREATER_EQUAL 0x35
#define INSN_ANY 0x45
#define INSN_RETURN 0x06 /* BPF_RET | BPF_K */
#define VERDICT_ALLOW 0x7fff0000
#define VERDICT_LOG 0x7ffc0000
#define FILTER_STEPS 4096 /* BPF_MAXINSNS: each is executed once at most */

/* Linux 5.17: before that it is not known. vmlinux.h does not have the names. */
enum bpf_func_id___here { BPF_FUNC_loop___here = 1 };

struct filter_run {
	__u64 insns;
	__u32 len, pc, a;
	bool allows;
};

static bool filter_jumps(__u16 code, __u32 a, __u32 k)
{
	switch (code) {
	case INSN_EQUAL: return a == k;
	case INSN_GREATER: return a > k;
	case INSN_GREATER_EQUAL: return a >= k;
	default: return a & k;
	}
}

static long filter_step(__u32 i, struct filter_run *r)
{
	struct filter_insn f;

	if (r->pc >= r->len ||
	    bpf_probe_read_user(&f, sizeof(f), (void *)(r->insns + r->pc * sizeof(f))))
		return 1;
	r->pc++;
	switch (f.code) {
	case INSN_LOAD: r->a = !f.k ? NR_EXIT : f.k == 4 ? ARCH_HERE : 0; return 0;
	case INSN_AND: r->a &= f.k; return 0;
	case INSN_JUMP: r->pc += f.k; return 0;
	case INSN_EQUAL:
	case INSN_GREATER:
	case INSN_GREATER_EQUAL:
	case INSN_ANY: r->pc += filter_jumps(f.code, r->a, f.k) ? f.jt : f.jf; return 0;
	case INSN_RETURN: r->allows = f.k == VERDICT_ALLOW || f.k == VERDICT_LOG; return 1;
	default: return 1;
	}
}

static bool allows_exit(__u64 address)
{
	struct filter_run r = {};
	struct filter_prog p;

	if (!bpf_core_enum_value_exists(enum bpf_func_id___here, BPF_FUNC_loop___here) ||
	    bpf_probe_read_user(&p, sizeof(p), (void *)address))
		return false;
	r.insns = p.insns;
	r.len = p.len;
	bpf_loop(FILTER_STEPS, filter_step, &r, 0);
	return r.allows;
}

SEC("tp_btf/percpu_alloc_percpu")
int BPF_PROG(ct_filter)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 *place = bpf_task_storage_get(&processes, task->group_leader, 0, 0);
	struct pt_regs *regs;
	bool all = false;
	__u64 *word;
	long nr;

	if (!place)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	nr = CALL_NUMBER(regs);
	if (nr == NR_SECCOMP && CALL_ARG(regs, 0) == SET_FILTER)
		all = CALL_ARG(regs, 1) & TSYNC;
	else if (nr != NR_PRCTL)
		return 0;
	word = bpf_map_lookup_elem(&places, place);
	/* others are not looked at: of a filter that is there already it was said before */
	if (word && !allows_exit(CALL_FILTER(regs)))
		__sync_fetch_and_or(word, FILTER_NO_EXIT);
	if (word)
		__sync_fetch_and_or(word, all ? FILTER_OF_ONE | FILTER_OF_ALL : FILTER_OF_ONE);
	return 0;
}
