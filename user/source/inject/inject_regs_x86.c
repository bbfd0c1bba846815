/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_regs_x86.c - see inject_regs.h; x86-64.
 *
 * How a system call is restarted (arch_do_signal_or_restart of the kernel's
 * arch/x86/kernel/signal.c): after the stop the kernel looks at orig_rax, and if it is not
 * negative at rax, and steps back over the syscall instruction. So putting back both in a stop
 * of the same kind is all. What restart_syscall(2) goes on with stays as it is as long as no
 * handler returns and no other sleep is interrupted in the thread.
 */
#if defined(__x86_64__)

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "../host.h"
#include "inject_regs.h"

#define XSTATE_MAX 65536
#define EFLAGS_ODD 0x44500ull /* TF, DF, NT, AC: not to be set when a function is called */
#define UC_FP 1
#define UC_SS 2
#define UC_STRICT_SS 4
#define XSTATE_FLAGS 512 /* offset of xstate_bv */
/* of struct _fpx_sw_bytes; as a register set its first word is the mask of features */
#define XSTATE_SOFTWARE 464

/* include/linux/errno.h of the kernel; never seen by programs */
#define RESTARTSYS 512
#define RESTARTNOINTR 513
#define RESTARTNOHAND 514
#define RESTART_RESTARTBLOCK 516

struct frame { /* struct rt_sigframe of the kernel, from the word after its return address */
	struct {
		uint64_t flags, link;
		stack_t stack;
		struct sigcontext mcontext;
		uint64_t mask;
	} uc;
};

static const uint8_t stub[] = {
	0x0f, 0x05, /* syscall */
	0x48, 0x89,
	0xc7, /* mov %rax, %rdi */
	0x44, 0x89,
	0x23, /* mov %r12d, (%rbx) */
	0xb8, SYS_rt_sigreturn,
	0,    0,
	0,	    /* mov $SYS_rt_sigreturn, %eax */
	0x0f, 0x05, /* syscall */
	0xf4,	    /* hlt */
};

static const struct user_regs_struct *of(const struct inject_regs *r)
{
	return (const struct user_regs_struct *)r->general;
}

static int inject_regs_x86_get(pid_t tid, struct user_regs_struct *u)
{
	struct iovec io = { .iov_base = u, .iov_len = sizeof(*u) };

	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) < 0 ? -errno : 0;
}

static int inject_regs_x86_set(pid_t tid, const struct user_regs_struct *u)
{
	struct iovec io = { .iov_base = (void *)u, .iov_len = sizeof(*u) };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io) < 0 ? -errno : 0;
}

int inject_regs_save(pid_t tid, struct inject_regs *r)
{
	struct iovec io = { .iov_len = XSTATE_MAX };
	int err;

	_Static_assert(sizeof(struct user_regs_struct) <= sizeof(r->general), "they fit");
	memset(r, 0, sizeof(*r));
	r->general_bytes = sizeof(struct user_regs_struct);
	err = inject_regs_x86_get(tid, (struct user_regs_struct *)r->general);
	if (err)
		return err;
	io.iov_base = calloc(1, XSTATE_MAX);
	if (!io.iov_base)
		return -ENOMEM;
	r->sets[0] = (struct inject_set){ .type = NT_X86_XSTATE, .bytes = io.iov_base };
	r->nsets = 1;
	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io) < 0)
		return -errno;
	r->sets[0].len = io.iov_len;
	/* one that fills the buffer may have been cut */
	return io.iov_len > XSTATE_FLAGS + 8 && io.iov_len < XSTATE_MAX ? 0 : -ENOTSUP;
}

static int set_xstate(pid_t tid, const void *bytes, size_t len)
{
	struct iovec io = { .iov_base = (void *)bytes, .iov_len = len };

	return ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &io) < 0 ? -errno : 0;
}

int inject_regs_restore(pid_t tid, const struct inject_regs *r)
{
	int err = set_xstate(tid, r->sets[0].bytes, r->sets[0].len);

	return err ? err : inject_regs_x86_set(tid, of(r));
}

void inject_regs_free(struct inject_regs *r)
{
	for (int i = 0; i < r->nsets; i++)
		free(r->sets[i].bytes);
	memset(r, 0, sizeof(*r));
}

void inject_regs_thread(const struct inject_regs *r, struct inject_thread *t)
{
	const struct user_regs_struct *u = of(r);

	t->ip = u->rip;
	t->sp = u->rsp;
	t->bp = u->rbp;
	t->regs[0] = u->rbx;
	t->regs[1] = u->r12;
	t->regs[2] = u->r13;
	t->regs[3] = u->r14;
	t->regs[4] = u->r15;
}

