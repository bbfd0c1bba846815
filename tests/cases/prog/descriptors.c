/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * descriptors.c - a program that knows its descriptors: whatever is written to one of them, or closes it,
 * and is not the program itself, is found.
 *
 *	descriptors dlopen LIBRARY	closes all descriptors from 3 on, opens pairs of sockets, of each
 *	descriptors caps|filter|fork|net	type, under their numbers, and then loads a library, sets its
 *					capabilities, restricts the system calls of all its threads, forks a
 *					child that makes 5 calls, or does so in a network of its own
 *	descriptors race N		one thread does the first part again and again, another forks N children
 *	descriptors count		prints the descriptors that it has, and its child has, besides its own
 *	descriptors setuid|setuid-0|chroot DIR|caps-0|seteuid	changes its user (and may not be dumped), its root, its
 *					capabilities or, for a time, its effective user; prints "changed" and waits
 *					for a line before it goes on
 *	descriptors worker DIR		changes its root, and ends its main thread; another thread makes the last calls
 *
 * Makes 10 calls of cudaStreamQuery, prints "ready PID" and waits for a line of stdin; 10 calls more at the end.
 * Prints "N wrong", then waits for a second line, while it makes no calls.
 */
#include <cuda_runtime_api.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS 40

static int pairs[PAIRS][2], wrong;
static atomic_bool done;

static void queries(int n)
{
	for (int i = 0; i < n; i++)
		cudaStreamQuery(0);
}

static void wait_for_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void reopen(void)
{
	static const int types[] = { SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM };

	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	for (int i = 0; i < PAIRS; i++)
		if (socketpair(AF_UNIX, types[i % 3], 0, pairs[i]))
			wrong++;
}

/* Whether one end has received what the program did not send, or can no longer send. */
static void check(int fd, int other)
{
	char bytes[256];

	if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		wrong++;
	if (send(other, "hello", 5, MSG_NOSIGNAL | MSG_DONTWAIT) != 5 ||
	    recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) != 5 || memcmp(bytes, "hello", 5))
		wrong++;
}

static void check_all(void)
{
	for (int i = 0; i < PAIRS; i++) {
		check(pairs[i][0], pairs[i][1]);
		check(pairs[i][1], pairs[i][0]);
	}
}

static void run_child(int calls)
{
	pid_t child = fork();
	int status;

	if (!child) {
		queries(calls);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		wrong++;
}

static void filter_all(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog filter = { 1, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	wrong += syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			 &filter) != 0;
}

static void set_caps(bool none)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	wrong += syscall(SYS_capget, &head, caps) != 0;
	if (none)
		memset(caps, 0, sizeof(caps));
	wrong += syscall(SYS_capset, &head, caps) != 0;
}

static void *close_again(void *arg)
{
	while (!done) {
		reopen();
		sched_yield();
		check_all();
	}
	return arg;
}

static void race(int n)
{
	pthread_t thread;

	pthread_create(&thread, NULL, close_again, NULL);
	for (int i = 0; i < n; i++)
		run_child(0);
	done = true;
	pthread_join(thread, NULL);
}

static int count(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static void change(const char *how, const char *dir)
{
	if (!strncmp(how, "setuid", 6))
		wrong += setgid(65534) || setuid(65534);
	if (!strcmp(how, "setuid-0"))
		wrong += prctl(PR_SET_DUMPABLE, 0) != 0;
	if (!strcmp(how, "caps-0"))
		set_caps(true);
	if (!strcmp(how, "chroot"))
		wrong += chroot(dir) || chdir("/");
	if (!strcmp(how, "seteuid"))
		wrong += seteuid(65534) != 0;
	printf("changed\n");
	fflush(stdout);
	wait_for_line();
	if (!strcmp(how, "seteuid"))
		wrong += seteuid(0) != 0;
}

static void *last_calls(void *arg)
{
	queries(10);
	return arg;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";

	queries(10);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_for_line();
	if (!strcmp(mode, "count")) {
		printf("%d descriptors\n", count());
		fflush(stdout);
		pid_t child = fork();

		if (!child) {
			printf("%d descriptors\n", count());
			fflush(stdout);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		printf("%d descriptors\n", count());
	} else if (!strcmp(mode, "worker")) {
		pthread_t thread;

		if (chroot(arg) || chdir("/") || pthread_create(&thread, NULL, last_calls, NULL))
			return 1;
		pthread_exit(NULL);
	} else if (!strcmp(mode, "race")) {
		race(atoi(arg));
	} else if (strstr(mode, "uid") || !strcmp(mode, "caps-0") || !strcmp(mode, "chroot")) {
		change(mode, arg);
	} else {
		reopen();
		if (!strcmp(mode, "dlopen"))
			wrong += !dlopen(arg, RTLD_NOW);
		if (!strcmp(mode, "caps"))
			set_caps(false);
		if (!strcmp(mode, "filter"))
			filter_all();
		if (!strcmp(mode, "net"))
			wrong += unshare(CLONE_NEWNET) != 0;
		if (!strcmp(mode, "fork") || !strcmp(mode, "net"))
			run_child(5);
		check_all();
	}
	queries(10);
	printf("%d wrong\n", wrong);
	fflush(stdout);
	wait_for_line();
	return wrong != 0;
}
