/* SPDX-License-Identifier: BSD-2-Clause */
/* request.c - see request.h. */
#include <stdio.h>
#include <string.h>

#include "request.h"

void *request_own(const struct request *o, const struct option_set *set)
{
	for (int i = 0; i < o->nown; i++)
		if (o->own[i].set == set)
			return o->own[i].options;
	return NULL;
}

void request_lend(struct request *o, const struct option_set *set, void *options)
{
	o->own[o->nown].set = set;
	o->own[o->nown++].options = options;
}

struct sink_wants request_wants(const struct request *o)
{
	const struct sink_ops *ops = o->format->ops;
	const void *own = request_own(o, ops->options);
	struct sink_wants wants = { .for_programs = false };

	if (ops->wants && own)
		ops->wants(own, &wants);
	return wants;
}

const char *request_title(const struct request *o, char *buf, size_t size)
{
	size_t n = 0;

	if (o->replay) {
		const char *slash = strrchr(o->file, '/');

		snprintf(buf, size, "%s", slash && slash[1] ? slash + 1 : o->file);
		return buf;
	}
	snprintf(buf, size, "%s", o->cmd ? "" : o->npids ? "process" : "all processes");
	n = strlen(buf);
	for (int i = 0; o->cmd && o->cmd[i] && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? " " : "", o->cmd[i]);
	for (int i = 0; i < o->npids && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%d",
				      i		     ? ", "
				      : o->npids > 1 ? "es "
						     : " ",
				      (int)o->pids[i]);
	return buf;
}
