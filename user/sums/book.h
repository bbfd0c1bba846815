/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * book.h - the sums of calls and device work, one entry for each kind of thing. They come from the
 * counters of the kernel side (CT_CALL_COUNT) or from single records. stat, top, compare and serve
 * answer from it. Knows no format.
 *
 * Memory is bounded: calls and device work for which there is no entry are counted in `no_room`.
 * Entries outlive their processes, which they name by pid and start: so no event/registry has them.
 */
#ifndef CT_BOOK_H
#define CT_BOOK_H

#include "../event/muted.h"
#include "../util/table/hash_map.h"
#include "busy.h"
#include "entered.h"
#include "gauges.h"

enum book_what {
	BOOK_CALL,   /* a function's calls */
	BOOK_KERNEL, /* a kernel's executions on a device */
	BOOK_COPY,   /* copies on a device; sub: enum ct_copy_kind */
	BOOK_SET,    /* memsets on a device */
};

#define BOOK_CLASSES 1u /* these are no scopes but the classes of work (work_class.h) */
/* What `stat --by` takes: a name, its word, the kinds of scopes (bits 1 << enum ct_scope_kind), the layers that are
 * recorded for it (bits). With kinds of scopes it is about what calls and device work were for: such a book has no
 * sums, scope_sums.h has them, and those of steps are in steps/steps.h. */
/* clang-format off */
#define BOOK_LAYER(domain) (1u << (API_##domain - API_FIRST_LAYER))
#define BOOK_BY(X) \
	X(FUNCTION, "function", 0, 0) \
	X(PROCESS, "process", 0, 0) \
	X(THREAD, "thread", 0, 0) \
	X(KERNEL, "kernel", 0, 0) \
	X(STREAM, "stream", 0, 0) \
	X(DEVICE, "device", 0, 0) \
	X(CGROUP, "cgroup", 0, 0) \
	X(RANGE, "range", 1u << CT_SCOPE_RANGE, BOOK_LAYER(NVTX)) \
	X(COLLECTIVE, "collective", 1u << CT_SCOPE_COLLECTIVE, BOOK_LAYER(NCCL)) \
	X(OPERATOR, "operator", 1u << CT_SCOPE_OPERATOR, BOOK_LAYER(TORCH)) \
	X(STEP, "step", 1u << CT_SCOPE_RANGE | 1u << CT_SCOPE_OPERATOR | 1u << CT_SCOPE_COLLECTIVE, \
	  BOOK_LAYER(NVTX) | BOOK_LAYER(TORCH) | BOOK_LAYER(CUBLAS) | BOOK_LAYER(CUDNN)) \
	X(GEMM, "gemm", 1u << CT_SCOPE_GEMM, BOOK_LAYER(CUBLAS) | BOOK_LAYER(CUDNN)) \
	X(CLASS, "class", BOOK_CLASSES, 0)
/* clang-format on */
/* The words of the groupings by scopes, for messages. */
#define BOOK_SCOPE_WORDS(last) "range, collective, operator, step, gemm " last " class"

#define BOOK_BY_NAME(name, word, scopes, layers) BOOK_BY_##name,
enum book_by { BOOK_BY(BOOK_BY_NAME) };
#undef BOOK_BY_NAME
/* Returns the words, with a NULL at the end. */
extern const char *const book_by_words[];
/* Returns the kinds of scopes of an enum book_by; 0: it does not group by scopes. */
uint32_t book_scopes(uint8_t by);
/* Returns the layers that must be recorded for an enum book_by. */
uint32_t book_layers(uint8_t by);

/* The resources of a kernel or a launch, for its occupancy, as the last record reported them. */
struct book_shape {
	/* block: threads; registers: per thread; shared: bytes per block */
	uint32_t block, registers, shared;
	uint32_t device;
};

/* Statistics of the bytes of single copies and memsets: `ns` and the members after it are bytes. */
struct book_sizes {
	struct ct_sums n;
	struct ct_hist hist;
};

