/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject.c - see inject.h: the sequence, its limits and its messages.
 *
 * In the stopped thread: mmap of a stack of our own; a memfd that holds the object and, after it, a page of code for
 * calls; that page mapped; a socketpair, of which we fetch one end; dlopen of the memfd; the function; everything but the
 * object and the socket given back. What was loaded earlier is found by its memfd's name, which has a hash of its bytes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../proc/elf_read.h"
#include "../util/msg.h"
#include "inject_check.h"
#include "inject_seccomp.h"
#include "inject_stop.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif
#define OPEN_OF_LIBC 0x80000000u /* __RTLD_DLOPEN of glibc, for __libc_dlopen_mode */
#define STACK_BYTES (1u << 20)
#define TEXT_BYTES 4096

struct job {
	pid_t pid;
	const struct inject_what *what;
	struct inject_result *result;
	struct target *target;
	struct inject_code *code;
	struct inject_remote r;
	uint64_t hash;
	char name[48];	    /* of the memfd */
	uint64_t symbol;    /* where the function is in the object */
	uint64_t page;	    /* bytes */
	uint64_t text;	    /* room for strings in the target's scratch memory */
	uint64_t stub;	    /* the mapped page of code; 0: none */
	int64_t memfd, sock; /* in the target; -1: none */
	bool keep_stack; /* a call was given up: something may point to it */
	int err;
};

/* ---- the object ----------------------------------------------------------------------------------------- */

static void name_it(struct job *j)
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

static int on_symbol(void *ctx, const struct elf_sym *s)
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
static int find_symbol(struct job *j)
{
	int fd = memfd_create("cudatrace", MFD_CLOEXEC), err = fd < 0 ? -errno : 0;
	struct wanted w = { .name = j->what->symbol };
	struct elf_file elf = {};

	if (!err)
		err = write_all(fd, j->what->so, j->what->so_bytes, 0);
	if (!err)
		err = elf_file_open(&elf, fd);
	if (!err)
		err = elf_symbols(&elf, SHT_DYNSYM, j->what->symbol, NULL, on_symbol, &w);
	for (int i = 0; !err && i < elf.nphdr; i++)
		if (elf.phdr[i].p_type == PT_LOAD && !elf.phdr[i].p_offset)
			j->symbol = w.value - elf.phdr[i].p_vaddr;
	elf_file_close(&elf);
	if (fd >= 0)
		close(fd);
	if (!err && !w.value)
		err = -ENOENT;
	if (err)
		msg_error("the object to be loaded has no function %s: %s", j->what->symbol, strerror(-err));
	return err;
}

/* Where the object is mapped; 0: nowhere. */
static uint64_t loaded_at(struct job *j)
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

/* ---- steps in the target ---------------------------------------------------------------------------------- */

static int failed(struct job *j, int err, const char *what)
{
	if (err == -ESRCH)
		msg_error("process %d ended while the agent was being added", (int)j->pid);
	else if (err == -ETIME)
		msg_error("process %d: %s did not return within %d ms, and was given up; the program goes on without the agent: try "
			  "again, or start it under cudatrace",
			  (int)j->pid, what, j->what->limit_ms);
	else if (err == -EFAULT && j->r.fault)
		msg_error("process %d: %s crashed (signal %d) and was undone; the program goes on without the agent", (int)j->pid,
			  what, j->r.fault);
	else if (err == -EACCES || err == -EPERM)
		msg_error("process %d: %s is forbidden there (SELinux, seccomp, or vm.memfd_noexec=2): start the program under "
			  "cudatrace",
			  (int)j->pid, what);
	else
		msg_error("process %d: %s failed: %s; the program goes on without the agent", (int)j->pid, what, strerror(-err));
	return err;
}

/* A system call of the target's; its own failure is a failure too. */
static int call(struct job *j, int64_t *result, const char *name, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		uint64_t e, uint64_t f)
{
	int err = inject_remote_syscall(&j->r, result, nr, a, b, c, d, e, f);

	if (!err && *result < 0 && *result >= -4095)
		err = (int)*result;
	return err ? failed(j, err, name) : 0;
}

static int make_stack(struct job *j)
{
	int64_t at, unused;
	int err = call(j, &at, "mmap", SYS_mmap, 0, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       (uint64_t)-1, 0);

	if (err)
		return err;
	j->r.stack = (uint64_t)at;
	j->r.stack_bytes = STACK_BYTES;
	if (j->r.code.ret) {
		err = inject_remote_arm(&j->r);
		if (err)
			return failed(j, err, "writing to its memory");
	}
	j->text = j->r.stack + 2 * j->page;
	/* below it something else of the program's may be mapped: our stack must not run into it */
	return call(j, &unused, "mprotect", SYS_mprotect, j->r.stack, j->page, PROT_NONE, 0, 0, 0);
}

