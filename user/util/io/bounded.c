/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bounded.c - see bounded.h.
 *
 * A worker is made of two tasks. A thread of ours, the host, gives it what the C library keeps
 * for each thread; it makes a process that shares the memory and the descriptors (CLONE_VM |
 * CLONE_FILES), runs on the host's thread-local storage, and does the jobs; then the host sleeps
 * in wait4 until that process ends, and touches nothing meanwhile. At our end the host is killed
 * with us, and the process, if it is stuck, is nobody's any more: init takes it in.
 */
#include "bounded.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../now.h"
#include "../thread.h"
#include "../self/roomy.h"
#include "../self/urgent.h"

/* only the part that is needed uses memory; the guard is larger than what a function puts on the
 * stack */
#define GUARD_BYTES (1u << 20)
#define STACK_BYTES (GUARD_BYTES + ROOMY_BYTES)
#define HOST_BYTES (256u << 10)

enum state {
	STATE_IDLE,  /* waits for a job */
	STATE_GIVEN, /* has a job, and somebody waits for it */
	STATE_DONE,  /* the one who waits takes the result */
	STATE_LEFT,  /* nobody waits: the worker drops it and ends */
	STATE_END,   /* it is to end */
	STATE_DEAD,  /* the process is gone, in the middle of a job or at its end */
};

struct worker {
	struct worker *next; /* idle workers */
	_Atomic uint32_t state;
	struct bounded_job *job;
	uint32_t owner;
	pid_t parent;
	_Atomic pid_t pid; /* 0: it has not begun */
	char *stack;
	pthread_t host;
};

