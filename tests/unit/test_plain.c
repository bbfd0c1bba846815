/* SPDX-License-Identifier: BSD-2-Clause */
/* test_plain.c - what names and paths of others may do to a terminal: nothing, in messages and in what doctor and info print. */
#include <fcntl.h>
#include <unistd.h>

#include "../../user/util/msg.h"
#include "../../user/util/out.h"
#include "../../user/util/utf8.h"

#include "unit.h"

/* Bytes, and what is left of them. U+009B is CSI to a terminal, as ESC [ is; U+202E turns the line round. */
static const struct {
	const char *from, *one_line, *lines;
} rows[] = {
	{ "", "", "" },
	{ "/usr/lib/libcudart.so.13", "/usr/lib/libcudart.so.13", "/usr/lib/libcudart.so.13" },
	{ "na\xc3\xafve \xe2\x82\xac", "na\xc3\xafve \xe2\x82\xac", "na\xc3\xafve \xe2\x82\xac" },
	{ "a\x1b[2Jb\x7f", "a?[2Jb?", "a?[2Jb?" },
	{ "a\xc2\x9b" "31mb", "a?31mb", "a?31mb" },
	{ "a\x9b" "31mb", "a?31mb", "a?31mb" },
	{ "a\xe2\x80\xae" "b", "a?b", "a?b" },
	{ "a\nb\tc\rd", "a?b?c?d", "a\nb\tc?d" },
	{ "a\xe2\x82", "a??", "a??" },
	{ "\xff\xfe", "??", "??" },
};

static char said[4096];

static void take(const char *text)
{
	snprintf(said, sizeof(said), "%s", text);
}

int main(void)
{
	char path[] = "/tmp/cudatrace-unit.XXXXXX", text[64], want[128], *got;
	struct out out;

	close(mkstemp(path));
	msg_taker = take;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text), "%s", rows[i].from);
		utf8_plain(text, false);
		CHECK_TEXT(rows[i].one_line, text);
		snprintf(text, sizeof(text), "%s", rows[i].from);
		utf8_plain(text, true);
		CHECK_TEXT(rows[i].lines, text);

		msg_warn("%s", rows[i].from);
		snprintf(want, sizeof(want), "cudatrace: warning: %s\n", rows[i].lines);
		CHECK_TEXT(want, said);

		CHECK(!out_open(&out, path, false));
		out_plain(&out, rows[i].from, strlen(rows[i].from));
		CHECK(!out_close(&out));
		got = unit_read(path);
		CHECK_TEXT(rows[i].one_line, got ? got : "(no file)");
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
	return unit_end();
}
