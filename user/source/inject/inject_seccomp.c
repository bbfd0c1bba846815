/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_seccomp.c - see inject_seccomp.h.
 *
 * The kernel hands out the filters of a tracee; they are programs of classic BPF over struct
 * seccomp_data, run here for the calls that injection makes. Where a filter looks at arguments,
 * those that matter are given as they will be.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "../host.h"
#include "inject_needs.h"
#include "inject_seccomp.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif
#if defined(__x86_64__)
#define ARCH_HERE AUDIT_ARCH_X86_64
#else
#define ARCH_HERE AUDIT_ARCH_AARCH64
#endif
/* of one thread; the kernel's bound on their instructions is reached earlier */
#define FILTERS_MAX 1024
#define STEPS_MAX BPF_MAXINSNS

struct machine {
	uint32_t a, x, m[BPF_MEMWORDS];
};

static uint32_t inject_seccomp_load(const struct seccomp_data *data, uint32_t at)
{
	uint32_t v = 0;

	if (at <= sizeof(*data) - 4)
		memcpy(&v, (const char *)data + at, 4);
	return v;
}

static uint32_t compute(uint16_t op, uint32_t a, uint32_t b)
{
	switch (BPF_OP(op)) {
	case BPF_ADD: return a + b;
	case BPF_SUB: return a - b;
	case BPF_MUL: return a * b;
	case BPF_DIV: return b ? a / b : 0;
	case BPF_OR: return a | b;
	case BPF_AND: return a & b;
	case BPF_XOR: return a ^ b;
	case BPF_LSH: return b < 32 ? a << b : 0;
	case BPF_RSH: return b < 32 ? a >> b : 0;
	default: /* BPF_NEG */ return -a;
	}
}

static bool jumps(uint16_t op, uint32_t a, uint32_t b)
{
	switch (BPF_OP(op)) {
	case BPF_JEQ: return a == b;
	case BPF_JGT: return a > b;
	case BPF_JGE: return a >= b;
	default: /* BPF_JSET */ return a & b;
	}
}

static void step(struct machine *m, const struct sock_filter *f, const struct seccomp_data *data)
{
	uint32_t src = BPF_SRC(f->code) == BPF_X ? m->x : f->k, v;

	switch (BPF_CLASS(f->code)) {
	case BPF_LD:
	case BPF_LDX:
		v = f->k;
		if (BPF_MODE(f->code) == BPF_ABS)
			v = inject_seccomp_load(data, f->k);
		else if (BPF_MODE(f->code) == BPF_MEM)
			v = m->m[f->k % BPF_MEMWORDS];
		else if (BPF_MODE(f->code) == BPF_LEN)
			v = sizeof(*data);
		*(BPF_CLASS(f->code) == BPF_LD ? &m->a : &m->x) = v;
		return;
	case BPF_ST: m->m[f->k % BPF_MEMWORDS] = m->a; return;
	case BPF_STX: m->m[f->k % BPF_MEMWORDS] = m->x; return;
	case BPF_ALU: m->a = compute(f->code, m->a, src); return;
	default: /* BPF_MISC */
		if (BPF_MISCOP(f->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
	}
}

/* Runs a filter. Returns its verdict (SECCOMP_RET_), or SECCOMP_RET_KILL_PROCESS for one that is
 * none. */
static uint32_t inject_seccomp_run(const struct sock_filter *code, size_t len,
				   const struct seccomp_data *data)
{
	struct machine m = {};
	size_t pc = 0;

	for (int steps = 0; pc < len && steps < STEPS_MAX; steps++) {
		const struct sock_filter *f = &code[pc++];

		if (BPF_CLASS(f->code) == BPF_RET)
			return BPF_RVAL(f->code) == BPF_A ? m.a : f->k;
		if (BPF_CLASS(f->code) != BPF_JMP)
			step(&m, f, data);
		else if (BPF_OP(f->code) == BPF_JA)
			pc += f->k;
		else
			pc += jumps(f->code, m.a, BPF_SRC(f->code) == BPF_X ? m.x : f->k) ? f->jt
											  : f->jf;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* Whether a filter lets everything pass. NULL: it does. */
static const char *denied(const struct sock_filter *code, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(inject_needs); i++) {
		const struct inject_need *n = &inject_needs[i];
		struct seccomp_data data = { .nr = (int)n->nr, .arch = ARCH_HERE };
		uint32_t verdict;

		memcpy(data.args, n->args, sizeof(data.args));
		verdict = inject_seccomp_run(code, len, &data) & SECCOMP_RET_ACTION_FULL;
		if (verdict != SECCOMP_RET_ALLOW && verdict != SECCOMP_RET_LOG &&
		    !(n->may_fail && verdict == SECCOMP_RET_ERRNO))
			return n->name;
	}
	return NULL;
}

int inject_seccomp_check(pid_t tid, const char **name)
{
	struct sock_filter *code;
	struct host_task task;
	int err = 0;

	if (host_task(tid, &task))
		return -ESRCH;
	*name = "strict mode";
	if (task.seccomp != SECCOMP_MODE_FILTER)
		return task.seccomp ? -EACCES : 0;
	code = calloc(BPF_MAXINSNS, sizeof(*code));
	if (!code)
		return -ENOMEM;
	for (int i = 0; i < FILTERS_MAX && !err; i++) {
		long len = ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, tid, i, code);

		if (len < 0 && errno == ENOENT && i)
			break;
		if (len < 0 || len > BPF_MAXINSNS)
			err = -EPERM;
		else if ((*name = denied(code, (size_t)len)))
			err = -EACCES;
	}
	free(code);
	return err;
}
