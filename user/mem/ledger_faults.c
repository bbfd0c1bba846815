/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger_faults.c - what goes wrong in a ledger: wrong frees, kept by their call sites, and
 * allocations that fail for want of memory. */
#include <string.h>

#include "ledger_rows.h"

#define OUT_OF_MEMORY 2 /* in both APIs */

void ledger_fault(struct ledger *l, enum ledger_fault_what what, const struct account_call *t,
		  uint8_t kind, uint32_t taken_site, uint32_t freed_site)
{
	for (uint32_t i = 0; i < l->nfaults; i++) {
		struct ledger_fault *f = &l->faults[i];

		if (f->what != what || f->process != t->process || f->site != t->site ||
		    f->taken_site != taken_site)
			continue;
		f->n++;
		return;
	}
	if (l->nfaults == LEDGER_FAULTS)
		return;
	l->faults[l->nfaults++] = (struct ledger_fault){ .what = (uint8_t)what,
							 .kind = kind,
							 .process = t->process,
							 .site = t->site,
							 .taken_site = taken_site,
							 .freed_site = freed_site,
							 .address = t->address,
							 .n = 1,
							 .at_ns = t->c->h.start_ns };
}

/* The call sites that hold the most of a process's device memory. */
static void find_holders(const struct ledger *l, struct ledger_oom *o)
{
	for (uint32_t i = 0; i < l->nrows; i++) {
		const struct ledger_row *r = &l->rows[i];

		if (r->by == LEDGER_BY_STACK && r->process == o->process &&
		    r->where == ACCOUNT_DEVICE && r->bytes)
			holders_add(&o->holders, &(struct holder){ r->site, r->bytes, r->n });
	}
}

void ledger_not_taken(struct ledger *l, const struct account_call *t, const struct api_memory *m,
		      uint16_t device)
{
	const struct ledger_row *held = ledger_of_process(l, t->process, ACCOUNT_DEVICE),
				*host = ledger_of_process(l, t->process, ACCOUNT_HOST);
	struct account_process *p = &l->account.processes[t->process];
	struct ledger_oom o = { .process = t->process,
				.site = t->site,
				.device = device,
				.kind = m->kind,
				.at_ns = t->c->h.end_ns,
				.asked = m->bytes };

	if ((int32_t)t->c->ret != OUT_OF_MEMORY) {
		p->failed_n++;
		return;
	}
	p->oom_n++;
	if (l->nooms == LEDGER_OOMS)
		return;
	if (held) {
		o.held = held->bytes;
		o.held_n = held->n;
	}
	if (host)
		o.host = host->bytes;
	find_holders(l, &o);
	l->ooms[l->nooms++] = o;
	if (l->opts.oom)
		l->opts.oom(l->opts.ctx, &o);
}
