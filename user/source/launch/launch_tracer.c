/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch_tracer.c - see launch_tracer.h.
 *
 * A thread of ours makes the process, by clone(2) with our memory and descriptors, and waits until it has
 * ended: the process has the thread's control block meanwhile, so that it can use libc. It must not wait for
 * anything that one of our threads may hold when we are stopped: it takes no lock and allocates nothing. Events
 * go through a ring that it alone fills, and only it makes ptrace(2) calls, so that what it has let go is known
 * to it.
 *
 * In a kernel that lets only ancestors trace (Yama) the process may not; then the thread itself is the
 * tracer. To detach, the tracer ends: the kernel lets every tracee go where it is. PTRACE_DETACH would need
 * each of them stopped first, and a stop makes epoll_wait(2), and recv(2) with a time-out, fail with EINTR in
 * the program. Knows nothing of BPF or of CUDA.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/thread.h"
#include "launch_tracer.h"

#define EVENTS 4096
#define ASKINGS 256
#define STACK_BYTES (256u << 10)
#define LOOK_MS \
	100 /* how often it is looked whether we are stopped, while something waits for us */

enum { REQUEST_END = -1, REQUEST_COLLECT = -2 };

struct slot {
	struct tracer_event e;
	bool answered; /* of the tracer */
	bool let_go;   /* atomic; set by the tracer */
};

struct tracer {
	const struct launch_ops *ops;
	void *ctx;
	bool process;
	pthread_t thread;
	bool threaded;
	sem_t answered, parked;
	int asked, ask_fd, children; /* an eventfd; of threads' questions; a signalfd for SIGCHLD */
	void *stack;
	pid_t pid; /* of the tracer's thread group */
	bool gone; /* the process has ended before its time */
	/* what it is told */
	int request;
	pid_t tid;
	unsigned long addr, data;
	uint64_t number; /* of the event that this is the answer to; 0: to none */
	int err;
	/* the events: filled by the tracer, emptied by us; numbers from 1 */
	struct slot slots[EVENTS];
	uint64_t first, next; /* atomic: the oldest that has not been dealt with; the one to come */
	uint64_t given;	      /* of us: the last that was handed out */
	bool overflowed;      /* atomic */
	bool none;	      /* there was no child and no tracee */
	/* of the tracer: what threads asked for and were interrupted for; we are stopped */
	struct {
		pid_t tid;
		int why;
	} askings[ASKINGS];
	bool we_are_stopped;
};

/* ---- the tracer ---- */

static struct slot *slot_of(struct tracer *t, uint64_t number)
{
	return &t->slots[number % EVENTS];
}

static void interrupt(struct tracer *t, const struct launch_ask *ask)
{
	int at = -1;

	for (int i = 0; i < ASKINGS && (at < 0 || t->askings[at].tid != ask->tid); i++)
		if (t->askings[i].tid == ask->tid || (at < 0 && !t->askings[i].tid))
			at = i;
	if (at < 0)
		return;
	t->askings[at].tid = ask->tid;
	t->askings[at].why = ask->why;
	if (ptrace(PTRACE_INTERRUPT, ask->tid, 0, 0) < 0)
		t->askings[at].tid = 0; /* not a tracee, or killed */
	else
		t->ops->interrupted(t->ctx, ask);
}

