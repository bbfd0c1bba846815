/* SPDX-License-Identifier: BSD-2-Clause */
/* each.c - the format that tests/recipes.sh adds, which keeps something for each process: how many calls each of its
 * programs made. */
#include "../../event/registry.h"
#include "../../flow/sink.h"

struct each {
	struct registered r;
	unsigned int calls;
};

/* Its program has ended: an exec, the process's end, or the end of the trace. */
static void over(void *ctx, void *item, const struct ct_hdr *h)
{
	struct sink *s = ctx;
	struct each *e = item;

	out_fmt(s->opts->out, "%u calls until its %s\n", e->calls, h ? kind_json(h->kind) : "rest");
	e->calls = 0;
}

static const struct registry_rules rules = {
	.size = sizeof(struct each), .most = 4096, .exec = over, .gone = over
};
static struct registry processes;

static int each_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	registry_open(&processes, &rules, s);
	return 0;
}

static int each_event(struct sink *s, const struct event *ev)
{
	struct each *e = ev->rec->kind == CT_CALL ? registry_of(&processes, ev->proc) : NULL;

	if (e)
		e->calls++;
	else
		registry_record(&processes, ev->rec);
	return s->opts->out->error ? s->opts->out->error : !!e;
}

static int each_close(struct sink *s, const struct sink_end *end)
{
	(void)end;
	registry_close(&processes);
	return s->opts->out->error;
}

const struct sink_ops sink_each = {
	.name = "each", .open = each_open, .event = each_event, .close = each_close
};
