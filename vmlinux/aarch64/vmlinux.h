/* SPDX-License-Identifier: BSD-2-Clause */
/* vmlinux.h - only the kernel types that the BPF programs use, aarch64. See ../x86_64/vmlinux.h. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#include "../types.h"

/* bpf_tracing.h reads the registers through this one on arm64. */
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			__u64 regs[31];
			__u64 sp, pc, pstate;
		};
	};
	__u64 orig_x0;
	__s32 syscallno;
} __attribute__((preserve_access_index));

#endif
