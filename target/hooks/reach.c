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
#include "../common/sys.h"

/* The wanted address of the area. The area must not lie where the functions' jumps land, which is
 * within 2 GiB of the libraries. */
#define FAR_AWAY 0x200000000000UL
#define PLACES 8 /* from there on, so far apart, in case the program has mapped something */
#define APART (1UL << 40)
/* At the begin: a sandbox that was not noticed may allow few system calls. */
#define FIRST_BLOCKS 4
#define CELLS_STEP 1024u	/* so many are whole pages, whatever the size of one */
#define CELLS_AHEAD (16u << 10) /* for a program that is about to restrict its system calls */

/* reach.asked: no more; a number that changes when `max` does; and how many elements */
#define CLOSED (1u << 31)
#define TURN (1u << 20)
#define NUMBER (TURN - 1)

/* Two arrays: blocks with their lists, and cells with their extras. The first `open` elements of
 * each are accessible. */
static struct reach {
	__u32 asked; /* elements that are accessible or are being made accessible; CLOSED, TURN */
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

/* What is mapped for the area, accessible or not, in the same way. Each of the four arrays may have lost its
 * end (reach_fit()). */
#define HELD_MAX (2 * RANGES_MAX + 8)
static struct range held[HELD_MAX];
static int nheld;

_Static_assert(HOOKS_CELLS <= NUMBER && HOOKS_THREADS_MAX <= NUMBER, "their numbers fit");
_Static_assert(CELLS_STEP * sizeof(struct ct_entry) % 4096 == 0, "whole pages");
_Static_assert(CELLS_STEP * sizeof(union hooks_extra) % 4096 == 0, "whole pages");
_Static_assert(HOOKS_LISTS * sizeof(__u64) % 4096 == 0, "whole pages");

/* ---- more ---- */

/* may: the calling thread may make a system call. */
static int more(struct reach *r, __u32 n, bool may)
{
	__u32 up = (n + r->step - 1) / r->step * r->step, to = up, was, max;

	if (n <= __atomic_load_n(&r->open, __ATOMIC_ACQUIRE))
		return 0;
	if (!may)
		return -EPERM;
	was = __atomic_load_n(&r->asked, __ATOMIC_ACQUIRE);
	do {
		if (was & CLOSED)
			return -EPIPE;
		max = __atomic_load_n(&r->max, __ATOMIC_ACQUIRE);
		if (n > max)
			return -ENOMEM;
		to = up < max ? up : max;
	} while ((was & NUMBER) < to &&
		 !__atomic_compare_exchange_n(&r->asked, &was, (was & ~NUMBER) | to, 0,
					      __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
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
	return more(&blocks, n, !capture_is_sandboxed());
}

int reach_more_cells(__u32 n)
{
	return more(&cells, n, !capture_is_sandboxed());
}

void reach_ahead(void)
{
	__u32 n = reach_cells();

	if (n)
		more(&cells, cells.max - n < CELLS_AHEAD ? cells.max : n + CELLS_AHEAD, true);
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
	__u32 n = __atomic_fetch_or(&r->asked, CLOSED, __ATOMIC_SEQ_CST) & NUMBER;

	__atomic_store_n(&r->open, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		add_range(r->part[i].at, r->part[i].at + n * r->part[i].each);
}

/* ---- what is mapped ---- */

static void hold(size_t from, size_t to)
{
	if (from < to && nheld < HELD_MAX)
		held[nheld++] = (struct range){ from, to };
}

/* Gives back what is mapped between two places: only what is ours, as the program may have mapped something
 * where a part was given back before. */
static void let_go(size_t from, size_t to)
{
	int n = nheld;

	for (int i = 0; i < n; i++) {
		struct range *h = &held[i], old = *h;
		size_t lo = from > old.from ? from : old.from, hi = to < old.to ? to : old.to;

		if (lo >= hi || (lo > old.from && hi < old.to && nheld == HELD_MAX))
			continue;
		sys_call(SYS_munmap, (long)(area + lo), (long)(hi - lo), 0, 0, 0, 0);
		h->to = lo;
		if (lo == old.from)
			*h = (struct range){ hi, old.to };
		else
			hold(hi, old.to);
	}
}

/* Gives back all that is not accessible; what is accessible becomes memory that nobody reads. */
static void *abandon(void)
{
	size_t at = 0, end = 0;
	bool failed = false;

	for (int i = 0; i < nheld; i++)
		end = held[i].to > end ? held[i].to : end;
	for (int i = 0; i < nranges; i++) {
		let_go(at, ranges[i].from);
		failed |= mmap(area + ranges[i].from, ranges[i].to - ranges[i].from,
			       PROT_READ | PROT_WRITE,
			       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			       0) == MAP_FAILED;
		at = ranges[i].to;
	}
	let_go(at, end);
	nheld = 0;
	for (int i = 0; i < nranges; i++)
		hold(ranges[i].from, ranges[i].to);
	return failed ? MAP_FAILED : area;
}

/* Maps a part where nothing is mapped. */
static bool map_gap(size_t from, size_t to, int fd)
{
	void *got;

	if (from >= to)
		return true;
	got = mmap(area + from, to - from, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd,
		   (off_t)from);
	if (got == area + from) {
		hold(from, to);
		return true;
	}
	if (got != MAP_FAILED) /* Linux before 4.17 does not know the flag */
		munmap(got, to - from);
	return false;
}

/* Maps the file over an abandoned area: over what is accessible there, and between. Returns false if something
 * else is mapped there meanwhile. */
static bool map_over(size_t bytes, int fd)
{
	size_t at = 0;

	for (int i = 0; i < nranges && ranges[i].from < bytes; i++) {
		size_t to = ranges[i].to < bytes ? ranges[i].to : bytes;

		if (nheld == HELD_MAX || !map_gap(at, ranges[i].from, fd) ||
		    mmap(area + ranges[i].from, to - ranges[i].from, PROT_READ | PROT_WRITE,
			 MAP_FIXED | MAP_SHARED, fd, (off_t)ranges[i].from) == MAP_FAILED)
			return false;
		at = to;
	}
	return nheld < HELD_MAX && map_gap(at, bytes, fd);
}

static void *map_anew(size_t bytes, int fd)
{
	void *at, *got;

	for (int i = 0; i < PLACES; i++) {
		at = (void *)(FAR_AWAY + i * APART);
		got = mmap(at, bytes, PROT_NONE, MAP_SHARED, fd, 0);
		if (got == at || got == MAP_FAILED)
			return got;
		munmap(got, bytes);
	}
	return mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
}

void *reach_map(void *over, size_t bytes, int fd)
{
	void *got;

	close_reach(&blocks);
	close_reach(&cells);
	if (fd < 0)
		return abandon();
	if (over) {
		if (map_over(bytes, fd))
			return over;
		abandon();
	}
	got = map_anew(bytes, fd);
	if (got != MAP_FAILED) {
		nranges = nheld = 0;
		area = got;
		hold(0, bytes);
	}
	return got;
}

/* ---- less ---- */

static void fit(struct reach *r, size_t bytes)
{
	size_t each = r->part[0].each + r->part[1].each, n;
	__u32 was = __atomic_fetch_or(&r->asked, CLOSED, __ATOMIC_SEQ_CST), old = r->max;

	if (was & CLOSED || !each)
		return;
	n = bytes / each / r->step * r->step;
	n = n > (was & NUMBER) ? n : was & NUMBER;
	if (n < old) {
		__atomic_store_n(&r->max, (__u32)n, __ATOMIC_RELEASE);
		for (int i = 0; i < 2; i++)
			let_go(r->part[i].at + n * r->part[i].each,
			       r->part[i].at + old * r->part[i].each);
	}
	/* a thread that has seen the former max must look again */
	__atomic_store_n(&r->asked, (was + TURN) & ~CLOSED, __ATOMIC_SEQ_CST);
}

void reach_fit(size_t bytes)
{
	fit(&cells, bytes / 2);
	fit(&blocks, bytes / 2);
}

static void layout(struct reach *r, __u32 max, __u32 step)
{
	r->max = max;
	r->step = step;
	/* from here on threads may ask for more */
	__atomic_store_n(&r->asked, (r->asked & ~(NUMBER | CLOSED)) + TURN, __ATOMIC_SEQ_CST);
}

int reach_begin(void *at, const struct hooks_start *s)
{
	size_t each = hooks_block_bytes(s->ring_bytes);
	size_t end = hooks_blocks_end(s->threads, s->ring_bytes);
	size_t first = end + s->threads * HOOKS_LISTS * sizeof(__u64);
	int err;

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
	err = reach_more_blocks(s->threads < FIRST_BLOCKS ? s->threads : FIRST_BLOCKS);
	return err || !s->cells ? err : reach_more_cells(1);
}
