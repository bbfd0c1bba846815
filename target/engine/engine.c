/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.c - which functions are hooked, and the order of putting hooks on and taking them off.
 * docs/hooks.md says why each step is safe at any moment, whatever the threads execute.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../common/jump.h"
#include "../common/slots.h"
#include "engine_state.h"
#include "../common/code_text.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum standing { OFF, ON, FOREIGN, GONE, FREE };
struct func {
	__u64 address; /* the function's address, as the caller gave it */
	struct jump jump;
	struct gate gate;     /* used if the function has no jump */
	enum hook_result why; /* if it has no jump: the reason */
	bool missing;	      /* if it has no jump: the caller was told that it has no hook */
	__u64 ino, offset;    /* of the file's byte at `address` */
	__u32 dev;
	enum standing standing;
	bool interrupted; /* its hook was off for a time, because of another tracer */
};

struct live *engine_live;
struct counting *engine_counting;
const struct hook_ops *engine_ops;
static struct func funcs[HOOK_FUNCS];
static unsigned int nfuncs; /* entries from this index on were never used */
static unsigned int nfree;  /* number of free entries below nfuncs */
#define SLOTS (2 * HOOK_FUNCS)
#define PUT_BACK_TRIES 10		 /* with a pause of a millisecond after each */
static unsigned short by_address[SLOTS]; /* number of the function + 1 */
_Static_assert(HOOK_FUNCS <= 0xffff, "the numbers fit");
static unsigned int rewritten, hooked_late, interrupted;
static unsigned int ngates; /* number of gates that were ever made */
static int process;

static const char *const texts[HOOK_RESULTS] = {
	[HOOK_ON] = "it is hooked",
	[HOOK_NO_MEMORY] = "there is no room for more hooks",
	[HOOK_NOT_CODE] = "there is no code of a file at its address",
	[HOOK_DIFFERS] = "its first bytes are not those of the file",
	[HOOK_BREAKPOINT] = "another tracer or a debugger has a breakpoint there",
	[HOOK_UNKNOWN] = "its first instruction is not one that can be moved",
	[HOOK_BRANCH] = "its first instruction is a jump, a call or a return",
	[HOOK_FAR] = "its first instruction needs an address that is too far away",
	[HOOK_SHORT] = "it is shorter than five bytes",
	[HOOK_LOOP] = "it jumps to its own first instruction",
	[HOOK_ZONE] = "something else is mapped where its jump would land",
	[HOOK_SHADOW] = "the process uses shadow stacks (CET)",
	[HOOK_NO_WRITE] = "the process may not write to its code through /proc/self/mem",
	[HOOK_PARTLY] = "it is hooked where other code calls it",
	[HOOK_NO_JUMP] = "no other code calls it through the dynamic loader, which hooks need here",
};

const char *hook_result_text(enum hook_result result)
{
	return (unsigned int)result < HOOK_RESULTS ? texts[result] : "the reason is not known";
}

/* ---- begin ---- */

/* Returns the pointer of this thread's shadow stack, or 0 if it has none. */
static __u64 shadow_stack(void)
{
#if defined(__x86_64__)
	__u64 pointer = 0;

	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(pointer)); /* rdsspq %rax */
	return pointer;
#else
	return 0;
#endif
}
__u64 (*engine_shadow_stack)(void) = shadow_stack;

int engine_open(const struct hook_ops *ops)
{
	void *page;
	int err;

	/* A recorded call has our return address, which would differ from the one on the shadow
	 * stack. */
	if (engine_shadow_stack() || sysconf(_SC_PAGESIZE) != HOOK_PAGE)
		return -ENOTSUP;
	if (!engine_live) {
		size_t bytes = HOOK_PAGE + HOOK_AREAS * sizeof(*engine_counting);

		page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		if (page == MAP_FAILED)
			return -errno;
		/* Available from Linux 4.14 on. Without it a forked child would write into its
		 * parent's records. */
		if (madvise(page, bytes, MADV_WIPEONFORK)) {
			err = -errno;
			munmap(page, bytes);
			return err;
		}
		engine_counting = (struct counting *)((char *)page + HOOK_PAGE);
		engine_live = page;
	}
	err = threads_open();
	if (err)
		return err;
	engine_ops = ops;
	engine_live->here = 1;
	process = getpid();
	rewritten = hooked_late = interrupted = 0;
	for (unsigned int i = 0; i < nfuncs; i++)
		funcs[i].interrupted = false;
	call_losses = (struct call_losses){ 0 };
	return 0;
}

