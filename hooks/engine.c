/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.c - which functions are hooked, and the order of putting hooks on and taking them off.
 * docs/hooks.md says why each step may come at any moment of any thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "jump.h"
#include "slots.h"
#include "state.h"
#include "text.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum standing { OFF, ON, FOREIGN, GONE, FREE };
struct func {
	__u64 address; /* as it was given */
	struct jump jump;
	struct gate gate;     /* where it has no jump */
	enum hook_result why; /* then: why not */
	bool missing;	      /* then: its caller was told that it has no hook */
	__u64 ino, offset;    /* of the file's byte at `address` */
	__u32 dev;
	enum standing standing;
	bool interrupted; /* its hook was off for a time, because of another tracer */
};

struct live *engine_live;
struct counting *engine_counting;
const struct hook_ops *engine_ops;
static struct func funcs[HOOK_FUNCS];
static unsigned int nfuncs; /* the ones from here on were never used */
static unsigned int nfree;  /* of those below */
#define SLOTS (2 * HOOK_FUNCS)
#define PUT_BACK_TRIES 10		 /* a millisecond between two */
static unsigned short by_address[SLOTS]; /* number of the function + 1 */
static unsigned int rewritten, hooked_late, interrupted;
static unsigned int ngates; /* that were ever made */
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

/* The pointer of this thread's shadow stack; 0: it has none. */
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

	/* The return address of a call that is recorded would not be the one on the shadow stack. */
	if (engine_shadow_stack() || sysconf(_SC_PAGESIZE) != HOOK_PAGE)
		return -ENOTSUP;
	if (!engine_live) {
		size_t bytes = HOOK_PAGE + HOOK_AREAS * sizeof(*engine_counting);

		page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		if (page == MAP_FAILED)
			return -errno;
		/* From Linux 4.14 on. Without it a forked child would write into its parent's records. */
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

/* ---- functions ---- */

static unsigned int slot_of(__u64 address)
{
	return (unsigned int)(address * 0x9e3779b97f4a7c15ULL >> 32) % SLOTS;
}

static struct func *find(__u64 address)
{
	for (unsigned int i = slot_of(address); by_address[i]; i = (i + 1) % SLOTS)
		if (funcs[by_address[i] - 1].address == address)
			return &funcs[by_address[i] - 1];
	return NULL;
}

static void enter(struct func *f)
{
	unsigned int i = slot_of(f->address);

	while (by_address[i])
		i = (i + 1) % SLOTS;
	by_address[i] = (unsigned short)(f - funcs + 1);
}

/* A number that no function has, or HOOK_FUNCS. */
static unsigned int new_number(void)
{
	if (!nfree)
		return nfuncs;
	for (unsigned int i = 0; i < nfuncs; i++)
		if (funcs[i].standing == FREE)
			return i;
	return HOOK_FUNCS;
}

static void add(struct func *f)
{
	if (f == &funcs[nfuncs])
		nfuncs++;
	else
		nfree--;
	enter(f);
}

static bool same_file(const struct func *f, const struct text_map *m)
{
	return m && m->exec && m->dev == f->dev && m->ino == f->ino &&
	       f->address - m->lo + m->offset == f->offset;
}

static void learn_file(struct func *f, const struct text_map *m)
{
	if (!same_file(f, m))
		f->standing = OFF; /* whatever was there is gone */
	f->dev = m->dev;
	f->ino = m->ino;
	f->offset = f->address - m->lo + m->offset;
}

/* Does the code there begin as it did when the jump was made? It may be another library's by now, or
 * code that the program makes itself. */
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

/* Has the code been unmapped, so that no thread can come to its pads? What is mapped there without a
 * file may be a copy of it (programs do so for large pages), and has its jumps. */
static bool is_unmapped(const struct func *f, const struct text_map *m)
{
	if (!m)
		return true;
	return m->ino ? m->dev != f->dev || m->ino != f->ino ||
				f->address - m->lo + m->offset != f->offset
		      : !m->exec && !is_alike(f);
}

/* What leads to it, and what of it is moved. */
static void give_back(struct func *f)
{
	jump_free(&f->jump);
	f->jump = (struct jump){ 0 };
	gate_free(&f->gate);
}

/* Makes room for others, when all numbers have been given out: programs may load and unload libraries
 * without end, each time at other addresses. */
static void free_unmapped(const struct text_maps *maps)
{
	for (unsigned int i = 0; i < nfuncs; i++) {
		struct func *f = &funcs[i];

		if (f->standing == FREE || !is_unmapped(f, text_maps_find(maps, f->address)))
			continue;
		give_back(f);
		f->standing = FREE;
		nfree++;
	}
	memset(by_address, 0, sizeof(by_address));
	for (unsigned int i = 0; i < nfuncs; i++)
		if (funcs[i].standing != FREE)
			enter(&funcs[i]);
}

static struct gate *gate_for(__u64 function)
{
	struct func *f = find(function);

	return f && f->gate.to ? &f->gate : NULL;
}

/* A reason that lies in the function's own code, or in what is near it. */
static bool may_have_gate(enum hook_result why)
{
	return why == HOOK_ZONE || why == HOOK_FAR || why == HOOK_SHORT || why == HOOK_UNKNOWN ||
	       why == HOOK_BRANCH || why == HOOK_LOOP || why == HOOK_NO_JUMP;
}

/* The jump, or else the gate, of the function with the number n. */
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
	} else if (made->gate.to) { /* other code is there now, which has room */
		slots_take_off(maps, &made->gate);
		gate_leave(&made->gate);
	}
	made->jump = jump;
	made->why = why;
	return HOOK_ON;
}

