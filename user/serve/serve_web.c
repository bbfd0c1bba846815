/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_web.c - see serve_web.h. Open connections keep the configuration with which they began.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../util/msg.h"
#include "../util/types.h"
#include "serve_auth.h"
#include "serve_tls.h"
#include "serve_web.h"
#include "web_config.h"

#define FILES 4

/* Shows whether a file was replaced or written to. All 0: the file does not exist. Compared as
 * bytes: there is no padding. */
struct mark {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec modified, changed;
};

struct serve_web {
	const char *path;
	struct serve_auth *auth;
	struct handshakes *handshakes;
	struct web_config config;
	struct ssl_ctx_st *tls;
	struct mark marks[FILES];
};

static struct mark mark_of(const char *path)
{
	struct stat st;

	if (!path || stat(path, &st))
		return (struct mark){ 0 };
	return (struct mark){ st.st_dev, st.st_ino, st.st_size, st.st_mtim, st.st_ctim };
}

static void mark_all(const struct serve_web *w, struct mark *marks)
{
	const char *const paths[FILES] = { w->path, w->config.cert_file, w->config.key_file,
					   w->config.client_ca_file };

	for (int i = 0; i < FILES; i++)
		marks[i] = mark_of(paths[i]);
}

/* -1 with a sentence in why. */
static int serve_web_load(struct serve_web *w, char *why)
{
	struct ssl_ctx_st *tls = NULL;
	struct web_config c;
	int err = web_config_read(&c, w->path, why);

	if (err)
		return err;
	/* a file that is being written, or was emptied by mistake, must not remove the
	 * protection */
	if ((w->config.tls && !c.tls) || (w->config.nusers && !c.nusers)) {
		snprintf(why, WEB_WHY_MAX,
			 "%s has no %s any more; to take that away, start cudatrace again", w->path,
			 w->config.tls && !c.tls ? "tls_server_config" : "basic_auth_users");
		err = -1;
	}
	if (!err && c.tls) {
		tls = serve_tls_open(&c, w->handshakes, why);
		err = tls ? 0 : -1;
	}
	if (!err && !serve_auth_users(w->auth, &c)) {
		snprintf(why, WEB_WHY_MAX, "no memory");
		err = -1;
	}
	if (err) {
		serve_tls_close(tls);
		web_config_close(&c);
		return err;
	}
	serve_tls_close(w->tls);
	web_config_close(&w->config);
	w->config = c;
	w->tls = tls;
	return 0;
}

/* Reads twice: a change before the second read is included, and a later change gives another
 * mark. */
static int load_marked(struct serve_web *w, char *why)
{
	int err = serve_web_load(w, why);

	if (!err) {
		mark_all(w, w->marks);
		err = serve_web_load(w, why);
	}
	return err;
}

struct serve_web *serve_web_open(const char *path, struct serve_auth *auth,
				 struct handshakes *handshakes)
{
	struct serve_web *w = calloc(1, sizeof(*w));
	char why[WEB_WHY_MAX] = "no memory";

	if (w) {
		w->path = path;
		w->auth = auth;
		w->handshakes = handshakes;
	}
	if (!w || load_marked(w, why)) {
		msg_error("--web-config: %s", why);
		serve_web_close(w);
		return NULL;
	}
	return w;
}

void serve_web_close(struct serve_web *w)
{
	if (!w)
		return;
	serve_tls_close(w->tls);
	web_config_close(&w->config);
	free(w);
}

void serve_web_look(struct serve_web *w)
{
	struct mark marks[FILES];
	char why[WEB_WHY_MAX];

	mark_all(w, marks);
	if (!memcmp(marks, w->marks, sizeof(marks)))
		return;
	memcpy(w->marks, marks, sizeof(marks));
	if (load_marked(w, why))
		msg_warn("--web-config: %s; what was read before stays in force", why);
	else
		msg_verb("--web-config: %s was read again", w->path);
}

struct ssl_ctx_st *serve_web_tls(const struct serve_web *w)
{
	return w->tls;
}
