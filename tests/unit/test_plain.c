/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_plain.c - what names and paths of others may do to a terminal: nothing, in messages and
 * in what doctor and info print. And how numbers are written: so that they are the same when
 * they are read again.
 */
#include <fcntl.h>
#include <unistd.h>

#include "../../user/util/msg.h"
#include "../../user/util/io/out.h"
#include "../../user/util/put.h"
#include "../../user/util/utf8.h"

#include "unit.h"

/* Bytes, and what is left of them in place, and in messages. U+009B is CSI to a terminal, as ESC [
 * is; U+202E turns the line round; U+2028 ends it. */
static const struct {
	const char *from, *in_place, *said;
} rows[] = {
	{ "", "", "" },
	{ "/usr/lib/libcudart.so.13", "/usr/lib/libcudart.so.13", "/usr/lib/libcudart.so.13" },
	{ "na\xc3\xafve \xe2\x82\xac", "na\xc3\xafve \xe2\x82\xac", "na\xc3\xafve \xe2\x82\xac" },
	{ "a\\d+ 100%s", "a\\d+ 100%s", "a\\d+ 100%s" },
	{ "a\x1b[2Jb\x7f", "a?[2Jb?", "a\\033[2Jb\\177" },
	{ "a\xc2\x9b"
	  "31mb",
	  "a?31mb", "a\\302\\23331mb" },
	{ "a\x9b"
	  "31mb",
	  "a?31mb", "a\\23331mb" },
	{ "a\xe2\x80\xae"
	  "b\xe2\x80\xa8",
	  "a?b?", "a\\342\\200\\256b\\342\\200\\250" },
	{ "x\ncudatrace: 100 calls, 0 lost\ny\tc\rd", "x?cudatrace: 100 calls, 0 lost?y?c?d",
	  "x\\012cudatrace: 100 calls, 0 lost\\012y\\011c\\015d" },
	{ "a\xe2\x82", "a??", "a\\342\\202" },
	{ "\xff\xfe", "??", "\\377\\376" },
};

static char said[4096];

static void take(const char *text)
{
	snprintf(said, sizeof(said), "%s", text);
}

static void check_number(double v, bool single, const char *want)
{
	char buf[PUT_DOUBLE_MAX + 1];
	char *end = put_double(buf, v, single);

	CHECK(end - buf < PUT_DOUBLE_MAX);
	*end = '\0';
	CHECK_TEXT(want, buf);
	CHECK(single ? strtof(buf, NULL) == (float)v : strtod(buf, NULL) == v);
}

static void test_numbers(void)
{
	uint64_t seed = 7;
	char buf[PUT_DOUBLE_MAX + 1];

	check_number(3221225472, false, "3221225472"); /* 3 GiB: nine digits are too few */
	check_number(-3, false, "-3");
	check_number(64.5, false, "64.5");
	check_number(0.1, false, "0.1");
	check_number(0.1f, false, "0.10000000149011612");
	check_number(0.1f, true, "0.1");
	check_number(1e300, false, "1e+300");
	for (int i = 0; i < 100000; i++) {
		double v;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		memcpy(&v, &seed, sizeof(v));
		if (!(v - v == 0))
			continue;
		*put_double(buf, v, false) = '\0';
		CHECK(strtod(buf, NULL) == v);
	}
}

static unsigned long long reported, counted;

/* Adds up what is said, and what is said to be like it. */
static void add_up(const char *text)
{
	const char *more = strstr(text, "(and ");

	reported++;
	counted += more ? 1 + strtoull(more + 5, NULL, 10) : 1;
	take(text);
}

/* However often something goes wrong, it is said some times, then now and then; how often it was
 * is said in the end. */
static void test_often(void)
{
	unsigned long long before;

	msg_rest();
	msg_taker = add_up;
	for (int i = 1; i <= MSG_AT_ONCE; i++)
		msg_warn("process %d is odd", i);
	CHECK(reported == MSG_AT_ONCE);
	CHECK_TEXT("cudatrace: warning: process 20 is odd\n", said);
	for (int i = 1; i <= 100000; i++)
		msg_warn("process %d is odder: %0*d", i, 3000, 0);
	before = reported;
	/* one in five seconds, on a machine however slow */
	CHECK(before >= 2 * MSG_AT_ONCE && before < 10000);
	/* another kind is not held up by that, notes never are */
	msg_error("another");
	CHECK_TEXT("cudatrace: error: another\n", said);
	for (int i = 0; i < 100; i++)
		msg_note("a note");
	CHECK(reported == before + 101);
	msg_rest();
	CHECK(reported == before + 102 && counted == MSG_AT_ONCE + 100000 + 101);
	CHECK(strstr(said, "cudatrace: warning: process 100000 is odder: 0000") == said);
	CHECK(strlen(said) < 2048 && strstr(said, " more like it)\n"));
	msg_rest();
	CHECK(reported == before + 102);
	msg_taker = NULL;
}

/* A name that is all escapes fills the message, and what is said of more like it has its room. */
static void test_long(void)
{
	char name[4097];

	memset(name, '\n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	msg_taker = take;
	for (int i = 0; i < MSG_AT_ONCE + 2; i++)
		msg_warn("no library %s", name);
	msg_rest();
	CHECK(strlen(said) < 2048 && strcspn(said, "\n") == strlen(said) - 1);
	CHECK(strstr(said, "cudatrace: warning: no library \\012\\012") == said);
	CHECK(strstr(said, " (and 1 more like it)\n"));
	msg_taker = NULL;
}

int main(void)
{
	char path[] = "/tmp/cudatrace-unit.XXXXXX", text[64], want[128], *got;
	struct out out;

	close(mkstemp(path));
	msg_taker = take;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text), "%s", rows[i].from);
		utf8_plain(text);
		CHECK_TEXT(rows[i].in_place, text);

		msg_warn("%s", rows[i].from);
		snprintf(want, sizeof(want), "cudatrace: warning: %s\n", rows[i].said);
		CHECK_TEXT(want, said);

		CHECK(!out_open(&out, path, false));
		out_plain(&out, rows[i].from, strlen(rows[i].from));
		CHECK(!out_close(&out));
		got = unit_read(path);
		CHECK_TEXT(rows[i].in_place, got ? got : "(no file)");
		free(got);
	}
	/* a part of a text, which goes on */
	CHECK(!out_open(&out, path, false));
	out_plain(&out, "ab\xc3\xaf", 3);
	CHECK(!out_close(&out));
	got = unit_read(path);
	CHECK_TEXT("ab?", got ? got : "(no file)");
	free(got);
	unlink(path);
	RUN(test_numbers);
	RUN(test_often);
	RUN(test_long);
	return unit_end();
}
