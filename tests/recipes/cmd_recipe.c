/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_recipe.c - `cudatrace recipe`: what docs/HOWTO.md says of a subcommand, with an option of its own. */
#include "cmd.h"
#include "../util/msg.h"
#include "../util/option/option.h"

struct recipe_options {
	uint64_t times;
};

#define OPTION_STRUCT struct recipe_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "times", "N", COUNT(times, 1, 9, "times", NULL), 0, "1", "how often it is said" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

static int cmd_recipe(const struct request *o)
{
	const struct recipe_options *how = request_own(o, &options);
	struct out out;

	if (out_open(&out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	for (uint64_t i = 0; i < how->times; i++)
		out_str(&out, "made\n");
	return cmd_finish(&out);
}

const struct command command_recipe = {
	.run = cmd_recipe,
	.options = &options,
	.usage = "Usage: cudatrace recipe [OPTIONS]\n",
	.about = "\nPrints that it was made.\n",
};
