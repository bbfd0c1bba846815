/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_make.c - see inject_make.h: a stack; a memfd that has the object and, on a page of its
 * own after it, code for calls; that page mapped; a socket. What was loaded earlier is found by
 * its memfd's name, which has a hash of its bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../proc/elf_read.h"
#include "../../util/msg.h"
#include "inject_check.h"
#include "inject_make.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif
#define STACK_BYTES (1u << 20)
#define HOME_BYTES (64u << 10) /* that a thread's own stack has left, for a frame on it */

/* ---- the object ---- */

void inject_make_name(struct inject_job *j)
{
	const uint8_t *bytes = j->what->so;
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a */

	for (size_t i = 0; i < j->what->so_bytes; i++)
		h = (h ^ bytes[i]) * 0x100000001b3;
	j->hash = h;
	snprintf(j->name, sizeof(j->name), "cudatrace-agent-%016llx", (unsigned long long)h);
}

struct wanted {
	const char *name;
	uint64_t value;
};

static int inject_make_on_symbol(void *ctx, const struct elf_sym *s)
{
	struct wanted *w = ctx;

	if (s->defined && !strcmp(s->name, w->name))
		w->value = s->value;
	return 0;
}

static int write_all(int fd, const void *bytes, size_t len, uint64_t at)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, (const char *)bytes + done, len - done, (off_t)(at + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Where the function is, counted from the mapping of the file's beginning. */
int inject_make_symbol(struct inject_job *j)
{
	int fd = memfd_create("cudatrace", MFD_CLOEXEC), err = fd < 0 ? -errno : 0;
	struct wanted w = { .name = j->what->symbol };
	const char *const begins[] = { w.name, NULL };
	struct elf_file elf = {};

	if (!err)
		err = write_all(fd, j->what->so, j->what->so_bytes, 0);
	if (!err)
		err = elf_file_open(&elf, fd);
	if (!err)
		err = elf_symbols(&elf, SHT_DYNSYM, begins, inject_make_on_symbol, &w);
	for (int i = 0; !err && i < elf.nphdr; i++)
		/* the segment of the file's begin; one without bytes has no place in it */
		if (elf.phdr[i].p_type == PT_LOAD && !elf.phdr[i].p_offset && elf.phdr[i].p_filesz)
			j->symbol = w.value - elf.phdr[i].p_vaddr;
	elf_file_close(&elf);
	if (fd >= 0)
		close(fd);
	if (!err && !w.value)
		err = -ENOENT;
	if (err)
		msg_error("the object to be loaded has no function %s: %s", j->what->symbol,
			  strerror(-err));
	return err;
}

/* Where the object is mapped; 0: nowhere. */
uint64_t inject_make_loaded(struct inject_job *j)
{
	const struct target_map *maps;
	char path[96];
	int n;

	if (target_refresh(j->target) < 0)
		return 0;
	snprintf(path, sizeof(path), "/memfd:%s (deleted)", j->name);
	n = target_maps(j->target, &maps);
	for (int i = 0; i < n; i++)
		if (!maps[i].offset && !strcmp(maps[i].path, path))
			return maps[i].start;
	return 0;
}

/* ---- steps in the target ---- */

int inject_make_failed(struct inject_job *j, int err, const char *what)
{
	/* what fails in a process that is ending fails for that */
	if (inject_check_ended(j->pid))
		err = -ESRCH;
	if (err == -ESRCH)
		msg_error("process %d ended while the agent was being added", (int)j->pid);
	else if (err == -ETIME)
		msg_error(
			"process %d: %s did not return within %d ms, and was given up; the program "
			"goes on without the agent: try again, or start it under cudatrace",
			(int)j->pid, what, j->what->limit_ms);
	else if (err == -EFAULT && j->r.fault)
		msg_error("process %d: %s crashed (signal %d) and was undone; the program goes on "
			  "without the agent",
			  (int)j->pid, what, j->r.fault);
	else if (err == -EACCES || err == -EPERM)
		msg_error("process %d: %s is forbidden there (SELinux, seccomp, or "
			  "vm.memfd_noexec=2): start the program under cudatrace",
			  (int)j->pid, what);
	else
		msg_error("process %d: %s failed: %s; the program goes on without the agent",
			  (int)j->pid, what, strerror(-err));
	return err;
}

/* A system call of the target's; its own failure is a failure too. */
static int inject_make_call(struct inject_job *j, int64_t *result, const char *name, long nr,
			    uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	int err = inject_remote_syscall(&j->r, result, nr, a, b, c, d, e, f);

	if (!err && *result < 0 && *result >= -4095)
		err = (int)*result;
	return err ? inject_make_failed(j, err, name) : 0;
}

/* Below the red zone a stack is free; whether it is a stack, and has room, is what has to be
 * known. It is if it is the main thread's or has the thread's own descriptor above, as the
 * stacks that libc makes have; one that the program made for coroutines may end just below. */
uint64_t inject_make_home(struct inject_job *j)
{
	uint64_t tls = inject_regs_tls(j->r.tid, &j->r.saved);
	struct inject_thread t;
	const struct target_map *m;

	inject_regs_thread(&j->r.saved, &t);
	m = target_map_at(j->target, t.sp);
	if (!m || !m->write || t.sp - m->start < HOME_BYTES)
		return 0;
	if (strcmp(m->path, "[stack]") && (m->ino || tls <= t.sp || tls >= m->end))
		return 0;
	return (t.sp - INJECT_RED_ZONE) & ~15ull;
}

int inject_make_stack(struct inject_job *j)
{
	int64_t at, unused;
	int err = inject_make_call(j, &at, "mmap", SYS_mmap, 0, STACK_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);

	if (err)
		return err;
	j->r.stack = (uint64_t)at;
	j->r.stack_bytes = STACK_BYTES;
	if (j->r.code.ret) {
		err = inject_remote_arm(&j->r, j->r.stack + j->r.stack_bytes);
		if (err)
			return inject_make_failed(j, err, "writing to its memory");
	}
	j->text = j->r.stack + 2 * j->page;
	/* below it something else of the program's may be mapped: our stack must not run into it */
	return inject_make_call(j, &unused, "mprotect", SYS_mprotect, j->r.stack, j->page,
				PROT_NONE, 0, 0, 0);
}

/* The target's descriptor as one of ours. */
static int fetch(struct inject_job *j, int64_t fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0), got = -1, err;

	if (pidfd < 0)
		return -errno;
	got = (int)syscall(SYS_pidfd_getfd, pidfd, (int)fd, 0);
	err = -errno;
	close(pidfd);
	return got < 0 ? err : got;
}

