/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_record.c - `cudatrace record`: a trace that is stored. */
#include "cmd.h"

int cmd_record(const struct opts *o)
{
	return cmd_trace(o);
}
