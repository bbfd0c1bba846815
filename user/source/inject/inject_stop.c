/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_stop.c - see inject_stop.h.
 *
 * Before: a thread that sleeps in a system call is taken if the kernel makes that call anew
 * after a stop, with what was left of its time; a thread whose call would return EINTR or a part of its work is not taken. After: what its stack shows. Each run of frames in libc must have been
 * entered by a function that is known to hold none of libc's locks, or be the thread's
 * beginning; frames of the allocator or the loader rule it out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../host.h"
#include "inject_stop.h"

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

#define THREADS_MAX 4096
#define FRAMES_MAX 512
/* of libc where a thread begins: with more it is not only beginning, but exiting, say */
#define BASE_FRAMES 2
#define SCAN_MAX (256u << 10) /* bytes of a stack that could not be followed */
#define STOP_MS 200	      /* for one thread to stop */

/* What had slept for a while would sleep for the whole of its time again: see inject_regs_arm64.c. */
#if defined(__aarch64__)
#define RESTARTS_WHOLE true
#else
#define RESTARTS_WHOLE false
#endif

enum rank { RANK_WAITS, RANK_READS, RANK_RUNS, RANK_NOT };

struct candidate {
	pid_t tid;
	enum rank rank;
	uint64_t ip, sp; /* while it sleeps, and */
	long nr;	 /* in which system call */
};

/* ---- before: which ---- */

static const short waits[] = {
#ifdef SYS_poll
	SYS_poll,	   SYS_select,	 SYS_pause,
#endif
	SYS_ppoll,	   SYS_pselect6, SYS_nanosleep, SYS_clock_nanosleep, SYS_futex,
	SYS_rt_sigsuspend, SYS_wait4,	 SYS_waitid,	SYS_restart_syscall,
};
static const short reads[] = { SYS_read, SYS_readv, SYS_pread64 };
/* Never restarted by the kernel, and not begun either when they return EINTR: can be made anew
 * by us. */
static const short again[] = {
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_epoll_pwait,  SYS_semop,   SYS_semtimedop, SYS_rt_sigtimedwait,
	SYS_recvfrom,	  SYS_recvmsg, SYS_accept,     SYS_accept4,
	SYS_io_getevents, SYS_read,    SYS_readv,
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
#endif
};

static bool in(long nr, const short *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == nr)
			return true;
	return false;
}

static ssize_t read_task(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

/* A socket may have a time-out for reads, and then returns EINTR. */
static bool is_socket(pid_t pid, uint64_t fd)
{
	char path[96], link[16] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, (int)fd);
	return readlink(path, link, sizeof(link) - 1) <= 0 || !strncmp(link, "socket:", 7);
}

/* "7 0x7ffd... 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd... 0x7f...": number, arguments, sp, ip; "-1 sp
 * ip"; "running" */
static enum rank by_call(pid_t pid, struct candidate *c, const char *text)
{
	uint64_t v[8] = {};
	char *end;
	long nr = strtol(text, &end, 10);
	int n = 0;

	while (n < 8 && *end == ' ')
		v[n++] = strtoull(end + 1, &end, 16);
	if (end == text || n != 8)
		return RANK_RUNS;
	c->nr = nr;
	c->sp = v[6];
	c->ip = v[7];
	if (RESTARTS_WHOLE && (nr == SYS_nanosleep || nr == SYS_clock_nanosleep ||
			       nr == SYS_restart_syscall || (nr == SYS_futex && v[3])))
		return RANK_NOT;
	if (in(nr, waits, ARRAY_LEN(waits)))
		return RANK_WAITS;
	return in(nr, reads, ARRAY_LEN(reads)) && !is_socket(pid, v[0]) ? RANK_READS : RANK_NOT;
}

/* False: the thread has ended. */
static bool rank(struct inject_place *p, struct candidate *c)
{
	char text[512], *at;

	c->rank = RANK_NOT;
	c->ip = c->sp = 0;
	c->nr = -1;
	if (read_task(p->pid, c->tid, "stat", text, sizeof(text)) <= 0)
		return false;
	at = strrchr(text, ')');
	if (!at || at[1] != ' ')
		return false;
	switch (at[2]) {
	case 'R': c->rank = RANK_RUNS; return true;
	case 'S':
	case 'I':
		if (read_task(p->pid, c->tid, "syscall", text, sizeof(text)) > 0)
			c->rank = by_call(p->pid, c, text);
		if (c->rank != RANK_NOT)
			return true;
		p->why = "in a system call that would not go on as before";
		break;
	case 'D': p->why = "in a system call that cannot be interrupted"; break;
	case 'T':
	case 't': p->why = "stopped"; break;
	default: return false;
	}
	p->tid = c->tid;
	return true;
}

static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->rank != y->rank ? (int)x->rank - (int)y->rank
				  : (x->tid > y->tid) - (x->tid < y->tid);
}

/* Has the thread the program's descriptor table, which is the main thread's? One that has been added to the
 * program before may have a table of its own: what is loaded there would find none of the program's
 * descriptors, and we would not find what it opens. Where this may not be asked, it is taken to have it. */
