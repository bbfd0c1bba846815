/* SPDX-License-Identifier: BSD-2-Clause */
/* watch_cupti.c - see watch_cupti.h. docs/hooks.md says why a hook may be put on, and taken off, at any moment. */
#include "../common/compat.h"

#include "agent_state.h"
#include "watch_cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/hook.h"
#include "../common/jump.h"
#include "../common/objects.h"
#include "../common/slots.h"

uint64_t watch_call(unsigned int n, const struct hook_regs *) __attribute__((visibility("hidden")));

static const char *const watched[] = {
#define ROW(name) #name,
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
static uint64_t loads; /* what the dynamic loader had loaded when slots were last searched */

/* The code of libcupti, and of this object. */
static struct range {
	uint64_t lo, hi;
} ours, theirs;

/* Called by hooks_entry. Returns where the call continues. */
uint64_t watch_call(unsigned int n, const struct hook_regs *r)
{
	int saved = errno;

	if (r->ra - ours.lo >= ours.hi - ours.lo && r->ra - theirs.lo >= theirs.hi - theirs.lo)
		called(!strcmp(watched[n], "cuptiFinalize"));
	errno = saved;
	return ways[n].go;
}

static struct gate *gate_for(__u64 function)
{
	for (size_t i = 0; i < NWATCHED; i++)
		if (ways[i].gate.to && ways[i].gate.to == function)
			return &ways[i].gate;
	return NULL;
}

static void each_gate(void (*f)(void *ctx, __u64 function), void *ctx)
{
	for (size_t i = 0; i < NWATCHED; i++)
		if (ways[i].gate.to)
			f(ctx, ways[i].address);
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
	slots_find(maps, SLOTS_ALL, gate_for, each_gate);
	slots_put_on(maps);
}

static const char *first_without(bool jump)
{
	for (size_t i = 0; i < NWATCHED; i++)
		if (ways[i].address && !ways[i].on && (jump || !ways[i].gate.to))
			return watched[i];
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

static void where_we_are(const struct text_maps *maps, uint64_t libcupti)
{
	struct object o;

	ours = theirs = (struct range){ 0 };
	if (object_find(maps, (uint64_t)(uintptr_t)&ways, &o))
		ours = (struct range){ o.lo, o.hi };
	if (object_find(maps, libcupti, &o))
		theirs = (struct range){ o.lo, o.hi };
	loads = objects_state();
}

int watch_on(void *lib, watch_call_fn fn, const char **blind, const char **by_slots)
{
	struct text_maps maps;
	int err = begin(&maps);

	*blind = *by_slots = NULL;
	if (err)
		return err;
	called = fn;
	where_we_are(&maps, (uint64_t)(uintptr_t)dlsym(lib, watched[0]));
	jump_begin(&maps);
	for (size_t i = 0; i < NWATCHED; i++) {
		ways[i].address = (uint64_t)(uintptr_t)dlsym(lib, watched[i]);
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

#define LOOK_ANYWAY 30

void watch_look(void)
{
	struct text_maps maps;
	static unsigned int looks;
	bool loaded, changed;
	uint64_t now;

	if (!any_gate() || text_open())
		return;
	now = objects_state();
	loaded = now != loads;
	/* at times without a reason: a library may have come back to its place, with its slots as in the file */
	changed = loaded || slots_changed() || !(++looks % LOOK_ANYWAY);
	text_close();
	if (!changed || begin(&maps))
		return;
	if (loaded)
		put_gates(&maps);
	else
		slots_put_on(&maps);
	loads = now;
	end(&maps);
}

/* ---- what is registered ---- */

/* The words of libcupti that the dynamic loader fills in, sorted: nothing is registered there. With hooks on
 * the functions that libcupti calls, some of them lead to code of ours. */
struct filled {
	uint64_t *at;
	size_t n, room;
};

static bool one_filled(void *ctx, const struct object *o, const struct object_word *w)
{
	struct filled *f = ctx;

	(void)o;
	if (f->n == f->room) {
		size_t room = f->room ? 2 * f->room : 1024;
		void *more = realloc(f->at, room * sizeof(*f->at));

		if (!more)
			return false;
		f->at = more;
		f->room = room;
	}
	f->at[f->n++] = w->at;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool is_filled(const struct filled *f, uint64_t at)
{
	return f->n && bsearch(&at, f->at, f->n, sizeof(*f->at), by_address);
}

/* The libraries whose functions libcupti keeps for itself: those of the system, and the driver. */
static bool is_system(const struct object *o)
{
	static const char *const names[] = { "libc.",	 "libcuda.",   "libpthread", "libdl.",
					     "ld-linux", "libstdc++.", "libgcc_s.",  "librt.",
					     "libm.",	 "libnv" };
	char name[OBJECT_NAME];

	if (!object_soname(o, name))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* The mapping of code to which a word points, if the code may be a program's. */
static const struct text_map *program_code(const struct text_maps *maps, uint64_t word)
{
	const struct text_map *m = text_maps_find(maps, word);
	struct object o;

	if (!m || !m->exec || m->is_probes || word - theirs.lo < theirs.hi - theirs.lo)
		return NULL;
	if (!object_find(maps, word, &o))
		return m; /* code that the program has made */
	return agent_is_object(o.lo, o.hi) || is_system(&o) ? NULL : m;
}

struct look_for {
	const struct text_maps *maps;
	const struct filled *filled;
	uint64_t request, complete;
	int found;
};

static void look_at_words(struct look_for *f, uint64_t lo, uint64_t hi)
{
	for (uint64_t at = (lo + 7) & ~7ULL; at + 16 <= hi && f->found <= 0; at += 8) {
		const struct text_map *first;
		uint64_t pair[2];

		if (text_look(at, pair, sizeof(pair)))
			break;
		if (pair[0] == f->request && pair[1] == f->complete)
			f->found = 1;
		else if (!f->found && pair[0] != pair[1] &&
			 (first = program_code(f->maps, pair[0])) &&
			 program_code(f->maps, pair[1]) == first && !is_filled(f->filled, at) &&
			 !is_filled(f->filled, at + 8))
			f->found = -1;
	}
}

int watch_registered(const void *request, const void *complete)
{
	struct filled filled = { 0 };
	struct text_maps maps;
	struct look_for f = { &maps, &filled, (uintptr_t)request, (uintptr_t)complete, 0 };
	struct object o;

	if (!theirs.hi || begin(&maps))
		return 0;
	if (object_find(&maps, theirs.lo, &o)) {
		object_words(&o, false, one_filled, &filled);
		if (filled.n)
			qsort(filled.at, filled.n, sizeof(*filled.at), by_address);
		for (unsigned int i = 0; i < maps.n; i++) {
			const struct text_map *m = &maps.maps[i];

			if (m->write && m->lo >= o.lo && m->lo < o.hi)
				look_at_words(&f, m->lo, m->hi < o.hi ? m->hi : o.hi);
		}
	}
	free(filled.at);
	end(&maps);
	return f.found;
}
