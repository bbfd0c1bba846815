/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * process.bpf.h - which processes are traced: they are announced, threads get their in-flight stack, cgroups are checked.
 */
#ifndef CT_PROCESS_BPF_H
#define CT_PROCESS_BPF_H

static __always_inline __u32 number_in_ns(struct pid *pid, __u32 level)
{
	return pid_number_in(pid, level, config.ns_inum);
}

static __always_inline __u32 pid_in_ns(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);

	return pid ? number_in_ns(pid, BPF_CORE_READ(pid, level)) : 0;
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

static __always_inline long send_thread_name(struct task_struct *task, const char *comm)
{
	struct ct_thread_name n = {};

	n.h.kind = CT_THREAD_NAME;
	n.h.pid = BPF_CORE_READ(task, tgid);
	n.h.tid = BPF_CORE_READ(task, pid);
	n.h.start_ns = n.h.end_ns = bpf_ktime_get_ns();
	bpf_probe_read_kernel_str(n.comm, sizeof(n.comm), comm);
	return send(&n.h, sizeof(n), false, BPF_RB_NO_WAKEUP);
}

/* Sends CT_PROCESS at the first call of a process, and CT_THREAD_NAME at the first call of a
 * thread. A record that did not fit is tried again at the next call. Not static, so that the
 * verifier checks it once. */
__noinline int announce(struct thread *t)
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
	/* the leader's name comes with CT_PROCESS */
	if ((__u32)BPF_CORE_READ(task, pid) != tgid && send_thread_name(task, task->comm))
		return 0;
	t->start = start >> 10;
	t->announced = true;
	return 0;
}

/* Is the current task below the wanted cgroup? This is checked once per thread, and again when the
 * thread is in another cgroup. */
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

/* The thread's in-flight stack, or NULL when this process is not traced (no storage is made for
 * it). */
static __always_inline struct thread *thread_get(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);
	__u32 tgid, *how = NULL;

	if (t && t->id && (!config.cgroup_id || t->cgroup_id == bpf_get_current_cgroup_id()))
		return t;
	if (t)
		t->id = 0; /* moved to another cgroup, which may be one that is not traced */
	if (config.filter_pids) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		how = bpf_map_lookup_elem(&pids, &tgid);
		if (!how)
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
	if (t)
		t->beside = how && *how == CT_PID_BESIDE;
	if (t && config.cgroup_id)
		t->cgroup_id = bpf_get_current_cgroup_id();
	return t;
}

#endif
