/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.c - what a call did to memory: it took some, gave some back, or could not get any. This
 * follows from the roles that the rows give to arguments. */
#include "abi.h"
#include "layout.h"
#include "../../wire/control.h"

#include <string.h>

/* By row: the index of the argument that says what is taken or freed, plus one; 0: not searched
 * for yet; ABI_NONE: there is none. */
static uint8_t spots[CT_MAX_FUNCS];

/* The numbers of cudaMemLocationType and CUmemLocationType. */
#define LOCATION_DEVICE 1

static uint8_t find_role(const struct api_func *f, enum api_role role)
{
	for (uint8_t i = 0; i < f->nargs; i++)
		if (f->args[i].role == role)
			return i;
	return ABI_NONE;
}

static uint8_t spot_of(unsigned int func)
{
	static const uint8_t roles[] = { API_ROLE_ALLOCATES, API_ROLE_FREES, API_ROLE_RETAINS };
	const struct api_func *f = &api_funcs[func];

	if (spots[func])
		return spots[func];
	spots[func] = ABI_NONE;
	for (size_t i = 0; i < ARRAY_LEN(roles) && spots[func] == ABI_NONE; i++) {
		uint8_t arg = find_role(f, (enum api_role)roles[i]);

		if (arg != ABI_NONE)
			spots[func] = (uint8_t)(arg + 1);
	}
	return spots[func];
}

const char *api_memory_name(enum api_memory_kind kind)
{
	static const char *const names[] = { "device",	 "managed",  "array", "pool",
					     "graph",	 "physical", "host",  "registered",
					     "imported", "reserved", "mapped" };

	return kind < API_MEM_END ? names[kind] : "unknown";
}

/* Finds a member of a struct, also a nested one, by its name in CUDA's header. Returns its
 * offset; -1: there is none. */
static int member_at(const struct api_struct *s, const char *name, int deep)
{
	for (int i = 0; i < s->nmembers; i++) {
		const struct api_member *m = &s->members[i];
		int off;

		if (!strcmp(m->name, name))
			return m->off;
		if (!m->layout || m->list || !deep)
			continue;
		off = member_at(m->layout, name, deep - 1);
		if (off >= 0)
			return m->off + off;
	}
	return -1;
}

struct call {
	const struct ct_call *c;
	const struct api_func *f;
	const struct abi_plan *p;
	struct abi_reads reads;
};

/* n bytes of what an argument points to; false: they are not there. */
static bool pointed(const struct call *k, int arg, int off, size_t n, void *to)
{
	uint8_t read = k->p->args[arg].read;

	if (off < 0 || read == ABI_NONE || !k->reads.at[read] ||
	    k->reads.len[read] < (size_t)off + n)
		return false;
	memcpy(to, k->reads.at[read] + off, n);
	return true;
}

/* The 8 bytes of an argument; 0: not there. */
static uint64_t value(const struct call *k, int arg)
{
	const struct api_arg *a = &k->f->args[arg];
	uint64_t v = 0;
	int off;

	if (a->layout) {
		off = member_at(a->layout, "dptr", 0);
		if (!pointed(k, arg, off >= 0 ? off : member_at(a->layout, "ptr", 0), sizeof(v),
			     &v))
			return 0;
		return v;
	}
	if (a->dir == API_IN)
		return k->p->args[arg].word < k->c->nwords ? k->c->words[k->p->args[arg].word] : 0;
	return pointed(k, arg, 0, sizeof(v), &v) ? v : 0;
}

/* The size of the memory. If an argument says to how many bytes a row is padded, the padded rows
 * count. */
static uint64_t padded(const struct call *k, int spot, uint64_t bytes)
{
	const struct api_struct *layout = k->f->args[spot].layout;
	uint8_t arg = find_role(k->f, API_ROLE_PITCH);
	uint64_t pitch = 0, width = 0, all;

	if (arg != ABI_NONE) {
		pitch = value(k, arg);
		for (int i = 0; i < k->f->nargs && !width; i++)
			if (k->f->args[i].unit && k->f->args[i].dir == API_IN &&
			    !k->f->args[i].layout)
				width = value(k, i);
	} else if (layout && (!pointed(k, spot, member_at(layout, "pitch", 0), 8, &pitch) ||
			      !pointed(k, spot, member_at(layout, "xsize", 0), 8, &width))) {
		return bytes;
	}
	if (pitch <= width || !width)
		return bytes;
	return __builtin_mul_overflow(bytes / width, pitch, &all) ? bytes : all;
}

/* Finds the place that a struct among the arguments asks for. Memory that is not on a device is
 * on the host. */
