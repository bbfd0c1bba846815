/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_stat.c - `cudatrace stat`: a trace that only counts. The options say all of it. */
#include "cmd.h"

int cmd_stat(const struct opts *o)
{
	return o->replay ? cmd_replay(o) : cmd_trace(o);
}
