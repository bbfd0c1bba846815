/* SPDX-License-Identifier: BSD-2-Clause */
/* own.c - see own.h. */
#include "../common/compat.h"

#include "own.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../hooks/capture.h"
#include "../common/sys.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define LOADER_COOKIE ~0u     /* of the loader's function */
#define NAME_COOKIE (~0u - 1) /* of functions that rename threads */
#define PRCTL_COOKIE (~0u - 2)
#define SYSCALL_COOKIE (~0u - 3)
#define EXIT_COOKIE (~0u - 4)
/* of functions that fail, or have another effect, if we have a thread */
#define UNSHARE_COOKIE (~0u - 5)
#define SETNS_COOKIE (~0u - 6)
#define CAPSET_COOKIE (~0u - 7)
#define CLONE_COOKIE (~0u - 8)
#define DLMOPEN_COOKIE (~0u - 9)
#define SETRLIMIT_COOKIE (~0u - 10)
#define PRLIMIT_COOKIE (~0u - 11)
/* NOLINTNEXTLINE(misc-redundant-expression): that both are the same is what is asserted */
_Static_assert(OWN_COOKIES == PRLIMIT_COOKIE, "the smallest of these cookies");

/* ---- what a call means ---- */

/* The system call that a hooked function of libc makes, or -1. */
static long call_of(__u32 id, const struct hook_regs *r)
{
	switch (id) {
	case PRCTL_COOKIE: return SYS_prctl;
	case UNSHARE_COOKIE: return SYS_unshare;
	case SETNS_COOKIE: return SYS_setns;
	case CAPSET_COOKIE: return SYS_capset;
	case SETRLIMIT_COOKIE: return SYS_setrlimit;
	case PRLIMIT_COOKIE: return SYS_prlimit64;
	case SYSCALL_COOKIE: return (long)r->args[0];
	default: return -1;
	}
}

/* A filter applies only to the calling thread. If hooks take their times from a system call, they can
 * take none there. */
static enum own_meaning filter_of_thread(void)
{
	return capture_by_ticks() ? OWN_FILTER : OWN_CLOCK;
}

/* In the strict mode of seccomp the processor's clock is forbidden, too. */
static enum own_meaning meaning_of_prctl(int option, __u64 arg)
{
	switch (option) {
	case PR_SET_NAME: return OWN_NAME;
	case PR_SET_SECCOMP: return arg == SECCOMP_MODE_STRICT ? OWN_CLOCK : filter_of_thread();
	case PR_SET_SYSCALL_USER_DISPATCH: return arg ? filter_of_thread() : OWN_NOTHING;
	case PR_SET_TSC: return arg == PR_TSC_SIGSEGV ? OWN_CLOCK : OWN_NOTHING;
	default: return OWN_NOTHING;
	}
}

/* Of seccomp(2) */
static enum own_meaning meaning_of_seccomp(__u64 operation, __u64 filter_flags)
{
	if (operation == SECCOMP_SET_MODE_STRICT)
		return OWN_CLOCK;
	if (operation != SECCOMP_SET_MODE_FILTER)
		return OWN_NOTHING;
	return filter_flags & SECCOMP_FILTER_FLAG_TSYNC ? OWN_FILTER_ALL : filter_of_thread();
}

static enum own_meaning meaning_of(long nr, const __u64 *args)
{
	switch (nr) {
	case SYS_prctl: return meaning_of_prctl((int)args[0], args[1]);
	case SYS_seccomp: return meaning_of_seccomp(args[0], args[1]);
	case SYS_unshare:
	case SYS_setns:
	case SYS_capset: return OWN_RIGHTS;
	case SYS_setrlimit: return args[0] == RLIMIT_AS ? OWN_LIMIT : OWN_NOTHING;
	case SYS_prlimit64: return args[1] == RLIMIT_AS && args[2] ? OWN_LIMIT : OWN_NOTHING;
	default: return OWN_NOTHING;
	}
}

