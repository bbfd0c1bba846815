/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entry_x86.S - the code to which a hooked function's jump leads, and to which the function
 * returns. Everything that can be written in C is in call.c. The unwind information is right at
 * each instruction.
 */
#include "../common/args_x86.h"
#include "area.h"

/* The section has no bytes in the file: it is mapped as zeros, and threads.c maps areas there. It
 * is here for its unwind information: in a stub the caller's stack pointer is rsp, and the return
 * address is in the frame. The CFA must not be that of the called function, because libgcc
 * distinguishes frames by it. So it is rsp + 8. */
	.section .hooks_region, "ax", @nobits
	.balign 4096
	.globl hooks_region
	.hidden hooks_region
	.type hooks_region, @object
hooks_region:
	.cfi_startproc
	.cfi_def_cfa rsp, 8
	.cfi_val_offset rsp, -8
	/* rip = *((rip & -FRAME_SIZE) + HOOK_PART + FRAME_RA):
	 * breg16 0; const2s -128; and; plus_uconst 16392; deref */
	.cfi_escape 0x16, 16, 11, 0x80, 0, 0x0b, 0x80, 0xff, 0x1a, 0x23, 0x88, 0x80, 0x01, 0x06
	.zero HOOK_AREAS * HOOK_AREA + HOOK_PART	/* areas_begin() */
	.cfi_endproc
	.size hooks_region, HOOK_AREAS * HOOK_AREA + HOOK_PART

	.section .text.sorted.0, "ax", @progbits
/* r11: number of the function, from its pad. r10 and r11 are free to use. */
	.globl hooks_entry
	.hidden hooks_entry
	.type hooks_entry, @function
	.balign 64
hooks_entry:
	.cfi_startproc
	save_reg rax
	lea engine_hot(%rip), %rax
	shl $4, %r11
	add %rax, %r11
	testb $HOT_REGS_BIT, HOT_FLAGS(%r11)
	jnz 2f
	save_args
	mov %rsp, %rdi
	mov %r11, %rsi
	call call_enter
6:	mov %rax, %r10
	mov %rdx, %r11
	restore_args
	restore_reg rax
	test %r10, %r10
	jz 3f
	/* The word at rsp already is the return address in the stub; the call in the stub writes it
	 * again. */
	add $8, %rsp
	.cfi_def_cfa_offset 0
	jmp *%r10
3:	.cfi_def_cfa_offset 8
	jmp *%r11
2:	.cfi_def_cfa_offset 16
	/* As above, but with the registers that functions preserve stored below the arguments. */
	save_args
	mov %rsp, %rdi
	save_reg r15
	save_reg r14
	save_reg r13
	save_reg r12
	save_reg rbp
	save_reg rbx
	mov %r11, %rsi
	call call_enter
	add $48, %rsp
	.cfi_def_cfa_offset 64
	jmp 6b
	.cfi_endproc
	.size hooks_entry, . - hooks_entry

	.section .text.sorted.4, "ax", @progbits
/* A stub jumps here. r10: the stub's frame. rsp is the caller's; the word below it still is the
 * address in the stub. */
	.globl hooks_return
	.hidden hooks_return
	.type hooks_return, @function
	.balign 64
hooks_return:
	.cfi_startproc
	.cfi_def_cfa rsp, 8
	.cfi_val_offset rsp, -8
	.cfi_escape 0x16, 16, 3, 0x7a, FRAME_RA, 0x06	/* rip = *(r10 + FRAME_RA) */
	movq $-1, (%r10)
	pushq FRAME_RA(%r10)
	.cfi_def_cfa rsp, 8
	.cfi_same_value rsp
	.cfi_val_offset rsp, 0
	.cfi_offset rip, -8
	save_reg rax
	save_reg rdx
	sub $8, %rsp
	.cfi_def_cfa_offset 32
	mov %r10, %rdi
	mov %rax, %rsi
	call call_leave
	add $8, %rsp
	.cfi_def_cfa_offset 24
	restore_reg rdx
	restore_reg rax
	ret
	.cfi_endproc
	.size hooks_return, . - hooks_return

	.section .note.GNU-stack, "", @progbits
