/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * book.h - what calls and device work added up to: one entry for each kind of thing, as the kernel
 * side counted it (CT_TALLY) or as records tell it one by one. What stat, top, compare and serve
 * answer from. Knows no format.
 *
 * Memory is bounded: what finds no entry any more is counted in `no_room`.
 */
#ifndef CT_BOOK_H
#define CT_BOOK_H

#include "../event/muted.h"
#include "../util/table/keyed.h"
#include "busy.h"
#include "gauges.h"

enum book_what {
	BOOK_CALL,   /* a function's calls */
	BOOK_KERNEL, /* a kernel's executions on a device */
	BOOK_COPY,   /* copies on a device; sub: enum ct_copy_kind */
	BOOK_SET,    /* memsets on a device */
};

enum book_by {
	BOOK_BY_FUNCTION,
	BOOK_BY_PROCESS,
	BOOK_BY_THREAD,
	BOOK_BY_KERNEL,
	BOOK_BY_STREAM,
	BOOK_BY_DEVICE,
	BOOK_BY_CGROUP
};

/* The longest run of a kernel's or a launch's resources, for its occupancy; as the last record
 * told. */
struct book_shape {
	uint32_t block, registers, shared; /* threads; for each thread; bytes for each block */
	uint32_t device;
};

/* Bytes of copies and memsets, one by one: `ns` and what is after it are bytes. */
struct book_sizes {
	struct ct_sums n;
	struct ct_hist hist;
};

struct book_entry {
	uint8_t what; /* enum book_what */
	uint8_t sub;  /* BOOK_CALL: CT_SUB_*; BOOK_COPY: enum ct_copy_kind */
	uint16_t func;
	uint32_t pid, start; /* which process; 0 where entries are not kept by process */
	/* thread, stream, device (book_device()), cgroup, handle of the kernel; 0 */
	uint64_t by;
	/* of a kernel; NULL: none, or not known. Owned by the book; untrusted bytes */
	const char *name;
	uint32_t shown_pid; /* with pid, as users see it */
	/* with pid: of the processes of its host with that number, from 1 on */
	uint32_t nth;
	/* that it ran on, in merged recordings; NULL otherwise. Owned by the book; untrusted
	 * bytes */
	const char *host;
	char comm[CT_COMM_LEN];	  /* with pid, at what was added last */
	char thread[CT_COMM_LEN]; /* of BOOK_BY_THREAD likewise; "": the leader's, or not known */
	/* the higher, the newer these two are; 0: of a process that was gone when its sums came */
	uint64_t named;
	struct ct_sums n; /* of calls that were counted or recorded, each */
	/* of calls beside them: what recordings lack, and what nothing counted */
	struct muted_sum muted;
	struct ct_hist *hist;	  /* NULL: none */
	struct book_sizes *sizes; /* of BOOK_COPY and BOOK_SET; NULL: none */
	struct book_shape shape;
};

struct book {
	struct book_entry *entries;
	size_t nentries;
	uint64_t no_room; /* calls and device work that found no entry */
	/* some are told apart without the kernel's name, as there was no room for it */
	bool unnamed;
	uint64_t first_ns, last_ns; /* of what was added, CLOCK_MONOTONIC; 0: nothing */
	struct busy busy;	    /* with kernels */
	struct gauges gauges;	    /* the hardware counters */
	/* struct known: sums of one that has ended may come when another has its number */
	struct keyed processes;
	const struct gpu_table *gpus; /* of the events; NULL: none came with one */
	/* struct book_held: of calls that came one by one, as the kernel side keeps it of those
	 * it counts */
	struct keyed held;
	struct book_index *index;
	uint64_t named; /* entries' names that were looked at */
	enum book_by by;
	bool hists;
};

/* `by` of calls told apart by stream, where there is no handle: the function is given no stream,
 * or it is in a struct that was not read. */
#define BOOK_NO_STREAM (~0ULL)
#define BOOK_STREAM_UNKNOWN (~1ULL)

/* A device of a process: what tells apart those of two processes, which may be one GPU, as the
 * table of GPUs says in the end. */
static inline uint64_t book_device(const struct process *p, uint32_t device)
{
	return (uint64_t)process_unique(p) << 32 | device;
}

/* Memory that was taken and not given back, as far as it is known. What it was that is given
 * back is known of what was taken while calls were counted, by calls whose size is one argument
 * (ct_spec.memory_how). */
struct book_memory {
	/* that take or free such memory; 0: the rest says nothing */
	uint64_t calls;
	int64_t device_bytes, host_bytes; /* held */
	uint64_t unknown;		  /* frees of what is not known to have been taken */
	uint64_t forgotten;		  /* allocations that found no room to be remembered in */
};
/* Adds the sums of one function, as they are in CT_TALLY and in a book's entries. */
void book_memory_add(struct book_memory *, uint16_t func, const struct ct_sums *);

#define BOOK_MAX (1 << 18) /* some 1.3 KiB each, until they are printed */
/* max: entries at most; 0: BOOK_MAX. NULL: no memory. */
struct book *book_open(enum book_by, bool hists, size_t max);
void book_close(struct book *);
/* Adds what the event tells. Returns 1 when it counted, 0 when it is not of a kind that is
 * counted, or -ENOMEM. */
int book_event(struct book *, const struct event *);

/* All calls of an entry: those in `n` and the muted ones. The time, bytes and threads of those
 * that nothing counted have the mean of the others. */
struct ct_sums book_all(const struct book_entry *);
/* Adds b to a; the shape is b's. */
void book_add(struct ct_sums *a, const struct ct_sums *b);
double book_mean_ns(const struct ct_sums *);
double book_deviation_ns(const struct ct_sums *); /* of the population */
/* The duration that the share q (0..1) of the calls do not exceed, within a tenth of it; 0:
 * nothing there. It lies between the sums' min_ns and max_ns. */
uint64_t book_quantile_ns(const struct ct_hist *, const struct ct_sums *, double q);
/* Where a bucket of a histogram begins. */
uint64_t book_bucket_ns(uint32_t bucket);

#endif
