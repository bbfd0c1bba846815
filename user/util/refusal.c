/* SPDX-License-Identifier: BSD-2-Clause */
/* refusal.c - see refusal.h. */
#include <string.h>

#include "msg.h"
#include "refusal.h"
#include "types.h"

static char refusal[512];
static void (*printer)(const char *);

/* Returns the text after "cudatrace: error: " or "cudatrace: warning: ". */
static void take(const char *text)
{
	static const char *const prefixes[] = { "cudatrace: error: ", "cudatrace: warning: ",
						"cudatrace: " };
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(text, prefixes[i], strlen(prefixes[i]))) {
			text += strlen(prefixes[i]);
			break;
		}
	n = strcspn(text, "\n");
	if (n >= sizeof(refusal))
		n = sizeof(refusal) - 1;
	memcpy(refusal, text, n);
	refusal[n] = '\0';
}

void refusal_begin(void)
{
	*refusal = '\0';
	printer = msg_taker;
	msg_taker = take;
}

const char *refusal_end(void)
{
	msg_taker = printer;
	return refusal;
}
