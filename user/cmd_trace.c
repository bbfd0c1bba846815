/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_trace.c - what cudatrace does without a word: traces. */
#include "cmd.h"
#include "session.h"
#include "source/priv.h"

int cmd_trace(const struct opts *o)
{
	static const struct source_ops *const sources[] = { &source_bpf };

	/* Another user's process, or any, needs one capability more than a program of our own. */
	if (priv_check(!o->cmd || o->user))
		return 1;
	return session_run(o, sources, 1);
}
