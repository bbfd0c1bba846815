/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * otlp.c - calls and device work as OpenTelemetry spans, in two outputs: `otlp` pushes them to a
 * collector while tracing, beside whatever else is written; `otlp-json` writes a file, an
 * ExportTraceServiceRequest a line, as OTLP's file exporters do.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/msg.h"
#include "otlp.h"

/* ---- pushed ---- */

struct otlp_sink {
	pthread_mutex_t lock; /* of spans: the sender's thread flushes them */
	struct otlp_spans *spans;
	struct otlp_send *send;
	uint64_t skipped; /* events that were left out as the queue was full */
};

static void queue(void *ctx, struct text *request, uint64_t n)
{
	struct otlp_sink *o = ctx;

	otlp_send_put(o->send, request, n);
}

static void otlp_flush(void *ctx)
{
	struct otlp_sink *o = ctx;

	pthread_mutex_lock(&o->lock);
	if (o->spans)
		otlp_spans_flush(o->spans, false);
	pthread_mutex_unlock(&o->lock);
}

static int push_open(struct sink *s, const struct sink_opts *opts)
{
	const struct otlp_wait patience = { opts->spans.wait_ns, opts->recorded,
					    opts->out ? opts->out->stop : NULL };
	struct otlp_config config;
	struct otlp_sink *o;
	bool json;

	s->opts = opts;
	if (otlp_config_open(&config, opts->spans.url, OTLP_TRACES))
		return -EINVAL;
	json = config.json;
	o = calloc(1, sizeof(*o));
	if (!o) {
		otlp_config_close(&config);
		return -ENOMEM;
	}
	pthread_mutex_init(&o->lock, NULL);
	o->spans = otlp_spans_open(opts, json, true, queue, o);
	o->send = o->spans ? otlp_send_open(&config, &patience, opts->version, otlp_flush, o)
			   : NULL;
	if (!o->send) {
		otlp_config_close(&config);
		otlp_spans_close(o->spans);
		pthread_mutex_destroy(&o->lock);
		free(o);
		return -EINVAL;
	}
	s->priv = o;
	return 0;
}

static int push_event(struct sink *s, const struct event *ev)
{
	struct otlp_sink *o = s->priv;

	if (!otlp_spans_wants(o->spans, ev))
		return 0;
	if (ev->rec->kind != CT_EXIT && !otlp_send_has_room(o->send)) {
		o->skipped++;
		return 0;
	}
	pthread_mutex_lock(&o->lock);
	otlp_spans_event(o->spans, ev);
	pthread_mutex_unlock(&o->lock);
	return 0; /* no row: the other output counts */
}

uint64_t otlp_say(const struct otlp_totals *t, const char *things, uint64_t skipped)
{
	const struct {
		uint64_t n;
		const char *what;
	} parts[] = {
		{ t->rejected, "rejected by the collector" },
		{ t->full + skipped, "dropped: the collector is too slow" },
		{ t->refused, "dropped: the collector refused them" },
		{ t->failed, "dropped: not delivered" },
	};
	struct text line = { 0 };
	uint64_t lost = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (!parts[i].n)
			continue;
		text_str(&line, ", ");
		text_u64(&line, parts[i].n);
		text_str(&line, " ");
		text_str(&line, parts[i].what);
		lost += parts[i].n;
	}
	if (lost && *t->last) {
		text_str(&line, "; last: ");
		text_str(&line, t->last);
	}
	msg_note("otlp: %llu %s sent%.*s", (unsigned long long)t->sent, things, (int)line.len,
		 line.s ? line.s : "");
	text_free(&line);
	return lost;
}

static int push_close(struct sink *s, const struct sink_end *end)
{
	struct otlp_sink *o = s->priv;
	struct otlp_totals totals;
	uint64_t dropped = 0, lost;

	if (!o)
		return 0;
	pthread_mutex_lock(&o->lock);
	if (o->spans) {
		otlp_spans_flush(o->spans, true);
		dropped = o->skipped + otlp_spans_dropped(o->spans);
		otlp_spans_close(o->spans);
		o->spans = NULL;
	}
	pthread_mutex_unlock(&o->lock);
	if (otlp_send_close(o->send, &totals)) {
		pthread_mutex_destroy(&o->lock);
		free(o);
	}
	s->priv = NULL;
	if (!end)
		return 0;
	lost = otlp_say(&totals, "spans", dropped);
	if (lost && s->opts->recorded)
		msg_error("%llu span%s of the recording did not reach the collector; --otlp-wait "
			  "says how long to wait for it",
			  (unsigned long long)lost, lost == 1 ? "" : "s");
	if (s->opts->undelivered)
		*s->opts->undelivered = lost;
	return 0;
}

const struct sink_ops sink_otlp = {
	.name = "otlp",
	.open = push_open,
	.event = push_event,
	.close = push_close,
};

/* ---- to a file ---- */

static void line(void *ctx, struct text *request, uint64_t n)
{
	struct out *out = ctx;

	(void)n;
	out_mem(out, request->s, request->len);
	out_char(out, '\n');
	text_free(request);
}

static int json_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = otlp_spans_open(opts, true, false, line, opts->out);
	return s->priv ? 0 : -ENOMEM;
}

static int json_event(struct sink *s, const struct event *ev)
{
	struct otlp_spans *spans = s->priv;
	int n;

	if (!otlp_spans_wants(spans, ev))
		return 0;
	n = otlp_spans_event(spans, ev);
	return s->opts->out->error ? s->opts->out->error : n > 0;
}

static int json_close(struct sink *s, const struct sink_end *end)
{
	struct otlp_spans *spans = s->priv;

	(void)end;
	if (!spans)
		return 0;
	otlp_spans_flush(spans, true);
	if (otlp_spans_dropped(spans))
		msg_warn("otlp-json: %llu span%s left out: no memory, or more processes at a time "
			 "than can be distinguished",
			 (unsigned long long)otlp_spans_dropped(spans),
			 otlp_spans_dropped(spans) == 1 ? "" : "s");
	otlp_spans_close(spans);
	s->priv = NULL;
	return s->opts->out->error;
}

const struct sink_ops sink_otlp_json = {
	.name = "otlp-json",
	.open = json_open,
	.event = json_event,
	.close = json_close,
};
