/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * otlp_config.c - where to send spans and how: the address of the command line, and the environment
 * variables that every OpenTelemetry exporter reads. A variable for traces only
 * (OTEL_EXPORTER_OTLP_TRACES_X) takes precedence over the one for all signals.
 */
#include <errno.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/msg.h"
#include "../../util/parse.h"
#include "otlp.h"

#define PORT 4318
#define TIMEOUT_MS 10000

/* An empty variable counts as one that is not set. */
static const char *variable(enum otlp_signal signal, const char *name)
{
	char own[64], all[64];
	const char *v;

	snprintf(own, sizeof(own), "OTEL_EXPORTER_OTLP_%s_%s",
		 signal == OTLP_METRICS ? "METRICS" : "TRACES", name);
	snprintf(all, sizeof(all), "OTEL_EXPORTER_OTLP_%s", name);
	v = getenv(own);
	if (v && *v)
		return v;
	v = getenv(all);
	return v && *v ? v : NULL;
}

/* ---- the address ---- */

/* Appends to a base address the path for traces or metrics. */
static char *path_of(enum otlp_signal signal, const char *path)
{
	const char *tail = signal == OTLP_METRICS ? "/v1/metrics" : "/v1/traces";
	size_t n = path ? strlen(path) : 0, t = strlen(tail);
	char *all = NULL;

	while (n && path[n - 1] == '/')
		n--;
	if (n >= t && !memcmp(path + n - t, tail, t))
		return strndup(path, n);
	return asprintf(&all, "%.*s%s", (int)n, path ? path : "", tail) < 0 ? NULL : all;
}

static int take_address(struct otlp_config *c, const char *url, enum otlp_signal signal, bool as_is)
{
	struct evhttp_uri *uri = evhttp_uri_parse(url);
	const char *scheme = uri ? evhttp_uri_get_scheme(uri) : NULL,
		   *host = uri ? evhttp_uri_get_host(uri) : NULL;
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL,
		   *query = uri ? evhttp_uri_get_query(uri) : NULL;
	int port = uri ? evhttp_uri_get_port(uri) : -1, err = -EINVAL;
	char *whole = NULL;

	if (scheme && !strcasecmp(scheme, "https")) {
		msg_error("--otlp: https is not supported: send by http to a collector on this "
			  "machine, and let it forward the data");
		goto out;
	}
	if (!scheme || strcasecmp(scheme, "http") || !host || !*host || port > 65535 || !port) {
		msg_error("--otlp: '%s' is not an address; give http://HOST[:PORT][/PATH], or env "
			  "for that of OTEL_EXPORTER_OTLP_ENDPOINT",
			  url);
		goto out;
	}
	if (evhttp_uri_get_userinfo(uri)) {
		msg_error("--otlp: everybody could see a password in the address; give "
			  "OTEL_EXPORTER_OTLP_HEADERS");
		goto out;
	}
	err = -ENOMEM;
	c->port = (uint16_t)(port > 0 ? port : as_is ? 80 : PORT);
	/* an IPv6 address has brackets in a URL only */
	c->host = *host == '[' ? strndup(host + 1, strcspn(host + 1, "]")) : strdup(host);
	c->path = as_is ? strdup(path && *path ? path : "/") : path_of(signal, path);
	if (!c->host || !c->path || asprintf(&c->authority, "%s:%u", host, c->port) < 0)
		goto out;
	if (query && *query) {
		if (asprintf(&whole, "%s?%s", c->path, query) < 0)
			goto out;
		free(c->path);
		c->path = whole;
	}
	err = 0;
out:
	if (err == -ENOMEM)
		msg_error("--otlp: no memory");
	if (uri)
		evhttp_uri_free(uri);
	return err ? -EINVAL : 0;
}

