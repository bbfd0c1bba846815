/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_http.c - see serve_http.h.
 *
 * Anybody who reaches the port may connect any number of times, send a request one byte at a time,
 * or send nothing. So there are never more than CONNECTIONS_MAX connections, and no more than
 * PEER_MAX of one peer. A new connection is always accepted, so that there is always a place for a
 * scrape: to make room, the server closes a connection of the peer that has the most, the one that
 * has been without a complete request for longest. A connection that is being answered stays open
 * while the client reads. A connection on which no request is complete within 30 s is closed
 * in any case.
 *
 * Time that the server itself was busy elsewhere is not the client's: its request, or the room for
 * more of the answer, may have been there all the while. So patience is counted at looks, of which
 * each is at most LONGEST_LOOK_NS, and libevent's own timeouts, which do not know the difference,
 * are set to what no client reaches.
 *
 * libevent's server does not report the begin or end of a connection. So this file makes each
 * connection's bufferevent and holds a reference: when the server has freed it, its callbacks are
 * gone.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../util/msg.h"
#include "../util/now.h"
#include "../util/types.h"
#include "serve_auth.h"
#include "serve_http.h"
#include "serve_peer.h"
#include "serve_tls.h"
#include "serve_web.h"

#define HANDSHAKE_S 10
#define NEVER_S (10 * 365 * 86400)
#define HEADERS_MAX 16384
#define CONNECTIONS_MAX 256
#define PEER_MAX 128 /* connections of one address, or of one user of a Unix socket */
#define ROOM 64	     /* connections that are accepted before their peers are determined */
#define LOOK_NS (serve_http_patience_s * 1000000000ULL / 15)
#define LONGEST_LOOK_NS (2 * LOOK_NS)
#define UNAUTHORIZED 401 /* libevent has no name for it */
#define BACKLOG 4096	 /* for a Unix socket, whose clients do not wait */

int serve_http_patience_s = 30; /* for a complete request, and for a client that reads nothing */

struct connection {
	struct bufferevent *bev; /* held */
	struct peer peer;
	uint64_t since_ns; /* time of its begin, or of its last complete request */
	size_t unsent;	   /* bytes of an answer that were not sent at the last look... */
	uint64_t moved_ns; /* ...and when that number last decreased */
	bool shut;
};

struct serve_http {
	struct evhttp *http;
	struct evconnlistener *listener;
	struct event *look, *settle;
	uint64_t clock_ns,
		looked_ns; /* time in which clients could be heard; when that was counted */
	struct event_base *base;
	const struct serve_page *pages;
	void *ctx;
	struct serve_web *web; /* NULL: everybody is answered, without TLS */
	struct serve_auth *auth;
	struct handshakes handshakes;
	uint64_t denied;
	struct connection all[CONNECTIONS_MAX + ROOM];
	int n;
	int fresh;	/* number of connections, the last ones, whose peers are not known yet */
	bool closed;	/* no connection is accepted until then */
	uint64_t shut;	/* connections that were closed to make room */
	char path[108]; /* of the socket in the file system; "": there is none */
};

/* ---- connections ---- */

static void stop_listening(struct serve_http *s)
{
	if (!s->closed)
		evconnlistener_disable(s->listener);
	s->closed = true;
}

static void start_listening(struct serve_http *s)
{
	if (s->closed)
		evconnlistener_enable(s->listener);
	s->closed = false;
}

/* True if the server has freed the connection. */
static bool serve_http_has_ended(const struct connection *c)
{
	bufferevent_data_cb in = NULL, out = NULL;
	bufferevent_event_cb event = NULL;
	void *ctx;

	bufferevent_getcb(c->bev, &in, &out, &event, &ctx);
	return !in && !out && !event;
}

static void serve_http_drop(struct connection *c)
{
	struct ssl_st *ssl = serve_tls_of(c->bev);

	bufferevent_decref(c->bev);
	serve_tls_free(ssl);
}

