/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * otlp_encode.c - spans as OTLP's protobuf and JSON have them (opentelemetry-proto, trace/v1):
 * the same tree, written twice. In JSON ids are hex and 64-bit integers strings. Knows no event.
 */
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../util/proto.h"
#include "../../util/put.h"
#include "otlp.h"

#define OTLP_TEXT 65536 /* bytes of a name at most */
#define ANSWER_DEPTH 8

/* ---- protobuf ---- */

static void put_u64_field(struct text *t, uint32_t field, uint64_t v)
{
	char *p = text_room(t, PROTO_FIELD_MAX);

	if (p)
		t->len = (size_t)(proto_u64(p, field, v) - t->s);
}

static void fixed64(struct text *t, uint32_t field, uint64_t v)
{
	char *p = text_room(t, PROTO_FIELD_MAX);

	if (p)
		t->len = (size_t)(proto_fixed64(p, field, v) - t->s);
}

static void put_double_field(struct text *t, uint32_t field, double v)
{
	char *p = text_room(t, PROTO_FIELD_MAX);

	if (p)
		t->len = (size_t)(proto_double(p, field, v) - t->s);
}

static void bytes(struct text *t, uint32_t field, const void *s, size_t n)
{
	char *p = text_room(t, PROTO_FIELD_MAX + n);

	if (p)
		t->len = (size_t)(proto_bytes(p, field, s, n) - t->s);
}

/* Writes the head of n bytes that follow. */
static void put_length(struct text *t, uint32_t field, size_t n)
{
	char *p = text_room(t, PROTO_FIELD_MAX);

	if (p)
		t->len = (size_t)(proto_varint(proto_tag(p, field, PROTO_BYTES), n) - t->s);
}

/* KeyValue {key 1, value 2 {AnyValue}}: `value` bytes of which follow. */
static void key_value(struct otlp_enc *e, const char *key, size_t value)
{
	size_t k = strlen(key),
	       n = 1 + proto_varint_len(k) + k + 1 + proto_varint_len(value) + value;

	put_length(&e->attrs, e->of_resource ? 1 : 9, n);
	bytes(&e->attrs, 1, key, k);
	put_length(&e->attrs, 2, value);
}

/* ---- attributes ---- */

static void json_key(struct otlp_enc *e, const char *key, const char *type)
{
	text_str(&e->attrs, e->attrs.len ? ",{\"key\":" : "{\"key\":");
	text_json(&e->attrs, key, OTLP_TEXT);
	text_str(&e->attrs, ",\"value\":{\"");
	text_str(&e->attrs, type);
	text_str(&e->attrs, "\":");
}

void otlp_int(struct otlp_enc *e, const char *key, int64_t v)
{
	char number[24];

	if (!e->json) {
		key_value(e, key, 1 + proto_varint_len((uint64_t)v));
		put_u64_field(&e->attrs, 3, (uint64_t)v);
		return;
	}
	json_key(e, key, "intValue");
	snprintf(number, sizeof(number), "\"%lld\"", (long long)v);
	text_str(&e->attrs, number);
	text_str(&e->attrs, "}}");
}

void otlp_double(struct otlp_enc *e, const char *key, double v)
{
	char number[32];

	if (!isfinite(v))
		return;
	if (!e->json) {
		key_value(e, key, 1 + sizeof(v));
		put_double_field(&e->attrs, 4, v);
		return;
	}
	json_key(e, key, "doubleValue");
	snprintf(number, sizeof(number), "%.17g", v);
	text_str(&e->attrs, number);
	text_str(&e->attrs, "}}");
}

void otlp_bool(struct otlp_enc *e, const char *key, bool v)
{
	if (!e->json) {
		key_value(e, key, 2);
		put_u64_field(&e->attrs, 2, v);
		return;
	}
	json_key(e, key, "boolValue");
	text_str(&e->attrs, v ? "true}}" : "false}}");
}

/* A text, as UTF-8; NUL-terminated at `*end` of what is returned or not at all. */
static const char *as_utf8(struct text *room, const char *s, size_t *n)
{
	if (text_is_utf8(s, *n))
		return s;
	text_utf8(room, s, *n);
	*n = room->len;
	return room->s ? room->s : "";
}

