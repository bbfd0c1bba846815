/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * at_calls.h - what the engine calls at a hook: calls of CUDA go to capture.c, those of functions of libc to what they mean for the
 * hooks.
 */
#ifndef CT_HOOKS_AT_CALLS_H
#define CT_HOOKS_AT_CALLS_H

#include "../engine/engine.h"

extern const struct hook_ops at_calls;

/* Before the first hooks: has the program called dlmopen() already? */
void at_calls_begin(void);

#endif
