/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.c - see slots.h. As with a function, only one byte of a slot is changed: the sixth byte of
 * the address in it. The new address is at least 2^40 bytes away, where nothing is mapped except
 * our pads. A thread that reads the slot at this moment reads the old address or the new one, and
 * both lead to the function.
 */
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "hook.h"
#include "objects.h"
#include "pads.h"
#include "slots.h"

#define BYTE 5 /* number of the byte in an address, counted from the lowest one */
#define SLOTS_MAX 1000000

struct slot {
	__u64 at;
	struct gate *gate;
	/* the word before the first call through the slot: the address of code in the same object
	 * that asks the loader for the function; 0: the slot was already bound */
	__u64 unbound;
	__u64 pad;     /* the pad that leads to the gate while the slot is unbound; 0: none */
	__u64 was;     /* the word that the slot has while it does not lead to the gate */
	bool foreseen; /* the slot can only be bound to this function */
	bool direct;   /* in the program itself, which is never unmapped: written directly */
	bool on;
	__u64 ino, offset; /* of the file mapping that contains the slot */
	__u32 dev;
};

static struct slot *slots; /* sorted by address after slots_find() */
static unsigned int nslots, slots_room;
static unsigned int nwaiting; /* number of slots that are not bound yet */

/* The objects that were searched. */
static struct seen {
	__u64 lo, ino;
	__u32 dev;
	bool settled; /* the object was read after it had been mapped */
	struct object object;
} * seen;
static unsigned int nseen;

static __u64 with_byte(__u64 address, __u8 byte)
{
	return (address & ~(0xffULL << (8 * BYTE))) | (__u64)byte << (8 * BYTE);
}

static __u8 byte_of(__u64 address)
{
	return (__u8)(address >> (8 * BYTE));
}

static bool grow(void *list, unsigned int n, unsigned int *room, size_t size)
{
	unsigned int to = *room ? *room * 2 : 256;
	void *more;

	if (n < *room)
		return true;
	more = realloc(*(void **)list, to * size);
	if (!more)
		return false;
	*(void **)list = more;
	*room = to;
	return true;
}

/* ---- gates ---- */

static int write_pad(__u64 pad, __u64 code)
{
	__u8 jump[PAD_BYTES];

	put_jump(jump, pad, code);
	return text_write(pad, jump, sizeof(jump));
}

int gate_make(struct gate *g, __u64 function, unsigned int n)
{
	/* between programs (at 55) and the libraries and the stack (at 7f) */
	static const __u8 bytes[] = { 0x6c, 0x66, 0x60, 0x4a, 0x44, 0x3e, 0x38, 0x32 };
	const struct stub_first all = { .bytes = bytes, .next = function };
	struct stub stub = { .at = 0 };
	__u64 pad = 0;
	int err = 0;

	*g = (struct gate){ 0 };
	if (function >= PADS_HIGHEST)
		return 1;
	for (size_t i = 0; i < sizeof(bytes) && !pad; i++)
		if (byte_of(function) != bytes[i] && pads_take(with_byte(function, bytes[i])))
			pad = with_byte(function, bytes[i]);
	if (!pad)
		return 1;
	stub.at = pads_slot(&pad, 1);
	if (stub.at) {
		stub_make(&stub, &all, n, CHUNK_SLOT);
		err = write_pad(pad, stub.at);
	}
	if (!stub.at || err) {
		pads_give(pad);
		if (stub.at)
			pads_slot_give(stub.at);
		return err ? err : 1;
	}
	g->pad = pad;
	g->stub = stub;
	g->to = function;
	return 0;
}

/* ---- pads for words that ask the loader ---- */

#if defined(__x86_64__)
/* Each unbound slot has its own code that asks the loader, so its pad leads directly to the
 * gate. */
static bool own_pad_take(struct slot *s, __u64 pad)
{
	if (!pads_take(pad))
		return false;
	if (!write_pad(pad, s->gate->stub.at))
		return true;
	pads_give(pad);
	return false;
}

