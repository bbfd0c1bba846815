/* SPDX-License-Identifier: BSD-2-Clause */
/* inject_frames.c - see inject_frames.h. */
#include "inject_frames.h"

#include <stdlib.h>
#include <string.h>

#include "../resolve/stacks/unwind.h"

struct inject_frames {
	struct objects *objects;
	struct space *space; /* holds one process at a time */
	pid_t pid;
	struct unwind_regs regs[UNWIND_MAX];
};

struct inject_frames *inject_frames_open(void)
{
	struct inject_frames *f = calloc(1, sizeof(*f));

	if (f)
		f->objects = objects_open();
	if (f && !f->objects) {
		free(f);
		f = NULL;
	}
	return f;
}

void inject_frames_close(struct inject_frames *f)
{
	if (!f)
		return;
	space_close(f->space);
	objects_close(f->objects);
	free(f);
}

int inject_frames_get(void *ctx, struct target *t, const struct inject_thread *thread,
		      uint64_t *ips, int max, uint64_t *lost_sp)
{
	struct unwind_regs first = { .ip = thread->ip,
				     .sp = thread->sp,
				     .bp = thread->bp,
				     .lr = thread->lr,
				     .exact = true };
	struct inject_frames *f = ctx;
	uint32_t flags = 0;
	int n;

	*lost_sp = thread->sp;
	if (!f->space || f->pid != target_pid(t)) {
		space_close(f->space);
		f->space = space_open(f->objects);
		f->pid = target_pid(t);
		if (!f->space || space_refresh(f->space, t))
			return 0;
	}
	memcpy(first.regs, thread->regs, sizeof(first.regs));
	n = unwind_thread(f->space, t, &first, NULL, 0, NULL, 0, f->regs,
			  UNWIND_MAX < max ? UNWIND_MAX : max, &flags);
	for (int i = 0; i < n; i++)
		ips[i] = f->regs[i].ip;
	if (n > 0)
		*lost_sp = flags ? f->regs[n - 1].sp : 0;
	return n;
}
