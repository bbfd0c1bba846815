/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name_event.c - finds the kernel that a call is about, and what the call teaches about the names of
 * kernels: the name of a handle, handles of the same kernel, and handles that are no longer valid.
 * It follows the roles that the rows give to arguments.
 *
 * api_kernel() runs several times for each launch, so the place of the handle is found once, when
 * the row's plan is made.
 */
#include "abi.h"
#include "../../wire/control.h"

#include <string.h>

static uint64_t name_event_load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

uint64_t abi_in_read(const struct abi_spot *s, const struct abi_reads *reads)
{
	const uint8_t *p = reads->at[s->read];
	uint32_t selector;

	if (!p || s->off + 8u > reads->len[s->read])
		return 0;
	if (s->cases) {
		if (s->selector + 4u > reads->len[s->read])
			return 0;
		memcpy(&selector, p + s->selector, sizeof(selector));
		if (selector >= 32 || !(s->cases >> selector & 1))
			return 0;
	}
	return name_event_load(p + s->off);
}

bool api_kernel(const struct ct_call *c, enum api_arch arch, uint64_t *handle)
{
	const struct abi_plan *p;
	struct abi_reads reads;
	bool found = false;

	if (c->func >= api_nfuncs)
		return false;
	p = abi_plan(c->func, arch);
	*handle = 0;
	for (int i = 0; i < p->nspots && !*handle; i++) {
		const struct abi_spot *s = &p->spots[i];

		if (s->word != ABI_NONE) {
			if (s->word < c->nwords)
				*handle = c->words[s->word];
			continue;
		}
		if (!found)
			abi_reads_find(c, p, &reads);
		found = true;
		*handle = abi_in_read(s, &reads);
	}
	return *handle != 0;
}

bool api_has_kernel(int func)
{
	return abi_plan(func, API_ARCH_HERE)->nspots > 0;
}

bool api_says_name(int func)
{
	return abi_plan(func, API_ARCH_HERE)->name_event.name != ABI_NONE;
}

bool api_forgets(int func)
{
	return abi_plan(func, API_ARCH_HERE)->spec.more & CT_S_FORGETS;
}

void api_teaching(uint64_t *set)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (abi_plan(i, API_ARCH_HERE)->teaches)
			set[i / 64] |= 1ULL << (i % 64);
}

/* The value of an argument of 8 bytes, or of what it points to when that was read; 0: not there. */
static uint64_t arg_value(const struct ct_call *c, const struct api_arg *a, const struct abi_arg *w,
			  const struct abi_reads *reads)
{
	if (a->dir == API_IN)
		return w->word < c->nwords ? c->words[w->word] : 0;
	if (w->read == ABI_NONE || !reads->at[w->read] || reads->len[w->read] < 8)
		return 0;
	return name_event_load(reads->at[w->read]);
}

static void find_name(const struct abi_arg *w, const struct abi_reads *reads,
		      struct api_name_event *l)
{
	l->read = w->read2 != ABI_NONE ? w->read2 : w->read;
	if (l->read == ABI_NONE || !reads->at[l->read])
		return;
	l->name = (const char *)reads->at[l->read];
	l->len = (uint32_t)strnlen(l->name, reads->len[l->read]);
	l->cut = reads->cut[l->read];
}

/* True if the call did its work: only then are outputs there. What a call may have unloaded
 * counts as gone in any case. */
static bool teaches_handles(const struct ct_call *c, const struct api_func *f)
{
	if (f->flags & API_ENTRY_ONLY)
		return true;
	return c->h.kind == CT_CALL && !(c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN));
}

enum api_name_event_kind api_name_event(const struct ct_call *c, enum api_arch arch,
					struct api_name_event *l)
{
	const struct abi_plan *p;
	const struct api_func *f;
	struct abi_reads reads;

	l->kind = API_NAME_EVENT_NONE;
	if (c->func >= api_nfuncs)
		return API_NAME_EVENT_NONE;
	p = abi_plan(c->func, arch);
	if (!p->teaches || p->err || c->h.flags & CT_F_BEFORE || api_failed(c))
		return API_NAME_EVENT_NONE;
	f = &api_funcs[c->func];
	memset(l, 0, sizeof(*l));
	abi_reads_find(c, p, &reads);
#define VALUE_OF(i) ((i) == ABI_NONE ? 0 : arg_value(c, &f->args[i], &p->args[i], &reads))
	if (f->flags & API_ENDS_CONTEXT) {
		l->kind = API_NAME_EVENT_CONTEXT_ENDED;
	} else if (p->name_event.unloads != ABI_NONE) {
		l->owner = VALUE_OF(p->name_event.unloads);
		l->kind = l->owner ? API_NAME_EVENT_UNLOADED : API_NAME_EVENT_NONE;
	} else if (teaches_handles(c, f)) {
		const struct api_arg *a = &f->args[p->name_event.handle];

		l->handle = VALUE_OF(p->name_event.handle);
		if (!l->handle)
			return API_NAME_EVENT_NONE;
		l->in_context = a->in_context;
		l->owner = VALUE_OF(p->name_event.owner);
		l->of = VALUE_OF(p->name_event.of);
		if (p->name_event.name != ABI_NONE) {
			l->kind = API_NAME_EVENT_NAME;
			find_name(&p->args[p->name_event.name], &reads, l);
		} else {
			l->kind = a->type == FIELD_FUNC ? API_NAME_EVENT_SAME : API_NAME_EVENT_PART;
		}
	}
#undef VALUE_OF
	return (enum api_name_event_kind)l->kind;
}
