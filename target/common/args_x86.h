/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args_x86.h - for assembler code to which a call is led: saves the registers in which a function gets its
 * arguments, and restores them. The unwind information is right at each instruction. Knows no hook.
 */
#ifndef CT_ARGS_X86_H
#define CT_ARGS_X86_H

/* clang-format off */

	.macro save_reg reg
	push %\reg
	.cfi_adjust_cfa_offset 8
	.endm

	.macro restore_reg reg
	pop %\reg
	.cfi_adjust_cfa_offset -8
	.endm

/* rsp then is the address of the six arguments, the first of them first. */
	.macro save_args
	save_reg r9
	save_reg r8
	save_reg rcx
	save_reg rdx
	save_reg rsi
	save_reg rdi
	.endm

	.macro restore_args
	restore_reg rdi
	restore_reg rsi
	restore_reg rdx
	restore_reg rcx
	restore_reg r8
	restore_reg r9
	.endm

#endif
