/* SPDX-License-Identifier: BSD-2-Clause */
/* asked_sink.c - what the ranks of a recording asked for: the sink behind `cudatrace stuck FILE`. */
#include <errno.h>

#include "../flow/sink.h"
#include "../util/option/option.h"
#include "asked.h"
#include "stuck.h"

/* Without any of its options: as text, of ranks that are still for a second. */
static const struct stuck_stored defaults = { .over_ns = SECOND };

static int stuck_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = asked_open();
	return s->priv ? 0 : -ENOMEM;
}

static int stuck_event(struct sink *s, const struct event *ev)
{
	int err = asked_event(s->priv, ev);

	return err ? err : ev->rec->kind == CT_SCOPE_END;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

void stuck_sum(const struct asked *a, int shown, struct out *o)
{
	struct asked_seen seen;

	asked_seen(a, &seen);
	out_fmt(o,
		"%zu communicator%s compared, %d with ranks that do not ask for the same or wait "
		"for each other\n",
		seen.communicators, plural(seen.communicators), shown);
	if (seen.nameless)
		out_fmt(o,
			"%zu call%s could not be compared: of %s communicators it is not known "
			"which ranks have the same one\n",
			seen.nameless, plural(seen.nameless), seen.nameless == 1 ? "its" : "their");
	if (seen.cut)
		out_str(o, "there are more communicators, or calls that wait, than are compared\n");
}

static int stuck_close(struct sink *s, const struct sink_end *end)
{
	const struct stuck_stored *how = s->opts->own ? s->opts->own : &defaults;
	int shown;

	if (!s->priv)
		return 0;
	shown = asked_print(s->priv, s->opts->start_ns + end->uptime_ns, how->over_ns, how->json,
			    s->opts->out);
	if (shown >= 0 && !how->json)
		stuck_sum(s->priv, shown, s->opts->out);
	if (shown > 0)
		s->status = STUCK_SOME;
	asked_close(s->priv);
	s->priv = NULL;
	return shown < 0 ? shown : s->opts->out->error;
}

/* No option of a command line fills it: cmd_stuck.c does. */
static const struct option_set options = { .size = sizeof(struct stuck_stored) };

const struct sink_ops sink_stuck = {
	.name = "stuck",
	.options = &options,
	.open = stuck_open,
	.event = stuck_event,
	.close = stuck_close,
};
