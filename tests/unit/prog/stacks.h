/* SPDX-License-Identifier: BSD-2-Clause */
/* stacks.h - what tests/unit/prog/stacks.c and stacks.cc hand to the test that started them. */
#ifndef CT_TEST_STACKS_H
#define CT_TEST_STACKS_H

#include <stdint.h>

#define SHOT_MAX 16384

struct shot {
	uint64_t regs[8]; /* ip, sp, rbp, rbx, r12, r13, r14, r15 */
	uint64_t len, cut;
	uint8_t bytes[SHOT_MAX];
};

#endif