/* The target's descriptor as one of ours. */
static int fetch(struct job *j, int64_t fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0), got = -1, err;

	if (pidfd < 0)
		return -errno;
	got = (int)syscall(SYS_pidfd_getfd, pidfd, (int)fd, 0);
	err = -errno;
	close(pidfd);
	return got < 0 ? err : got;
}

static int make_memfd(struct job *j)
{
	const char *name = j->result->reused ? "cudatrace-call" : j->name;
	int64_t fd;
	int err = inject_remote_write(&j->r, j->text, name, strlen(name) + 1);

	if (err)
		return failed(j, err, "writing to its memory");
	/* before 6.3 the kernel knows no MFD_EXEC, and needs none */
	err = inject_remote_syscall(&j->r, &fd, SYS_memfd_create, j->text, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC, 0, 0, 0, 0);
	if (!err && fd == -EINVAL)
		err = inject_remote_syscall(&j->r, &fd, SYS_memfd_create, j->text, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0);
	if (!err && fd < 0)
		err = (int)fd;
	if (err)
		return failed(j, err, "memfd_create");
	j->memfd = fd;
	return 0;
}

/* The object, and on a page of its own after it the code for calls. */
static int fill_memfd(struct job *j, uint64_t *stub_at)
{
	size_t len, ret, so_bytes = j->result->reused ? 0 : j->what->so_bytes;
	const void *stub = inject_regs_stub(&len, &ret);
	char path[64];
	int fd, err;

	*stub_at = (so_bytes + j->page - 1) & ~(j->page - 1);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)j->pid, (int)j->memfd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = fetch(j, j->memfd);
	if (fd < 0)
		return failed(j, fd, "opening its memfd");
	err = ftruncate(fd, (off_t)(*stub_at + j->page)) ? -errno : 0;
	if (!err)
		err = write_all(fd, j->what->so, so_bytes, 0);
	if (!err)
		err = write_all(fd, stub, len, *stub_at);
	/* whoever finds the descriptor before it is closed cannot change what will run */
	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	close(fd);
	return err ? failed(j, err, "filling its memfd") : 0;
}

static int make_stub(struct job *j)
{
	uint64_t stub_at;
	size_t len, ret;
	int64_t at;
	int err = make_memfd(j);

	if (!err)
		err = fill_memfd(j, &stub_at);
	if (!err)
		err = call(j, &at, "mapping code from a memfd", SYS_mmap, 0, j->page, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			   (uint64_t)j->memfd, stub_at);
	if (err)
		return err;
	inject_regs_stub(&len, &ret);
	j->stub = (uint64_t)at;
	j->r.code = (struct inject_code_at){ .syscall = j->stub, .ret = j->stub + ret, .word_at = j->text + TEXT_BYTES };
	err = inject_remote_arm(&j->r);
	return err ? failed(j, err, "writing to its memory") : 0;
}

