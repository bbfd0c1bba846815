/* SPDX-License-Identifier: BSD-2-Clause */
/* watch_cupti.c - see watch_cupti.h. docs/hooks.md says why a hook may be put on, and taken off, at any moment. */
#include "../common/compat.h"

#include "watch_cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "../common/jump.h"
#include "../common/slots.h"

uint64_t watch_call(unsigned int n, const struct hook_regs *) __attribute__((visibility("hidden")));

static const struct {
	const char *name;
	enum watch_what what;
	unsigned int kind_arg;
} watched[] = {
#define ROW(name, what, kind_arg) { #name, what, kind_arg },
	WATCHED(ROW)
#undef ROW
};
#define NWATCHED (sizeof(watched) / sizeof(watched[0]))

static struct way {
	uint64_t address; /* of the function; 0: this libcupti has no such function */
	uint64_t go;	  /* code that has the same effect as the function */
	struct jump jump;
	struct gate gate; /* used if the function has no jump */
	bool made, on;
} ways[NWATCHED];
static watch_call_fn called;
static unsigned long long loads; /* of the dynamic loader, when slots were last searched */

/* The code of libcupti, and of this object. */
static struct range {
	uint64_t lo, hi;
} ours, theirs;

/* Called by hooks_entry. Returns where the call continues. */
uint64_t watch_call(unsigned int n, const struct hook_regs *r)
{
	int saved = errno;

	if (r->ra - ours.lo >= ours.hi - ours.lo && r->ra - theirs.lo >= theirs.hi - theirs.lo)
		called(watched[n].what, watched[n].kind_arg, (const uint64_t *)r->args);
	errno = saved;
	return ways[n].go;
}

/* ---- objects ---- */

struct find {
	uint64_t address;
	struct range *range;
	unsigned long long loads;
};

static int find_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct find *f = ctx;
	struct range r = { UINT64_MAX, 0 };

	(void)size;
	f->loads = info->dlpi_adds;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uint64_t lo = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (lo < r.lo)
			r.lo = lo;
		if (lo + info->dlpi_phdr[i].p_memsz > r.hi)
			r.hi = lo + info->dlpi_phdr[i].p_memsz;
	}
	if (f->address - r.lo >= r.hi - r.lo)
		return 0;
	*f->range = r;
	return 1;
}

static struct gate *gate_for(__u64 function)
{
	for (size_t i = 0; i < NWATCHED; i++)
		if (ways[i].gate.to && ways[i].gate.to == function)
			return &ways[i].gate;
	return NULL;
}

static bool any_gate(void)
{
	for (size_t i = 0; i < NWATCHED; i++)
		if (ways[i].gate.to)
			return true;
	return false;
}

/* ---- on and off ---- */

/* Makes the jump of a function, or else its gate; nothing leads there yet. */
static void make(struct way *w, unsigned int n)
{
	struct hook_spec spec = { .address = w->address };

	if (!jump_make(&w->jump, &spec, n))
		w->go = w->jump.stub.go;
	else if (!gate_make(&w->gate, w->address, n))
		w->go = w->address;
	else
		w->gate = (struct gate){ 0 };
	w->made = w->go;
}

static void put_jumps(bool on)
{
	uint8_t found;

	for (size_t i = 0; i < NWATCHED; i++)
		if (ways[i].made && ways[i].jump.at)
			ways[i].on = !jump_write(&ways[i].jump, on, &found) && on;
}

static void put_gates(const struct text_maps *maps)
{
	if (!any_gate())
		return;
	for (size_t i = 0; i < NWATCHED; i++)
		ways[i].gate.wanted = ways[i].gate.to;
	slots_find(maps, true, gate_for);
	slots_put_on(maps);
}

static const char *first_without(bool jump)
{
	for (size_t i = 0; i < NWATCHED; i++)
		if (ways[i].address && !ways[i].on && (jump || !ways[i].gate.to))
			return watched[i].name;
	return NULL;
}

static int begin(struct text_maps *maps)
{
	int err = text_open();

	if (!err)
		err = text_maps_read(maps);
	if (err)
		text_close();
	return err;
}

static void end(struct text_maps *maps)
{
	text_sync();
	text_maps_free(maps);
	text_close();
}

static void where_we_are(uint64_t libcupti)
{
	struct find f = { (uint64_t)(uintptr_t)&ways, &ours, 0 };

	dl_iterate_phdr(find_object, &f);
	f.address = libcupti;
	f.range = &theirs;
	dl_iterate_phdr(find_object, &f);
	loads = f.loads;
}

