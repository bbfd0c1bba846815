/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose_inside.h - shared by expose.c, which adds up, and expose_walk.c, which makes points from
 * the sums.
 */
#ifndef CT_EXPOSE_INSIDE_H
#define CT_EXPOSE_INSIDE_H

#include "../util/table/hash_map.h"
#include "expose.h"
#include "expose_collectives.h"

#define DEVICES_MAX 64
#define VALUES_MAX 64
#define KERNEL_NAME 128

enum sizes_of { OF_GRID, OF_BLOCK, OF_COPIES, SIZES_OF = OF_COPIES + API_WAY_END };

struct expose_sums {
	uint64_t calls, failed, ns, bytes;
	/* frees of unknown size, or allocations that could not be remembered, because there was
	 * no room */
	uint64_t odd;
	uint64_t impossible; /* calls with a size that cannot be, which is in no sum */
	/* the estimated part of the calls, and by how much it may be wrong at 95 % confidence */
	uint64_t estimated, error;
};

struct expose_process {
	struct {
		uint32_t tgid, start;
	} key;
	uint32_t group;			  /* + 1; 0: not determined yet */
	uint32_t entries;		  /* number of its entries */
	int64_t device_bytes, host_bytes; /* memory that it holds, as far as it is known */
};

struct expose_sizes {
	uint64_t sum, n[CT_SIZE_BUCKETS];
};

/* A kind of process. */
struct group {
	/* printable ASCII; NULL: not known; process NULL: the place is free */
	char *process, *container, *pod;
	uint32_t procs; /* number of living processes of this kind */
	uint64_t changed_ns;
	struct expose_sizes *sizes[SIZES_OF]; /* NULL: none yet */
	uint64_t other_kernels;		      /* launches of kernels that are not shown by name */
};

struct series {
	struct {
		uint16_t group, func;
		uint32_t way;
	} key;
	struct expose_sums n;
};

struct kernel {
	char name[KERNEL_NAME]; /* printable ASCII, filled up with zeros */
	uint64_t calls;
	uint32_t place; /* + 1; 0: it is counted as "other" */
};

struct kernel_series {
	struct {
		uint32_t group, place;
	} key;
	uint64_t calls;
};

struct device {
	char uuid[48], *model; /* model: printable ASCII */
	uint32_t index;
	uint64_t memory_bytes, sample_ns;
	struct {
		char name[64];
		double value;
		bool suspect;
	} values[VALUES_MAX];
	int nvalues;
};

struct expose {
	struct expose_opts opts;
	struct group *groups;  /* opts.groups, then "other" */
	struct hash_map procs; /* struct expose_process: processes with calls that were counted */
	struct hash_map
		entries; /* struct shown_sums: entries of the kernel side, as they were last read */
	/* place of the next entry: they come in the same order at each reading */
	size_t next;
	struct hash_map series; /* struct series */
	uint64_t no_room;	/* calls for which there was no series */
	uint64_t now_ns;
	/* durations by class; their values by function at the last reading */
	uint64_t hist[API_CLASS_END][CT_HIST_BUCKETS], hist_ns[API_CLASS_END];
	struct ct_hist *hist_last[CT_MAX_FUNCS];
	bool any_hist;
	bool any_estimated;	       /* some calls are estimates */
	int8_t signs[CT_MAX_FUNCS];    /* api_memory_sign() */
	struct hash_map kernels;       /* struct kernel */
	struct hash_map handles;       /* struct handle */
	struct hash_map kernel_series; /* struct kernel_series */
	uint32_t *places;	       /* opts.kernels places in kernels, + 1; 0: free */
	struct expose_collectives collectives;
	struct device devices[DEVICES_MAX];
	int ndevices;
};

static inline struct group *expose_other(const struct expose *x)
{
	return &x->groups[x->opts.groups];
}

#endif