uint64_t inject_regs_tls(pid_t tid, const struct inject_regs *r)
{
	(void)tid;
	return of(r)->fs_base;
}

long inject_regs_syscall(const struct inject_regs *r)
{
	return (long)of(r)->orig_rax >= 0 ? (long)of(r)->orig_rax : -1;
}

bool inject_regs_eintr(const struct inject_regs *r)
{
	return (long)of(r)->orig_rax >= 0 && (long)of(r)->rax == -EINTR;
}

static void redo(struct user_regs_struct *u)
{
	u->rax = u->orig_rax;
	u->rip -= 2;
	u->orig_rax = (unsigned long long)-1;
}

void inject_regs_redo(struct inject_regs *r)
{
	redo((struct user_regs_struct *)r->general);
}

/* As if the kernel had prepared the restart; what sleeps for a time then sleeps from the beginning. */
static void plain(const struct inject_regs *r, struct user_regs_struct *u)
{
	*u = *of(r);
	if ((long)u->orig_rax < 0)
		return;
	switch (-(long)u->rax) {
	case RESTARTSYS:
	case RESTARTNOINTR:
	case RESTARTNOHAND:
	case RESTART_RESTARTBLOCK: redo(u);
	}
	u->orig_rax = (unsigned long long)-1;
}

int inject_regs_restore_plain(pid_t tid, const struct inject_regs *r)
{
	struct user_regs_struct u;
	int err;

	plain(r, &u);
	err = set_xstate(tid, r->sets[0].bytes, r->sets[0].len);
	return err ? err : inject_regs_x86_set(tid, &u);
}

bool inject_regs_native(const struct inject_regs *r)
{
	return of(r)->cs == 0x33;
}

bool inject_regs_shadow(pid_t tid)
{
	char text[8192];

	return !host_status(tid, text, sizeof(text)) && host_shadow_stack(text);
}

/* The vector state that a signal handler finds, but for the protection keys. */
static int set_clean_xstate(pid_t tid, const struct inject_regs *r)
{
	size_t len = r->sets[0].len;
	uint8_t *bytes = malloc(len);
	const uint32_t mxcsr = 0x1f80;
	uint64_t have;
	int err;

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, r->sets[0].bytes, len);
	memcpy(&have, bytes + XSTATE_FLAGS, 8);
	have &= 1ull << 9; /* PKRU */
	memcpy(bytes + XSTATE_FLAGS, &have, 8);
	memcpy(bytes + 24, &mxcsr, 4);
	err = set_xstate(tid, bytes, len);
	free(bytes);
	return err;
}

static void set_args(struct user_regs_struct *u, const struct inject_code_at *at,
		     const uint64_t args[6])
{
	u->rbx = at->word_at; /* functions keep these two */
	u->r12 = at->word;
	u->rdi = args[0];
	u->rsi = args[1];
	u->rdx = args[2];
	u->rcx = u->r10 = args[3];
	u->r8 = args[4];
	u->r9 = args[5];
	u->orig_rax = (unsigned long long)-1;
	u->eflags &= ~EFLAGS_ODD;
}

int inject_regs_set_syscall(pid_t tid, const struct inject_regs *r, const struct inject_code_at *at,
			    uint64_t sp, long nr, const uint64_t args[6])
{
	struct user_regs_struct u = *of(r);

	set_args(&u, at, args);
	u.rip = at->syscall;
	u.rsp = sp;
	u.rax = (unsigned long long)nr;
	return inject_regs_x86_set(tid, &u);
}

int inject_regs_set_call(pid_t tid, const struct inject_regs *r, const struct inject_code_at *at,
			 uint64_t fn, uint64_t sp, const uint64_t args[6])
{
	struct user_regs_struct u = *of(r);
	int err = set_clean_xstate(tid, r); /* where it returns to stands at sp already */

	if (err)
		return err;
	set_args(&u, at, args);
	u.rip = fn;
	u.rsp = sp;
	u.rbp = 0; /* where unwinders end */
	u.rax = 0;
	return inject_regs_x86_set(tid, &u);
}

int inject_regs_get(pid_t tid, long *nr, uint64_t *sp, int64_t *result, int64_t *handed)
{
	struct user_regs_struct u;
	int err = inject_regs_x86_get(tid, &u);

	if (err)
		return err;
	*nr = (long)u.orig_rax;
	*sp = u.rsp;
	*result = (int64_t)u.rax;
	*handed = (int64_t)u.rdi;
	return 0;
}

