/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_http.c - see serve_http.h.
 *
 * Anybody who reaches the port may connect as often as he likes, and say his request a byte at a time. So there are never more
 * than CONNECTIONS_MAX connections or so, and one on which no request is complete within PATIENCE_S is shut. libevent's server
 * has a timeout for each byte alone and no bound; its connections are found by their descriptors.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../util/msg.h"
#include "../util/types.h"
#include "serve_http.h"

#define TIMEOUT_S 10	     /* without a byte */
#define PATIENCE_S 30	     /* for a whole request */
#define HEADERS_MAX 16384
#define CONNECTIONS_MAX 256
#define FDS 65536	     /* descriptors from there on are not looked at; nobody is let in while one of them is used */
#define LOOK_S 2

struct serve_http {
	struct evhttp *http;
	struct evconnlistener *listener;
	struct event *look;
	struct event_base *base;
	const struct serve_page *pages;
	void *ctx;
	int accepted; /* since the last look */
	int top;      /* all connections have lower descriptors */
	bool closed;  /* nobody is let in until then */
	uint32_t since_s[FDS]; /* of a connection's begin, or its last whole request; 0: none */
};

static uint32_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)ts.tv_sec + 1;
}

/* ---- connections ----------------------------------------------------------------------------------------------- */

static void shut_door(struct serve_http *s)
{
	if (!s->closed)
		evconnlistener_disable(s->listener);
	s->closed = true;
}

static bool is_connection(const struct serve_http *s, int fd, const struct sockaddr_storage *ours, socklen_t ours_len)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (fd == evconnlistener_get_fd(s->listener) || getsockname(fd, (struct sockaddr *)&sa, &len) || sa.ss_family != ours->ss_family)
		return false;
	/* the port comes after the family in both kinds of address */
	return len == ours_len && !memcmp((char *)&sa + 2, (const char *)ours + 2, 2);
}

static void on_look(evutil_socket_t unused, short what, void *ctx)
{
	struct serve_http *s = ctx;
	struct sockaddr_storage ours;
	socklen_t len = sizeof(ours);
	uint32_t now = now_s();
	int n = 0;

	(void)unused, (void)what;
	if (getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&ours, &len))
		return;
	for (int fd = 0; fd < s->top && fd < FDS; fd++) {
		if (!is_connection(s, fd, &ours, len)) {
			s->since_s[fd] = 0;
			continue;
		}
		n++;
		if (!s->since_s[fd])
			s->since_s[fd] = now;
		else if (now - s->since_s[fd] > PATIENCE_S)
			shutdown(fd, SHUT_RDWR);
	}
	s->accepted = n;
	if (n >= CONNECTIONS_MAX) {
		shut_door(s);
	} else if (s->closed) {
		s->closed = false;
		evconnlistener_enable(s->listener);
	}
}

/* A connection was accepted: its descriptor is below the lowest free one, however many files are probed. NULL: libevent makes
 * what it needs. */
static struct bufferevent *on_accept(struct event_base *base, void *ctx)
{
	struct serve_http *s = ctx;
	int free_fd = fcntl(evconnlistener_get_fd(s->listener), F_DUPFD_CLOEXEC, 0);

	(void)base;
	if (free_fd > s->top)
		s->top = free_fd;
	if (free_fd >= 0)
		close(free_fd);
	if (++s->accepted >= CONNECTIONS_MAX || free_fd < 0 || free_fd >= FDS)
		shut_door(s);
	return NULL;
}

/* No descriptor is left, or the like: to try again at once would be a busy loop. */
static void on_accept_error(struct evconnlistener *listener, void *ctx)
{
	(void)listener;
	shut_door(ctx);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static void on_request(struct evhttp_request *req, void *ctx)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	struct serve_http *s = ctx;
	int fd = bev ? bufferevent_getfd(bev) : -1;

	if (fd >= 0 && fd < FDS)
		s->since_s[fd] = now_s();
	for (const struct serve_page *p = s->pages; p->path; p++) {
		if (path && !strcmp(p->path, *path ? path : "/")) {
			p->get(s->ctx, req, accept);
			return;
		}
	}
	serve_http_answer(req, HTTP_NOTFOUND, "text/plain; charset=utf-8", "there is no such page: /metrics, /healthz, /readyz\n");
}

