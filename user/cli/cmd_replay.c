/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_replay.c - `cudatrace replay`: a stored trace, printed. Needs no privileges. */
#include "cmd.h"
#include "../session/session.h"

int cmd_replay(const struct opts *o)
{
	static const struct source_ops *const sources[] = { &source_replay };

	if (cmd_overwrites(o->file, o->output) || cmd_overwrites(o->file, o->save) ||
	    cmd_overwrites(o->file, o->mem.html))
		return 2;
	return session_run(o, sources, 1);
}
