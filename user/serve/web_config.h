/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * web_config.h - inside serve: the file of --web-config, in the form that Prometheus' exporters
 * share (web.config.yml of the exporter-toolkit). Knows neither TLS nor HTTP.
 */
#ifndef CT_WEB_CONFIG_H
#define CT_WEB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WEB_USERS_MAX 64
#define WEB_WHY_MAX 600 /* of a sentence that says what is wrong */
#define WEB_FILE_MAX (1u << 20)

enum web_client_auth {
	WEB_CLIENT_NONE,
	WEB_CLIENT_REQUEST,	    /* requested, and not verified */
	WEB_CLIENT_REQUIRE_ANY,	    /* required, and not verified */
	WEB_CLIENT_VERIFY_IF_GIVEN, /* verified if there is one */
	WEB_CLIENT_VERIFY,	    /* required and verified */
};

struct web_user {
	char *name, *hash; /* of bcrypt */
	int cost;
};

struct web_config {
	bool tls;
	char *cert_file, *key_file, *client_ca_file; /* the last: NULL: none */
	enum web_client_auth client_auth;
	bool tls13_only;
	struct web_user users[WEB_USERS_MAX];
	int nusers; /* 0: everybody is answered */
};

/* Reads and checks it. 0, or -EINVAL with a sentence in why (WEB_WHY_MAX bytes). After an error
 * there is nothing to close. */
int web_config_read(struct web_config *, const char *path, char *why);
void web_config_close(struct web_config *);

/* A regular file that belongs to us or to root and has none of the bits in `refused`: its bytes
 * (to be freed), with a NUL behind them, and their number. NULL with a sentence in why. */
char *web_file_read(const char *path, mode_t refused, size_t *len, char *why);

#endif
