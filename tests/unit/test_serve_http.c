/* SPDX-License-Identifier: BSD-2-Clause */
/* test_serve_http.c - how long serve's HTTP server waits for a client. */
#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../user/serve/serve_http.h"
#include "unit.h"

#define PAGE_BYTES (4 << 20) /* more than any buffer between */
#define PIECE 65536
#define PAUSES 8 /* of 0.3 s: longer in all than a client is waited for */

#define PEER_MOST 128 /* connections of one user */
#define CROWDED 20    /* so many more */

static struct event_base *base;
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static size_t got;
static bool closed_idle;

static void get(void *ctx, struct evhttp_request *req, const char *accept)
{
	char *page = malloc(PAGE_BYTES + 1);

	(void)ctx;
	(void)accept;
	if (!page)
		abort();
	memset(page, 'x', PAGE_BYTES);
	page[PAGE_BYTES] = '\0';
	serve_http_answer(req, HTTP_OK, "text/plain", page);
	free(page);
}

/* Takes its page slowly; then says nothing more, until it is hung up on. */
static void *client(void *arg)
{
	static const char ask[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
	static char piece[PIECE];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), pauses = PAUSES;
	ssize_t n;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    write(fd, ask, strlen(ask)) != (ssize_t)strlen(ask))
		abort();
	while (got < PAGE_BYTES && (n = read(fd, piece, sizeof(piece))) > 0) {
		got += (size_t)n;
		if (pauses-- > 0)
			usleep(300000);
	}
	/* what is left of the headers' bytes, and the end */
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		got += (size_t)n;
	closed_idle = n == 0;
	close(fd);
	event_base_loopbreak(base);
	return arg;
}

static void get_short(void *ctx, struct evhttp_request *req, const char *accept)
{
	(void)ctx;
	(void)accept;
	serve_http_answer(req, HTTP_OK, "text/plain", "here");
}

static char folder[] = "/tmp/cudatrace-unit.XXXXXX";

static struct serve_http *open_server(void)
{
	static const struct serve_page pages[] = { { "/", get },
						   { "/short", get_short },
						   { NULL, NULL } };
	struct timeval limit = { .tv_sec = 60 };
	struct serve_http *s;
	char where[128];

	serve_http_patience_s = 1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	snprintf(where, sizeof(where), "unix:%s", address.sun_path);
	base = event_base_new();
	s = base ? serve_http_open(base, where, NULL, pages, NULL) : NULL;
	CHECK(s != NULL);
	event_base_loopexit(base, &limit);
	return s;
}

static void close_server(struct serve_http *s)
{
	CHECK_EQ(0, serve_http_shut(s));
	serve_http_close(s);
	event_base_free(base);
	unlink(address.sun_path);
}

static void test_slow(void)
{
	struct serve_http *s = open_server();
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, client, NULL));
	while (!event_base_got_break(base) && !event_base_got_exit(base))
		event_base_loop(base, EVLOOP_ONCE);
	CHECK(event_base_got_break(base));
	pthread_join(t, NULL);
	CHECK(got > PAGE_BYTES);
	CHECK(closed_idle);
	close_server(s);
}

/* The server is busy for longer than a client is waited for, and the client's request comes meanwhile. */
static void test_busy(void)
{
	static const char ask[] = "GET /short HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
	struct serve_http *s = open_server();
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	char text[1024] = "";
	ssize_t n = -1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		abort();
	for (int i = 0; i < 10; i++) /* it is accepted */
		event_base_loop(base, EVLOOP_NONBLOCK);
	CHECK_EQ((long)strlen(ask), write(fd, ask, strlen(ask)));
	usleep(2500000);
	while (n < 0 && !event_base_got_exit(base)) {
		event_base_loop(base, EVLOOP_ONCE);
		n = read(fd, text, sizeof(text) - 1);
	}
	CHECK_TEXT("HTTP/1.1 200 OK", strtok(text, "\r"));
	close(fd);
	close_server(s);
}

/* One user has so many connections at most: with each further one the oldest is closed. */
static void test_crowd(void)
{
	struct serve_http *s = open_server();
	int fds[PEER_MOST + CROWDED], open = 0;
	char c;

	serve_http_patience_s = 60;
	for (int i = 0; i < PEER_MOST + CROWDED; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		while (connect(fds[i], (struct sockaddr *)&address, sizeof(address)) &&
		       !event_base_got_exit(base))
			event_base_loop(base, EVLOOP_ONCE);
	}
	for (int i = 0; i < PEER_MOST + CROWDED; i++) {
		/* those that are to be closed are waited for */
		while (i < CROWDED && read(fds[i], &c, 1) && !event_base_got_exit(base))
			event_base_loop(base, EVLOOP_ONCE);
		open += read(fds[i], &c, 1) < 0;
	}
	CHECK_EQ(PEER_MOST, open);
	CHECK_EQ(CROWDED, serve_http_shut(s));
	for (int i = 0; i < PEER_MOST + CROWDED; i++)
		close(fds[i]);
	serve_http_patience_s = 1;
	serve_http_close(s);
	event_base_free(base);
	unlink(address.sun_path);
}

int main(void)
{
	CHECK(mkdtemp(folder) != NULL);
	RUN(test_slow);
	RUN(test_busy);
	RUN(test_crowd);
	rmdir(folder);
	return unit_end();
}
