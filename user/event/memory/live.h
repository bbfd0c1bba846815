/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - what is held now: allocations by process, space and address. A million of them take less
 * than 100 MiB. Knows no event and no format.
 */
#ifndef CT_LIVE_H
#define CT_LIVE_H

#include "../../util/table/hash_map.h"

#define LIVE_MAX ((1u << 21) / 8 * 7) /* allocations at a time */

struct live_entry {
	uint64_t address; /* or a handle; with the next ones the key */
	uint32_t process; /* number of the account */
	uint8_t space;	  /* enum api_memory_space, or LIVE_PHYSICAL */
	uint8_t pad[3];	  /* a part of the key */
	uint64_t bytes;
	uint64_t taken_ns; /* when the call that took it returned */
	/* the context to which it belongs, 0: the device's own; for MAPPED and a handle: the
	 * memory's number */
	uint64_t of;
	uint32_t site;
	uint16_t device; /* LIVE_NO_DEVICE: not known */
	uint8_t kind;	 /* enum api_memory_kind */
	bool allocator;	 /* taken by an allocator inside the program, for blocks */
	uint32_t refs;	 /* handles and mappings of physical memory */
};
#define LIVE_NO_DEVICE 0xffff
#define LIVE_PHYSICAL 0x80 /* space: physical memory, by a number of its own */
_Static_assert(sizeof(struct live_entry) <= 56, "a million of them in 200 MiB");

struct live {
	struct hash_map all;
};

/* most: entries at most; 0: LIVE_MAX. */
void live_init(struct live *, uint32_t most);
void live_free(struct live *);
/* NULL: not there. Valid until something is added or removed. */
struct live_entry *live_find(const struct live *, uint32_t process, uint8_t space,
			     uint64_t address);
/* An entry for the key, which must not be there, with everything else zero. NULL: no room. */
struct live_entry *live_add(struct live *, uint32_t process, uint8_t space, uint64_t address);
void live_remove(struct live *, struct live_entry *);
/* The first entry at or after place *at, and moves *at behind it; NULL: there is none. After
 * live_remove() of the entry, set *at back by one, because a later entry may have moved there. */
struct live_entry *live_next(const struct live *, uint32_t *at);
size_t live_bytes(const struct live *); /* for tests: the memory that is bounded */

#endif
