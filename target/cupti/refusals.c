/* SPDX-License-Identifier: BSD-2-Clause */
/* refusals.c - what CUPTI has refused, on whichever thread: the agent's own thread says each sort once an attach. */
#include "../common/compat.h"

#include <stdatomic.h>

#include "agent_state.h"

static const struct {
	enum meet_level level;
	const char *text;
} sorts[REFUSALS] = {
	[REFUSED_KERNELS] = { MEET_WARN, "gives no records of kernels" },
	[REFUSED_RECORDS] = { MEET_WARN,
			      "gives not all records of a buffer: device work is missing" },
	[REFUSED_CALLBACKS] = { MEET_WARN, "does not tell of all calls: calls, or the calls that "
					   "device work belongs to, are missing" },
	[REFUSED_TIDS] = { MEET_WARN, "does not name threads as the kernel does" },
	[REFUSED_FLUSH] = { MEET_VERB, "did not hand out its records when it was asked to" },
	[REFUSED_DROPPED] = { MEET_VERB, "does not say how many records it has dropped" },
	[REFUSED_SETTINGS] = { MEET_VERB, "keeps settings of its own" },
	[REFUSED_END] = { MEET_VERB, "could not be ended in all its parts" },
};
static struct {
	_Atomic int result; /* the first one; 0: none */
	bool said;
} refusals[REFUSALS];

bool refused(enum refusal sort, int result)
{
	int none = 0;

	/* after such an error it refuses everything, and that is said */
	if (result && !atomic_load(&agent.fatal) &&
	    atomic_compare_exchange_strong(&refusals[sort].result, &none, result))
		agent_wake();
	return result != 0;
}

void refusals_tell(void)
{
	for (int i = 0; i < REFUSALS; i++) {
		int result = atomic_load(&refusals[i].result);

		if (!result || refusals[i].said)
			continue;
		refusals[i].said = true;
		link_say(sorts[i].level, "process %u: CUPTI %s (%s)", agent.pid, sorts[i].text,
			 library_error(result));
	}
}

void refusals_reset(void)
{
	for (int i = 0; i < REFUSALS; i++) {
		atomic_store(&refusals[i].result, 0);
		refusals[i].said = false;
	}
}