struct book_entry {
	uint8_t what; /* enum book_what */
	uint8_t sub;  /* BOOK_CALL: CT_SUB_*; BOOK_COPY: enum ct_copy_kind */
	uint16_t func;
	uint32_t pid, start; /* which process; 0 if entries are not kept by process */
	/* thread, stream, device (book_device()), cgroup or handle of the kernel; 0: none */
	uint64_t by;
	/* name of a kernel; NULL: none, or not known. Owned by the book; untrusted bytes */
	const char *name;
	uint32_t shown_pid; /* with pid: the pid that users see */
	/* with pid: its place among the processes of its host with that number, from 1 */
	uint32_t nth;
	/* in merged recordings: the host where it ran; NULL otherwise. Owned by the book;
	 * untrusted bytes */
	const char *host;
	char comm[CT_COMM_LEN]; /* with pid: name of the process at the last addition */
	/* with BOOK_BY_THREAD: name of the thread at the last addition; "": the leader, or not
	 * known */
	char thread[CT_COMM_LEN];
	/* the higher, the newer these two names are; 0: the process was gone when its sums came */
	uint64_t named;
	struct ct_sums n; /* sums of calls that were each counted or recorded */
	/* other calls: those that recordings lack, and those that were only estimated */
	struct muted_sum muted;
	struct ct_hist *hist;	  /* NULL: none */
	struct book_sizes *sizes; /* for BOOK_COPY and BOOK_SET; NULL: none */
	struct book_shape shape;
};

struct book {
	struct book_entry *entries;
	size_t nentries;
	uint64_t no_room; /* number of calls and device work for which there was no entry */
	/* some entries have no name of their kernel, because there was no room for it */
	bool unnamed;
	/* times of the first and last that was added, CLOCK_MONOTONIC; 0: nothing */
	uint64_t first_ns, last_ns;
	struct busy busy;     /* time that devices were busy with kernels */
	struct gauges gauges; /* the hardware counters */
	/* struct known: sums of a process that has ended may come when another process has its
	 * number */
	struct hash_map processes;
	const struct gpu_table *gpus; /* the table of the events; NULL: no event had one */
	/* struct book_held: memory held, for calls that came one by one; the kernel side keeps
	 * the same for calls that it counts */
	struct hash_map held;
	struct entered *entered; /* NULL: no call took long, and no agent came into a process */
	struct book_index *index;
	uint64_t named; /* counts the entries' names that were looked at */
	enum book_by by;
	bool hists;
};

/* `by` of calls that are separated by stream but have no stream handle: the function takes no
 * stream, or it is in a struct that was not read. */
#define BOOK_NO_STREAM (~0ULL)
#define BOOK_STREAM_UNKNOWN (~1ULL)

/* A number for a device of a process. Devices of two processes have different numbers, although
 * they may be one GPU: the table of GPUs says that in the end. */
static inline uint64_t book_device(const struct process *p, uint32_t device)
{
	return (uint64_t)process_unique(p) << 32 | device;
}

/* Memory that was taken and not given back, as far as it is known. The size of freed memory is
 * known only if it was taken while calls were counted, by a call whose size is one argument
 * (ct_spec.memory_how). */
struct book_memory {
	/* number of calls that take or free such memory; 0: the other members have no meaning */
	uint64_t calls;
	int64_t device_bytes, host_bytes; /* held */
	/* number of frees of memory that is not known to have been taken */
	uint64_t unknown;
	/* number of allocations that could not be remembered, because there was no room */
	uint64_t forgotten;
};
/* Adds the sums of one function, in the form of CT_CALL_COUNT and of a book's entries. */
void book_memory_add(struct book_memory *, uint16_t func, const struct ct_sums *);

#define BOOK_MAX (1 << 18) /* about 1.3 KiB each, until they are printed */
/* max: entries at most; 0: BOOK_MAX. NULL: no memory. */
struct book *book_open(enum book_by, bool hists, size_t max);
void book_close(struct book *);
/* Adds the event. Returns 1 if it was counted, 0 if it is not of a kind that is counted, or
 * -ENOMEM. */
int book_event(struct book *, const struct event *);

/* Call it after the last event. It subtracts the time that agents took to come into processes from calls that were
 * only counted. */
void book_leave_entered(struct book *);

/* All calls of an entry: those in `n` and the muted ones. Estimated calls get the mean time,
 * bytes and threads of the others. */
struct ct_sums book_all(const struct book_entry *);
/* Adds b to a; a gets the shape of b. */
void book_add(struct ct_sums *a, const struct ct_sums *b);
double book_mean_ns(const struct ct_sums *);
double book_deviation_ns(const struct ct_sums *); /* of the population */
/* The duration that the share q (0..1) of the calls does not exceed, exact to a tenth of it; 0:
 * the histogram is empty. It lies between the sums' min_ns and max_ns. */
uint64_t book_quantile_ns(const struct ct_hist *, const struct ct_sums *, double q);
/* Where a bucket of a histogram begins. */
uint64_t book_bucket_ns(uint32_t bucket);

#endif