static bool shares_table(pid_t pid, pid_t tid)
{
	long is = tid == pid ? 0 : syscall(SYS_kcmp, pid, tid, KCMP_FILES, 0, 0);

	return !is || (is < 0 && errno != ESRCH);
}

static int list(struct inject_place *p, struct candidate *out, int max)
{
	bool any = false;
	char path[64];
	struct dirent *e;
	DIR *d;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while (n < max && (e = readdir(d))) {
		out[n].tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (out[n].tid <= 0)
			continue;
		any = rank(p, &out[n]) || any;
		n += out[n].rank != RANK_NOT && shares_table(p->pid, out[n].tid);
	}
	closedir(d);
	if (!any)
		return -ESRCH;
	qsort(out, (size_t)n, sizeof(*out), by_rank);
	return n;
}

/* ---- after: where it is ---- */

static bool signal_waits(pid_t pid, pid_t tid)
{
	static const char *const keys[] = { "SigPnd", "ShdPnd", "SigBlk" };
	uint64_t sets[3] = {};
	char text[8192];

	if (read_task(pid, tid, "status", text, sizeof(text)) <= 0)
		return true;
	for (int i = 0; i < 3; i++) {
		const char *line = host_status_line(text, keys[i]);

		sets[i] = line ? strtoull(line, NULL, 16) : 0;
	}
	return (sets[0] | sets[1]) & ~sets[2];
}

/* Between our look and the stop it went into a call that returns EINTR for nothing else than the
 * stop. */
static int undo_eintr(struct inject_remote *r)
{
	if (!inject_regs_eintr(&r->saved) ||
	    !in(inject_regs_syscall(&r->saved), again, ARRAY_LEN(again)) ||
	    signal_waits(r->pid, r->tid))
		return 0;
	inject_regs_redo(&r->saved);
	return inject_regs_restore(r->tid, &r->saved);
}

/* A restartable sequence would be begun anew by the kernel if we were not here; moved elsewhere,
 * it is forgotten. */
static bool in_sequence(struct inject_remote *r, struct target *t, uint64_t ip)
{
	struct {
		uint64_t at;
		uint32_t size, signature, flags, pad;
	} conf = {};
	struct {
		uint32_t version, flags;
		uint64_t start, len, abort;
	} cs;
	uint64_t at;

	if (ptrace((enum __ptrace_request)PTRACE_GET_RSEQ_CONFIGURATION, r->tid, sizeof(conf),
		   &conf) <= 0 ||
	    !conf.at)
		return false;
	if (target_read(t, conf.at + 8, &at, 8) || !at)
		return false;
	return target_read(t, at, &cs, sizeof(cs)) || ip - cs.start < cs.len;
}

static bool is_return(struct target *t, uint64_t addr)
{
	uint8_t code[8] = {};

	return addr > sizeof(code) && !target_read(t, addr - sizeof(code), code, sizeof(code)) &&
	       inject_regs_is_call(code, sizeof(code));
}

/* The part of a stack that could not be followed: may any word of it be a return address into
 * what rules it out? Or one that ends a signal's handler: what it interrupted is not told by any
 * return address, and may be on another stack. */
static const char *scan(const struct inject_place *p, uint64_t sp)
{
	const struct target_map *m = target_map_at(p->target, sp);
	size_t len = m ? m->end - sp : 0;
	uint64_t end_of_handler = inject_code_functions(p->code)->calls.ret;
	const char *why = NULL;
	uint64_t *words;

	len = (len < SCAN_MAX ? len : SCAN_MAX) & ~7ul;
	words = malloc(len + 8);
	if (!len || !words || target_read(p->target, sp, words, len))
		why = "where its stack could not be read";
	for (size_t i = 0; !why && i < len / 8; i++) {
		enum inject_kind kind = inject_code_at(p->code, words[i]);

		if (words[i] == end_of_handler && end_of_handler)
			why = "perhaps in a signal's handler";
		else if ((kind == INJECT_LOADER || kind == INJECT_ALLOCATOR) &&
			 is_return(p->target, words[i]))
			why = kind == INJECT_LOADER ? "perhaps in the dynamic loader"
						    : "perhaps in the allocator";
	}
	free(words);
	return why;
}

/* The outermost of the frames that have been entered from outside of libc. */
static enum inject_kind kind_of_run(const struct inject_place *p, enum inject_kind last, bool first)
{
	if (last != INJECT_LIBC_WAIT)
		return last;
	return first && p->in_futex ? INJECT_LIBC_OPEN : INJECT_LIBC;
}

