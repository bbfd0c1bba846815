/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine.c - see confine.h. The filter is classic BPF, made here of a list: libseccomp would be
 * one more library to link statically, for 30 lines. A number that is not in the list is refused
 * and does not kill: a C library that tries something new goes on without.
 *
 * Not under sanitizers, which trace their own process at its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../self/caps.h"
#include "confine.h"
#include "safe_open.h"
#include "../msg.h"

#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_OFF 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define CONFINE_OFF 1
#endif
#endif
#ifndef CONFINE_OFF
#define CONFINE_OFF 0
#endif

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture is this?"
#endif

static const int always[] = {
	/* files that are open, and their names */
	SYS_read,
	SYS_readv,
	SYS_pread64,
	SYS_preadv,
	SYS_write,
	SYS_writev,
	SYS_pwrite64,
	SYS_pwritev,
	SYS_lseek,
	SYS_close,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_statfs,
	SYS_fstatfs,
	SYS_fcntl,
	SYS_flock,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_fsync,
	SYS_fdatasync,
	SYS_fadvise64,
	SYS_getcwd,
	SYS_readlinkat,
	SYS_faccessat,
	SYS_fgetxattr,
	SYS_getdents64,
	SYS_dup,
	SYS_dup3,
	SYS_pipe2,
	SYS_memfd_create,
	/* memory */
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	/* waiting, signals, time */
	SYS_futex,
	SYS_ppoll,
	SYS_pselect6,
	SYS_epoll_create1,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_eventfd2,
	SYS_timerfd_create,
	SYS_timerfd_settime,
	SYS_timerfd_gettime,
	SYS_signalfd4,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_rt_sigpending,
	SYS_rt_sigtimedwait,
	SYS_sigaltstack,
	SYS_restart_syscall,
	SYS_wait4,
	SYS_waitid,
	SYS_pidfd_open,
	SYS_nanosleep,
	SYS_clock_nanosleep,
	SYS_clock_gettime,
	SYS_clock_getres,
	SYS_gettimeofday,
	SYS_adjtimex,
	SYS_setitimer,
	/* the process itself and its threads */
	SYS_getpid,
	SYS_gettid,
	SYS_getppid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_capget,
	SYS_capset,
	SYS_uname,
	SYS_sysinfo,
	SYS_getrandom,
	SYS_getrlimit,
	SYS_prlimit64,
	SYS_getrusage,
	SYS_sched_getaffinity,
	SYS_sched_yield,
	SYS_set_robust_list,
	SYS_set_tid_address,
	SYS_exit,
	SYS_exit_group,
	SYS_umask,
#ifdef SYS_rseq
	SYS_rseq,
#endif
#ifdef SYS_membarrier
	SYS_membarrier,
#endif
#ifdef SYS_faccessat2
	SYS_faccessat2,
#endif
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
#endif
/* the older names of some, which newer architectures do not have; SYS_open itself is looked at
 * below */
#ifdef SYS_open
	SYS_stat,
	SYS_lstat,
	SYS_access,
	SYS_readlink,
	SYS_dup2,
	SYS_pipe,
	SYS_poll,
	SYS_select,
	SYS_epoll_create,
	SYS_epoll_wait,
	SYS_time,
	SYS_getpgrp,
#endif
};

static const int files[] = {
	SYS_renameat, SYS_renameat2, SYS_unlinkat,  SYS_linkat,
	SYS_fchmod,   SYS_fchown,    SYS_utimensat, SYS_mkdirat,
#ifdef SYS_open
	SYS_rename,   SYS_unlink,    SYS_link,	    SYS_mkdir,
#endif
};

static const int network[] = {
	SYS_socket,	SYS_connect,	 SYS_bind,	  SYS_sendto,	SYS_recvfrom,
	SYS_sendmsg,	SYS_recvmsg,	 SYS_sendmmsg,	  SYS_recvmmsg, SYS_setsockopt,
	SYS_getsockopt, SYS_getsockname, SYS_getpeername, SYS_shutdown,
};

static const int child[] = {
	SYS_sendto,
	SYS_recvfrom,
	SYS_sendmsg,
	SYS_recvmsg,
	SYS_shutdown,
	SYS_kill,
#ifdef SYS_pidfd_send_signal
	SYS_pidfd_send_signal,
#endif
};

