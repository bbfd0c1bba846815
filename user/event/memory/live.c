/* SPDX-License-Identifier: BSD-2-Clause */
/* live.c - see live.h. */
#include "live.h"

void live_init(struct live *l, uint32_t most)
{
	hash_map_open_of(&l->all, struct live_entry, pad,
			 most && most < LIVE_MAX ? most : LIVE_MAX);
}

void live_free(struct live *l)
{
	hash_map_close(&l->all);
}

size_t live_bytes(const struct live *l)
{
	return hash_map_bytes(&l->all);
}

/* Only the key. */
static struct live_entry live_key_of(uint32_t process, uint8_t space, uint64_t address)
{
	return (struct live_entry){ .address = address, .process = process, .space = space };
}

struct live_entry *live_find(const struct live *l, uint32_t process, uint8_t space,
			     uint64_t address)
{
	const struct live_entry key = live_key_of(process, space, address);

	return hash_map_look_for(&l->all, &key, offsetof(struct live_entry, bytes));
}

struct live_entry *live_add(struct live *l, uint32_t process, uint8_t space, uint64_t address)
{
	const struct live_entry key = live_key_of(process, space, address);
	bool made = false;
	struct live_entry *e = hash_map_get(&l->all, &key, &made);

	INVARIANT(!e || made);
	if (e)
		e->device = LIVE_NO_DEVICE;
	return e;
}

void live_remove(struct live *l, struct live_entry *e)
{
	hash_map_remove(&l->all, e);
}

struct live_entry *live_next(const struct live *l, uint32_t *at)
{
	return *at < l->all.n ? hash_map_at(&l->all, (*at)++) : NULL;
}
