/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_text.h - how the table prints a kernel and a stack:
 *
 *   vecAdd(float const*, float const*, float*, int)
 *
 *                vecadd_step+0x1c (train.c:42) /path/app
 *                helper (train.c:7) [inlined]
 *                train_step (train.py:88) [python]
 *                ?? (/path/lib.so+0x1234)
 *                ...
 */
#ifndef CT_TABLE_TEXT_H
#define CT_TABLE_TEXT_H

#include "sink.h"
#include "../util/text.h"

/* Appends the kernel's name, escaped. */
void table_kernel(struct text *, const struct sink_opts *, const struct kernel_name *);
/* Appends a line for each frame that is shown (stack_view()), and one more if the stack is not complete. */
void table_stack(struct text *, const struct sink_opts *, const struct stack *);

#endif
