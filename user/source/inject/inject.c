/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject.c - see inject.h: the sequence, its limits and its messages.
 *
 * In the stopped thread: mmap of a stack of our own; a memfd that holds the object and, after
 * it, a page of code for calls; that page mapped; a socketpair, of which we fetch one end;
 * dlopen of the memfd; the function; everything but the object and the socket given back. What
 * was loaded earlier is found by its memfd's name, which has a hash of its bytes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "../../util/thread.h"
#include "inject_check.h"
#include "inject_make.h"
#include "inject_seccomp.h"
#include "inject_stop.h"

#define MEANWHILE_MS 5
#define OPEN_OF_LIBC 0x80000000u /* __RTLD_DLOPEN of glibc, for __libc_dlopen_mode */

/* ---- functions of the target ---- */

static int run(struct inject_job *j, int64_t *result, const char *name, uint64_t fn, uint64_t a,
	       uint64_t b)
{
	int err = inject_remote_call(&j->r, result, fn, a, b, j->what->limit_ms);

	j->keep_stack = j->keep_stack || err;
	return err ? inject_make_failed(j, err, name) : 0;
}

static int keep_errno(struct inject_job *j)
{
	const struct inject_functions *f = inject_code_functions(j->code);
	int64_t at;
	uint32_t was;
	int err = run(j, &at, "__errno_location", f->errno_location, 0, 0);

	if (!err && target_read(j->target, (uint64_t)at, &was, sizeof(was)))
		err = inject_make_failed(j, -EIO, "reading errno");
	if (err)
		return err;
	/* the code that functions return to puts it back */
	j->r.code.word = was;
	j->r.code.word_at = (uint64_t)at;
	return 0;
}

static int say_dlerror(struct inject_job *j)
{
	const struct inject_functions *f = inject_code_functions(j->code);
	char text[512] = "it does not say why";
	int64_t at = 0;

	if (f->dlerror && !inject_remote_call(&j->r, &at, f->dlerror, 0, 0, j->what->limit_ms) &&
	    at)
		target_read_string(j->target, (uint64_t)at, text, sizeof(text));
	for (char *c = text; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	msg_error("process %d: its loader refused the agent: %s", (int)j->pid, text);
	return -ELIBBAD;
}

/* The loader takes the same path for the same object: each object has its own way of writing it. */
static void path_of(const struct inject_job *j, char *out)
{
	out += sprintf(out, "/proc/self/fd/");
	for (int bit = 0; bit < 32; bit++)
		out += sprintf(out, j->hash >> bit & 1 ? ".//" : "./");
	sprintf(out, "%d", (int)j->memfd);
}

static int load(struct inject_job *j)
{
	const struct inject_functions *f = inject_code_functions(j->code);
	char path[256];
	int64_t result;
	int err = 0;

	/* takes the loader's lock and nothing else: if that is held for good, nothing has
	 * happened yet */
	if (f->dladdr)
		err = run(j, &result, "the loader's lock", f->dladdr, f->dlopen, j->text);
	path_of(j, path);
	if (!err)
		err = inject_remote_write(&j->r, j->text, path, strlen(path) + 1);
	if (!err)
		err = run(j, &result, "dlopen", f->dlopen, j->text,
			  RTLD_NOW | (f->dlopen_internal ? OPEN_OF_LIBC : 0));
	if (err)
		return err;
	return inject_make_loaded(j) ? 0 : say_dlerror(j);
}

static int start(struct inject_job *j)
{
	const char *mark = strstr(j->what->how, "fd=N");
	int before = mark ? (int)(mark - j->what->how) + 3 : 0;
	uint64_t base = inject_make_loaded(j);
	char how[INJECT_TEXT_BYTES];
	int64_t result = 0;
	int err;

	if (mark)
		err = snprintf(how, sizeof(how), "%.*s%d%s", before, j->what->how, (int)j->sock,
			       mark + 4);
	else
		err = snprintf(how, sizeof(how), "%s", j->what->how);
	if (err >= (int)sizeof(how))
		return inject_make_failed(j, -E2BIG, j->what->symbol);
	err = inject_remote_write(&j->r, j->text, how, strlen(how) + 1);
	if (!err && base)
		err = run(j, &result, j->what->symbol, base + j->symbol, j->text, 0);
	if (err)
		return err;
	j->sock = -1; /* its own now, whatever it answered */
	j->result->answer = (int)result;
	if (!result)
		return 0;
	if ((int)result == -ENOTSUP)
		msg_error("process %d forbids its threads to read the processor's clock "
			  "(prctl(PR_SET_TSC)): nothing can be put into it; trace it by probes",
			  (int)j->pid);
	else if ((int)result == -ENOSYS)
		msg_error(
			"process %d has ThreadSanitizer, which ends a program with hooks: trace it "
			"by probes",
			(int)j->pid);
	else
		msg_error("process %d: the agent did not start (%d)", (int)j->pid, (int)result);
	return -EPROTO;
}

/* ---- the whole ---- */

/* What is left goes, as far as the thread still does what it is told; no message, there was one. */
static void give_back(struct inject_job *j)
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
		if (r->code.ret && !inject_remote_arm(r, r->stack + r->stack_bytes))
			inject_remote_syscall(r, &unused, SYS_munmap, j->stub, j->page, 0, 0, 0, 0);
		r->code = inject_code_functions(j->code)->calls;
	}
	if (!r->home || !r->code.ret || inject_remote_arm(r, r->home))
		r->sp = 0;
	inject_remote_syscall(r, &unused, SYS_munmap, r->stack, r->stack_bytes, 0, 0, 0, 0);
}

