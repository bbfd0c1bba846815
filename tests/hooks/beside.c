/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * beside.c - a program whose victim_add() is hooked, for uprobes.py: a line of standard input each, on, check, call or off;
 * answers with numbers: the function's first byte, calls seen, and what the engine said.
 */
#include "hooktest.h"

#define CALLBACK __attribute__((target("general-regs-only")))
long victim_add(long, long);
static unsigned long seen;

static CALLBACK bool entry(struct hook_frame *f, const struct hook_regs *r)
{
	(void)f;
	(void)r;
	seen++;
	return true;
}

static CALLBACK void leave(struct hook_frame *f, __u64 result)
{
	(void)f;
	(void)result;
}

int main(void)
{
	static const struct hook_ops ops = { .entry = entry, .leave = leave };
	const volatile unsigned char *f = (void *)victim_add;
	struct hook_leftover left = { 0 };
	struct hook_state state = { 0 };
	char line[64];
	int said;

	if (engine_open(&ops))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		said = 0;
		if (!strcmp(line, "on\n"))
			said = (int)hook_one((void *)victim_add, 1, 0);
		else if (!strcmp(line, "check\n"))
			said = engine_check(&state) ? -1
						    : (int)(state.on + 10 * state.foreign +
							    100 * state.rewritten);
		else if (!strcmp(line, "off\n"))
			said = engine_remove(&left) ? -1 : (int)left.foreign;
		else
			for (long i = 0; i < 10; i++)
				if (victim_add(i, 1) != i + 1)
					return 2;
		printf("%02x %lu %d\n", *f, seen, said);
		fflush(stdout);
	}
	return 0;
}
