/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_funcs.h - CUPTI's callback ids and the rows of the table of functions: which is which, and what is wanted of it. */
#ifndef CT_AGENT_FUNCS_H
#define CT_AGENT_FUNCS_H

#include "../../cupti/agent.h"
#include "plan.h"

struct agent_funcs;

struct agent_funcs *agent_funcs_open(void); /* NULL: no memory */
void agent_funcs_close(struct agent_funcs *);
/* Takes a checked AGENT_NAMES message of n bytes. Returns 1 when it was the last, 0, or -EBADMSG, -ENOMEM. */
int agent_funcs_names(struct agent_funcs *, const void *msg, size_t n);
/* Makes the AGENT_FUNCS messages of what the plan wants; each is given to send(), whose error ends it. driver: CUDA's version
 * of it, 0 if not known. */
int agent_funcs_send(const struct agent_funcs *, const struct capture_plan *, bool calls, int driver,
		     int (*send)(void *ctx, const void *msg, size_t n), void *ctx);

/* The row of a callback of this name; -1: none. newest: no callback of the same function has a later version. */
int agent_funcs_row(enum agent_domain, const char *name, int driver, bool newest, bool *per_thread);

#endif
