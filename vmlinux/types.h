/* SPDX-License-Identifier: BSD-2-Clause */
/* types.h - the part of vmlinux.h that is the same on every architecture. Included by <arch>/vmlinux.h alone. */
#ifndef CT_VMLINUX_TYPES_H
#define CT_VMLINUX_TYPES_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

/* <linux/bpf.h> */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum syscall_work_bit { SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH = 5 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};
struct pid_namespace {
	struct ns_common ns;
	unsigned int level;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
typedef struct {
	__u32 val;
} kuid_t;
typedef struct {
	__u32 val;
} kgid_t;
struct cred {
	kuid_t uid;
	kgid_t gid;
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
	unsigned int flags;
	int group_exit_code;
};
struct sigaction {
	void *sa_handler;
};
struct k_sigaction {
	struct sigaction sa;
};
struct sighand_struct {
	struct k_sigaction action[64];
};
struct kernfs_node {
	__u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
struct return_instance {
	unsigned long stack, orig_ret_vaddr;
	struct return_instance *next;
};
struct uprobe_task {
	struct return_instance *return_instances;
};
struct xol_area {
	unsigned long vaddr;
};
struct uprobes_state {
	struct xol_area *xol_area;
};
struct mm_struct {
	unsigned long exec_vm; /* pages */
	unsigned long start_stack;
	struct uprobes_state uprobes_state;
};
struct thread_struct {
	unsigned long fsbase; /* x86_64 alone */
};
struct thread_info {
	unsigned long syscall_work; /* 5.11 and on; x86_64 alone */
	__u32 cpu;
};
struct task_struct {
	struct thread_info thread_info;
	struct mm_struct *mm;
	struct thread_struct thread;
	unsigned int flags;
	unsigned int __state; /* 5.14 and on */
	unsigned int ptrace;
	int on_cpu, on_rq, prio;
	unsigned int in_execve : 1;
	unsigned long nvcsw, nivcsw;
	int pid, tgid;
	int exit_code, exit_state;
	__u64 start_boottime;
	char comm[16];
	struct task_struct *group_leader;
	struct task_struct *real_parent, *parent;
	struct pid *thread_pid;
	const struct cred *cred;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	struct css_set *cgroups;
	struct uprobe_task *utask;
	unsigned long sas_ss_sp;
	unsigned long sas_ss_size;
	void *stack;
	struct files_struct *files;
} __attribute__((preserve_access_index));
/* 6.18 and on, with CONFIG_CFS_BANDWIDTH. */
struct task_struct___throttled {
	bool throttled;
} __attribute__((preserve_access_index));
/* Before. */
struct cfs_rq___throttled {
	int throttle_count;
} __attribute__((preserve_access_index));
struct sched_entity___group {
	struct cfs_rq___throttled *cfs_rq;
} __attribute__((preserve_access_index));
struct task_struct___group {
	struct sched_entity___group se;
} __attribute__((preserve_access_index));

/* Before. */
struct task_struct___before_5_14 {
	long state;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};
struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	__s64 i_size;
	__s64 i_ctime_sec; /* 6.11 and on */
	__u32 i_ctime_nsec;
};
/* Before. */
struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};
struct inode___6_6 {
	struct timespec64 __i_ctime;
};
struct inode___old {
	struct timespec64 i_ctime;
};
struct qstr {
	const unsigned char *name;
};
struct dentry {
	struct qstr d_name;
};
struct path {
	struct dentry *dentry;
};
struct file {
	struct inode *f_inode;
	struct path f_path;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct anon_vma;
struct userfaultfd_ctx;
struct vm_userfaultfd_ctx {
	struct userfaultfd_ctx *ctx; /* not there without CONFIG_USERFAULTFD */
};
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct file *vm_file;
	struct anon_vma *anon_vma;
	struct vm_userfaultfd_ctx vm_userfaultfd_ctx;
};
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id, seq_num;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};
struct linux_binprm;

#pragma clang attribute pop

#endif
