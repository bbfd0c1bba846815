/* SPDX-License-Identifier: BSD-2-Clause */
/* python_seek.c - see python_seek.h. Knows what python_find() answers and nothing of Python. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../proc/python.h"
#include "../util/msg.h"
#include "python_seek.h"
#include "../../wire/control.h"

#define MAX_REASONS 8

struct python_seek {
	uint32_t generation;
	int nreasons;
	char *reasons[MAX_REASONS]; /* that were told */
};

struct python_seek *python_seek_open(void)
{
	return calloc(1, sizeof(struct python_seek));
}

void python_seek_close(struct python_seek *s)
{
	for (int i = 0; s && i < s->nreasons; i++)
		free(s->reasons[i]);
	free(s);
}

static void python_seek_tell(struct python_seek *s, pid_t pid, const char *why)
{
	for (int i = 0; i < s->nreasons; i++)
		if (!strcmp(s->reasons[i], why))
			return;
	if (s->nreasons == MAX_REASONS || !(s->reasons[s->nreasons] = strdup(why)))
		return;
	s->nreasons++;
	msg_warn("process %d: no Python frames: %s", (int)pid, why);
}

int python_seek_look(struct python_seek *s, pid_t pid, struct ct_python *out)
{
	const char *why = "";
	struct target *t;
	int err = target_open(&t, pid, 0);

	if (err)
		return err;
	err = python_find(t, out, &why);
	target_close(t);
	if (err == -ENOTSUP)
		python_seek_tell(s, pid, why);
	if (err == -ENOENT || err == -ENOTSUP)
		return 0;
	if (err)
		return err;
	out->generation = ++s->generation;
	return 1;
}
