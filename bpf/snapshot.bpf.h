/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * snapshot.bpf.h - part of cudatrace.bpf.c: where threads are, asked without stopping any.
 *
 * The kernel keeps a thread's user registers at the top of its kernel stack while it is in the
 * kernel: in a system call, in an interrupt, and so whenever it is not on a CPU. What stands
 * there for a thread that runs is of its last visit and worth nothing: `running` says so. The
 * switches are read first: a reader who finds the same number and no running later knows that
 * the thread has not executed an instruction since.
 */
#ifndef CT_SNAPSHOT_BPF_H
#define CT_SNAPSHOT_BPF_H

#include "regs.bpf.h"

/* Sends where the thread is, and to which process it belongs. */
static __noinline int write_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *leader;
	struct ct_thread_head t = {};
	struct user_part r;

	if (!task)
		return 0;
	t.switches = task->nvcsw + task->nivcsw;
	t.running = 1;
	if (bpf_core_field_exists(task->on_cpu))
		t.running = task->on_cpu != 0;
	if (bpf_probe_read_kernel(&r, sizeof(r), (char *)bpf_task_pt_regs(task) + USER_PART_AT))
		return 0;
	if (USER_MODE(&r))
		COPY_USER_REGS(&t, &r);
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
	return !bpf_seq_write(ctx->meta->seq, &t, sizeof(t));
}

/* Sends the calls of the thread whose begin our probes saw, and the return addresses on its stack
 * that return probes have replaced. */
static __noinline int write_probed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ct_thread_probed p = {};
	struct return_instance *ri;
	struct thread *t;
	__u32 i;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	if (t) {
		for (i = 0; i < CT_MAX_FRAMES; i++)
			if (i < t->depth)
				p.calls[i] = CALLER_SP(t->frames[i].sp);
		for (i = 0; i < 2; i++) {
			struct frame *f = &t->frames[(t->depth - i) & (CT_MAX_FRAMES - 1)];

			if (config.stacks && t->depth - i < CT_MAX_FRAMES) {
				p.ending[i].sp = f->sp;
				p.ending[i].ip = f->ip_to;
			}
		}
		if (t->reach_round == reach_round) {
			__builtin_memcpy(p.reach, t->reach, sizeof(p.reach));
			p.nreach = t->nreach;
		}
	}
	ri = BPF_CORE_READ(task, utask, return_instances);
	for (i = 0; i < CT_MAX_FRAMES && ri; i++) {
		p.saved[i].sp = BPF_CORE_READ(ri, stack);
		p.saved[i].ip = BPF_CORE_READ(ri, orig_ret_vaddr);
		p.nsaved = i + 1;
		ri = BPF_CORE_READ(ri, next);
	}
	return bpf_seq_write(ctx->meta->seq, &p, sizeof(p));
}

/* Loaded only if it is needed, because bpf_task_pt_regs() exists since Linux 5.15. */
SEC("?iter/task")
int ct_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || !task->mm || (task->flags & 0x200000 /* PF_KTHREAD */))
		return 0;
	if (write_thread(ctx))
		write_probed(ctx);
	return 0;
}

#endif