/* Makes all ready for the byte that is written last. */
static enum hook_result prepare(const struct hook_spec *spec, const struct text_maps *maps,
				struct func **out)
{
	const struct text_map *m = text_maps_find(maps, spec->address);
	struct func *f = find(spec->address);
	enum hook_result result;

	if (!m || !m->exec || !m->read || !m->is_private || m->hi - spec->address < 16)
		return HOOK_NOT_CODE;
	if (f && is_alike(f) && !(f->gate.to && is_unmapped(f, m))) {
		learn_file(f, m);
		*out = f;
	} else {
		struct func *made = f;

		if (!f) {
			unsigned int number = new_number();

			if (number == HOOK_FUNCS)
				return HOOK_NO_MEMORY;
			made = &funcs[number];
		} else if (is_unmapped(f, m)) {
			give_back(f);
			f->standing = OFF;
		}
		result = make_way(made, spec, (unsigned int)(made - funcs), maps);
		if (result)
			return result;
		made->address = spec->address;
		made->standing = OFF;
		learn_file(made, m);
		if (!f)
			add(made);
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
		/* Is ours below it? Then the other tracer's end brings the file's byte, not ours. */
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

/* Slots of new objects, or (all) of all of them, lead to the gates from here on. */
static void open_gates(const struct text_maps *maps, bool all)
{
	if (!ngates)
		return;
	slots_find(maps, all, gate_for);
	slots_put_on(maps);
}

/* Which functions have hooks by their gates. */
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

struct hook_within engine_within;

/* Calls of the function take the way that its flags say; while hooks are off, none of them counts. */
static int lead(struct func *f)
{
	__u32 flags = engine_live->on ? engine_hot[f - funcs].flags : 0;

	if (!engine_within.bytes)
		flags &= ~(__u32)HOOK_FOLDS;
	return stub_lead(f->gate.to ? &f->gate.stub : &f->jump.stub, flags);
}

/* Of all functions. What cannot be written now is again tried by engine_check(). */
static void lead_all(void)
{
	bool opened = !text_open();

	for (unsigned int i = 0; i < nfuncs && opened; i++)
		if (funcs[i].standing != FREE)
			opened = !lead(&funcs[i]);
	text_close();
	/* Then no call is counted by its stub alone. */
	if (!opened)
		engine_forget_counts();
}

void engine_fold_within(__u64 lo, __u64 bytes)
{
	if (engine_within.lo == lo && engine_within.bytes == bytes)
		return;
	/* A thread may read one and then the other. */
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

/* What leads to the function could not be written. */
static void refuse(enum hook_result *result, struct func *f)
{
	if (!*result)
		*result = HOOK_NO_WRITE;
	if (f)
		f->gate.wanted = false;
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
	if (nfuncs - nfree + n > HOOK_FUNCS)
		free_unmapped(&maps);
	for (unsigned int i = 0; i < n; i++)
		results[i] = prepare(&specs[i], &maps, &ready[i]);
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
	for (unsigned int i = 0; i < n; i++)
		if (!results[i] && !ready[i]->gate.to)
			results[i] = put_on(ready[i]);
	open_gates(&maps, ngates != had);
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

static void take_off(struct func *f, const struct text_maps *maps, struct hook_leftover *left)
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
	else if (err < 0)
		left->gone++;
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
		struct func *f = addresses ? find(addresses[i]) : &funcs[i];

		if (f)
			take_off(f, maps, left);
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
 * The true return address goes back to where ours is. By compare and swap: the thread may return at
 * this moment, and has then read ours, or the true one, and does right with either. That no new
 * call can use this frame, and this place of the stack, with another return address: entries do
 * nothing since the membarrier, and one that was under way before it has another frame.
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
		return false; /* it may be in a register, or signed */
	m = text_maps_find(maps, state);
	return m && m->read && m->write &&
	       __atomic_compare_exchange_n((__u64 *)state, &mark, f->ra, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

/* Does a stack still lead to the frame, or may another tracer's return probe? */
static bool is_inside(const struct hook_frame *f, const struct text_maps *maps)
{
	__u64 state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE), word;
	const struct text_map *m = text_maps_find(maps, state);

	if (state % 8 || !m || !m->read)
		return false;
	if (!HOOK_RA_ON_STACK)
		return true;
	word = *(volatile __u64 *)state;
	return word == frame_mark(f) || (word >= call_probes_lo && word < call_probes_hi);
}

static void put_back_thread(struct hook_frame *f, const struct text_maps *maps,
			    struct hook_leftover *left)
{
	unsigned int before;

	/* Again as long as it helps: where one call has jumped to another, the same place holds the mark of
	 * the later one, and then that of the earlier. */
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
	/* A thread may be about to find that the hooks are off, with its mark already on the stack. */
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

#define BATCH 16 /* engine_interrupted() must use as little stack as entry() */

/* The functions from *from on that have a hook, or had it until another tracer came; at most BATCH. */
static unsigned int watched(unsigned int *from, struct func **which)
{
	unsigned int n = 0;

	for (; *from < nfuncs && n < BATCH; ++*from)
		if (!funcs[*from].gate.to &&
		    (funcs[*from].standing == ON || funcs[*from].standing == FOREIGN))
			which[n++] = &funcs[*from];
	return n;
}

/* The first bytes of functions, up to one that cannot be read; returns of how many. */
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

/* The same, where the system call may be forbidden. */
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

static void look(struct func *f, bool readable, __u8 byte, struct text_maps *maps)
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
				look(which[i + k], true, bytes[k], &maps);
			i += got;
			if (i < n)
				look(which[i++], false, 0, &maps);
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
