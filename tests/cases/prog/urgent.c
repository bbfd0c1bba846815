/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * urgent.c - a program that gets no SIGURG but its own: `urgent blocked|handled LIBRARY THREADS
 * CHILDREN ROUNDS OWN`. In each round each thread loads the library, calls its cudaMalloc and unloads it; the
 * children do the same (CHILDREN below 0: children that no tracer of their parent gets, CLONE_UNTRACED). ROUNDS 0: until its input ends; it says "round N" now and then. "blocked":
 * all signals are blocked, and what is pending at the end is counted. "handled": each thread sends
 * itself OWN signals in each round, and its handler counts them. Prints "foreign N", for each
 * process, and its status is 0 if all N are 0.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16

static bool blocked;
static const char *library;
static int nthreads, rounds, own;
static int got, failed;

static void count(int sig)
{
	(void)sig;
	__atomic_fetch_add(&got, 1, __ATOMIC_RELAXED);
}

static bool input_ended(void)
{
	char c;

	return !read(0, &c, 1);
}

static void *load(void *arg)
{
	for (int i = 0; rounds ? i < rounds : !input_ended(); i++) {
		void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL), *p;
		int (*alloc)(void **, size_t) = NULL;

		if (lib)
			alloc = (int (*)(void **, size_t))dlsym(lib, "cudaMalloc");
		if (!alloc || alloc(&p, 64))
			__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
		if (lib)
			dlclose(lib);
		for (int n = 0; n < own; n++)
			raise(SIGURG);
		if (!rounds && i % 100 == 0)
			printf("round %d\n", i);
	}
	return arg;
}

/* Those that wait to be taken, by both ways. */
static int pending(const sigset_t *all)
{
	int fd = signalfd(-1, all, SFD_NONBLOCK | SFD_CLOEXEC), n = 0;
	struct signalfd_siginfo info;
	struct timespec at_once = { 0 };

	while (read(fd, &info, sizeof(info)) == sizeof(info))
		n += info.ssi_signo == SIGURG;
	n += sigtimedwait(all, NULL, &at_once) == SIGURG;
	return n;
}

static int run(const sigset_t *all)
{
	pthread_t threads[THREADS_MAX];
	int foreign;

	for (int i = 0; i < nthreads - 1; i++)
		pthread_create(&threads[i], NULL, load, NULL);
	load(NULL);
	for (int i = 0; i < nthreads - 1; i++)
		pthread_join(threads[i], NULL);
	foreign = blocked ? pending(all) : got - nthreads * rounds * own;
	printf("foreign %d\n", foreign);
	return foreign || failed;
}

int main(int argc, char **argv)
{
	int children, status, bad;
	sigset_t all;

	if (argc != 7 || atoi(argv[3]) > THREADS_MAX)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	blocked = !strcmp(argv[1], "blocked");
	library = argv[2];
	nthreads = atoi(argv[3]);
	children = atoi(argv[4]);
	rounds = atoi(argv[5]);
	own = atoi(argv[6]);
	fcntl(0, F_SETFL, O_NONBLOCK);
	sigfillset(&all);
	if (blocked)
		sigprocmask(SIG_BLOCK, &all, NULL);
	else
		signal(SIGURG, count);
	for (int i = 0; i < abs(children); i++)
		if (!(children < 0
			      ? syscall(SYS_clone, SIGCHLD | CLONE_UNTRACED, NULL, NULL, NULL, NULL)
			      : fork()))
			_exit(run(&all));
	bad = run(&all);
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}
