/* SPDX-License-Identifier: BSD-2-Clause */
/* why_sink.c - where the time went, printed at the end: the sink behind `cudatrace why`. */
#include <errno.h>

#include "why_print.h"
#include "../findings/findings.h"
#include "../util/msg.h"
#include "../util/option/option.h"

enum why_format { WHY_TEXT_LINES, WHY_JSON, WHY_FOLDED };
struct why_options {
	uint64_t format; /* enum why_format */
	uint64_t top;
	const char **fail_if; /* NULL: nothing fails */
};

static const struct why_options defaults = { .top = 12 };

static const struct why_options *how_of(const struct sink_opts *opts)
{
	return opts->own ? opts->own : &defaults;
}

static int why_sink_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = why_open();
	return s->priv ? 0 : -ENOMEM;
}

static int why_sink_event(struct sink *s, const struct event *ev)
{
	return why_event(s->priv, ev);
}

static int why_sink_close(struct sink *s, const struct sink_end *end)
{
	const struct why_options *how = how_of(s->opts);
	struct why_print p = { .why = s->priv,
			       .title = s->opts->title,
			       .version = s->opts->version,
			       .recorded = s->opts->recorded,
			       .gpu = s->opts->gpu,
			       .start_ns = s->opts->start_ns,
			       .losses = &end->losses,
			       .top = (unsigned int)how->top };
	bool program_well = s->opts->recorded || !end->program || !*end->program;
	int err = 0;

	if (!s->priv)
		return 0;
	p.parts = why_finish(s->priv, end->losses.holes, &p.n);
	if (p.parts) {
		if (how->format == WHY_JSON)
			why_print_json(s->opts->out, &p);
		else if (how->format == WHY_FOLDED)
			why_print_folded(s->opts->out, &p);
		else
			why_print_text(s->opts->out, &p);
		/* the program's own failure is said first */
		if (program_well && why_print_fails(&p, how->fail_if))
			s->status = 1;
	} else {
		msg_error("no memory for the causes");
		err = -ENOMEM;
	}
	why_close(s->priv);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

static const char *why_sink_name_at(unsigned int i)
{
	return i < WHY_WORK ? why_word((enum why_kind)i) : NULL;
}

static int why_sink_check_condition(const char *option, const char *text)
{
	return finding_check_named(option, text, why_sink_name_at);
}

static void why_wants(const void *own, struct sink_wants *wants)
{
	wants->for_programs = ((const struct why_options *)own)->format != WHY_TEXT_LINES;
}

#define OPTION_STRUCT struct why_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "format", "NAME", ENUM(format, "text", "json", "folded"), 0, "text", "text, json, or folded: a line for each chain with its nanoseconds, for flame graphs" },
	{ 0, "top", "N", COUNT(top, 0, UINT32_MAX, "number", "give a number; 0 prints all"), 0, "12", "print so many causes of each device; 0: all" },
	{ 0, "fail-if", "EXPR", TEXTS(fail_if, why_sink_check_condition), 0, NULL,
	  "exit with status 1 if a cause takes more than a share of the time: any>5%, gil>2%;\n"
	  "repeatable" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_why = {
	.name = "why",
	.options = &options,
	.wants = why_wants,
	.open = why_sink_open,
	.event = why_sink_event,
	.close = why_sink_close,
};
