/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place.c - finds the stream that a call gets, and what the call says about the thread's current
 * device and context. Follows the roles that the rows give to arguments.
 */
#include "abi.h"

#include <string.h>

bool api_takes_stream(int func)
{
	return func >= 0 && func < api_nfuncs && abi_plan(func, API_ARCH_HERE)->has_stream;
}

bool api_stream(const struct ct_call *c, enum api_arch arch, uint64_t *handle)
{
	const struct abi_plan *p;
	struct abi_reads reads;

	if (c->func >= api_nfuncs)
		return false;
	p = abi_plan(c->func, arch);
	if (!p->has_stream)
		return false;
	if (p->stream.word != ABI_NONE) {
		if (p->stream.word >= c->nwords)
			return false;
		*handle = c->words[p->stream.word];
		return true;
	}
	abi_reads_find(c, p, &reads);
	if (!reads.at[p->stream.read] || p->stream.off + 8u > reads.len[p->stream.read])
		return false;
	*handle = abi_in_read(&p->stream, &reads);
	return true;
}

/* The value of an argument, an int or a handle. False: it is not there. */
static bool arg_value(const struct ct_call *c, const struct api_arg *a, const struct abi_arg *w,
		      const struct abi_reads *reads, uint64_t *value)
{
	*value = 0;
	if (a->dir == API_IN) {
		if (w->word >= c->nwords)
			return false;
		*value = c->words[w->word];
	} else {
		if (w->read == ABI_NONE || !reads->at[w->read] || reads->len[w->read] < a->width)
			return false;
		memcpy(value, reads->at[w->read],
		       a->width < sizeof(*value) ? a->width : sizeof(*value));
	}
	if (a->width == 4)
		*value = (uint32_t)*value;
	return true;
}

enum api_place_kind api_place(const struct ct_call *c, enum api_arch arch, struct api_place *place)
{
	const struct abi_plan *p;
	const struct api_func *f;
	const struct api_arg *a;
	struct abi_reads reads;
	uint64_t device;

	place->kind = API_PLACE_NONE;
	if (c->func >= api_nfuncs)
		return API_PLACE_NONE;
	p = abi_plan(c->func, arch);
	f = &api_funcs[c->func];
	if (c->h.kind == CT_CALL && p->places && !p->err &&
	    (c->h.flags & (CT_F_UNFINISHED | CT_F_PENDING | CT_F_BEFORE)) == CT_F_UNFINISHED)
		return (enum api_place_kind)(place->kind = API_PLACE_LOST);
	if ((p->place == ABI_NONE && !(f->flags & API_ENDS_CONTEXT)) || p->err ||
	    c->h.kind != CT_CALL || c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN | CT_F_BEFORE) ||
	    api_failed(c))
		return API_PLACE_NONE;
	if (p->place == ABI_NONE)
		return (enum api_place_kind)(place->kind = API_PLACE_ENDED);
	abi_reads_find(c, p, &reads);
	a = &f->args[p->place];
	if (!arg_value(c, a, &p->args[p->place], &reads, &place->value))
		return API_PLACE_NONE;
	place->is_device = a->type == FIELD_INT;
	place->device = CT_UNKNOWN;
	if (p->place_of != ABI_NONE &&
	    arg_value(c, &f->args[p->place_of], &p->args[p->place_of], &reads, &device))
		place->device = (uint32_t)device;
	switch (a->role) {
	case API_ROLE_CURRENT: place->kind = a->dir == API_IN ? API_PLACE_SET : API_PLACE_IS; break;
	case API_ROLE_PUSHED: place->kind = API_PLACE_PUSHED; break;
	case API_ROLE_POPPED: place->kind = API_PLACE_POPPED; break;
	case API_ROLE_CONTEXT_OF: place->kind = API_PLACE_CONTEXT; break;
	case API_ROLE_DESTROYED: place->kind = API_PLACE_DESTROYED; break;
	}
	return (enum api_place_kind)place->kind;
}

void api_placing(uint64_t *set)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (abi_plan(i, API_ARCH_HERE)->places)
			set[i / 64] |= 1ULL << (i % 64);
}
