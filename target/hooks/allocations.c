/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocations.c - see allocations.h. A table of slots. A key may be in any of NEAR slots from its own place on, so
 * a slot can simply become free again. A slot that is being filled has the key BUSY.
 */
#include "allocations.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define SLOTS (1u << 20)
#define NEAR 32u
#define BUSY 1ULL

struct slot {
	__u64 key; /* 0: free */
	__u64 bytes;
};
static struct slot *slots; /* NULL: not open */

int held_open(void)
{
	/* replaces an earlier one, which a thread may still be using */
	void *at = mmap(slots, (SLOTS + NEAR) * sizeof(*slots), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (slots ? MAP_FIXED : 0), -1,
			0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	slots = at;
	return 0;
}

static struct slot *place_of(__u64 key)
{
	return &slots[key * 0x9e3779b97f4a7c15ULL >> 44];
}

static struct slot *allocations_find(__u64 key)
{
	struct slot *s = place_of(key);

	for (unsigned int i = 0; i < NEAR && key; i++)
		if (__atomic_load_n(&s[i].key, __ATOMIC_ACQUIRE) == key)
			return &s[i];
	return NULL;
}

bool held_take(__u64 key, __u64 *bytes)
{
	struct slot *s = allocations_find(key);

	if (!s)
		return false;
	*bytes = __atomic_load_n(&s->bytes, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(&s->key, &key, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool held_put(__u64 key, __u64 bytes, __u64 *had)
{
	struct slot *s = allocations_find(key);

	*had = 0;
	if (s) {
		*had = __atomic_exchange_n(&s->bytes, bytes, __ATOMIC_ACQ_REL);
		return true;
	}
	s = place_of(key);
	for (unsigned int i = 0; i < NEAR && key; i++) {
		__u64 none = 0;

		if (__atomic_load_n(&s[i].key, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&s[i].key, &none, BUSY, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&s[i].bytes, bytes, __ATOMIC_RELAXED);
		__atomic_store_n(&s[i].key, key, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

bool held_back(__u64 key, __u64 bytes)
{
	__u64 had;

	if (allocations_find(key))
		return true;
	held_put(key, bytes, &had);
	return false;
}
