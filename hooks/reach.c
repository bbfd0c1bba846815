/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reach.c - see reach.h. Threads make parts accessible while another thread may be replacing the
 * area. So a thread first announces the part that it is about to make accessible: either this part
 * stays accessible in the new area, or the thread does not begin.
 */
#include "reach.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "capture.h"
#include "sys.h"

/* The wanted address of the area. The area must not lie where the functions' jumps land, which is
 * within 2 GiB of the libraries. */
#define FAR_AWAY ((void *)0x200000000000)
/* At the begin: a sandbox that was not noticed may allow few system calls. */
#define FIRST_BLOCKS 4
#define CELLS_STEP 1024u	/* so many are whole pages, whatever the size of one */
#define CELLS_AHEAD (16u << 10) /* for a program that is about to restrict its system calls */

#define CLOSED (1u << 31)

/* Two arrays: blocks with their lists, and cells with their extras. The first `open` elements of
 * each are accessible. */
static struct reach {
	/* number of elements that are accessible or are being made accessible; CLOSED: no more */
	__u32 asked;
	__u32 open;
	__u32 max, step;
	struct {
		size_t at, each; /* the offset in the area, and the bytes of one element; 0: none */
	} part[2];
} blocks, cells;

static char *area;

/* The parts of the mapping that have been accessible, in bytes from the area's begin; sorted. */
#define RANGES_MAX 16
static struct range {
	size_t from, to;
} ranges[RANGES_MAX + 1];
static int nranges;

_Static_assert(CELLS_STEP * sizeof(struct ct_entry) % 4096 == 0, "whole pages");
_Static_assert(CELLS_STEP * sizeof(union hooks_extra) % 4096 == 0, "whole pages");
_Static_assert(HOOKS_LISTS * sizeof(__u64) % 4096 == 0, "whole pages");

/* ---- more ---- */

static int more(struct reach *r, __u32 n)
{
	__u32 to = (n + r->step - 1) / r->step * r->step, was;

	if (n > r->max)
		return -ENOMEM;
	if (n <= __atomic_load_n(&r->open, __ATOMIC_ACQUIRE))
		return 0;
	if (capture_is_sandboxed())
		return -EPERM;
	to = to < r->max ? to : r->max;
	was = __atomic_load_n(&r->asked, __ATOMIC_RELAXED);
	do {
		if (was & CLOSED)
			return -EPIPE;
	} while (was < to && !__atomic_compare_exchange_n(&r->asked, &was, to, 0, __ATOMIC_SEQ_CST,
							  __ATOMIC_RELAXED));
	for (int i = 0; i < 2; i++) {
		size_t len = to * r->part[i].each;
		long err = len ? sys_call(SYS_mprotect, (long)(area + r->part[i].at), (long)len,
					  PROT_READ | PROT_WRITE, 0, 0, 0)
			       : 0;

		if (err)
			return (int)err;
	}
	was = __atomic_load_n(&r->open, __ATOMIC_RELAXED);
	while (was < to && !__atomic_compare_exchange_n(&r->open, &was, to, 0, __ATOMIC_RELEASE,
							__ATOMIC_RELAXED))
		;
	return 0;
}

__u32 reach_blocks(void)
{
	return __atomic_load_n(&blocks.open, __ATOMIC_ACQUIRE);
}

__u32 reach_cells(void)
{
	return __atomic_load_n(&cells.open, __ATOMIC_ACQUIRE);
}

int reach_more_blocks(__u32 n)
{
	return more(&blocks, n);
}

int reach_more_cells(__u32 n)
{
	return more(&cells, n);
}

void reach_ahead(void)
{
	__u32 n = reach_cells();

	if (n)
		more(&cells, cells.max - n < CELLS_AHEAD ? cells.max : n + CELLS_AHEAD);
}

/* ---- the whole area ---- */

static void remove_range(int i)
{
	nranges--;
	for (; i < nranges; i++)
		ranges[i] = ranges[i + 1];
}

/* Joins parts that touch each other and, while there are too many, the two with the smallest gap
 * between them. */
