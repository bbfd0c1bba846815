/* SPDX-License-Identifier: BSD-2-Clause */
/* default_stream.c - the default stream's work between others'. */
#include "../rule.h"

#define STREAM_TURNS 10

struct stream_use {
	uint32_t context, null_stream;
	bool reported;	    /* which its null stream is */
	bool kept, refused; /* there is room for its spans */
	struct spans null, others;
	uint64_t nnull, nothers;
};
struct stream_flags {
	uint32_t id, flags;
};
struct default_stream {
	struct stream_use contexts[8];
	unsigned int ncontexts;
	struct stream_flags streams[1024];
};

/* CUpti_ActivityStreamFlag: the stream and the null stream wait for each other */
#define STREAM_DEFAULT 1

static struct stream_use *use_of(struct default_stream *d, uint32_t context)
{
	for (unsigned int i = 0; i < d->ncontexts; i++)
		if (d->contexts[i].context == context)
			return &d->contexts[i];
	if (d->ncontexts == ARRAY_LEN(d->contexts))
		return NULL;
	d->contexts[d->ncontexts].context = context;
	return &d->contexts[d->ncontexts++];
}

static int default_stream_event(void *state, const struct seen *s)
{
	struct default_stream *d = state;
	const struct stream_flags *flags;
	struct stream_use *u;

	if (s->h->kind == CT_CONTEXT) {
		const struct ct_context *c = (const struct ct_context *)s->h;

		u = use_of(d, c->id);
		if (u) {
			u->null_stream = c->null_stream;
			u->reported = true;
		}
		return 0;
	}
	if (s->h->kind == CT_STREAM) {
		const struct ct_stream *c = (const struct ct_stream *)s->h;

		d->streams[c->id % ARRAY_LEN(d->streams)] =
			(struct stream_flags){ c->id, c->flags };
		return 0;
	}
	u = use_of(d, s->work->context);
	if (!u || !u->reported || s->h->flags & CT_F_NO_TIME)
		return 0;
	if (!u->kept && !u->refused) {
		u->kept = advise_may_keep_spans(s->a, 2);
		u->refused = !u->kept;
	}
	if (u->refused)
		return 0;
	if (s->work->stream == u->null_stream) {
		u->nnull++;
		return spans_add(&u->null, s->h->start_ns, s->h->end_ns,
				 s->ev->cause ? s->ev->cause->func : CT_NO_FUNC,
				 sites_stack_of(advise_stacks(s->a), s->ev->stack));
	}
	flags = &d->streams[s->work->stream % ARRAY_LEN(d->streams)];
	if (flags->id != s->work->stream || flags->flags != STREAM_DEFAULT)
		return 0;
	u->nothers++;
	return spans_add(&u->others, s->h->start_ns, s->h->end_ns, CT_NO_FUNC, 0);
}

/* The null stream's spans that begin after other streams' work and are followed by more of it. */
static void find_turns(struct stream_use *u, struct hits *h)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < u->null.n; i++) {
		const struct span *s = &u->null.at[i];
		struct site one = { .func = s->kind,
				    .stack = s->tag,
				    .n = 1,
				    .ns = s->busy_ns,
				    .at_ns = s->start_ns,
				    .took_ns = s->end_ns - s->start_ns };

		while (k < u->others.n && u->others.at[k].start_ns < s->start_ns)
			k++;
		if (k && k < u->others.n)
			hits_add(h, &one, NULL);
	}
}

static void default_stream_end(void *state, struct advice *a, struct advise_process *p)
{
	struct default_stream *d = state;

	for (unsigned int i = 0; i < d->ncontexts; i++) {
		struct stream_use *u = &d->contexts[i];
		struct hits h = { .n = 0 };
		struct advise_finding *f;

		if (spans_settle(&u->null) || spans_settle(&u->others))
			continue;
		find_turns(u, &h);
		f = h.n >= STREAM_TURNS ? rule_finding_of(a, &rule_default_stream, p, &h) : NULL;
		if (f)
			rule_say(&f->evidence,
				 "In context %u, %llu times work of the default stream, %s in all, "
				 "came between work of other streams that wait for it and that it "
				 "waits for: while it ran, none of theirs could. The default "
				 "stream had %llu pieces of work, they had %llu.",
				 u->context, (unsigned long long)h.n, rule_time((double)h.ns),
				 (unsigned long long)u->nnull, (unsigned long long)u->nothers);
		hits_free(&h);
	}
}

static void default_stream_release(void *state)
{
	struct default_stream *d = state;

	for (unsigned int i = 0; i < d->ncontexts; i++) {
		spans_free(&d->contexts[i].null);
		spans_free(&d->contexts[i].others);
	}
}

/* clang-format off */
const struct rule rule_default_stream = {
	{ "default-stream", "The default stream holds others up", ADVISE_DEVICE,
	  "the time of the default stream's work between others', in which they could not run; at most",
	  "Give that work a stream of its own, create streams with cudaStreamNonBlocking, or compile with "
	  "--default-stream per-thread." },
	.kinds = KIND(CT_KERNEL) | KIND(CT_COPY) | KIND(CT_SET) | KIND(CT_CONTEXT) | KIND(CT_STREAM), .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct default_stream), .event = default_stream_event, .end = default_stream_end, .free = default_stream_release
};
/* clang-format on */
