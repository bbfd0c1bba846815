/* SPDX-License-Identifier: BSD-2-Clause */
/* sinks.c - see sinks.h: the rows. */
#include <stdio.h>
#include <string.h>

#include "sinks.h"

static const struct sinks_row rows[] = {
	{ &sink_table, ".txt", SINKS_ROWS | SINKS_COUNTERS | SINKS_TEXT | SINKS_NO_PLACES },
	{ &sink_json, ".jsonl", SINKS_ROWS | SINKS_EXPORT | SINKS_COUNTERS },
	{ &sink_folded, ".folded", SINKS_FOLDS | SINKS_EVERY_CALL | SINKS_EXPORT },
	{ &sink_flame, ".flame.html", SINKS_FOLDS | SINKS_WHOLE | SINKS_EVERY_CALL | SINKS_EXPORT },
	{ &sink_speedscope, ".speedscope.json",
	  SINKS_FOLDS | SINKS_WHOLE | SINKS_EVERY_CALL | SINKS_EXPORT },
	{ &sink_html, ".html", SINKS_WHOLE | SINKS_BINARY | SINKS_EXPORT | SINKS_COUNTERS },
	{ &sink_csv, ".csv", SINKS_WHOLE | SINKS_EXPORT | SINKS_COUNTERS },
	{ &sink_cupti, ".cupti.txt", SINKS_NESTED | SINKS_EXPORT },
	{ &sink_perfetto, ".pftrace",
	  SINKS_WHOLE | SINKS_BINARY | SINKS_EXPORT | SINKS_INFO | SINKS_COUNTERS |
		  SINKS_READABLE },
	{ &sink_chrome, ".pt.trace.json",
	  SINKS_WHOLE | SINKS_BINARY | SINKS_SPLITS | SINKS_EXPORT | SINKS_INFO | SINKS_COUNTERS },
	{ &sink_nsys, ".sqlite", SINKS_WHOLE | SINKS_BINARY | SINKS_PATH | SINKS_EXPORT },
	{ &sink_otlp_json, ".otlp.jsonl", SINKS_EXPORT | SINKS_SPANS },
	{ &sink_serve, ".prom",
	  SINKS_COUNTS | SINKS_COMMAND | SINKS_EVERY_CALL | SINKS_DEFINITIONS | SINKS_INFO |
		  SINKS_DAEMON },
	{ &sink_mem, ".txt", SINKS_COMMAND | SINKS_EVERY_CALL | SINKS_MEMORY | SINKS_TEXT },
	{ &sink_stat, ".txt", SINKS_COUNTS | SINKS_COMMAND | SINKS_TEXT },
	{ &sink_top, ".txt", SINKS_COUNTS | SINKS_COMMAND | SINKS_EVERY_CALL | SINKS_LIVE },
	{ &sink_advise, ".txt", SINKS_COMMAND | SINKS_EVERY_CALL | SINKS_TEXT },
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
