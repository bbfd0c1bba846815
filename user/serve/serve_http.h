/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_http.h - inside serve: a small HTTP server, made with libevent, that untrusted clients may
 * use. Knows requests and no metric.
 */
#ifndef CT_SERVE_HTTP_H
#define CT_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct evhttp_request;
struct serve_http;

struct serve_page {
	const char *path;
	/* Answers by serve_http_answer() or serve_http_answer_fd(), before it returns. */
	void (*get)(void *ctx, struct evhttp_request *, const char *accept);
};

/* Checks the syntax of an address to listen on. Returns 0, or -EINVAL after one message. */
int serve_http_check(const char *where);
/* Listens on ADDR:PORT, [ADDR]:PORT, :PORT or unix:PATH[,mode=MODE]. web: the file of
 * --web-config, or NULL. The last entry of pages has the path NULL. Returns NULL after one
 * message. */
struct serve_http *serve_http_open(struct event_base *, const char *where, const char *web,
				   const struct serve_page *pages, void *ctx);
void serve_http_close(struct serve_http *);
/* For how long a client may say nothing, or take nothing of its answer. Read when a server is opened; a test makes
 * it shorter. */
extern int serve_http_patience_s;
/* Number of connections that were closed to make room for others. */
uint64_t serve_http_shut(const struct serve_http *);
/* Number of requests without a correct name and password. */
uint64_t serve_http_denied(const struct serve_http *);
/* Number of TLS handshakes that were refused because there were too many. */
uint64_t serve_http_handshakes_refused(const struct serve_http *);
bool serve_http_tls(const struct serve_http *);

void serve_http_answer(struct evhttp_request *, int status, const char *type, const char *text);
/* Answers with the first len bytes of the file, which is closed when they are sent. */
void serve_http_answer_fd(struct evhttp_request *, const char *type, int fd, size_t len);

#endif