static void own_pad_give(const struct slot *s)
{
	pads_give(s->pad);
}
#else
/*
 * All slots of an object share the code that asks the loader, and x16 has the slot's address there.
 * So the pad is shared, too. It jumps to the address in a word that is as far away from the slot as
 * the pad is from the shared code.
 */
static struct shared {
	__u64 pad, high; /* the upper 32 bits of the words' addresses */
	unsigned int slots;
} * shared;
static unsigned int nshared, shared_room;

static __u64 own_word(const struct slot *s, __u64 pad)
{
	return with_byte(s->at, byte_of(pad));
}

static struct shared *shared_find(__u64 pad)
{
	for (unsigned int i = 0; i < nshared; i++)
		if (shared[i].pad == pad)
			return &shared[i];
	return NULL;
}

static struct shared *shared_make(__u64 pad, __u64 high)
{
	__u8 code[PAD_BYTES];

	if (!grow(&shared, nshared, &shared_room, sizeof(*shared)) || !pads_take(pad))
		return NULL;
	put_jump_by_slot(code, high);
	if (text_write(pad, code, sizeof(code))) {
		pads_give(pad);
		return NULL;
	}
	shared[nshared] = (struct shared){ pad, high, 0 };
	return &shared[nshared++];
}

static bool own_pad_take(struct slot *s, __u64 pad)
{
	__u64 word = own_word(s, pad), high = word >> 32;
	struct shared *with = shared_find(pad);

	if ((with && with->high != high) || !pads_take_bytes(word, 8))
		return false;
	if (!with)
		with = shared_make(pad, high);
	if (!with || text_write(word, &s->gate->stub.at, 8)) {
		pads_give_bytes(word, 8);
		return false;
	}
	with->slots++;
	return true;
}

static void own_pad_give(const struct slot *s)
{
	struct shared *with = shared_find(s->pad);

	pads_give_bytes(own_word(s, s->pad), 8);
	if (!with || --with->slots)
		return;
	pads_give(with->pad);
	*with = shared[--nshared];
}
#endif

/* Marks a slot as not used any more. */
static void slots_forget(struct slot *s)
{
	s->gate->on -= s->on;
	if (s->pad)
		own_pad_give(s);
	nwaiting -= s->unbound != 0;
	s->gate = NULL;
}

static void drop_forgotten(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < nslots; i++)
		if (slots[i].gate)
			slots[n++] = slots[i];
	nslots = n;
}

void gate_leave(struct gate *g)
{
	for (unsigned int i = 0; i < nslots; i++)
		if (slots[i].gate == g) {
			slots[i].pad = 0;
			slots_forget(&slots[i]);
		}
	drop_forgotten();
	stub_lead(&g->stub, 0);
	*g = (struct gate){ 0 };
}

void gate_free(struct gate *g)
{
	if (!g->to)
		return;
	for (unsigned int i = 0; i < nslots; i++)
		if (slots[i].gate == g)
			slots_forget(&slots[i]);
	drop_forgotten();
	pads_give(g->pad);
	pads_slot_give(g->stub.at);
	*g = (struct gate){ 0 };
}

/* ---- finding ---- */

/* One of the names of a function that has a gate. */
struct name {
	__u32 hash;
	struct gate *gate;
	char *text;
	signed char only; /* whether only one object defines the name; -1: not known yet */
};
struct search {
	const struct text_maps *maps;
	slots_gate_fn gate_for;
	slots_each_fn each_gate;
	struct object *objects;
	bool *holds; /* which of them has a function with a gate */
	unsigned int n;
	struct object_tables tables; /* of the object that is being searched */
	bool has_tables, has_names;
	struct name *names; /* by hash */
	unsigned int nnames, names_room;
};

static bool one_name(void *ctx, const struct object *o, __u64 address, __u32 symbol)
{
	struct search *s = ctx;
	struct gate *g = s->gate_for(address);
	char text[OBJECT_NAME];
	struct name *n;

	if (!g || !object_name(o, symbol, text))
		return true;
	if (!grow(&s->names, s->nnames, &s->names_room, sizeof(*s->names)))
		return false;
	n = &s->names[s->nnames];
	*n = (struct name){ object_hash(text), g, strdup(text), -1 };
	s->nnames += n->text != NULL;
	return true;
}

