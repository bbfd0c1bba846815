/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_auth.h - inside serve: checks who may ask, by name and password (RFC 7617). A thread checks
 * bcrypt's hashes, which takes a tenth of a second each; the results are kept. Knows no metric.
 */
#ifndef CT_SERVE_AUTH_H
#define CT_SERVE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct serve_auth;
struct web_config;

enum auth_verdict {
	AUTH_RIGHT,
	AUTH_WRONG,
	AUTH_LATER, /* `done` will report the verdict */
	AUTH_BUSY,  /* too many checks are waiting, of this peer or in total */
};

#define AUTH_PEER_BYTES 16

/* done(ctx, asked, verdict): AUTH_RIGHT or AUTH_WRONG of an earlier question; AUTH_BUSY if it
 * will never be known, because the server ends. NULL: no memory. */
struct serve_auth *serve_auth_open(struct event_base *,
				   void (*done)(void *ctx, void *asked, enum auth_verdict),
				   void *ctx);
void serve_auth_close(struct serve_auth *);
/* Sets the users. Results for other users are forgotten. False: no memory. */
bool serve_auth_users(struct serve_auth *, const struct web_config *);
/* True if everybody is answered without a password. */
bool serve_auth_none(const struct serve_auth *);
/* header: of "Authorization", or NULL. peer: on whose behalf, AUTH_PEER_BYTES of it. */
enum auth_verdict serve_auth_ask(struct serve_auth *, const char *header, const void *peer,
				 void *asked);

#endif
