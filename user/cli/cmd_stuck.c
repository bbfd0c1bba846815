/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_stuck.c - `cudatrace stuck`: which CUDA call each thread sits in, and since when. */
#include "cmd.h"
#include "../source/probe/priv.h"
#include "../stuck/stuck.h"

int cmd_stuck(const struct opts *o)
{
	if (priv_check(true))
		return 1;
	return stuck_run(o, &source_bpf);
}
