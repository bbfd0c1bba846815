/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_advise.c - `cudatrace advise`: a trace, or a recording, that ends in what its program
 * could do better. */
#include "../advise/advise.h"
#include "cmd.h"

int cmd_advise(const struct opts *o)
{
	struct sink_advise how = o->advise;
	struct opts all = *o;
	int status;

	how.worst = -1;
	all.advise_how = &how;
	/* what was recorded, stacks, is wanted; live they cost something, and are taken when
	 * asked for */
	if (o->replay)
		all.stack = OPTS_STACK_DWARF;
	status = o->replay ? cmd_replay(&all) : cmd_trace(&all);
	return !status && o->advise_fail && how.worst >= ADVISE_WARNING ? 1 : status;
}
