/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch_x86.S - the code to which a hook on a function of libcupti leads. r11: the number of the
 * function. All arguments of these functions are integers, so no vector register has a value that
 * the function needs.
 */
#include "../common/args_x86.h"

	.text
	.globl hooks_entry
	.hidden hooks_entry
	.type hooks_entry, @function
	.balign 16
hooks_entry:
	.cfi_startproc
	save_reg rax
	save_args
	mov %rsp, %rsi
	mov %r11d, %edi
	call watch_call
	mov %rax, %r11
	restore_args
	restore_reg rax
	jmp *%r11
	.cfi_endproc
	.size hooks_entry, . - hooks_entry

	.section .note.GNU-stack, "", @progbits
