/* SPDX-License-Identifier: BSD-2-Clause */
/* inject_code.c - see inject_code.h. Knows ELF files and the names of libc's functions; knows no
 * thread. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../proc/elf_read.h"
#include "../../proc/elf_starts.h"
#include "inject_code.h"
#include "../../util/table/array.h"

#define CODE_MAX (16u << 20) /* bytes of libc's code that are searched */
#define ENTRY_BYTES 128
#define SIGRETURN_BYTES 9
#define VDSO_MAX (64u << 10)

struct file {
	uint64_t dev, ino;
	uint64_t start; /* of the copy whose functions are called */
	enum inject_kind kind;
};

struct range {
	uint64_t start, end;
	enum inject_kind kind;
};

struct inject_code {
	struct range *maps; /* of code, by address */
	size_t nmaps;
	struct range *funcs;
	size_t nfuncs;
	struct inject_functions found;
	bool loader;
};

/* Functions of libc that a thread may be found in. They wait or ask the kernel something, and
 * hold none of libc's locks while they do; pthread_once and bsearch call the program back
 * without one. A thread that makes a system call every microsecond or two is only ever met at
 * the end of one: it looks for our request there, before the other CPU's interrupt arrives. So
 * they are all here that are no more than their system call. Sorted. */
/* clang-format off */
static const char *const open_functions[] = {
	"__fstat", "__lstat", "__poll", "__pread64", "__read", "__sched_getaffinity",
	"__sched_yield", "__select", "__stat", "accept", "accept4", "access", "alarm",
	"bsearch", "clock_getres", "clock_gettime", "clock_nanosleep", "clock_settime", "close",
	"connect", "dup", "dup2", "dup3", "epoll_create", "epoll_create1", "epoll_ctl",
	"epoll_pwait", "epoll_wait", "eventfd", "eventfd_read", "eventfd_write", "faccessat",
	"fallocate", "fallocate64", "fcntl", "fcntl64", "fdatasync", "flock", "fstat",
	"fstat64", "fstatat", "fstatat64", "fsync", "ftruncate", "ftruncate64", "getcpu",
	"getegid", "geteuid", "getgid", "getitimer", "getpeername", "getpgid", "getpgrp",
	"getpid", "getppid", "getpriority", "getrlimit", "getrlimit64", "getrusage", "getsid",
	"getsockname", "getsockopt", "gettid", "gettimeofday", "getuid", "ioctl", "kill",
	"link", "listen", "lseek", "lseek64", "lstat", "lstat64", "madvise", "memfd_create",
	"mincore", "mkdir", "mlock", "mmap", "mmap64", "mprotect", "mremap", "msgrcv", "msgsnd",
	"msync", "munlock", "munmap", "nanosleep", "open", "open64", "openat", "pause", "pipe",
	"pipe2", "poll", "ppoll", "prctl", "pread", "pread64", "preadv", "preadv64",
	"process_vm_readv", "process_vm_writev", "pselect", "pthread_barrier_wait",
	"pthread_clockjoin_np", "pthread_cond_broadcast", "pthread_cond_clockwait",
	"pthread_cond_signal", "pthread_cond_timedwait", "pthread_cond_wait", "pthread_join",
	"pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_mutex_trylock",
	"pthread_mutex_unlock", "pthread_once", "pthread_rwlock_rdlock",
	"pthread_rwlock_unlock", "pthread_rwlock_wrlock", "pthread_sigmask",
	"pthread_timedjoin_np", "pwrite", "pwrite64", "pwritev", "pwritev64", "read",
	"readlink", "readv", "recv", "recvfrom", "recvmmsg", "recvmsg", "rename", "rmdir",
	"sched_getaffinity", "sched_getcpu", "sched_getparam", "sched_getscheduler",
	"sched_setaffinity", "sched_yield", "select", "sem_clockwait", "sem_post",
	"sem_timedwait", "sem_wait", "semctl", "semop", "semtimedop", "send", "sendfile",
	"sendfile64", "sendmmsg", "sendmsg", "sendto", "setitimer", "setpriority", "setsockopt",
	"shmat", "shmdt", "shmget", "shutdown", "sigaltstack", "sigpending", "sigprocmask",
	"sigqueue", "sigsuspend", "sigtimedwait", "sigwait", "sigwaitinfo", "sleep", "socket",
	"socketpair", "splice", "stat", "stat64", "statx", "sync_file_range", "syscall",
	"sysinfo", "tgkill", "timerfd_create", "timerfd_gettime", "timerfd_settime", "times",
	"truncate", "truncate64", "umask", "uname", "unlink", "usleep", "vmsplice", "wait",
	"wait4", "waitid", "waitpid", "write", "writev",
};
/* clang-format on */
static const char *const base_functions[] = { "__clone", "__libc_start_main", "clone" };
/* What an allocator in a program's own file, or in any library, is entered by. */
static const char *const heap_functions[] = { "aligned_alloc", "calloc",	 "cfree",
					      "free",	       "mallinfo",	 "malloc",
					      "memalign",      "posix_memalign", "pvalloc",
					      "realloc",       "valloc" };

