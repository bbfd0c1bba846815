/* SPDX-License-Identifier: BSD-2-Clause */
/* traits.c - see traits.h. The traits of all rows are computed once, at the first request. */
#include "traits.h"

static uint32_t traits[CT_MAX_FUNCS];
static bool made;

static bool on_host(const struct api_arg *a)
{
	return a->space == API_SPACE_HOST || a->space == API_SPACE_REGISTERED;
}

/* True for memory of any kind that one allocation holds. */
static bool holds(const struct api_arg *a)
{
	if (a->role == API_ROLE_ALLOCATES)
		return a->memory < API_MEM_REGISTERED;
	return a->space == API_SPACE_DEVICE || a->space == API_SPACE_HOST ||
	       a->space == API_SPACE_ARRAY || a->space == API_SPACE_HANDLE;
}

static uint32_t of_argument(const struct api_func *f, const struct api_arg *a)
{
	bool takes = a->role == API_ROLE_ALLOCATES;
	uint32_t t = on_host(a) ? 0 : TR_MEMORY;

	if (!takes && a->role != API_ROLE_FREES)
		return 0;
	if (holds(a))
		t |= takes ? TR_TAKES : TR_GIVES;
	if (takes && a->memory == API_MEM_REGISTERED)
		t |= TR_PINS;
	if (f->flags & API_ASYNC)
		return t;
	return t | (takes ? TR_ALLOC : TR_FREE);
}

static uint32_t of_memory(const struct api_func *f)
{
	uint32_t t = 0;

	for (int i = 0; i < f->nargs; i++)
		t |= of_argument(f, &f->args[i]);
	return t;
}

static uint32_t of_class(const struct api_func *f)
{
	switch (f->class) {
	case API_COPY: return TR_MOVE | (f->flags & API_NO_RECORD ? 0 : TR_COPY) | TR_CHECKED;
	case API_SET: return TR_SET | TR_CHECKED;
	case API_LAUNCH: return TR_CHECKED;
	case API_SYNC: return TR_SYNC | TR_CHECKED;
	case API_MEMORY: return of_memory(f) | TR_CHECKED;
	case API_EVENT: return TR_CHECKED;
	case API_STREAM: return TR_CHECKED;
	default: return 0;
	}
}

/* What a call makes or gives back follows from its class. */
static uint32_t of_handle(const struct api_func *f)
{
	static const struct {
		enum api_class class;
		uint32_t makes, gives;
	} rows[] = {
		{ API_EVENT, TR_EVENT_CREATE, TR_EVENT_DESTROY },
		{ API_STREAM, TR_STREAM_CREATE, TR_STREAM_DESTROY },
		{ API_GRAPH, TR_GRAPH_CREATE, TR_GRAPH_DESTROY },
		{ API_MODULE, 0, TR_UNLOAD },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (f->class == rows[i].class)
			return (f->flags & API_CREATES ? rows[i].makes : 0) |
			       (f->flags & API_DESTROYS ? rows[i].gives : 0);
	return 0;
}

static uint32_t of_flags(const struct api_func *f)
{
	static const struct {
		uint32_t flag, trait;
	} rows[] = {
		{ API_GRAPH_LAUNCH, TR_GRAPH | TR_CHECKED },
		{ API_ASYNC, TR_ASYNC },
		{ API_LINEAR, TR_LINEAR },
		{ API_LAUNCHES, TR_LAUNCH },
		{ API_POLLS, TR_POLL },
		{ API_RECORDS, TR_RECORD },
		{ API_LOADS, TR_LOAD },
		{ API_REPORTS_ERROR, TR_ERROR },
		{ API_WAITS_STREAM, TR_WAIT_STREAM },
		{ API_WAITS_EVENT, TR_WAIT_EVENT },
		{ API_WAITS_DEVICE, TR_WAIT_DEVICE },
	};
	uint32_t t = of_handle(f);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (f->flags & rows[i].flag)
			t |= rows[i].trait;
	return t;
}

uint32_t api_traits(unsigned int func)
{
	for (int i = 0; i < api_nfuncs && !made; i++)
		traits[i] = api_layer_reports(&api_funcs[i])
				    ? TR_REPORT
				    : of_class(&api_funcs[i]) | of_flags(&api_funcs[i]);
	made = true;
	return traits[func];
}

void api_handling(uint64_t *set)
{
	const uint32_t any = TR_STREAM_CREATE | TR_STREAM_DESTROY | TR_EVENT_CREATE |
			     TR_EVENT_DESTROY | TR_GRAPH_CREATE | TR_GRAPH_DESTROY | TR_LOAD |
			     TR_UNLOAD;

	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++)
		if (api_traits((unsigned int)i) & any)
			set[i / 64] |= 1ULL << (i % 64);
}
