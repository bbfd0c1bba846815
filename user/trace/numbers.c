/* SPDX-License-Identifier: BSD-2-Clause */
/* numbers.c - see numbers.h. */
#include <stdlib.h>

#include "../event/registry.h"
#include "../util/msg.h"
#include "numbers.h"

struct counted {
	struct registered r;
	uint32_t number; /* the number of its latest call */
	/* the count of numbers_begin() calls after which its number was stored, or was 0; 0: it
	 * must be stored */
	uint64_t said;
};

struct numbers {
	struct registry processes;
	uint64_t begun;
	bool full;
};

/* Starts to count anew where join takes the process for another one. */
static void renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	struct counted *p = item;

	(void)ctx;
	if (registry_other(p->r.start_boottime_ns, p->r.exited, (const struct ct_process *)h))
		p->number = 0;
}

static const struct registry_rules rules = {
	.size = sizeof(struct counted),
	.most = NUMBERS_MAX,
	.stays_ns = UINT64_MAX,
	.all = true,
	.exec = renewed,
};

struct numbers *numbers_open(void)
{
	struct numbers *n = calloc(1, sizeof(*n));

	if (n)
		registry_open(&n->processes, &rules, n);
	return n;
}

void numbers_close(struct numbers *n)
{
	if (!n)
		return;
	registry_close(&n->processes);
	free(n);
}

void numbers_begin(struct numbers *n)
{
	n->begun++;
}

/* Finds or adds a process. NULL: there is no room. */
static struct counted *process_of(struct numbers *n, uint32_t pid)
{
	struct counted *p = registry_get(&n->processes, pid);

	if (!p && !n->full)
		msg_warn("more than %d processes at a time: in what is written later, the numbers "
			 "of further processes' calls start again",
			 NUMBERS_MAX);
	n->full |= !p;
	return p;
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
	case CT_NUMBER:
		p = process_of(n, h->pid);
		if (p && ((const struct ct_number *)h)->number > p->number) {
			p->number = ((const struct ct_number *)h)->number;
			p->said = 0;
		}
		return false;
	default: registry_record(&n->processes, h); return false;
	}
}
