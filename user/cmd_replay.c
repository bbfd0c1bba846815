/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_replay.c - `cudatrace replay`: a stored trace, printed. Needs no privileges. */
#include "cmd.h"
#include "session.h"

int cmd_replay(const struct opts *o)
{
	return session_run(o, &source_replay);
}
