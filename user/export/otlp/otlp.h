/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * otlp.h - inside the OTLP outputs: spans, their two encodings, the making of spans from events,
 * the sending; metrics.
 *
 *   events -> otlp_spans (traces, parents, attributes) -> otlp_encode (protobuf or JSON) ->
 *   requests -> a file, or otlp_send
 */
#ifndef CT_OTLP_H
#define CT_OTLP_H

#include "../../flow/sink.h"
#include "../../util/text.h"

/* ---- encodings (otlp_encode.c) ---- */

/* Attributes are written one by one; then the span or resource to which they belong takes them. */
struct otlp_enc {
	bool json;
	bool of_resource; /* the next attributes are a resource's, not a span's */
	struct text attrs;
};
void otlp_int(struct otlp_enc *, const char *key, int64_t v);
void otlp_str(struct otlp_enc *, const char *key, const char *s, size_t n);
void otlp_bool(struct otlp_enc *, const char *key, bool v);
void otlp_double(struct otlp_enc *, const char *key, double v); /* nothing if it is no number */

struct otlp_id {
	uint8_t trace[16], span[8];
};
struct otlp_span {
	struct otlp_id id;
	uint8_t parent[8];	    /* all zero: none */
	const char *name;	    /* NUL-terminated, untrusted */
	uint64_t start_ns, end_ns;  /* since the epoch */
	const struct otlp_id *link; /* NULL: none */
	bool failed;
	const char *message; /* message of a failure; NULL: none */
};
/* Adds the span with the attributes so far to a list of spans. */
void otlp_put_span(struct otlp_enc *, const struct otlp_span *, struct text *spans);
/* The resource with the attributes so far. */
void otlp_put_resource(struct otlp_enc *, struct text *resource);
/* A whole ExportTraceServiceRequest: spans of one resource. */
void otlp_put_request(bool json, const struct text *resource, const struct text *spans,
		      const char *version, struct text *out);
/* Reads a collector's answer: how many spans it rejected, and its message ("" if none, cut to
 * size). */
void otlp_get_response(bool json, const char *body, size_t len, uint64_t *rejected, char *words,
		       size_t size);

/* ---- configuration (otlp_config.c): the command line's address and OTEL_* ---- */

#define OTLP_HEADERS 32

struct otlp_config {
	char *host, *path; /* destination; the path includes the query */
	uint16_t port;
	char *authority; /* the Host header */
	bool json, gzip;
	uint32_t timeout_ms;
	const char *things; /* name of what is sent, for messages: "spans" */
	struct otlp_header {
		char *name, *value;
	} headers[OTLP_HEADERS];
	int nheaders;
};
/* `url`: an address, or "env" for the address in OTEL_EXPORTER_OTLP_*ENDPOINT. Returns 0, or
 * -EINVAL after a message. */
enum otlp_signal { OTLP_TRACES, OTLP_METRICS };
int otlp_config_open(struct otlp_config *, const char *url, enum otlp_signal);
/* Checks only the command line's address, before anything else is done: it does not read the
 * variables. */
int otlp_config_check(const char *url);
void otlp_config_close(struct otlp_config *);
/* Resource attributes that the environment gives: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
 * Returns which are among them. */
struct otlp_given {
	bool service, host;
};
struct otlp_given otlp_config_resource(struct otlp_enc *);

/* ---- spans (otlp_spans.c) ---- */

struct otlp_spans;
/* Takes a request with n spans; the text is the callee's to keep or free. */
typedef void (*otlp_request_fn)(void *ctx, struct text *request, uint64_t n);
/* NULL: no memory */
struct otlp_spans *otlp_spans_open(const struct sink_opts *, bool json, bool random_ids,
				   otlp_request_fn, void *ctx);
void otlp_spans_close(struct otlp_spans *);
/* True if the event becomes a span. Cheap, and changes nothing. */
bool otlp_spans_wants(const struct otlp_spans *, const struct event *);
/* Makes spans of the event. Returns their number. */
int otlp_spans_event(struct otlp_spans *, const struct event *);
/* Makes requests of the collected spans. `all`: at the end, with the roots of the traces. */
void otlp_spans_flush(struct otlp_spans *, bool all);
/* Number of spans that could not be made for want of memory or because there are too many
 * processes. */
uint64_t otlp_spans_dropped(const struct otlp_spans *);

/* ---- sending (otlp_send.c) ---- */

struct otlp_totals {
	/* accepted by the collector; rejected, as the collector reported */
	uint64_t sent, rejected;
	/* dropped spans: there was no room in the queue (full), the collector answered with an
	 * error (refused), or they were never delivered (failed) */
	uint64_t full, refused, failed;
	char last[160]; /* the last thing that went wrong; "": none */
};
/* How long to wait for a collector that accepts nothing. */
struct otlp_wait {
	uint64_t ns;
	bool stored; /* the data is not live: sending may wait at any time, not only at the end */
	/* not 0: the end was requested, and failed requests are not tried again; NULL: never
	 * requested */
	const volatile int *stop;
};
struct otlp_send;
/* `flush` is called every second from the sender's thread, before it looks at the queue. Returns
 * NULL after a message. */
struct otlp_send *otlp_send_open(struct otlp_config *, const struct otlp_wait *,
				 const char *version, void (*flush)(void *ctx), void *ctx);
/* Queues a request; takes its text. */
void otlp_send_put(struct otlp_send *, struct text *request, uint64_t n);
/* True if there is room for more. Data that is not live waits until there is room, within struct
 * otlp_wait. */
bool otlp_send_has_room(struct otlp_send *);
/* Sends what is queued, as long as struct otlp_wait allows (for live data also at most a few
 * seconds), and ends the thread. False: the thread could not be ended, and the memory that it
 * may still use must stay. */
bool otlp_send_close(struct otlp_send *, struct otlp_totals *);

/* Prints the closing message. skipped: number that did not even reach the queue. Returns the
 * number that did not arrive. */
uint64_t otlp_say(const struct otlp_totals *, const char *things, uint64_t skipped);

/* ---- metrics (otlp_metrics.c) ---- */

struct expose;
struct expose_about;
/* Adds a request with all metrics, in protobuf; start_ns: since when was counted, since the
 * epoch. Returns the number of points; 0: no memory. */
uint64_t otlp_put_metrics(struct expose *, const struct expose_about *, const struct sink_opts *,
			  uint64_t start_ns, struct text *request);

#endif
