/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * iterators.bpf.h - what user space asks, once and not for each call: mappings, tasks, calls in
 * flight.
 */
#ifndef CT_ITERATORS_BPF_H
#define CT_ITERATORS_BPF_H

/* Executable mappings of files, with the real inode: /proc/PID/maps shows overlayfs's own. */
SEC("iter/task_vma")
int ct_maps(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	struct task_struct *task = ctx->task;
	struct inode *inode;
	struct ct_vma v = {};

	/* Each process is visited once, by its leader; if the leader has ended, by each of its
	 * threads. */
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
	v.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	bpf_seq_write(ctx->meta->seq, &v, sizeof(v));
	return 0;
}

/* Sends the calls that threads have been inside of for at least inflight_min_ns, as unfinished
 * records. Frames are read while their threads run. A younger frame may just be written, and is
 * left out; an older one no longer changes. In CT_PHASE_CLOSED a frame is taken before it is read,
 * so that nobody else sends its record. */
__u64 inflight_min_ns;

SEC("iter/task")
int ct_inflight(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;
	__u64 now = bpf_ktime_get_ns();
	bool last = phase == CT_PHASE_CLOSED;
	__u32 i;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	if (!t)
		return 0;
	for (i = 0; i < CT_MAX_FRAMES; i++) {
		struct frame *f = &t->frames[i];
		struct ct_call head;
		__u64 len;

		if (i >= t->depth)
			break;
		if (!f->owed || f->sampled || !(f->spec_flags & (CT_S_SHOWN | CT_S_ALWAYS)) ||
		    now - f->rec.h.start_ns < inflight_min_ns)
			continue;
		if (last && !take_last(f))
			continue;
		if (config.stacks) {
			struct ct_user_stack s = {};

			stack_head(&s, t, f, i, now);
			s.how = CT_STACK_LIVE;
			bpf_seq_write(ctx->meta->seq, &s, sizeof(s));
		}
		__builtin_memcpy(&head, &f->rec, sizeof(head));
		len = f->len;
		BOUND(len, CT_DATA_MAX);
		head.h.flags |= CT_F_UNFINISHED | (last ? 0 : CT_F_PENDING);
		head.h.end_ns = unfinished_end(f, now);
		head.h.lost = 0;
		head.h.size = sizeof(head) + len;
		bpf_seq_write(ctx->meta->seq, &head, sizeof(head));
		bpf_seq_write(ctx->meta->seq, f->data, len);
	}
	return 0;
}

/* In CT_PHASE_CLOSING: visits the threads that are inside a call which began at most closing_ns
 * before the stop. Writes one __u32 for each: whether the thread is waiting for a CPU. */
__u64 closing_ns;

static __always_inline bool is_runnable(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return !BPF_CORE_READ(task, __state);
	return !BPF_CORE_READ(old, state);
}

SEC("iter/task")
int ct_returning(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;
	__u32 i, waits;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	if (!t)
		return 0;
	waits = is_runnable(task) && !(bpf_core_field_exists(task->on_cpu) && task->on_cpu);
	for (i = 0; i < CT_MAX_FRAMES; i++) {
		struct frame *f = &t->frames[i];

		if (i >= t->depth)
			break;
		if (!f->owed || f->rec.h.start_ns + closing_ns < stopped_ns)
			continue;
		bpf_seq_write(ctx->meta->seq, &waits, sizeof(waits));
		break;
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
	t.wants_session = (task->sas_ss_size ? CT_WANTS_SIGNAL_STACK : 0) |
			  (is_dispatched(task) ? CT_WANTS_DISPATCH : 0);
	bpf_seq_write(ctx->meta->seq, &t, sizeof(t));
	return 0;
}

#endif
