/* SPDX-License-Identifier: BSD-2-Clause */
/* command.c - see command.h: the rows. */
#include <stdio.h>
#include <string.h>

#include "command.h"

#define ROW(arg, id, name, groups, words, does) { OPTS_##id, #name, words, does, &command_##name },
static const struct command_row rows[] = { COMMANDS(ROW, 0) };

const struct command_row *command_at(unsigned int i)
{
	return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

const struct command_row *command_of(enum opts_cmd bit)
{
	return &rows[__builtin_ctz((unsigned int)bit)];
}

const struct command_row *command_named(const char *word)
{
	for (size_t i = 1; i < ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i].name, word) ||
		    (rows[i].command->also && !strcmp(rows[i].command->also, word)))
			return &rows[i];
	return NULL;
}

const char *command_typed(enum opts_cmd bit)
{
	static char word[32];

	snprintf(word, sizeof(word), " %s", command_of(bit)->name);
	return bit == rows[0].bit ? "" : word;
}
