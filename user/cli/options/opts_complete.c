/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts_complete.c - what may stand next on a command line: `cudatrace --complete WORD...` prints
 * the candidates for the last WORD, one a line. The shells' completions ask it, so that they
 * know no option themselves. A line that begins with ':' names what the shell itself completes:
 * :file, :directory, :user, :pid, :command.
 */
#include <stdio.h>
#include <string.h>

#include "opts_rows.h"

struct complete {
	struct out *out;
	const char *head; /* what stands before the last word of a list; its length follows */
	size_t nhead;
	const char *word; /* to complete */
};

static void offer(struct complete *c, const char *s)
{
	if (strncmp(s, c->word, strlen(c->word)))
		return;
	out_mem(c->out, c->head, c->nhead);
	out_str(c->out, s);
	out_char(c->out, '\n');
}

static const struct option_row *row_named(enum opts_cmd cmd, const char *word)
{
	const struct option_row *r;

	for (int i = -1; (r = opts_next(cmd, &i));)
		if (word[0] == '-' && word[1] == '-'
			    ? !strcmp(word + 2, r->name)
			    : word[0] == '-' && word[1] == r->letter && word[1] && !word[2])
			return r;
	return NULL;
}

/* The value of which the word is the last part; bash makes three words of --name=value. */
static const struct option_row *opts_complete_value_of(enum opts_cmd cmd, const char *const *words,
						       int n)
{
	const char *before = n > 1 ? words[n - 2] : "";
	const struct option_row *r;

	if (!strcmp(words[n - 1], "=") && n > 1)
		return row_named(cmd, before);
	if (!strcmp(before, "=") && n > 2)
		return row_named(cmd, words[n - 3]);
	r = row_named(cmd, before);
	return r && r->arg && *r->arg != '[' ? r : NULL;
}

/* Functions are completed from the third letter on, because there are thousands. */
static void offer_names(struct complete *c)
{
	for (int i = 0; i < api_nfuncs && strlen(c->word) > 2; i++)
		if (!i || strcmp(api_funcs[i].name, api_funcs[i - 1].name))
			offer(c, api_funcs[i].name);
}

/* The functions by which programs say themselves where a profile begins and ends. */
static void offer_marks(struct complete *c)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (api_funcs[i].class == API_PROFILER)
			offer(c, api_funcs[i].name);
}

static void offer_functions(struct complete *c)
{
	static const char *const lists[] = { "default", "all", "none" };

	for (int i = 0; i < API_CLASS_END; i++)
		offer(c, api_class_name((enum api_class)i));
	for (int i = 0; i < API_DOMAIN_END; i++)
		offer(c, api_domain_names[i]);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		offer(c, lists[i]);
	offer_names(c);
}

/* A list: its last part is completed, what stands before it is kept. */
static void split_list(struct complete *c, const char *seps)
{
	const char *last = c->word;

	for (const char *p = c->word; *p; p++)
		if (strchr(seps, *p))
			last = p + 1;
	c->head = c->word;
	c->nhead = (size_t)(last - c->word);
	c->word = last;
}

static void offer_formats(struct complete *c, enum opts_cmd cmd)
{
	unsigned int want = cmd == OPTS_FOLDED	 ? SINKS_FOLDS
			    : cmd == OPTS_STUCK	 ? SINKS_ROWS
			    : cmd == OPTS_EXPORT ? SINKS_EXPORT
						 : 0;

	for (unsigned int i = 0; sinks_at(i); i++)
		if ((sinks_at(i)->flags & want) == want && !(sinks_at(i)->flags & SINKS_COMMAND))
			offer(c, sinks_at(i)->ops->name);
}

static void offer_values(struct complete *c, enum opts_cmd cmd, const struct option_row *r)
{
	static const struct {
		const char *arg, *what;
	} shells[] = {
		{ "FILE", ":file" }, { "PATH", ":file" }, { "DIR", ":directory" },
		{ "USER", ":user" }, { "PID", ":pid" },
	};

	if (r->type.kind == OPTION_LIST)
		split_list(c, ",");
	for (int i = 0; r->type.words && r->type.words[i]; i++)
		offer(c, r->type.words[i]);
	if (r->type.every)
		offer(c, r->type.every);
	switch (r->type.offer) {
	case OPTION_OFFER_NOTHING: break;
	case OPTION_OFFER_OUTPUTS: offer_formats(c, cmd); break;
	case OPTION_OFFER_CLASSES:
		split_list(c, ",!");
		offer_functions(c);
		break;
	case OPTION_OFFER_WINDOW:
		offer(c, "signal");
		offer_marks(c);
		offer_names(c);
		break;
	case OPTION_OFFER_DUMP:
		split_list(c, ",");
		offer(c, "failed");
		offer(c, "end");
		offer(c, "signal");
		offer_names(c);
		break;
	}
	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (!strcmp(r->arg, shells[i].arg))
			out_fmt(c->out, "%s\n", shells[i].what);
}

static void offer_options(struct complete *c, enum opts_cmd cmd)
{
	const struct option_row *r;
	char text[64];

	for (int i = -1; (r = opts_next(cmd, &i));) {
		if (!r->help)
			continue;
		if (r->letter) {
			snprintf(text, sizeof(text), "-%c", r->letter);
			offer(c, text);
		}
		snprintf(text, sizeof(text), "--%s", r->name);
		offer(c, text);
	}
	offer(c, "--");
}

static void offer_commands(struct complete *c)
{
	for (unsigned int i = 1; command_at(i); i++) {
		offer(c, command_at(i)->name);
		if (command_at(i)->command->also)
			offer(c, command_at(i)->command->also);
	}
}

void opts_complete(struct out *out, const char *const *words, int n)
{
	const struct command_row *command = n > 1 ? command_named(words[0]) : NULL;
	enum opts_cmd cmd = command ? command->bit : OPTS_TRACE;
	bool first = n == 1;
	struct complete c = { .out = out, .head = "", .word = n ? words[n - 1] : "" };
	const struct option_row *r;

	words += command != NULL;
	n -= command != NULL;
	for (int i = 0; i + 1 < n; i++) {
		if (!strcmp(words[i], "--")) {
			out_fmt(out, ":command %d\n", i + 1);
			return;
		}
	}
	r = n ? opts_complete_value_of(cmd, words, n) : NULL;
	if (r && r->arg) {
		if (!strcmp(c.word, "="))
			c.word = "";
		offer_values(&c, cmd, r);
	} else if (c.word[0] == '-') {
		offer_options(&c, cmd);
	} else if (first) {
		offer_commands(&c);
	} else if (cmd == OPTS_LIST) {
		offer_functions(&c);
	} else {
		out_str(out, ":file\n");
	}
}
