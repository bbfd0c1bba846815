/* SPDX-License-Identifier: BSD-2-Clause */
/* test_text.c - what the engine reads and writes in pieces, and does with few system calls (target/common/code_text.h). */
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../../target/common/code_text.h"
#include "hooktest.h"

#define PAGE 4096
#define MANY 700 /* pages: more than are kept at a time */

static __u8 *pages(size_t n)
{
	__u8 *at = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

static void make(const __u8 *at, const char *text)
{
	text_make((__u64)(size_t)at, text, strlen(text));
}

static void test_made(void)
{
	__u8 *at = pages(3);

	CHECK_EQ(0, text_open());
	memcpy(at, "old code that stays", 19);
	make(at + 4, "CODE");
	make(at + 100, "far");
	make(at + PAGE - 2, "over");
	CHECK(!memcmp(at, "old code", 8)); /* nothing is there yet */
	CHECK_EQ(0, text_made());
	CHECK(!memcmp(at, "old CODE that stays", 19));
	CHECK(!memcmp(at + 100, "far", 4));
	CHECK(!memcmp(at + PAGE - 2, "over", 5));
	text_close();
}

/* What is written at once, in a page of which something is being made, is not undone. */
static void test_write_between(void)
{
	__u8 *at = pages(2);

	CHECK_EQ(0, text_open());
	make(at, "first");
	make(at + 200, "last");
	CHECK_EQ(0, text_write((__u64)(size_t)(at + 100), "between", 7));
	CHECK(!memcmp(at + 100, "between", 7));
	make(at + 300, "after");
	CHECK_EQ(0, text_made());
	CHECK(!memcmp(at, "first", 6) && !memcmp(at + 100, "between", 8) &&
	      !memcmp(at + 200, "last", 5) && !memcmp(at + 300, "after", 6));
	text_close();
}

static void test_many_pages(void)
{
	__u8 *at = pages(MANY);

	CHECK_EQ(0, text_open());
	for (int round = 0; round < 3; round++)
		for (unsigned int i = 0; i < MANY; i++) {
			char text[16];

			snprintf(text, sizeof(text), "<%d %u>", round, i);
			make(at + i * PAGE + (unsigned int)round * 1000, text);
		}
	CHECK_EQ(0, text_made());
	for (int round = 0; round < 3; round++)
		for (unsigned int i = 0; i < MANY; i++) {
			char text[16];
			int n = snprintf(text, sizeof(text), "<%d %u>", round, i);

			CHECK(!memcmp(at + i * PAGE + (unsigned int)round * 1000, text,
				      (size_t)n + 1));
		}
	text_close();
}

static void test_look(void)
{
	__u8 *at = pages(3), found[16];

	memcpy(at + PAGE - 3, "abcdef", 6);
	CHECK_EQ(0, text_open());
	CHECK_EQ(0, text_look((__u64)(size_t)(at + PAGE - 3), found, 6));
	CHECK(!memcmp(found, "abcdef", 6));
	/* as it was when it was read first, until text_open() */
	at[PAGE - 3] = 'A';
	CHECK_EQ(0, text_look((__u64)(size_t)(at + PAGE - 3), found, 1));
	CHECK_EQ('a', found[0]);
	CHECK_EQ(0, text_read((__u64)(size_t)(at + PAGE - 3), found, 1));
	CHECK_EQ('A', found[0]);
	text_close();
	CHECK_EQ(0, text_open());
	CHECK_EQ(0, text_look((__u64)(size_t)(at + PAGE - 3), found, 1));
	CHECK_EQ('A', found[0]);
	CHECK(!munmap(at + 2 * PAGE, PAGE));
	CHECK(text_look((__u64)(size_t)(at + 2 * PAGE - 4), found, 8) < 0);
	text_close();
}

/* A jump must not lead to memory that may not be there. */
static void test_not_made(void)
{
	__u8 *at = pages(1);

	CHECK_EQ(0, text_open());
	make(at, "code");
	CHECK(!munmap(at, PAGE));
	CHECK(text_made() < 0);
	CHECK(text_made() < 0);
	text_close();
}

/* A program that has changed its user may not open its own memory: it is read all the same, and is not written. */
static void test_not_open(void)
{
	__u8 *at = pages(2), got[4] = { 0 };

	memcpy(at, "here", 4);
	if (prctl(PR_GET_SECCOMP)) { /* nor is it read in a sandbox */
		CHECK(text_read((__u64)(size_t)at, got, 4) < 0);
		return;
	}
	CHECK_EQ(0, text_read((__u64)(size_t)at, got, 4));
	CHECK(!memcmp(got, "here", 4));
	munmap(at + PAGE, PAGE);
	CHECK(text_read((__u64)(size_t)(at + PAGE), got, 4) < 0);
	CHECK(text_read((__u64)(size_t)(at + PAGE - 2), got, 4) < 0);
	CHECK(text_write((__u64)(size_t)at, "gone", 4) < 0);
	CHECK(!memcmp(at, "here", 4));
}

int main(void)
{
	run("made", test_made, NULL);
	run("write-between", test_write_between, NULL);
	run("many-pages", test_many_pages, NULL);
	run("look", test_look, NULL);
	run("not-made", test_not_made, NULL);
	run("not-open", test_not_open, NULL);
	return failed;
}
