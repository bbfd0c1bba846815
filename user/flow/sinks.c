/* SPDX-License-Identifier: BSD-2-Clause */
/* sinks.c - see sinks.h: the rows. */
#include <stdio.h>
#include <string.h>

#include "sinks.h"

static const struct sinks_row rows[] = {
#define S(id, suffix, flags) { &sink_##id, suffix, flags },
#include "sinks.def"
#undef S
};

const struct sinks_row *sinks_at(unsigned int i)
{
	return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

const struct sinks_row *sinks_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i].ops->name, name))
			return &rows[i];
	return NULL;
}

static bool is_named(size_t i, unsigned int flags)
{
	return (rows[i].flags & flags) == flags && !(rows[i].flags & SINKS_COMMAND);
}

const char *sinks_names(unsigned int flags, char *buf, size_t size)
{
	unsigned int all = 0, nth = 0;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		all += is_named(i, flags);
	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(rows) && n < size; i++) {
		if (!is_named(i, flags))
			continue;
		nth++;
		n += (size_t)snprintf(buf + n, size - n, "%s%s",
				      nth == 1	   ? ""
				      : nth == all ? " or "
						   : ", ",
				      rows[i].ops->name);
	}
	return buf;
}
