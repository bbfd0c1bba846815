/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_remote.c - see inject_remote.h.
 *
 * Three kinds of stops. The first and the last are PTRACE_EVENT_STOP, which PTRACE_INTERRUPT
 * makes where the kernel looks at signals: there an interrupted system call can be put back so
 * that the kernel restarts it. In between the thread goes from system call stop to system call
 * stop, and its end of a function is told by its entering rt_sigreturn(2) at the frame of ours:
 * no breakpoint, no signal, no word of its code is changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../util/io/bounded.h"
#include "inject_remote.h"

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif
#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

#define SYSCALL_LIMIT_MS 2000
#define WRITE_LIMIT_MS 1000
#define CLOSE_LIMIT_NS 2000000000ull
#define SPINS 40 /* looks at a thread before we sleep between them */
/* a function that works on, and waits for no lock, is given so many times its limit */
#define PATIENCE 10
#define FRAME_MAX (96u << 10)
#define SIGBIT(sig) (1ull << ((sig)-1))
/* What a fault in the thread itself raises: blocked, it would reset the program's handler
 * (force_sig() of the kernel).
 * */
#define SYNCHRONOUS                                                                             \
	(SIGBIT(SIGSEGV) | SIGBIT(SIGBUS) | SIGBIT(SIGILL) | SIGBIT(SIGFPE) | SIGBIT(SIGTRAP) | \
	 SIGBIT(SIGSYS))

enum stop {
	STOP_SYSCALL,
	STOP_EVENT,  /* PTRACE_EVENT_STOP */
	STOP_SIGNAL, /* one is about to be delivered */
};

uint64_t inject_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Returns enum stop and the signal in *sig; -ESRCH: it ended; -ETIME. */
static int wait_stop(struct inject_remote *r, int *sig, uint64_t until_ns)
{
	for (unsigned looks = 0;; looks++) {
		siginfo_t info = {};
		int status;

		/* its end is left to its parent, which may be our own process */
		if (waitid(P_PID, (id_t)r->tid, &info,
			   WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) < 0 ||
		    (info.si_pid && info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)) {
			r->gone = true;
			return -ESRCH;
		}
		if (info.si_pid &&
		    waitpid(r->tid, &status, __WALL | __WNOTHREAD | WNOHANG) == r->tid) {
			r->gone = !WIFSTOPPED(status);
			if (r->gone)
				return -ESRCH;
			*sig = WSTOPSIG(status);
			r->stands = true;
			if (*sig == (SIGTRAP | 0x80))
				return STOP_SYSCALL;
			return status >> 16 == PTRACE_EVENT_STOP ? STOP_EVENT : STOP_SIGNAL;
		}
		if (looks < SPINS)
			continue;
		if (inject_now_ns() > until_ns)
			return -ETIME;
		/* sleeping, not yielding: it is on a busy machine that we must come back at once */
		nanosleep(&(struct timespec){ .tv_nsec = looks < SPINS + 100 ? 20000 : 500000 },
			  NULL);
	}
}

static int resume(struct inject_remote *r, int request, int sig)
{
	r->stands = false;
	return ptrace((enum __ptrace_request)request, r->tid, 0, sig) < 0 ? -errno : 0;
}

/* Until it stands where the kernel looks at signals. Those that come first are delivered, if
 * deliver; else kept. */
static int interrupt(struct inject_remote *r, uint64_t until_ns, bool deliver)
{
	int sig = 0, stop, err;

	for (;;) {
		/* a stop of any kind is the end of an earlier request */
		err = ptrace(PTRACE_INTERRUPT, r->tid, 0, 0) < 0 ? -errno : 0;
		if (!err && r->stands)
			err = resume(r, PTRACE_CONT, sig);
		if (err)
			return err;
		stop = wait_stop(r, &sig, until_ns);
		if (stop < 0 || stop == STOP_EVENT)
			return stop < 0 ? stop : 0;
		if (stop != STOP_SIGNAL) {
			sig = 0;
		} else if (!deliver && sig != SIGSTOP) {
			r->late |= SIGBIT(sig);
			sig = 0;
		}
	}
}

/* The kernel refuses a thread that is about to end with EPERM, as one that may not be traced. */
static bool is_ending(pid_t pid, pid_t tid)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return true;
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && (!strncmp(state, ") Z", 3) || !strncmp(state, ") X", 3));
}

