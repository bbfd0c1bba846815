/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * life.bpf.h - processes that fork, exec and end; threads that get signals, or another name.
 */
#ifndef CT_LIFE_BPF_H
#define CT_LIFE_BPF_H

SEC("tp_btf/sched_process_fork")
int BPF_PROG(ct_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 ppid = parent->tgid, pid = child->tgid, one = 1;
	struct ct_fork r = {};

	if (ppid == pid || !config.follow || !bpf_map_lookup_elem(&pids, &ppid))
		return 0;
	bpf_map_update_elem(&pids, &pid, &one, BPF_ANY);
	if (config.python)
		python_fork(ppid, pid);
	r.h.kind = CT_FORK;
	r.h.pid = ppid;
	r.h.tid = parent->pid;
	r.h.start_ns = r.h.end_ns = bpf_ktime_get_ns();
	r.child_pid = pid;
	r.child_ns_pid = pid_in_ns(child);
	if (send(&r.h, sizeof(r), false, BPF_RB_NO_WAKEUP))
		COUNT(unreported);
	return 0;
}

/* A call inside the interrupted ones may have been made by the signal's handler: see
 * is_programs_own(). */
SEC("tp_btf/signal_deliver")
int BPF_PROG(ct_signal)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);

	for (__u32 i = 0; t && i < CT_MAX_FRAMES && i < t->depth; i++)
		t->frames[i].interrupted = true;
	if (t && t->depth && t->depth <= CT_MAX_FRAMES)
		note_trampoline(task, &t->frames[(t->depth - 1) & (CT_MAX_FRAMES - 1)]);
	return 0;
}

/* The processes of the machine that ran last. They tell who mapped a file if that process has ended
 * before user space could look. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32); /* pid in the tracer's namespace */
	__type(value, struct ct_image);
} images SEC(".maps");

static __always_inline void note_image(struct task_struct *task, bool ended)
{
	__u32 ns_pid = pid_in_ns(BPF_CORE_READ(task, group_leader)), tgid = task->tgid;
	struct ct_image image = { .tgid = tgid },
			*known = ended ? bpf_map_lookup_elem(&images, &ns_pid) : NULL;
	__u64 now = bpf_ktime_get_ns();

	if (config.filter_pids && !bpf_map_lookup_elem(&pids, &tgid))
		return;
	if (known && known->tgid == tgid && !known->ended_ns) {
		known->ended_ns = now;
		return;
	}
	image.since_ns = ended ? 0 : now;
	image.ended_ns = ended ? now : 0;
	image.outside = config.cgroup_id && !in_cgroup();
	BPF_CORE_READ_STR_INTO(&image.comm, task, group_leader, comm);
	bpf_map_update_elem(&images, &ns_pid, &image, BPF_ANY);
}

/* Sends the calls that the thread is still inside. */
static __always_inline void abandon(struct task_struct *task)
{
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);

	forget_scopes(task);
	if (!t)
		return;
	sweep(t, ~0ULL);
	t->frames[0].sp = 0;
	t->nreach = 0;
	t->id = 0;
	t->announced = false;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(ct_exec, struct task_struct *task, int old_pid)
{
	__u32 tgid = task->tgid;

	abandon(task);
	if (config.images)
		note_image(task, false);
	if (config.hold)
		bpf_map_delete_elem(&loads, &tgid);
	if (config.python)
		python_gone(tgid);
	/* this thread has replaced the process's first thread, to which per-process links are
	 * bound */
	if (config.hold && (__u32)old_pid != tgid && bpf_map_lookup_elem(&pids, &tgid))
		ask(task, true);
	if (!bpf_map_lookup_elem(&procs, &tgid) &&
	    !(config.filter_pids && bpf_map_lookup_elem(&pids, &tgid)))
		return 0;
	/* calls that are only counted at their entry do not check later whether their process was
	 * announced */
	if (!counts_entries())
		bpf_map_delete_elem(&procs, &tgid);
	if (phase == CT_PHASE_RUNNING && send_process(task, CT_EXEC))
		COUNT(unreported);
	return 0;
}

/* A thread whose name was reported was given another one, by prctl(PR_SET_NAME) or
 * /proc/PID/task/TID/comm. A name that exec sets is part of CT_EXEC. */
SEC("tp_btf/task_rename")
int BPF_PROG(ct_rename, struct task_struct *task, const char *comm)
{
	__u32 tgid = task->tgid;
	struct thread *t;

	if (phase != CT_PHASE_RUNNING ||
	    (bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve)))
		return 0;
	if ((__u32)task->pid == tgid) {
		if (!bpf_map_lookup_elem(&procs, &tgid))
			return 0;
	} else {
		t = bpf_task_storage_get(&threads, task, 0, 0);
		if (!t || !t->announced)
			return 0;
	}
	if (send_thread_name(task, comm))
		COUNT(unreported);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ct_gone, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct ct_exit r = {};
	bool known;

	/* before its links are closed, which takes a while */
	if (tgid == tracer_tgid && BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT)
		tracer_gone = true;
	abandon(task);
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	if (config.images)
		note_image(task, true);
	if (config.python)
		python_gone(tgid);
	/* When several threads end together, each of them finds that no thread is left. Only the
	 * thread that deletes the map entry sends the record. */
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
	if (send(&r.h, sizeof(r), false, BPF_RB_NO_WAKEUP))
		COUNT(unreported);
	return 0;
}

#endif
