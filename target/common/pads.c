/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pads.c - pages at exact addresses (MAP_FIXED_NOREPLACE), and chunks of 64 KiB.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "hook.h"
#include "pads.h"
#include "sys.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#define PAGE 4096ULL
#define CHUNK 65536ULL
#define REACH 0x7ff00000ULL
#define LOWEST 0x10000ULL

struct page {
	__u64 address;
	__u64 used[PAGE / 64]; /* a bit for each byte */
};
#define CHUNK_SLOTS (CHUNK / CHUNK_SLOT)
struct chunk {
	__u64 address;
	unsigned int used;	       /* slots, from the first one on, that were ever in use */
	__u64 given[CHUNK_SLOTS / 64]; /* a bit for each of these slots that was given back */
	unsigned int ngiven;
};

/*
 * Size of a reserve: address space that is kept free. The kernel maps downward, so the next
 * mappings are below the reserve, and most jumps land 1.0 to 1.4 GiB above their function, in the
 * reserve. A reserve is empty and takes no memory.
 */
#define RESERVE_BYTES (1536ULL << 20)
#define RESERVES 16
/* Size of the mapping that is_covered() tries: as large as the largest libraries. A smaller one may
 * fit into a hole between other mappings, which says nothing about large libraries. */
#define PROBE_BYTES (512ULL << 20)
#define WITHIN (512ULL << 20) /* a library not farther below a reserve has its jumps in it */
static struct {
	__u64 lo, hi;
} reserves[RESERVES];
static unsigned int nreserves;

static struct page **pages; /* sorted by address */
static unsigned int npages, pages_room;
static struct chunk *chunks;
static unsigned int nchunks, chunks_room;
static __u64 stack_lo, stack_hi;

void pads_avoid(const struct text_maps *maps)
{
	struct rlimit limit;
	__u64 grows = 8 << 20;

	stack_lo = stack_hi = 0;
	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		grows = limit.rlim_cur;
	if (grows > 1ULL << 30)
		grows = 1ULL << 30;
	for (unsigned int i = 0; i < maps->n; i++)
		if (maps->maps[i].is_stack) {
			stack_hi = maps->maps[i].hi;
			/* includes the gap that the kernel keeps below the stack */
			stack_lo = stack_hi - grows - (2 << 20);
		}
}

