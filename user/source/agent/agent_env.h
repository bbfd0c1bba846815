/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_env.h - variables for the environment of a program that is started, beside those of the plan.
 * A value that the user set is never changed without a word: agent_env_value() says what it is.
 */
#ifndef CT_AGENT_ENV_H
#define CT_AGENT_ENV_H

#include "../../flow/plan.h"

#define AGENT_ENV_VARS 4

struct agent_env {
	char *vars[AGENT_ENV_VARS]; /* "NAME=value" */
	int n;
	char **all; /* the plan's, with these */
};

/* The value that a variable will have in the program; NULL: none. */
const char *agent_env_value(char *const *env, const char *name);
/* Adds a variable. Returns 0 or -ENOMEM. */
int agent_env_add(struct agent_env *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives the plan an environment with these variables, which lives until agent_env_free(). Returns 0 or
 * -ENOMEM. */
int agent_env_set(struct agent_env *, struct capture_plan *);
void agent_env_free(struct agent_env *);

/* A path as a word of the text that an agent is given: see agent.h of cupti/. 0 or -ENAMETOOLONG. */
int agent_env_escape(const char *path, char *out, size_t size);

#endif
