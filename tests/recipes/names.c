/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c - the format that tests/recipes.sh adds: what each record is, a line each. */
#include "../../event/device.h"
#include "../../flow/sink.h"

static int names_event(struct sink *s, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const char *type = kind_json(ev->rec->kind);

	if (ev->rec->kind == CT_CALL)
		out_fmt(s->opts->out, "%s %s\n", type, api_funcs[c->func].name);
	else if (type)
		out_fmt(s->opts->out, "%s\n", type);
	else
		return 0;
	return s->opts->out->error ? s->opts->out->error : 1;
}

static int names_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	return 0;
}

static int names_close(struct sink *s, const struct sink_end *end)
{
	(void)end;
	return s->opts->out->error;
}

const struct sink_ops sink_names = {
	.name = "names", .open = names_open, .event = names_event, .close = names_close
};
