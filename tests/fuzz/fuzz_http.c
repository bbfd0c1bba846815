/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_http.c - what a client sends to serve. The first byte chooses the server: one that answers
 * everybody, or one with a user and a password; and whether the bytes come at once, or in two pieces.
 * After each input the server must still answer a scrape.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/http.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../user/serve/serve_http.h"
#include "../../user/util/types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAGE "page"
#define ROUNDS_MAX 20000 /* of the loop, for one connection, of a tenth of a millisecond */
/* of "pass", by bcrypt with the least cost that is taken */
#define USERS                         \
	"basic_auth_users:\n  user: " \
	"'$2b$04$abcdefghijklmnopqrstuufznL8bkzdtHwLhca4To/v9Lo9bA7fR6'\n"

static struct event_base *base;
static struct serve_http *servers[2];
static struct sockaddr_un addresses[2];
static char folder[] = "/tmp/cudatrace-fuzz.XXXXXX";

static void get(void *ctx, struct evhttp_request *req, const char *accept)
{
	(void)ctx;
	if (accept && strlen(accept) > 1 << 20)
		abort();
	serve_http_answer(req, HTTP_OK, "text/plain", PAGE);
}

static const struct serve_page pages[] = { { "/", get }, { "/metrics", get }, { NULL, NULL } };

static void clean(void)
{
	char path[128];

	for (int i = 0; i < 2; i++)
		serve_http_close(servers[i]);
	event_base_free(base);
	snprintf(path, sizeof(path), "%s/web", folder);
	unlink(path);
	rmdir(folder);
}

static void begin(void)
{
	static char web[128];
	char where[128];
	FILE *f;

	base = event_base_new();
	if (!base || !mkdtemp(folder))
		abort();
	snprintf(web, sizeof(web), "%s/web", folder);
	f = fopen(web, "w");
	if (!f || fputs(USERS, f) < 0 || fclose(f) || chmod(web, 0600))
		abort();
	for (int i = 0; i < 2; i++) {
		addresses[i].sun_family = AF_UNIX;
		snprintf(addresses[i].sun_path, sizeof(addresses[i].sun_path), "%s/%d", folder, i);
		snprintf(where, sizeof(where), "unix:%s", addresses[i].sun_path);
		servers[i] = serve_http_open(base, where, i ? web : NULL, pages, NULL);
		if (!servers[i])
			abort();
	}
	atexit(clean);
}

static void turn(void)
{
	if (event_base_loop(base, EVLOOP_NONBLOCK) < 0)
		abort();
}

/* Sends it, in two pieces or in one, and reads until the server closes: no answer, or a whole one. */
static size_t ask(int server, const void *data, size_t size, bool halves, char *answer, size_t room)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	size_t first = halves ? size / 2 : size, n = 0;
	ssize_t got = -1;

	if (fd < 0 || connect(fd, (void *)&addresses[server], sizeof(addresses[server])))
		abort();
	turn();
	if (send(fd, data, first, MSG_NOSIGNAL) >= 0 && halves) {
		turn();
		send(fd, (const char *)data + first, size - first, MSG_NOSIGNAL);
	}
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < ROUNDS_MAX; i++) {
		turn();
		got = recv(fd, answer + n, room - 1 - n, 0);
		if (got > 0)
			n += (size_t)got;
		else if (!got || errno != EAGAIN)
			break;
		else if (i > 100)
			usleep(100);
	}
	if (got > 0 || (got < 0 && errno == EAGAIN))
		abort(); /* the server keeps a connection whose client says no more */
	answer[n] = '\0';
	close(fd);
	turn();
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char scrape[] =
		"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
	static char answer[1 << 20];
	int server;

	if (!base)
		begin();
	if (!size || size > 65536)
		return 0;
	server = data[0] & 1;
	ask(server, data + 1, size - 1, data[0] & 2, answer, sizeof(answer));
	if (server && strstr(answer, "\r\n\r\n" PAGE))
		abort(); /* nobody has given the password */
	ask(0, scrape, sizeof(scrape) - 1, false, answer, sizeof(answer));
	if (!strstr(answer, "200 OK") || !strstr(answer, "\r\n\r\n" PAGE))
		abort();
	return 0;
}