/* Of clone(3): libc's own calls of it make threads, or have the caller wait until the child has another
 * program. */
static enum own_meaning meaning_of_clone(__u64 clone_flags)
{
	return (clone_flags & CLONE_VM) &&
			       !(clone_flags & (CLONE_THREAD | CLONE_VFORK | CLONE_SETTLS))
		       ? OWN_SHARES
		       : OWN_NOTHING;
}

struct own_call own_call(__u32 id, const struct hook_regs *r)
{
	struct own_call c = { .nr = call_of(id, r), .args = r->args + (id == SYSCALL_COOKIE) };

	switch (id) {
	/* libc's constructors and destructors have no handler of exceptions */
	case LOADER_COOKIE: c.meaning = r->args[0] ? OWN_LOADER : OWN_CONSTRUCTS; break;
	case DLMOPEN_COOKIE: c.meaning = OWN_NAMESPACE; break;
	case EXIT_COOKIE: c.meaning = OWN_END; break;
	case NAME_COOKIE: c.meaning = OWN_NAME; break;
	case CLONE_COOKIE: c.meaning = meaning_of_clone(r->args[2]); break;
	default: c.meaning = meaning_of(c.nr, c.args);
	}
	return c;
}

/* Returns how many threads the process has; 0: that is not known. */
static unsigned long thread_count(void)
{
	struct stat s = { 0 };

	if (sys_call(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&s, 0, 0, 0) ||
	    s.st_nlink < 2)
		return 0;
	return s.st_nlink - 2;
}

bool own_needs_one_thread(const struct own_call *c)
{
	/* all threads must have the same rights when libc changes the user */
	bool needs = c->nr == SYS_capset;

	/* CLONE_NEWNET: our thread must be where the program can reach it (listener.h) */
	if (c->nr == SYS_unshare)
		needs = c->args[0] & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM |
				      CLONE_FILES | CLONE_NEWNET);
	if (c->nr == SYS_setns)
		needs = !(int)c->args[1] ||
			c->args[1] & (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWTIME | CLONE_NEWNET);
	return needs && thread_count() <= 2;
}

bool own_limits_addresses(const struct own_call *c, __u64 *bytes)
{
	bool by_pid = c->nr == SYS_prlimit64;
	struct rlimit limit;

	if (by_pid && c->args[0] && (long)c->args[0] != sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0))
		return false;
	if (capture_memory(&limit, sizeof(limit), c->args[by_pid ? 2 : 1]))
		return false;
	*bytes = limit.rlim_cur;
	return limit.rlim_cur != RLIM_INFINITY;
}

bool own_changes_clock(const struct own_call *c)
{
	return c->nr == SYS_setns && !capture_by_ticks() &&
	       (!(int)c->args[1] || c->args[1] & CLONE_NEWTIME);
}

/* ---- filters ---- */

/* The number behind a word of a status file; 0: it is not there. */
static long number_of(const char *status, const char *word)
{
	const char *at = strstr(status, word);

	return at ? strtol(at + strlen(word), NULL, 10) : 0;
}

/* How much a thread is restricted: 0: not at all. Linux before 5.9 does not say how many filters there are. Sets
 * *strict if it is in seccomp's strict mode. */
static long restricted(int tasks, const char *thread, bool *strict)
{
	char path[64], status[4096];
	ssize_t n;
	long mode;
	int fd;

	snprintf(path, sizeof(path), "%s/status", thread);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, status, sizeof(status) - 1);
	close(fd);
	status[n > 0 ? n : 0] = '\0';
	mode = number_of(status, "\nSeccomp:");
	*strict |= mode == SECCOMP_MODE_STRICT;
	return mode + number_of(status, "\nSeccomp_filters:");
}

bool own_is_restricted(void)
{
	bool strict = false;

	return restricted(AT_FDCWD, "/proc/thread-self", &strict) != 0;
}