int inject_remote_open(struct inject_remote *r, pid_t pid, pid_t tid, int limit_ms)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->pid = pid;
	r->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0)
		return errno == EPERM && is_ending(pid, tid) ? -ESRCH : -errno;
	r->seized = true;
	r->since_ns = inject_now_ns();
	err = interrupt(r, r->since_ns + (uint64_t)limit_ms * 1000000, true);
	return err ? err : inject_regs_save(tid, &r->saved);
}

static int set_mask(struct inject_remote *r, uint64_t mask)
{
	return ptrace((enum __ptrace_request)PTRACE_SETSIGMASK, r->tid, 8, &mask) < 0 ? -errno : 0;
}

/* PTRACE_DETACH needs a stop, which was asked for. One that does not stop even now is let go
 * when our thread ends. */
static void inject_remote_let_go(struct inject_remote *r)
{
	int sig = 0, stop = STOP_EVENT;

	if (!r->seized || r->gone)
		return;
	if (!r->stands)
		stop = wait_stop(r, &sig, inject_now_ns() + CLOSE_LIMIT_NS);
	if (stop >= 0)
		ptrace(PTRACE_DETACH, r->tid, 0, stop == STOP_SIGNAL ? sig : 0);
}

int inject_remote_close(struct inject_remote *r)
{
	int err = 0;

	if (r->seized && r->changed && !r->gone) {
		/* if we are killed now: the frame, or else what stands in for it */
		if (!r->sp)
			inject_regs_restore_plain(r->tid, &r->saved);
		err = interrupt(r, inject_now_ns() + CLOSE_LIMIT_NS, false);
		if (!err)
			err = set_mask(r, r->mask);
		if (!err)
			err = inject_regs_restore(r->tid, &r->saved);
	}
	inject_remote_let_go(r);
	for (int sig = 1; sig <= 64 && r->late; sig++)
		if (r->late & SIGBIT(sig))
			syscall(SYS_tgkill, r->pid, r->tid, sig);
	inject_regs_free(&r->saved);
	r->seized = false;
	return r->gone ? -ESRCH : err;
}

int inject_remote_begin(struct inject_remote *r)
{
	if (ptrace((enum __ptrace_request)PTRACE_GETSIGMASK, r->tid, 8, &r->mask) < 0)
		return -errno;
	r->changed = true;
	return r->home && r->code.ret ? inject_remote_arm(r, r->home) : 0;
}

/* Bytes that a worker writes to the thread's memory. */
struct writing {
	struct bounded_job job;
	pid_t tid;
	uint64_t addr;
	size_t len;
	int err;
	uint8_t bytes[];
};

static void write_bytes(struct bounded_job *job)
{
	struct writing *w = (struct writing *)job;
	struct iovec from = { .iov_base = w->bytes, .iov_len = w->len };
	struct iovec to = { .iov_base = (void *)w->addr, .iov_len = w->len };
	ssize_t n = process_vm_writev(w->tid, &from, 1, &to, 1, 0);

	w->err = n < 0 ? -errno : (size_t)n == w->len ? 0 : -EFAULT;
}

static void write_drop(struct bounded_job *job)
{
	free(job);
}

/* The page may be one that the program serves itself, and never does. */
int inject_remote_write(struct inject_remote *r, uint64_t addr, const void *bytes, size_t len)
{
	struct writing *w = malloc(sizeof(*w) + len);
	int err;

	if (!w)
		return -ENOMEM;
	*w = (struct writing){ .job = { .run = write_bytes, .drop = write_drop },
			       .tid = r->tid,
			       .addr = addr,
			       .len = len };
	memcpy(w->bytes, bytes, len);
	err = bounded_run(&w->job, BOUNDED_NOBODY, WRITE_LIMIT_MS);
	if (err == -ETIMEDOUT)
		return err;
	err = err ? err : w->err;
	free(w);
	return err;
}

int inject_remote_arm(struct inject_remote *r, uint64_t top)
{
	uint8_t *buf = malloc(FRAME_MAX);
	uint64_t at = 0;
	ssize_t n;
	int err;

	if (!buf)
		return -ENOMEM;
	n = inject_regs_frame(&r->saved, r->mask, top, r->code.ret, buf, FRAME_MAX, &at, &r->sp);
	err = n < 0 ? (int)n : inject_remote_write(r, at, buf, (size_t)n);
	free(buf);
	return err;
}

/* A signal that is about to be delivered amid what is made to run: which is delivered instead.
 * -EFAULT: it was raised by that itself. */
