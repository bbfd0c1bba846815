/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * pid_ns.bpf.h - the numbers of a process or thread: in a pid namespace that is named, and in its own. For each BPF object.
 */
#ifndef CT_PID_NS_BPF_H
#define CT_PID_NS_BPF_H

#define MAX_PID_NS_LEVEL 32 /* <linux/pid_namespace.h> */

/* The number in the namespace with this inode number; level: of the pid's own namespace. 0: it is not visible there. */
static __always_inline __u32 pid_number_in(struct pid *pid, __u32 level, __u32 inum)
{
	struct upid up = {};
	__u32 i;

	for (i = 0; i < MAX_PID_NS_LEVEL; i++) {
		if (i > level)
			break;
		if (bpf_core_read(&up, sizeof(up), &pid->numbers[i]))
			break;
		if (BPF_CORE_READ(up.ns, ns.inum) == inum)
			return up.nr;
	}
	return 0;
}

/* The thread's number in its own namespace, which is what gettid() returns there; 0: it has ended. */
static __always_inline __u32 pid_own_number(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = pid ? BPF_CORE_READ(pid, level) : MAX_PID_NS_LEVEL + 1;
	struct upid up = {};

	if (level > MAX_PID_NS_LEVEL || bpf_core_read(&up, sizeof(up), &pid->numbers[level]))
		return 0;
	return up.nr;
}

#endif
