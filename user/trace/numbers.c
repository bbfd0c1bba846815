/* SPDX-License-Identifier: BSD-2-Clause */
/* numbers.c - see numbers.h. */
#include <stdlib.h>

#include "../util/table/hashmap.h"
#include "../util/msg.h"
#include "numbers.h"

struct counted {
	uint32_t pid;
	uint32_t number; /* the number of its latest call */
	/* the count of numbers_begin() calls after which its number was stored, or was 0; 0: it
	 * must be stored */
	uint64_t said;
	uint64_t start_boottime_ns; /* 0: not known */
	bool exited;
};

struct numbers {
	struct hashmap processes;
	uint64_t begun;
	bool full;
};

struct numbers *numbers_open(void)
{
	struct numbers *n = calloc(1, sizeof(*n));

	if (n)
		hashmap_open(&n->processes, sizeof(struct counted), sizeof(uint32_t), NUMBERS_MAX);
	return n;
}

void numbers_close(struct numbers *n)
{
	if (!n)
		return;
	hashmap_close(&n->processes);
	free(n);
}

void numbers_begin(struct numbers *n)
{
	n->begun++;
}

static void drop_exited(struct numbers *n)
{
	for (size_t i = n->processes.n; i-- > 0;) {
		struct counted *p = hashmap_at(&n->processes, i);

		if (p->exited)
			hashmap_remove(&n->processes, p);
	}
}

/* Finds or adds a process. NULL: there is no room. */
static struct counted *process_of(struct numbers *n, uint32_t pid)
{
	struct counted *p;
	bool made;

	if (n->processes.n >= NUMBERS_MAX && !hashmap_find(&n->processes, &pid) && !n->full)
		drop_exited(n);
	p = hashmap_get(&n->processes, &pid, &made);
	if (!p && !n->full)
		msg_warn("more than %d processes at a time: in what is written later, the numbers "
			 "of further processes' calls start again",
			 NUMBERS_MAX);
	n->full |= !p;
	return p;
}

/* Starts to count anew where join takes the process for another one. */
static void learn(struct counted *p, const struct ct_process *r)
{
	bool other = p->start_boottime_ns && r->start_boottime_ns
			     ? p->start_boottime_ns != r->start_boottime_ns
			     : p->exited;

	if (other)
		p->number = 0;
	if (other || r->start_boottime_ns)
		p->start_boottime_ns = r->start_boottime_ns;
	p->exited = false;
}

static bool call(struct numbers *n, const struct ct_hdr *h, struct ct_number *out)
{
	struct counted *p = process_of(n, h->pid);
	uint32_t before;
	bool said;

	if (!p)
		return false;
	before = p->number++;
	said = p->said == n->begun;
	p->said = n->begun;
	if (said || !before)
		return false;
	*out = (struct ct_number){
		.h = { .size = sizeof(*out),
		       .kind = CT_NUMBER,
		       .pid = h->pid,
		       .tid = h->pid,
		       .start_ns = h->start_ns,
		       .end_ns = h->start_ns },
		.number = before,
	};
	return true;
}

bool numbers_record(struct numbers *n, const struct ct_hdr *h, struct ct_number *out)
{
	struct counted *p;

	switch (h->kind) {
	case CT_CALL: return !(h->flags & (CT_F_HIDDEN | CT_F_PENDING)) && call(n, h, out);
	case CT_PROCESS:
	case CT_EXEC:
		p = process_of(n, h->pid);
		if (p)
			learn(p, (const struct ct_process *)h);
		return false;
	case CT_EXIT:
		p = hashmap_find(&n->processes, &h->pid);
		if (p)
			p->exited = true;
		return false;
	case CT_NUMBER:
		p = process_of(n, h->pid);
		if (p && ((const struct ct_number *)h)->number > p->number) {
			p->number = ((const struct ct_number *)h)->number;
			p->said = 0;
		}
		return false;
	default: return false;
	}
}
