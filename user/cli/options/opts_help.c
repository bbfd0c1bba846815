/* SPDX-License-Identifier: BSD-2-Clause */
/* opts_help.c - --help: of each command what its file says, and the rows of its options. */
#include <stdio.h>
#include <string.h>

#include "opts_rows.h"

#define HELP_COLUMN 28
/* of -h: a terminal, and a line for the prompt */
#define BRIEF_LINES 23
#define BRIEF_COLUMNS 80

/* Returns the length of the words that fit into a line. */
static size_t words_in(const char *line, size_t len, size_t columns)
{
	size_t n = len < columns ? len : columns;

	if (n == len)
		return n;
	while (n && line[n] != ' ')
		n--;
	return n ? n : columns;
}

/* brief: the beginning of what it does */
static void help_row(struct out *out, const struct option_row *r, bool brief)
{
	const char *line = r->help;
	char head[64];
	int n;

	n = snprintf(head, sizeof(head), "  %s%c%s--%s%s%s", r->letter ? "-" : " ",
		     r->letter ? r->letter : ' ', r->letter ? ", " : "  ", r->name,
		     r->arg && *r->arg != '[' ? " " : "", r->arg ? r->arg : "");
	out_str(out, head);
	if (n >= HELP_COLUMN) {
		out_char(out, '\n');
		n = 0;
	}
	for (; n < HELP_COLUMN; n++)
		out_char(out, ' ');
	if (brief) {
		size_t len = strcspn(line, "\n"), room = BRIEF_COLUMNS - HELP_COLUMN;
		bool cut = line[len] || len > room;
		size_t fits = cut ? words_in(line, len, room - 4) : len;

		out_mem(out, line, fits);
		out_str(out, cut ? " ...\n" : "\n");
		return;
	}
	while (*line) {
		size_t len = strcspn(line, "\n");

		out_mem(out, line, len);
		line += len;
		if (*line) {
			line++;
			out_fmt(out, "\n%*s", HELP_COLUMN, "");
		}
	}
	if (r->def)
		out_fmt(out, " [%s]", r->def);
	out_char(out, '\n');
}

/* The words of a text in lines as wide as a terminal. Returns the number of lines. */
static int brief_text(struct out *out, const char *text)
{
	size_t column = 0;
	int lines = 1;

	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		size_t n = strcspn(text, " \n");

		if (column && column + 1 + n > BRIEF_COLUMNS) {
			out_char(out, '\n');
			column = 0;
			lines++;
		}
		if (column)
			out_char(out, ' ');
		out_mem(out, text, n);
		column += (column != 0) + n;
		text += n;
	}
	out_char(out, '\n');
	return lines;
}

/* What `cudatrace -h` says of each command. There is no room for an empty line. */
static void brief_commands(struct out *out)
{
	for (unsigned int i = 1; command_at(i); i++)
		out_fmt(out, "  cudatrace %-8s %s\n", command_at(i)->name, command_at(i)->does);
}

/* A line for each command: what `cudatrace --help` begins with. */
static void help_commands(struct out *out)
{
	char words[96];

	for (unsigned int i = 1; command_at(i); i++) {
		const struct command_row *r = command_at(i);

		snprintf(words, sizeof(words), "%s%s%s", r->name, *r->words ? " " : "", r->words);
		out_fmt(out, "       cudatrace %-30s %s\n", words, r->does);
		if (!r->command->also)
			continue;
		snprintf(words, sizeof(words), "%s %s", r->command->also, r->words);
		out_fmt(out, "       cudatrace %-30s the same\n", words);
	}
}

static void help_rows(struct out *out, enum opts_cmd cmd)
{
	const struct opts_row *r;

	if (!(cmd & TRACES))
		out_str(out, "\nOptions:\n");
	for (int i = 0; (r = opts_row_at(i)); i++) {
		if (!(r->cmds & (int)cmd) || (r->row->type.kind != OPTION_HEADING && !r->row->help))
			continue;
		if (r->row->type.kind != OPTION_HEADING)
			help_row(out, r->row, false);
		else if (cmd & TRACES)
			out_fmt(out, "\n%s:\n", r->row->name);
	}
}

static int lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Options with a letter, as far as there is room for them. */
static void brief_rows(struct out *out, enum opts_cmd cmd, int room)
{
	const struct option_row *r;

	for (int i = -1; room > 0 && (r = opts_next(cmd, &i));) {
		bool wide = strlen(r->name) + (r->arg ? strlen(r->arg) : 0) + 10 >= HELP_COLUMN;

		if (!r->letter || !r->help || strchr("hVv", r->letter) || room < 1 + wide)
			continue;
		help_row(out, r, true);
		room -= 1 + wide;
	}
}

void opts_help_brief(struct out *out, enum opts_cmd cmd)
{
	const struct command_row *c = command_of(cmd);

	int room = BRIEF_LINES - 4 - lines(c->command->usage); /* three empty lines, and the last */

	out_str(out, c->command->usage);
	if (c == command_at(0)) {
		brief_commands(out);
		out_str(out,
			"All options: cudatrace --help. Of a command: cudatrace help COMMAND\n");
		return;
	}
	out_char(out, '\n');
	room -= brief_text(out, c->command->about);
	out_char(out, '\n');
	brief_rows(out, cmd, room);
	out_fmt(out, "\nAll options: cudatrace%s --help\n", command_typed(cmd));
}

void opts_help(struct out *out, enum opts_cmd cmd)
{
	const struct command_row *c = command_of(cmd);

	out_str(out, c->command->usage);
	if (c == command_at(0))
		help_commands(out);
	out_str(out, c->command->about);
	help_rows(out, cmd);
	if (c->command->after)
		out_str(out, c->command->after);
	if (!(cmd & TRACES) || cmd == OPTS_MEM)
		return; /* no -e */
	out_str(out, "\nClasses:");
	for (int class = 0; class < API_CLASS_END; class ++)
		if (!api_class_of_layers((enum api_class) class))
			out_fmt(out, " %s", api_class_name((enum api_class) class));
	out_str(out, "\nLibraries:");
	for (int i = 0; i < API_DOMAIN_END; i++)
		if (!api_domains[i].layer)
			out_fmt(out, " %s", api_domain_names[i]);
	out_str(out, "\nOf what --layers records:");
	for (int class = 0; class < API_CLASS_END; class ++)
		if (api_class_of_layers((enum api_class) class))
			out_fmt(out, " %s", api_class_name((enum api_class) class));
	for (int i = 0; api_layer_names[i]; i++)
		out_fmt(out, " %s", api_layer_names[i]);
	out_char(out, '\n');
}
