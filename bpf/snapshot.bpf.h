/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * snapshot.bpf.h - part of cudatrace.bpf.c: where threads are, asked without stopping any.
 *
 * The kernel keeps a thread's user registers at the top of its kernel stack while it is in the kernel: in a system call,
 * in an interrupt, and so whenever it is not on a CPU. What stands there for a thread that runs is of its last visit and
 * worth nothing: `running` says so. The switches are read first: a reader who finds the same number and no running later
 * knows that the thread has not executed an instruction since.
 */
#ifndef CT_SNAPSHOT_BPF_H
#define CT_SNAPSHOT_BPF_H

#if defined(__TARGET_ARCH_x86)
#define USER_MODE(r) ((r)->cs == 0x33) /* __USER_CS: 64-bit code */
#else
#define USER_MODE(r) (!((r)->pstate & 0x1f)) /* PSR_MODE_EL0t, not AArch32's */
#endif

static __always_inline void copy_user_regs(struct ct_thread *t, const struct pt_regs *r)
{
#if defined(__TARGET_ARCH_x86)
	t->ip = r->ip;
	t->sp = r->sp;
	t->bp = r->bp;
	t->regs[0] = r->bx;
	t->regs[1] = r->r12;
	t->regs[2] = r->r13;
	t->regs[3] = r->r14;
	t->regs[4] = r->r15;
#else
	t->ip = r->pc;
	t->sp = r->sp;
	t->bp = r->regs[29];
	t->lr = r->regs[30];
	__builtin_memcpy(t->regs, &r->regs[19], sizeof(t->regs));
#endif
}

/* Not loaded unless it is asked for: bpf_task_pt_regs() came with Linux 5.15. */
SEC("?iter/task")
int ct_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *leader;
	struct ct_thread t = {};
	struct pt_regs r;

	if (!task || !task->mm || (task->flags & 0x200000 /* PF_KTHREAD */))
		return 0;
	t.switches = task->nvcsw + task->nivcsw;
	t.running = 1;
	if (bpf_core_field_exists(task->on_cpu))
		t.running = task->on_cpu != 0;
	if (bpf_probe_read_kernel(&r, sizeof(r), (void *)bpf_task_pt_regs(task)))
		return 0;
	if (USER_MODE(&r))
		copy_user_regs(&t, &r);
	else
		t.running = 1;
	leader = BPF_CORE_READ(task, group_leader);
	t.tgid = task->tgid;
	t.tid = task->pid;
	t.ns_tid = pid_in_ns(task);
	t.ns_tgid = pid_in_ns(leader);
	t.start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
	t.cgroup_id = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
	t.uid = BPF_CORE_READ(leader, cred, uid.val);
	t.gid = BPF_CORE_READ(leader, cred, gid.val);
	t.ppid = BPF_CORE_READ(leader, real_parent, tgid);
	BPF_CORE_READ_STR_INTO(&t.comm, leader, comm);
	bpf_seq_write(ctx->meta->seq, &t, sizeof(t));
	return 0;
}

#endif
