/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bounded.c - work with a time limit: done in time, left behind, come back, killed; and how
 * much may be left behind. What "never" is here is a read of a pipe that the test writes to when
 * it is through.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/util/io/bounded.h"
#include "../../user/util/now.h"
#include "unit.h"

#define LONG_MS 20000 /* a limit that is not reached, however busy the machine */
#define SHORT_MS 20   /* one that is, by what blocks */

static _Atomic int dropped;

struct job {
	struct bounded_job job;
	int fd;		   /* >= 0: reads a byte of it */
	int opens;	   /* opens a file, whose descriptor is `got` */
	int kills;	   /* ends its own process */
	int traps;	   /* crashes */
	_Atomic pid_t pid; /* whose process it is */
	int takes;	   /* so many MiB of memory, 1 MiB at a time, and cannot go on without it */
	int got;
	char *text;
};

static void run(struct bounded_job *b)
{
	struct job *j = (struct job *)b;
	char c;

	j->pid = getpid();
	if (j->fd >= 0)
		j->got = (int)read(j->fd, &c, 1);
	if (j->opens)
		j->got = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (j->kills)
		kill(getpid(), SIGKILL);
	if (j->traps)
		__builtin_trap();
	for (int i = 0; i < j->takes; i++) {
		char *one = calloc(1, 1 << 20);

		if (!one)
			bounded_no_memory();
		j->got += one[1000] + 1;
		if (i % 2)
			free(one);
	}
	j->text = malloc(100);
	snprintf(j->text, 100, "done %d", j->fd);
}

static void drop(struct bounded_job *b)
{
	struct job *j = (struct job *)b;

	free(j->text);
	free(j);
	dropped++;
}

static uint64_t crashed;

static uint64_t crashed_now(void)
{
	struct bounded_counts c;

	bounded_counts(&c);
	return c.crashed;
}

static struct job *make(int fd)
{
	struct job *j = calloc(1, sizeof(*j));

	j->job = (struct bounded_job){ .run = run, .drop = drop };
	j->fd = fd;
	return j;
}

static unsigned int held_now(void)
{
	struct bounded_counts c;

	bounded_counts(&c);
	return c.held;
}

/* Waits until n workers are left behind; what has come back counts down by itself. */
static int held_becomes(unsigned int n)
{
	for (int i = 0; i < 2000 && held_now() != n; i++)
		usleep(10000);
	return held_now() == n;
}

static void check_done(void)
{
	struct job *j = make(-1);

	for (int i = 0; i < 1000; i++) {
		if (bounded_run(&j->job, 1, LONG_MS)) {
			CHECK(!"done in time");
			break;
		}
		free(j->text);
	}
	j->opens = 1;
	CHECK(bounded_run(&j->job, 1, LONG_MS) == 0);
	CHECK_TEXT("done -1", j->text);
	/* a descriptor that a worker opens is ours */
	CHECK(j->got >= 0 && fcntl(j->got, F_GETFD) >= 0);
	close(j->got);
	free(j->text);
	free(j);
	CHECK(held_now() == 0);
}

static void check_left(void)
{
	int pipes[2], nice = getpriority(PRIO_PROCESS, 0),
		      late = nice + BOUNDED_LATE_NICE < 19 ? nice + BOUNDED_LATE_NICE : 19;
	struct job *j;

	CHECK(!pipe(pipes));
	j = make(pipes[0]);
	CHECK(bounded_run(&j->job, 1, SHORT_MS) == -ETIMEDOUT);
	CHECK(held_now() == 1);
	/* it gets less of the processors than others; we get what we had */
	for (int i = 0; i < 2000 && !j->pid; i++)
		usleep(10000);
	CHECK(j->pid > 0 && j->pid != getpid());
	CHECK_EQ(late, getpriority(PRIO_PROCESS, (id_t)j->pid));
	CHECK_EQ(nice, getpriority(PRIO_PROCESS, 0));
	/* others are served meanwhile, and so is the owner */
	j = make(-1);
	CHECK(bounded_run(&j->job, 1, LONG_MS) == 0);
	free(j->text);
	free(j);
	CHECK(dropped == 0);
	CHECK(write(pipes[1], "x", 1) == 1);
	CHECK(held_becomes(0));
	CHECK(dropped == 1);
	close(pipes[0]);
	close(pipes[1]);
}

