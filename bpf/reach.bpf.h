/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * reach.bpf.h - with config.reach: how far out on each of a thread's stacks the calls lie that began
 * since all probes were placed. Sends nothing.
 *
 * A call that began before them and is still under way has all of these calls inside it, so that they lie
 * further in on its stack. If one of them lies as far out as the older call, the older one has ended. That
 * holds for calls on the same stack only: the handler of a signal may have a stack that lies anywhere.
 */
#ifndef CT_REACH_BPF_H
#define CT_REACH_BPF_H

/* User space changes it when it has placed probes. What was noted before does not count from then on: a call
 * of a newly probed function may have begun behind the noted ones. 0: no thread has noted it. */
__u32 reach_round = 1;

/* Notes the first call on a stack that the thread did not use before, or that has grown. */
static __noinline int reach_stack(struct thread *t, __u64 sp)
{
	struct stack_range r = {};
	struct ct_reach *at;
	__u32 i, n;

	if (!t)
		return 0;
	bpf_find_vma(bpf_get_current_task_btf(), sp, find_mapping, &r, 0);
	if (!r.end)
		return 0; /* the mappings are being changed; the next call tells */
	n = t->nreach;
	for (i = 0; i < CT_REACHES; i++)
		if (i < n && t->reach[i].end == r.end)
			break;
	if (i == CT_REACHES) {
		i = n & (CT_REACHES - 1);
		t->nreach = n + 1;
		t->reach[i & (CT_REACHES - 1)].sp = 0;
	}
	at = &t->reach[i & (CT_REACHES - 1)];
	at->start = r.start;
	at->end = r.end;
	if (CALLER_SP(sp) > at->sp)
		at->sp = CALLER_SP(sp);
	return 0;
}

static __always_inline void note_reach(struct thread *t, __u64 sp)
{
	__u32 i;

	if (t->reach_round != reach_round) {
		t->reach_round = reach_round;
		t->nreach = 0;
	}
	for (i = 0; i < CT_REACHES; i++) {
		struct ct_reach *at = &t->reach[i];

		if (i >= t->nreach)
			break;
		if (sp < at->start || sp >= at->end)
			continue;
		if (CALLER_SP(sp) > at->sp)
			at->sp = CALLER_SP(sp);
		return;
	}
	reach_stack(t, sp);
}

#endif
