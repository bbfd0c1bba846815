/* SPDX-License-Identifier: BSD-2-Clause */
/* test_behind.c - the thread that writes for its owner, to a pipe that this test reads when it likes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "../../user/util/io/behind.h"
#include "unit.h"

#define PIECES 60000
#define PATIENCE_MS 20000 /* only a broken one is waited for so long */

static int ends[2];

static struct behind *open_pipe(void)
{
	struct behind *b;

	if (pipe2(ends, O_CLOEXEC))
		abort();
	b = behind_open(ends[1], false);
	if (!b)
		abort();
	return b;
}

static void close_end(int i)
{
	if (ends[i] >= 0)
		close(ends[i]);
	ends[i] = -1;
}

/* The text of a piece: its number, as often as makes a length that goes with it. */
static size_t piece(char *to, unsigned int number)
{
	size_t n = 0;

	for (unsigned int i = 0; i <= number % 9; i++)
		n += (size_t)sprintf(to + n, "%u ", number);
	to[n++] = '\n';
	return n;
}

struct reading {
	FILE *f;
	unsigned int right;
};

static void *read_all(void *arg)
{
	struct reading *r = arg;
	char line[256], want[256];

	while (fgets(line, sizeof(line), r->f)) {
		want[piece(want, r->right)] = 0;
		if (strcmp(line, want))
			break;
		r->right++;
	}
	return NULL;
}

static bool is_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* At first there is no reader: the owner is told that it should wait, never waits itself, and is
 * told when there is room. */
static void test_reader_comes_late(void)
{
	struct behind *b = open_pipe();
	struct reading r = { .f = fdopen(ends[0], "r") };
	unsigned int n = 0, ahead = 0;
	uint64_t written, bytes = 0;
	pthread_t reader;
	char text[256];

	for (; n < PIECES && !behind_full(b); n++) {
		size_t len = piece(text, n);

		CHECK_EQ(0, behind_put(b, text, len, NULL));
		bytes += len;
	}
	CHECK(n < PIECES);
	CHECK(behind_full(b));
	CHECK(!is_readable(behind_fd(b), 0));
	/* it may all the same */
	for (; ahead < 1000; ahead++, n++) {
		size_t len = piece(text, n);

		CHECK_EQ(0, behind_put(b, text, len, NULL));
		bytes += len;
	}
	CHECK(behind_written(b) <= 65536);
	pthread_create(&reader, NULL, read_all, &r);
	CHECK(is_readable(behind_fd(b), PATIENCE_MS));
	behind_seen(b);
	CHECK(!is_readable(behind_fd(b), 0));
	CHECK(!behind_full(b));
	for (; n < PIECES; n++) {
		size_t len = piece(text, n);

		CHECK_EQ(0, behind_put(b, text, len, NULL));
		bytes += len;
	}
	CHECK_EQ(0, behind_close(b, NULL, &written));
	CHECK_EQ(bytes, written);
	close_end(1);
	pthread_join(reader, NULL);
	CHECK_EQ(PIECES, r.right);
	fclose(r.f);
}

/* A reader that goes: the owner is woken, and told why. */
static void test_reader_goes(void)
{
	struct behind *b = open_pipe();
	uint64_t written;

	close_end(0);
	CHECK_EQ(0, behind_put(b, "text", 4, NULL));
	CHECK(is_readable(behind_fd(b), PATIENCE_MS));
	CHECK_EQ(-EPIPE, behind_error(b));
	CHECK_EQ(-EPIPE, behind_put(b, "text", 4, NULL));
	CHECK_EQ(-EPIPE, behind_close(b, NULL, &written));
	CHECK_EQ(0, written);
	close_end(1);
}

/* One that never reads: it is waited for until the owner is to stop, and is not hung on then. */
static void test_reader_never_reads(void)
{
	static const int stops[] = { 1, 2 }, errors[] = { -ETIMEDOUT, -ESHUTDOWN };

	for (int i = 0; i < 2; i++) {
		struct behind *b = open_pipe();
		volatile int stop = stops[i];
		static char much[1 << 20];
		uint64_t written;

		CASE_ROW("stop %d", stops[i]);
		CHECK_EQ(0, behind_put(b, much, sizeof(much), NULL));
		CHECK_EQ(errors[i], behind_close(b, &stop, &written));
		CHECK(written <= 65536);
		close_end(0);
		close_end(1);
	}
}

/* What waits is bounded: then the owner does wait. */
static void test_bounded(void)
{
	struct behind *b = open_pipe();
	volatile int stop = 1;
	static char much[1 << 20];
	uint64_t written;
	int n = 0, err = 0;

	while (!err && n < 1000) {
		err = behind_put(b, much, sizeof(much), &stop);
		n += !err;
	}
	CHECK_EQ(-ETIMEDOUT, err);
	CHECK(n > (BEHIND_MOST >> 20) - 1 && n <= (BEHIND_MOST >> 20) + 2);
	stop = 2;
	CHECK_EQ(-ESHUTDOWN, behind_close(b, &stop, &written));
	close_end(0);
	close_end(1);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	RUN(test_reader_comes_late);
	RUN(test_reader_goes);
	RUN(test_reader_never_reads);
	RUN(test_bounded);
	return unit_end();
}
