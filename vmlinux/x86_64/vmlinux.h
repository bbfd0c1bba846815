/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vmlinux.h - only the kernel types that the BPF programs use, x86_64.
 *
 * Made from the output of
 *     bpftool btf dump file /sys/kernel/btf/vmlinux format c
 * by keeping the structs below with the members that are read. CO-RE relocates every access, so neither the order nor
 * the offsets matter; a member that a kernel lacks makes the load fail with its name.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#include "../types.h"

struct pt_regs {
	unsigned long r15, r14, r13, r12;
	unsigned long bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};

#endif
