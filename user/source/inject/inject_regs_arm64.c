/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_regs_arm64.c - see inject_regs.h; aarch64.
 *
 * How a system call is restarted (do_signal of the kernel's arch/arm64/kernel/signal.c): before
 * the stop the kernel has stepped back to the svc instruction and put back x0, so putting back
 * pc and x0 is all. Only for calls that restart_syscall(2) goes on with does it do more, and
 * after the stop: such threads are not chosen (inject_stop.c). What x0 was of a call that
 * returned EINTR is not to be had, so such a call cannot be made anew.
 */
#if defined(__aarch64__)

#include <asm/sigcontext.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "inject_regs.h"

#ifndef NT_ARM_SSVE
#define NT_ARM_SSVE 0x40b
#endif
#define SET_MAX 65536
#define SVC 0xd4000001u
#define RET 0xd65f03c0u
#define MOV_X8_SIGRETURN 0xd2801168u /* mov x8, #139 */

struct sve_head { /* struct user_sve_header of the kernel */
	uint32_t size, max_size;
	uint16_t vl, max_vl, flags, reserved;
};

static const uint32_t stub[] = {
	SVC,
	0xaa0003e1, /* mov x1, x0 */
	0xb9000274, /* str w20, [x19] */
	MOV_X8_SIGRETURN,
	SVC,
	0xd4200000, /* brk #0 */
};

static const struct user_regs_struct *of(const struct inject_regs *r)
{
	return (const struct user_regs_struct *)r->general;
}

static int get_set(pid_t tid, int type, void *bytes, size_t *len)
{
	struct iovec io = { .iov_base = bytes, .iov_len = *len };

	if (ptrace(PTRACE_GETREGSET, tid, type, &io) < 0)
		return -errno;
	*len = io.iov_len;
	return 0;
}

static int put_set(pid_t tid, int type, const void *bytes, size_t len)
{
	struct iovec io = { .iov_base = (void *)bytes, .iov_len = len };

	return ptrace(PTRACE_SETREGSET, tid, type, &io) < 0 ? -errno : 0;
}

static int inject_regs_arm64_get(pid_t tid, struct user_regs_struct *u)
{
	size_t len = sizeof(*u);

	return get_set(tid, NT_PRSTATUS, u, &len);
}

static int inject_regs_arm64_set(pid_t tid, const struct user_regs_struct *u)
{
	return put_set(tid, NT_PRSTATUS, u, sizeof(*u));
}

/* The vectors, and with SVE the whole of them; what is put back last counts. */
static int save_set(pid_t tid, struct inject_regs *r, int type)
{
	struct inject_set *s = &r->sets[r->nsets];
	int err;

	*s = (struct inject_set){ .type = type, .bytes = calloc(1, SET_MAX), .len = SET_MAX };
	if (!s->bytes)
		return -ENOMEM;
	err = get_set(tid, type, s->bytes, &s->len);
	if (err)
		free(s->bytes);
	else
		r->nsets++;
	return err;
}

int inject_regs_save(pid_t tid, struct inject_regs *r)
{
	struct sve_head head = {};
	size_t len = sizeof(head);
	int err;

	_Static_assert(sizeof(struct user_regs_struct) <= sizeof(r->general), "they fit");
	memset(r, 0, sizeof(*r));
	r->general_bytes = sizeof(struct user_regs_struct);
	err = inject_regs_arm64_get(tid, (struct user_regs_struct *)r->general);
	/* in streaming mode (SME) no ordinary function may be called */
	if (!err && !get_set(tid, NT_ARM_SSVE, &head, &len) && head.size > sizeof(head))
		err = -ENOTSUP;
	if (!err)
		err = save_set(tid, r, NT_PRFPREG);
	if (!err && save_set(tid, r, NT_ARM_SVE) == -ENOMEM)
		err = -ENOMEM;
	return err;
}

int inject_regs_restore(pid_t tid, const struct inject_regs *r)
{
	int err = 0;

	for (int i = 0; i < r->nsets && !err; i++)
		err = put_set(tid, r->sets[i].type, r->sets[i].bytes, r->sets[i].len);
	return err ? err : inject_regs_arm64_set(tid, of(r));
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

	t->ip = u->pc;
	t->sp = u->sp;
	t->bp = u->regs[29];
	t->lr = u->regs[30];
	memcpy(t->regs, &u->regs[19], sizeof(t->regs));
}

uint64_t inject_regs_tls(pid_t tid, const struct inject_regs *r)
{
	uint64_t tls = 0;
	size_t len = sizeof(tls);

	(void)r;
	return get_set(tid, NT_ARM_TLS, &tls, &len) ? 0 : tls;
}

long inject_regs_syscall(const struct inject_regs *r)
{
	(void)r; /* the kernel has forgotten it before the stop */
	return -1;
}

bool inject_regs_eintr(const struct inject_regs *r)
{
	(void)r;
	return false;
}

void inject_regs_redo(struct inject_regs *r)
{
	(void)r;
}

int inject_regs_restore_plain(pid_t tid, const struct inject_regs *r)
{
	return inject_regs_restore(tid, r);
}

bool inject_regs_native(const struct inject_regs *r)
{
	return !(of(r)->pstate & 0x10); /* PSR_MODE32_BIT */
}

bool inject_regs_shadow(pid_t tid)
{
	unsigned long gcs[3] = {}; /* struct user_gcs of the kernel, NT_ARM_GCS */
	size_t len = sizeof(gcs);

	return !get_set(tid, 0x410, gcs, &len) && (gcs[0] & 1);
}

static void set_args(struct user_regs_struct *u, const struct inject_code_at *at,
		     const uint64_t args[6])
{
	memcpy(u->regs, args, 6 * sizeof(*args));
	u->regs[19] = at->word_at; /* functions keep these two */
	u->regs[20] = at->word;
	u->regs[29] = 0; /* where unwinders end */
	u->regs[30] = at->ret;
	u->pstate &= ~0xc00ul; /* BTYPE: what is jumped to need not begin with bti */
}

int inject_regs_set_syscall(pid_t tid, const struct inject_regs *r, const struct inject_code_at *at,
			    uint64_t sp, long nr, const uint64_t args[6])
{
	struct user_regs_struct u = *of(r);

	set_args(&u, at, args);
	u.regs[8] = (uint64_t)nr;
	u.pc = at->syscall;
	u.sp = sp;
	return inject_regs_arm64_set(tid, &u);
}

int inject_regs_set_call(pid_t tid, const struct inject_regs *r, const struct inject_code_at *at,
			 uint64_t fn, uint64_t sp, const uint64_t args[6])
{
	/* FPCR 0 is what a program begins with */
	struct user_fpsimd_struct *clean = calloc(1, sizeof(*clean));
	struct user_regs_struct u = *of(r);
	int err = clean ? put_set(tid, NT_PRFPREG, clean, sizeof(*clean)) : -ENOMEM;

	free(clean);
	if (err)
		return err;
	set_args(&u, at, args);
	u.pc = fn;
	u.sp = sp;
	return inject_regs_arm64_set(tid, &u);
}

int inject_regs_get(pid_t tid, long *nr, uint64_t *sp, int64_t *result, int64_t *handed)
{
	struct user_regs_struct u;
	size_t len = sizeof(int);
	int number = -1, err = inject_regs_arm64_get(tid, &u);

	if (!err)
		err = get_set(tid, NT_ARM_SYSTEM_CALL, &number, &len);
	if (err)
		return err;
	*nr = number;
	*sp = u.sp;
	*result = (int64_t)u.regs[0];
	*handed = (int64_t)u.regs[1];
	return 0;
}

int inject_regs_jump(pid_t tid, uint64_t ip, uint64_t sp)
{
	struct user_regs_struct u;
	int err = inject_regs_arm64_get(tid, &u);

	if (err)
		return err;
	u.pc = ip;
	u.sp = sp;
	return inject_regs_arm64_set(tid, &u);
}

int inject_regs_replace(pid_t tid, uint64_t ip, uint64_t sp)
{
	const int nr = SYS_getpid;
	int err = put_set(tid, NT_ARM_SYSTEM_CALL, &nr, sizeof(nr));

	return err ? err : inject_regs_jump(tid, ip, sp);
}

/* struct rt_sigframe of the kernel; of the vectors the part that all processors have. */
ssize_t inject_regs_frame(const struct inject_regs *r, uint64_t mask, uint64_t top, uint64_t ret,
			  void *buf, size_t size, uint64_t *at, uint64_t *sp)
{
	struct frame {
		siginfo_t info;
		ucontext_t uc;
	} *f = buf;
	const struct user_fpsimd_struct *vectors = r->sets[0].bytes;
	struct fpsimd_context fp = { .head = { .magic = FPSIMD_MAGIC, .size = sizeof(fp) } };
	const struct user_regs_struct *u = of(r);

	(void)ret; /* in x30 */
	*at = *sp = (top - sizeof(*f)) & ~15ull;
	if (top - *at > size)
		return -E2BIG;
	memset(buf, 0, top - *at);
	/* not a flag of sigaltstack(2): the stack that is set stays */
	f->uc.uc_stack.ss_flags = 1 << 30;
	memcpy(&f->uc.uc_sigmask, &mask, sizeof(mask));
	memcpy(f->uc.uc_mcontext.regs, u->regs, sizeof(u->regs));
	f->uc.uc_mcontext.sp = u->sp;
	f->uc.uc_mcontext.pc = u->pc;
	f->uc.uc_mcontext.pstate = u->pstate;
	fp.fpsr = vectors->fpsr;
	fp.fpcr = vectors->fpcr;
	memcpy(fp.vregs, vectors->vregs, sizeof(fp.vregs));
	memcpy(f->uc.uc_mcontext.__reserved, &fp, sizeof(fp));
	return (ssize_t)(top - *at);
}

const void *inject_regs_stub(size_t *len, size_t *ret)
{
	*len = sizeof(stub);
	*ret = 4;
	return stub;
}

static ssize_t inject_regs_arm64_find(const uint8_t *code, size_t len, uint32_t first,
				      uint32_t second)
{
	for (size_t i = 0; i + 8 <= len; i += 4) {
		uint32_t two[2];

		memcpy(two, code + i, 8);
		if (two[0] == first && two[1] == second)
			return (ssize_t)i;
	}
	return -1;
}

ssize_t inject_regs_find_syscall(const uint8_t *code, size_t len)
{
	return inject_regs_arm64_find(code, len, SVC, RET);
}

ssize_t inject_regs_find_sigreturn(const uint8_t *code, size_t len)
{
	return inject_regs_arm64_find(code, len, MOV_X8_SIGRETURN, SVC);
}

bool inject_regs_is_call(const uint8_t *code, size_t len)
{
	uint32_t last;

	if (len < 4)
		return false;
	memcpy(&last, code + len - 4, 4);
	return (last & 0xfc000000) == 0x94000000 || (last & 0xfffffc1f) == 0xd63f0000; /* bl, blr */
}

bool inject_regs_last_jump(const uint8_t *code, size_t len, int64_t *far)
{
	uint32_t last;

	if (len < 4)
		return false;
	memcpy(&last, code + len - 4, 4);
	if ((last & 0xfc000000) != 0x14000000) /* b */
		return false;
	*far = ((int64_t)(int32_t)(last << 6) >> 6) * 4 - 4;
	return true;
}

#endif
