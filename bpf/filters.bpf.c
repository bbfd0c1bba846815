// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * filters.bpf.c - says that a process with hooks is setting a filter of its system calls (seccomp), before the
 * filter is there, however the system call is made. The process reads that in a page of places[] which it has
 * mapped, so nothing has to wake.
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
#define CALL_NUMBER(regs) BPF_CORE_READ(regs, orig_ax)
#define CALL_ARG(regs, n) ((n) ? BPF_CORE_READ(regs, si) : BPF_CORE_READ(regs, di))
#else
#define NR_PRCTL 167
#define NR_SECCOMP 277
#define CALL_NUMBER(regs) BPF_CORE_READ(regs, syscallno)
#define CALL_ARG(regs, n) ((n) ? BPF_CORE_READ(regs, regs[1]) : BPF_CORE_READ(regs, orig_x0))
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
	if (word)
		*word = *word == FILTER_OF_ALL || all ? FILTER_OF_ALL : FILTER_OF_ONE;
	return 0;
}
