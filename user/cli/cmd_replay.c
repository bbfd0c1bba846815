/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_replay.c - `cudatrace replay`: a stored trace, printed. Needs no privileges. */
#include "cmd.h"
#include "../session/session.h"

int cmd_replay(const struct request *o)
{
	static const struct source_ops *const sources[] = { &source_replay };

	struct sink_wants wants = request_wants(o);
	struct request open = *o;

	if (cmd_overwrites(o->file, o->output))
		return 2;
	for (size_t i = 0; i < ARRAY_LEN(wants.files); i++)
		if (cmd_overwrites(o->file, wants.files[i]))
			return 2;
	if (cmd_open_stdin(&open))
		return 1;
	return session_run(&open, sources, 1);
}

/* clang-format off */
const struct command command_replay = {
	.run = cmd_replay,
	.usage = "Usage: cudatrace replay [OPTIONS] FILE\n",
	.about = "\nPrints a recording as the trace would have been printed with the same options. Stacks, nested calls and entries are\n"
		 "available if they were recorded (-k, --nested, --enter-exit).\n",
	.after = "\nExamples:\n"
		 "  cudatrace replay app.ctrace\n"
		 "  cudatrace replay -e memory --from 10 --until 12.5 app.ctrace\n"
		 "  cudatrace replay -c app.ctrace\n"
		 "  ssh node1 cat app.ctrace | cudatrace replay -\n",
};
/* clang-format on */
