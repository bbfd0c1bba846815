/* SPDX-License-Identifier: BSD-2-Clause */
/* advise_sink.c - what the trace's program could do better, printed at the end: the sink behind
 * `cudatrace advise`. The rules are the advise room's. */
#include <errno.h>

#include "advise_print.h"
#include "../util/msg.h"

static const struct sink_advise defaults;

static int advise_sink_open(struct sink *s, const struct sink_opts *opts)
{
	const struct sink_advise *how = opts->advise ? opts->advise : &defaults;

	s->opts = opts;
	s->priv = advise_open(how->rules);
	return s->priv ? 0 : -ENOMEM;
}

static int advise_sink_event(struct sink *s, const struct event *ev)
{
	return advise_event(s->priv, ev);
}

static void print(struct sink *s, const struct sink_advise *how, const struct advise_print *p)
{
	if (how->format == SINK_ADVISE_JSON)
		advise_print_json(s->opts->out, p);
	else if (how->format == SINK_ADVISE_MARKDOWN)
		advise_print_markdown(s->opts->out, p);
	else
		advise_print_text(s->opts->out, p);
}

static int advise_sink_close(struct sink *s, const struct sink_end *end)
{
	const struct sink_advise *how = s->opts->advise ? s->opts->advise : &defaults;
	struct advise_print p = { .advice = s->priv,
				  .title = s->opts->title,
				  .version = s->opts->version,
				  .start_ns = s->opts->start_ns,
				  .losses = &end->losses,
				  .muted = end->muted,
				  .muted_calls = &end->muted_calls };
	int err = 0;

	if (!s->priv)
		return 0;
	advise_muted(s->priv, end->muted);
	p.findings = advise_finish(s->priv, how->min_cost_ns, &p.n);
	if (p.findings) {
		print(s, how, &p);
		for (size_t i = 0; i < p.n && s->opts->advise; i++)
			if ((int)p.findings[i].severity > s->opts->advise->worst)
				s->opts->advise->worst = (int)p.findings[i].severity;
	} else {
		msg_error("no memory for the findings");
		err = -ENOMEM;
	}
	advise_close(s->priv);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

const struct sink_ops sink_advise = {
	.name = "advise",
	.help = "what could be better, at the end: rules with evidence and cost",
	.open = advise_sink_open,
	.event = advise_sink_event,
	.close = advise_sink_close,
};