void otlp_str(struct otlp_enc *e, const char *key, const char *s, size_t n)
{
	struct text room = { 0 };

	s = as_utf8(&room, s, &n);
	if (!e->json) {
		key_value(e, key, 1 + proto_varint_len(n) + n);
		bytes(&e->attrs, 1, s, n);
	} else {
		char *p;

		json_key(e, key, "stringValue");
		p = text_room(&e->attrs, n * 6 + 2);
		if (p) {
			*p = '"';
			p = escape_json(p + 1, s, n);
			*p++ = '"';
			e->attrs.len = (size_t)(p - e->attrs.s);
		}
		text_str(&e->attrs, "}}");
	}
	text_free(&room);
}

/* ---- spans ---- */

static const uint8_t none[8];

static void protobuf_span(const struct otlp_enc *e, const struct otlp_span *s, struct text *out)
{
	struct text span = { 0 }, room = { 0 };
	size_t len = strlen(s->name);
	const char *name = as_utf8(&room, s->name, &len);

	bytes(&span, 1, s->id.trace, 16);
	bytes(&span, 2, s->id.span, 8);
	if (memcmp(s->parent, none, 8))
		bytes(&span, 4, s->parent, 8);
	bytes(&span, 5, name, len);
	put_u64_field(&span, 6, 1); /* SPAN_KIND_INTERNAL */
	fixed64(&span, 7, s->start_ns);
	fixed64(&span, 8, s->end_ns);
	text_mem(&span, e->attrs.s, e->attrs.len);
	if (s->link) {
		put_length(&span, 13, 18 + 10);
		bytes(&span, 1, s->link->trace, 16);
		bytes(&span, 2, s->link->span, 8);
	}
	if (s->failed) {
		size_t m = s->message ? strlen(s->message) : 0;

		put_length(&span, 15, 2 + (m ? 1 + proto_varint_len(m) + m : 0));
		if (m)
			bytes(&span, 2, s->message, m);
		put_u64_field(&span, 3, 2); /* STATUS_CODE_ERROR */
	}
	bytes(out, 2, span.s, span.len);
	out->bad = out->bad || span.bad || room.bad;
	text_free(&span);
	text_free(&room);
}

static void json_hex(struct text *t, const char *key, const uint8_t *id, size_t n)
{
	char *p;

	text_str(t, key);
	p = text_room(t, n * 2 + 1);
	if (!p)
		return;
	for (size_t i = 0; i < n; i++) {
		*p++ = "0123456789abcdef"[id[i] >> 4];
		*p++ = "0123456789abcdef"[id[i] & 15];
	}
	*p = '"';
	t->len += n * 2 + 1;
}

static void json_span(const struct otlp_enc *e, const struct otlp_span *s, struct text *out)
{
	if (out->len)
		text_str(out, ",");
	json_hex(out, "{\"traceId\":\"", s->id.trace, 16);
	json_hex(out, ",\"spanId\":\"", s->id.span, 8);
	if (memcmp(s->parent, none, 8))
		json_hex(out, ",\"parentSpanId\":\"", s->parent, 8);
	text_str(out, ",\"name\":");
	text_json(out, s->name, OTLP_TEXT);
	text_str(out, ",\"kind\":1,\"startTimeUnixNano\":\"");
	text_u64(out, s->start_ns);
	text_str(out, "\",\"endTimeUnixNano\":\"");
	text_u64(out, s->end_ns);
	text_str(out, "\",\"attributes\":[");
	text_mem(out, e->attrs.s, e->attrs.len);
	text_str(out, "]");
	if (s->link) {
		json_hex(out, ",\"links\":[{\"traceId\":\"", s->link->trace, 16);
		json_hex(out, ",\"spanId\":\"", s->link->span, 8);
		text_str(out, "}]");
	}
	if (s->failed) {
		text_str(out, ",\"status\":{\"code\":2");
		if (s->message) {
			text_str(out, ",\"message\":");
			text_json(out, s->message, OTLP_TEXT);
		}
		text_str(out, "}");
	}
	text_str(out, "}");
}

void otlp_put_span(struct otlp_enc *e, const struct otlp_span *s, struct text *spans)
{
	(e->json ? json_span : protobuf_span)(e, s, spans);
	spans->bad = spans->bad || e->attrs.bad;
	e->attrs.len = 0;
	e->attrs.bad = false;
}

void otlp_put_resource(struct otlp_enc *e, struct text *resource)
{
	if (e->json)
		text_str(resource, "{\"attributes\":[");
	text_mem(resource, e->attrs.s, e->attrs.len);
	if (e->json)
		text_str(resource, "]}");
	resource->bad = resource->bad || e->attrs.bad;
	e->attrs.len = 0;
	e->attrs.bad = false;
}

