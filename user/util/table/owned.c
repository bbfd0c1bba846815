/* SPDX-License-Identifier: BSD-2-Clause */
/* owned.c - see owned.h. */
#include "owned.h"

struct count {
	uint32_t owner, n;
};

void owned_open(struct owned *s, size_t size, size_t key_size, size_t max, uint32_t part)
{
	*s = (struct owned){ .each = (uint32_t)(max / part) };
	hash_map_open(&s->things, size, key_size, max);
	hash_map_open_of(&s->counts, struct count, owner, max);
}

void owned_clear(struct owned *s)
{
	void *thing;

	if (s->drop)
		owned_each(s, thing) s->drop(thing);
	hash_map_clear(&s->things);
	hash_map_clear(&s->counts);
}

void owned_close(struct owned *s)
{
	owned_clear(s);
	hash_map_close(&s->things);
	hash_map_close(&s->counts);
}

static uint32_t owner_of(const void *thing)
{
	uint32_t owner;

	memcpy(&owner, thing, sizeof(owner));
	return owner;
}

void *owned_get(struct owned *s, const void *key, bool *made)
{
	void *thing = hash_map_find(&s->things, key);
	uint32_t owner = owner_of(key);
	struct count *c;

	*made = false;
	if (thing || s->things.n >= s->things.max)
		return thing;
	c = hash_map_get(&s->counts, &owner, &(bool){ false });
	if (c && c->n < s->each)
		thing = hash_map_get(&s->things, key, made);
	if (thing)
		c->n++;
	else if (c && !c->n)
		hash_map_remove(&s->counts, c);
	return thing;
}

void owned_remove(struct owned *s, void *thing)
{
	struct count *c = hash_map_find(&s->counts, &(uint32_t){ owner_of(thing) });

	INVARIANT(c && c->n);
	if (!--c->n)
		hash_map_remove(&s->counts, c);
	if (s->drop)
		s->drop(thing);
	hash_map_remove(&s->things, thing);
}

uint32_t owned_of(const struct owned *s, uint32_t owner)
{
	const struct count *c = hash_map_find(&s->counts, &owner);

	return c ? c->n : 0;
}

void owned_forget(struct owned *s, uint32_t owner)
{
	uint32_t left = owned_of(s, owner);
	void *thing;

	if (!left)
		return;
	owned_each(s, thing)
	{
		if (owner_of(thing) != owner)
			continue;
		owned_remove(s, thing);
		if (!--left)
			break;
	}
}
