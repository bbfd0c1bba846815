/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offspring.c - makes children in each way that the kernel has, and has them make calls.
 *
 *   offspring worker SECONDS   the main thread ends; another one, which is named as cudatrace names its own, makes a call
 *                              each 10 ms
 *   offspring crowd THREADS    so many threads at a time, each of which makes 5 calls
 *   offspring bare-forks-again CHILDREN
 *                              3 calls; so many children that libc does not know of, each of which makes one by fork();
 *                              prints "slow N": so many of these calls took more than half a second
 *   offspring HOW CHILDREN     3 calls, then a child that makes 7, CHILDREN times; then 2 calls
 *
 * HOW: fork; bare-fork, clone, clone3: without libc's knowledge; clone-function: clone(3); shared: clone(3) with the
 * parent's memory, while the parent waits; vfork; vfork-left: a signal's handler leaves vfork(2) by siglongjmp(), and the
 * child makes no call; spawn-nothing: a program that is not there is spawned; closes: no child, 3 calls more when all
 * descriptors are closed.
 */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

static sigjmp_buf back;

static void calls(int n)
{
	for (int i = 0; i < n; i++)
		cudaStreamQuery(0);
}

static int child(void *arg)
{
	(void)arg;
	calls(7);
	_exit(0);
}

static void leave(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

/* The handler runs when vfork(2) returns to the parent. */
static pid_t leave_vfork(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	volatile pid_t pid = 0;

	signal(SIGALRM, leave);
	if (sigsetjmp(back, 1))
		return -1;
	setitimer(ITIMER_REAL, &soon, NULL);
	pid = vfork();
	if (!pid) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		_exit(0);
	}
	return pid;
}

static pid_t make(const char *how)
{
	static char stack[1 << 16] __attribute__((aligned(64)));
	char *top = stack + sizeof(stack);
	pid_t pid = -1;

	if (!strcmp(how, "fork"))
		pid = fork();
	if (!strcmp(how, "bare-fork"))
		pid = _Fork();
	if (!strcmp(how, "clone"))
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!strcmp(how, "clone3")) {
		struct clone_args a = { .exit_signal = SIGCHLD };

		pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));
	}
	if (!strcmp(how, "clone-function"))
		return clone(child, top, SIGCHLD, NULL);
	if (!strcmp(how, "shared"))
		return clone(child, top, CLONE_VM | SIGCHLD, NULL);
	if (!strcmp(how, "vfork-left"))
		return leave_vfork();
	if (!strcmp(how, "vfork")) {
		pid = vfork();
		if (!pid)
			child(NULL);
	}
	if (!strcmp(how, "spawn-nothing") &&
	    posix_spawn(&pid, "/nonexistent/program", NULL, NULL, (char *[]){ "x", NULL }, NULL))
		return -1;
	if (!pid)
		child(NULL);
	return pid;
}

static void *work(void *seconds)
{
	pthread_setname_np(pthread_self(), "cudatrace-w");
	for (int i = 0; i < 100 * atoi(seconds); i++) {
		calls(1);
		usleep(10000);
	}
	return NULL;
}

static void *five(void *arg)
{
	calls(5);
	return arg;
}

static int crowd(int n)
{
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < n; i++)
		if (!threads || pthread_create(&threads[i], &small, five, NULL))
			return 3;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}

/* Returns whether it takes long. */
static int fork_once(void)
{
	struct timespec from, to;
	pid_t pid;

	clock_gettime(CLOCK_MONOTONIC, &from);
	pid = fork();
	if (!pid)
		_exit(0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	waitpid(pid, NULL, 0);
	return (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 > 500;
}

static int fork_again(int children)
{
	int slow = 0, status;

	for (int i = 0; i < children; i++) {
		if (!syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))
			_exit(fork_once());
		wait(&status);
		slow += status != 0;
	}
	printf("slow %d\n", slow);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t worker;

	const char *how = argc == 3 ? argv[1] : "";

	if (!*how)
		return 2;
	if (!strcmp(how, "crowd"))
		return crowd(atoi(argv[2]));
	if (!strcmp(how, "worker")) {
		pthread_create(&worker, NULL, work, argv[2]);
		pthread_exit(NULL);
	}
	calls(3);
	if (!strcmp(how, "bare-forks-again"))
		return fork_again(atoi(argv[2]));
	for (int i = 0; i < atoi(argv[2]); i++) {
		int status = 0;

		make(how);
		while (waitpid(-1, &status, __WALL) < 0 && errno == EINTR)
			;
		if (status)
			return 1;
	}
	if (!strcmp(how, "closes")) {
		closefrom(0);
		calls(3);
	}
	calls(2);
	return 0;
}