static int by_name(const void *key, const void *at)
{
	return strcmp(key, *(const char *const *)at);
}

static bool among(const char *name, const char *const *names, size_t n)
{
	return bsearch(name, names, n, sizeof(*names), by_name);
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int add(struct range **list, size_t *n, uint64_t start, uint64_t end, enum inject_kind kind)
{
	if (!array_room(*list, *n))
		return -ENOMEM;
	(*list)[(*n)++] = (struct range){ .start = start, .end = end, .kind = kind };
	return 0;
}

/* ---- one file ---- */

struct reading {
	struct inject_code *code;
	enum inject_kind kind;
	uint64_t bias;
	bool malloc_, free_, exe;
	uint64_t dlopen, dlopen_mode;
};

static int on_symbol(void *ctx, const struct elf_sym *s)
{
	struct reading *rd = ctx;
	struct inject_functions *f = &rd->code->found;
	uint64_t at = rd->bias + s->value;

	if (!s->defined || !s->value)
		return 0;
	rd->malloc_ = rd->malloc_ || !strcmp(s->name, "malloc");
	rd->free_ = rd->free_ || !strcmp(s->name, "free");
	if (rd->kind != INJECT_LIBC) {
		if (rd->exe && s->size && among(s->name, heap_functions, ARRAY_LEN(heap_functions)))
			return add(&rd->code->funcs, &rd->code->nfuncs, at, at + s->size,
				   INJECT_ALLOCATOR);
		return 0;
	}
	if (!strcmp(s->name, "dlopen"))
		rd->dlopen = at;
	else if (!strcmp(s->name, "__libc_dlopen_mode"))
		rd->dlopen_mode = at;
	else if (!strcmp(s->name, "dlerror"))
		f->dlerror = at;
	else if (!strcmp(s->name, "dladdr"))
		f->dladdr = at;
	else if (!strcmp(s->name, "__errno_location"))
		f->errno_location = at;
	if (s->size && among(s->name, open_functions, ARRAY_LEN(open_functions)))
		return add(&rd->code->funcs, &rd->code->nfuncs, at, at + s->size, INJECT_LIBC_OPEN);
	if (s->size && among(s->name, heap_functions, ARRAY_LEN(heap_functions)))
		return add(&rd->code->funcs, &rd->code->nfuncs, at, at + s->size, INJECT_ALLOCATOR);
	if (s->size && among(s->name, base_functions, ARRAY_LEN(base_functions)))
		return add(&rd->code->funcs, &rd->code->nfuncs, at, at + s->size, INJECT_LIBC_BASE);
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static enum inject_kind kind_of(const char *path)
{
	static const char *const libc[] = { "libc.so",	     "libc-2.",	 "libpthread.so",
					    "libpthread-2.", "libdl.so", "libdl-2.",
					    "librt.so",	     "librt-2.", "ld-musl-",
					    "libc.musl-" };
	const char *name = base_name(path);

	for (size_t i = 0; i < ARRAY_LEN(libc); i++)
		if (begins(name, libc[i]))
			return INJECT_LIBC;
	if (begins(name, "ld-linux") || begins(name, "ld-2.") || begins(name, "ld64.so") ||
	    begins(name, "ld.so"))
		return INJECT_LOADER;
	return INJECT_OTHER;
}

/* How far a mapping is from where its file was linked. */
static bool bias_of(const struct elf_file *f, const struct target_map *m, uint64_t *bias)
{
	for (int i = 0; i < f->nphdr; i++) {
		const Elf64_Phdr *p = &f->phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) ||
		    m->offset + 65536 <= p->p_offset || m->offset >= p->p_offset + p->p_filesz)
			continue;
		*bias = m->start - (p->p_vaddr + (m->offset - p->p_offset));
		return true;
	}
	return false;
}

