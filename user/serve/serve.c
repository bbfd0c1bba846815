/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.c - answers Prometheus, and pushes the same data as OTLP: GET /metrics returns the counters
 * at that moment. The sink behind `cudatrace serve`. Between two scrapes the counters are read only
 * rarely, so that the entries of ended processes are removed from the kernel's counters even if no
 * client asks. Knows no source.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../metrics/expose.h"
#include "../event/holes/holes.h"
#include "../util/msg.h"
#include "../util/now.h"
#include "../util/option/option.h"
#include "../sums/book.h"
#include "../export/otlp/otlp.h"
#include "serve_http.h"
#include "../flow/sink.h"

#define PUSH_LAST_NS 2000000000ULL /* at the end, for a collector that accepts nothing */
#define RETIRE_S 30

struct serve_options {
	const char *listen; /* ADDR:PORT, or unix:PATH */
	/* who may ask, and with which TLS; NULL: everybody may ask, without TLS */
	const char *web_config;
	uint64_t kernels;   /* so many are shown by name; 0: none */
	uint64_t processes; /* that the counts have room for */
	uint64_t otlp_interval_ns;
	bool hist;
};

struct serve {
	const struct sink_opts *opts;
	const struct serve_options *how;
	struct expose *expose;
	struct serve_http *http;
	struct event *retire, *push;
	struct otlp_send *send; /* NULL: nothing is pushed */
	uint64_t start_realtime_ns;
	uint64_t scrapes;
	double scrape_s, start_s;
	int error; /* error of the last reading */
	/* losses when /readyz was last requested; and as reported on stderr */
	uint64_t lost_before;
	bool reported_full;
};

