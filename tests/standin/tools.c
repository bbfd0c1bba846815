/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools.c - how calls are watched: part of both libraries. The exported functions (stubs.sh)
 * come here when somebody does; what the caller passed in registers and on its stack is handed
 * on, and passed to the function as it was.
 */
#include "standin.h"

HIDDEN uint64_t tools_call(const char *name, void *code, uint64_t *regs, uint64_t *stack);
HIDDEN uint64_t tools_invoke(void *code, uint64_t *regs, uint64_t *stack);

uint64_t tools_call(const char *name, void *code, uint64_t *regs, uint64_t *stack)
{
	__typeof__(tools_at->call) call =
		tools_at ? __atomic_load_n(&tools_at->call, __ATOMIC_ACQUIRE) : NULL;

	return call ? call(tools_driver, name, code, regs, stack, tools_invoke)
		    : tools_invoke(code, regs, stack);
}

#if defined(__x86_64__)
/* Twelve words of the caller's stack are passed on: more than any function has. */
__asm__(".text\n"
	".hidden tools_enter\n"
	".globl tools_enter\n"
	"tools_enter:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $48, %rsp\n"
	"	mov %rdi, (%rsp)\n"
	"	mov %rsi, 8(%rsp)\n"
	"	mov %rdx, 16(%rsp)\n"
	"	mov %rcx, 24(%rsp)\n"
	"	mov %r8, 32(%rsp)\n"
	"	mov %r9, 40(%rsp)\n"
	"	mov %rax, %rdi\n"
	"	mov %r11, %rsi\n"
	"	mov %rsp, %rdx\n"
	"	lea 16(%rbp), %rcx\n"
	"	call tools_call\n"
	"	leave\n"
	"	ret\n"
	".hidden tools_invoke\n"
	".globl tools_invoke\n"
	"tools_invoke:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $96, %rsp\n"
	"	mov %rdi, %r11\n"
	"	mov %rsi, %r10\n"
	"	mov %rdx, %rsi\n"
	"	mov %rsp, %rdi\n"
	"	mov $12, %ecx\n"
	"	cld\n"
	"	rep movsq\n"
	"	mov (%r10), %rdi\n"
	"	mov 8(%r10), %rsi\n"
	"	mov 16(%r10), %rdx\n"
	"	mov 24(%r10), %rcx\n"
	"	mov 32(%r10), %r8\n"
	"	mov 40(%r10), %r9\n"
	"	call *%r11\n"
	"	leave\n"
	"	ret\n");
#elif defined(__aarch64__)
/*
 * The eight registers of arguments, and twelve words of the caller's stack after them, so that the
 * seventh argument, with which `stack` begins, is the one after the six of `regs` here too.
 */
__asm__(".text\n"
	".hidden tools_enter\n"
	".globl tools_enter\n"
	"tools_enter:\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	mov x29, sp\n"
	"	sub sp, sp, #160\n"
	"	stp x0, x1, [sp]\n"
	"	stp x2, x3, [sp, #16]\n"
	"	stp x4, x5, [sp, #32]\n"
	"	stp x6, x7, [sp, #48]\n"
	"	add x9, x29, #16\n"
	"	add x10, sp, #64\n"
	"	mov x11, #6\n"
	"1:	ldp x12, x13, [x9], #16\n"
	"	stp x12, x13, [x10], #16\n"
	"	subs x11, x11, #1\n"
	"	b.ne 1b\n"
	"	mov x0, x16\n"
	"	mov x1, x17\n"
	"	mov x2, sp\n"
	"	add x3, sp, #48\n"
	"	bl tools_call\n"
	"	mov sp, x29\n"
	"	ldp x29, x30, [sp], #16\n"
	"	ret\n"
	".hidden tools_invoke\n"
	".globl tools_invoke\n"
	"tools_invoke:\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-16]!\n"
	"	mov x29, sp\n"
	"	sub sp, sp, #96\n"
	"	mov x16, x0\n"
	"	mov x17, x1\n"
	"	add x9, x17, #64\n"
	"	mov x10, sp\n"
	"	mov x11, #6\n"
	"1:	ldp x12, x13, [x9], #16\n"
	"	stp x12, x13, [x10], #16\n"
	"	subs x11, x11, #1\n"
	"	b.ne 1b\n"
	"	ldp x0, x1, [x17]\n"
	"	ldp x2, x3, [x17, #16]\n"
	"	ldp x4, x5, [x17, #32]\n"
	"	ldp x6, x7, [x17, #48]\n"
	"	blr x16\n"
	"	mov sp, x29\n"
	"	ldp x29, x30, [sp], #16\n"
	"	ret\n");
#endif
