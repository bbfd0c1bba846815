/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_trace.c - what cudatrace does without a word: traces. */
#include "cmd.h"
#include "../session/session.h"
#include "../source/agent/agent.h"
#include "../source/counters/counters.h"
#include "../source/probe/priv.h"

int cmd_trace(const struct opts *o)
{
	const struct source_ops *sources[SESSION_SOURCES] = { NULL };
	int n = 0;

	/* Another user's process, or any, needs one capability more than a program of our own. */
	if (!o->by_cupti && priv_check(!o->cmd || o->user))
		return 1;
	sources[n++] = o->by_cupti ? &source_agent : &source_bpf;
	if (o->gpu && !o->by_cupti)
		sources[n++] = &source_agent;
	if (o->counters)
		sources[n++] = &source_counters;
	return session_run(o, sources, n);
}
