/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * blocks.h - which blocks an allocator inside a program has given out, and to whom (PyTorch's): by process,
 * device, call site and operator. They are parts of memory that the ledger has already, so they are
 * never added to it. What the program reports is untrusted: what cannot be true is counted, and all
 * tables are bounded. Knows records and rows; no source, no format.
 *
 * The allocator says its totals with each block. Where they do not follow from the block and the totals
 * before it, reports are missing.
 */
#ifndef CT_BLOCKS_H
#define CT_BLOCKS_H

#include "../event/event.h"
#include "../event/memory/block_change.h"
#include "../event/memory/live.h"
#include "mem_sites.h"

#define BLOCKS_MAX LIVE_MAX
#define BLOCKS_TOTALS 4096
#define BLOCKS_ROWS 131072
#define BLOCKS_OPERATORS 65536 /* names */
#define BLOCKS_OOMS 16	       /* kept; more are counted only in their totals */

/* How a process's blocks lie in the segments that it has from CUDA, of those that were seen allocated. */
struct blocks_frag {
	uint64_t segments, bytes,
		used; /* that have blocks; their bytes, and of these, those in blocks */
	uint64_t holes, holes_bytes;	 /* stretches without a block in them */
	uint64_t empty, empty_bytes;	 /* segments that the allocator took, without a block */
	uint64_t largest;		 /* the longest stretch without a block, of all these */
	uint64_t outside, outside_bytes; /* blocks in no segment that was seen allocated */
	/* call sites of the blocks before and behind the longest stretch in a segment that has blocks;
	 * 0: none */
	uint32_t before, behind;
};

/* A device as one process uses it. Begins with its key. */
struct blocks_total {
	uint32_t process, device; /* number of the ledger; CUDA's */
	/* as the allocator said last; the most of each, and when that was first reached */
	uint64_t allocated, reserved, peak, peak_ns, reserved_peak;
	uint64_t before;		  /* allocated when it was first heard of */
	uint64_t bytes, n;		  /* in blocks that are known */
	uint64_t taken, taken_n, freed_n; /* bytes given out, blocks given out and taken back */
	uint64_t unseen_n, unseen_bytes;  /* taken back, but not seen given out */
	uint64_t unfreed_n; /* addresses that were given out again, but not seen taken back */
	uint64_t gaps_n;    /* times that the totals show that reports are missing */
	uint64_t odd_n;	    /* reports that cannot be true, which are left out */
	uint64_t no_room;   /* blocks for which there was no room */
	uint64_t ooms;
	uint32_t epoch; /* number of the peaks so far */
	bool heard, ended;
	struct blocks_frag frag; /* with `ended`: at the process's end */
};

enum blocks_by { BLOCKS_BY_STACK, BLOCKS_BY_OPERATOR };
/* Begins with its key. */
struct blocks_row {
	uint32_t total, by, of; /* by: enum blocks_by; of: a site, or an operator's number */
	uint32_t epoch;		/* of at_peak */
	uint64_t bytes, n;	/* held now */
	uint64_t taken, taken_n, freed_n;
	uint64_t at_peak,
		at_peak_n; /* held at the last peak of the total, if its epoch is that one */
};

/* Begins with its key. */
struct block {
	uint64_t address;
	uint32_t total, site;
	uint64_t bytes, taken_ns;
	uint32_t operator_name;
};

struct blocks_oom {
	uint32_t total, site;
	uint64_t at_ns, asked, allocated, reserved;
	struct blocks_frag frag;
	struct holders holders;
};

struct blocks {
	/* called for each change; NULL: not wanted */
	void (*changed)(void *ctx, const struct block_change *);
	void *ctx;
	struct hash_map
		totals; /* struct blocks_total: none is removed, so that its place is its number */
	struct hash_map rows;  /* struct blocks_row */
	struct hash_map live;  /* struct block */
	struct hash_map names; /* of operators: none is removed */
	struct blocks_oom ooms[BLOCKS_OOMS];
	uint32_t nooms;
	uint64_t no_row; /* changes for which there was no row, or no total */
};

/* live_max: blocks at a time at most; 0: BLOCKS_MAX. */
void blocks_init(struct blocks *, uint32_t live_max);
void blocks_free(struct blocks *);
/* Is it a report of the allocator, about memory of a GPU? */
bool blocks_has(const struct ct_call *);
/* Takes such a report. process: number of the ledger; segments: what it has from CUDA, for an
 * allocation that failed. Returns the allocation that failed, if it is one that is kept; else NULL. */
const struct blocks_oom *blocks_report(struct blocks *, const struct event *, uint32_t process,
				       uint32_t site, const struct live *segments);
/* The process ends: its blocks are forgotten, and their sums stay. Call it while its segments are there. */
void blocks_end(struct blocks *, uint32_t process, const struct live *segments);
/* The allocator has taken a segment from CUDA, or given it back, as one or by mapping memory; it
 * reports its totals only with the next block. */
void blocks_segment(struct blocks *, const struct block_change *);
/* What a process has from CUDA, by address. Mappings that adjoin are one: the allocator extends a
 * segment by them. */
struct blocks_span {
	uint64_t address, end;
	uint32_t site;
	uint16_t device;
	uint8_t space;
	bool own; /* the allocator took it */
};
/* The caller frees; NULL: none, or no memory. */
struct blocks_span *blocks_spans(const struct live *segments, uint32_t process, size_t *n);
/* The blocks of a total that are held now, by address. The caller frees; NULL: none, or no memory. */
struct block *blocks_held(const struct blocks *, uint32_t total, size_t *n);
static inline const struct blocks_total *blocks_total(const struct blocks *b, uint32_t i)
{
	return hash_map_at(&b->totals, i);
}
/* How the blocks of a total lie in its segments: at its process's end, or else now. */
struct blocks_frag blocks_fragments(const struct blocks *, uint32_t total,
				    const struct live *segments);
/* What the row held at the last peak of its total. */
uint64_t blocks_at_peak(const struct blocks *, const struct blocks_row *, uint64_t *n);
/* The rows of a total, those that held the most at its peak first. The caller frees; NULL: there are none, or no memory. */
const struct blocks_row **blocks_rows(const struct blocks *, uint32_t total, enum blocks_by,
				      uint32_t *n);
/* The name of an operator, untrusted bytes; NULL: none. Valid as long as the blocks. */
const char *blocks_operator(const struct blocks *, uint32_t number);

#endif