void engine_fit(__u64 bytes)
{
	jump_release();
	threads_fit(bytes);
}

/* ---- functions ---- */

static unsigned int slot_of(__u64 address)
{
	return (unsigned int)(address * 0x9e3779b97f4a7c15ULL >> 32) % SLOTS;
}

static struct func *engine_find(__u64 address)
{
	for (unsigned int i = slot_of(address); by_address[i]; i = (i + 1) % SLOTS)
		if (funcs[by_address[i] - 1].address == address)
			return &funcs[by_address[i] - 1];
	return NULL;
}

static void engine_enter(struct func *f)
{
	unsigned int i = slot_of(f->address);

	while (by_address[i])
		i = (i + 1) % SLOTS;
	by_address[i] = (unsigned short)(f - funcs + 1);
}

/* Returns how many functions there may be when a function with these flags is one of them. */
static unsigned int room_for(__u32 flags)
{
	return flags & HOOK_FIRST ? HOOK_FUNCS : HOOK_FUNCS - HOOK_KEPT;
}

/* Returns a number that no function has, or HOOK_FUNCS if there is none for a function with these
 * flags. */
static unsigned int new_number(__u32 flags)
{
	if (nfuncs - nfree >= room_for(flags))
		return HOOK_FUNCS;
	if (!nfree)
		return nfuncs;
	for (unsigned int i = 0; i < nfuncs; i++)
		if (funcs[i].standing == FREE)
			return i;
	return HOOK_FUNCS;
}

static void engine_add(struct func *f)
{
	if (f == &funcs[nfuncs])
		nfuncs++;
	else
		nfree--;
	engine_enter(f);
}

static bool same_file(const struct func *f, const struct text_map *m)
{
	return m && m->exec && m->dev == f->dev && m->ino == f->ino &&
	       f->address - m->lo + m->offset == f->offset;
}

static void learn_file(struct func *f, const struct text_map *m)
{
	if (!same_file(f, m))
		f->standing = OFF; /* the code that was there before is gone */
	f->dev = m->dev;
	f->ino = m->ino;
	f->offset = f->address - m->lo + m->offset;
}

/* Returns whether the code still begins as it did when the jump was made. By now it may be code of
 * another library, or code that the program itself generated. */
static bool is_alike(const struct func *f)
{
	__u8 bytes[sizeof(f->jump.was)];

	if (f->gate.to)
		return !text_look(f->address, bytes, sizeof(bytes)) &&
		       !memcmp(bytes, f->jump.was, sizeof(bytes));
	if (!f->jump.at || text_look(f->jump.at, bytes, sizeof(bytes)))
		return false;
	if (bytes[0] == jump_byte() && f->standing != OFF)
		bytes[0] = f->jump.was[0];
	if (bytes[4] == f->jump.spelled)
		bytes[4] = f->jump.was[4];
	return !memcmp(bytes, f->jump.was, sizeof(bytes));
}

/* Returns whether the code was unmapped, so that no thread can get to its pads. If memory without a
 * file is mapped there, it may be a copy of the code (programs make copies to use large pages),
 * which also has the jumps. */
static bool is_unmapped(const struct func *f, const struct text_map *m)
{
	if (!m)
		return true;
	return m->ino ? m->dev != f->dev || m->ino != f->ino ||
				f->address - m->lo + m->offset != f->offset
		      : !m->exec && !is_alike(f);
}

/* Gives back the memory of the function's jump and gate. */
static void engine_give_back(struct func *f)
{
	jump_free(&f->jump);
	f->jump = (struct jump){ 0 };
	gate_free(&f->gate);
}

/* Makes room for other functions when all numbers are in use: a program may load and unload
 * libraries again and again, each time at other addresses. */
static void free_unmapped(const struct text_maps *maps)
{
	for (unsigned int i = 0; i < nfuncs; i++) {
		struct func *f = &funcs[i];

		if (f->standing == FREE || !is_unmapped(f, text_maps_find(maps, f->address)))
			continue;
		engine_give_back(f);
		f->standing = FREE;
		nfree++;
	}
	memset(by_address, 0, sizeof(by_address));
	for (unsigned int i = 0; i < nfuncs; i++)
		if (funcs[i].standing != FREE)
			engine_enter(&funcs[i]);
}