static void check_bounds(void)
{
	struct bounded_counts before, after;
	int pipes[2], left = 0;
	struct job *j;

	CHECK(!pipe(pipes));
	bounded_counts(&before);
	for (int i = 0; i < BOUNDED_OF_OWNER; i++) {
		j = make(pipes[0]);
		left += bounded_run(&j->job, 7, SHORT_MS) == -ETIMEDOUT;
	}
	CHECK(left == BOUNDED_OF_OWNER);
	j = make(-1);
	CHECK(bounded_run(&j->job, 7, LONG_MS) == -EBUSY);
	/* what one owner holds up does not keep another from being served */
	CHECK(bounded_run(&j->job, 8, LONG_MS) == 0);
	free(j->text);
	for (uint32_t owner = 100; left < BOUNDED_IN_ALL; owner++) {
		struct job *more = make(pipes[0]);

		left += bounded_run(&more->job, owner, SHORT_MS) == -ETIMEDOUT;
	}
	CHECK(bounded_run(&j->job, 8, LONG_MS) == -EBUSY);
	free(j);
	bounded_counts(&after);
	CHECK(after.held == BOUNDED_IN_ALL);
	CHECK(after.left - before.left == BOUNDED_IN_ALL);
	CHECK(after.refused - before.refused == 2);
	for (int i = 0; i < BOUNDED_IN_ALL; i++)
		CHECK(write(pipes[1], "x", 1) == 1);
	CHECK(held_becomes(0));
	CHECK(dropped == 1 + BOUNDED_IN_ALL);
	j = make(-1);
	CHECK(bounded_run(&j->job, 7, LONG_MS) == 0);
	free(j->text);
	free(j);
	close(pipes[0]);
	close(pipes[1]);
}

/* A worker that dies in the middle, as of a fault in a library, ends nobody but itself. */
static void check_killed(void)
{
	struct job *j = make(-1);

	j->kills = 1;
	CHECK(bounded_run(&j->job, 1, LONG_MS) == -ETIMEDOUT && j->job.crashed);
	CHECK_EQ(++crashed, crashed_now());
	j = make(-1);
	CHECK(bounded_run(&j->job, 1, LONG_MS) == 0);
	free(j->text);
	free(j);
	CHECK(held_now() == 0);
}

/* A worker that crashes ends alone, and the next job is done. */
static void check_crashed(void)
{
	const struct rlimit none = { 0 };
	struct job *j = make(-1);

	CHECK(!setrlimit(RLIMIT_CORE, &none));
	j->traps = 1;
	CHECK(bounded_run(&j->job, 1, LONG_MS) == -ETIMEDOUT && j->job.crashed);
	CHECK_EQ(++crashed, crashed_now());
	j = make(-1);
	CHECK(bounded_run(&j->job, 1, LONG_MS) == 0);
	free(j->text);
	free(j);
	CHECK(held_now() == 0);
}

/* A worker gets no more memory than its job may take; others get theirs. */
static uint64_t data_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	CHECK(f && fscanf(f, "%*u %*u %*u %*u %*u %llu", &pages) == 1);
	fclose(f);
	return pages * 4096;
}

__attribute__((unused)) static void check_memory(void)
{
	struct job *j = make(-1);
	char *ours;

	j->takes = 40;
	j->job.grow_max = 64 << 20;
	j->job.measure = data_bytes;
	CHECK(bounded_run(&j->job, 1, LONG_MS) == 0);
	CHECK_EQ(40, j->got);
	CHECK(j->job.grew > 15 << 20 && j->job.grew < 45 << 20);
	free(j->text);
	j->takes = 400;
	CHECK(bounded_run(&j->job, 1, LONG_MS) == -ETIMEDOUT);
	CHECK(j->job.crashed && j->job.no_memory);
	CHECK(j->got > 40 && j->got < 200);
	CHECK_EQ(++crashed, crashed_now());
	ours = malloc(256 << 20);
	CHECK(ours);
	free(ours);
	j = make(-1);
	j->takes = 400;
	CHECK(bounded_run(&j->job, 1, LONG_MS) == 0); /* without a limit */
	CHECK_EQ(400, j->got);
	free(j->text);
	free(j);
	CHECK(held_now() == 0);
}

/* We end, though a worker does not, and nothing of ours is open any more. */
static void check_end(void)
{
	uint64_t began = now_ns();
	int pipes[2], seen[2], status;
	char c;
	pid_t pid;

	CHECK(!pipe(pipes) && !pipe(seen));
	pid = fork();
	if (!pid) {
		struct job *j = make(pipes[0]);

		close(seen[0]);
		status = bounded_run(&j->job, 1, SHORT_MS) == -ETIMEDOUT;
		bounded_close();
		_exit(status ? 17 : 1);
	}
	close(seen[1]);
	/* its end of `seen` is closed when it ends */
	CHECK(read(seen[0], &c, 1) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 17);
	CHECK(now_ns() - began < LONG_MS * 1000000ULL);
	close(pipes[0]);
	close(pipes[1]);
	close(seen[0]);
}

int main(void)
{
	/* the child of check_end() has no worker of its own yet, and so goes first */
	RUN(check_end);
	RUN(check_done);
	RUN(check_left);
	RUN(check_bounds);
	RUN(check_killed);
	RUN(check_crashed);
#ifndef __SANITIZE_ADDRESS__ /* its malloc() does not fail, it ends the program */
	RUN(check_memory);
#endif
	bounded_close();
	return unit_end();
}
