/* SPDX-License-Identifier: BSD-2-Clause */
/* owners.c - see owners.h. A process that is not in the registry is its hooks'. */
#include <errno.h>
#include <stdlib.h>

#include "../event/registry.h"
#include "../util/now.h"
#include "owners.h"

#define STAYS_NS 10000000000ULL /* its last records may wait for the other source so long */

struct owned {
	struct registered r;
	bool whole, asked;
	uint64_t placed_ns, waiting_ns;
	uint64_t funcs[PLAN_WORDS];
};

struct owners {
	struct registry processes;
	struct owners_opts opts;
	bool any_function;
	bool any_unasked; /* maybe */
};

static const struct registry_rules rules = {
	.size = sizeof(struct owned),
	.most = REGISTRY_MOST,
	.stays_ns = STAYS_NS,
};

struct owners *owners_open(const struct owners_opts *opts)
{
	struct owners *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->opts = *opts;
	registry_open(&o->processes, &rules, o);
	return o;
}

void owners_close(struct owners *o)
{
	if (o)
		registry_close(&o->processes);
	free(o);
}

const struct owners_opts *owners_opts(const struct owners *o)
{
	return &o->opts;
}

static struct owned *find_owner(const struct owners *o, pid_t pid)
{
	return registry_find(&o->processes, (uint32_t)pid);
}

static void ask_again(struct owners *o, struct owned *p)
{
	p->asked = false;
	o->any_unasked = true;
}

int owners_give(struct owners *o, pid_t pid)
{
	struct owned *p = registry_get(&o->processes, (uint32_t)pid);

	if (!p)
		return -ENOMEM;
	if (!p->whole) { /* what was placed are single functions */
		ask_again(o, p);
		p->placed_ns = 0;
	}
	p->whole = true;
	return 0;
}

int owners_give_function(struct owners *o, pid_t pid, int func)
{
	struct owned *p = registry_get(&o->processes, (uint32_t)pid);

	if (!p)
		return -ENOMEM;
	if (plan_has(p->funcs, func))
		return 0;
	o->any_function = true;
	ask_again(o, p);
	if (!p->waiting_ns)
		p->waiting_ns = now_ns();
	plan_add(p->funcs, func);
	return 0;
}

enum owner owners_of(const struct owners *o, pid_t pid)
{
	const struct owned *p = o ? find_owner(o, pid) : NULL;

	return !p ? OWNER_HOOKS : p->whole ? OWNER_PROBES : OWNER_BOTH;
}

unsigned int owners_functions(const struct owners *o, pid_t pid)
{
	const struct owned *p = find_owner(o, pid);
	unsigned int n = 0;

	for (int i = 0; p && i < PLAN_WORDS; i++)
		n += (unsigned int)__builtin_popcountll(p->funcs[i]);
	return n;
}

bool owners_probes(const struct owners *o, pid_t pid, int func)
{
	const struct owned *p = find_owner(o, pid);

	return p && (p->whole || plan_has(p->funcs, func));
}

pid_t owners_next(struct owners *o)
{
	struct owned *p;

	if (!o->any_unasked)
		return 0;
	registry_each(&o->processes, p) if (!p->asked)
	{
		p->asked = true;
		return (pid_t)p->r.pid;
	}
	o->any_unasked = false;
	return 0;
}

void owners_placed(struct owners *o, pid_t pid, uint64_t at_ns)
{
	struct owned *p = find_owner(o, pid);

	if (!p)
		return;
	if (!p->placed_ns)
		p->placed_ns = at_ns;
	p->waiting_ns = 0;
}

uint64_t owners_waiting_ns(const struct owners *o, pid_t pid)
{
	const struct owned *p = find_owner(o, pid);

	return p ? p->waiting_ns : 0;
}

bool owners_any_function(const struct owners *o)
{
	return o->any_function;
}

uint64_t owners_placed_ns(const struct owners *o, pid_t pid)
{
	const struct owned *p = find_owner(o, pid);

	return p ? p->placed_ns : 0;
}

void owners_forget(struct owners *o, pid_t pid)
{
	struct owned *p = o ? find_owner(o, pid) : NULL;

	/* of single functions records may still come */
	if (p && p->whole)
		registry_forget(&o->processes, p);
}

void owners_exited(struct owners *o, const struct ct_hdr *exit)
{
	/* else numbers in records are not those of the table: it has those of another pid namespace */
	if (o->opts.functions)
		registry_record(&o->processes, exit);
}

void owners_again(struct owners *o, pid_t pid)
{
	struct owned *p = o ? find_owner(o, pid) : NULL;

	if (p && p->r.exited)
		registry_forget(&o->processes, p);
	else if (p)
		ask_again(o, p);
}