static struct gate *gate_for(__u64 function)
{
	struct func *f = engine_find(function);

	return f && f->gate.to ? &f->gate : NULL;
}

static void each_gate(void (*f)(void *ctx, __u64 function), void *ctx)
{
	for (unsigned int i = 0; i < nfuncs; i++)
		if (funcs[i].gate.to)
			f(ctx, funcs[i].address);
}

/* Returns whether the reason is in the function's own code, or in what is mapped near it: then a
 * gate may help. */
static bool may_have_gate(enum hook_result why)
{
	return why == HOOK_ZONE || why == HOOK_FAR || why == HOOK_SHORT || why == HOOK_UNKNOWN ||
	       why == HOOK_BRANCH || why == HOOK_LOOP || why == HOOK_NO_JUMP;
}

/* Makes the jump of the function with the number n or, if that is not possible, its gate. */
static enum hook_result make_way(struct func *made, const struct hook_spec *spec, unsigned int n,
				 const struct text_maps *maps)
{
	struct jump jump = { 0 };
	enum hook_result why = jump_make(&jump, spec, n);

	if (why && !may_have_gate(why))
		return why;
	if (why && !made->gate.to) {
		int err = gate_make(&made->gate, spec->address, n);

		if (err)
			return err < 0 ? HOOK_NO_WRITE : why;
	}
	if (why) {
		jump = (struct jump){ .stub.go = spec->address };
		text_look(spec->address, jump.was, sizeof(jump.was));
		ngates++;
	} else if (made->gate.to) { /* other code is there now, with room for a jump */
		slots_take_off(maps, &made->gate);
		gate_leave(&made->gate);
	}
	made->jump = jump;
	made->why = why;
	return HOOK_ON;
}

/* Makes everything except the byte that puts the hook on, which is written last. */
static enum hook_result engine_prepare(const struct hook_spec *spec, const struct text_maps *maps,
				       struct func **out)
{
	const struct text_map *m = text_maps_find(maps, spec->address);
	struct func *f = engine_find(spec->address);
	enum hook_result result;

	if (!m || !m->exec || !m->read || !m->is_private || m->hi - spec->address < 16)
		return HOOK_NOT_CODE;
	if (f && is_alike(f) && !(f->gate.to && is_unmapped(f, m))) {
		learn_file(f, m);
		*out = f;
	} else {
		struct func *made = f;

		if (!f) {
			unsigned int number = new_number(spec->flags);

			if (number == HOOK_FUNCS)
				return HOOK_NO_MEMORY;
			made = &funcs[number];
		} else if (is_unmapped(f, m)) {
			engine_give_back(f);
			f->standing = OFF;
		}
		result = make_way(made, spec, (unsigned int)(made - funcs), maps);
		if (result)
			return result;
		made->address = spec->address;
		made->standing = OFF;
		learn_file(made, m);
		if (!f)
			engine_add(made);
		*out = made;
	}
	f = *out;
	f->gate.wanted = true;
	engine_hot[f - funcs] =
		(struct hot){ f->jump.stub.go, spec->id,
			      spec->flags & (HOOK_ENTRY_ONLY | HOOK_COUNT_IN(HOOK_COUNTS - 1) |
					     HOOK_REGS | HOOK_FOLDS | HOOK_COUNTABLE) };
	return HOOK_ON;
}

static enum hook_result put_on(struct func *f)
{
	__u8 found;
	int err = jump_write(&f->jump, true, &found);

	if (err == 1 && found == 0xcc) {
		/* Our byte may be below the int3. When the other tracer ends, it restores the
		 * file's byte, not ours. */
		f->standing = f->standing == ON || f->standing == FOREIGN ? FOREIGN : OFF;
		return HOOK_BREAKPOINT;
	}
	if (err == 1)
		return HOOK_DIFFERS;
	if (err)
		return HOOK_NO_WRITE;
	f->standing = ON;
	return HOOK_ON;
}

static void learn_probes(const struct text_maps *maps)
{
	for (unsigned int i = 0; i < maps->n; i++)
		if (maps->maps[i].is_probes) {
			call_probes_hi = maps->maps[i].hi;
			call_probes_lo = maps->maps[i].lo;
		}
}

static bool searches_again;
/* Objects may be searched before the loader has filled in their slots: what was found then is not all. */
static bool slots_come_late = true;

void engine_search_again(void)
{
	__atomic_store_n(&slots_come_late, false, __ATOMIC_RELAXED);
	__atomic_store_n(&searches_again, true, __ATOMIC_RELEASE);
}

