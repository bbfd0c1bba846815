/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooktest.h - what the programs that test the engine share. Each test is a function that runs in a
 * child, so that what it breaks is a failed test and not the end of the program; a test that hangs
 * ends by an alarm, later with many rounds.
 */
#ifndef HOOKTEST_H
#define HOOKTEST_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../target/engine/engine.h"

enum { PATIENCE = 240, LONG_PATIENCE = 1800 }; /* seconds */
#define CHECK(what)                                                       \
	do {                                                              \
		if (!(what)) {                                            \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
			fflush(stdout);                                   \
			_exit(1);                                         \
		}                                                         \
	} while (0)
#define CHECK_EQ(want, got)                                                                     \
	do {                                                                                    \
		long long want_ = (long long)(want), got_ = (long long)(got);                   \
		if (want_ != got_) {                                                            \
			printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_, \
			       want_);                                                          \
			fflush(stdout);                                                         \
			_exit(1);                                                               \
		}                                                                               \
	} while (0)

static bool all; /* many rounds: --all */
static int failed;

static inline void run(const char *name, void (*test)(void), const char *only)
{
	int status;
	pid_t pid;

	if (only && strcmp(only, name))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(all ? LONG_PATIENCE : PATIENCE);
		test();
		fflush(stdout);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("skip %s: see above\n", name);
	} else if (status) {
		printf("not ok %s: %s %d\n", name, WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		failed = 1;
	} else {
		printf("ok %s\n", name);
	}
}

static inline enum hook_result hook_one(void *function, __u32 id, __u32 flags)
{
	struct hook_spec spec;
	enum hook_result result = HOOK_RESULTS;
	int n;

	memset(&spec, 0, sizeof(spec));
	spec.address = (__u64)(size_t)function;
	spec.id = id;
	spec.flags = flags;
	n = engine_install(&spec, 1, &result);
	if (n < 0) {
		printf("engine_install: %s\n", strerror(-n));
		fflush(stdout);
		_exit(1);
	}
	return result;
}

#endif
