// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* recipe.bpf.c - the kernel side of the source that tests/recipes.sh adds: a record for each signal that a handler of the
 * program gets. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../wire/cudatrace.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 program; /* its number; 0: not known */
__u64 recipes_lost;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} recipes SEC(".maps");

SEC("tp_btf/signal_deliver")
int BPF_PROG(ct_signal, int signal)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct ct_recipe *r;

	if (id >> 32 != program)
		return 0;
	r = bpf_ringbuf_reserve(&recipes, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&recipes_lost, 1);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->h.size = sizeof(*r);
	r->h.kind = CT_RECIPE;
	r->h.pid = id >> 32;
	r->h.tid = (__u32)id;
	r->h.start_ns = r->h.end_ns = bpf_ktime_get_ns();
	r->spoons = (__u32)signal;
	bpf_ringbuf_submit(r, 0);
	return 0;
}
