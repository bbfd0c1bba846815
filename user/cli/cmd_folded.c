/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_folded.c - `cudatrace folded`: a trace that ends in the stacks of its calls, added up. The
 * options say all of it. */
#include "cmd.h"

int cmd_folded(const struct opts *o)
{
	return cmd_trace(o);
}
