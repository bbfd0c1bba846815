/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vfork_x86.S - vfork(2) for a program that was started with the hooks in LD_PRELOAD. The child has
 * its parent's memory, and so its parent's areas. Its calls are not recorded. libc's own function
 * cannot be hooked, because its first bytes lead into libc. Like libc's function, this one keeps
 * the return address in a register while the child uses the stack.
 */
	.text
	.globl	vfork
	.type	vfork, @function
	.p2align 4
vfork:
	.cfi_startproc
	movq	hooks_in_vfork@gottpoff(%rip), %rsi
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rdi
	incl	%fs:(%rsi)
	movl	$58, %eax
	syscall
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rip, -8
	testq	%rax, %rax
	jz	1f
	/* The parent continues when the child has ended, or has become another program. */
	decl	%fs:(%rsi)
	cmpq	$-4095, %rax
	jae	2f
1:	ret
2:	pushq	%rax
	.cfi_adjust_cfa_offset 8
	call	__errno_location@PLT
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	negl	%edx
	movl	%edx, (%rax)
	movq	$-1, %rax
	ret
	.cfi_endproc
	.size	vfork, .-vfork
	.section .note.GNU-stack,"",@progbits
