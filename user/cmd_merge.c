/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_merge.c - `cudatrace merge`. */
#include "cmd.h"
int cmd_merge(const struct opts *o)
{
	(void)o;
	return 1;
}