static int make_socket(struct job *j)
{
	struct ucred peer = {};
	socklen_t len = sizeof(peer);
	int64_t unused;
	int fds[2], err;

	err = call(j, &unused, "socketpair", SYS_socketpair, AF_UNIX, (uint64_t)j->what->sock_type | SOCK_CLOEXEC, 0, j->text, 0, 0);
	if (!err)
		err = target_read(j->target, j->text, fds, sizeof(fds));
	if (err)
		return err;
	j->sock = fds[1];
	j->result->sock = fetch(j, fds[0]);
	err = call(j, &unused, "close", SYS_close, (uint64_t)fds[0], 0, 0, 0, 0, 0);
	if (j->result->sock < 0)
		return failed(j, j->result->sock, "fetching its socket (pidfd_getfd)");
	if (getsockopt(j->result->sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.pid != j->pid) {
		msg_error("process %d: the socket made there belongs to process %d", (int)j->pid, (int)peer.pid);
		return -EPERM;
	}
	return err;
}

/* ---- functions of the target ------------------------------------------------------------------------------- */

static int run(struct job *j, int64_t *result, const char *name, uint64_t fn, uint64_t a, uint64_t b)
{
	int err = inject_remote_call(&j->r, result, fn, a, b, j->what->limit_ms);

	j->keep_stack = j->keep_stack || err;
	return err ? failed(j, err, name) : 0;
}

static int keep_errno(struct job *j)
{
	const struct inject_functions *f = inject_code_functions(j->code);
	int64_t at;
	uint32_t was;
	int err = run(j, &at, "__errno_location", f->errno_location, 0, 0);

	if (!err && target_read(j->target, (uint64_t)at, &was, sizeof(was)))
		err = failed(j, -EIO, "reading errno");
	if (err)
		return err;
	/* the code that functions return to puts it back */
	j->r.code.word = was;
	j->r.code.word_at = (uint64_t)at;
	return 0;
}

static int say_dlerror(struct job *j)
{
	const struct inject_functions *f = inject_code_functions(j->code);
	char text[512] = "it does not say why";
	int64_t at = 0;

	if (f->dlerror && !inject_remote_call(&j->r, &at, f->dlerror, 0, 0, j->what->limit_ms) && at)
		target_read_string(j->target, (uint64_t)at, text, sizeof(text));
	for (char *c = text; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	msg_error("process %d: its loader refused the agent: %s", (int)j->pid, text);
	return -ELIBBAD;
}

/* The loader takes the same path for the same object: each object has its own way of writing it. */
static void path_of(const struct job *j, char *out)
{
	out += sprintf(out, "/proc/self/fd/");
	for (int bit = 0; bit < 32; bit++)
		out += sprintf(out, j->hash >> bit & 1 ? ".//" : "./");
	sprintf(out, "%d", (int)j->memfd);
}

static int load(struct job *j)
{
	const struct inject_functions *f = inject_code_functions(j->code);
	char path[256];
	int64_t result;
	int err = 0;

	/* takes the loader's lock and nothing else: if that is held for good, nothing has happened yet */
	if (f->dladdr)
		err = run(j, &result, "the loader's lock", f->dladdr, f->dlopen, j->text);
	path_of(j, path);
	if (!err)
		err = inject_remote_write(&j->r, j->text, path, strlen(path) + 1);
	if (!err)
		err = run(j, &result, "dlopen", f->dlopen, j->text, RTLD_NOW | (f->dlopen_internal ? OPEN_OF_LIBC : 0));
	if (err)
		return err;
	return loaded_at(j) ? 0 : say_dlerror(j);
}

static int start(struct job *j)
{
	const char *mark = strstr(j->what->how, "fd=N");
	int before = mark ? (int)(mark - j->what->how) + 3 : 0;
	uint64_t base = loaded_at(j);
	char how[TEXT_BYTES];
	int64_t result = 0;
	int err;

	if (mark)
		err = snprintf(how, sizeof(how), "%.*s%d%s", before, j->what->how, (int)j->sock, mark + 4);
	else
		err = snprintf(how, sizeof(how), "%s", j->what->how);
	if (err >= (int)sizeof(how))
		return failed(j, -E2BIG, j->what->symbol);
	err = inject_remote_write(&j->r, j->text, how, strlen(how) + 1);
	if (!err && base)
		err = run(j, &result, j->what->symbol, base + j->symbol, j->text, 0);
	if (err)
		return err;
	j->sock = -1; /* its own now, whatever it answered */
	j->result->answer = (int)result;
	if (!result)
		return 0;
	msg_error("process %d: the agent would not start (%d)", (int)j->pid, (int)result);
	return -EPROTO;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* What is left goes, as far as the thread still does what it is told; no message, there was one. */
static void give_back(struct job *j)
{
	struct inject_remote *r = &j->r;
	int64_t unused;

	if (!r->changed || r->gone)
		return;
	if (r->code.word_at)
		inject_remote_write(r, r->code.word_at, &r->code.word, sizeof(r->code.word));
	if (j->sock >= 0)
		inject_remote_syscall(r, &unused, SYS_close, (uint64_t)j->sock, 0, 0, 0, 0, 0);
	if (j->memfd >= 0)
		inject_remote_syscall(r, &unused, SYS_close, (uint64_t)j->memfd, 0, 0, 0, 0, 0);
	if (!r->stack || j->keep_stack)
		return;
	if (j->stub) {
		/* not by itself */
		r->code = inject_code_functions(j->code)->calls;
		if (r->code.ret && !inject_remote_arm(r))
			inject_remote_syscall(r, &unused, SYS_munmap, j->stub, j->page, 0, 0, 0, 0);
		r->code = inject_code_functions(j->code)->calls;
	}
	r->sp = 0;
	inject_remote_syscall(r, &unused, SYS_munmap, r->stack, r->stack_bytes, 0, 0, 0, 0);
}

static int in_thread(struct job *j)
{
	int err;

	j->r.code = inject_code_functions(j->code)->calls;
	j->result->reused = loaded_at(j);
	err = inject_remote_begin(&j->r);
	if (err)
		return failed(j, err, "ptrace");
	err = make_stack(j);
	if (!err)
		err = make_stub(j);
	if (!err)
		err = make_socket(j);
	if (!err)
		err = keep_errno(j);
	if (!err && !j->result->reused)
		err = load(j);
	if (!err)
		err = start(j);
	give_back(j);
	return err;
}

/* Before anything is called. */
static int check_thread(struct job *j)
{
	const char *name = NULL;
	int err = inject_regs_shadow(j->r.tid) ? -ENOTSUP : inject_seccomp_check(j->r.tid, &name);

	if (err == -ENOTSUP)
		msg_error("process %d has shadow stacks (CET), which what is to be called there would not fit: start it under cudatrace, or "
			  "without x86_shstk in GLIBC_TUNABLES",
			  (int)j->pid);
	else if (err == -EACCES)
		msg_error("process %d has a seccomp filter that forbids %s: start it under cudatrace", (int)j->pid, name);
	else if (err == -EPERM)
		msg_error("process %d has a seccomp filter, and what it forbids cannot be known without CAP_SYS_ADMIN: run as root, or "
			  "start it under cudatrace",
			  (int)j->pid);
	else if (err)
		failed(j, err, "reading its seccomp filters");
	return err;
}

static int stop_and_do(struct job *j)
{
	struct inject_place p = { .pid = j->pid, .target = j->target, .code = j->code, .what = j->what };
	int err = inject_stop(&j->r, &p), closed;

	j->result->tid = p.tid;
	j->result->tries = p.tries;
	if (err == -EPERM || err == -EACCES)
		inject_check_refused(j->pid);
	else if (err == -EAGAIN && p.tid)
		msg_error("no thread of process %d was found at a safe point within %d ms (thread %d, the last, was %s): try again, or "
			  "start the program under cudatrace",
			  (int)j->pid, j->what->limit_ms, (int)p.tid, p.why ? p.why : "?");
	else if (err)
		failed(j, err == -EAGAIN ? -ESRCH : err, "stopping a thread");
	if (err)
		return err;
	err = check_thread(j);
	if (!err)
		err = in_thread(j);
	closed = inject_remote_close(&j->r);
	j->result->stopped_ns = inject_now_ns() - j->r.since_ns;
	if (!err && closed)
		err = failed(j, closed, "letting it go on");
	return err;
}

static void *main_of_thread(void *arg)
{
	struct job *j = arg;

	prctl(PR_SET_TIMERSLACK, 1000); /* ns */
	j->err = stop_and_do(j);
	inject_remote_close(&j->r);
	return NULL;
}

/* The tracer is a thread of its own: whatever happens, the kernel lets the tracee go when it ends. */
static int in_tracer(struct job *j)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&thread, NULL, main_of_thread, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		msg_error("no thread could be started: %s", strerror(-err));
		return err;
	}
	pthread_join(thread, NULL);
	return j->err;
}

static int prepare(struct job *j)
{
	int err = inject_check(j->pid);

	if (err)
		return err;
	err = target_open(&j->target, j->pid, 0);
	if (err)
		return failed(j, err, "opening it");
	if (j->what->ready && !j->what->ready(j->what->ctx, j->target)) {
		msg_error("process %d has not used CUDA yet, and the agent must not be the first: try again when it has", (int)j->pid);
		return -EAGAIN;
	}
	name_it(j);
	err = find_symbol(j);
	if (err)
		return err;
	err = inject_code_open(&j->code, j->target);
	if (err == -ENOEXEC)
		msg_error("process %d has no dlopen that is known (glibc's or musl's): start it under cudatrace", (int)j->pid);
	else if (err)
		failed(j, err, "reading its mappings");
	return err;
}

int inject_run(pid_t pid, const struct inject_what *what, struct inject_result *result)
{
	struct job j = { .pid = pid, .what = what, .result = result, .memfd = -1, .sock = -1 };
	int err;

	*result = (struct inject_result){ .sock = -1 };
	j.page = (uint64_t)sysconf(_SC_PAGESIZE);
	err = prepare(&j);
	if (!err)
		err = in_tracer(&j);
	inject_code_close(j.code);
	target_close(j.target);
	if (err && result->sock >= 0) {
		close(result->sock);
		result->sock = -1;
	}
	if (err)
		result->sock = -1;
	return err;
}
