/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owners.h - who records the calls of a process where two sources of calls run beside each other (source/both):
 * its hooks, unless it was given to probes, whole or function by function. That is decided before any of it is
 * placed. Knows no source.
 */
#ifndef CT_OWNERS_H
#define CT_OWNERS_H

#include "../flow/plan.h"

struct owners;

enum owner {
	OWNER_HOOKS,
	OWNER_BOTH, /* hooks, and probes for some functions */
	OWNER_PROBES,
};

struct owners_opts {
	/* a process is given to probes, too, where its hooks would see only a part of the calls of some functions of layers */
	bool complete;
	/* single functions of a process can be given; else it is given as a whole */
	bool functions;
};

struct owners *owners_open(const struct owners_opts *); /* NULL: no memory */
void owners_close(struct owners *);			/* takes NULL */
const struct owners_opts *owners_opts(const struct owners *);

/* Gives a process to probes. Returns 0 or -ENOMEM. */
int owners_give(struct owners *, pid_t);
/* Gives them a function of it. */
int owners_give_function(struct owners *, pid_t, int func);
enum owner owners_of(const struct owners *, pid_t);
/* How many functions of it were given, one by one. */
unsigned int owners_functions(const struct owners *, pid_t);
/* Are the calls of this function of it recorded by probes? */
bool owners_probes(const struct owners *, pid_t, int func);

/* The next process of which something was given since it was last asked about it; 0: there is none. */
pid_t owners_next(struct owners *);
/* The probes of what was given of it are on. */
void owners_placed(struct owners *, pid_t, uint64_t at_ns);
/* When that was, for the first time; 0: they are not on. */
uint64_t owners_placed_ns(const struct owners *, pid_t);
/* Since when functions of it have an owner that does not see their calls yet; 0: there are none. */
uint64_t owners_waiting_ns(const struct owners *, pid_t);
/* Has anything of a process with hooks been given? */
bool owners_any_function(const struct owners *);
/* It has become another program: what is given of it is to be placed again. If the process that had the number has
 * ended, nothing is given of the one that has it now. */
void owners_again(struct owners *, pid_t);
/* A process that was given as a whole has ended. */
void owners_forget(struct owners *, pid_t);
/* The CT_EXIT of any process. What was given of it is forgotten when no record of it can wait any more. */
void owners_exited(struct owners *, const struct ct_hdr *);

#endif
