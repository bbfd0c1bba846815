/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_schema.c - `cudatrace schema`: prints docs/schema.json, which the assembler puts into the
 * binary. The path is relative to the directory where make runs; the object depends on the file.
 */
#include "cmd.h"
#include "../util/msg.h"
#include "../util/io/embed.h"

EMBED(cmd_schema, "docs/schema.json");

static int cmd_schema(const struct request *o)
{
	struct out out;

	(void)o;
	if (out_open(&out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	out_mem(&out, cmd_schema_begin, (size_t)(cmd_schema_end - cmd_schema_begin));
	return cmd_finish(&out);
}

/* clang-format off */
const struct command command_schema = {
	.run = cmd_schema,
	.usage = "Usage: cudatrace schema\n",
	.about = "\nPrints the JSON Schema (draft 2020-12) of the lines of --format json.\n",
};
/* clang-format on */