void serve_http_answer(struct evhttp_request *req, int status, const char *type, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	if (body)
		evbuffer_add(body, text, strlen(text));
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", type);
	evhttp_send_reply(req, status, NULL, body);
	if (body)
		evbuffer_free(body);
}

void serve_http_answer_fd(struct evhttp_request *req, const char *type, int fd, size_t len)
{
	struct evbuffer *body = evbuffer_new();

	if (!body || evbuffer_add_file(body, fd, 0, (ev_off_t)len)) {
		close(fd);
		evhttp_send_error(req, HTTP_INTERNAL, NULL);
	} else {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", type);
		evhttp_send_reply(req, HTTP_OK, NULL, body);
	}
	if (body)
		evbuffer_free(body);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------ */

/* addr: "" for all. */
static int parse(const char *where, char *addr, size_t size, unsigned long *port)
{
	const char *colon = strrchr(where, ':');
	char *end;
	size_t n;

	if (!colon || (size_t)(colon - where) >= size) {
		msg_error("--listen: '%s' is not ADDR:PORT; give one as 127.0.0.1:19400 or [::1]:19400", where);
		return -EINVAL;
	}
	n = (size_t)(colon - where);
	snprintf(addr, size, "%.*s", (int)n, where);
	if (n > 1 && addr[0] == '[' && addr[n - 1] == ']') {
		memmove(addr, addr + 1, n - 2);
		addr[n - 2] = '\0';
	} else if (strchr(addr, ':')) {
		msg_error("--listen: '%s' is not ADDR:PORT; give an IPv6 address in brackets, as [::1]:19400", where);
		return -EINVAL;
	}
	errno = 0;
	*port = strtoul(colon + 1, &end, 10);
	if (!errno && colon[1] >= '0' && colon[1] <= '9' && !*end && *port <= 65535)
		return 0;
	msg_error("--listen: '%s' is no port; give ADDR:PORT, as 127.0.0.1:19400", colon + 1);
	return -EINVAL;
}

int serve_http_check(const char *where)
{
	unsigned long port;
	char addr[128];

	return parse(where, addr, sizeof(addr), &port);
}

static int listen_on(struct serve_http *s, const char *where)
{
	struct evhttp_bound_socket *socket;
	unsigned long port;
	char addr[128];
	int err = parse(where, addr, sizeof(addr), &port);

	if (err)
		return err;
	errno = 0;
	/* "::" takes IPv4 too; where there is no IPv6, all of IPv4 */
	socket = evhttp_bind_socket_with_handle(s->http, *addr ? addr : "::", (ev_uint16_t)port);
	if (!socket && !*addr && errno == EAFNOSUPPORT)
		socket = evhttp_bind_socket_with_handle(s->http, "0.0.0.0", (ev_uint16_t)port);
	if (!socket) {
		err = errno ? -errno : -EADDRNOTAVAIL;
		msg_error("cannot listen on %s: %s; give another --listen ADDR:PORT", where, strerror(-err));
		return err;
	}
	s->listener = evhttp_bound_socket_get_listener(socket);
	evconnlistener_set_error_cb(s->listener, on_accept_error);
	return 0;
}

struct serve_http *serve_http_open(struct event_base *base, const char *where, const struct serve_page *pages, void *ctx)
{
	struct timeval every = { .tv_sec = LOOK_S };
	struct serve_http *s = calloc(1, sizeof(*s));

	if (s) {
		s->base = base;
		s->pages = pages;
		s->ctx = ctx;
		s->http = evhttp_new(base);
		s->look = event_new(base, -1, EV_PERSIST, on_look, s);
	}
	if (!s || !s->http || !s->look) {
		msg_error("no memory to serve with");
		serve_http_close(s);
		return NULL;
	}
	evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(s->http, HEADERS_MAX);
	evhttp_set_max_body_size(s->http, 0);
	evhttp_set_timeout(s->http, TIMEOUT_S);
	evhttp_set_bevcb(s->http, on_accept, s);
	evhttp_set_gencb(s->http, on_request, s);
	if (listen_on(s, where)) {
		serve_http_close(s);
		return NULL;
	}
	event_add(s->look, &every);
	return s;
}

void serve_http_close(struct serve_http *s)
{
	if (!s)
		return;
	if (s->look)
		event_free(s->look);
	if (s->http)
		evhttp_free(s->http);
	free(s);
}
