/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_web.h - inside serve: the present configuration of --web-config, which is read again when
 * its files have changed.
 */
#ifndef CT_SERVE_WEB_H
#define CT_SERVE_WEB_H

#include <stdbool.h>

struct handshakes;
struct serve_auth;
struct serve_web;
struct ssl_ctx_st;

/* NULL after one message. The handshakes are asked whether one more may begin. */
struct serve_web *serve_web_open(const char *path, struct serve_auth *, struct handshakes *);
void serve_web_close(struct serve_web *);
/* Reads the files again if one of them has changed. If the new configuration cannot be used, a
 * message says so and the old one stays. */
void serve_web_look(struct serve_web *);
/* NULL: no TLS. */
struct ssl_ctx_st *serve_web_tls(const struct serve_web *);

#endif
