/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_needs.h - the system calls that injection makes in a process, and what it brings there: the loader, libc when
 * it starts a thread, hooks, the agent, and the object for NVTX. A program with a filter is asked for all of them
 * beforehand, because some filters kill at a call that they do not know. tests/cases/inject.sh has a program that allows
 * these alone.
 */
#ifndef CT_INJECT_NEEDS_H
#define CT_INJECT_NEEDS_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_rseq
#if defined(__x86_64__)
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif

/* Where a filter looks at arguments, those that matter are given as they will be. may_fail: a filter may answer with an
 * error, with which our code makes do. */
static const struct inject_need {
	const char *name;
	long nr;
	bool may_fail;
	uint64_t args[6];
} inject_needs[] = {
	/* what injection itself calls, and what loading a library needs */
	{ "mmap",
	  SYS_mmap,
	  false,
	  { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ull } },
	{ "mmap (executable)", SYS_mmap, false, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, 3 } },
	{ "mprotect", SYS_mprotect, false, { 4096, 4096, PROT_READ } },
	{ "munmap", SYS_munmap, false, { 4096, 4096 } },
	{ "memfd_create", SYS_memfd_create, false, { 4096, 1 } },
	{ "socketpair", SYS_socketpair, false, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC } },
	{ "close", SYS_close, false, { 3 } },
	{ "openat", SYS_openat, false, { (uint64_t)-100 } },
	{ "read", SYS_read, false, { 3 } },
	{ "fstat", SYS_fstat, false, { 3 } },
	{ "newfstatat", SYS_newfstatat, false, { 3 } },
	{ "sendto", SYS_sendto, false, { 3 } },
	{ "getpid", SYS_getpid, false, { 0 } },
	{ "rt_sigreturn", SYS_rt_sigreturn, false, { 0 } },
	{ "clone", SYS_clone, false, { 0x3d0f00 } },
	/* what the kernel makes of a wait with a time-out that a stop has interrupted */
	{ "restart_syscall", SYS_restart_syscall, false, { 0 } },
	{ "brk", SYS_brk, true, { 0 } },
	{ "mremap", SYS_mremap, true, { 4096, 4096, 8192 } },
	/* a thread of ours: libc makes do with clone */
	{ "clone3", SYS_clone3, true, { 4096, 88 } },
	{ "set_robust_list", SYS_set_robust_list, true, { 4096, 24 } },
	{ "rseq", SYS_rseq, true, { 4096, 32 } },
	{ "rt_sigaction", SYS_rt_sigaction, true, { 33 } },
	{ "rt_sigprocmask", SYS_rt_sigprocmask, false, { 0, 4096, 4096, 8 } },
	{ "madvise", SYS_madvise, true, { 4096, 4096, MADV_DONTNEED } },
	{ "futex", SYS_futex, false, { 4096, FUTEX_WAIT } },
	{ "gettid", SYS_gettid, false, { 0 } },
	{ "tgkill", SYS_tgkill, true, { 1, 1 } },
	{ "exit", SYS_exit, false, { 0 } },
	{ "prctl", SYS_prctl, true, { PR_SET_NAME, 4096 } },
	{ "sched_yield", SYS_sched_yield, true, { 0 } },
	{ "nanosleep", SYS_nanosleep, true, { 4096 } },
	{ "clock_nanosleep", SYS_clock_nanosleep, true, { 1, 0, 4096 } },
	{ "clock_gettime", SYS_clock_gettime, true, { 1, 4096 } },
	/* its descriptors, and messages */
	{ "socket", SYS_socket, true, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK } },
	{ "bind", SYS_bind, true, { 3 } },
	{ "listen", SYS_listen, true, { 3 } },
	{ "accept4", SYS_accept4, true, { 3 } },
	{ "connect", SYS_connect, true, { 3 } },
	{ "getsockname", SYS_getsockname, true, { 3 } },
	{ "getsockopt", SYS_getsockopt, true, { 3, SOL_SOCKET, SO_PEERCRED } },
	{ "setsockopt", SYS_setsockopt, true, { 3, SOL_SOCKET, SO_SNDBUF } },
	{ "sendmsg", SYS_sendmsg, false, { 3 } },
	{ "recvmsg", SYS_recvmsg, false, { 3 } },
	{ "recvfrom", SYS_recvfrom, false, { 3 } },
#ifdef SYS_poll
	{ "poll", SYS_poll, false, { 4096, 1 } },
#else
	{ "ppoll", SYS_ppoll, false, { 4096, 1 } },
#endif
	{ "pipe2", SYS_pipe2, true, { 4096 } },
	{ "fcntl", SYS_fcntl, true, { 3 } },
	{ "close_range", SYS_close_range, true, { 0, ~0u, 2 } },
	{ "unshare", SYS_unshare, true, { 0x400 } },
	/* what it looks at */
	{ "lseek", SYS_lseek, true, { 3 } },
	{ "pread64", SYS_pread64, true, { 3 } },
	{ "pwrite64", SYS_pwrite64, true, { 3 } },
	{ "getdents64", SYS_getdents64, true, { 3 } },
#ifdef SYS_access
	{ "access", SYS_access, true, { 4096 } },
	{ "readlink", SYS_readlink, true, { 4096 } },
#endif
	{ "faccessat", SYS_faccessat, true, { (uint64_t)-100 } },
	{ "faccessat2", SYS_faccessat2, true, { (uint64_t)-100 } },
	{ "readlinkat", SYS_readlinkat, true, { (uint64_t)-100 } },
	{ "prlimit64", SYS_prlimit64, true, { 0, RLIMIT_AS } },
	{ "process_vm_readv", SYS_process_vm_readv, true, { 1 } },
	{ "membarrier", SYS_membarrier, true, { 0 } },
	{ "kcmp", SYS_kcmp, true, { 1, 1 } },
};

#endif
