/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entry_aarch64.S - the code to which a hooked function's gate leads, and to which the function
 * returns. Everything that can be written in C is in call.c. The unwind information is right at
 * each instruction. Vector registers are not saved, because the C code does not use them.
 */
#include "area.h"

#define ARGS 80	/* bytes of struct hook_regs: its last word is right below the caller's stack */
#define KEPT 96	/* x19 to x29, for hook_kept_regs() */

/* The section has no bytes in the file: it is mapped as zeros, and threads.c maps areas there. It
 * is here for its unwind information: in a stub the caller's stack pointer is sp, and the return
 * address is in the frame. The CFA must not be that of the called function, because libgcc
 * distinguishes frames by it. It must not be that of the caller either, because glibc uses that one
 * to find the end of a thread that is cancelled. So it is sp + 8. */
	.section .hooks_region, "ax", %nobits
	.balign 65536	/* the linker's largest page: the section must share no page with data */
	.globl hooks_region
	.hidden hooks_region
	.type hooks_region, %object
hooks_region:
	.cfi_startproc
	.cfi_def_cfa sp, 8
	.cfi_val_offset sp, -8
	/* pc = *((x30 & bits of an address & -FRAME_SIZE) + HOOK_PART + FRAME_RA): the function may
	 * have signed the address that it has saved.
	 * breg30 0; const8u 0x0000ffffffffff80; and; plus_uconst 16392; deref */
	.cfi_escape 0x16, 30, 17, 0x8e, 0, 0x0e, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x1a, 0x23, 0x88, 0x80, 0x01, 0x06
	.zero HOOK_AREAS * HOOK_AREA + HOOK_PART	/* areas_begin() */
	.cfi_endproc
	.size hooks_region, HOOK_AREAS * HOOK_AREA + HOOK_PART

	.text
/* w17: number of the function, from its gate. x9 to x17 are free to use. */
	.globl hooks_entry
	.hidden hooks_entry
	.type hooks_entry, %function
	.balign 64
hooks_entry:
	.cfi_startproc
	hint #34	/* bti c */
	sub sp, sp, #ARGS
	.cfi_def_cfa_offset ARGS
	stp x0, x1, [sp]
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	stp x8, x30, [sp, #64]
	.cfi_offset x30, -8
	adrp x16, engine_hot
	add x16, x16, :lo12:engine_hot
	add x1, x16, x17, lsl #4
	mov x0, sp
	ldr w16, [x1, #HOT_FLAGS]
	tbnz w16, #HOT_REGS_SHIFT, 2f
	bl call_enter
1:	mov x17, x0	/* the stub, or 0 */
	mov x16, x1
	ldp x0, x1, [sp]
	ldp x2, x3, [sp, #16]
	ldp x4, x5, [sp, #32]
	ldp x6, x7, [sp, #48]
	ldp x8, x30, [sp, #64]
	.cfi_restore x30
	add sp, sp, #ARGS
	.cfi_def_cfa_offset 0
	cbz x17, 3f
	br x17
3:	br x16
	.cfi_def_cfa_offset ARGS
	.cfi_offset x30, -8
2:	/* The same, but with the registers that functions preserve stored below the arguments. */
	sub sp, sp, #KEPT
	.cfi_def_cfa_offset ARGS + KEPT
	stp x19, x20, [sp]
	stp x21, x22, [sp, #16]
	stp x23, x24, [sp, #32]
	stp x25, x26, [sp, #48]
	stp x27, x28, [sp, #64]
	str x29, [sp, #80]
	bl call_enter
	add sp, sp, #KEPT
	.cfi_def_cfa_offset ARGS
	b 1b
	.cfi_endproc
	.size hooks_entry, . - hooks_entry

/* A stub jumps here. x10: the stub's frame. sp is the caller's. */
	.globl hooks_return
	.hidden hooks_return
	.type hooks_return, %function
	.balign 64
hooks_return:
	.cfi_startproc
	.cfi_def_cfa sp, 8
	.cfi_val_offset sp, -8
	.cfi_escape 0x16, 30, 3, 0x7a, FRAME_RA, 0x06	/* pc = *(x10 + FRAME_RA) */
	hint #36	/* bti j */
	mov x11, #-1
	str x11, [x10]
	ldr x30, [x10, #FRAME_RA]
	.cfi_def_cfa sp, 0
	.cfi_same_value sp
	.cfi_same_value x30
	sub sp, sp, #32
	.cfi_def_cfa_offset 32
	stp x0, x1, [sp]
	str x30, [sp, #24]	/* right below the caller's stack, as at the entry */
	.cfi_offset x30, -8
	mov x1, x0
	mov x0, x10
	bl call_leave
	ldp x0, x1, [sp]
	ldr x30, [sp, #24]
	.cfi_restore x30
	add sp, sp, #32
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size hooks_return, . - hooks_return

	.section .note.GNU-stack, "", %progbits