/* Where a system call can be made, and how a handler ends. */
static void search(struct inject_code *c, struct target *t, const struct target_map *m, size_t max)
{
	size_t len = m->end - m->start < max ? m->end - m->start : max;
	struct inject_code_at *at = &c->found.calls;
	uint8_t *bytes = malloc(len);
	ssize_t pos;

	if (bytes && !target_read(t, m->start, bytes, len)) {
		pos = at->syscall ? -1 : inject_regs_find_syscall(bytes, len);
		if (pos >= 0) {
			at->syscall = m->start + (uint64_t)pos;
			at->returns = true;
		}
		pos = at->ret ? -1 : inject_regs_find_sigreturn(bytes, len);
		if (pos >= 0)
			at->ret = m->start + (uint64_t)pos;
	}
	free(bytes);
}

static bool is_known(const struct inject_code *c, uint64_t at)
{
	for (size_t i = 0; i < c->nfuncs; i++)
		if (at - c->funcs[i].start < c->funcs[i].end - c->funcs[i].start)
			return true;
	return false;
}

/* pthread_join() is a jump to a function that has no name, and is on no stack itself. */
static int add_last_jump(struct inject_code *c, const struct elf_file *elf,
			 const struct elf_starts *starts, uint64_t bias, uint64_t end)
{
	const struct elf_start *to;
	uint64_t bytes;
	uint8_t code[8];
	int64_t far;

	if (elf_read(elf, code, sizeof(code), elf_code_offset(elf, end - bias - sizeof(code))) ||
	    !inject_regs_last_jump(code, sizeof(code), &far))
		return 0;
	to = elf_start_of(starts, end - bias + (uint64_t)far);
	bytes = to && to->address == end - bias + (uint64_t)far ? elf_start_bytes(elf, to) : 0;
	if (!bytes || is_known(c, bias + to->address))
		return 0;
	return add(&c->funcs, &c->nfuncs, bias + to->address, bias + to->address + bytes,
		   INJECT_LIBC_WAIT);
}

static int add_last_jumps(struct inject_code *c, const struct elf_file *elf, uint64_t bias,
			  size_t first)
{
	size_t end = c->nfuncs;
	struct elf_starts starts;
	int err = elf_starts_read(elf, &starts);

	for (size_t i = first; i < end && !err; i++)
		if (c->funcs[i].kind == INJECT_LIBC_OPEN)
			err = add_last_jump(c, elf, &starts, bias, c->funcs[i].end);
	elf_starts_free(&starts);
	return err == -ENOMEM ? err : 0;
}

static int read_file(struct inject_code *c, struct target *t, const struct target_map *m,
		     enum inject_kind *kind)
{
	struct reading rd = { .code = c, .kind = *kind };
	struct elf_file elf = {};
	size_t first = c->nfuncs;
	int fd = target_open_map(t, m), err;

	if (fd < 0)
		return *kind == INJECT_LIBC ? fd : 0;
	err = elf_file_open(&elf, fd);
	if (!err && bias_of(&elf, m, &rd.bias)) {
		rd.exe = *kind == INJECT_OTHER;
		err = elf_symbols_of(&elf, SHT_DYNSYM, 1u << STT_FUNC | 1u << STT_GNU_IFUNC,
				     on_symbol, &rd);
		if (rd.dlopen || (rd.dlopen_mode && !c->found.dlopen)) {
			c->found.dlopen = rd.dlopen ? rd.dlopen : rd.dlopen_mode;
			c->found.dlopen_internal = !rd.dlopen;
		}
		if (!err && *kind == INJECT_LIBC)
			err = add_last_jumps(c, &elf, rd.bias, first);
	}
	elf_file_close(&elf);
	close(fd);
	if (*kind == INJECT_LIBC)
		search(c, t, m, CODE_MAX);
	/* a library that does nothing else; of a program that has one built in, the entries are
	 * known */
	if (*kind == INJECT_OTHER && rd.malloc_ && rd.free_ && strstr(base_name(m->path), ".so"))
		*kind = INJECT_ALLOCATOR;
	return err == -ENOMEM || *kind == INJECT_LIBC ? err : 0;
}

/* ---- all of them ---- */

