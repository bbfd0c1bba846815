/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_web.h - inside serve: the configuration of --web-config that is in force, read again
 * when its files have changed.
 */
#ifndef CT_SERVE_WEB_H
#define CT_SERVE_WEB_H

#include <stdbool.h>

struct serve_auth;
struct serve_web;
struct ssl_ctx_st;

/* NULL after one message. */
struct serve_web *serve_web_open(const char *path, struct serve_auth *);
void serve_web_close(struct serve_web *);
/* Reads the files again if one of them has changed since. What cannot be used is said, and what
 * was in force stays. */
void serve_web_look(struct serve_web *);
/* NULL: no TLS. */
struct ssl_ctx_st *serve_web_tls(const struct serve_web *);

#endif