static const char *judge(const struct inject_place *p, const uint64_t *ips, int n, uint64_t lost_sp)
{
	for (int i = 0, j; i < n; i = j) {
		enum inject_kind last = INJECT_OTHER, kind = inject_code_at(p->code, ips[i]);

		j = i + 1;
		switch (kind) {
		case INJECT_LOADER: return "in the dynamic loader";
		case INJECT_ALLOCATOR: return "in the allocator";
		case INJECT_NO_CODE: return "where its stack could not be followed";
		case INJECT_OTHER:
		case INJECT_ENTRY:
		case INJECT_VDSO: continue;
		default: last = kind;
		}
		for (; j < n; j++) {
			kind = inject_code_at(p->code, ips[j]);
			if (kind != INJECT_LIBC && kind != INJECT_LIBC_OPEN &&
			    kind != INJECT_LIBC_WAIT && kind != INJECT_LIBC_BASE)
				break;
			last = kind;
		}
		last = kind_of_run(p, last, i == 0);
		if (kind == INJECT_ALLOCATOR && j < n)
			return "in the allocator";
		if (last == INJECT_LIBC_BASE || (j < n && kind == INJECT_ENTRY) ||
		    (j == n && !lost_sp && last != INJECT_LIBC_OPEN)) {
			if (!i || j - i > BASE_FRAMES)
				return "beginning or ending";
		} else if (last != INJECT_LIBC_OPEN) {
			return "in libc";
		}
	}
	return lost_sp ? scan(p, lost_sp) : n ? NULL : "where its stack could not be followed";
}

/* The quick look: only the innermost frame, and what the words of the stack may be. */
static const char *look_quick(const struct inject_place *p, const struct inject_thread *t)
{
	return judge(p, &t->ip, 1, t->sp);
}

/* All frames, as far as they can be followed. */
static const char *look_whole(const struct inject_place *p, const struct inject_thread *t)
{
	uint64_t ips[FRAMES_MAX], lost_sp;
	int n = p->what->frames(p->what->ctx, p->target, t, ips, FRAMES_MAX, &lost_sp);

	return judge(p, ips, n < 0 ? 0 : n, lost_sp);
}

/*
 * A stack has words that were left there by calls long over, and the quick look takes them for
 * frames: a thread that sleeps would never be taken. So, if no thread was found at the first
 * round, the frames themselves are looked at; of one that sleeps, what has to be read of files
 * for that is read before the stop.
 */
static const char *inject_stop_look(const struct inject_place *p, struct inject_remote *r,
				    bool whole)
{
	struct inject_thread t = { .pid = p->pid, .tid = r->tid };
	const char *why;

	if (!inject_regs_native(&r->saved))
		return "in 32-bit code";
	inject_regs_thread(&r->saved, &t);
	if (in_sequence(r, p->target, t.ip))
		return "in a restartable sequence";
	why = look_quick(p, &t);
	return why && whole ? look_whole(p, &t) : why;
}

/* Has it been in futex(2) since we looked? The kernel may have gone back to the call's instruction. */
static bool is_in_futex(const struct inject_remote *r, const struct candidate *was)
{
	struct inject_thread t;

	inject_regs_thread(&r->saved, &t);
	return was->nr == SYS_futex && t.sp == was->sp && was->ip - t.ip <= 4;
}

static int try_one(struct inject_remote *r, struct inject_place *p, const struct candidate *c,
		   bool whole)
{
	struct inject_thread t = { .pid = p->pid, .tid = c->tid, .ip = c->ip, .sp = c->sp };
	struct candidate now = *c;
	int err;

	whole = whole && p->what->frames;
	if (whole && c->ip)
		look_whole(p, &t);
	rank(p, &now);
	if (now.rank == RANK_NOT)
		return -EAGAIN;
	p->tid = c->tid;
	p->tries++;
	err = inject_remote_open(r, p->pid, c->tid, STOP_MS);
	if (!err)
		err = undo_eintr(r);
	if (err) {
		p->why = "not stopping";
		return err;
	}
	p->in_futex = is_in_futex(r, &now);
	/* it may have got one since the list was made; while it stands it does not */
	p->why = shares_table(p->pid, c->tid) ? inject_stop_look(p, r, whole)
					      : "one that does not share the program's descriptors";
	return p->why ? -EAGAIN : 0;
}

int inject_stop(struct inject_remote *r, struct inject_place *p)
{
	uint64_t until_ns = inject_now_ns() + (uint64_t)p->what->limit_ms * 1000000;
	struct candidate *all = malloc(THREADS_MAX * sizeof(*all));
	int err = all ? -EAGAIN : -ENOMEM;

	memset(r, 0, sizeof(*r));
	for (unsigned round = 0; err == -EAGAIN && inject_now_ns() < until_ns; round++) {
		int n = list(p, all, THREADS_MAX);

		if (round)
			nanosleep(&(struct timespec){ .tv_nsec = round < 20   ? 1000000
								 : round < 60 ? 5000000
									      : 25000000 },
				  NULL);
		err = n < 0 ? n : -EAGAIN;
		for (int i = 0; i < n && err == -EAGAIN && inject_now_ns() < until_ns; i++) {
			err = try_one(r, p, &all[i], round > 0);
			if (err)
				inject_remote_close(r);
			/* a thread may end, or not stop in time; another process's tracer may be
			 * quicker */
			if (err == -ESRCH || err == -ETIME)
				err = -EAGAIN;
		}
	}
	free(all);
	return err;
}
