/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.c - answers Prometheus: GET /metrics gives what was counted until then, GET /healthz says that counting goes on.
 * The sink behind `cudatrace serve`. Nothing is read between two scrapes. Knows HTTP by libevent; no source.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../stat/expose.h"
#include "../util/msg.h"
#include "sink.h"

#define TIMEOUT_S 10
#define HEADERS_MAX 16384
#define RETIRE_S 30 /* ended processes are taken off the kernel's counts even if nobody asks */

struct serve {
	const struct sink_opts *opts;
	struct expose *expose;
	struct evhttp *http;
	struct event *retire;
	uint64_t scrapes;
	double scrape_s, start_s;
};

static double clock_s(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int count(struct serve *s)
{
	expose_begin(s->expose);
	return s->opts->refresh(s->opts->refresh_ctx);
}

/* The text in a file of its own, which libevent sends and closes. -errno. */
static int make_text(struct serve *s, enum expose_format format, size_t *len)
{
	struct losses losses;
	struct expose_about about = { .losses = &losses, .scrapes = s->scrapes, .scrape_seconds = s->scrape_s,
				      .start_time_s = s->start_s };
	int fd = memfd_create("metrics", MFD_CLOEXEC), err;
	struct out out;

	if (fd < 0)
		return -errno;
	err = out_open_fd(&out, fd, "metrics");
	if (!err) {
		s->opts->losses(s->opts->refresh_ctx, &losses);
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

static void on_metrics(struct evhttp_request *req, void *ctx)
{
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
	enum expose_format format = expose_wants(accept);
	double began = clock_s(CLOCK_MONOTONIC);
	struct serve *s = ctx;
	struct evbuffer *body = evbuffer_new();
	size_t len = 0;
	int fd = -ENOMEM;

	if (body && !count(s))
		fd = make_text(s, format, &len);
	if (fd < 0 || evbuffer_add_file(body, fd, 0, (ev_off_t)len)) {
		evhttp_send_error(req, HTTP_INTERNAL, "the counts cannot be read");
	} else {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", expose_type(format));
		evhttp_send_reply(req, HTTP_OK, "OK", body);
	}
	if (body)
		evbuffer_free(body);
	s->scrapes++;
	s->scrape_s += clock_s(CLOCK_MONOTONIC) - began;
}

static void reply(struct evhttp_request *req, const char *type, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	if (!body)
		return;
	evbuffer_add_printf(body, "%s", text);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", type);
	evhttp_send_reply(req, HTTP_OK, "OK", body);
	evbuffer_free(body);
}

static void on_health(struct evhttp_request *req, void *ctx)
{
	(void)ctx;
	reply(req, "text/plain; charset=utf-8", "ok\n");
}

static void on_root(struct evhttp_request *req, void *ctx)
{
	(void)ctx;
	reply(req, "text/html; charset=utf-8",
	      "<!doctype html><title>cudatrace</title><p><a href=\"/metrics\">/metrics</a> <a href=\"/healthz\">/healthz</a>\n");
}

/* A process that ended leaves its sums in the kernel until they are read. */
static void on_retire(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd, (void)what;
	count(ctx);
}

/* ADDR:PORT, [ADDR]:PORT, :PORT. */
static int listen_on(struct serve *s, const char *where)
{
	const char *colon = strrchr(where, ':');
	char addr[128], *end;
	unsigned long port;
	size_t n;

	if (!colon || (size_t)(colon - where) >= sizeof(addr)) {
		msg_error("--listen: '%s' is not ADDR:PORT, as 127.0.0.1:19400 or [::1]:19400", where);
		return -EINVAL;
	}
	n = (size_t)(colon - where);
	snprintf(addr, sizeof(addr), "%.*s", (int)n, where);
	if (n > 1 && addr[0] == '[' && addr[n - 1] == ']') {
		memmove(addr, addr + 1, n - 2);
		addr[n - 2] = '\0';
	}
	errno = 0;
	port = strtoul(colon + 1, &end, 10);
	if (errno || !colon[1] || *end || port > 65535) {
		msg_error("--listen: '%s' is no port", colon + 1);
		return -EINVAL;
	}
	if (!evhttp_bind_socket_with_handle(s->http, *addr ? addr : "::", (ev_uint16_t)port)) {
		int err = errno ? -errno : -EADDRNOTAVAIL;

		msg_error("cannot listen on %s: %s; give another --listen ADDR:PORT", where, strerror(-err));
		return err;
	}
	return 0;
}

static int serve_open(struct sink *sink, const struct sink_opts *opts)
{
	struct expose_opts expose = { .version = opts->version };
	struct timeval every = { .tv_sec = RETIRE_S };
	struct serve *s = calloc(1, sizeof(*s));
	int err;

	sink->opts = opts;
	sink->priv = s;
	if (!s)
		return -ENOMEM;
	s->opts = opts;
	s->start_s = clock_s(CLOCK_REALTIME);
	s->expose = expose_open(&expose);
	s->http = evhttp_new(opts->base);
	s->retire = event_new(opts->base, -1, EV_PERSIST, on_retire, s);
	if (!s->expose || !s->http || !s->retire)
		return -ENOMEM;
	evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(s->http, HEADERS_MAX);
	evhttp_set_max_body_size(s->http, 0);
	evhttp_set_timeout(s->http, TIMEOUT_S);
	evhttp_set_cb(s->http, "/metrics", on_metrics, s);
	evhttp_set_cb(s->http, "/healthz", on_health, s);
	evhttp_set_cb(s->http, "/", on_root, s);
	err = listen_on(s, opts->listen);
	if (err)
		return err;
	event_add(s->retire, &every);
	msg_note("metrics at http://%s/metrics", opts->listen);
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

	(void)end;
	if (!s)
		return 0;
	if (s->retire)
		event_free(s->retire);
	if (s->http)
		evhttp_free(s->http);
	expose_close(s->expose);
	free(s);
	sink->priv = NULL;
	return 0;
}

const struct sink_ops sink_serve = {
	.name = "serve",
	.help = "metrics for Prometheus over HTTP",
	.open = serve_open,
	.event = serve_event,
	.close = serve_close,
};
