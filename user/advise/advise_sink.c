/* SPDX-License-Identifier: BSD-2-Clause */
/* advise_sink.c - what the trace's program could do better, printed at the end: the sink behind
 * `cudatrace advise`. The rules are the advise room's. */
#include <errno.h>
#include <stdio.h>

#include "advise_print.h"
#include "../findings/findings.h"
#include "../util/msg.h"
#include "../util/option/option.h"
#include "../util/parse.h"

/* Without any of its options: as text, all rules. */
static const struct advise_options defaults;

static const struct advise_options *how_of(const struct sink_opts *opts)
{
	return opts->own ? opts->own : &defaults;
}

static int advise_sink_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = advise_open(how_of(opts)->rules);
	if (s->priv && opts->look.all_frames)
		advise_show_all(s->priv);
	return s->priv ? 0 : -ENOMEM;
}

static int advise_sink_event(struct sink *s, const struct event *ev)
{
	return advise_event(s->priv, ev);
}

static void print(struct sink *s, const struct advise_options *how, const struct advise_print *p)
{
	if (how->format == ADVISE_JSON)
		advise_print_json(s->opts->out, p);
	else if (how->format == ADVISE_MARKDOWN)
		advise_print_markdown(s->opts->out, p);
	else
		advise_print_text(s->opts->out, p);
}

static int advise_sink_close(struct sink *s, const struct sink_end *end)
{
	const struct advise_options *how = how_of(s->opts);
	struct advise_print p = { .advice = s->priv,
				  .title = s->opts->title,
				  .version = s->opts->version,
				  .recorded = s->opts->recorded,
				  .start_ns = s->opts->start_ns,
				  .losses = &end->losses,
				  .muted = end->muted,
				  .muted_calls = &end->muted_calls };
	bool program_well = s->opts->recorded || !end->program || !*end->program;
	int err = 0;

	if (!s->priv)
		return 0;
	advise_muted(s->priv, end->muted);
	advise_holes(s->priv, end->losses.holes);
	p.findings = advise_finish(s->priv, how->min_cost_ns, &p.n);
	if (p.findings) {
		print(s, how, &p);
		/* the program's own failure is said first */
		for (size_t i = 0; i < p.n && program_well; i++)
			if ((how->fail && p.findings[i].severity >= ADVISE_WARNING) ||
			    advise_finding_fails(&p, i, how->fail_if))
				s->status = 1;
	} else {
		msg_error("no memory for the findings");
		err = -ENOMEM;
	}
	advise_close(s->priv);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

static int check_names(const char *name, const char *val)
{
	struct parse_nearest near = { .n = 0 };
	char word[64], text[256];
	const char *bad;
	size_t len;

	bad = advise_rules_bad(val, &len);
	if (!bad)
		return 0;
	snprintf(word, sizeof(word), "%.*s", (int)(len < 60 ? len : 60), bad);
	for (unsigned int i = 0; advise_rule_at(i); i++)
		parse_nearest_add(&near, word, advise_rule_at(i)->name);
	msg_error("%s: there is no rule '%s'%s", name, word,
		  near.n ? parse_nearest_text(&near, text, sizeof(text))
			 : "; docs/advice.md and the manual page have them");
	return -EINVAL;
}

static const char *advise_sink_name_at(unsigned int i)
{
	return advise_rule_at(i) ? advise_rule_at(i)->name : NULL;
}

static int advise_sink_check_condition(const char *option, const char *text)
{
	return finding_check_named(option, text, advise_sink_name_at);
}

static void advise_wants(const void *own, struct sink_wants *wants)
{
	wants->for_programs = ((const struct advise_options *)own)->format != ADVISE_TEXT;
}

#define OPTION_STRUCT struct advise_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "format", "NAME", ENUM(format, "text", "json", "markdown"), 0, "text", "text, json or markdown" },
	{ 0, "rule", "LIST", CHECKED(rules, check_names), 0, NULL, "check only these rules, separated by commas: sync-copy, leak, ..." },
	{ 0, "min-cost", "TIME", DURATION(min_cost_ns, 0, OPTION_MAX, 0, "duration", "give a number and its unit, as 1ms, 50us, 2s"), 0, NULL, "leave out findings that cost less than this: 1ms, 50us, 2s" },
	{ 0, "fail", NULL, FLAG(fail), 0, NULL, "exit with status 1 if there is a warning or something worse" },
	{ 0, "fail-if", "EXPR", TEXTS(fail_if, advise_sink_check_condition), 0, NULL,
	  "exit with status 1 if a finding takes more than a share of the time: any>5%,\n"
	  "gpu-gaps>10%; repeatable" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_advise = {
	.name = "advise",
	.options = &options,
	.wants = advise_wants,
	.open = advise_sink_open,
	.event = advise_sink_event,
	.close = advise_sink_close,
};
