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
#else
uint64_t tools_invoke(void *code, uint64_t *regs, uint64_t *stack)
{
	(void)code, (void)regs, (void)stack;
	return 0; /* nobody watches: the stubs of this architecture do not come here */
}
#endif