static int by_hash(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* The objects are in the order of their addresses. */
static void note_holder(void *ctx, __u64 function)
{
	struct search *s = ctx;
	unsigned int lo = 0, hi = s->n;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (s->objects[mid].hi <= function)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < s->n && function >= s->objects[lo].lo)
		s->holds[lo] = true;
}

static void learn_names(struct search *s)
{
	s->has_names = true;
	s->holds = calloc(s->n + 1, sizeof(*s->holds));
	if (s->holds)
		s->each_gate(note_holder, s);
	for (unsigned int i = 0; i < s->n && s->holds; i++)
		if (s->holds[i])
			object_functions(&s->objects[i], one_name, s);
	free(s->holds);
	if (s->nnames)
		qsort(s->names, s->nnames, sizeof(*s->names), by_hash);
}

/* Returns whether only one function has the name. If two objects define it, or one of them has two
 * versions, only the loader can decide which one is meant. */
static bool is_only(struct search *s, const struct name *first, const char *text)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n; i++)
		n += object_may_define(&s->objects[i], text, first->hash);
	for (const struct name *m = first + 1; m < s->names + s->nnames && m->hash == first->hash;
	     m++)
		n += m->gate != first->gate && !strcmp(m->text, text);
	return n == 1;
}

/* Finds the gate of the function with this name. *only: whether no other function has the name. */
static struct gate *gate_named(struct search *s, const char *text, bool *only)
{
	__u32 hash = object_hash(text);
	unsigned int lo = 0, hi = s->nnames;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (s->names[mid].hash < hash)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < s->nnames && s->names[lo].hash == hash; lo++) {
		struct name *n = &s->names[lo];

		if (strcmp(n->text, text))
			continue;
		if (n->only < 0)
			n->only = is_only(s, n, text);
		*only = n->only;
		return n->gate;
	}
	return NULL;
}

/* Might the symbol have the name of a function with a gate? A library as PyTorch's has 50 000 slots of calls of its own functions. */
static bool may_be_named(const struct search *s, const struct object *o, __u32 symbol)
{
	unsigned int lo = 0, hi = s->nnames;
	__u32 hash;

	if (!object_hash_of(o, symbol, &hash))
		return s->nnames > 0;
	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (s->names[mid].hash < (hash & ~1U))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->nnames && (s->names[lo].hash | 1) == (hash | 1);
}

/* When the loader binds a slot, it makes sure that the function's object stays mapped for as long
 * as the slot's object. If the loader is not asked, because the slot leads to the gate, this must
 * be so for another reason: the slot's object needs the function's object. */
static bool is_needed(const struct search *s, const struct object *o, const struct gate *g)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (g->to >= s->objects[i].lo && g->to < s->objects[i].hi &&
		    object_needs(o, &s->objects[i]))
			return true;
	return false;
}

