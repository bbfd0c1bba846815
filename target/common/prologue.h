/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prologue.h - for functions with almost nothing in them, so that they begin with pushes as larger ones
 * do: a hook on pushes has a place where its jump lands (docs/hooks.md).
 */
#ifndef CT_HOOKS_PROLOGUE_H
#define CT_HOOKS_PROLOGUE_H

#if defined(__x86_64__)
#define PUSHES() __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15")
#else
#define PUSHES() __asm__ volatile("" ::: "x19", "x20", "x21", "x22")
#endif

#endif
