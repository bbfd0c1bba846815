/* SPDX-License-Identifier: BSD-2-Clause */
/* test_checks.c - the checks of unit.h themselves: what is said of one that failed; and what must
 * always hold (INVARIANT) is looked at by the build with sanitizers alone. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/util/types.h"
#include "../../wire/cudatrace.h"
#include "unit.h"

static int failing(void)
{
	return -22;
}

static void wrong(int number)
{
	CHECK_EQ(0, failing());
	CHECK_EQ(65536, number);
	CHECK_TEXT("want", "got");
	for (int i = 0; i < 2; i++) {
		CASE_ROW("row %d", i);
		CHECK(i == 0);
	}
}

static void right(void)
{
	CHECK(CHECK_EQ(-22, failing()));
	CHECK(CHECK_TEXT(NULL, NULL));
}

/* What the checks print goes to a file meanwhile, and what they count does not count. */
static char *said(void (*what)(void), int *failed)
{
	char path[] = "/tmp/cudatrace-unit.XXXXXX", *text;
	int passed = unit_passed, before = unit_failed, fd = mkstemp(path), out = dup(1);

	fflush(stdout);
	dup2(fd, 1);
	what();
	fflush(stdout);
	dup2(out, 1);
	close(out);
	close(fd);
	text = unit_read(path);
	unlink(path);
	*failed = unit_failed - before;
	unit_passed = passed;
	unit_failed = before;
	return text;
}

static void run_wrong(void)
{
	RUN(wrong, 7);
}

static void run_right(void)
{
	RUN(right);
}

/* The lines without the file and its line number. */
static void shorten(char *text)
{
	char *to = text;

	for (char *line = text; *line;) {
		char *end = strchr(line, '\n'), *from = strstr(line, "FAILED: ");

		if (!from || from > end)
			from = line;
		memmove(to, from, (size_t)(end + 1 - from));
		to += end + 1 - from;
		line = end + 1;
	}
	*to = '\0';
}

static void test_failed(void)
{
	int failed;
	char *text = said(run_wrong, &failed);

	CHECK_EQ(4, failed);
	shorten(text);
	CHECK_TEXT("FAILED: wrong (7): failing() == 0\n"
		   "  want: 0\n"
		   "  got:  -22\n"
		   "FAILED: wrong (7): number == 65536\n"
		   "  want: 65536 (0x10000)\n"
		   "  got:  7\n"
		   "FAILED: wrong (7): text differs\n"
		   "  want: want\n"
		   "  got:  got\n"
		   "FAILED: wrong (row 1): i == 0\n",
		   text);
	free(text);
}

static void test_passed(void)
{
	int failed;
	char *text = said(run_right, &failed);

	CHECK_EQ(0, failed);
	CHECK_TEXT("", text);
	free(text);
}

static int evaluated;

/* an INVARIANT that is not checked does not call it */
__attribute__((unused)) static bool does_not_hold(void)
{
	evaluated++;
	return false;
}

static void test_invariant(void)
{
	int status;
	pid_t pid;

	INVARIANT(2 + 2 == 4);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		close(2);
		INVARIANT(does_not_hold());
		_exit(evaluated);
	}
	CHECK_EQ(pid, waitpid(pid, &status, 0));
#ifdef CT_CHECKED
	CHECK_EQ(SIGABRT, WTERMSIG(status));
#else
	CHECK_EQ(0, status);
#endif
}

/* run.sh goes on after a program that failed. */
static void test_runner(void)
{
	FILE *f = popen("env -u CASE tests/unit/run.sh true false sh 2>&1 < /dev/null", "re");
	char text[512];
	size_t n = fread(text, 1, sizeof(text) - 1, f);

	text[n] = '\0';
	CHECK(pclose(f) != 0);
	CHECK_TEXT("true                   \n"
		   "\n"
		   "false                  FAILED (status 1)\n"
		   "sh                     \n"
		   "failed: false (again: make unit T=false)\n",
		   text);
}

int main(void)
{
	unsetenv("CASE"); /* of the cases in cases */
	RUN(test_failed);
	RUN(test_passed);
	RUN(test_invariant);
	RUN(test_runner);
	return unit_end();
}