static struct slot *known(__u64 at, unsigned int n)
{
	unsigned int lo = 0, hi = n;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (slots[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && slots[lo].at == at ? &slots[lo] : NULL;
}

static bool is_same(const struct slot *s, const struct text_map *m)
{
	return m && m->dev == s->dev && m->ino == s->ino && s->at - m->lo + m->offset == s->offset;
}

static void slots_add(const struct search *s, const struct object *o, const struct object_word *w,
		      struct gate *g, bool unbound, bool foreseen)
{
	const struct text_map *m = text_maps_find(s->maps, w->at);
	struct slot *slot;

	if (!m || !m->read || !m->is_private || nslots == SLOTS_MAX ||
	    !grow(&slots, nslots, &slots_room, sizeof(*slots)))
		return;
	slot = &slots[nslots++];
	*slot = (struct slot){ .at = w->at,
			       .gate = g,
			       .unbound = unbound ? w->value : 0,
			       .foreseen = foreseen,
			       .direct = unbound && o->is_main && m->write,
			       .ino = m->ino,
			       .dev = m->dev,
			       .offset = w->at - m->lo + m->offset };
	nwaiting += unbound;
}

static unsigned int nsorted; /* slots that known() can find */

static bool one_word(void *ctx, const struct object *o, const struct object_word *w)
{
	struct search *s = ctx;
	char text[OBJECT_NAME];
	bool only = false;
	struct slot *had;
	struct gate *g;

	had = known(w->at, nsorted);
	if (had && had->gate) {
		if (had->on || w->value == had->gate->to || w->value == had->unbound)
			return true;
		slots_forget(had); /* another object is mapped there by now */
	}
	g = s->gate_for(w->value);
	if (g && w->use == OBJECT_DATA) {
		if (!s->has_tables)
			object_tables_read(o, &s->tables);
		s->has_tables = true;
		if (!object_tables_hold(&s->tables, w->at))
			return true;
	}
	if (g) {
		slots_add(s, o, w, g, false, true);
	} else if (w->use == OBJECT_CALL && w->value >= o->lo && w->value < o->hi) {
		if (!s->has_names)
			learn_names(s);
		if (may_be_named(s, o, w->symbol) && object_name(o, w->symbol, text) &&
		    (g = gate_named(s, text, &only)) && g->to != w->value)
			slots_add(s, o, w, g, true, only && is_needed(s, o, g));
	}
	return true;
}

static int slots_by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static void forget_unmapped(const struct text_maps *maps)
{
	for (unsigned int i = 0; i < nslots; i++)
		if (!is_same(&slots[i], text_maps_find(maps, slots[i].at)))
			slots_forget(&slots[i]);
	drop_forgotten();
	nsorted = nslots;
}

static const struct seen *was_seen(const struct text_map *m)
{
	for (unsigned int i = 0; i < nseen; i++)
		if (seen[i].lo == m->lo && seen[i].ino == m->ino && seen[i].dev == m->dev)
			return &seen[i];
	return NULL;
}

bool slots_searched(__u64 address)
{
	for (unsigned int i = 0; i < nseen; i++)
		if (address >= seen[i].object.lo && address < seen[i].object.hi)
			return true;
	return false;
}

/* Remembers the objects that are mapped now. Returns an array that says which of them are new. */
static bool *list_objects(struct search *s)
{
	bool *fresh = calloc(s->maps->n + 1, sizeof(*fresh));
	struct seen *now = calloc(s->maps->n + 1, sizeof(*now));

	s->objects = calloc(s->maps->n + 1, sizeof(*s->objects));
	if (!fresh || !now || !s->objects) {
		free(now);
		free(fresh);
		return NULL;
	}
	for (unsigned int i = 0; i < s->maps->n; i++) {
		const struct text_map *m = &s->maps->maps[i];
		const struct seen *before = was_seen(m);

		/* read twice, because the first time it may have been mapped only in part */
		if (before && before->settled)
			s->objects[s->n] = before->object;
		else if (!object_read(m, &s->objects[s->n]))
			continue;
		fresh[s->n] = !before;
		now[s->n] = (struct seen){ m->lo, m->ino, m->dev, before, s->objects[s->n] };
		s->n++;
	}
	free(seen);
	seen = now;
	nseen = s->n;
	return fresh;
}

void slots_find(const struct text_maps *maps, enum slots_scope scope, slots_gate_fn gate_for,
		slots_each_fn each_gate)
{
	struct search s = { .maps = maps, .gate_for = gate_for, .each_gate = each_gate };
	bool *fresh = list_objects(&s);

	forget_unmapped(maps);
	for (unsigned int i = 0; fresh && i < s.n; i++) {
		if (scope == SLOTS_NEW && !fresh[i])
			continue;
		object_words(&s.objects[i], scope == SLOTS_CALLS && !fresh[i], one_word, &s);
		if (s.has_tables)
			object_tables_free(&s.tables);
		s.has_tables = false;
	}
	drop_forgotten();
	if (nslots)
		qsort(slots, nslots, sizeof(*slots), slots_by_address);
	for (unsigned int i = 0; i < s.nnames; i++)
		free(s.names[i].text);
	free(s.names);
	free(s.objects);
	free(fresh);
}

/* ---- writing ---- */

/* Writes a slot of the program itself, which is never unmapped. If the loader binds the slot at
 * this moment, one of the two writes first, and both results are correct. */
static bool swap_direct(__u64 at, __u64 was, __u64 to)
{
	return __atomic_compare_exchange_n((__u64 *)at, &was, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

/* Takes the pad for an unbound slot. */
static bool take_own_pad(struct slot *s)
{
	__u64 pad = with_byte(s->unbound, byte_of(s->gate->pad));

	if (s->pad)
		return true;
	if (!own_pad_take(s, pad))
		return false;
	s->pad = pad;
	return true;
}

/*
 * At the first call through a slot the loader writes the function's address into it, maybe after we
 * have read the slot and before we write. The slot then has that address with our byte. This is the
 * address of the gate's pad, because the byte that we replace, and the byte that we write, are the
 * same for both.
 */
static bool may_lead(struct slot *s)
{
	return s->foreseen &&
	       pads_reach(with_byte(s->unbound, byte_of(s->gate->pad)), s->gate->stub.at) &&
	       byte_of(s->unbound) == byte_of(s->gate->to) && take_own_pad(s);
}

static int write_byte(__u64 at, __u64 to)
{
	__u8 byte = byte_of(to);

	return text_write(at + BYTE, &byte, 1);
}

static void lead(struct slot *s, bool to_gate)
{
	s->gate->on += (unsigned int)to_gate - (unsigned int)s->on;
	s->on = to_gate;
}

static int put_on(struct slot *s)
{
	__u64 word;
	int err;

	if (text_read(s->at, &word, 8))
		return 0;
	if (word == s->gate->pad || (s->pad && word == s->pad)) {
		s->was = word == s->gate->pad ? s->gate->to : s->unbound;
		lead(s, true);
		return 0;
	}
	if (word == s->gate->to) {
		nwaiting -= s->unbound != 0;
		s->unbound = 0;
		err = write_byte(s->at, s->gate->pad);
	} else if (s->unbound && word == s->unbound && s->direct && s->foreseen) {
		err = swap_direct(s->at, word, s->gate->pad) ? 0 : 1;
	} else if (s->unbound && word == s->unbound && !s->direct && may_lead(s)) {
		err = write_byte(s->at, s->pad);
	} else {
		lead(s, false);
		return 0;
	}
	s->was = word;
	lead(s, !err);
	return err < 0 ? err : 0;
}

int slots_put_on(const struct text_maps *maps)
{
	int err = 0;

	for (unsigned int i = 0; i < nslots && !err; i++)
		if (slots[i].gate->wanted && is_same(&slots[i], text_maps_find(maps, slots[i].at)))
			err = put_on(&slots[i]);
	return err;
}

bool slots_changed(void)
{
	__u64 word;

	for (unsigned int i = 0; i < nslots && nwaiting; i++) {
		const struct slot *s = &slots[i];

		if (!s->unbound || !s->gate->wanted || text_read(s->at, &word, 8))
			continue;
		if (s->on ? word != s->gate->pad && word != s->pad : word == s->gate->to)
			return true;
	}
	return false;
}

static void take_off(struct slot *s)
{
	__u64 word;

	lead(s, false);
	if (text_read(s->at, &word, 8))
		return;
	if (word == s->gate->pad && s->was == s->unbound && s->direct)
		swap_direct(s->at, word, s->was);
	else if (word == s->gate->pad)
		write_byte(s->at, s->gate->to);
	else if (s->pad && word == s->pad)
		write_byte(s->at, s->unbound);
}

void slots_take_off(const struct text_maps *maps, struct gate *g)
{
	for (unsigned int i = 0; i < nslots; i++) {
		struct slot *s = &slots[i];

		if (s->on && (!g || s->gate == g)) {
			if (is_same(s, text_maps_find(maps, s->at)))
				take_off(s);
			else
				lead(s, false);
		}
	}
}
