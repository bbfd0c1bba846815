/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_start.c - the helper's entry point. The one that the compiler brings asks for a
 * __libc_start_main of the C library that it was built with; this one takes that of the first
 * version, which every later one still has.
 */
#include <stddef.h>

int main(int, char **);
int start_main_first(int (*)(int, char **), int, char **, void (*)(void), void (*)(void),
		     void (*)(void), void *);

#if defined(__x86_64__)
__asm__(".symver start_main_first, __libc_start_main@GLIBC_2.2.5\n"
	".global _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rdx, %rsi\n" /* what the loader wants run at exit */
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call counters_start\n"
	"	hlt\n");
#elif defined(__aarch64__)
__asm__(".symver start_main_first, __libc_start_main@GLIBC_2.17\n"
	".global _start\n"
	".type _start, %function\n"
	"_start:\n"
	"	mov x29, #0\n"
	"	mov x30, #0\n"
	"	mov x1, x0\n"
	"	mov x0, sp\n"
	"	bl counters_start\n"
	"	brk #0\n");
#endif

/* stack: argc, argv[], as the kernel leaves them */
__attribute__((noreturn, used)) void counters_start(void **stack, void (*at_exit)(void));
void counters_start(void **stack, void (*at_exit)(void))
{
	start_main_first(main, (int)(size_t)stack[0], (char **)(stack + 1), NULL, NULL, at_exit,
			 stack);
	__builtin_trap();
}
