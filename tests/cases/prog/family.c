/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * family.c - processes that make calls, and become others at random: family LOG SEED DEPTH. Each
 * appends to LOG, at its end and before each exec(2), how many calls it has made: "PID CALLS", or
 * "PID CALLS vfork" for a child that shared its parent's memory when it made them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime_api.h"

#define CHILDREN 3
#define THREADS 3
#define CALLS 40

extern char **environ;
static const char *log_path;
static unsigned long state;
static _Atomic int calls;

static unsigned int pick(unsigned int n)
{
	state = state * 6364136223846793005UL + 1442695040888963407UL;
	return (unsigned int)(state >> 33) % n;
}

static void note(pid_t pid, int n, const char *how)
{
	int fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT, 0666);
	char text[64];
	int len = snprintf(text, sizeof(text), "%d %d%s\n", (int)pid, n, how);

	if (fd < 0 || write(fd, text, (size_t)len) != len)
		abort();
	close(fd);
}

static void query(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		cudaStreamQuery(0);
	calls += (int)n;
}

/* ---- threads ---- */

static void *thread_queries(void *n)
{
	query((unsigned int)(unsigned long)n);
	return NULL;
}

static void *thread_sleeps(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *thread_forks(void *pid)
{
	*(pid_t *)pid = fork();
	if (!*(pid_t *)pid) {
		calls = 0;
		query(7);
		note(getpid(), calls, "");
		_exit(0);
	}
	return NULL;
}

static void in_thread(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg))
		abort();
	pthread_join(t, NULL);
}

static void some_threads(void)
{
	pthread_t t[THREADS];
	unsigned int n = pick(THREADS + 1);

	for (unsigned int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, thread_queries, (void *)(unsigned long)pick(CALLS)))
			abort();
	query(pick(CALLS));
	for (unsigned int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* ---- processes ---- */

struct again {
	char seed[32], depth[16];
	char *argv[5];
};

static void make_again(struct again *a, int depth)
{
	snprintf(a->seed, sizeof(a->seed), "%u", pick(1u << 30));
	snprintf(a->depth, sizeof(a->depth), "%d", depth);
	a->argv[0] = "family";
	a->argv[1] = (char *)log_path;
	a->argv[2] = a->seed;
	a->argv[3] = a->depth;
	a->argv[4] = NULL;
}

static void *become(void *again)
{
	note(getpid(), calls, "");
	execv("/proc/self/exe", ((struct again *)again)->argv);
	abort();
}

static void live(int depth);

static void forks(int depth, bool execs)
{
	struct again a;
	pid_t pid;

	make_again(&a, depth);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid) {
		pick(2);
		return;
	}
	calls = 0;
	state += (unsigned long)depth + 99;
	if (execs) {
		query(pick(CALLS));
		become(&a);
	}
	live(depth);
	_exit(0);
}

static void vforks(int depth)
{
	struct again a;

	make_again(&a, depth);
	if (vfork() == 0) {
		execv("/proc/self/exe", a.argv);
		_exit(1);
	}
}

/* What a child of vfork() may not do, and some do. */
static void vforks_and_calls(void)
{
	static volatile unsigned int n;
	pid_t pid;

	n = 1 + pick(60);
	pid = vfork();
	if (!pid) {
		for (unsigned int i = 0; i < n; i++)
			cudaStreamQuery(0);
		_exit(0);
	}
	note(pid, (int)n, " vfork");
	query(6);
}

static void spawns(int depth)
{
	struct again a;
	pid_t pid;

	make_again(&a, depth);
	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, a.argv, environ))
		abort();
}

static void one_child(int depth)
{
	pid_t pid;

	switch (pick(6)) {
	case 0: forks(depth, false); break;
	case 1: forks(depth, true); break;
	case 2: vforks(depth); break;
	case 3: vforks_and_calls(); break;
	case 4: spawns(depth); break;
	case 5: in_thread(thread_forks, &pid); break;
	}
}

static void live(int depth)
{
	unsigned int n = depth ? 1 + pick(CHILDREN) : 0;
	struct again a;
	pthread_t t;

	query(1 + pick(CALLS));
	some_threads();
	for (unsigned int i = 0; i < n; i++) {
		one_child(depth - 1);
		query(pick(CALLS));
	}
	while (wait(NULL) > 0)
		;
	if (depth && !pick(3)) {
		make_again(&a, depth - 1);
		pthread_create(&t, NULL, thread_sleeps, NULL);
		if (pick(2))
			in_thread(become, &a);
		become(&a);
	}
	note(getpid(), calls, "");
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	log_path = argv[1];
	state = strtoul(argv[2], NULL, 10);
	live(atoi(argv[3]));
	return 0;
}
