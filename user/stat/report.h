/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - a book's answers as tables of rows: what stat prints, saves and compares. Knows no
 * format.
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
const char *report_section_name(enum report_section);  /* "runtime", as JSON has it */
const char *report_section_title(enum report_section); /* "Runtime API calls" */

struct report_row {
	/* function, kernel, direction; before it whom it concerns, when told apart. Safe to
	 * print */
	struct text label;
	struct ct_sums n;	    /* what is an estimate included */
	struct ct_estimated unseen; /* that part of the calls; all zero: none is */
	/* of the calls whose time is known, those with a record or a count of their own */
	uint64_t recorded;
	uint64_t median_ns, p90_ns, p99_ns; /* 0: not known */
	double share;	      /* of the section's time; of its calls when no times are known */
	struct ct_hist *hist; /* NULL: none. Owned by the report */
	/* of copies and memsets on a device; NULL: none. Owned by the report */
	struct book_sizes *sizes;
	uint64_t median_bytes;
	struct book_shape shape; /* of a kernel */
	uint8_t what;		 /* enum book_what */
};

/* Where bytes went. From the device's records where there are some, else from the calls. */
enum report_way {
	REPORT_HTOD,
	REPORT_DTOH,
	REPORT_DTOD,
	REPORT_PTOP,
	REPORT_HTOH,
	REPORT_UNTOLD,
	REPORT_SET,
	REPORT_WAY_END
};
const char *report_way_name(enum report_way); /* "HtoD" */
/* The row of the table of traffic that a direction belongs to. */
enum report_way report_way_of(enum api_way);
/* Where a counted call of this function and sub (CT_SUB_*) moves bytes; REPORT_WAY_END: it
 * copies none. */
enum report_way report_way_of_call(uint16_t func, uint8_t sub);
struct report_traffic {
	uint64_t copies, bytes, ns; /* ns: on the device; 0 with calls alone */
	struct ct_estimated unseen; /* of the copies, what is an estimate */
};

struct report {
	struct report_row *rows[REPORT_SECTION_END];
	size_t nrows[REPORT_SECTION_END];
	struct ct_sums totals[REPORT_SECTION_END];
	struct ct_estimated unseen[REPORT_SECTION_END]; /* of the totals, what is an estimate */
	struct report_traffic traffic[REPORT_WAY_END];
	bool device;		     /* there are device records */
	uint64_t span_ns;	     /* from the first thing seen to the last */
	bool timed;		     /* of some calls how long they took is known */
	uint64_t busy_ns;	     /* at least one kernel ran: of all devices together */
	size_t ndevices;	     /* that kernels ran on, told apart by process */
	const struct gauges *gauges; /* the book's */
	/* launches */
	uint64_t launches, graph_launches, threads, shared_bytes, on_streams;
	struct ct_estimated launches_unseen, graphs_unseen; /* of them, what is an estimate */
	/* of copies and memsets: asynchronous calls */
	uint64_t moves, moves_async;
	struct book_memory memory;
};

/* What the book holds now. NULL: no memory. Rows are sorted by time, those without times by calls. */
struct report *report_make(const struct book *);
void report_free(struct report *);

/* How many threads of a multiprocessor's can be active with this kernel, as a share of the most
 * it holds; -1: not known. By the rules of CUDA's occupancy calculator for compute capability
 * 7.0 and newer, with all of the multiprocessor's memory that can be shared memory given to it:
 * limits of registers, shared memory, blocks and warps. */
struct ct_device;
double report_occupancy(const struct book_shape *, const struct ct_device *);

/* All calls of CUDA's own libraries: of those whose calls fold, so that no time is in it twice. */
void report_calls(const struct report *, struct ct_sums *all, struct ct_estimated *unseen);

#endif