int watch_on(void *lib, watch_call_fn fn, const char **blind, const char **by_slots)
{
	struct text_maps maps;
	int err = begin(&maps);

	*blind = *by_slots = NULL;
	if (err)
		return err;
	called = fn;
	where_we_are((uint64_t)(uintptr_t)dlsym(lib, watched[0].name));
	jump_begin(&maps);
	for (size_t i = 0; i < NWATCHED; i++) {
		ways[i].address = (uint64_t)(uintptr_t)dlsym(lib, watched[i].name);
		if (ways[i].address && !ways[i].made)
			make(&ways[i], (unsigned int)i);
	}
	err = text_made();
	if (!err) {
		text_sync();
		put_jumps(true);
		put_gates(&maps);
		*blind = first_without(false);
		*by_slots = first_without(true);
	}
	end(&maps);
	return err;
}

int watch_off(void)
{
	struct text_maps maps;
	int err = begin(&maps);

	if (err)
		return err;
	put_jumps(false);
	if (any_gate())
		slots_take_off(&maps, NULL);
	end(&maps);
	for (size_t i = 0; i < NWATCHED; i++)
		if (ways[i].on)
			err = -EIO;
	return err;
}

void watch_look(void)
{
	struct find f = { 0, &(struct range){ 0 }, 0 };
	struct text_maps maps;

	if (!any_gate())
		return;
	dl_iterate_phdr(find_object, &f);
	if (begin(&maps))
		return;
	if (f.loads != loads)
		put_gates(&maps);
	else if (slots_changed())
		slots_put_on(&maps);
	loads = f.loads;
	end(&maps);
}

/* ---- what is registered ---- */

/* The words of libcupti that the dynamic loader fills in are at the begin of its writable memory. */
struct words {
	uint64_t lo, hi;
	uint64_t loader; /* words below this address are the loader's */
};

static void after(uint64_t *to, uint64_t address)
{
	if (address > *to)
		*to = address;
}

static int find_words(struct dl_phdr_info *info, size_t size, void *ctx)
{
	uint64_t got = 0, calls_bytes = 0;
	struct words *w = ctx;

	(void)size;
	if (theirs.lo - info->dlpi_addr > 1 << 20)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_RELRO)
			after(&w->loader, at + p->p_memsz);
		if (p->p_type == PT_LOAD && p->p_flags & PF_W) {
			w->lo = at;
			w->hi = at + p->p_memsz;
		}
		for (const ElfW(Dyn) *d = (const ElfW(Dyn) *)at;
		     p->p_type == PT_DYNAMIC && d->d_tag != DT_NULL; d++) {
			got = d->d_tag == DT_PLTGOT ? d->d_un.d_ptr : got;
			calls_bytes = d->d_tag == DT_PLTRELSZ ? d->d_un.d_val : calls_bytes;
		}
	}
	if (got)
		after(&w->loader, (got < info->dlpi_addr ? got + info->dlpi_addr : got) +
					  (3 + calls_bytes / sizeof(ElfW(Rela))) * 8);
	return 1;
}

/* The library of a function, if it is one that may be a program's: not a system library, whose
 * functions libcupti keeps for itself, nor the driver. */
static const struct text_map *program_code(const struct text_maps *maps, uint64_t word)
{
	static const char *const not [] = { "libc.",  "libc-",	  "libcuda.",  "libpthread",
					    "libdl.", "ld-linux", "libstdc++", "libgcc_s",
					    "librt.", "libm.",	  "libnv",     "libcudatrace-" };
	const struct text_map *m = text_maps_find(maps, word);
	const char *name;
	Dl_info info;

	if (!m || !m->exec || m->is_probes || word - ours.lo < ours.hi - ours.lo ||
	    word - theirs.lo < theirs.hi - theirs.lo)
		return NULL;
	if (!dladdr((void *)(uintptr_t)word, &info) || !info.dli_fname)
		return m; /* code that the program has made */
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++)
		if (!strncmp(name, not [i], strlen(not [i])))
			return NULL;
	return m;
}

int watch_registered(const void *request, const void *complete)
{
	struct words w = { 0 };
	struct text_maps maps;
	int found = 0;

	dl_iterate_phdr(find_words, &w);
	if (!w.lo || begin(&maps))
		return 0;
	after(&w.lo, w.loader);
	for (uint64_t at = (w.lo + 7) & ~7ULL; at + 16 <= w.hi && found <= 0; at += 8) {
		const struct text_map *first;
		uint64_t pair[2];

		if (text_look(at, pair, sizeof(pair)))
			break;
		if (pair[0] == (uintptr_t)request && pair[1] == (uintptr_t)complete)
			found = 1;
		else if (!found && pair[0] != pair[1] && (first = program_code(&maps, pair[0])) &&
			 program_code(&maps, pair[1]) == first)
			found = -1;
	}
	end(&maps);
	return found;
}
