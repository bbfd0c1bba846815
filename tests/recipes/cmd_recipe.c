/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_recipe.c - `cudatrace recipe`: what docs/HOWTO.md says of a subcommand, with options of its own, and of a table that a command
 * prints. */
#include "cmd.h"
#include "../render/table.h"
#include "../util/msg.h"
#include "../util/option/option.h"

enum recipe_form { RECIPE_WORDS, RECIPE_TABLE, RECIPE_JSON, RECIPE_CSV };
struct recipe_options {
	uint64_t times;
	enum recipe_form form;
};

#define OPTION_STRUCT struct recipe_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "times", "N", COUNT(times, 1, 9, "times", NULL), 0, "1", "how often it is said" },
	{ 0, "format", "NAME", ENUM(form, "words", "table", "json", "csv"), 0, "words", "words, table, json or csv" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

struct dish {
	const char *name;
	uint64_t bytes, stirred;
};
static const struct dish dishes[] = { { "soup", 2048, 3 }, { "a \"roll\"", 10, 0 } };

/* clang-format off */
static const struct table_column columns[] = {
	{ .key = "name", .head = "Dish", .text = 9, .csv = 1, TABLE_AT(struct dish, name) },
	{ .key = "bytes", .head = "Size", .text = 1, .csv = 2, .width = 9, .unit = TABLE_BYTES, TABLE_AT(struct dish, bytes) },
	/* another column goes here */
};
/* clang-format on */

static void print_dishes(struct out *o, enum recipe_form form)
{
	const struct table t = TABLE_OF(columns, 0, NULL);
	struct json j = json_to(o);

	if (form == RECIPE_TABLE)
		table_text_heads(&t, o);
	if (form == RECIPE_CSV)
		table_csv_heads(&t, o);
	for (size_t i = 0; i < ARRAY_LEN(dishes); i++)
		if (form == RECIPE_TABLE) {
			table_text_row(&t, o, &dishes[i]);
		} else if (form == RECIPE_CSV) {
			table_csv_row(&t, o, &dishes[i]);
		} else {
			table_json_row(&t, &j, NULL, &dishes[i]);
			out_char(o, '\n');
		}
}

static int cmd_recipe(const struct request *o)
{
	const struct recipe_options *how = request_own(o, &options);
	struct out out;

	if (out_open(&out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	if (how->form != RECIPE_WORDS)
		print_dishes(&out, how->form);
	for (uint64_t i = 0; i < how->times && how->form == RECIPE_WORDS; i++)
		out_str(&out, "made\n");
	return cmd_finish(&out);
}

const struct command command_recipe = {
	.run = cmd_recipe,
	.options = &options,
	.usage = "Usage: cudatrace recipe [OPTIONS]\n",
	.about = "\nPrints that it was made.\n",
};
