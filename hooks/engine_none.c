/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_none.c - the engine on a processor that it does not know: it cannot be opened.
 */
#include <errno.h>

#include "engine.h"

int engine_open(const struct hook_ops *ops)
{
	(void)ops;
	return -ENOTSUP;
}

int engine_install(const struct hook_spec *specs, unsigned int n, enum hook_result *results)
{
	(void)specs;
	(void)n;
	(void)results;
	return -ENOTSUP;
}

int engine_uninstall(const __u64 *addresses, unsigned int n)
{
	(void)addresses;
	(void)n;
	return -ENOTSUP;
}

struct hook_within engine_within;

void engine_count(__u32 mask, __u32 id, __u32 flags)
{
	(void)mask;
	(void)id;
	(void)flags;
}

void engine_forget_counts(void)
{
}

void engine_fold_within(__u64 lo, __u64 bytes)
{
	engine_within = (struct hook_within){ lo, bytes };
}

void hook_count_into(struct hook_thread *t, __u64 *counts)
{
	t->counts = counts;
}

unsigned int engine_hooked_late(void)
{
	return 0;
}

void engine_reserve(void)
{
}

int engine_remove(struct hook_leftover *left)
{
	*left = (struct hook_leftover){ 0 };
	return 0;
}

int engine_check(struct hook_state *state)
{
	*state = (struct hook_state){ 0 };
	return 0;
}

void engine_close(void)
{
}

const char *hook_result_text(enum hook_result result)
{
	(void)result;
	return "hooks are for x86-64 alone";
}

bool hook_is_under_way(const struct hook_frame *frame)
{
	(void)frame;
	return false;
}

struct hook_frame *hook_outer(const struct hook_frame *frame)
{
	(void)frame;
	return NULL;
}

struct hook_thread *hook_self(void)
{
	return NULL;
}

void hook_guard_enter(void)
{
}

void hook_guard_leave(void)
{
}