static int held(struct inject_remote *r, int sig)
{
	siginfo_t info;

	/* the program stops, all but this thread, which will once it is let go */
	if (sig == SIGSTOP)
		return sig;
	if (ptrace(PTRACE_GETSIGINFO, r->tid, 0, &info) < 0)
		return -errno;
	if ((SIGBIT(sig) & SYNCHRONOUS) && info.si_code > 0) {
		r->fault = sig;
		return -EFAULT;
	}
	r->late |= SIGBIT(sig);
	return 0;
}

/* The next system call stop of a thread that runs. -ETIME, -ESRCH, -EFAULT. */
static int next(struct inject_remote *r, uint64_t until_ns)
{
	int err = 0;

	while (!err) {
		int sig, stop = wait_stop(r, &sig, until_ns);

		if (stop == STOP_SYSCALL)
			r->entered = !r->entered;
		if (stop < 0 || stop == STOP_SYSCALL)
			return stop < 0 ? stop : 0;
		err = stop == STOP_SIGNAL ? held(r, sig) : 0;
		if (err >= 0)
			err = resume(r, PTRACE_SYSCALL, err);
	}
	return err;
}

static int step(struct inject_remote *r, uint64_t until_ns)
{
	int err = resume(r, PTRACE_SYSCALL, 0);

	return err ? err : next(r, until_ns);
}

int inject_remote_syscall(struct inject_remote *r, int64_t *result, long nr, uint64_t a, uint64_t b,
			  uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	const uint64_t args[6] = { a, b, c, d, e, f };
	uint64_t until_ns = inject_now_ns() + SYSCALL_LIMIT_MS * 1000000ull, sp = r->sp, seen_sp;
	int64_t handed;
	long seen;
	int err;

	if (!sp) {
		struct inject_thread t;

		inject_regs_thread(&r->saved, &t);
		sp = t.sp;
	} else if (r->code.returns) {
		sp -= INJECT_RET_BYTES;
	}
	r->entered = false;
	err = inject_regs_set_syscall(r->tid, &r->saved, &r->code, sp, nr, args);
	/* from here on the frame, or our end of it, puts the mask back */
	if (!err && !r->masked)
		err = set_mask(r, ~SYNCHRONOUS);
	r->masked = true;
	err = err ? err : step(r, until_ns);
	err = err ? err : step(r, until_ns);
	err = err ? err : inject_regs_get(r->tid, &seen, &seen_sp, result, &handed);
	if (err)
		return err;
	return r->sp ? inject_regs_jump(r->tid, r->code.ret, r->sp)
		     : inject_regs_restore_plain(r->tid, &r->saved);
}

/* It did not come to its end in time. Whether it may be given up: it waits for a lock, so has
 * not got it. */
static bool waits(struct inject_remote *r)
{
	char path[64], text[256] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)r->pid, (int)r->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && strtol(text, NULL, 10) == SYS_futex && text[0] >= '0' && text[0] <= '9';
}

int inject_remote_call(struct inject_remote *r, int64_t *result, uint64_t fn, uint64_t a,
		       uint64_t b, int limit_ms)
{
	const uint64_t args[6] = { a, b }, slice_ns = (uint64_t)limit_ms * 1000000;
	const uint64_t end = inject_now_ns() + PATIENCE * slice_ns;
	uint64_t sp;
	int64_t unused;
	long nr;
	int err;

	r->entered = false;
	err = inject_regs_set_call(r->tid, &r->saved, &r->code, fn, r->sp - INJECT_RET_BYTES, args);
	while (!err) {
		err = resume(r, PTRACE_SYSCALL, 0);
		err = err ? err : next(r, inject_now_ns() + slice_ns);
		while (err == -ETIME && !waits(r) && inject_now_ns() < end)
			err = next(r, inject_now_ns() + slice_ns);
		if (err || !r->entered)
			continue;
		err = inject_regs_get(r->tid, &nr, &sp, &unused, result);
		if (err || nr != SYS_rt_sigreturn || sp != r->sp)
			continue;
		/* instead of it, something harmless, and then it again if we are killed */
		err = inject_regs_replace(r->tid, r->code.ret, r->sp);
		return err ? err : step(r, inject_now_ns() + slice_ns);
	}
	/* back to where everything ends, past what it was doing */
	if (err == -EFAULT)
		inject_regs_jump(r->tid, r->code.ret, r->sp);
	if ((err == -EFAULT || err == -ETIME) &&
	    !interrupt(r, inject_now_ns() + CLOSE_LIMIT_NS, false))
		inject_regs_jump(r->tid, r->code.ret, r->sp);
	return err;
}
