/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_tls.h - inside serve: TLS by OpenSSL, from a web configuration. Knows no HTTP.
 */
#ifndef CT_SERVE_TLS_H
#define CT_SERVE_TLS_H

struct bufferevent;
struct event_base;
struct handshakes;
struct ssl_ctx_st;
struct ssl_st;
struct web_config;

/* Each client's first message is answered only if the handshakes admit it. Returns NULL with a
 * sentence in why (WEB_WHY_MAX bytes). Free it with serve_tls_close(). */
struct ssl_ctx_st *serve_tls_open(const struct web_config *, struct handshakes *, char *why);
void serve_tls_close(struct ssl_ctx_st *);
/* Makes a bufferevent that has no descriptor yet and speaks TLS with the client. To free it,
 * first close the descriptor, and call serve_tls_free() for the result of serve_tls_of(). NULL:
 * no memory. */
struct bufferevent *serve_tls_accept(struct ssl_ctx_st *, struct event_base *);
/* NULL: it speaks no TLS. */
struct ssl_st *serve_tls_of(struct bufferevent *);
void serve_tls_free(struct ssl_st *);
/* The handshake is over. */
int serve_tls_ready(const struct ssl_st *);

#endif
