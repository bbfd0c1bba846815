/* SPDX-License-Identifier: BSD-2-Clause */
/* watch_aarch64.S - as watch_x86.S. w17: the number of the function. */
	.text
	.globl hooks_entry
	.hidden hooks_entry
	.type hooks_entry, %function
	.balign 16
hooks_entry:
	.cfi_startproc
	hint #34				/* bti c */
	stp x29, x30, [sp, #-96]!
	.cfi_def_cfa_offset 96
	.cfi_offset 29, -96
	.cfi_offset 30, -88
	mov x29, sp
	stp x0, x1, [sp, #16]		/* struct hook_regs */
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	stp x8, x30, [sp, #80]
	mov w0, w17
	add x1, sp, #16
	bl watch_call
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldr x8, [sp, #80]
	ldp x29, x30, [sp], #96
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	br x16
	.cfi_endproc
	.size hooks_entry, . - hooks_entry

	.section .note.GNU-stack, "", %progbits
