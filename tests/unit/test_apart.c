/* SPDX-License-Identifier: BSD-2-Clause */
/* test_apart.c - a function in a process of its own, and signals at each moment of its life. */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../user/util/whole/apart.h"
#include "unit.h"

static void pause_us(unsigned int us)
{
	struct timespec t = { .tv_nsec = 1000L * us };

	nanosleep(&t, NULL);
}

static int give_up(void *ctx, bool *cut)
{
	int before = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);

	(void)cut;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return before ? 99 : *(int *)ctx;
}

static void test_given_up(void)
{
	struct apart a;
	bool cut;

	CHECK_EQ(0, apart_open(&a));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(i, apart_run(&a, give_up, &i, &cut));
		CHECK(!cut);
	}
	apart_close(&a);
}

static int dies(void *ctx, bool *cut)
{
	(void)cut;
	raise(*(int *)ctx);
	return 0;
}

static int says_cut(void *ctx, bool *cut)
{
	(void)ctx;
	*cut = true;
	return 4;
}

static void test_ends(void)
{
	struct apart a;
	int sig = SIGKILL;
	bool cut;

	signal(SIGCHLD, SIG_IGN);
	CHECK_EQ(0, apart_open(&a));
	CHECK_EQ(128 + SIGKILL, apart_run(&a, dies, &sig, &cut));
	CHECK(!cut);
	CHECK_EQ(4, apart_run(&a, says_cut, NULL, &cut));
	CHECK(cut);
	CHECK_EQ(5, apart_run(&a, give_up, &(int){ 5 }, &cut));
	CHECK(!cut);
	/* one that came before: nothing runs, and who closes gets it */
	kill(getpid(), SIGTERM);
	CHECK_EQ(0, apart_run(&a, give_up, &(int){ 5 }, &cut));
	CHECK(cut);
	signal(SIGTERM, SIG_IGN);
	apart_close(&a);
	signal(SIGTERM, SIG_DFL);
}

static int short_one(void *ctx, bool *cut)
{
	(void)cut;
	pause_us((unsigned int)(rand_r(ctx) % 300));
	return 0;
}

/* A signal at a random moment of many short runs: one of them says so, each time, and no child of somebody
 * else's gets it. */
static void test_none_lost(void)
{
	unsigned int seed = 7;

	for (int round = 0; round < 100; round++) {
		struct apart a;
		bool cut = false;
		pid_t sender, us = getpid();
		int runs, status;

		CHECK_EQ(0, apart_open(&a));
		sender = fork();
		if (!sender) {
			pause_us((unsigned int)(rand_r(&seed) % 20000));
			kill(us, SIGTERM);
			for (;;)
				pause();
		}
		rand_r(&seed);
		for (runs = 0; runs < 5000 && !cut; runs++)
			apart_run(&a, short_one, &seed, &cut);
		CHECK(cut);
		CHECK_EQ(0, waitpid(sender, &status, WNOHANG));
		kill(sender, SIGKILL);
		waitpid(sender, &status, 0);
		/* where no run took it, it is still ours */
		signal(SIGTERM, SIG_IGN);
		apart_close(&a);
		signal(SIGTERM, SIG_DFL);
	}
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0); /* a child's exit would print it again */
	RUN(test_given_up);
	RUN(test_ends);
	RUN(test_none_lost);
	return unit_end();
}
