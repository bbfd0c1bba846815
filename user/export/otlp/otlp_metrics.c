/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * otlp_metrics.c - metrics as one ExportMetricsServiceRequest
 * (opentelemetry/proto/metrics/v1/metrics.proto): cumulative sums and histograms, and gauges.
 * Knows no sender.
 */
#include <string.h>

#include "../../metrics/expose.h"
#include "otlp.h"
#include "../../util/proto.h"

#define CUMULATIVE 2
#define POINT_MAX 8192 /* bytes that a point needs at most: 8 labels of 256 bytes, 32 buckets */

struct metrics {
	struct text *out;	   /* the metrics so far */
	uint64_t start_ns, now_ns; /* since the epoch */
	uint64_t points;
	/* the one under way */
	const struct expose_family *f;
	struct text data; /* its points */
};

/* The names of labels in OpenTelemetry. */
static const char *attribute(const char *label)
{
	static const char *const names[][2] = {
		{ "process", "process.executable.name" },
		{ "container_id", "container.id" },
		{ "pod_uid", "k8s.pod.uid" },
		{ "cuda_memcpy_kind", "cuda.memcpy.kind" },
		{ "domain", "cuda.api.domain" },
		{ "class", "cuda.api.class" },
		{ "function", "cuda.function.name" },
		{ "kernel", "cuda.kernel.name" },
		{ "gpu", "cuda.device.index" },
		{ "UUID", "hw.id" },
		{ "device", "hw.name" },
		{ "modelName", "hw.model" },
		{ "Hostname", "host.name" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i][0], label))
			return names[i][1];
	return label;
}

static char *put_attribute(char *p, uint32_t field, const char *key, const char *value)
{
	char *pair = p = proto_open(p, field), *any;

	p = proto_bytes(p, 1, key, strlen(key));
	any = p = proto_open(p, 2);
	p = proto_bytes(p, 1, value, strnlen(value, 512));
	p = proto_close(any, p);
	return proto_close(pair, p);
}

static char *otlp_metrics_put_number(char *p, const struct metrics *m,
				     const struct expose_point *point)
{
	p = proto_fixed64(p, 2, m->start_ns);
	p = proto_fixed64(p, 3, m->now_ns);
	p = proto_double(p, 4, point->value);
	for (int i = 0; i < point->nlabels; i++)
		p = put_attribute(p, 7, attribute(point->labels[i].key), point->labels[i].value);
	return p;
}

static char *put_words(char *p, uint32_t field, const void *words, int n)
{
	p = proto_varint(proto_tag(p, field, PROTO_BYTES), (uint64_t)n * 8);
	for (int i = 0; i < n; i++) {
		uint64_t v;

		memcpy(&v, (const char *)words + i * 8, 8);
		for (int b = 0; b < 8; b++, v >>= 8)
			*p++ = (char)v;
	}
	return p;
}

static char *put_histogram(char *p, const struct metrics *m, const struct expose_point *point)
{
	p = proto_fixed64(p, 2, m->start_ns);
	p = proto_fixed64(p, 3, m->now_ns);
	p = proto_fixed64(p, 4, point->count);
	p = proto_double(p, 5, point->sum);
	p = put_words(p, 6, point->counts, point->nbounds + 1);
	p = put_words(p, 7, point->bounds, point->nbounds);
	for (int i = 0; i < point->nlabels; i++)
		p = put_attribute(p, 9, attribute(point->labels[i].key), point->labels[i].value);
	return p;
}

static void otlp_metrics_put_bytes(struct text *to, uint32_t field, const struct text *what)
{
	char *p = text_room(to, what->len + PROTO_FIELD_MAX);

	if (!p)
		return;
	p = proto_bytes(p, field, what->s ? what->s : "", what->len);
	to->len = (size_t)(p - to->s);
}

