/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vfork_aarch64.S - vfork(2) for a program that was started with the hooks in LD_PRELOAD. The child
 * has its parent's memory, and so its parent's areas. Its calls are not recorded. The return
 * address is in a register, and parent and child each have their own registers.
 */
	.text
	.globl	vfork
	.type	vfork, %function
	.p2align 4
vfork:
	.cfi_startproc
	hint	#34	/* bti c */
	adrp	x9, :gottprel:hooks_in_vfork
	ldr	x9, [x9, :gottprel_lo12:hooks_in_vfork]
	mrs	x10, tpidr_el0
	add	x9, x9, x10
	ldr	w11, [x9]
	add	w11, w11, #1
	str	w11, [x9]
	mov	x0, #0x4111	/* CLONE_VM | CLONE_VFORK | SIGCHLD */
	mov	x1, #0
	mov	x8, #220	/* clone */
	svc	#0
	cbz	x0, 1f
	/* The parent continues when the child has ended, or has become another program. */
	ldr	w11, [x9]
	sub	w11, w11, #1
	str	w11, [x9]
	cmn	x0, #4095
	b.cs	2f
1:	ret
2:	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x29, -32
	.cfi_offset x30, -24
	str	x0, [sp, #16]
	bl	__errno_location
	ldr	x9, [sp, #16]
	neg	w9, w9
	str	w9, [x0]
	mov	x0, #-1
	ldp	x29, x30, [sp], #32
	.cfi_restore x29
	.cfi_restore x30
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	vfork, .-vfork
	.section .note.GNU-stack,"",%progbits
