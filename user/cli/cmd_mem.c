/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_mem.c - `cudatrace mem`: a trace of what takes memory and gives it back. The options say
 * all of it. */
#include "cmd.h"

int cmd_mem(const struct opts *o)
{
	return o->replay ? cmd_replay(o) : cmd_trace(o);
}
