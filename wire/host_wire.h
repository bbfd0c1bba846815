/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host_wire.h - what the kernel side of host states (bpf/host.bpf.c) and user/source/states say to each
 * other. It is never stored: user space makes CT_HOST_SEGMENT records of it.
 */
#ifndef CT_HOST_WIRE_H
#define CT_HOST_WIRE_H

#include "cudatrace.h"
#include "control.h"

#define CT_HOST_FRAMES 12 /* Python frames, innermost first */
#define CT_HOST_IPS 8	  /* return addresses */
#define CT_HOST_NAME 24
#define CT_HOST_TGIDS (1u << 22) /* PID_MAX_LIMIT */
#define CT_HOST_SYSCALLS 512
#define CT_HOST_THREADS 8192 /* that are watched at a time, where task storage cannot be used */
/* A wait of a member that lasted so long makes whoever ended it a member. */
#define CT_HOST_GROW_NS 100000ULL
/* A shorter time off the CPU counts as running. */
#define CT_HOST_FOLD_NS 20000ULL

enum ct_host_what {
	CT_HOST_RAW_OFF = 1, /* a thread was off the CPU, and is on it again */
	CT_HOST_RAW_SAMPLE = 2,
	CT_HOST_RAW_NOW = 3, /* where a thread is when user space asks */
	CT_HOST_RAW_EXIT = 4,
	CT_HOST_RAW_EXEC = 5, /* the process is another program from now on */
};
#define CT_HOST_F_THROTTLED 0x1
#define CT_HOST_F_GIL 0x2
#define CT_HOST_F_PREEMPTED 0x4
#define CT_HOST_F_KERNEL 0x8 /* a sample in the kernel's code */
#define CT_HOST_F_GC 0x10    /* Python collects garbage */

struct ct_host_raw {
	__u32 what; /* enum ct_host_what */
	__u32 tid, tgid;
	__u32 ns_tid, ns_tgid; /* in the tracer's namespace; 0: not visible there */
	__u16 nframes, nips;
	__u64 begun_ns;			      /* when the process began, CLOCK_BOOTTIME */
	__u64 on_ns, off_ns, wake_ns, end_ns; /* wake_ns 0: not woken, it could have run on */
	__u64 folded_ns;		      /* of short times off the CPU since on_ns */
	__u32 folded;
	__u32 waker, waker_tgid;
	__u32 holder; /* of the GIL, by its own number; 0: not known */
	__s32 nr;     /* of the system call; negative: none */
	__u8 state;   /* 0: it could have run; else the kernel's */
	__u8 wakes;   /* enum ct_host_by */
	__u8 flags;   /* CT_HOST_F_* */
	__u8 pad;
	__u64 arg; /* the system call's first */
	__u64 ino;
	__u32 magic;
	__u16 mode;
	__u16 pad2;
	char comm[CT_COMM_LEN];
	char other[CT_COMM_LEN]; /* who woke it, or who got the CPU */
	char name[CT_HOST_NAME]; /* of the file */
	__u64 ips[CT_HOST_IPS];
	struct ct_py_frame frames[CT_HOST_FRAMES];
};

/* Python in a process. Addresses that are 0 are not known. */
struct ct_host_python {
	struct ct_python py;
	__u64 gil_from, gil_until; /* a futex between them is that of a waiter */
	__u64 gil_locked, gil_holder;
	__u64 gc;
};

CT_ASSERT_SIZE(struct ct_host_raw, 528);
CT_ASSERT_SIZE(struct ct_host_python, 120);

#endif