void engine_slots_late(void)
{
	__atomic_store_n(&slots_come_late, true, __ATOMIC_RELAXED);
}

/* Which objects are searched, when the first `had` gates were there before? What the loader filled in of an object before a
 * function was mapped does not lead to the function. */
static enum slots_scope scope_of(struct func *const *ready, const enum hook_result *results,
				 unsigned int n, unsigned int had)
{
	enum slots_scope scope = ngates == had ? SLOTS_NEW : SLOTS_CALLS;

	if (__atomic_exchange_n(&searches_again, false, __ATOMIC_ACQ_REL) ||
	    (scope == SLOTS_CALLS && __atomic_load_n(&slots_come_late, __ATOMIC_RELAXED)))
		return SLOTS_ALL;
	for (unsigned int i = 0; i < n && scope == SLOTS_CALLS; i++)
		if (!results[i] && ready[i]->gate.to && slots_searched(ready[i]->address))
			scope = SLOTS_ALL;
	return scope;
}

/* Makes slots lead to the gates. */
static void open_gates(const struct text_maps *maps, enum slots_scope scope)
{
	if (!ngates)
		return;
	slots_find(maps, scope, gate_for, each_gate);
	slots_put_on(maps);
}

/* Finds out which functions are hooked through their gates. */
static void look_at_gates(void)
{
	for (unsigned int i = 0; i < nfuncs && ngates; i++) {
		struct func *f = &funcs[i];

		if (!f->gate.to || !f->gate.wanted || f->standing == FREE)
			continue;
		f->standing = f->gate.on ? ON : OFF;
		if (f->gate.on && f->missing) {
			hooked_late++;
			f->missing = false;
		}
	}
}

static enum hook_result gate_result(struct func *f)
{
	f->missing = !f->gate.on;
	return f->gate.on ? HOOK_PARTLY : f->why;
}

unsigned int engine_hooked_late(void)
{
	return hooked_late;
}

void engine_forget_counts(void)
{
	for (unsigned int i = threads_used(); i-- > 0;)
		if (threads_has(i))
			set_counts(&area_at(i)->thread, NULL);
}

struct hook_within engine_within, engine_parts;

void engine_runtime(__u64 lo, __u64 bytes)
{
	__atomic_store_n(&engine_parts.bytes, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&engine_parts.lo, lo, __ATOMIC_RELEASE);
	__atomic_store_n(&engine_parts.bytes, bytes, __ATOMIC_RELEASE);
}

/* Selects the way through the stub that the function's flags say. While hooks are off, flags are
 * ignored. */
static int lead(struct func *f)
{
	__u32 flags = engine_live->on ? engine_hot[f - funcs].flags : 0;

	if (!engine_within.bytes)
		flags &= ~(__u32)HOOK_FOLDS;
	return stub_lead(f->gate.to ? &f->gate.stub : &f->jump.stub, flags);
}

/* The same for all functions. If something cannot be written now, engine_check() tries again. */
static void lead_all(void)
{
	bool opened = !text_open();

	for (unsigned int i = 0; i < nfuncs && opened; i++)
		if (funcs[i].standing != FREE)
			opened = !lead(&funcs[i]);
	text_close();
	/* without counts, no stub counts a call by itself */
	if (!opened)
		engine_forget_counts();
}

void engine_fold_within(__u64 lo, __u64 bytes)
{
	if (engine_within.lo == lo && engine_within.bytes == bytes)
		return;
	/* Between the writes a thread may read the old value of one and the new value of the
	 * other. */
	__atomic_store_n(&engine_within.bytes, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&engine_within.lo, lo, __ATOMIC_RELEASE);
	__atomic_store_n(&engine_within.bytes, bytes, __ATOMIC_RELEASE);
	if (engine_live)
		lead_all();
}

void engine_count(__u32 mask, __u32 id, __u32 flags)
{
	const __u32 bits = HOOK_COUNT_IN(HOOK_COUNTS - 1);
	bool any = false;

	for (unsigned int i = 0; i < nfuncs; i++) {
		struct hot *hot = &engine_hot[i];

		if ((hot->id & mask) != id || !(hot->flags & HOOK_COUNTABLE))
			continue;
		__atomic_store_n(&hot->flags, (hot->flags & ~bits) | flags, __ATOMIC_RELAXED);
		any = true;
	}
	if (any)
		lead_all();
}