/* What it asked for, which is answered with that; 0: nothing. */
static int end_asking(struct tracer *t, pid_t tid)
{
	for (int i = 0; i < ASKINGS; i++)
		if (t->askings[i].tid == tid) {
			t->askings[i].tid = 0;
			return t->askings[i].why;
		}
	return 0;
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* The thread goes on as it would without us. */
static void launch_tracer_let_go(const struct tracer_event *e)
{
	int sig = WSTOPSIG(e->status);

	if (e->status >> 16 == PTRACE_EVENT_STOP && is_stop_signal(sig))
		ptrace(PTRACE_LISTEN, e->tid, 0, 0);
	else
		ptrace(PTRACE_CONT, e->tid, 0, e->status >> 16 ? 0 : sig);
}

static bool has_message(int status)
{
	int event = status >> 16;

	return event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
	       event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_EXEC;
}

/* Is our process stopped? The letter of its state is behind its name, which is in parentheses. */
static bool are_we_stopped(void)
{
	char path[32], text[512], *state;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)getppid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	state = strrchr(text, ')');
	return state && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

/* Lets go what waits for us, if we are stopped. */
static void look_at_us(struct tracer *t)
{
	uint64_t first = __atomic_load_n(&t->first, __ATOMIC_ACQUIRE);

	t->we_are_stopped = t->process && are_we_stopped();
	for (uint64_t i = first; t->we_are_stopped && i < t->next; i++) {
		struct slot *s = slot_of(t, i);

		if (s->answered || !WIFSTOPPED(s->e.status))
			continue;
		s->answered = true;
		__atomic_store_n(&s->let_go, true, __ATOMIC_RELEASE);
		launch_tracer_let_go(&s->e);
	}
}

static void add_event(struct tracer *t, struct tracer_event *e)
{
	struct slot *s = slot_of(t, t->next);

	if (WIFSTOPPED(e->status) && has_message(e->status))
		ptrace(PTRACE_GETEVENTMSG, e->tid, 0, &e->msg);
	e->why = !WIFSTOPPED(e->status) || e->status >> 16 == PTRACE_EVENT_STOP
			 ? end_asking(t, e->tid)
			 : 0;
	/* no room: only when we are stopped, or nearly */
	if (t->next - __atomic_load_n(&t->first, __ATOMIC_ACQUIRE) == EVENTS) {
		__atomic_store_n(&t->overflowed, true, __ATOMIC_RELEASE);
		if (WIFSTOPPED(e->status))
			launch_tracer_let_go(e);
		return;
	}
	e->number = t->next;
	*s = (struct slot){ .e = *e };
	__atomic_store_n(&t->next, t->next + 1, __ATOMIC_RELEASE);
	if (t->we_are_stopped)
		look_at_us(t);
}

/* Takes what has happened. */
static void collect(struct tracer *t)
{
	bool any = false;

	/* without a process of its own, it leaves the rest to a later call */
	while (t->process || t->next - t->first < EVENTS) {
		struct tracer_event e = { 0 };

		e.tid = waitpid(-1, &e.status, __WALL | WNOHANG);
		if (e.tid < 0 && errno == EINTR)
			continue;
		t->none = e.tid < 0;
		if (e.tid <= 0)
			break;
		any = true;
		add_event(t, &e);
	}
	if (any && t->process)
		kill(getppid(), SIGCHLD);
}

/* Does what it is told. */
static int obey(struct tracer *t)
{
	struct slot *s = t->number ? slot_of(t, t->number) : NULL;

	if (t->request == REQUEST_COLLECT) {
		collect(t);
		return 0;
	}
	if (s && s->answered)
		return -ESRCH;
	if (s)
		s->answered = true;
	return ptrace((enum __ptrace_request)t->request, t->tid, t->addr, t->data) < 0 ? -errno : 0;
}

static bool is_waited_for(struct tracer *t)
{
	return t->process && __atomic_load_n(&t->first, __ATOMIC_ACQUIRE) < t->next;
}

static void serve(struct tracer *t)
{
	struct pollfd fds[] = {
		{ .fd = t->asked, .events = POLLIN },
		{ .fd = t->ask_fd, .events = POLLIN },
		{ .fd = t->children, .events = POLLIN },
	};
	struct signalfd_siginfo si;
	struct launch_ask ask;
	uint64_t n;

	sem_post(&t->answered);
	for (;;) {
		int ready = poll(fds, ARRAY_LEN(fds), is_waited_for(t) ? LOOK_MS : -1);

		while (fds[1].fd >= 0 && t->ops->next_ask(t->ctx, &ask))
			interrupt(t, &ask);
		if (t->process) {
			while (read(t->children, &si, sizeof(si)) > 0)
				;
			collect(t);
		}
		if (!ready && is_waited_for(t))
			look_at_us(t);
		if (ready <= 0 || !(fds[0].revents & POLLIN) || read(t->asked, &n, sizeof(n)) < 0)
			continue;
		if (t->request == REQUEST_END)
			return;
		t->err = obey(t);
		sem_post(&t->answered);
	}
}

static int process_main(void *arg)
{
	struct tracer *t = arg;
	sigset_t chld;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	t->pid = getpid();
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	t->children = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->children >= 0 && getppid() != 1)
		serve(t);
	return 0;
}

/* ---- the thread ---- */

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) < 0 && errno == EINTR)
		;
}

/* The address by which a thread finds its variables. */
static void *control_block(void)
{
#if defined(__x86_64__)
	void *at;

	__asm__("mov %%fs:0, %0" : "=r"(at));
	return at;
#else
	return __builtin_thread_pointer();
#endif
}

static void *launch_tracer_thread_main(void *arg)
{
	struct tracer *t = arg;

	/* the process inherits the priority, and the privileges, that this gives the thread */
	t->ask_fd = t->ops->ask_fd ? t->ops->ask_fd(t->ctx) : -1;
	if (!t->process) {
		/* With a working directory of its own it does not keep the others from setns(2). */
		unshare(CLONE_FS);
		serve(t);
		return NULL;
	}
	if (clone(process_main, (char *)t->stack + STACK_BYTES,
		  CLONE_VM | CLONE_FILES | CLONE_SETTLS | SIGCHLD, t, NULL, control_block()) < 0)
		sem_post(&t->answered);
	else
		wait_for(&t->parked); /* until it has ended */
	return NULL;
}

