/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts_output.c - what the name of -o says of the format, where no option does: x.html is a page, x.csv a
 * table for programs. A name that promises what is not written is refused, with what is meant. Knows no
 * source, and of outputs their names.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "opts_rows.h"
#include "../../util/msg.h"

/* Endings beside those that the outputs' own rows have. */
static const struct {
	const char *ending, *format;
} others[] = {
	{ ".htm", "html" },
	{ ".trace.json", "chrome" },
	{ ".perfetto", "perfetto" },
	{ ".ndjson", "json" },
	{ ".perfetto-trace", "perfetto" },
	{ ".arrow", "arrow" },
	{ ".sqlite3", "nsys-sqlite" },
	{ ".collapsed", "folded" },
};

/* Endings that no output has, or several have: the output that is meant, the ending of its files, and why. */
static const struct promise {
	const char *ending, *instead, *suffix, *why;
} promises[] = {
	{ ".svg", "flame", ".html", "a flame graph is a page for a browser" },
	{ ".png", "html", ".html", "a timeline is a page for a browser" },
	{ ".pdf", "html", ".html", "a timeline is a page for a browser" },
	{ ".nsys-rep", "nsys-sqlite", ".sqlite",
	  "only the SQLite export of Nsight Systems is written here" },
	{ ".qdrep", "nsys-sqlite", ".sqlite",
	  "only the SQLite export of Nsight Systems is written here" },
	{ ".json", "chrome", ".json",
	  "the format json is a line for each call, chrome a timeline" },
};

/* What the forms of stat, mem and the like are called. */
static const struct {
	const char *ending, *word;
} forms[] = {
	{ ".json", "json" },   { ".jsonl", "json" }, { ".csv", "csv" },
	{ ".md", "markdown" }, { ".xml", "junit" },
};

static bool ends(const char *name, size_t n, const char *ending)
{
	size_t k = strlen(ending);

	return n > k && !strncmp(name + n - k, ending, k);
}

/* The output whose files end so, the longest ending first; NULL: none does, or only text for people. */
static const struct sinks_row *of_name(const char *name, size_t n)
{
	const struct sinks_row *found = NULL;
	size_t longest = 0;

	for (unsigned int i = 0; sinks_at(i); i++) {
		const char *suffix = sinks_at(i)->suffix;

		if (sinks_at(i)->flags & (SINKS_COMMAND | SINKS_TEXT) || !ends(name, n, suffix) ||
		    strlen(suffix) <= longest)
			continue;
		found = sinks_at(i);
		longest = strlen(suffix);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		if (!ends(name, n, others[i].ending) || strlen(others[i].ending) <= longest)
			continue;
		found = sinks_find(others[i].format);
		longest = strlen(others[i].ending);
	}
	return found;
}

static const struct promise *promise_of(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(promises); i++)
		if (ends(name, n, promises[i].ending))
			return &promises[i];
	return NULL;
}

/* Does an option say the format? */
static bool is_said(const struct opts *o, const unsigned char *given)
{
	const struct option_row *r;
	bool said = false;

	for (int i = -1; (r = opts_next(o->ask.command, &i));)
		said |= given[i] && (!strcmp(r->name, "format") || !strcmp(r->name, "json") ||
				     !strcmp(r->name, "csv"));
	return said || o->ask.export;
}

/* Refuses the name of another format for a recording. stem: the length of the name without its endings. */
static int not_recorded(const struct opts *o, const char *format, const char *suffix, size_t stem)
{
	char text[512] = "";

	if (o->ask.command == OPTS_RECORD)
		snprintf(text, sizeof(text), "'cudatrace --format %s -o %.*s%s -- CMD', or ",
			 format, (int)stem, o->ask.output, suffix);
	msg_error("-o %s: 'cudatrace%s' writes a recording: give %s-o %.*s.ctrace and then "
		  "'cudatrace export --to %s'",
		  o->ask.output, command_typed(o->ask.command), text, (int)stem, o->ask.output,
		  format);
	return -EINVAL;
}

/* A form of the command's own --format. */
static int set_form(struct opts *o, const char *name, size_t n)
{
	const struct option_row *r;

	for (int i = -1; (r = opts_next(o->ask.command, &i));) {
		if (strcmp(r->name, "format") != 0 || r->type.kind != OPTION_ENUM)
			continue;
		for (size_t k = 0; k < ARRAY_LEN(forms); k++)
			for (int w = 0; ends(name, n, forms[k].ending) && r->type.words[w]; w++)
				if (!strcmp(r->type.words[w], forms[k].word))
					return option_set(r, opts_of_row(o, i), r->name,
							  forms[k].word);
	}
	return 0;
}

int opts_output(struct opts *o, const unsigned char *given)
{
	bool stores = o->ask.command & (OPTS_RECORD | OPTS_MERGE);
	const char *name = o->ask.output, *slash;
	const struct promise *promise;
	const struct sinks_row *row;
	size_t n, stem;

	if (!name || !strcmp(name, "-") || out_is_command(name) || is_said(o, given))
		return 0;
	if (o->ask.command & ROWS && (o->ask.look.counts || o->ask.look.counts_only))
		return 0;
	slash = strrchr(name, '/');
	name = slash ? slash + 1 : name;
	n = strlen(name) - (ends(name, strlen(name), ".gz") ? 3 : 0);
	if (!stores && !(o->ask.command & (ROWS | OPTS_FOLDED | OPTS_EXPORT | OPTS_STUCK)))
		return set_form(o, name, n);
	row = of_name(name, n);
	promise = row ? NULL : promise_of(name, n);
	stem = (size_t)(name - o->ask.output) + strcspn(name, ".");
	if (stores && (row || promise))
		return not_recorded(o, row ? row->ops->name : promise->instead,
				    row ? name + strcspn(name, ".") : promise->suffix, stem);
	if (o->ask.command == OPTS_STUCK) {
		if (ends(name, n, ".json"))
			o->ask.format = sinks_find("json");
		return 0;
	}
	if (promise) {
		msg_error("-o %s: %s: give %s %s -o %.*s%s", o->ask.output, promise->why,
			  o->ask.command == OPTS_EXPORT ? "--to" : "--format", promise->instead,
			  (int)stem, o->ask.output, promise->suffix);
		return -EINVAL;
	}
	if (row && (o->ask.command != OPTS_EXPORT || row->flags & SINKS_EXPORT)) {
		o->ask.format = row;
		/* pages that folded makes are flame graphs */
		if (o->ask.command == OPTS_FOLDED && !strcmp(row->ops->name, "html"))
			o->ask.format = sinks_find("flame");
		o->ask.export = o->ask.command == OPTS_EXPORT;
	}
	return 0;
}