void otlp_put_request(bool json, const struct text *resource, const struct text *spans,
		      const char *version, struct text *out)
{
	size_t v = strlen(version), scope = 2 + 9 + 1 + proto_varint_len(v) + v;
	size_t scope_spans = 1 + proto_varint_len(scope) + scope + spans->len;
	size_t all = 1 + proto_varint_len(resource->len) + resource->len + 1 +
		     proto_varint_len(scope_spans) + scope_spans;

	if (json) {
		text_str(out, "{\"resourceSpans\":[{\"resource\":");
		text_mem(out, resource->s, resource->len);
		text_str(out, ",\"scopeSpans\":[{\"scope\":{\"name\":\"cudatrace\",\"version\":");
		text_json(out, version, OTLP_TEXT);
		text_str(out, "},\"spans\":[");
		text_mem(out, spans->s, spans->len);
		text_str(out, "]}]}]}");
		return;
	}
	put_length(out, 1, all); /* resource_spans */
	bytes(out, 1, resource->s, resource->len);
	put_length(out, 2, scope_spans); /* scope_spans */
	put_length(out, 1, scope);
	bytes(out, 1, "cudatrace", 9);
	bytes(out, 2, version, v);
	text_mem(out, spans->s, spans->len);
}

/* ---- answers ---- */

/* Reads a field at *at; its number, or 0 at the end and where the bytes are no protobuf. Of a
 * BYTES field `v` is its length and *at its beginning. */
static unsigned int next_field(const uint8_t **at, const uint8_t *end, unsigned int *wire,
			       uint64_t *v)
{
	uint64_t key = 0, *into = &key;

	for (int part = 0; part < 2; part++) {
		int shift = 0;

		*into = 0;
		do {
			if (*at == end || shift > 63)
				return 0;
			*into |= (uint64_t)(**at & 0x7f) << shift;
			shift += 7;
		} while (*(*at)++ & 0x80);
		*wire = key & 7;
		if (*wire != PROTO_VARINT && *wire != PROTO_BYTES)
			return 0;
		into = v;
	}
	if (*wire == PROTO_BYTES && *v > (uint64_t)(end - *at))
		return 0;
	return key >> 3 < 1000 ? (unsigned int)(key >> 3) : 0;
}

static void protobuf_response(const uint8_t *at, const uint8_t *end, int depth, uint64_t *rejected,
			      char *words, size_t size)
{
	unsigned int field, wire;
	uint64_t v;

	while ((field = next_field(&at, end, &wire, &v))) {
		if (wire == PROTO_VARINT) {
			if (depth && field == 1)
				*rejected = v;
			continue;
		}
		if (!depth && field == 1)
			protobuf_response(at, at + v, 1, rejected, words, size);
		else if (depth && field == 2)
			snprintf(words, size, "%.*s", (int)(v < size ? v : size), (const char *)at);
		at += v;
	}
}

static void json_response(const char *body, size_t len, uint64_t *rejected, char *words,
			  size_t size)
{
	struct json_tokener *tok = json_tokener_new_ex(ANSWER_DEPTH);
	struct json_object *all = tok && len <= INT_MAX ? json_tokener_parse_ex(tok, body, (int)len)
							: NULL,
			   *part, *o;

	if (json_object_object_get_ex(all, "partialSuccess", &part)) {
		/* a number, or a text, as OTLP writes numbers of 64 bits */
		if (json_object_object_get_ex(part, "rejectedSpans", &o))
			*rejected = json_object_get_uint64(o);
		if (json_object_object_get_ex(part, "errorMessage", &o) &&
		    json_object_is_type(o, json_type_string))
			snprintf(words, size, "%s", json_object_get_string(o));
	}
	json_object_put(all);
	if (tok)
		json_tokener_free(tok);
}

void otlp_get_response(bool json, const char *body, size_t len, uint64_t *rejected, char *words,
		       size_t size)
{
	*rejected = 0;
	*words = '\0';
	if (json && len)
		json_response(body, len, rejected, words, size);
	else if (len)
		protobuf_response((const uint8_t *)body, (const uint8_t *)body + len, 0, rejected,
				  words, size);
	/* the text of a collector may reach a terminal */
	for (char *c = words; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
}
