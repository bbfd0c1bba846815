/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_said.c - see agent_said.h. */
#include <stdio.h>
#include <string.h>

#include "../../../cupti/agent/agent.h"
#include "../../../hooks/wire.h"
#include "../../util/msg.h"
#include "agent_said.h"

_Static_assert(AGENT_VERB == (int)HOOKS_VERB && AGENT_NOTE == (int)HOOKS_NOTE &&
		       AGENT_WARN == (int)HOOKS_WARN,
	       "the levels are the same");

void agent_said(pid_t pid, unsigned int level, const char *text, size_t len)
{
	char copy[1024], whose[32], *said = copy;
	size_t n = len < sizeof(copy) - 1 ? len : sizeof(copy) - 1;

	for (size_t i = 0; i < n; i++)
		copy[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	copy[n] = '\0';
	snprintf(whose, sizeof(whose), "process %d: ", (int)pid);
	if (!strncmp(copy, whose, strlen(whose)))
		said += strlen(whose);
	if (level == AGENT_VERB)
		msg_verb("%s%s", whose, said);
	else if (level == AGENT_NOTE)
		msg_note("%s%s", whose, said);
	else if (level == AGENT_WARN)
		msg_warn("%s%s", whose, said);
	else
		msg_error("%s%s", whose, said);
}