static bool map_at(__u64 address, __u64 bytes)
{
	void *got;

	if (address < LOWEST || address + bytes > PADS_HIGHEST ||
	    (address < stack_hi && address + bytes > stack_lo))
		return false;
	got = mmap((void *)address, bytes, PROT_READ | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (got == MAP_FAILED)
		return false;
	if (got == (void *)address)
		return true;
	munmap(got, bytes); /* Linux before 4.17 ignores the flag and may choose another address */
	return false;
}

/* ---- reserves ---- */

static __u64 map_nothing(__u64 bytes)
{
	long at = sys_call(SYS_mmap, 0, (long)bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at > -4096 && at < 0 ? 0 : (__u64)at;
}

static void unmap(__u64 lo, __u64 hi)
{
	if (hi > lo)
		sys_call(SYS_munmap, (long)lo, (long)(hi - lo), 0, 0, 0, 0);
}

/* Returns whether the next mapping will be at a short distance below a reserve. */
static bool is_covered(void)
{
	__u64 at = map_nothing(PROBE_BYTES);

	if (!at)
		return true; /* there is no room, so nothing can be done */
	unmap(at, at + PROBE_BYTES);
	for (unsigned int i = 0; i < nreserves; i++)
		if (at < reserves[i].lo && reserves[i].lo - at <= PROBE_BYTES + WITHIN)
			return true;
	return false;
}

/* Returns whether the program's address space is limited. If so, all of it is left to the
 * program. */
static bool is_limited(void)
{
	struct rlimit limit = { 0 };

	return sys_call(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit, 0, 0) ||
	       limit.rlim_cur != RLIM_INFINITY;
}

/* Extends a reserve upward to the next mapping. The kernel aligns large mappings, which leaves a
 * hole above them. A small library would be mapped into that hole, and its jumps would land above
 * the reserve. Returns the new end. */
static __u64 grow_up(__u64 lo, __u64 hi)
{
	for (__u64 by = 1 << 20; by >= PAGE; by /= 2)
		if (sys_call(SYS_mremap, (long)lo, (long)(hi - lo), (long)(hi - lo + by), 0, 0,
			     0) == (long)lo)
			hi += by;
	return hi;
}

void pads_reserve(void)
{
	__u64 at;

	if (!PADS_RESERVE || nreserves == RESERVES || is_limited() || is_covered())
		return;
	at = map_nothing(RESERVE_BYTES);
	if (!at)
		return;
	reserves[nreserves].lo = at;
	reserves[nreserves].hi = grow_up(at, at + RESERVE_BYTES);
	nreserves++;
	if (is_covered())
		return;
	nreserves--;
	unmap(at, reserves[nreserves].hi);
}

static bool map_reserved(__u64 address)
{
	for (unsigned int i = 0; i < nreserves; i++)
		if (address >= reserves[i].lo && address + PAGE <= reserves[i].hi)
			return mmap((void *)address, PAGE, PROT_READ | PROT_EXEC,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				    0) == (void *)address;
	return false;
}

void pads_release(void)
{
	for (unsigned int i = 0; i < nreserves; i++) {
		__u64 from = reserves[i].lo;

		for (unsigned int k = 0; k < npages; k++)
			if (pages[k]->address >= from && pages[k]->address < reserves[i].hi) {
				unmap(from, pages[k]->address);
				from = pages[k]->address + PAGE;
			}
		unmap(from, reserves[i].hi);
	}
	nreserves = 0;
}

static bool grow(void *list, unsigned int n, unsigned int *room, size_t size)
{
	void *more;

	if (n < *room)
		return true;
	more = realloc(*(void **)list, (*room + 64) * size);
	if (!more)
		return false;
	*(void **)list = more;
	*room += 64;
	return true;
}

/* Returns the page's place in the list: the index of the first page that is not below the
 * address. */
static unsigned int page_find(__u64 address)
{
	unsigned int lo = 0, hi = npages;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (pages[mid]->address < address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct page *page_get(__u64 address)
{
	unsigned int lo = page_find(address);
	struct page *p;

	if (lo < npages && pages[lo]->address == address)
		return pages[lo];
	if (!grow(&pages, npages, &pages_room, sizeof(*pages)))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	if (!map_reserved(address) && !map_at(address, PAGE)) {
		free(p);
		return NULL;
	}
	p->address = address;
	memmove(pages + lo + 1, pages + lo, (npages - lo) * sizeof(*pages));
	pages[lo] = p;
	npages++;
	return p;
}

bool pads_take_bytes(__u64 address, unsigned int n)
{
	struct page *p[PAD_BYTES];

	for (unsigned int i = 0; i < n; i++) {
		__u64 at = address + i;

		p[i] = page_get(at & ~(PAGE - 1));
		if (!p[i] || p[i]->used[at % PAGE / 64] >> (at % 64) & 1)
			return false;
	}
	for (unsigned int i = 0; i < n; i++)
		p[i]->used[(address + i) % PAGE / 64] |= 1ULL << ((address + i) % 64);
	return true;
}

static void page_give(unsigned int i)
{
	__u64 address = pages[i]->address;
	bool reserved = false;

	for (unsigned int k = 0; k < PAGE / 64; k++)
		if (pages[i]->used[k])
			return;
	for (unsigned int k = 0; k < nreserves; k++)
		reserved |= address >= reserves[k].lo && address < reserves[k].hi;
	if (!reserved)
		unmap(address, address + PAGE);
	else if (mmap((void *)address, PAGE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return;
	free(pages[i]);
	npages--;
	memmove(pages + i, pages + i + 1, (npages - i) * sizeof(*pages));
}

bool pads_widen(__u64 address, unsigned int n)
{
	struct page *p = page_get(address & ~(PAGE - 1));

	if (!p || address % PAGE + n > PAGE)
		return false;
	for (__u64 at = address + PAD_BYTES; at < address + n; at++)
		if (p->used[at % PAGE / 64] >> (at % 64) & 1)
			return false;
	for (__u64 at = address + PAD_BYTES; at < address + n; at++)
		p->used[at % PAGE / 64] |= 1ULL << (at % 64);
	return true;
}

void pads_give_bytes(__u64 address, unsigned int n)
{
	for (__u64 at = address; at < address + n; at++) {
		unsigned int i = page_find(at & ~(PAGE - 1));

		if (i == npages || pages[i]->address != (at & ~(PAGE - 1)))
			continue;
		pages[i]->used[at % PAGE / 64] &= ~(1ULL << (at % 64));
		page_give(i);
	}
}

/* ---- chunks ---- */

static bool is_near(__u64 chunk, const __u64 *near, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if ((near[i] > chunk ? near[i] - chunk : chunk + CHUNK - near[i]) > REACH)
			return false;
	return true;
}

static struct chunk *chunk_add(__u64 address)
{
	if (!grow(&chunks, nchunks, &chunks_room, sizeof(*chunks)) || !map_at(address, CHUNK))
		return NULL;
	chunks[nchunks] = (struct chunk){ .address = address };
	return &chunks[nchunks++];
}

/* Searches for free address space. The search begins near the first address and takes growing
 * steps, because mappings are next to each other in large blocks. */
static struct chunk *chunk_near(const __u64 *near, unsigned int n)
{
	struct chunk *c;
	__u64 step = CHUNK;

	for (__u64 away = 16 << 20; away < REACH; away += step) {
		for (int down = 1; down >= 0; down--) {
			__u64 at = (down ? near[0] - away : near[0] + away) & ~(CHUNK - 1);

			if ((down ? at < near[0] : at > near[0]) && is_near(at, near, n)) {
				c = chunk_add(at);
				if (c)
					return c;
			}
		}
		if (step < 16 << 20)
			step *= 2;
	}
	return NULL;
}

/* Takes a slot of a chunk that has room. */
static __u64 slot_of(struct chunk *c)
{
	unsigned int i = 0;

	if (!c->ngiven)
		return c->address + c->used++ * CHUNK_SLOT;
	while (!(c->given[i / 64] >> (i % 64) & 1))
		i++;
	c->given[i / 64] &= ~(1ULL << (i % 64));
	c->ngiven--;
	return c->address + i * CHUNK_SLOT;
}

__u64 pads_slot(const __u64 *near, unsigned int n)
{
	struct chunk *c = NULL;

	for (unsigned int i = nchunks; i-- > 0 && !c;)
		if ((chunks[i].ngiven || chunks[i].used < CHUNK_SLOTS) &&
		    is_near(chunks[i].address, near, n))
			c = &chunks[i];
	if (!c)
		c = chunk_near(near, n);
	return c ? slot_of(c) : 0;
}

void pads_slot_give(__u64 slot)
{
	for (unsigned int i = 0; i < nchunks; i++) {
		unsigned int k = (unsigned int)((slot - chunks[i].address) / CHUNK_SLOT);

		if (slot < chunks[i].address || k >= chunks[i].used)
			continue;
		chunks[i].given[k / 64] |= 1ULL << (k % 64);
		chunks[i].ngiven++;
		return;
	}
}

__u64 pads_bytes(void)
{
	return npages * PAGE + nchunks * CHUNK;
}