static void memory_place(const struct call *k, struct api_memory *m)
{
	uint32_t location[2]; /* type, number */

	for (int i = 0; i < k->f->nargs; i++) {
		const struct api_arg *a = &k->f->args[i];

		if (!a->layout || a->count ||
		    !pointed(k, i, member_at(a->layout, "location", 1), sizeof(location), location))
			continue;
		if (location[0] == LOCATION_DEVICE)
			m->device = location[1];
		else if (m->kind == API_MEM_PHYSICAL && location[0])
			m->kind = API_MEM_HOST;
	}
}

static void memory_taken(const struct call *k, int spot, struct api_memory *m)
{
	int64_t bytes = api_size(k->c, API_ARCH_HERE);
	uint8_t backs = find_role(k->f, API_ROLE_BACKS);

	m->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	memory_place(k, m);
	if (m->what == API_MEMORY_NOT_TAKEN)
		return;
	m->address = value(k, spot);
	m->bytes = padded(k, spot, m->bytes);
	if (backs != ABI_NONE)
		m->of = value(k, backs);
	if (!m->address)
		/* nothing was asked for, or the result could not be read */
		m->what = API_MEMORY_NONE;
}

static void freed(const struct call *k, int spot, struct api_memory *m)
{
	int64_t bytes = api_size(k->c, API_ARCH_HERE);

	m->address = value(k, spot);
	m->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	if (!m->address)
		m->what = API_MEMORY_NONE; /* freeing nothing (NULL) is allowed */
}

static enum api_memory_what memory_ended(const struct ct_call *c, enum api_arch arch,
					 struct api_memory *m)
{
	struct api_place at;

	if (api_failed(c))
		return API_MEMORY_NONE;
	m->what = API_MEMORY_ENDED;
	for (int i = 0; i < api_funcs[c->func].nargs; i++)
		if (api_funcs[c->func].args[i].type == FIELD_INT &&
		    abi_plan(c->func, arch)->args[i].word < c->nwords)
			m->device = (uint32_t)c->words[abi_plan(c->func, arch)->args[i].word];
	if (api_place(c, arch, &at) == API_PLACE_DESTROYED)
		m->of = at.value;
	return API_MEMORY_ENDED;
}

enum api_memory_what api_memory(const struct ct_call *c, enum api_arch arch, struct api_memory *m)
{
	struct call k = { .c = c };
	const struct api_arg *a;
	uint8_t spot;
	bool failed;

	memset(m, 0, sizeof(*m));
	m->device = CT_UNKNOWN;
	if (c->func >= api_nfuncs || c->func >= CT_MAX_FUNCS || c->h.kind != CT_CALL ||
	    c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN | CT_F_BEFORE))
		return API_MEMORY_NONE;
	k.f = &api_funcs[c->func];
	if (k.f->flags & API_FREES_ALL)
		return memory_ended(c, arch, m);
	spot = spot_of(c->func);
	k.p = abi_plan(c->func, arch);
	if (spot == ABI_NONE || k.p->err)
		return API_MEMORY_NONE;
	spot--;
	failed = api_failed(c);
	abi_reads_find(c, k.p, &k.reads);
	a = &k.f->args[spot];
	m->kind = a->memory;
	m->space = a->space;
	if (a->role == API_ROLE_ALLOCATES) {
		m->what = failed ? API_MEMORY_NOT_TAKEN : API_MEMORY_TAKEN;
		memory_taken(&k, spot, m);
	} else if (a->role == API_ROLE_FREES) {
		m->what = failed ? API_MEMORY_NOT_FREED : API_MEMORY_FREED;
		freed(&k, spot, m);
	} else if (!failed) {
		m->what = API_MEMORY_RETAINED;
		m->address = value(&k, spot);
		for (int i = 0; i < k.f->nargs; i++)
			if (!strcmp(k.f->args[i].name, a->of))
				m->of = value(&k, i);
	}
	return (enum api_memory_what)m->what;
}

int api_memory_sign(unsigned int func, bool *host)
{
	const struct abi_plan *p = func < (unsigned int)api_nfuncs ? abi_plan(func, API_ARCH_HERE)
								   : NULL;
	uint8_t space;

	if (!p || p->err || !p->spec.memory_how)
		return 0;
	space = (uint8_t)(p->spec.memory_space - 1);
	*host = space == API_SPACE_HOST || space == API_SPACE_REGISTERED;
	return p->spec.memory_how == CT_MEMORY_FREES ? -1 : 1;
}

void api_remembering(uint64_t *set)
{
	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++)
		if (api_funcs[i].flags & API_FREES_ALL || spot_of((unsigned int)i) != ABI_NONE)
			set[i / 64] |= 1ULL << (i % 64);
}