static double clock_s(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct expose_about about_now(struct serve *s, struct losses *losses)
{
	s->opts->losses(s->opts->refresh_ctx, losses);
	if (losses->lost[CT_LOSS_COUNTS] && !s->reported_full) {
		msg_warn("the counts are full: calls of more processes are lost "
			 "(cudatrace_lost_records_total{cause=\"%s\"}); raise --processes",
			 loss_name(CT_LOSS_COUNTS));
		s->reported_full = true;
	}
	return (struct expose_about){
		.losses = losses,
		.scrapes = s->scrapes,
		.scrape_seconds = s->scrape_s,
		.shut = s->http ? serve_http_shut(s->http) : 0,
		.denied = s->http ? serve_http_denied(s->http) : 0,
		.handshakes_refused = s->http ? serve_http_handshakes_refused(s->http) : 0,
		.start_time_s = s->start_s,
		.now_ns = clock_ns(CLOCK_MONOTONIC),
		.counters_ns = s->opts->counters_ns,
		.no_queries = s->opts->no_queries,
	};
}

static int serve_count(struct serve *s)
{
	expose_begin(s->expose, clock_ns(CLOCK_MONOTONIC));
	s->error = s->opts->refresh(s->opts->refresh_ctx);
	return s->error;
}

/* ---- pages ---- */

/* Makes a file with the text. Returns -errno on failure. */
static int make_text(struct serve *s, enum expose_format format, size_t *len)
{
	struct losses losses;
	struct expose_about about = about_now(s, &losses);
	int fd = memfd_create("metrics", MFD_CLOEXEC), err;
	struct out out;

	if (fd < 0)
		return -errno;
	err = out_open_fd(&out, fd, "metrics");
	if (!err) {
		expose_write(s->expose, format, &about, &out);
		err = out_flush(&out);
		*len = out.written;
		out_close(&out);
	}
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static void on_metrics(void *ctx, struct evhttp_request *req, const char *accept)
{
	enum expose_format format = expose_wants(accept);
	double began = clock_s(CLOCK_MONOTONIC);
	struct serve *s = ctx;
	size_t len = 0;
	int fd = serve_count(s);

	if (!fd)
		fd = make_text(s, format, &len);
	if (fd < 0)
		serve_http_answer(req, HTTP_INTERNAL, "text/plain; charset=utf-8",
				  "the counts cannot be read\n");
	else
		serve_http_answer_fd(req, expose_type(format), fd, len);
	s->scrapes++;
	s->scrape_s += clock_s(CLOCK_MONOTONIC) - began;
}

/* Writes a line for each problem. Returns how many of them prevent counting. */
static int troubles(struct serve *s, bool ready, char *text, size_t size)
{
	struct losses l;
	struct expose_about about = about_now(s, &l);
	uint64_t lost = losses_total(&l);
	size_t n = 0;
	int bad = 0;

	text[0] = '\0';
	if (s->error) {
		n += (size_t)snprintf(text + n, size - n, "the counts cannot be read: %s\n",
				      strerror(-s->error));
		bad++;
	}
	if (!l.files) {
		n += (size_t)snprintf(text + n, size - n,
				      "no file has probes: no process has CUDA's libraries mapped, "
				      "and none was found installed\n");
		bad += ready;
	}
	n += holes_text(l.holes, 0, "", "\n", text + n, size - n);
	if (lost > s->lost_before) {
		n += (size_t)snprintf(text + n, size - n,
				      "%llu record%s lost since /readyz was asked last\n",
				      (unsigned long long)(lost - s->lost_before),
				      lost - s->lost_before == 1 ? " was" : "s were");
		bad += ready;
	}
	if (s->opts->counters_ns && !expose_counters_up(s->expose, &about))
		snprintf(text + n, size - n, "no hardware counters are read\n");
	if (ready)
		s->lost_before = lost;
	return bad;
}

static void health(struct serve *s, struct evhttp_request *req, bool ready)
{
	char text[1024];
	int bad = troubles(s, ready, text, sizeof(text));
	char all[1100];

	snprintf(all, sizeof(all), "%s%s", bad ? "" : "ok\n", text);
	serve_http_answer(req, bad ? HTTP_SERVUNAVAIL : HTTP_OK, "text/plain; charset=utf-8", all);
}

static void on_health(void *ctx, struct evhttp_request *req, const char *accept)
{
	(void)accept;
	health(ctx, req, false);
}

static void on_ready(void *ctx, struct evhttp_request *req, const char *accept)
{
	(void)accept;
	health(ctx, req, true);
}

static void on_root(void *ctx, struct evhttp_request *req, const char *accept)
{
	(void)ctx, (void)accept;
	serve_http_answer(
		req, HTTP_OK, "text/html; charset=utf-8",
		"<!doctype html><title>cudatrace</title><p><a href=\"/metrics\">/metrics</a> <a "
		"href=\"/healthz\">/healthz</a> <a href=\"/readyz\">/readyz</a>\n");
}

static const struct serve_page pages[] = {
	{ .path = "/metrics", .get = on_metrics },
	{ .path = "/healthz", .get = on_health },
	{ .path = "/readyz", .get = on_ready },
	{ .path = "/", .get = on_root },
	{ .path = NULL },
};

/* ---- by the clock ---- */

static void on_retire(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd, (void)what;
	serve_count(ctx);
}

static void serve_push(struct serve *s)
{
	struct text request = { 0 };
	struct expose_about about;
	struct losses losses;
	uint64_t points;

	if (serve_count(s))
		return;
	about = about_now(s, &losses);
	points = otlp_put_metrics(s->expose, &about, s->opts, s->start_realtime_ns, &request);
	if (points)
		otlp_send_put(s->send, &request, points);
	text_free(&request);
}

static void on_push(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd, (void)what;
	serve_push(ctx);
}

static void nothing(void *ctx)
{
	(void)ctx;
}

static int open_push(struct serve *s)
{
	struct timeval every = { .tv_sec = (time_t)(s->how->otlp_interval_ns / 1000000000),
				 .tv_usec = (suseconds_t)(s->how->otlp_interval_ns % 1000000000 /
							  1000) };
	struct otlp_config config;

	if (!s->opts->spans.url)
		return 0;
	if (otlp_config_open(&config, s->opts->spans.url, OTLP_METRICS))
		return -EINVAL;
	config.json = false;
	s->send = otlp_send_open(&config, &(struct otlp_wait){ .ns = PUSH_LAST_NS },
				 s->opts->version, nothing, NULL);
	if (!s->send)
		return -EINVAL;
	s->push = event_new(s->opts->base, -1, EV_PERSIST, on_push, s);
	return s->push && !event_add(s->push, &every) ? 0 : -ENOMEM;
}

/* ---- the sink ---- */

static int serve_open(struct sink *sink, const struct sink_opts *opts)
{
	const struct serve_options *how = opts->own;
	struct expose_opts expose = { .version = opts->version,
				      .host = opts->host,
				      .kernels = (unsigned int)how->kernels,
				      .memory = opts->memory,
				      .collectives = opts->collectives,
				      .entries = opts->call_counts_max };
	struct timeval every = { .tv_sec = RETIRE_S };
	struct serve *s = calloc(1, sizeof(*s));
	int err;

	sink->opts = opts;
	sink->priv = s;
	if (!s)
		return -ENOMEM;
	s->opts = opts;
	s->how = how;
	s->start_realtime_ns = clock_ns(CLOCK_REALTIME);
	s->start_s = clock_s(CLOCK_REALTIME);
	s->expose = expose_open(&expose);
	s->retire = event_new(opts->base, -1, EV_PERSIST, on_retire, s);
	if (!s->expose || !s->retire)
		return -ENOMEM;
	s->http = serve_http_open(opts->base, how->listen, how->web_config, pages, s);
	if (!s->http)
		return -EINVAL;
	err = open_push(s);
	if (err)
		return err;
	event_add(s->retire, &every);
	if (!strncmp(how->listen, "unix:", 5))
		msg_note("metrics at %s, /metrics", how->listen);
	else
		msg_note("metrics at http%s://%s%s/metrics", serve_http_tls(s->http) ? "s" : "",
			 *how->listen == ':' ? "0.0.0.0" : "", how->listen);
	return 0;
}

static int serve_event(struct sink *sink, const struct event *ev)
{
	struct serve *s = sink->priv;

	return expose_event(s->expose, ev);
}

static int serve_close(struct sink *sink, const struct sink_end *end)
{
	struct serve *s = sink->priv;
	struct otlp_totals totals;

	if (!s)
		return 0;
	if (s->send) {
		/* the source has handed in its last counts */
		struct losses losses;
		struct expose_about about = about_now(s, &losses);
		struct text request = { 0 };
		uint64_t points = end ? otlp_put_metrics(s->expose, &about, s->opts,
							 s->start_realtime_ns, &request)
				      : 0;

		if (points)
			otlp_send_put(s->send, &request, points);
		text_free(&request);
		otlp_send_close(s->send, &totals);
		if (end)
			otlp_say(&totals, "data points", 0);
	}
	if (s->push)
		event_free(s->push);
	if (s->retire)
		event_free(s->retire);
	serve_http_close(s->http);
	expose_close(s->expose);
	free(s);
	sink->priv = NULL;
	return 0;
}

static void serve_wants(const void *own, struct sink_wants *wants)
{
	const struct serve_options *how = own;

	wants->by = how->kernels ? BOOK_BY_KERNEL : BOOK_BY_FUNCTION;
	wants->hist = how->hist;
	wants->processes = how->processes;
}

static int check_address(const char *name, const char *val)
{
	(void)name;
	return serve_http_check(val);
}

#define OPTION_STRUCT struct serve_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "listen", "ADDR:PORT", CHECKED(listen, check_address), 0, "127.0.0.1:19400",
	  "listen at this address: [ADDR]:PORT for IPv6, :PORT for all addresses, or\n"
	  "unix:PATH" },
	{ 0, "web-config", "FILE", TEXT(web_config), 0, NULL,
	  "read TLS and passwords from this file: tls_server_config and basic_auth_users, as in the\n"
	  "file of Prometheus' exporters" },
	{ 0, "hist", NULL, FLAG(hist), 0, NULL, "serve histograms of the calls' durations too, by class",
	  RULES(EXCLUDES("comm", "--hist counts durations of all processes together: leave out --comm")) },
	{ 0, "kernels", "N", COUNT(kernels, 1, 1000, "kernels", NULL), 0, NULL,
	  "count launches by the name of the kernel too, for the N kernels launched most; the rest is\n"
	  "\"other\"" },
	{ 0, "processes", "N", COUNT(processes, 10, 100000, "processes", NULL), 0, "10000",
	  "how many processes the counts have room for, with 40 functions each; each takes about 8 KiB\n"
	  "of kernel memory" },
	{ 0, "otlp-interval", "TIME", DURATION(otlp_interval_ns, 100 * MILLI, HOUR, SECOND, "interval", "give seconds, or 500ms, 2m"), 0, "60s", "the time between two pushes of --otlp",
	  RULES(NEEDS("otlp", "--otlp-interval is the time between two pushes: give --otlp URL")) },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_serve = {
	.name = "serve",
	.options = &options,
	.wants = serve_wants,
	.open = serve_open,
	.event = serve_event,
	.close = serve_close,
};
