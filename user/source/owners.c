/* SPDX-License-Identifier: BSD-2-Clause */
/* owners.c - see owners.h. A process that is not in the table is its hooks'. */
#include <errno.h>
#include <stdlib.h>

#include "../util/now.h"
#include "../util/table/hash_map.h"
#include "owners.h"

#define PROCESSES_MAX 65536

struct owned {
	uint32_t pid;
	bool whole, asked;
	uint64_t placed_ns, waiting_ns;
	uint64_t funcs[PLAN_WORDS];
};

struct owners {
	struct hash_map table;
	struct owners_opts opts;
	bool any_function;
};

struct owners *owners_open(const struct owners_opts *opts)
{
	struct owners *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->opts = *opts;
	hash_map_open_of(&o->table, struct owned, pid, PROCESSES_MAX);
	return o;
}

void owners_close(struct owners *o)
{
	if (o)
		hash_map_close(&o->table);
	free(o);
}

const struct owners_opts *owners_opts(const struct owners *o)
{
	return &o->opts;
}

static struct owned *find_owner(const struct owners *o, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	return hash_map_look(&o->table, &key);
}

static struct owned *get(struct owners *o, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	bool made;

	return hash_map_get(&o->table, &key, &made);
}

int owners_give(struct owners *o, pid_t pid)
{
	struct owned *p = get(o, pid);

	if (!p)
		return -ENOMEM;
	if (!p->whole) { /* what was placed are single functions */
		p->asked = false;
		p->placed_ns = 0;
	}
	p->whole = true;
	return 0;
}

int owners_give_function(struct owners *o, pid_t pid, int func)
{
	struct owned *p = get(o, pid);

	if (!p)
		return -ENOMEM;
	if (plan_has(p->funcs, func))
		return 0;
	o->any_function = true;
	p->asked = false;
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

	hash_map_each(&o->table, p) if (!p->asked)
	{
		p->asked = true;
		return (pid_t)p->pid;
	}
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
		hash_map_remove(&o->table, p);
}

void owners_again(struct owners *o, pid_t pid)
{
	struct owned *p = o ? find_owner(o, pid) : NULL;

	if (p)
		p->asked = false;
}
