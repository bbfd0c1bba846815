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

static struct cell line_name(const struct table_at *at)
{
	return cell_string(((const struct line *)at->row)->name);
}

static struct cell line_ns(const struct table_at *at)
{
	const struct line *l = at->row;

	return l->known ? cell_number(l->ns) : cell_none();
}

static struct cell line_bytes(const struct table_at *at)
{
	return cell_number(((const struct line *)at->row)->bytes);
}

static struct cell line_share(const struct table_at *at)
{
	return cell_real(((const struct line *)at->row)->share);
}

static struct cell line_label(const struct table_at *at)
{
	const char *name = ((const struct line *)at->row)->name;

	return cell_bytes(name, strlen(name), false);
}

static const char *show_kind(const struct table_at *at, char buf[TABLE_CELL])
{
	(void)buf;
	return at->ctx;
}

static void put_sizes(struct json *j, const struct table_at *at)
{
	(void)at;
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

/* ---- one row: a line for each column ---- */

struct fact {
	bool yes, no;
	uint8_t tiny;
	uint16_t small;
	uint32_t word, nothing;
	uint64_t many;
	int below;
	int64_t far;
	double share;
	const char *name, *none;
	char within[8];
	const struct line *other;
	unsigned int reasons;
};

static void write_reasons(struct out *o, const struct table_at *at)
{
	for (unsigned int i = 0; i < ((const struct fact *)at->row)->reasons; i++) {
		table_text_line(o, at);
		out_fmt(o, "reason %u", i + 1);
	}
}

static const char *show_many(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct fact *f = at->row;

	snprintf(buf, TABLE_CELL, "%llu of %s", (unsigned long long)f->many, at->column->name);
	return f->many ? buf : NULL;
}

/* clang-format off */
static const struct table_column facts[] = {
	{ .key = "yes", .head = "yes", .text = 1, TABLE_AT(struct fact, yes) },
	{ .key = "no", .head = "no", .text = 2, TABLE_AT(struct fact, no) },
	{ .key = "tiny", .csv = 1, TABLE_AT(struct fact, tiny) },
	{ .key = "small", TABLE_AT(struct fact, small) },
	{ .key = "word", .head = "word", .text = 4, .brief = true, TABLE_AT(struct fact, word) },
	{ .key = "nothing", .head = "nothing", .text = 5, .brief = true, TABLE_AT(struct fact, nothing) },
	{ .key = "absent", .if_any = true, .csv = 2, TABLE_AT(struct fact, nothing) },
	{ .key = "many", .head = "many", .text = 3, .name = "all", .show = show_many, TABLE_AT(struct fact, many) },
	{ .key = "below", .csv = 3, TABLE_AT(struct fact, below) },
	{ .key = "far", TABLE_AT(struct fact, far) },
	{ .key = "share", .head = "share", .text = 6, .unit = TABLE_SHARE, .digits = 1, .json_digits = 2, TABLE_AT(struct fact, share) },
	{ .key = "name", .head = "name", .text = 7, TABLE_AT(struct fact, name) },
	{ .key = "none", .head = "none", .text = 8, TABLE_AT(struct fact, none) },
	{ .key = "said", .no_json = true, .head = "said", .none = "not known", .text = 9, TABLE_AT(struct fact, none) },
	{ .key = "within", .csv = 4, TABLE_CHARS_AT(struct fact, within) },
	{ .key = "other", .head = "other", .text = 11, .unit = TABLE_BYTES, TABLE_THROUGH(struct fact, other, struct line, bytes) },
	{ .head = "reasons", .text = 10, .write = write_reasons },
};
/* clang-format on */

static char *fact_forms(const struct fact *f)
{
	struct table t = TABLE_OF(facts, 0, NULL);
	struct out out;
	struct json j = json_to(&out);

	t.indent = "> ";
	t.label = 8;
	t.end = "\n";
	CHECK(!out_open(&out, path, false));
	table_text_lines(&t, &out, f);
	table_json_row(&t, &j, NULL, f);
	out_char(&out, '\n');
	table_csv_heads(&t, &out);
	table_csv_row(&t, &out, f);
	CHECK(!out_close(&out));
	return unit_read(path);
}

/* Each type of a member; what is not known has no line, and several lines of one fact one label. */
static void test_lines(void)
{
	struct fact f = { .yes = true,
			  .tiny = 255,
			  .small = 65535,
			  .word = 4000000000,
			  .many = 1ULL << 63,
			  .below = -1,
			  .far = INT64_MIN,
			  .share = 0.25,
			  .name = "a\x1b[b",
			  .within = "chars",
			  .other = &lines[0],
			  .reasons = 2 };
	char *got = fact_forms(&f);

	CHECK_TEXT("> yes      yes\n"
		   "> no       no\n"
		   "> many     9223372036854775808 of all\n"
		   "> word     4000000000\n"
		   "> share    25.0\n"
		   "> name     a?[b\n"
		   "> said     not known\n"
		   "> reasons  reason 1\n"
		   ">          reason 2\n"
		   "> other    2.0 KiB\n"
		   "{\"yes\":true,\"no\":false,\"tiny\":255,\"small\":65535,\"word\":4000000000,"
		   "\"nothing\":0,\"many\":9223372036854775808,\"below\":-1,\"far\":-"
		   "9223372036854775808,\"share\":0.25,\"name\":\"a\\u001b[b\",\"none\":null,"
		   "\"within\":\"chars\",\"other\":2048}\n"
		   "tiny,absent,below,within\n"
		   "255,,-1,\"chars\"\n",
		   got ? got : "(no file)");
	free(got);
	f = (struct fact){ .nothing = 7, .other = &lines[1] };
	got = fact_forms(&f);
	CHECK_TEXT("> yes      no\n"
		   "> no       no\n"
		   "> nothing  7\n"
		   "> share    0.0\n"
		   "> said     not known\n"
		   "> other    0 B\n"
		   "{\"yes\":false,\"no\":false,\"tiny\":0,\"small\":0,\"word\":0,\"nothing\":7,"
		   "\"absent\":7,\"many\":0,\"below\":0,\"far\":0,\"share\":0.00,\"name\":null,"
		   "\"none\":null,\"within\":\"\",\"other\":0}\n"
		   "tiny,absent,below,within\n"
		   "0,7,0,\"\"\n",
		   got ? got : "(no file)");
	free(got);
}

/* Without a blank before the first column. */
static void test_edge(void)
{
	struct table t = TABLE_OF(columns, 0, "kind");
	struct out out;
	char *got;

	t.edge = true;
	t.indent = "  ";
	CHECK(!out_open(&out, path, false));
	table_text_heads(&t, &out);
	table_text_row(&t, &out, &lines[0]);
	CHECK(!out_close(&out));
	got = unit_read(path);
	CHECK_TEXT("  Kind         Time  Time%  Name\n"
		   "  kind     1.500 us   25.0  a|b\n",
		   got ? got : "(no file)");
	free(got);
}

int main(void)
{
	snprintf(path, sizeof(path), "/tmp/ct_test_columns.%d", (int)getpid());
	RUN(test_forms);
	RUN(test_needs);
	RUN(test_lines);
	RUN(test_edge);
	unlink(path);
	return unit_end();
}