/* Puts on the hooks of the functions that code in engine_parts calls as a part of what it does
 * (parts), or of all others. */
static void put_on_all(const struct hook_spec *specs, struct func **ready, unsigned int n,
		       enum hook_result *results, bool parts)
{
	for (unsigned int i = 0; i < n; i++) {
		bool part = specs[i].flags & HOOK_FOLDS &&
			    specs[i].address - engine_parts.lo >= engine_parts.bytes;

		if (part == parts && !results[i] && !ready[i]->gate.to)
			results[i] = put_on(ready[i]);
	}
}

/* The jump or the slots of the function could not be written. */
static void refuse(enum hook_result *result, struct func *f)
{
	if (!*result)
		*result = HOOK_NO_WRITE;
	if (f)
		f->gate.wanted = false;
}

/* What has been unmapped is gone: the code at its place, if there is any, is another library's. */
static void note_gone(const struct text_maps *maps)
{
	for (unsigned int i = 0; i < nfuncs; i++)
		if (!funcs[i].gate.to &&
		    (funcs[i].standing == ON || funcs[i].standing == FOREIGN) &&
		    !same_file(&funcs[i], text_maps_find(maps, funcs[i].address)))
			funcs[i].standing = GONE;
}

int engine_install(const struct hook_spec *specs, unsigned int n, enum hook_result *results)
{
	struct func **ready = calloc(n + 1, sizeof(*ready));
	struct text_maps maps = { 0 };
	unsigned int had = ngates;
	int err, on = 0;

	if (!ready)
		return -ENOMEM;
	err = text_open();
	if (!err)
		err = text_maps_read(&maps);
	if (err)
		goto out;
	learn_probes(&maps);
	jump_begin(&maps);
	note_gone(&maps);
	if (nfuncs - nfree + n > room_for(0))
		free_unmapped(&maps);
	for (unsigned int i = 0; i < n; i++)
		results[i] = engine_prepare(&specs[i], &maps, &ready[i]);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int number = results[i] ? 0 : (unsigned int)(ready[i] - funcs);

		if (results[i])
			continue;
		jump_spare(&ready[i]->jump, &specs[i], number);
		engine_hot[number].go = ready[i]->jump.stub.go;
	}
	if (text_made())
		for (unsigned int i = 0; i < n; i++)
			refuse(&results[i], ready[i]);
	text_sync();
	__atomic_store_n(&engine_live->on, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0; i < n; i++)
		if (!results[i])
			lead(ready[i]);
	put_on_all(specs, ready, n, results, false);
	open_gates(&maps, scope_of(ready, results, n, had));
	text_sync();
	put_on_all(specs, ready, n, results, true);
	look_at_gates();
	for (unsigned int i = 0; i < n; i++) {
		if (!results[i] && ready[i]->gate.to)
			results[i] = gate_result(ready[i]);
		on += results[i] == HOOK_ON || results[i] == HOOK_PARTLY;
	}
	text_sync();
out:
	text_maps_free(&maps);
	text_close();
	free(ready);
	return err ? err : on;
}

/* ---- the end ---- */

void engine_rest(void)
{
	__atomic_store_n(&engine_live->on, 0, __ATOMIC_SEQ_CST);
}

static void engine_take_off(struct func *f, const struct text_maps *maps,
			    struct hook_leftover *left)
{
	__u8 found = 0;
	int err;

	if (f->gate.to) {
		if (f->gate.on)
			slots_take_off(maps, &f->gate);
		f->gate.wanted = f->missing = false;
		f->standing = OFF;
	}
	if (f->standing == OFF || f->standing == FREE)
		return;
	err = same_file(f, text_maps_find(maps, f->address)) ? jump_write(&f->jump, false, &found)
							     : -EIO;
	if (err == 1 && found == 0xcc)
		left->foreign++;
	else if (err < 0 && err != -EIO)
		left->stuck++;
	else if (err < 0)
		left->gone++;
	if (err >= 0 || err == -EIO)
		f->standing = OFF;
}

static int take_off_all(struct hook_leftover *left, struct text_maps *maps, const __u64 *addresses,
			unsigned int n)
{
	int err = text_open();

	if (!err)
		err = text_maps_read(maps);
	if (err) {
		text_close();
		return err;
	}
	if (!addresses && ngates)
		slots_take_off(maps, NULL);
	for (unsigned int i = 0; i < (addresses ? n : nfuncs); i++) {
		struct func *f = addresses ? engine_find(addresses[i]) : &funcs[i];

		if (f)
			engine_take_off(f, maps, left);
	}
	text_sync();
	text_close();
	return 0;
}

