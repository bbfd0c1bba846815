/* SPDX-License-Identifier: BSD-2-Clause */
/* traits.c - see traits.h. */
#include <string.h>

#include "traits.h"

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static bool has(const char *name, const char *part)
{
	return strstr(name, part);
}

static uint32_t of_memory(const struct api_func *f)
{
	static const char *const takes[] = {
		"cudaMallocHost", "cudaHostAlloc",  "cudaHostRegister",
		"cuMemAllocHost", "cuMemHostAlloc", "cuMemHostRegister"
	};
	static const char *const gives[] = { "cudaFreeHost", "cudaHostUnregister", "cuMemFreeHost",
					     "cuMemHostUnregister" };
	uint32_t t = 0;

	/* the host's: no memory of a device */
	for (size_t i = 0; i < ARRAY_LEN(takes); i++)
		if (begins(f->name, takes[i]))
			return TR_ALLOC;
	for (size_t i = 0; i < ARRAY_LEN(gives); i++)
		if (begins(f->name, gives[i]))
			return TR_FREE;
	for (int i = 0; i < f->nargs; i++) {
		if (f->args[i].role == API_ROLE_ALLOCATES)
			t |= TR_MEMORY | (has(f->name, "Async") ? 0 : TR_ALLOC);
		if (f->args[i].role == API_ROLE_FREES)
			t |= TR_MEMORY | (has(f->name, "Async") ? 0 : TR_FREE);
	}
	return t;
}

static uint32_t of_module(const struct api_func *f)
{
	return has(f->name, "ModuleLoad") || has(f->name, "LibraryLoad") ||
			       has(f->name, "LinkComplete")
		       ? TR_LOAD
		       : 0;
}

static uint32_t of_copy(const struct api_func *f)
{
	static const char *const linear[] = { "cudaMemcpy",	 "cudaMemcpyAsync",
					      "cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2",
					      "cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2" };
	uint32_t t = has(f->name, "emcpy") ? TR_COPY : 0;

	for (size_t i = 0; i < ARRAY_LEN(linear); i++)
		t |= strcmp(f->name, linear[i]) ? 0 : TR_LINEAR;
	return t;
}

static uint32_t of_handle(const struct api_func *f, uint32_t create, uint32_t destroy)
{
	if (has(f->name, "Create"))
		return create;
	if (has(f->name, "Destroy"))
		return destroy;
	return has(f->name, "EventQuery") || has(f->name, "StreamQuery") ? TR_POLL : 0;
}

static uint32_t of(const struct api_func *f)
{
	uint32_t t = has(f->name, "Async") ? TR_ASYNC : 0;

	if (f->flags & API_GRAPH_LAUNCH)
		return t | TR_GRAPH | TR_CHECKED;
	switch (f->class) {
	case API_COPY: return t | of_copy(f) | TR_CHECKED;
	case API_SET: return t | TR_SET | TR_CHECKED;
	case API_LAUNCH:
		return t | (has(f->name, "Launch") && !has(f->name, "HostFunc") ? TR_LAUNCH : 0) |
		       TR_CHECKED;
	case API_SYNC: return t | TR_SYNC | TR_CHECKED;
	case API_MEMORY: return t | of_memory(f) | TR_CHECKED;
	case API_EVENT: return t | of_handle(f, TR_EVENT_CREATE, TR_EVENT_DESTROY) | TR_CHECKED;
	case API_STREAM: return t | of_handle(f, TR_STREAM_CREATE, TR_STREAM_DESTROY) | TR_CHECKED;
	case API_MODULE: return t | of_module(f);
	default: return t | (f->flags & API_REPORTS_ERROR ? TR_ERROR : 0);
	}
}

void traits_make(uint32_t *traits)
{
	memset(traits, 0, CT_MAX_FUNCS * sizeof(*traits));
	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++)
		traits[i] = of(&api_funcs[i]);
}

enum report_way traits_way(const struct ct_call *c)
{
	struct ct_spec spec;
	uint32_t kind = ~0u;

	if (!api_spec(c->func, API_ARCH_HERE, true, &spec) && spec.kind_word < c->nwords)
		kind = (uint32_t)c->words[spec.kind_word];
	return report_way_of(api_way(c->func, kind));
}
