/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_funcs.h - CUPTI's callback ids and the rows of the table of functions: which is which,
 * and what is wanted of it. */
#ifndef CT_AGENT_FUNCS_H
#define CT_AGENT_FUNCS_H

#include "../../../wire/agent_wire.h"
#include "../../flow/plan.h"

struct agent_funcs;

struct agent_funcs *agent_funcs_open(void); /* NULL: no memory */
void agent_funcs_close(struct agent_funcs *);
/* Takes a checked AGENT_NAMES message of n bytes. Returns 1 when it was the last, 0, or
 * -EBADMSG, -ENOMEM. */
int agent_funcs_names(struct agent_funcs *, const void *msg, size_t n);
/* Makes the AGENT_FUNCS messages of what the plan wants; each is given to send(), whose error
 * ends it. cupti: its version. */
int agent_funcs_send(const struct agent_funcs *, const struct capture_plan *, bool calls,
		     uint32_t cupti, int (*send)(void *ctx, const void *msg, size_t n), void *ctx);

/* Of the callbacks of one function of the runtime. */
enum agent_funcs_which { AGENT_FUNCS_ONLY, AGENT_FUNCS_EARLIER, AGENT_FUNCS_LATEST };

/* The row of a callback of this name in a CUPTI of this version of CUDA (12040); -1: none. */
int agent_funcs_row(enum agent_domain, const char *name, int cuda, enum agent_funcs_which,
		    bool *per_thread);

#endif
