/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * web_config.c - see web_config.h. It accepts only the forms of YAML that such files have: mappings
 * of scalars. An unknown key is an error, because a misspelt key must not leave the server open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "../util/types.h"
#include "web_config.h"

#define HASH_LEN 60
#define COST_MIN 4
#define COST_MAX 16 /* a check takes some seconds */
#define SALT_AT 7   /* behind "$2b$10$" */
#define SCALAR_MAX 4096

struct reading {
	yaml_parser_t yaml;
	yaml_event_t event; /* the last one; "has" says that it is to be deleted */
	bool has;
	const char *path;
	struct web_config *to;
	char *why;
};

__attribute__((format(printf, 2, 3))) static int wrong(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, WEB_WHY_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* ---- files ---- */

static char *web_config_read_all(int fd, const char *path, size_t *len, char *why)
{
	char *bytes = malloc(WEB_FILE_MAX + 1);
	ssize_t n = 0;

	*len = 0;
	while (bytes && *len <= WEB_FILE_MAX &&
	       (n = read(fd, bytes + *len, WEB_FILE_MAX + 1 - *len)) > 0)
		*len += (size_t)n;
	if (bytes && n >= 0 && *len <= WEB_FILE_MAX) {
		bytes[*len] = '\0';
		return bytes;
	}
	wrong(why, "cannot read %s: %s", path, strerror(n < 0 ? errno : bytes ? EFBIG : ENOMEM));
	free(bytes);
	return NULL;
}

char *web_file_read(const char *path, mode_t refused, size_t *len, char *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char *bytes = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		wrong(why, "cannot open %s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		wrong(why, "%s is no regular file", path);
	else if (st.st_uid && st.st_uid != geteuid())
		wrong(why,
		      "%s belongs to user %u; it has to belong to root, or to the user that "
		      "cudatrace runs as",
		      path, st.st_uid);
	else if (st.st_mode & refused)
		wrong(why, "%s has mode %04o, so that others may %s it; chmod %04o it", path,
		      st.st_mode & 07777u, st.st_mode & refused & 022 ? "change" : "read",
		      st.st_mode & 07777u & ~refused);
	else
		bytes = web_config_read_all(fd, path, len, why);
	if (fd >= 0)
		close(fd);
	return bytes;
}

/* ---- YAML ---- */

static unsigned long line_of(const struct reading *r)
{
	return (unsigned long)r->event.start_mark.line + 1;
}

static int web_config_next(struct reading *r)
{
	if (r->has)
		yaml_event_delete(&r->event);
	r->has = yaml_parser_parse(&r->yaml, &r->event);
	if (r->has)
		return 0;
	return wrong(r->why, "%s:%lu: %s", r->path, (unsigned long)r->yaml.problem_mark.line + 1,
		     r->yaml.problem ? r->yaml.problem : "not YAML");
}

/* The next event has to be a scalar: its text, to be freed. NULL: it is none. */
static char *scalar(struct reading *r, const char *of)
{
	const char *text;
	size_t n;

	if (web_config_next(r))
		return NULL;
	text = (const char *)r->event.data.scalar.value;
	n = r->event.data.scalar.length;
	if (r->event.type != YAML_SCALAR_EVENT || r->event.data.scalar.anchor || n > SCALAR_MAX ||
	    memchr(text, '\0', n)) {
		wrong(r->why, "%s:%lu: %s has to be a text", r->path, line_of(r), of);
		return NULL;
	}
	return strdup(text);
}

/* Checks what follows a key. 0: a mapping begins; 1: there is nothing, as in "key:". */
static int begins(struct reading *r, const char *of)
{
	int err = web_config_next(r);

	if (err)
		return err;
	if (r->event.type == YAML_SCALAR_EVENT && !r->event.data.scalar.length)
		return 1;
	if (r->event.type != YAML_MAPPING_START_EVENT)
		return wrong(r->why, "%s:%lu: %s has to have keys and values", r->path, line_of(r),
			     of);
	return 0;
}

/* The next key of a mapping: 1, and *key is to be freed; 0 at its end; -EINVAL. */
static int web_config_key_of(struct reading *r, const char *of, char **key)
{
	char what[80];

	snprintf(what, sizeof(what), "a key of %s", of);
	*key = scalar(r, what);
	if (*key)
		return 1;
	if (r->has && r->event.type == YAML_MAPPING_END_EVENT)
		return 0;
	return -EINVAL;
}

/* ---- tls_server_config ---- */

static int take_text(struct reading *r, char **to, const char *key)
{
	char *text = scalar(r, key);

	if (!text)
		return -EINVAL;
	if (*to || !*text) {
		free(text);
		return wrong(r->why, "%s:%lu: %s %s", r->path, line_of(r), key,
			     *to ? "is there twice" : "has no value");
	}
	*to = text;
	return 0;
}

/* A path is relative to the folder of the configuration. */
static int take_path(struct reading *r, char **to, const char *key)
{
	const char *slash = strrchr(r->path, '/');
	int err = take_text(r, to, key);
	char *whole;

	if (err || **to == '/' || !slash)
		return err;
	if (asprintf(&whole, "%.*s/%s", (int)(slash - r->path), r->path, *to) < 0)
		return wrong(r->why, "no memory");
	free(*to);
	*to = whole;
	return 0;
}

static const struct {
	const char *name;
	enum web_client_auth auth;
} auths[] = {
	{ "NoClientCert", WEB_CLIENT_NONE },
	{ "RequestClientCert", WEB_CLIENT_REQUEST },
	{ "RequireClientCert", WEB_CLIENT_REQUIRE_ANY },
	{ "RequireAnyClientCert", WEB_CLIENT_REQUIRE_ANY },
	{ "VerifyClientCertIfGiven", WEB_CLIENT_VERIFY_IF_GIVEN },
	{ "RequireAndVerifyClientCert", WEB_CLIENT_VERIFY },
};

static int check_words(struct reading *r, const char *auth, const char *version)
{
	size_t i = 0;

	while (auth && i < ARRAY_LEN(auths) && strcmp(auth, auths[i].name))
		i++;
	if (i == ARRAY_LEN(auths))
		return wrong(r->why,
			     "%s: client_auth_type '%s' is not known; give NoClientCert, "
			     "RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or "
			     "RequireAndVerifyClientCert",
			     r->path, auth);
	r->to->client_auth = auth ? auths[i].auth : WEB_CLIENT_NONE;
	if (version && strcmp(version, "TLS12") && strcmp(version, "TLS13"))
		return wrong(r->why, "%s: min_version '%s' is not served; give TLS12 or TLS13",
			     r->path, version);
	r->to->tls13_only = version && !strcmp(version, "TLS13");
	return 0;
}

static int check_tls(struct reading *r, const char *auth, const char *version)
{
	struct web_config *c = r->to;
	int err = check_words(r, auth, version);
	bool verifies = c->client_auth == WEB_CLIENT_VERIFY ||
			c->client_auth == WEB_CLIENT_VERIFY_IF_GIVEN;

	if (err)
		return err;
	if (!c->cert_file || !c->key_file)
		return wrong(r->why, "%s: tls_server_config needs cert_file and key_file", r->path);
	if (verifies && !c->client_ca_file)
		return wrong(r->why, "%s: client_auth_type %s needs a client_ca_file", r->path,
			     auth);
	if (!verifies && c->client_ca_file)
		return wrong(r->why,
			     "%s: with a client_ca_file, give client_auth_type "
			     "RequireAndVerifyClientCert or VerifyClientCertIfGiven: else no "
			     "certificate is verified",
			     r->path);
	c->tls = true;
	return 0;
}

static int take_tls_key(struct reading *r, const char *key, char **auth, char **version)
{
	if (!strcmp(key, "cert_file"))
		return take_path(r, &r->to->cert_file, key);
	if (!strcmp(key, "key_file"))
		return take_path(r, &r->to->key_file, key);
	if (!strcmp(key, "client_ca_file"))
		return take_path(r, &r->to->client_ca_file, key);
	if (!strcmp(key, "client_auth_type"))
		return take_text(r, auth, key);
	if (!strcmp(key, "min_version"))
		return take_text(r, version, key);
	return wrong(r->why,
		     "%s:%lu: '%.100s' is not known in tls_server_config; there are cert_file, "
		     "key_file, client_ca_file, client_auth_type and min_version",
		     r->path, line_of(r), key);
}

static int take_tls(struct reading *r)
{
	char *auth = NULL, *version = NULL, *key;
	int err = begins(r, "tls_server_config");

	if (err == 1)
		return wrong(r->why, "%s:%lu: tls_server_config is empty", r->path, line_of(r));
	while (!err && (err = web_config_key_of(r, "tls_server_config", &key)) > 0) {
		err = take_tls_key(r, key, &auth, &version);
		free(key);
	}
	if (!err)
		err = check_tls(r, auth, version);
	free(auth);
	free(version);
	return err;
}

/* ---- basic_auth_users ---- */

/* "$2y$10$", 22 characters of salt, 31 of the hash. Its cost, or 0. */
static int cost_of(const char *hash)
{
	static const char digits[] =
		"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	if (strlen(hash) != HASH_LEN || strncmp(hash, "$2", 2) || !strchr("aby", hash[2]) ||
	    hash[3] != '$' || hash[4] < '0' || hash[4] > '3' || hash[5] < '0' || hash[5] > '9' ||
	    hash[6] != '$' || strspn(hash + SALT_AT, digits) != HASH_LEN - SALT_AT)
		return 0;
	return (hash[4] - '0') * 10 + hash[5] - '0';
}

static int take_user(struct reading *r, char *name)
{
	struct web_config *c = r->to;
	struct web_user *u = &c->users[c->nusers];

	for (int i = 0; i < c->nusers; i++)
		if (!strcmp(c->users[i].name, name))
			return wrong(r->why, "%s:%lu: user '%.100s' is there twice", r->path,
				     line_of(r), name);
	if (c->nusers == WEB_USERS_MAX)
		return wrong(r->why, "%s:%lu: more than %d users", r->path, line_of(r),
			     WEB_USERS_MAX);
	if (!*name || strchr(name, ':'))
		return wrong(r->why, "%s:%lu: '%.100s' can be no user's name", r->path, line_of(r),
			     name);
	*u = (struct web_user){ .hash = scalar(r, "a password's hash") };
	if (!u->hash)
		return -EINVAL;
	u->cost = cost_of(u->hash);
	if (u->cost < COST_MIN || u->cost > COST_MAX) {
		free(u->hash);
		return wrong(r->why,
			     "%s:%lu: what user '%.100s' has is no bcrypt hash of a cost from %d "
			     "to %d; make one as by htpasswd -nBC 10 NAME",
			     r->path, line_of(r), name, COST_MIN, COST_MAX);
	}
	u->name = strdup(name);
	if (!u->name) {
		free(u->hash);
		return wrong(r->why, "no memory");
	}
	c->nusers++;
	return 0;
}

static int take_users(struct reading *r)
{
	int err = begins(r, "basic_auth_users");
	char *name;

	if (err == 1)
		return wrong(r->why, "%s:%lu: basic_auth_users is empty", r->path, line_of(r));
	while (!err && (err = web_config_key_of(r, "basic_auth_users", &name)) > 0) {
		err = take_user(r, name);
		free(name);
	}
	if (!err && !r->to->nusers)
		return wrong(r->why, "%s: basic_auth_users is empty", r->path);
	return err;
}

/* ---- the whole ---- */

static int take_part(struct reading *r, const char *key)
{
	bool tls = !strcmp(key, "tls_server_config"), users = !strcmp(key, "basic_auth_users");

	if ((tls && r->to->tls) || (users && r->to->nusers))
		return wrong(r->why, "%s:%lu: %s is there twice", r->path, line_of(r), key);
	if (tls)
		return take_tls(r);
	if (users)
		return take_users(r);
	return wrong(
		r->why,
		"%s:%lu: '%.100s' is not known; there are tls_server_config and basic_auth_users",
		r->path, line_of(r), key);
}

/* From the stream's beginning to the end of the one document. */
static int take_all(struct reading *r)
{
	char *key;
	int err = web_config_next(r);

	if (!err)
		err = web_config_next(r);
	if (!err && r->event.type != YAML_DOCUMENT_START_EVENT)
		return wrong(
			r->why,
			"%s: is empty; it has to have tls_server_config, basic_auth_users, or both",
			r->path);
	if (!err)
		err = begins(r, "the file");
	if (err == 1)
		return wrong(
			r->why,
			"%s: is empty; it has to have tls_server_config, basic_auth_users, or both",
			r->path);
	while (!err && (err = web_config_key_of(r, "the file", &key)) > 0) {
		err = take_part(r, key);
		free(key);
	}
	if (!err)
		err = web_config_next(r);
	if (!err)
		err = web_config_next(r);
	if (!err && r->event.type != YAML_STREAM_END_EVENT)
		return wrong(r->why, "%s:%lu: a second document", r->path, line_of(r));
	if (!err && !r->to->tls && !r->to->nusers)
		return wrong(
			r->why,
			"%s: is empty; it has to have tls_server_config, basic_auth_users, or both",
			r->path);
	return err;
}

int web_config_read(struct web_config *c, const char *path, char *why)
{
	struct reading r = { .path = path, .to = c, .why = why };
	size_t len;
	char *text;
	int err;

	*c = (struct web_config){ 0 };
	*why = '\0';
	text = web_file_read(path, 022, &len, why);
	if (!text)
		return -EINVAL;
	if (!yaml_parser_initialize(&r.yaml)) {
		free(text);
		return wrong(why, "no memory");
	}
	yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text, len);
	err = take_all(&r);
	if (r.has)
		yaml_event_delete(&r.event);
	yaml_parser_delete(&r.yaml);
	free(text);
	if (err && !*why)
		wrong(why, "no memory");
	if (err)
		web_config_close(c);
	return err ? -EINVAL : 0;
}

void web_config_close(struct web_config *c)
{
	for (int i = 0; i < c->nusers; i++) {
		free(c->users[i].name);
		free(c->users[i].hash);
	}
	free(c->cert_file);
	free(c->key_file);
	free(c->client_ca_file);
	*c = (struct web_config){ 0 };
}