/* Drops those that have ended; the order stays. */
static void serve_http_sweep(struct serve_http *s)
{
	int n = 0, fresh = s->n - s->fresh;

	s->fresh = 0;
	for (int i = 0; i < s->n; i++) {
		if (serve_http_has_ended(&s->all[i])) {
			serve_http_drop(&s->all[i]);
			continue;
		}
		s->fresh += i >= fresh;
		s->all[n++] = s->all[i];
	}
	s->n = n;
}

/* Ends a connection: the server finds that it has ended, and frees it. */
static void shut(struct connection *c)
{
	int fd = bufferevent_getfd(c->bev);

	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
	c->shut = true;
}

/* When the connection was last useful. It is useful now if an answer is being sent and the
 * client reads it. */
static uint64_t used_ns(const struct serve_http *s, struct connection *c)
{
	size_t unsent = evbuffer_get_length(bufferevent_get_output(c->bev));

	if (unsent && unsent < c->unsent)
		c->moved_ns = s->clock_ns;
	if (unsent && !c->unsent)
		c->moved_ns = c->since_ns;
	c->unsent = unsent;
	return unsent && c->moved_ns > c->since_ns ? c->moved_ns : c->since_ns;
}

static int count_of(const struct serve_http *s, const struct peer *p)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += !s->all[i].shut && peer_is_same(&s->all[i].peer, p);
	return n;
}

/* Closes the connection of this peer (NULL: of the peer that has the most) that has not been
 * useful for longest. */
static void shut_one(struct serve_http *s, const struct peer *p)
{
	struct connection *worst = NULL;
	uint64_t worst_ns = 0;
	int most = 0;

	for (int i = 0; i < s->n && !p; i++) {
		int n = s->all[i].shut ? 0 : count_of(s, &s->all[i].peer);

		if (n > most) {
			most = n;
			worst = &s->all[i];
		}
	}
	if (!p && !worst)
		return;
	p = p ? p : &worst->peer;
	worst = NULL;
	for (int i = 0; i < s->n; i++) {
		struct connection *c = &s->all[i];

		if (c->shut || !peer_is_same(&c->peer, p))
			continue;
		if (!worst || used_ns(s, c) < worst_ns) {
			worst = c;
			worst_ns = used_ns(s, c);
		}
	}
	if (worst) {
		shut(worst);
		s->shut++;
	}
}

static int open_count(const struct serve_http *s)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += !s->all[i].shut;
	return n;
}

/* Connections were accepted: by now the server has given them their descriptors. */
static void on_settle(evutil_socket_t unused, short what, void *ctx)
{
	struct serve_http *s = ctx;

	(void)unused, (void)what;
	serve_http_sweep(s);
	for (int i = s->n - s->fresh; i < s->n; i++) {
		s->all[i].peer = peer_of(bufferevent_getfd(s->all[i].bev));
		if (count_of(s, &s->all[i].peer) > PEER_MAX)
			shut_one(s, &s->all[i].peer);
	}
	s->fresh = 0;
	while (open_count(s) > CONNECTIONS_MAX)
		shut_one(s, NULL);
	/* closed connections are still here until the server notices, which is soon */
	if (s->n < CONNECTIONS_MAX + ROOM / 2)
		start_listening(s);
	else
		event_add(s->settle, &(struct timeval){ .tv_usec = 1000 });
}

static uint64_t patience_ns(const struct connection *c)
{
	const struct ssl_st *ssl = serve_tls_of(c->bev);

	return (ssl && !serve_tls_ready(ssl) ? HANDSHAKE_S : serve_http_patience_s) * 1000000000ULL;
}

static void count_time(struct serve_http *s)
{
	uint64_t now = now_ns(), past = now - s->looked_ns;

	s->looked_ns = now;
	s->clock_ns += past < LONGEST_LOOK_NS ? past : LONGEST_LOOK_NS;
}

static void on_look(evutil_socket_t unused, short what, void *ctx)
{
	struct serve_http *s = ctx;

	count_time(s);
	if (s->web)
		serve_web_look(s->web);
	serve_http_sweep(s);
	for (int i = 0; i < s->n; i++)
		if (s->clock_ns - used_ns(s, &s->all[i]) > patience_ns(&s->all[i]))
			shut(&s->all[i]);
	on_settle(unused, what, ctx);
}