static int make_memfd(struct inject_job *j)
{
	const char *name = j->result->reused ? "cudatrace-call" : j->name;
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int64_t fd;
	int err = inject_remote_write(&j->r, j->text, name, strlen(name) + 1);

	if (err)
		return inject_make_failed(j, err, "writing to its memory");
	/* before 6.3 the kernel knows no MFD_EXEC, and needs none */
	err = inject_remote_syscall(&j->r, &fd, SYS_memfd_create, j->text, flags | MFD_EXEC, 0, 0,
				    0, 0);
	if (!err && fd == -EINVAL)
		err = inject_remote_syscall(&j->r, &fd, SYS_memfd_create, j->text, flags, 0, 0, 0,
					    0);
	if (!err && fd < 0)
		err = (int)fd;
	if (err)
		return inject_make_failed(j, err, "memfd_create");
	j->memfd = fd;
	return 0;
}

/* Is it the one that was made? Nothing that could be damaged is: it is empty, has no name, and
 * may still be sealed, which a file of tmpfs may not. */
static bool is_fresh_memfd(int fd)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 &&
	       !(seals & (F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)) &&
	       !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_nlink && !st.st_size;
}

/*
 * The memfd as one of ours. Other threads of the target run, and may put another file under its
 * number meanwhile. So it is not opened by that number in /proc, which would be with our rights:
 * root's. pidfd_getfd gives what the target itself has.
 */
static int own_memfd(struct inject_job *j)
{
	int fd = fetch(j, j->memfd), path_fd;
	struct stat st;
	char path[64];

	if (fd == -ENOSYS || fd == -EPERM) {
		/* forbidden: the file is held before it is looked at, and looked at before it is
		 * opened */
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)j->pid, (int)j->memfd);
		path_fd = open(path, O_PATH | O_CLOEXEC);
		if (path_fd < 0)
			return -errno;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
		fd = fstat(path_fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink
			     ? -EBADF
			     : open(path, O_RDWR | O_CLOEXEC);
		fd = fd == -1 ? -errno : fd;
		close(path_fd);
	}
	if (fd >= 0 && !is_fresh_memfd(fd)) {
		close(fd);
		fd = -EBADF;
	}
	return fd;
}