static void join_ranges(void)
{
	for (;;) {
		size_t gap, least = 0;
		int at = -1;

		for (int i = 0; i + 1 < nranges; i++) {
			gap = ranges[i + 1].from > ranges[i].to ? ranges[i + 1].from - ranges[i].to
								: 0;
			if (at < 0 || gap < least) {
				at = i;
				least = gap;
			}
		}
		if (at < 0 || (least && nranges <= RANGES_MAX))
			return;
		if (ranges[at].to < ranges[at + 1].to)
			ranges[at].to = ranges[at + 1].to;
		remove_range(at + 1);
	}
}

static void add_range(size_t from, size_t to)
{
	int i = nranges;

	if (from >= to)
		return;
	for (; i && ranges[i - 1].from > from; i--)
		ranges[i] = ranges[i - 1];
	ranges[i] = (struct range){ from, to };
	nranges++;
	join_ranges();
}

/* From here on nothing more is made accessible. Notes the parts that are accessible, or are being
 * made accessible. */
static void close_reach(struct reach *r)
{
	__u32 n = __atomic_fetch_or(&r->asked, CLOSED, __ATOMIC_SEQ_CST) & ~CLOSED;

	__atomic_store_n(&r->open, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		add_range(r->part[i].at, r->part[i].at + n * r->part[i].each);
}

/* Maps a piece, at its place. */
static int map_piece(char *over, size_t from, size_t to, int prot, int fd)
{
	int how = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);

	if (from >= to)
		return 0;
	return mmap(over + from, to - from, prot, how, fd, fd < 0 ? 0 : (off_t)from) == MAP_FAILED
		       ? -1
		       : 0;
}

void *reach_map(void *over, size_t bytes, int fd)
{
	size_t at = 0;

	close_reach(&blocks);
	close_reach(&cells);
	if (!over) {
		nranges = 0;
		return mmap(FAR_AWAY, bytes, PROT_NONE, MAP_SHARED, fd, 0);
	}
	for (int i = 0; i < nranges && ranges[i].from < bytes; i++) {
		size_t to = ranges[i].to < bytes ? ranges[i].to : bytes;

		if (map_piece(over, at, ranges[i].from, PROT_NONE, fd) ||
		    map_piece(over, ranges[i].from, to, PROT_READ | PROT_WRITE, fd))
			return MAP_FAILED;
		at = to;
	}
	return map_piece(over, at, bytes, PROT_NONE, fd) ? MAP_FAILED : over;
}

static void layout(struct reach *r, __u32 max, __u32 step)
{
	r->max = max;
	r->step = step;
	/* from here on threads may ask for more */
	__atomic_store_n(&r->asked, 0, __ATOMIC_SEQ_CST);
}

int reach_begin(void *at, const struct hooks_start *s)
{
	size_t each = hooks_block_bytes(s->ring_bytes);
	size_t end = hooks_blocks_end(s->threads, s->ring_bytes);
	size_t first = end + s->threads * HOOKS_LISTS * sizeof(__u64);
	int err;

	area = at;
	if (mprotect(at, HOOKS_AREA_HEAD, PROT_READ | PROT_WRITE))
		return -errno;
	add_range(0, HOOKS_AREA_HEAD);
	blocks.part[0].at = HOOKS_AREA_HEAD;
	blocks.part[0].each = each;
	blocks.part[1].at = end;
	blocks.part[1].each = s->cells ? HOOKS_LISTS * sizeof(__u64) : 0;
	cells.part[0].at = first;
	cells.part[0].each = sizeof(struct ct_entry);
	cells.part[1].at = first + s->cells * sizeof(struct ct_entry);
	cells.part[1].each = sizeof(union hooks_extra);
	layout(&blocks, s->threads, 1);
	layout(&cells, s->cells, CELLS_STEP);
	err = more(&blocks, s->threads < FIRST_BLOCKS ? s->threads : FIRST_BLOCKS);
	return err || !s->cells ? err : more(&cells, 1);
}
