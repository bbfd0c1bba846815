/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api.c - finding rows by name and version, the names of classes, and what a return
 * value means.
 *
 * All names of a large library's symbol table are looked up: most are rejected by their first
 * letters, the others by one probe of a hash table that is made at the first use.
 */
#include "api.h"
#include "layers/symbol.h"
#include "xlat.h"
#include "../../wire/control.h"

#include <fnmatch.h>
#include <string.h>

#define HASH_SIZE 16384 /* a power of two, at least twice CT_MAX_FUNCS */

static uint16_t buckets[HASH_SIZE]; /* row + 1 of the first row with a name; 0: free */
static bool hashed;

static const char *const class_names[API_CLASS_END] = {
	[API_MEMORY] = "memory",
	[API_COPY] = "copy",
	[API_SET] = "set",
	[API_LAUNCH] = "launch",
	[API_STREAM] = "stream",
	[API_EVENT] = "event",
	[API_SYNC] = "sync",
	[API_GRAPH] = "graph",
	[API_DEVICE] = "device",
	[API_CONTEXT] = "context",
	[API_MODULE] = "module",
	[API_QUERY] = "query",
	[API_PEER] = "peer",
	[API_TEXTURE] = "texture",
	[API_PROFILER] = "profiler",
	[API_RANGE] = "range",
	[API_MARK] = "mark",
	[API_COLLECTIVE] = "collective",
	[API_COMMUNICATOR] = "communicator",
	[API_GEMM] = "gemm",
	[API_OPERATOR] = "operator",
	[API_INTERNAL] = "internal",
};

static uint32_t hash(const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h ^ h >> 15;
}

static bool same_name(int row, const char *name, size_t len)
{
	return !strncmp(api_funcs[row].name, name, len) && !api_funcs[row].name[len];
}

static void make_hash(void)
{
	for (int i = 0; i < api_nfuncs; i++) {
		size_t len = strlen(api_funcs[i].name);
		uint32_t at = hash(api_funcs[i].name, len) % HASH_SIZE;

		while (buckets[at] && !same_name(buckets[at] - 1, api_funcs[i].name, len))
			at = (at + 1) % HASH_SIZE;
		if (!buckets[at])
			buckets[at] = (uint16_t)(i + 1);
	}
	hashed = true;
}

/* The first row with this name, or -1. */
static int first_row(const char *name, size_t len)
{
	uint32_t at;

	if (!hashed)
		make_hash();
	for (at = hash(name, len) % HASH_SIZE; buckets[at]; at = (at + 1) % HASH_SIZE)
		if (same_name(buckets[at] - 1, name, len))
			return buckets[at] - 1;
	return -1;
}

int api_next(const char *name, int prev)
{
	size_t len = strlen(name);

	if (prev < 0)
		return first_row(name, len);
	/* Rows of one name stand together. */
	return prev + 1 < api_nfuncs && same_name(prev + 1, name, len) ? prev + 1 : -1;
}

/* Finds the row for this version among the rows of one name. Returns the newest one if there is
 * none, or if the version is not known. */
static int row_for_version(int row, int version)
{
	const char *name = api_funcs[row].name;
	int newest = row;

	version /= 10;
	for (int i = row; i >= 0; i = api_next(name, i)) {
		const struct api_func *f = &api_funcs[i];

		newest = i;
		if (version && version >= f->since && (!f->until || version < f->until))
			return i;
	}
	return newest;
}

/* Could fnmatch(3) find that the name fits? As far as the pattern's letters before a * say. */
static bool may_fit(const char *pattern, const char *name)
{
	while (*pattern && *pattern == *name) {
		pattern++;
		name++;
	}
	return *pattern == *name || *pattern == '*' || *pattern == '?' || *pattern == '[' ||
	       *pattern == '\\';
}

/* The first row of a C++ function, or -1. */
static int row_of_class(const char *symbol)
{
	static int first = -1;
	char name[256];
	int i = __atomic_load_n(&first, __ATOMIC_RELAXED);

	if (!symbol_name(symbol, name, sizeof(name)))
		return -1;
	if (i < 0) {
		for (i = 0; i < api_nfuncs && !strstr(api_funcs[i].name, "::");)
			i++;
		__atomic_store_n(&first, i, __ATOMIC_RELAXED);
	}
	for (; i < api_nfuncs; i++)
		if (may_fit(api_funcs[i].name, name) && strstr(api_funcs[i].name, "::") &&
		    !fnmatch(api_funcs[i].name, name, 0))
			return i;
	return -1;
}

int api_lookup(const char *symbol, int version, bool *per_thread)
{
	size_t len;
	int row;

	*per_thread = false;
	if (!api_domain_symbol(symbol))
		return -1;
	if (symbol[0] == '_' && symbol[1] == 'Z')
		return row_of_class(symbol);
	len = strlen(symbol);
	row = first_row(symbol, len);
	if (row < 0 && len > 5 &&
	    (!strcmp(symbol + len - 5, "_ptsz") || !strcmp(symbol + len - 5, "_ptds"))) {
		row = first_row(symbol, len - 5);
		*per_thread = row >= 0;
	}
	return row < 0 ? -1 : row_for_version(row, version);
}

const char *api_class_name(enum api_class class)
{
	return class < API_CLASS_END ? class_names[class] : "?";
}

int api_class_parse(const char *name)
{
	for (int i = 0; i < API_CLASS_END; i++)
		if (!strcmp(name, class_names[i]))
			return i;
	return !strcmp(name, "ipc") ? API_PEER : -1;
}

const char *api_error_name(unsigned int func, int64_t code)
{
	const struct xlat *errors;

	if (func >= (unsigned int)api_nfuncs || api_funcs[func].ret != API_RET_STATUS)
		return NULL;
	errors = api_domains[api_funcs[func].domain].errors;
	return errors ? xlat_name(errors, code) : NULL;
}

bool api_failed(const struct ct_call *c)
{
	const struct api_func *f;
	int32_t code = (int32_t)c->ret;

	if (c->h.kind == CT_ENTER || c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN) ||
	    c->func >= api_nfuncs)
		return false;
	f = &api_funcs[c->func];
	if (f->ret != API_RET_STATUS || f->flags & API_REPORTS_ERROR)
		return false;
	if (f->flags & CT_S_NOT_READY && code == api_domains[f->domain].not_ready)
		return false;
	return code != 0;
}

enum api_way api_way(unsigned int func, uint32_t kind)
{
	struct ct_spec spec;

	if (func >= (unsigned int)api_nfuncs || api_funcs[func].class != API_COPY ||
	    api_spec((int)func, API_ARCH_HERE, true, &spec))
		return API_WAY_UNKNOWN;
	if (spec.kind_word != CT_COUNT_NONE)
		return kind <= API_WAY_BY_ADDRESS ? (enum api_way)kind : API_WAY_UNKNOWN;
	return API_WAY_UNKNOWN -
	       (enum api_way)((api_funcs[func].flags & API_WAY_MASK) >> API_WAY_SHIFT);
}

enum api_way api_call_way(const struct ct_call *c)
{
	struct ct_spec spec;
	uint32_t kind = ~0u;

	if (c->func < api_nfuncs && !api_spec(c->func, API_ARCH_HERE, true, &spec) &&
	    spec.kind_word < c->nwords)
		kind = (uint32_t)c->words[spec.kind_word];
	return api_way(c->func, kind);
}