/* A connection was accepted. NULL: libevent makes what it needs, and nothing is known of it; with
 * TLS its requests are refused, as it speaks none. */
static struct bufferevent *on_accept(struct event_base *base, void *ctx)
{
	struct serve_http *s = ctx;
	struct ssl_ctx_st *tls = s->web ? serve_web_tls(s->web) : NULL;
	struct bufferevent *bev = NULL;

	if (!tls)
		bev = bufferevent_socket_new(base, -1, 0);
	else if (s->n < CONNECTIONS_MAX + ROOM)
		bev = serve_tls_accept(tls, base);
	if (!bev)
		return NULL;
	if (s->n < CONNECTIONS_MAX + ROOM) {
		bufferevent_incref(bev);
		s->all[s->n++] = (struct connection){ .bev = bev, .since_ns = s->clock_ns };
		s->fresh++;
	}
	if (s->n == CONNECTIONS_MAX + ROOM)
		stop_listening(s);
	/* runs when the server has taken the connection, in this round of the loop */
	event_active(s->settle, EV_TIMEOUT, 0);
	return bev;
}

/* For example, no descriptor is left: to try again at once would be a busy loop. */
static void on_accept_error(struct evconnlistener *listener, void *ctx)
{
	(void)listener;
	shut_one(ctx, NULL);
	stop_listening(ctx);
}

/* ---- requests ---- */

static void answer(struct serve_http *s, struct evhttp_request *req)
{
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;

	for (const struct serve_page *p = s->pages; p->path; p++) {
		if (path && !strcmp(p->path, *path ? path : "/")) {
			p->get(s->ctx, req, accept);
			return;
		}
	}
	serve_http_answer(req, HTTP_NOTFOUND, "text/plain; charset=utf-8",
			  "there is no such page: /metrics, /healthz, /readyz\n");
}

static void answer_as(struct serve_http *s, struct evhttp_request *req, enum auth_verdict verdict)
{
	if (verdict == AUTH_RIGHT) {
		answer(s, req);
		return;
	}
	s->denied++;
	if (verdict == AUTH_WRONG)
		evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate",
				  "Basic realm=\"cudatrace\"");
	serve_http_answer(req, verdict == AUTH_WRONG ? UNAUTHORIZED : HTTP_SERVUNAVAIL,
			  "text/plain; charset=utf-8",
			  verdict == AUTH_WRONG ? "give a name and its password\n"
						: "too many passwords are being checked\n");
}

/* Called when it is known whether a password was right. The client may be gone. */
static void on_verdict(void *ctx, void *asked, enum auth_verdict verdict)
{
	if (evhttp_request_get_connection(asked))
		answer_as(ctx, asked, verdict);
	else
		evhttp_request_free(asked);
}

static void on_request(struct evhttp_request *req, void *ctx)
{
	struct bufferevent *bev =
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	char peer[AUTH_PEER_BYTES] = { 0 };
	struct serve_http *s = ctx;
	enum auth_verdict verdict;
	struct peer from;

	for (int i = 0; i < s->n; i++)
		if (s->all[i].bev == bev)
			s->all[i].since_ns = s->clock_ns;
	if (!s->web) {
		answer(s, req);
		return;
	}
	if (serve_web_tls(s->web) && !serve_tls_of(bev)) {
		serve_http_answer(req, HTTP_BADREQUEST, "text/plain; charset=utf-8",
				  "this is a port of TLS\n");
		return;
	}
	from = peer_of(bufferevent_getfd(bev));
	memcpy(peer, &from, sizeof(from));
	verdict = serve_auth_ask(
		s->auth, evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization"),
		peer, req);
	if (verdict != AUTH_LATER)
		answer_as(s, req, verdict);
}

/* HEAD gets the same head as GET, and no body: what comes behind it would be taken for the answer to the next
 * question. */
static void send_body(struct evhttp_request *req, int status, struct evbuffer *body)
{
	char length[24];

	if (evhttp_request_get_command(req) != EVHTTP_REQ_HEAD) {
		evhttp_send_reply(req, status, NULL, body);
		return;
	}
	snprintf(length, sizeof(length), "%zu", body ? evbuffer_get_length(body) : 0);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Length", length);
	evhttp_send_reply(req, status, NULL, NULL);
}

