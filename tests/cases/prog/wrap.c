/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wrap.c - a library that defines functions of CUDA's own names, as interposers do: cudaMalloc
 * calls the real one, cudaFree and cudaStreamQuery go on to it by a jump. One call of the
 * program must be one row.
 */
#include <cuda_runtime_api.h>

#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT cudaError_t cudaMalloc(void **p, size_t size)
{
	static cudaError_t (*real)(void **, size_t);

	if (!real)
		real = (cudaError_t(*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
	return real(p, size);
}

void *wrap_real_free, *wrap_real_query;

__attribute__((constructor)) static void look_up(void)
{
	wrap_real_free = dlsym(RTLD_NEXT, "cudaFree");
	wrap_real_query = dlsym(RTLD_NEXT, "cudaStreamQuery");
}

#if defined(__x86_64__)
#define JUMP(name, to)                                                                          \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
		"	push %rbp\n	mov %rsp, %rbp\n	pop %rbp\n"                                      \
		"	mov " #to "@GOTPCREL(%rip), %rax\n	jmp *(%rax)\n.size " #name      \
		", . - " #name "\n")
#else
#define JUMP(name, to)                                                                          \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" \
		"	adrp x16, :got:" #to "\n	ldr x16, [x16, :got_lo12:" #to          \
		"]\n	ldr x16, [x16]\n"                                                          \
		"	br x16\n.size " #name ", . - " #name "\n")
#endif
JUMP(cudaFree, wrap_real_free);
JUMP(cudaStreamQuery, wrap_real_query);