#define MAX_INSNS 512

struct program {
	struct sock_filter insns[MAX_INSNS];
	unsigned short n;
};

static void confine_add(struct program *p, struct sock_filter insn)
{
	if (p->n < MAX_INSNS)
		p->insns[p->n++] = insn;
}

#define STMT(code, k) ((struct sock_filter)BPF_STMT(code, k))
#define JUMP(code, k, jt, jf) ((struct sock_filter)BPF_JUMP(code, k, jt, jf))
#define FIELD(name) STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
/* the lower half of an argument: both architectures are little-endian */
#define ARG(i) FIELD(args[i])
#define RET(what) STMT(BPF_RET | BPF_K, what)
#define REFUSE(err) RET(SECCOMP_RET_ERRNO | (err))

static void allow(struct program *p, const int *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		confine_add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)list[i], 0, 1));
		confine_add(p, RET(SECCOMP_RET_ALLOW));
	}
}

/* The call only if of this argument's bits in `mask` those of `value` are set, and no others;
 * else it fails with `err`. */
static void allow_if(struct program *p, int nr, int arg, uint32_t mask, uint32_t value, int err)
{
	confine_add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 5));
	confine_add(p, ARG(arg));
	confine_add(p, STMT(BPF_ALU | BPF_AND | BPF_K, mask));
	confine_add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
	confine_add(p, RET(SECCOMP_RET_ALLOW));
	confine_add(p, REFUSE((uint32_t)err));
}

static void confine_make(struct program *p, unsigned what)
{
	const uint32_t writes = what & CONFINE_FILES ? 0 : O_ACCMODE | O_CREAT | O_TRUNC;

	p->n = 0;
	confine_add(p, FIELD(arch));
	confine_add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	confine_add(p, RET(SECCOMP_RET_KILL_PROCESS));
	confine_add(p, FIELD(nr));
	allow(p, always, ARRAY_LEN(always));
	if (what & CONFINE_FILES)
		allow(p, files, ARRAY_LEN(files));
	if (what & CONFINE_NETWORK)
		allow(p, network, ARRAY_LEN(network));
	if (what & CONFINE_CHILD)
		allow(p, child, ARRAY_LEN(child));
	allow_if(p, SYS_openat, 2, writes, 0, EPERM);
#ifdef SYS_open
	allow_if(p, SYS_open, 1, writes, 0, EPERM);
#endif
	/* threads, no processes; the C library falls back to clone(2), whose flags can be seen */
	allow_if(p, SYS_clone, 0, CLONE_THREAD, CLONE_THREAD, EPERM);
	allow_if(p, SYS_clone3, 0, 0, 1, ENOSYS);
	/* abort(3), and nobody else */
	allow_if(p, SYS_tgkill, 0, ~0u, (uint32_t)getpid(), EPERM);
	allow_if(p, SYS_prctl, 0, ~0u, PR_SET_NAME, EPERM);
	/* whether it is a terminal, and how wide it is. No other requests are allowed: some can
	 * put input into a terminal. */
	confine_add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4));
	confine_add(p, ARG(1));
	confine_add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCGETS, 1, 0));
	confine_add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGWINSZ, 0, 1));
	confine_add(p, RET(SECCOMP_RET_ALLOW));
	confine_add(p, REFUSE(EPERM));
}

void confine(unsigned what)
{
	static struct program p;
	struct sock_fprog prog = { .filter = p.insns };
	int err;

	if (CONFINE_OFF || p.n)
		return;
	confine_make(&p, what);
	prog.len = p.n;
	err = caps_keep(CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_DAC_READ_SEARCH) |
			CAPS_BIT(CAP_FOWNER) | safe_open_caps());
	if (!err)
		err = caps_no_new();
	if (!err && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0))
		err = -errno;
	/* a sandbox around us may forbid filters; it has its own */
	if (err)
		msg_verb("privileges cannot be given up: %s", strerror(-err));
}

void confine_drop(void)
{
	int err = CONFINE_OFF ? 0 : caps_keep(0);

	if (err)
		msg_verb("capabilities cannot be given up: %s", strerror(-err));
}