/* The object, and on a page of its own after it the code for calls. */
static int fill_memfd(struct inject_job *j, uint64_t *stub_at)
{
	size_t len, ret, so_bytes = j->result->reused ? 0 : j->what->so_bytes;
	const void *stub = inject_regs_stub(&len, &ret);
	int fd = own_memfd(j), err;

	*stub_at = (so_bytes + j->page - 1) & ~(j->page - 1);
	if (fd < 0)
		return inject_make_failed(j, fd, "opening its memfd");
	err = ftruncate(fd, (off_t)(*stub_at + j->page)) ? -errno : 0;
	if (!err)
		err = write_all(fd, j->what->so, so_bytes, 0);
	if (!err)
		err = write_all(fd, stub, len, *stub_at);
	/* a process that finds the descriptor before it is closed cannot change what will run */
	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	close(fd);
	return err ? inject_make_failed(j, err, "filling its memfd") : 0;
}

int inject_make_stub(struct inject_job *j)
{
	uint64_t stub_at;
	size_t len, ret;
	int64_t at;
	int err = make_memfd(j);

	if (!err)
		err = fill_memfd(j, &stub_at);
	if (!err)
		err = inject_make_call(j, &at, "mapping code from a memfd", SYS_mmap, 0, j->page,
				       PROT_READ | PROT_EXEC, MAP_PRIVATE, (uint64_t)j->memfd,
				       stub_at);
	if (err)
		return err;
	inject_regs_stub(&len, &ret);
	j->stub = (uint64_t)at;
	j->r.code = (struct inject_code_at){ .syscall = j->stub,
					     .ret = j->stub + ret,
					     .word_at = j->text + INJECT_TEXT_BYTES };
	err = inject_remote_arm(&j->r, j->r.stack + j->r.stack_bytes);
	return err ? inject_make_failed(j, err, "writing to its memory") : 0;
}

/* Without pidfd_getfd (before 5.6, or forbidden): the target connects to an abstract address of
 * ours, which it sees if it shares our network namespace. */
static int connect_to_us(struct inject_job *j, int64_t *fd)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, j->what->sock_type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;
	socklen_t len = sizeof(sa_family_t);
	int64_t unused;

	/* bound without a name, it gets a free one */
	err = s < 0 || bind(s, (struct sockaddr *)&a, len) || listen(s, 1) ? -errno : 0;
	len = sizeof(a);
	if (!err && getsockname(s, (struct sockaddr *)&a, &len))
		err = -errno;
	if (!err)
		err = inject_remote_write(&j->r, j->text, &a, len);
	if (err)
		inject_make_failed(j, err, "making a socket");
	if (!err)
		err = inject_make_call(j, fd, "socket", SYS_socket, AF_UNIX,
				       (uint64_t)j->what->sock_type | SOCK_CLOEXEC, 0, 0, 0, 0);
	if (!err)
		j->sock = *fd;
	if (!err)
		err = inject_make_call(
			j, &unused,
			"connecting to cudatrace (from another network namespace, without "
			"pidfd_getfd)",
			SYS_connect, (uint64_t)*fd, j->text, len, 0, 0, 0);
	if (!err) {
		j->result->sock = accept4(s, NULL, NULL, SOCK_CLOEXEC);
		err = j->result->sock < 0
			      ? inject_make_failed(j, -errno, "accepting its connection")
			      : 0;
	}
	if (s >= 0)
		close(s);
	return err;
}

static int make_pair(struct inject_job *j)
{
	int64_t unused;
	int fds[2], err;

	err = inject_make_call(j, &unused, "socketpair", SYS_socketpair, AF_UNIX,
			       (uint64_t)j->what->sock_type | SOCK_CLOEXEC, 0, j->text, 0, 0);
	if (!err)
		err = target_read(j->target, j->text, fds, sizeof(fds));
	if (err)
		return err;
	j->sock = fds[1];
	j->result->sock = fetch(j, fds[0]);
	err = inject_make_call(j, &unused, "close", SYS_close, (uint64_t)fds[0], 0, 0, 0, 0, 0);
	if (err || j->result->sock >= 0)
		return err;
	err = inject_make_call(j, &unused, "close", SYS_close, (uint64_t)fds[1], 0, 0, 0, 0, 0);
	j->sock = -1;
	return err ? err : connect_to_us(j, &unused);
}

int inject_make_socket(struct inject_job *j)
{
	struct ucred peer = {};
	socklen_t len = sizeof(peer);
	int err = make_pair(j);

	if (err)
		return err;
	if (getsockopt(j->result->sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) ||
	    peer.pid != j->pid) {
		msg_error("process %d: the socket made there belongs to process %d", (int)j->pid,
			  (int)peer.pid);
		return -EPERM;
	}
	return err;
}
