/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.c - which device memory a call took or gave back, by the roles that the rows give to arguments. */
#include "abi.h"

#include <string.h>

/* The argument with a role of memory, plus one; 0: not looked for yet; ABI_NONE: there is none. */
static uint8_t spots[CT_MAX_FUNCS];

static uint8_t find(unsigned int func)
{
	const struct api_func *f = &api_funcs[func];

	for (uint8_t i = 0; i < f->nargs; i++)
		if (f->args[i].role == API_ROLE_ALLOCATES || f->args[i].role == API_ROLE_FREES)
			return (uint8_t)(i + 1);
	return ABI_NONE;
}

bool api_memory(const struct ct_call *c, enum api_arch arch, struct api_memory *m)
{
	const struct abi_plan *p;
	const struct abi_arg *w;
	struct abi_reads reads;
	int arg;

	if (c->func >= api_nfuncs || c->func >= CT_MAX_FUNCS)
		return false;
	if (!spots[c->func])
		spots[c->func] = find(c->func);
	if (spots[c->func] == ABI_NONE || c->h.kind != CT_CALL || c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN) ||
	    api_failed(c))
		return false;
	arg = spots[c->func] - 1;
	p = abi_plan(c->func, arch);
	if (p->err)
		return false;
	w = &p->args[arg];
	memset(m, 0, sizeof(*m));
	m->freed = api_funcs[c->func].args[arg].role == API_ROLE_FREES;
	if (m->freed) {
		m->address = w->word < c->nwords ? c->words[w->word] : 0;
	} else {
		int64_t bytes = api_size(c, arch);

		abi_reads_find(c, p, &reads);
		if (w->read != ABI_NONE && reads.at[w->read] && reads.len[w->read] >= 8)
			memcpy(&m->address, reads.at[w->read], 8);
		m->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	}
	return m->address != 0;
}