int inject_regs_replace(pid_t tid, uint64_t ip, uint64_t sp)
{
	struct user_regs_struct u;
	int err = inject_regs_x86_get(tid, &u);

	u.orig_rax = SYS_getpid;
	u.rip = ip;
	u.rsp = sp;
	return err ? err : inject_regs_x86_set(tid, &u);
}

int inject_regs_jump(pid_t tid, uint64_t ip, uint64_t sp)
{
	struct user_regs_struct u;
	int err = inject_regs_x86_get(tid, &u);

	u.orig_rax = (unsigned long long)-1;
	u.rip = ip;
	u.rsp = sp;
	return err ? err : inject_regs_x86_set(tid, &u);
}

/* The vector state as the kernel writes it for a handler: the register set, with its size said
 * in a gap of it and after it (save_xstate_epilog of arch/x86/kernel/fpu/signal.c). */
static void put_xstate(const struct inject_regs *r, uint8_t *to)
{
	const uint32_t magic2 = FP_XSTATE_MAGIC2;
	size_t len = r->sets[0].len;
	struct _fpx_sw_bytes sw = {
		.magic1 = FP_XSTATE_MAGIC1,
		.extended_size = (uint32_t)(len + sizeof(magic2)),
		.xstate_size = (uint32_t)len,
	};

	memcpy(to, r->sets[0].bytes, len);
	memcpy(&sw.xstate_bv, to + XSTATE_SOFTWARE, 8);
	memcpy(to + XSTATE_SOFTWARE, &sw, sizeof(sw));
	memcpy(to + len, &magic2, sizeof(magic2));
}

ssize_t inject_regs_frame(const struct inject_regs *r, uint64_t mask, uint64_t top, uint64_t ret,
			  void *buf, size_t size, uint64_t *at, uint64_t *sp)
{
	uint64_t vector = (top - r->sets[0].len - 64) & ~63ull;
	/* beyond: struct siginfo, which is not read */
	uint64_t uc = (vector - sizeof(struct frame) - 256) & ~63ull;
	struct user_regs_struct u;
	struct frame f = { .uc.flags = UC_FP | UC_SS | UC_STRICT_SS };
	struct sigcontext *c = &f.uc.mcontext;

	*at = uc - 8;
	*sp = uc;
	if (top - *at > size)
		return -E2BIG;
	plain(r, &u);
	c->r8 = u.r8, c->r9 = u.r9, c->r10 = u.r10, c->r11 = u.r11;
	c->r12 = u.r12, c->r13 = u.r13, c->r14 = u.r14, c->r15 = u.r15;
	c->rdi = u.rdi, c->rsi = u.rsi, c->rbp = u.rbp, c->rbx = u.rbx;
	c->rdx = u.rdx, c->rax = u.rax, c->rcx = u.rcx, c->rsp = u.rsp;
	c->rip = u.rip;
	c->eflags = u.eflags;
	c->cs = (uint16_t)u.cs;
	c->__pad0 = (uint16_t)u.ss; /* where the kernel has ss */
	c->fpstate = (struct _fpstate *)vector;
	f.uc.mask = mask;
	/* not a flag of sigaltstack(2): the stack that is set stays */
	f.uc.stack.ss_flags = 1 << 30;
	memset(buf, 0, top - *at);
	memcpy(buf, &ret, 8);
	memcpy((uint8_t *)buf + 8, &f, sizeof(f));
	put_xstate(r, (uint8_t *)buf + (vector - *at));
	return (ssize_t)(top - *at);
}

const void *inject_regs_stub(size_t *len, size_t *ret)
{
	*len = sizeof(stub);
	*ret = 2;
	return stub;
}

static ssize_t inject_regs_x86_find(const uint8_t *code, size_t len, const void *what, size_t n)
{
	const uint8_t *at = memmem(code, len, what, n);

	return at ? at - code : -1;
}

ssize_t inject_regs_find_syscall(const uint8_t *code, size_t len)
{
	return inject_regs_x86_find(code, len, "\x0f\x05\xc3", 3);
}

ssize_t inject_regs_find_sigreturn(const uint8_t *code, size_t len)
{
	return inject_regs_x86_find(code, len, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
}

bool inject_regs_is_call(const uint8_t *code, size_t len)
{
	if (len >= 5 && code[len - 5] == 0xe8)
		return true;
	for (size_t n = 2; n <= 7 && n <= len; n++)
		if (code[len - n] == 0xff && (code[len - n + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

bool inject_regs_last_jump(const uint8_t *code, size_t len, int64_t *far)
{
	int32_t distance;

	if (len < 5 || code[len - 5] != 0xe9)
		return false;
	memcpy(&distance, code + len - 4, 4);
	*far = distance;
	return true;
}

#endif