static int in_thread(struct inject_job *j)
{
	int err;

	j->r.code = inject_code_functions(j->code)->calls;
	j->result->reused = inject_make_loaded(j);
	j->r.home = inject_make_home(j);
	err = inject_remote_begin(&j->r);
	if (err)
		return inject_make_failed(j, err, "ptrace");
	err = inject_make_stack(j);
	if (!err)
		err = inject_make_stub(j);
	if (!err)
		err = inject_make_socket(j);
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
static int check_thread(struct inject_job *j)
{
	const char *name = NULL;
	int err = inject_regs_shadow(j->r.tid) ? -ENOTSUP : inject_seccomp_check(j->r.tid, &name);

	if (err == -ENOTSUP)
		msg_error("process %d has shadow stacks (CET), which do not allow the agent to be "
			  "added: start it under cudatrace, or without x86_shstk in GLIBC_TUNABLES",
			  (int)j->pid);
	else if (err == -EACCES)
		msg_error(
			"process %d has a seccomp filter that forbids %s: start it under cudatrace",
			(int)j->pid, name);
	else if (err == -EPERM)
		msg_error("process %d has a seccomp filter, and what it forbids cannot be known "
			  "without CAP_SYS_ADMIN: run as "
			  "root, or start it under cudatrace",
			  (int)j->pid);
	else if (err)
		err = inject_make_failed(j, err, "reading its seccomp filters");
	return err;
}

static int stop_and_do(struct inject_job *j)
{
	struct inject_place p = {
		.pid = j->pid, .target = j->target, .code = j->code, .what = j->what
	};
	int err = inject_stop(&j->r, &p), closed;

	j->result->tid = p.tid;
	j->result->tries = p.tries;
	if ((err == -EPERM || err == -EACCES) && !inject_check_ended(j->pid))
		inject_check_refused(j->pid);
	else if (err == -EAGAIN && p.tid)
		msg_error("no thread of process %d was found at a safe point within %d ms (thread "
			  "%d, the last, was %s): try "
			  "again, or start the program under cudatrace",
			  (int)j->pid, j->what->limit_ms, (int)p.tid, p.why ? p.why : "?");
	else if (err)
		err = inject_make_failed(j, err == -EAGAIN ? -ESRCH : err, "stopping a thread");
	if (err)
		return err;
	err = check_thread(j);
	if (!err)
		err = in_thread(j);
	closed = inject_remote_close(&j->r);
	j->result->stopped_ns = inject_now_ns() - j->r.since_ns;
	if (!err && closed)
		err = inject_make_failed(j, closed, "letting it go on");
	return err;
}

static void *main_of_thread(void *arg)
{
	struct inject_job *j = arg;

	prctl(PR_SET_TIMERSLACK, 1000); /* ns */
	j->err = stop_and_do(j);
	inject_remote_close(&j->r);
	if (j->done >= 0)
		eventfd_write(j->done, 1);
	return NULL;
}

/* The thread may take seconds, where programs leave the processors to nobody. */
static void serve_meanwhile(struct inject_job *j)
{
	struct pollfd p = { .fd = j->done, .events = POLLIN };

	while (j->done >= 0 && poll(&p, 1, MEANWHILE_MS) <= 0)
		j->what->meanwhile(j->what->meanwhile_ctx);
}

/* The tracer is a thread of its own: whatever happens, the kernel lets the tracee go when it ends. */
static int in_tracer(struct inject_job *j)
{
	pthread_t thread;
	int err;

	j->done = j->what->meanwhile ? eventfd(0, EFD_CLOEXEC) : -1;
	err = thread_start(&thread, "ct-inject", 0, main_of_thread, j);
	if (err) {
		msg_error("no thread could be started: %s", strerror(-err));
	} else {
		serve_meanwhile(j);
		pthread_join(thread, NULL);
	}
	if (j->done >= 0)
		close(j->done);
	return err ? err : j->err;
}

static int prepare(struct inject_job *j)
{
	int err = inject_check(j->pid);

	if (err)
		return err;
	err = target_open(&j->target, j->pid, 0);
	if (err)
		return inject_make_failed(j, err, "opening it");
	if (j->what->ready && !j->what->ready(j->what->ctx, j->target)) {
		msg_error("process %d has not opened a GPU yet, and the agent must not be the "
			  "first to do so: try again when it has",
			  (int)j->pid);
		return -EAGAIN;
	}
	inject_make_name(j);
	err = inject_make_symbol(j);
	if (err)
		return err;
	err = inject_code_open(&j->code, j->target);
	if (err == -ENOEXEC && !inject_check_ended(j->pid))
		msg_error("process %d has no dlopen() of glibc: start it under cudatrace",
			  (int)j->pid);
	else if (err)
		err = inject_make_failed(j, err, "reading its mappings");
	return err;
}

int inject_run(pid_t pid, const struct inject_what *what, struct inject_result *result)
{
	struct inject_job j = {
		.pid = pid, .what = what, .result = result, .memfd = -1, .sock = -1
	};
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
	else
		msg_verb("process %d: %s came in by thread %d, which was held for %llu us",
			 (int)pid, what->name, (int)result->tid,
			 (unsigned long long)(result->stopped_ns / 1000));
	return err;
}
