// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* empty.bpf.c - the floor of every comparison: programs that do nothing. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe")
int empty_enter(struct pt_regs *ctx)
{
	return 0;
}

SEC("uretprobe")
int empty_exit(struct pt_regs *ctx)
{
	return 0;
}
