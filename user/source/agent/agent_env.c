/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_env.c - see agent_env.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_env.h"

const char *agent_env_value(char *const *env, const char *name)
{
	const char *value = getenv(name);
	size_t n = strlen(name);

	for (int i = 0; env && env[i]; i++)
		if (!strncmp(env[i], name, n) && (env[i][n] == '=' || !env[i][n]))
			value = env[i][n] ? env[i] + n + 1 : NULL;
	return value;
}

int agent_env_add(struct agent_env *e, const char *fmt, ...)
{
	va_list args;
	int n;

	if (e->n == AGENT_ENV_VARS)
		return -ENOMEM;
	va_start(args, fmt);
	n = vasprintf(&e->vars[e->n], fmt, args);
	va_end(args);
	if (n < 0) {
		e->vars[e->n] = NULL;
		return -ENOMEM;
	}
	e->n++;
	return 0;
}

int agent_env_set(struct agent_env *e, struct capture_plan *plan)
{
	int n = 0;

	while (plan->env && plan->env[n])
		n++;
	e->all = calloc((size_t)(n + e->n + 1), sizeof(*e->all));
	if (!e->all)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		e->all[i] = plan->env[i];
	for (int i = 0; i < e->n; i++)
		e->all[n + i] = e->vars[i];
	plan->env = e->all;
	return 0;
}

void agent_env_free(struct agent_env *e)
{
	for (int i = 0; i < e->n; i++)
		free(e->vars[i]);
	free(e->all);
	*e = (struct agent_env){ 0 };
}

int agent_env_escape(const char *path, char *out, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (const char *p = path; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (n + 4 > size)
			return -ENAMETOOLONG;
		if (c <= ' ' || c == '%' || c == 0x7f) {
			out[n++] = '%';
			out[n++] = hex[c >> 4];
			out[n++] = hex[c & 15];
		} else {
			out[n++] = (char)c;
		}
	}
	out[n] = '\0';
	return 0;
}
