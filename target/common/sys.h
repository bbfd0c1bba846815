/* SPDX-License-Identifier: BSD-2-Clause */
/* sys.h - system calls without libc and without errno: for code that runs on the program's threads. */
#ifndef CT_HOOKS_SYS_H
#define CT_HOOKS_SYS_H

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The result, or -errno. */
static inline long sys_call(long n, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "how are system calls made on this architecture?"
#endif
}

/* Returns whether the 8 bytes at the address can be read. rt_sigprocmask() reads them before it
 * looks at `how`, which is invalid here. Nearly every sandbox allows this call, and it changes
 * nothing. */
static inline bool sys_readable(unsigned long address)
{
	return address && sys_call(SYS_rt_sigprocmask, -1, (long)address, 0, 8, 0, 0) != -EFAULT;
}

/* Copies at most n bytes of this process's memory, which another thread may unmap at this moment.
 * Returns how many bytes it has copied, or -errno. -EFAULT: nothing is mapped there. A sandbox may
 * not allow the system call. */
static inline long sys_copy(void *to, unsigned long from, unsigned long n)
{
	struct iovec here = { to, n }, there = { (void *)from, n };

	return sys_call(SYS_process_vm_readv, sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0), (long)&here,
			1, (long)&there, 1, 0);
}

#endif
