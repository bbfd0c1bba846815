/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck_stack.c - see stuck_stack.h. */
#include "stuck_stack.h"

#include <stdlib.h>
#include <string.h>

#include "proc/target.h"

struct stuck_stacks {
	int none;
};

struct stuck_stacks *stuck_stacks_open(void)
{
	return calloc(1, sizeof(struct stuck_stacks));
}

void stuck_stacks_close(struct stuck_stacks *s)
{
	free(s);
}

static int read_code(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return target_read(ctx, addr, buf, len);
}

bool stuck_stacks_call(struct stuck_stacks *s, const struct snapshot_thread *t, const struct ct_saved *saved, int nsaved,
		       struct stuck_call *call, struct ct_user_stack *stack)
{
	const struct snapshot_process *p = t->process;
	struct target *target;
	bool found;

	(void)s, (void)saved, (void)nsaved;
	memset(stack, 0, sizeof(*stack));
	if (target_open(&target, p->pid, p->about.start_boottime_ns))
		return false;
	found = stuck_call_by_scan(call, p, t->sp, t->stack, t->len, read_code, target);
	target_close(target);
	return found;
}
