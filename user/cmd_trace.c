/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_trace.c - what cudatrace does without a word: traces. */
#include "cmd.h"
#include "session.h"
#include "source/counters.h"
#include "source/priv.h"

int cmd_trace(const struct opts *o)
{
	const struct source_ops *sources[SESSION_SOURCES] = { &source_bpf };
	int n = 1;

	/* Another user's process, or any, needs one capability more than a program of our own. */
	if (priv_check(!o->cmd || o->user))
		return 1;
	if (o->counters)
		sources[n++] = &source_counters;
	return session_run(o, sources, n);
}