int engine_uninstall(const __u64 *addresses, unsigned int n)
{
	struct hook_leftover left = { 0 };
	struct text_maps maps;
	int err = take_off_all(&left, &maps, addresses, n);

	if (!err)
		text_maps_free(&maps);
	return err;
}

/*
 * Replaces our return address on the stack by the true one. This is done by compare and swap,
 * because the thread may return at this moment. It then reads our address or the true one, and both
 * are correct. No new call can use this frame, and this place of the stack, with another return
 * address: entries do nothing since the membarrier, and an entry that was under way before it has
 * another frame.
 */
static bool put_back(struct hook_frame *f, const struct text_maps *maps)
{
	__u64 state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE), mark = frame_mark(f);
	const struct text_map *m;

	if (state == HOOK_BUSY || !state || state % 8)
		return false;
	if (call_claim_left(f) && engine_ops->left)
		engine_ops->left(f);
	if (!HOOK_RA_ON_STACK)
		return false; /* the return address may be in a register, or may be signed */
	m = text_maps_find(maps, state);
	/* asked again, because the stack may have been unmapped since the mappings were read */
	return m && m->read && m->write && sys_readable(state) &&
	       __atomic_compare_exchange_n((__u64 *)state, &mark, f->ra, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

/* Returns whether the return address on a stack still leads to the frame, or may do so through
 * another tracer's return probe. */
static bool is_inside(const struct hook_frame *f, const struct text_maps *maps)
{
	__u64 state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE), word = 0;
	const struct text_map *m = text_maps_find(maps, state);

	if (state % 8 || !m || !m->read)
		return false;
	if (!HOOK_RA_ON_STACK)
		return true;
	/* not by a load: the stack may be unmapped at this moment */
	if (sys_copy(&word, state, sizeof(word)) != sizeof(word))
		return false;
	return word == frame_mark(f) || (word >= call_probes_lo && word < call_probes_hi);
}

static void put_back_thread(struct hook_frame *f, const struct text_maps *maps,
			    struct hook_leftover *left)
{
	unsigned int before;

	/* Repeated as long as it restores something: if one call has jumped to another, the same
	 * place of the stack has the mark of the later call, and after that one is restored, the
	 * mark of the earlier call. */
	do {
		before = left->put_back;
		for (int k = 0; k < HOOK_DEPTH; k++)
			left->put_back += put_back(&f[k], maps);
	} while (left->put_back != before);
	for (int k = 0; k < HOOK_DEPTH; k++)
		left->inside += is_inside(&f[k], maps);
}

int engine_remove(struct hook_leftover *left)
{
	struct text_maps maps;
	int err;

	*left = (struct hook_leftover){ 0 };
	if (!engine_live)
		return 0;
	err = take_off_all(left, &maps, NULL, 0);
	__atomic_store_n(&engine_live->on, 0, __ATOMIC_SEQ_CST);
	lead_all();
	if (err)
		return err;
	text_sync();
	learn_probes(&maps);
	/* A thread may have written its mark to the stack, and be about to find that the hooks are
	 * off. */
	for (int tries = 0; tries < PUT_BACK_TRIES; tries++) {
		left->inside = 0;
		for (unsigned int i = threads_used(); i-- > 0;)
			if (threads_has(i))
				put_back_thread(area_frames(area_at(i)), &maps, left);
		if (!left->inside)
			break;
		usleep(1000);
	}
	jump_release();
	left->kept_bytes = jump_bytes() + (__u64)threads_used() * HOOK_AREA;
	text_maps_free(&maps);
	return 0;
}

void engine_close(void)
{
	struct hook_leftover left;

	if (engine_live)
		engine_remove(&left);
	threads_end();
}

/* ---- once a second ---- */

#define BATCH 16 /* small, because engine_interrupted() may run on a small stack of the program */

/* Gets at most BATCH functions, from *from on, that have a hook, or had one until another tracer
 * came. */
static unsigned int watched(unsigned int *from, struct func **which)
{
	unsigned int n = 0;

	for (; *from < nfuncs && n < BATCH; ++*from)
		if (!funcs[*from].gate.to &&
		    (funcs[*from].standing == ON || funcs[*from].standing == FOREIGN))
			which[n++] = &funcs[*from];
	return n;
}

