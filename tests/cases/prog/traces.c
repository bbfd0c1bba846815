/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traces.c - a program that uses ptrace itself, as debuggers, sandboxes and crash handlers do: a
 * child asks to be traced, makes four calls and ends with 3; another one is attached to. The
 * program itself makes one call. Its status is 0 if both worked.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

int main(void)
{
	int status, attached;
	pid_t child;
	void *p;

	cudaMalloc(&p, 1);
	child = fork();
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(9);
		raise(SIGSTOP);
		for (int i = 0; i < 4; i++)
			cudaMalloc(&p, 1);
		_exit(3);
	}
	waitpid(child, &status, 0);
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_CONT, child, 0, 0);
		waitpid(child, &status, 0);
	}
	child = fork();
	if (!child)
		for (;;)
			pause();
	attached = !ptrace(PTRACE_ATTACH, child, 0, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("child %d, attached %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, attached);
	return !(WIFEXITED(status) && WEXITSTATUS(status) == 3 && attached);
}