static int address(struct otlp_config *c, const char *url, enum otlp_signal signal)
{
	const char *own = getenv(signal == OTLP_METRICS ? "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
							: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
	const char *all = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");

	if (strcmp(url, "env"))
		return take_address(c, url, signal, false);
	if (own && *own)
		return take_address(c, own, signal, true);
	return take_address(c, all && *all ? all : "http://localhost:4318", signal, false);
}

/* ---- key=value,key=value ---- */

/* Calls back with each pair, percent-decoded. Returns false for what is no such list. */
static bool pairs(const char *list, void (*take)(void *ctx, char *key, char *value), void *ctx)
{
	bool good = true;

	while (*list) {
		size_t n = strcspn(list, ",");
		char *pair = strndup(list, n), *equals = pair ? strchr(pair, '=') : NULL,
		     *key = pair, *value, *end;

		list += n + (list[n] == ',');
		if (equals) {
			*equals = '\0';
			key += strspn(key, " \t");
			end = key + strlen(key);
			while (end > key && (end[-1] == ' ' || end[-1] == '\t'))
				*--end = '\0';
			equals += 1 + strspn(equals + 1, " \t");
			end = equals + strlen(equals);
			while (end > equals && (end[-1] == ' ' || end[-1] == '\t'))
				*--end = '\0';
			value = evhttp_uridecode(equals, 0, NULL);
			if (*key && value)
				take(ctx, key, value);
			else
				good = false;
			free(value);
		} else {
			good = good && (!pair || !pair[strspn(pair, " \t")]);
		}
		free(pair);
	}
	return good;
}

static void take_header(void *ctx, char *key, char *value)
{
	struct otlp_config *c = ctx;
	struct otlp_header *h = &c->headers[c->nheaders];

	/* one header cannot be made into two */
	if (c->nheaders == OTLP_HEADERS || strpbrk(key, "\r\n: ") || strpbrk(value, "\r\n")) {
		msg_warn("OTEL_EXPORTER_OTLP_HEADERS: the header '%s' is left out",
			 c->nheaders == OTLP_HEADERS ? key : "(unprintable)");
		return;
	}
	h->name = strdup(key);
	h->value = strdup(value);
	if (h->name && h->value) {
		c->nheaders++;
		return;
	}
	free(h->name);
	free(h->value);
	*h = (struct otlp_header){ 0 };
}

/* ---- all of it ---- */

static int protocol(struct otlp_config *c, enum otlp_signal signal)
{
	const char *v = variable(signal, "PROTOCOL");

	c->json = v && !strcmp(v, "http/json");
	if (!v || c->json || !strcmp(v, "http/protobuf"))
		return 0;
	msg_error("OTEL_EXPORTER_OTLP_PROTOCOL: '%s' is not supported: give http/protobuf or "
		  "http/json",
		  v);
	return -EINVAL;
}

static int compression(struct otlp_config *c, enum otlp_signal signal)
{
	const char *v = variable(signal, "COMPRESSION");

	c->gzip = v && !strcmp(v, "gzip");
	if (!v || c->gzip || !strcmp(v, "none"))
		return 0;
	msg_error("OTEL_EXPORTER_OTLP_COMPRESSION: '%s' is not known: give gzip or none", v);
	return -EINVAL;
}

static int timeout(struct otlp_config *c, enum otlp_signal signal)
{
	const char *v = variable(signal, "TIMEOUT");
	uint64_t ms = TIMEOUT_MS;

	if (v && parse_u64(v, 1, 3600000, &ms)) {
		msg_error("OTEL_EXPORTER_OTLP_TIMEOUT: '%s' is no number of milliseconds from 1 to "
			  "3600000",
			  v);
		return -EINVAL;
	}
	c->timeout_ms = (uint32_t)ms;
	return 0;
}

int otlp_config_open(struct otlp_config *c, const char *url, enum otlp_signal signal)
{
	const char *headers = variable(signal, "HEADERS");

	memset(c, 0, sizeof(*c));
	c->things = signal == OTLP_METRICS ? "data points" : "spans";
	if (address(c, url, signal) || protocol(c, signal) || compression(c, signal) ||
	    timeout(c, signal)) {
		otlp_config_close(c);
		return -EINVAL;
	}
	if (headers && !pairs(headers, take_header, c))
		msg_warn("OTEL_EXPORTER_OTLP_HEADERS: what is not NAME=VALUE is left out");
	return 0;
}

int otlp_config_check(const char *url)
{
	struct otlp_config c = { .host = NULL };
	int err = strcmp(url, "env") ? take_address(&c, url, OTLP_TRACES, false) : 0;

	otlp_config_close(&c);
	return err;
}

void otlp_config_close(struct otlp_config *c)
{
	for (int i = 0; i < c->nheaders; i++) {
		free(c->headers[i].name);
		free(c->headers[i].value);
	}
	free(c->host);
	free(c->path);
	free(c->authority);
	memset(c, 0, sizeof(*c));
}

/* ---- the resource ---- */

struct resource_attrs {
	struct otlp_enc *enc;
	struct otlp_given given;
	bool named; /* the service, by OTEL_SERVICE_NAME */
};

static void take_attribute(void *ctx, char *key, char *value)
{
	/* each traced process has its own */
	static const char *const ours[] = { "process.pid", "process.executable.name",
					    "process.executable.path", "container.id",
					    "k8s.pod.uid" };
	struct resource_attrs *r = ctx;

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (!strcmp(key, ours[i]))
			return;
	if (!strcmp(key, "service.name") && r->named)
		return;
	r->given.service = r->given.service || !strcmp(key, "service.name");
	r->given.host = r->given.host || !strcmp(key, "host.name");
	otlp_str(r->enc, key, value, strlen(value));
}

struct otlp_given otlp_config_resource(struct otlp_enc *enc)
{
	const char *service = getenv("OTEL_SERVICE_NAME"),
		   *list = getenv("OTEL_RESOURCE_ATTRIBUTES");
	struct resource_attrs r = { .enc = enc };

	if (service && *service) {
		otlp_str(enc, "service.name", service, strlen(service));
		r.named = r.given.service = true;
	}
	if (list)
		pairs(list, take_attribute, &r);
	return r.given;
}
