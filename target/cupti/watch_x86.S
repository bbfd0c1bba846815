/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch_x86.S - the code to which a hook on a function of libcupti leads. r11: the number of the
 * function. All arguments of these functions are integers, so no vector register has a value that
 * the function needs.
 */
	.text
	.globl hooks_entry
	.hidden hooks_entry
	.type hooks_entry, @function
	.balign 16
hooks_entry:
	.cfi_startproc
	push %rax
	.cfi_def_cfa_offset 16
	push %r9
	.cfi_def_cfa_offset 24
	push %r8
	.cfi_def_cfa_offset 32
	push %rcx
	.cfi_def_cfa_offset 40
	push %rdx
	.cfi_def_cfa_offset 48
	push %rsi
	.cfi_def_cfa_offset 56
	push %rdi
	.cfi_def_cfa_offset 64
	mov %rsp, %rsi
	mov %r11d, %edi
	call watch_call
	mov %rax, %r11
	pop %rdi
	.cfi_def_cfa_offset 56
	pop %rsi
	.cfi_def_cfa_offset 48
	pop %rdx
	.cfi_def_cfa_offset 40
	pop %rcx
	.cfi_def_cfa_offset 32
	pop %r8
	.cfi_def_cfa_offset 24
	pop %r9
	.cfi_def_cfa_offset 16
	pop %rax
	.cfi_def_cfa_offset 8
	jmp *%r11
	.cfi_endproc
	.size hooks_entry, . - hooks_entry

	.section .note.GNU-stack, "", @progbits