/* Reads the first byte of each function, until one cannot be read. Returns how many bytes it has
 * read. */
static unsigned int bytes_at(struct func *const *which, unsigned int n, __u8 *bytes)
{
	struct iovec local = { bytes, n }, remote[BATCH];
	long got;

	for (unsigned int i = 0; i < n; i++)
		remote[i] = (struct iovec){ (void *)which[i]->jump.at, 1 };
	/* not by syscall(), which may have a hook */
	got = sys_call(SYS_process_vm_readv, process, (long)&local, 1, (long)remote, n, 0);
	return got > 0 ? (unsigned int)got : 0;
}

/* The same, but also works if the system call is forbidden. */
static unsigned int first_bytes(struct func *const *which, unsigned int n, __u8 *bytes)
{
	unsigned int got = bytes_at(which, n, bytes);

	if (got)
		return got;
	for (unsigned int i = 0; i < n; i++)
		if (text_read(which[i]->jump.at, &bytes[i], 1))
			return i;
	return n;
}

static void note_interrupted(struct func *f)
{
	interrupted += !f->interrupted;
	f->interrupted = true;
}

static void engine_look(struct func *f, bool readable, __u8 byte, struct text_maps *maps)
{
	if (readable && byte == jump_byte())
		return;
	if (readable && byte == 0xcc) {
		f->standing = FOREIGN;
		note_interrupted(f);
		return;
	}
	if (!maps->maps && text_maps_read(maps))
		return;
	if (!same_file(f, text_maps_find(maps, f->address))) {
		f->standing = GONE;
		return;
	}
	if (readable && byte == f->jump.was[0]) {
		note_interrupted(f);
		rewritten += put_on(f) == HOOK_ON;
	}
}

unsigned int engine_interrupted(void)
{
	struct func *which[BATCH];
	unsigned int n, from = 0;
	__u8 bytes[BATCH];

	while (engine_live && engine_live->on && (n = watched(&from, which)) > 0)
		for (unsigned int i = 0; i < n; i++) { /* one that cannot be read is passed over */
			unsigned int got = bytes_at(which + i, n - i, bytes);

			for (unsigned int k = 0; k < got; k++, i++)
				if (bytes[k] == 0xcc || bytes[k] == which[i]->jump.was[0])
					note_interrupted(which[i]);
		}
	return interrupted;
}

int engine_check(struct hook_state *state)
{
	struct func *which[BATCH];
	struct text_maps maps = { 0 };
	unsigned int n, from = 0;
	__u8 bytes[BATCH];
	int err = text_open();

	*state = (struct hook_state){ 0 };
	if (err)
		return err;
	while (engine_live->on && (n = watched(&from, which)) > 0)
		for (unsigned int i = 0; i < n;) {
			unsigned int got = first_bytes(which + i, n - i, bytes);

			for (unsigned int k = 0; k < got; k++)
				engine_look(which[i + k], true, bytes[k], &maps);
			i += got;
			if (i < n)
				engine_look(which[i++], false, 0, &maps);
		}
	if (engine_live->on && slots_changed() && (maps.maps || !text_maps_read(&maps))) {
		slots_put_on(&maps);
		look_at_gates();
	}
	if (__atomic_exchange_n(&call_wants_probes, false, __ATOMIC_RELAXED) &&
	    (maps.maps || !text_maps_read(&maps)))
		learn_probes(&maps);
	for (unsigned int i = 0; i < nfuncs; i++)
		if (funcs[i].standing != FREE)
			lead(&funcs[i]);
	text_sync();
	text_maps_free(&maps);
	text_close();
	threads_drop_gone();
	threads_top_up();
	for (unsigned int i = 0; i < nfuncs; i++) {
		state->on += funcs[i].standing == ON;
		state->foreign += funcs[i].standing == FOREIGN;
		state->gone += funcs[i].standing == GONE;
	}
	state->rewritten = rewritten;
	state->interrupted = interrupted;
	state->threads = threads_count();
	state->no_thread = __atomic_load_n(&call_losses.no_thread, __ATOMIC_RELAXED);
	state->too_deep = __atomic_load_n(&call_losses.too_deep, __ATOMIC_RELAXED);
	state->left = __atomic_load_n(&call_losses.left, __ATOMIC_RELAXED);
	return 0;
}