/* Workers that are left behind, by owner. */
struct held {
	uint32_t owner, n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the rest */
static struct worker *idle;
static struct bounded_job *crashed; /* kept for ever */
static struct held held[BOUNDED_IN_ALL + 1];
static struct bounded_counts counts;
static pid_t pool_of; /* the process whose workers these are; 0: there are none yet */

/* ---- waiting ---- */

static void wake(_Atomic uint32_t *state)
{
	syscall(SYS_futex, state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Waits while *state is `was`, until end_ns (CLOCK_MONOTONIC; 0: for ever). Returns what it is
 * then. */
static uint32_t wait_while(_Atomic uint32_t *state, uint32_t was, uint64_t end_ns)
{
	uint32_t is;

	while ((is = atomic_load(state)) == was) {
		uint64_t now = end_ns ? now_ns() : 0;
		struct timespec left = { (time_t)((end_ns - now) / 1000000000),
					 (long)((end_ns - now) % 1000000000) };

		if (end_ns && now >= end_ns)
			break;
		syscall(SYS_futex, state, FUTEX_WAIT, was, end_ns ? &left : NULL, NULL, 0);
	}
	return is;
}

/* ---- those left behind ---- */

static struct held *held_of(uint32_t owner)
{
	struct held *unused = NULL;

	for (size_t i = 0; i <= BOUNDED_IN_ALL; i++) {
		if (held[i].n && held[i].owner == owner)
			return &held[i];
		if (!held[i].n)
			unused = &held[i];
	}
	if (unused)
		unused->owner = owner;
	return unused;
}

static void came_back(uint32_t owner)
{
	struct held *h;

	pthread_mutex_lock(&lock);
	h = held_of(owner);
	h->n--;
	counts.held--;
	pthread_mutex_unlock(&lock);
}

/* ---- a worker ---- */

/* The job that this thread's worker runs: it has the thread-local storage of its host. */
static _Thread_local struct bounded_job *running;

void bounded_no_memory(void)
{
	if (!running)
		abort();
	running->no_memory = true;
	/* the system call itself: what runs at the end of the program must not run here */
	syscall(SYS_exit_group, 1);
	abort();
}

/* Limits are each process's own, though memory is shared: the limit is only for the worker. */
static void run_limited(struct bounded_job *job)
{
	uint64_t before = job->measure(), after;
	struct rlimit was, now;

#ifdef __SANITIZE_ADDRESS__ /* its malloc() does not fail, it ends the program, and takes more */
	before = 0;
#endif
	if (!before || getrlimit(RLIMIT_DATA, &was)) {
		job->run(job);
		return;
	}
	now = was;
	if (before + job->grow_max < now.rlim_cur)
		now.rlim_cur = before + job->grow_max;
	setrlimit(RLIMIT_DATA, &now);
	job->run(job);
	setrlimit(RLIMIT_DATA, &was);
	after = job->measure();
	job->grew = after ? (int64_t)(after - before) : 0;
}

static void run_job(struct bounded_job *job)
{
	running = job;
	job->grew = 0;
	if (job->grow_max)
		run_limited(job);
	else
		job->run(job);
	running = NULL;
}

static int work(void *arg)
{
	struct worker *w = arg;
	uint32_t given;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	w->pid = getpid();
	if (getppid() != w->parent)
		return 1;
	while (wait_while(&w->state, STATE_IDLE, 0) != STATE_END) {
		struct bounded_job *job = w->job;

		urgent_child(URGENT_WHILE_WE_ARE);
		run_job(job);
		given = STATE_GIVEN;
		if (!atomic_compare_exchange_strong(&w->state, &given, STATE_DONE)) {
			job->drop(job);
			return 0;
		}
		wake(&w->state);
		/* the process that waits makes us idle, or ends us */
		wait_while(&w->state, STATE_DONE, 0);
	}
	return 0;
}

static void *host(void *arg)
{
	struct worker *w = arg;
	pid_t pid = clone(work, w->stack + STACK_BYTES, CLONE_VM | CLONE_FILES | CLONE_FS, w);
	uint32_t was;
	int status = 0;

	/* by the system call itself: the C library's own may look at what the worker works with */
	while (pid > 0 && syscall(SYS_wait4, pid, &status, __WALL, NULL) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) || (running && running->no_memory)) {
		pthread_mutex_lock(&lock);
		counts.crashed++;
		pthread_mutex_unlock(&lock);
	}
	munmap(w->stack, STACK_BYTES);
	was = atomic_exchange(&w->state, STATE_DEAD);
	if (was != STATE_LEFT) {
		wake(&w->state);
		return NULL;
	}
	/* nobody else knows it now */
	came_back(w->owner);
	free(w);
	return NULL;
}

static struct worker *worker_make(void)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->parent = getpid();
	w->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (w->stack == MAP_FAILED) {
		free(w);
		return NULL;
	}
	mprotect(w->stack, GUARD_BYTES, PROT_NONE);
	if (thread_start(&w->host, "ct-reader", HOST_BYTES, host, w)) {
		munmap(w->stack, STACK_BYTES);
		free(w);
		return NULL;
	}
	return w;
}

/* ---- jobs ---- */

/* Returns a worker that has nothing to do, and makes one if there is none. */
static int take_worker(uint32_t owner, struct worker **w)
{
	const struct held *h;
	bool refused;

	*w = NULL;
	pthread_mutex_lock(&lock);
	if (pool_of != getpid()) {
		/* after a fork: the workers are those of the process that it was */
		pool_of = getpid();
		idle = NULL;
		memset(held, 0, sizeof(held));
		memset(&counts, 0, sizeof(counts));
	}
	h = held_of(owner);
	refused = counts.held >= BOUNDED_IN_ALL || h->n >= BOUNDED_OF_OWNER;
	counts.refused += refused;
	counts.jobs += !refused;
	if (!refused && idle) {
		*w = idle;
		idle = idle->next;
	}
	pthread_mutex_unlock(&lock);
	if (refused)
		return -EBUSY;
	if (!*w)
		*w = worker_make();
	return *w ? 0 : -ENOMEM;
}

/* The worker's process is gone: somebody killed it, or it was never made. */
static void bury(struct worker *w)
{
	pthread_join(w->host, NULL);
	free(w);
}

/* Nobody waits for it now: it takes little of what others could use. It is not ended, however long
 * it takes: it has our memory, and may hold malloc()'s locks. */
static void make_humble(pid_t pid)
{
	if (pid)
		setpriority(PRIO_PROCESS, (id_t)pid,
			    getpriority(PRIO_PROCESS, 0) + BOUNDED_LATE_NICE);
}

/* The time is up. Returns false if the job was done just now. */
static bool leave(struct worker *w)
{
	uint32_t given = STATE_GIVEN;
	pthread_t thread = w->host;
	pid_t pid = w->pid;
	struct held *h;
	bool left;

	/* under the lock, so that it is counted before it may come back */
	pthread_mutex_lock(&lock);
	h = held_of(w->owner);
	left = atomic_compare_exchange_strong(&w->state, &given, STATE_LEFT);
	if (left) {
		h->n++;
		counts.held++;
		counts.left += !w->job->later;
	}
	/* as long as we hold the lock its number is nobody else's: it is waited for with the lock */
	if (left)
		make_humble(pid);
	pthread_mutex_unlock(&lock);
	if (left)
		pthread_detach(thread);
	return left;
}

int bounded_run(struct bounded_job *job, uint32_t owner, unsigned int limit_ms)
{
	uint32_t was = STATE_IDLE;
	struct worker *w;
	int err = take_worker(owner, &w);

	if (err)
		return err;
	w->job = job;
	w->owner = owner;
	if (!atomic_compare_exchange_strong(&w->state, &was, STATE_GIVEN)) {
		bury(w);
		return -ENOMEM;
	}
	wake(&w->state);
	if (wait_while(&w->state, STATE_GIVEN, now_ns() + limit_ms * 1000000ULL) == STATE_GIVEN &&
	    leave(w))
		return -ETIMEDOUT;
	was = STATE_DONE;
	if (atomic_compare_exchange_strong(&w->state, &was, STATE_IDLE)) {
		wake(&w->state);
		pthread_mutex_lock(&lock);
		w->next = idle;
		idle = w;
		pthread_mutex_unlock(&lock);
		return 0;
	}
	bury(w);
	job->crashed = true;
	pthread_mutex_lock(&lock);
	job->next = crashed;
	crashed = job;
	pthread_mutex_unlock(&lock);
	return -ETIMEDOUT;
}

void bounded_close(void)
{
	bool any;

	pthread_mutex_lock(&lock);
	while (idle) {
		struct worker *w = idle;

		idle = w->next;
		atomic_store(&w->state, STATE_END);
		wake(&w->state);
		bury(w);
	}
	any = counts.held;
	pthread_mutex_unlock(&lock);
	if (any)
		close_range(3, ~0U, 0);
}

void bounded_counts(struct bounded_counts *c)
{
	pthread_mutex_lock(&lock);
	*c = counts;
	pthread_mutex_unlock(&lock);
}
