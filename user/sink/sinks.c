/* SPDX-License-Identifier: BSD-2-Clause */
/* sinks.c - the formats by name: a new one is a row here. */
#include <stdio.h>
#include <string.h>

#include "sink.h"

static const struct sink_ops *const sinks[] = {
	&sink_table, &sink_json, &sink_folded, &sink_flame, &sink_perfetto, &sink_chrome,
};

const struct sink_ops *sinks_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(sinks); i++)
		if (!strcmp(sinks[i]->name, name))
			return sinks[i];
	return NULL;
}

const char *sinks_names(char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(sinks) && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", !i ? "" : i + 1 < ARRAY_LEN(sinks) ? ", " : " or ", sinks[i]->name);
	return buf;
}
