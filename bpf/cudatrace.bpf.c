// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * cudatrace.bpf.c - the kernel side: captures calls at entry, pairs them with their return, and
 * sends one record each.
 *
 * How it works. Every probed function runs the same two handlers. What to capture of a function is
 * data: the attach cookie names a row, specs[] says how many argument words and which pieces of
 * user memory. At entry the record is built in a frame of the thread's in-flight stack (task
 * storage); at return it gets its result and outputs and goes to the ring buffer in one piece.
 * Frames are told apart by the stack pointer: at entry it points to the return address, and at
 * return it is back where it was, tail calls included.
 *
 * User memory is read without faulting: no program here may sleep, because a page that is never
 * served (FUSE, userfaultfd) would stop every tracer of the machine. What is not resident, as
 * strings in .rodata that nobody has touched, is described to user space (CT_ABSENT), which reads
 * the file.
 *
 * This file knows no function by name and no file.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../wire/control.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "state.bpf.h"
#include "pid_ns.bpf.h"
#include "process.bpf.h"
#include "halt.bpf.h"
#include "read.bpf.h"
#include "python.bpf.h"
#include "stack.bpf.h"
#include "count.bpf.h"
#include "frames.bpf.h"
#include "reach.bpf.h"
#include "scopes.bpf.h"
#include "capture.bpf.h"
#include "hold.bpf.h"
#include "life.bpf.h"
#include "iterators.bpf.h"
#include "snapshot.bpf.h"

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

/* Returns the function at this address; ~0 if it is not known. */
static __noinline __u64 cookie_of(__u64 ip)
{
	struct at_address key = { .tgid = bpf_get_current_pid_tgid() >> 32,
				  .gen = address_gen,
				  .ip = ip };
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

/* CT_WANTS_*: set when a plain return probe may end a thread that makes calls */
__u32 wants_sessions;

/* Attached as uprobe_multi, or as perf events with or without cookies. */
SEC("uprobe")
int ct_enter(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 cookie;

	if (task->sas_ss_size && !(wants_sessions & CT_WANTS_SIGNAL_STACK))
		__sync_fetch_and_or(&wants_sessions, CT_WANTS_SIGNAL_STACK);
	if (is_dispatched(task) && !(wants_sessions & CT_WANTS_DISPATCH))
		__sync_fetch_and_or(&wants_sessions, CT_WANTS_DISPATCH);
	if (config.by_address) {
		if (phase != CT_PHASE_RUNNING)
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

SEC("uretprobe")
int ct_exit(struct pt_regs *ctx)
{
	return leave(ctx);
}

extern bool bpf_session_is_return(void) __ksym __weak;

/* Attached as uprobe_session: one program, called at entry and, when that returned 0, at return. */
SEC("uprobe")
int ct_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return())
		return leave(ctx);
	return enter(ctx, bpf_get_attach_cookie(ctx));
}

/* Attached to _dl_debug_state of ld.so. A thread that maps a library is stopped, or made to wait,
 * before code of that library runs. */
SEC("uprobe")
int ct_dl_state(struct pt_regs *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (!(config.stop_on_map || config.hold) || !bpf_map_lookup_elem(&pids, &tgid))
		return 0;
	if (!config.stop_on_map || !is_seized(bpf_get_current_task_btf()))
		config.hold &&hold();
	else if (!halt(CT_HALT_MAPPED))
		passed(tgid);
	return 0;
}