static uint64_t loader_of(const struct target_map *maps, int n)
{
	for (int i = 0; i < n; i++)
		if (maps[i].exec && maps[i].ino && kind_of(maps[i].path) == INJECT_LOADER)
			return maps[i].start;
	return 0;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* A libc that is mapped again is that of another namespace (dlmopen(3)), and has threads in it as the first one has. The
 * program's own was mapped right after the loader, wherever the kernel puts what comes later: its functions are the ones
 * that are called. */
static int read_copy(struct inject_code *c, struct target *t, const struct target_map *m,
		     struct file *former, uint64_t loader)
{
	const struct inject_functions was = c->found;
	enum inject_kind kind = INJECT_LIBC;
	int err = read_file(c, t, m, &kind);

	if (apart(m->start, loader) < apart(former->start, loader))
		former->start = m->start;
	else
		c->found = was;
	return err;
}

static int read_all(struct inject_code *c, struct target *t, const struct target_map *maps, int n)
{
	struct file *files = calloc((size_t)n + 1, sizeof(*files));
	uint64_t loader = loader_of(maps, n);
	int nfiles = 0, err = 0;

	for (int i = 0; files && i < n && !err; i++) {
		const struct target_map *m = &maps[i];
		enum inject_kind kind = INJECT_OTHER;
		int j = 0;

		if (!m->exec)
			continue;
		if (!strcmp(m->path, "[vdso]")) {
			kind = INJECT_VDSO;
			search(c, t, m, VDSO_MAX);
		} else if (m->ino) {
			while (j < nfiles && (files[j].ino != m->ino || files[j].dev != m->dev))
				j++;
			if (j == nfiles) {
				kind = kind_of(m->path);
				err = read_file(c, t, m, &kind);
				files[nfiles++] = (struct file){ .dev = m->dev,
								 .ino = m->ino,
								 .start = m->start,
								 .kind = kind };
			} else if (files[j].kind == INJECT_LIBC) {
				err = read_copy(c, t, m, &files[j], loader);
			}
			kind = files[j].kind;
		}
		c->loader = c->loader || kind == INJECT_LOADER;
		if (!err)
			err = add(&c->maps, &c->nmaps, m->start, m->end, kind);
	}
	if (!files)
		err = -ENOMEM;
	free(files);
	return err;
}

/* _start, and musl's function behind it. */
static int add_entry(struct inject_code *c, struct target *t)
{
	Elf64_auxv_t aux;
	char path[64];
	int err = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)target_pid(t));
	f = fopen(path, "re");
	while (f && !err && fread(&aux, sizeof(aux), 1, f) == 1 && aux.a_type != AT_NULL)
		if (aux.a_type == AT_ENTRY)
			err = add(&c->funcs, &c->nfuncs, aux.a_un.a_val,
				  aux.a_un.a_val + ENTRY_BYTES, INJECT_ENTRY);
	if (f)
		fclose(f);
	return err;
}

int inject_code_open(struct inject_code **out, struct target *t)
{
	struct inject_code *c = calloc(1, sizeof(*c));
	const struct target_map *maps;
	int n, err;

	*out = c;
	if (!c)
		return -ENOMEM;
	err = target_refresh(t);
	n = err < 0 ? err : target_maps(t, &maps);
	err = n < 0 ? n : read_all(c, t, maps, n);
	if (!err)
		err = add_entry(c, t);
	if (err)
		return err;
	if (c->nfuncs)
		qsort(c->funcs, c->nfuncs, sizeof(*c->funcs), by_start);
	return c->found.dlopen && c->found.errno_location && c->found.calls.syscall ? 0 : -ENOEXEC;
}

void inject_code_close(struct inject_code *c)
{
	if (!c)
		return;
	free(c->maps);
	free(c->funcs);
	free(c);
}

const struct inject_functions *inject_code_functions(const struct inject_code *c)
{
	return &c->found;
}

/* The last range that begins at or before an address. */
static size_t before(const struct range *list, size_t n, uint64_t ip)
{
	return array_before(list, n, x, x->start <= ip);
}

enum inject_kind inject_code_at(const struct inject_code *c, uint64_t ip)
{
	size_t i = before(c->maps, c->nmaps, ip);
	enum inject_kind kind;

	if (!i || ip >= c->maps[i - 1].end)
		return INJECT_NO_CODE;
	/* a handler returns to there: what was interrupted decides */
	if (c->found.calls.ret && ip - c->found.calls.ret < SIGRETURN_BYTES)
		return INJECT_VDSO;
	kind = c->maps[i - 1].kind;
	if (kind != INJECT_LIBC && kind != INJECT_OTHER)
		return kind;
	/* some functions have several names: equal ranges */
	for (i = before(c->funcs, c->nfuncs, ip); i && c->funcs[i - 1].end > ip; i--)
		return c->funcs[i - 1].kind;
	return kind;
}
