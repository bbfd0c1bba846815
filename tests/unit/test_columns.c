/* SPDX-License-Identifier: BSD-2-Clause */
/* test_columns.c - a table from one list of columns: its text, JSON, CSV and Markdown, byte by byte. */
#include <stdlib.h>
#include <unistd.h>

#include "../../user/render/table.h"
#include "unit.h"

#define WIDE 1u

struct line {
	const char *name;
	uint64_t ns, bytes;
	double share;
	bool known;
};

static char path[64];

static struct cell line_name(const void *row, const void *ctx)
{
	(void)ctx;
	return cell_string(((const struct line *)row)->name);
}

static struct cell line_ns(const void *row, const void *ctx)
{
	const struct line *l = row;

	(void)ctx;
	return l->known ? cell_number(l->ns) : cell_none();
}

static struct cell line_bytes(const void *row, const void *ctx)
{
	(void)ctx;
	return cell_number(((const struct line *)row)->bytes);
}

static struct cell line_share(const void *row, const void *ctx)
{
	(void)ctx;
	return cell_real(((const struct line *)row)->share);
}

static struct cell line_label(const void *row, const void *ctx)
{
	const char *name = ((const struct line *)row)->name;

	(void)ctx;
	return cell_bytes(name, strlen(name), false);
}

static const char *show_kind(const void *row, const void *ctx, char buf[TABLE_CELL])
{
	(void)row;
	(void)buf;
	return ctx;
}

static void put_sizes(struct json *j, const void *row, const void *ctx)
{
	(void)row;
	(void)ctx;
	json_open_array(j, "sizes");
	json_end(j);
}

static const struct table_column columns[] = {
	{ .key = "name", .head = "Name", .text = 9, .most = 8, .get = line_name },
	{ .key = "label", .no_json = true, .csv = 1, .get = line_label },
	{ .key = "ns",
	  .head = "Time",
	  .text = 2,
	  .csv = 3,
	  .width = 10,
	  .unit = TABLE_NS,
	  .get = line_ns },
	{ .head = "Kind", .text = 1, .width = -6, .show = show_kind },
	{ .key = "bytes",
	  .head = "Bytes",
	  .text = 4,
	  .width = 9,
	  .unit = TABLE_BYTES,
	  .needs = WIDE,
	  .get = line_bytes },
	{ .key = "share",
	  .head = "Time%",
	  .text = 3,
	  .csv = 2,
	  .width = 6,
	  .unit = TABLE_SHARE,
	  .digits = 1,
	  .json_digits = 3,
	  .get = line_share },
	{ .unless = WIDE, .put = put_sizes },
};

static const struct line lines[] = { { "a|b", 1500, 2048, 0.25, true },
				     { "=\"\x1b[31mlong", 0, 0, 0.5, false } };

static char *all_forms(uint32_t have)
{
	const struct table t = TABLE_OF(columns, have, "kind");
	struct out out;
	struct json j = json_to(&out);

	CHECK(!out_open(&out, path, false));
	table_text_heads(&t, &out);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		table_text_row(&t, &out, &lines[i]);
	json_open_array(&j, NULL);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		table_json_row(&t, &j, " ", &lines[i]);
	json_end(&j);
	out_char(&out, '\n');
	table_csv_heads(&t, &out);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		table_csv_row(&t, &out, &lines[i]);
	table_markdown_heads(&t, &out);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		table_markdown_row(&t, &out, &lines[i]);
	CHECK(!out_close(&out));
	return unit_read(path);
}

/* What does not fit a table is not in it; names of a program cannot change the form. */
static void test_forms(void)
{
	char *got = all_forms(WIDE);

	CHECK_TEXT(" Kind         Time  Time%     Bytes  Name\n"
		   " kind     1.500 us   25.0   2.0 KiB  a|b\n"
		   " kind            -   50.0       0 B  =\"\\033[31ml...\n"
		   "[\n {\"name\":\"a|b\",\"ns\":1500,\"bytes\":2048,\"share\":0.250},\n"
		   " {\"name\":\"=\\\"\\u001b[31mlong\",\"bytes\":0,\"share\":0.500}]\n"
		   "label,share,ns\r\n"
		   "\"a|b\",0.250,1500\r\n"
		   "\"'=\"\"\x1b[31mlong\",0.500,\r\n"
		   "| Kind | Time | Time% | Bytes | Name |\n"
		   "|---|--:|--:|--:|---|\n"
		   "| kind | 1.500 us | 25.0 | 2.0 KiB | a&#124;b |\n"
		   "| kind | - | 50.0 | 0 B | =\"\\033&#91;31ml... |\n",
		   got ? got : "(no file)");
	free(got);
}

/* A column that a table does not have is in none of its forms. */
static void test_needs(void)
{
	char *got = all_forms(0);

	CHECK_TEXT(" Kind         Time  Time%  Name\n"
		   " kind     1.500 us   25.0  a|b\n"
		   " kind            -   50.0  =\"\\033[31ml...\n"
		   "[\n {\"name\":\"a|b\",\"ns\":1500,\"share\":0.250,\"sizes\":[]},\n"
		   " {\"name\":\"=\\\"\\u001b[31mlong\",\"share\":0.500,\"sizes\":[]}]\n"
		   "label,share,ns\r\n"
		   "\"a|b\",0.250,1500\r\n"
		   "\"'=\"\"\x1b[31mlong\",0.500,\r\n"
		   "| Kind | Time | Time% | Name |\n"
		   "|---|--:|--:|---|\n"
		   "| kind | 1.500 us | 25.0 | a&#124;b |\n"
		   "| kind | - | 50.0 | =\"\\033&#91;31ml... |\n",
		   got ? got : "(no file)");
	free(got);
}

int main(void)
{
	snprintf(path, sizeof(path), "/tmp/ct_test_columns.%d", (int)getpid());
	RUN(test_forms);
	RUN(test_needs);
	unlink(path);
	return unit_end();
}