/* The family is complete. */
static void end_family(struct metrics *m)
{
	const struct expose_family *f = m->f;
	struct text metric = { 0 };
	char *p;

	if (f && m->data.len) {
		if (f->kind != EXPOSE_GAUGE) {
			p = text_room(&m->data, 32);
			if (p) {
				p = proto_u64(p, 2, CUMULATIVE);
				if (f->kind == EXPOSE_COUNTER)
					p = proto_u64(p, 3, 1); /* is_monotonic */
				m->data.len = (size_t)(p - m->data.s);
			}
		}
		p = text_room(&metric, 1024);
		if (p) {
			p = proto_bytes(p, 1, f->otel, strlen(f->otel));
			p = proto_bytes(p, 2, f->help, strlen(f->help));
			p = proto_bytes(p, 3, f->ucum, strlen(f->ucum));
			metric.len = (size_t)(p - metric.s);
		}
		otlp_metrics_put_bytes(&metric,
				       f->kind == EXPOSE_GAUGE	   ? 5
				       : f->kind == EXPOSE_COUNTER ? 7
								   : 9,
				       &m->data);
		otlp_metrics_put_bytes(m->out, 2, &metric);
	}
	m->out->bad = m->out->bad || metric.bad || m->data.bad;
	text_free(&metric);
	m->data.len = 0;
	m->f = NULL;
}

static void add_point(void *ctx, const struct expose_family *f, const struct expose_point *point)
{
	struct metrics *m = ctx;
	char *p, *begin;

	if (!point) {
		end_family(m);
		m->f = f;
		return;
	}
	p = text_room(&m->data, POINT_MAX);
	if (!p)
		return;
	begin = p = proto_open(p, 1);
	p = f->kind == EXPOSE_HISTOGRAM ? put_histogram(p, m, point)
					: otlp_metrics_put_number(p, m, point);
	p = proto_close(begin, p);
	m->data.len = (size_t)(p - m->data.s);
	m->points++;
}

/* The resource is cudatrace itself; the labels of the points say which process they are about. */
static void put_resource(const struct sink_opts *opts, struct text *to)
{
	struct otlp_enc enc = { .of_resource = true };
	struct otlp_given given = otlp_config_resource(&enc);
	struct text resource = { 0 };

	if (!given.service)
		otlp_str(&enc, "service.name", "cudatrace", 9);
	if (!given.host && opts->host)
		otlp_str(&enc, "host.name", opts->host, strlen(opts->host));
	otlp_str(&enc, "service.version", opts->version, strlen(opts->version));
	otlp_put_resource(&enc, &resource);
	otlp_metrics_put_bytes(to, 1, &resource);
	to->bad = to->bad || resource.bad;
	text_free(&resource);
	text_free(&enc.attrs);
}

static void otlp_metrics_put_scope(const char *version, struct text *to)
{
	struct text scope = { 0 };
	char *p = text_room(&scope, 64 + strlen(version));

	if (p) {
		p = proto_bytes(p, 1, "cudatrace", 9);
		p = proto_bytes(p, 2, version, strlen(version));
		scope.len = (size_t)(p - scope.s);
	}
	otlp_metrics_put_bytes(to, 1, &scope);
	text_free(&scope);
}

uint64_t otlp_put_metrics(struct expose *x, const struct expose_about *about,
			  const struct sink_opts *opts, uint64_t start_ns, struct text *request)
{
	struct text scope = { 0 }, all = { 0 };
	struct metrics m = { .out = &scope,
			     .start_ns = start_ns,
			     .now_ns = about->now_ns + opts->realtime_offset_ns };

	otlp_metrics_put_scope(opts->version, &scope);
	expose_walk(x, about, add_point, &m);
	end_family(&m);
	put_resource(opts, &all);
	otlp_metrics_put_bytes(&all, 2, &scope);
	otlp_metrics_put_bytes(request, 1, &all);
	request->bad = request->bad || scope.bad || all.bad;
	text_free(&m.data);
	text_free(&scope);
	text_free(&all);
	return request->bad ? 0 : m.points;
}
