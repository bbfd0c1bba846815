/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - a book as tables of rows, which stat prints, saves and compares. Knows no format.
 */
#ifndef CT_REPORT_H
#define CT_REPORT_H

#include "../util/text.h"
#include "book.h"

enum report_section {
	REPORT_CALLS, /* calls of each library: REPORT_CALLS + its enum api_domain */
	REPORT_KERNELS = REPORT_CALLS + API_DOMAIN_END, /* executions on devices */
	REPORT_COPIES,					/* copies and memsets on devices */
	REPORT_SYNC,					/* the calls that wait: time blocked */
	REPORT_SECTION_END
};
/* False: a layer's, whose calls are scopes and are in no sum. */
bool report_section_counts(enum report_section);
const char *report_section_name(enum report_section);  /* "runtime", as JSON has it */
const char *report_section_title(enum report_section); /* "Runtime API calls" */

struct report_row {
	/* function, kernel or direction; before it the process, thread and so on, if they are
	 * separated. Safe to print */
	struct text label;
	struct ct_sums n;	    /* including estimates */
	struct ct_estimated unseen; /* the estimated part of the calls; all zero: there is none */
	/* among the calls whose time is known: those that were each recorded or counted */
	uint64_t recorded;
	uint64_t median_ns, p90_ns, p99_ns; /* 0: not known */
	/* share of the section's time, or of its calls if no times are known */
	double share;
	struct ct_hist *hist; /* NULL: none. Owned by the report */
	/* for copies and memsets on a device; NULL: none. Owned by the report */
	struct book_sizes *sizes;
	uint64_t median_bytes;
	struct book_shape shape; /* of a kernel */
	uint8_t what;		 /* enum book_what */
};

/* The directions of copied bytes. They come from the device's records if there are any,
 * otherwise from the calls. */
enum report_way {
	REPORT_HTOD,
	REPORT_DTOH,
	REPORT_DTOD,
	REPORT_PTOP,
	REPORT_HTOH,
	REPORT_UNKNOWN,
	REPORT_SET,
	REPORT_WAY_END
};
const char *report_way_name(enum report_way); /* "HtoD" */
/* The row of the table of traffic that a direction belongs to. */
enum report_way report_way_of(enum api_way);
/* Likewise of a copy on a device: CT_COPY_*. */
enum report_way report_way_of_copy(uint8_t kind);
/* The direction in which a counted call of this function and sub (CT_SUB_*) copies bytes;
 * REPORT_WAY_END: it copies none. */
enum report_way report_way_of_call(uint16_t func, uint8_t sub);
struct report_traffic {
	uint64_t copies, bytes, ns; /* ns: time on the device; 0 if only calls are known */
	struct ct_estimated unseen; /* the estimated part of the copies */
};

struct report {
	struct report_row *rows[REPORT_SECTION_END];
	size_t nrows[REPORT_SECTION_END];
	struct ct_sums totals[REPORT_SECTION_END];
	struct ct_estimated unseen[REPORT_SECTION_END]; /* the estimated part of the totals */
	struct report_traffic traffic[REPORT_WAY_END];
	bool device;	  /* there are device records */
	uint64_t span_ns; /* from the first thing seen to the last */
	bool timed;	  /* the durations of some calls are known */
	/* time in which at least one kernel ran, summed over all devices */
	uint64_t busy_ns;
	/* number of devices that ran kernels, counted separately for each process */
	size_t ndevices;
	const struct gauges *gauges; /* the book's */
	/* launches */
	uint64_t launches, graph_launches, threads, shared_bytes, on_streams;
	/* calls and device work with a size that cannot be (CT_SIZE_MOST): it is in no sum */
	uint64_t odd_sizes;
	struct entered_sum entered; /* time in calls that agents took to come into processes */
	struct ct_estimated launches_unseen, graphs_unseen; /* of them, what is an estimate */
	/* calls that copy or set memory, and the asynchronous ones among them */
	uint64_t moves, moves_async;
	struct book_memory memory;
};

/* Makes a report from the present contents of the book. NULL: no memory. Rows are sorted by
 * time, or by calls if they have no times. */
struct report *report_make(const struct book *);
/* By what rows are sorted, the most first; names in the order of the alphabet. */
enum report_order {
	REPORT_BY_TIME,
	REPORT_BY_CALLS,
	REPORT_BY_FAILED,
	REPORT_BY_AVG,
	REPORT_BY_MAX,
	REPORT_BY_BYTES,
	REPORT_BY_NAME
};
void report_sort(struct report *, enum report_order);
void report_free(struct report *);

/* The number of threads that can be active on a multiprocessor with this kernel, as a share of
 * its maximum; -1: not known. By the rules of CUDA's occupancy calculator for compute capability
 * 7.0 and newer, with all of the multiprocessor's memory that can be shared memory given to it:
 * limits of registers, shared memory, blocks and warps. */
struct ct_device;
double report_occupancy(const struct book_shape *, const struct ct_device *);

/* Adds up all calls of CUDA's own libraries, that is, of those whose nested calls fold, so that
 * no time is counted twice. */
void report_calls(const struct report *, struct ct_sums *all, struct ct_estimated *unseen);

#endif