/* ---- for us ---- */

static void send_request(struct tracer *t, int what)
{
	t->request = what;
	while (eventfd_write(t->asked, 1) < 0 && errno == EINTR)
		;
}

/* The process has ended. */
static void reaped(struct tracer *t)
{
	t->gone = true;
	t->pid = -1;
}

/* Until the tracer has answered, or is gone. */
static int await_answer(struct tracer *t)
{
	struct timespec until;

	if (!t->process) {
		wait_for(&t->answered);
		return 0;
	}
	while (!t->gone) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		if (!sem_timedwait(&t->answered, &until))
			return 0;
		if (errno == ETIMEDOUT && t->pid > 0 &&
		    waitpid(t->pid, NULL, __WALL | WNOHANG) == t->pid)
			reaped(t);
	}
	return -ESRCH;
}

static int demand(struct tracer *t, int what, pid_t tid, unsigned long addr, unsigned long data,
		  uint64_t number)
{
	int err;

	if (t->gone)
		return -ESRCH;
	t->tid = tid;
	t->addr = addr;
	t->data = data;
	t->number = number;
	send_request(t, what);
	err = await_answer(t);
	return err ? err : t->err;
}

struct tracer *tracer_open(const struct launch_ops *ops, void *ctx, bool process)
{
	struct tracer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ops = ops;
	t->ctx = ctx;
	t->process = process;
	t->first = t->next = 1;
	t->children = -1;
	t->pid = process ? -1 : getpid();
	t->stack = MAP_FAILED;
	sem_init(&t->answered, 0, 0);
	sem_init(&t->parked, 0, 0);
	t->asked = eventfd(0, EFD_CLOEXEC);
	if (process)
		t->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (t->asked >= 0 && (!process || t->stack != MAP_FAILED))
		t->threaded =
			!thread_start(&t->thread, "ct-tracer", 0, launch_tracer_thread_main, t);
	if (t->threaded && !await_answer(t) && t->pid > 0)
		return t;
	tracer_close(t);
	return NULL;
}

pid_t tracer_pid(const struct tracer *t)
{
	return t->pid;
}

int tracer_call(struct tracer *t, int request, pid_t tid, unsigned long addr, unsigned long data)
{
	return demand(t, request, tid, addr, data, 0);
}

/* A child of ours that has ended. The tracer hands out the ends of tracees, and the kernel lets us have that
 * of a child behind that. */
static bool next_child(struct tracer *t, struct tracer_event *e, bool *over)
{
	for (;;) {
		*e = (struct tracer_event){ 0 };
		e->tid = waitpid(-1, &e->status, __WALL | WNOHANG);
		if (e->tid < 0 && errno == EINTR)
			continue;
		if (e->tid == t->pid && e->tid > 0) {
			reaped(t);
			continue;
		}
		*over = e->tid < 0;
		return e->tid > 0;
	}
}

bool tracer_next(struct tracer *t, struct tracer_event *e, bool *over)
{
	uint64_t next;

	*over = false;
	if (t->given == __atomic_load_n(&t->first, __ATOMIC_RELAXED))
		__atomic_store_n(&t->first, t->given + 1, __ATOMIC_RELEASE);
	next = __atomic_load_n(&t->next, __ATOMIC_ACQUIRE);
	if (!t->process && t->first == next) {
		demand(t, REQUEST_COLLECT, 0, 0, 0, 0);
		next = t->next;
	}
	if (t->first < next) {
		t->given = t->first;
		*e = slot_of(t, t->first)->e;
		return true;
	}
	if (t->process)
		return next_child(t, e, over);
	*over = t->none;
	return false;
}

int tracer_done(struct tracer *t, const struct tracer_event *e, int request, unsigned long data)
{
	return request && e->number ? demand(t, request, e->tid, 0, data, e->number) : 0;
}

bool tracer_let_go(const struct tracer *t, const struct tracer_event *e)
{
	return e->number && __atomic_load_n(&t->slots[e->number % EVENTS].let_go, __ATOMIC_ACQUIRE);
}

bool tracer_overflowed(struct tracer *t)
{
	return __atomic_exchange_n(&t->overflowed, false, __ATOMIC_ACQ_REL);
}

void tracer_close(struct tracer *t)
{
	if (!t)
		return;
	if (t->threaded && (!t->process || t->pid > 0))
		send_request(t, REQUEST_END);
	while (t->process && t->pid > 0 && waitpid(t->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	sem_post(&t->parked);
	if (t->threaded)
		pthread_join(t->thread, NULL);
	if (t->stack != MAP_FAILED)
		munmap(t->stack, STACK_BYTES);
	if (t->children >= 0)
		close(t->children);
	if (t->asked >= 0)
		close(t->asked);
	sem_destroy(&t->answered);
	sem_destroy(&t->parked);
	free(t);
}