void serve_http_answer(struct evhttp_request *req, int status, const char *type, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	if (body)
		evbuffer_add(body, text, strlen(text));
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", type);
	send_body(req, status, body);
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
		send_body(req, HTTP_OK, body);
	}
	if (body)
		evbuffer_free(body);
}

/* ---- beginning and end ---- */

#define UNIX "unix:"
#define UNIX_MODE 0660

/* "unix:PATH" or "unix:PATH,mode=0666". Returns false if it is neither. *err: 0, or -EINVAL
 * after one message. */
static bool parse_unix(const char *where, struct sockaddr_un *addr, unsigned int *mode, int *err)
{
	const char *path = where + strlen(UNIX), *comma = strstr(where, ",mode=");
	size_t n = comma ? (size_t)(comma - path) : strlen(path);
	unsigned long given = UNIX_MODE;
	char *end = NULL;

	if (strncmp(where, UNIX, strlen(UNIX)))
		return false;
	*err = -EINVAL;
	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (comma)
		given = strtoul(comma + 6, &end, 8);
	if (*path != '/' || n >= sizeof(addr->sun_path)) {
		msg_error("--listen: '%s' is no socket; give unix:PATH, with an absolute path of "
			  "at most %zu bytes",
			  where, sizeof(addr->sun_path) - 1);
	} else if (comma && (comma[6] < '0' || comma[6] > '7' || *end || given > 0777)) {
		msg_error("--listen: '%s' is no mode; give three octal digits, as "
			  "unix:/run/cudatrace.sock,mode=0666",
			  comma + 6);
	} else {
		memcpy(addr->sun_path, path, n);
		*mode = (unsigned int)given;
		*err = 0;
	}
	return true;
}

/* addr: "" for all. */
static int serve_http_parse(const char *where, char *addr, size_t size, unsigned long *port)
{
	const char *colon = strrchr(where, ':');
	char *end;
	size_t n;

	if (!colon || (size_t)(colon - where) >= size) {
		msg_error("--listen: '%s' is not ADDR:PORT; give one as 127.0.0.1:19400, "
			  "[::1]:19400 or unix:/run/cudatrace.sock",
			  where);
		return -EINVAL;
	}
	n = (size_t)(colon - where);
	snprintf(addr, size, "%.*s", (int)n, where);
	if (n > 1 && addr[0] == '[' && addr[n - 1] == ']') {
		memmove(addr, addr + 1, n - 2);
		addr[n - 2] = '\0';
	} else if (strchr(addr, ':')) {
		msg_error("--listen: '%s' is not ADDR:PORT; give an IPv6 address in brackets, as "
			  "[::1]:19400",
			  where);
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
	struct sockaddr_un path;
	unsigned long port;
	unsigned int mode;
	char addr[128];
	int err;

	return parse_unix(where, &path, &mode, &err)
		       ? err
		       : serve_http_parse(where, addr, sizeof(addr), &port);
}

/* Removes a socket on which no process listens any more, for example because its process was
 * killed; anything else stays. */
static void take_away_dead(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (!lstat(addr->sun_path, &st) && S_ISSOCK(st.st_mode) && fd >= 0 &&
	    connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) && errno == ECONNREFUSED)
		unlink(addr->sun_path);
	if (fd >= 0)
		close(fd);
}

/* Gives the socket its mode from the beginning: a later change by its path could affect another
 * file. Returns -errno. */
static int bind_unix(struct serve_http *s, const struct sockaddr_un *addr, unsigned int mode)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;
	mode_t mask;

	take_away_dead(addr);
	if (fd < 0)
		return -errno;
	mask = umask(0);
	err = fchmod(fd, mode) || bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno
											 : 0;
	umask(mask);
	if (!err)
		strcpy(s->path, addr->sun_path);
	s->listener = err ? NULL
			  : evconnlistener_new(s->base, NULL, NULL,
					       LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
					       BACKLOG, fd);
	if (!s->listener) {
		close(fd);
		return err ? err : -ENOMEM;
	}
	if (!evhttp_bind_listener(s->http, s->listener)) {
		evconnlistener_free(s->listener);
		s->listener = NULL;
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(s->listener, on_accept_error);
	return 0;
}

