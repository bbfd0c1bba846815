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

static void test_slow(void)
{
	static const struct serve_page pages[] = { { "/", get }, { NULL, NULL } };
	char folder[] = "/tmp/cudatrace-unit.XXXXXX", where[128];
	struct timeval limit = { .tv_sec = 60 };
	struct serve_http *s;
	pthread_t t;

	serve_http_patience_s = 1;
	CHECK(mkdtemp(folder) != NULL);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	snprintf(where, sizeof(where), "unix:%s", address.sun_path);
	base = event_base_new();
	s = base ? serve_http_open(base, where, NULL, pages, NULL) : NULL;
	CHECK(s != NULL);
	event_base_loopexit(base, &limit);
	CHECK(!pthread_create(&t, NULL, client, NULL));
	while (!event_base_got_break(base) && !event_base_got_exit(base))
		event_base_loop(base, EVLOOP_ONCE);
	CHECK(event_base_got_break(base));
	pthread_join(t, NULL);
	CHECK(got > PAGE_BYTES);
	CHECK(closed_idle);
	CHECK_EQ(0, serve_http_shut(s));
	serve_http_close(s);
	event_base_free(base);
	unlink(address.sun_path);
	rmdir(folder);
}

int main(void)
{
	RUN(test_slow);
	return unit_end();
}