bool own_finds_filters(int most, bool *strict)
{
	static long place; /* where the next look begins */
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *d = NULL;
	char thread[16];
	bool found;
	long own;

	if (!tasks)
		return false;
	snprintf(thread, sizeof(thread), "%ld", sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0));
	own = restricted(dirfd(tasks), thread, strict);
	snprintf(thread, sizeof(thread), "%ld", sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0));
	found = restricted(dirfd(tasks), thread, strict) > own;
	seekdir(tasks, place);
	for (int i = 0; i < most && !found && (d = readdir(tasks)) != NULL; i++)
		found = d->d_name[0] != '.' && restricted(dirfd(tasks), d->d_name, strict) > own;
	place = d ? telldir(tasks) : 0;
	closedir(tasks);
	return found;
}

/* ---- the hooks ---- */

/* Functions of libc that are hooked here. They are looked up once, because a forked
 * child must not call the loader. */
struct own_hook {
	const char *name;
	__u32 id, flags;
	__u64 address;
	bool looked;
};

static struct hook_spec spec_of(struct own_hook *o)
{
	if (!o->looked)
		o->address = (__u64)(uintptr_t)dlsym(RTLD_DEFAULT, o->name);
	o->looked = true;
	return (struct hook_spec){ .address = o->address,
				   .id = o->id,
				   .flags = o->flags | HOOK_FIRST };
}

/*
 * dlopen() calls this function of libc to run the constructors of what it has mapped. (The one that
 * is there for debuggers, r_brk, is a single ret, which cannot be hooked.)
 */
enum hook_result own_hook_loader(bool *first)
{
	static struct own_hook loader = { .name = "_dl_catch_exception",
					  .id = LOADER_COOKIE,
					  .flags = HOOK_ENTRY_ONLY };
	enum hook_result result = HOOK_NOT_CODE;
	struct hook_spec spec;

	*first = !loader.looked;
	spec = spec_of(&loader);
	if (spec.address && engine_install(&spec, 1, &result) < 0)
		result = HOOK_NO_MEMORY;
	return result;
}

/* Hooks the functions that may change a thread's name (without these hooks a thread would keep its
 * first name in the trace), those by which a program restricts its system calls, and the one by
 * which it ends. */
void own_hook_others(void)
{
	static struct own_hook others[] = {
		{ .name = "prctl", .id = PRCTL_COOKIE },
		{ .name = "pthread_setname_np", .id = NAME_COOKIE },
		{ .name = "syscall", .id = SYSCALL_COOKIE },
		/* The kernel refuses some calls of the first two to a process of several threads;
		 * after the third the threads of the process have different rights, and libc ends it
		 * when it changes its user. */
		{ .name = "unshare", .id = UNSHARE_COOKIE },
		{ .name = "setns", .id = SETNS_COOKIE },
		{ .name = "capset", .id = CAPSET_COOKIE },
		{ .name = "setrlimit", .id = SETRLIMIT_COOKIE, .flags = HOOK_ENTRY_ONLY },
		{ .name = "prlimit", .id = PRLIMIT_COOKIE, .flags = HOOK_ENTRY_ONLY },
		{ .name = "clone", .id = CLONE_COOKIE, .flags = HOOK_ENTRY_ONLY },
		/* exit() calls it too */
		{ .name = "_exit", .id = EXIT_COOKIE, .flags = HOOK_ENTRY_ONLY },
		/* which looks at its return address, to know who calls */
		{ .name = "dlmopen", .id = DLMOPEN_COOKIE, .flags = HOOK_ENTRY_ONLY },
	};

	struct hook_spec specs[sizeof(others) / sizeof(others[0])];
	enum hook_result results[sizeof(others) / sizeof(others[0])];
	unsigned int n = 0;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		specs[n] = spec_of(&others[i]);
		n += specs[n].address != 0;
	}
	/* together: each time all mappings are read */
	engine_install(specs, n, results);
}