static int listen_on(struct serve_http *s, const char *where)
{
	struct evhttp_bound_socket *socket;
	unsigned long port;
	char addr[128];
	struct sockaddr_un path;
	unsigned int mode;
	int err;

	if (parse_unix(where, &path, &mode, &err)) {
		err = err ? err : bind_unix(s, &path, mode);
		if (err)
			msg_error("cannot listen on %s: %s; give another --listen", where,
				  strerror(-err));
		return err;
	}
	err = serve_http_parse(where, addr, sizeof(addr), &port);
	if (err)
		return err;
	errno = 0;
	/* "::" takes IPv4 too; where there is no IPv6, all of IPv4 */
	socket = evhttp_bind_socket_with_handle(s->http, *addr ? addr : "::", (ev_uint16_t)port);
	if (!socket && !*addr && errno == EAFNOSUPPORT)
		socket = evhttp_bind_socket_with_handle(s->http, "0.0.0.0", (ev_uint16_t)port);
	if (!socket) {
		err = errno ? -errno : -EADDRNOTAVAIL;
		msg_error("cannot listen on %s: %s; give another --listen ADDR:PORT", where,
			  strerror(-err));
		return err;
	}
	s->listener = evhttp_bound_socket_get_listener(socket);
	evconnlistener_set_error_cb(s->listener, on_accept_error);
	return 0;
}

static int open_web(struct serve_http *s, const char *path)
{
	if (!path)
		return 0;
	s->auth = serve_auth_open(s->base, on_verdict, s);
	if (!s->auth) {
		msg_error("no memory to serve with");
		return -1;
	}
	handshakes_open(&s->handshakes);
	s->web = serve_web_open(path, s->auth, &s->handshakes);
	return s->web ? 0 : -1;
}

struct serve_http *serve_http_open(struct event_base *base, const char *where, const char *web,
				   const struct serve_page *pages, void *ctx)
{
	struct timeval every = { .tv_sec = (time_t)(LOOK_NS / 1000000000),
				 .tv_usec = (suseconds_t)(LOOK_NS % 1000000000 / 1000) };
	struct serve_http *s = calloc(1, sizeof(*s));

	if (s) {
		s->base = base;
		s->pages = pages;
		s->ctx = ctx;
		s->http = evhttp_new(base);
		s->look = event_new(base, -1, EV_PERSIST, on_look, s);
		s->settle = event_new(base, -1, 0, on_settle, s);
	}
	if (!s || !s->http || !s->look || !s->settle) {
		msg_error("no memory to serve with");
		serve_http_close(s);
		return NULL;
	}
	evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(s->http, HEADERS_MAX);
	evhttp_set_max_body_size(s->http, 0);
	evhttp_set_timeout(s->http, NEVER_S);
	s->looked_ns = now_ns();
	evhttp_set_bevcb(s->http, on_accept, s);
	evhttp_set_gencb(s->http, on_request, s);
	if (open_web(s, web) || listen_on(s, where)) {
		serve_http_close(s);
		return NULL;
	}
	event_add(s->look, &every);
	return s;
}

uint64_t serve_http_shut(const struct serve_http *s)
{
	return s->shut;
}

uint64_t serve_http_denied(const struct serve_http *s)
{
	return s->denied;
}

uint64_t serve_http_handshakes_refused(const struct serve_http *s)
{
	return s->handshakes.refused;
}

bool serve_http_tls(const struct serve_http *s)
{
	return s->web && serve_web_tls(s->web);
}

void serve_http_close(struct serve_http *s)
{
	if (!s)
		return;
	if (s->look)
		event_free(s->look);
	if (s->settle)
		event_free(s->settle);
	/* answers what waits for a password, while there are connections */
	serve_auth_close(s->auth);
	if (s->http)
		evhttp_free(s->http);
	for (int i = 0; i < s->n; i++)
		serve_http_drop(&s->all[i]);
	serve_web_close(s->web);
	if (*s->path)
		unlink(s->path);
	free(s);
}
