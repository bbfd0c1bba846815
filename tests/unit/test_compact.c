/* SPDX-License-Identifier: BSD-2-Clause */
/* test_compact.c - the parts of the rows of --compact: names, sizes, columns, the cut. */
#include "../../user/export/rows/table_compact.h"
#include "unit.h"

static void test_sizes(void)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} rows[] = {
		{ 0, "0B" },
		{ 1023, "1023B" },
		{ 1024, "1KiB" },
		{ 1536, "1.5KiB" },
		{ 1048575, "1MiB" },
		{ 1047552, "1023KiB" },
		{ 10ULL << 30, "10GiB" },
		{ UINT64_MAX, "16EiB" },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct row w = { .p = text };
		struct field f = { .type = FIELD_SIZE, .u = rows[i].bytes };

		CASE_ROW("%zu", i);
		CHECK(compact_value(&w, &f));
		*w.p = '\0';
		CHECK_TEXT(rows[i].want, text);
		/* nothing was read there */
		f.absent = true;
		w.p = text;
		CHECK(!compact_value(&w, &f) && w.p == text);
	}
}

/* A literal with NUL bytes between its words. */
#define LINE(s) s, sizeof(s) - 1

static void test_names(void)
{
	static const struct {
		const char *line;
		size_t n;
		const char *want;
	} rows[] = {
		{ NULL, 0, "comm" },
		{ LINE(""), "comm" },
		{ LINE("/opt/app/bin/solver\0-n\0"), "solver" },
		{ LINE("solver"), "solver" },
		{ LINE("/opt/app/\0x\0"), "comm" },
		{ LINE("python3\0train.py\0--lr\0"), "train.py" },
		{ LINE("/usr/bin/python3.11\0-u\0-W\0ignore\0/home/a/train.py\0"), "train.py" },
		{ LINE("python3\0-m\0torch.distributed.run\0x\0"), "torch.distributed.run" },
		{ LINE("python3\0-m"), "python3" },
		{ LINE("python3\0-c\0import torch\0"), "python3" },
		{ LINE("python3\0-X\0"), "python3" },
		{ LINE("python3\0"), "python3" },
		/* a script in a folder whose name ends the word */
		{ LINE("python3\0/home/a/\0"), "comm" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct process_info info = { .cmdline = rows[i].line,
						   .cmdline_len = rows[i].n };
		struct process proc = { .comm = "comm", .info = rows[i].line ? &info : NULL };
		char got[64];
		size_t n;
		const char *s = compact_process(&proc, &n);

		CASE_ROW("%zu", i);
		snprintf(got, sizeof(got), "%.*s", (int)n, s);
		CHECK_TEXT(rows[i].want, got);
	}
}

/* A column grows and never shrinks; a name is cut where it is too long, and harmless. */
static void test_columns(void)
{
	struct compact c = { { 0 } };
	char text[1024], *p = text;
	char name[100];

	p = compact_cell(&c, p, COMPACT_PID, "12", 2, false);
	p = compact_cell(&c, p, COMPACT_PID, "12345", 5, false);
	p = compact_cell(&c, p, COMPACT_PID, "1", 1, false);
	p = compact_cell(&c, p, COMPACT_TIME, "10.5", 4, true);
	p = compact_cell(&c, p, COMPACT_TIME, "9.5", 3, true);
	/* what is wider than a column may be stands whole */
	p = compact_cell(&c, p, COMPACT_PID, "12345678901", 11, false);
	p = compact_cell(&c, p, COMPACT_PID, "1", 1, false);
	*p = '\0';
	CHECK_TEXT("12 12345 1     10.5  9.5 12345678901 1          ", text);
	p = compact_name(&c, text, COMPACT_PROCESS, "a\033[31m\377\xc3\xa9", 9);
	p = compact_name(&c, p, COMPACT_PROCESS, "b\0c", 3);
	*p = '\0';
	CHECK_TEXT("a?[31m?\xc3\xa9 b        ", text);
	memset(name, 'x', sizeof(name));
	p = compact_name(&c, text, COMPACT_PROCESS, name, sizeof(name));
	*p = '\0';
	CHECK_TEXT("xxxxxxxxxxxxxxxxxxxx ", text);
	p = compact_took(&c, text, 9999999, false, true);
	p = compact_took(&c, p, 10000000, true, false);
	p = compact_took(&c, p, 123400, true, true);
	*p = '\0';
	CHECK_TEXT("10ms  10ms! \033[33m123.4us!\033[0m ", text);
}

static void test_cut(void)
{
	static const struct {
		const char *lines, *want;
		int columns;
	} rows[] = {
		{ "1234567890\n", "1234567890\n", 10 },
		{ "12345678901\n", "123456789>\n", 10 },
		{ "12345678901\nab\n1234567890123\n", "123456789>\nab\n123456789>\n", 10 },
		{ "no end", "no end\n", 10 },
		{ "\n", "\n", 10 },
		{ "12\n", ">\n", 1 },
		/* a color takes no place, and ends where the line is cut */
		{ "12\033[31m345678\033[0m90\n", "12\033[31m345678\033[0m90\n", 10 },
		{ "12\033[31m345678\033[0m901\n", "12\033[31m345678\033[0m9>\n", 10 },
		{ "12\033[31m345678901\033[0m\n", "12\033[31m3456789>\033[0m\n", 10 },
		{ "1234567890\033[31m1\033[0m\n", "123456789>\n", 10 },
		/* a letter of two bytes is one, and is not torn */
		{ "\xc3\xa9\xc3\xa9\xc3\xa9\n", "\xc3\xa9\xc3\xa9\xc3\xa9\n", 3 },
		{ "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n", "\xc3\xa9\xc3\xa9>\n", 3 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct text lines = { NULL }, got = { NULL };
		struct row w;

		CASE_ROW("%zu", i);
		text_str(&lines, rows[i].lines);
		row_begin_text(&w, &got);
		compact_cut(&w, &lines, rows[i].columns);
		row_end(&w);
		text_mem(&got, "", 1);
		CHECK_TEXT(rows[i].want, got.s);
		text_free(&lines);
		text_free(&got);
	}
}

int main(void)
{
	RUN(test_sizes);
	RUN(test_names);
	RUN(test_columns);
	RUN(test_cut);
	return unit_end();
}
