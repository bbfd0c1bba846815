/* SPDX-License-Identifier: BSD-2-Clause */
/* test_urgent.c - before other programs for a while, with all threads, and never where somebody has asked for the opposite. */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "../../user/util/self/urgent.h"

static sem_t look, looked;
static int seen;
static bool permitted; /* what it needs is root's */

static void *watch(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		sem_wait(&look);
		seen = getpriority(PRIO_PROCESS, 0);
		sem_post(&looked);
	}
	return NULL;
}

static int of_thread(void)
{
	sem_post(&look);
	sem_wait(&looked);
	return seen;
}

static void *look_once(void *arg)
{
	*(int *)arg = getpriority(PRIO_PROCESS, 0);
	return NULL;
}

static int of_new_thread(void)
{
	pthread_t t;
	int nice = 99;

	CHECK_EQ(0, pthread_create(&t, NULL, look_once, &nice));
	pthread_join(t, NULL);
	return nice;
}

static int of_child(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		urgent_child(URGENT_NEVER);
		_exit(getpriority(PRIO_PROCESS, 0) + 20);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status) - 20;
}

static void test_all_threads(int usual)
{
	struct rlimit before, after;
	pthread_t t;
	int high;

	sem_init(&look, 0, 0);
	sem_init(&looked, 0, 0);
	CHECK_EQ(0, getrlimit(RLIMIT_NICE, &before));
	CHECK_EQ(0, pthread_create(&t, NULL, watch, NULL));
	CHECK_EQ(usual, of_thread());
	urgent_begin();
	high = getpriority(PRIO_PROCESS, 0);
	CHECK(permitted ? high < usual : high == usual);
	CHECK_EQ(high, of_thread());
	CHECK_EQ(high, of_new_thread());
	CHECK_EQ(usual, of_child());
	CHECK_EQ(0, getrlimit(RLIMIT_NICE, &after));
	CHECK_EQ(before.rlim_cur, after.rlim_cur);
	CHECK_EQ(before.rlim_max, after.rlim_max);
	urgent_end();
	CHECK_EQ(usual, getpriority(PRIO_PROCESS, 0));
	CHECK_EQ(usual, of_thread());
	CHECK_EQ(usual, of_new_thread());
	pthread_join(t, NULL);
}

static void test_humble(void)
{
	CHECK_EQ(0, setpriority(PRIO_PROCESS, 0, 12));
	urgent_begin();
	CHECK_EQ(12, getpriority(PRIO_PROCESS, 0));
	urgent_end();
	CHECK_EQ(12, getpriority(PRIO_PROCESS, 0));
}

int main(void)
{
	permitted = !setpriority(PRIO_PROCESS, 0, -1);
	/* what builds this may be humble itself, and may not change it */
	setpriority(PRIO_PROCESS, 0, 0);
	if (getpriority(PRIO_PROCESS, 0) == 0) {
		test_all_threads(0);
		test_all_threads(0);
	}
	test_humble();
	return unit_end();
}
