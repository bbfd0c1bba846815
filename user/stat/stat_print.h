/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat_print.h - a report as text, JSON or CSV, and the options that only `cudatrace stat` has. Knows
 * reports and where they are written to.
 */
#ifndef CT_STAT_PRINT_H
#define CT_STAT_PRINT_H

#include "../sums/book.h"
#include "../flow/sink.h"
#include "../sums/report.h"

enum stat_form { STAT_TABLE, STAT_JSON, STAT_CSV };

struct stat_options {
	uint8_t by;	   /* enum book_by: what the tables separate */
	bool hist;	   /* with histograms */
	uint8_t form;	   /* enum stat_form */
	const char *save;  /* a file for the sums as JSON, beside the output; NULL: none */
	uint64_t runs;	   /* how often CMD is run; 0: once */
	uint8_t sort;	   /* enum report_order */
	uint64_t top;	   /* 0: all rows */
	const char *step;  /* NULL, or "auto": by all there is */
	uint64_t watch_ns; /* print what there is so far, so often; 0: only at the end */
};

/* What is printed in addition to the sums. */
struct print_about {
	const char *title;   /* what was traced; untrusted bytes; NULL: not known */
	const char *version; /* of cudatrace */
	bool hist;	     /* with histograms */
	uint64_t top;	     /* rows of a section, of the text; 0: all */
	bool color, utf8;
	const struct sink_end *end;
	const struct ct_device *device; /* the first one; NULL: not known */
	uint64_t peak_bytes;		/* largest amount of device memory held; 0: not known */
	bool memory;			/* freed sizes are known from the allocations */
	bool gpu;			/* device work was requested, even if none came */
};

/* Estimated minimum cost of the probes in the programs: the number of hits times the cost of an
 * empty pair of probes; 0: not known. */
double print_own_cost_ns(const struct print_about *, uint64_t *hits);

/* The share of the run in which at least one kernel ran, as the mean over all devices. Only with
 * r->ndevices and r->span_ns. */
double print_kernel_utilization(const struct report *);

void print_text(struct out *, const struct report *, const struct print_about *);
void print_json(struct out *, const struct report *, const struct print_about *);
void print_csv(struct out *, const struct report *, const struct print_about *);

/*
 * --watch (stat_watch.c): when the sums so far are printed, and the counts of processes that have
 * ended. The kernel side hands out all counts at each reading, but those of a process that has
 * ended once only.
 */
struct stat_watch;

/* NULL: no memory. */
struct stat_watch *stat_watch_open(uint64_t interval_ns);
void stat_watch_close(struct stat_watch *);
/* Each event of the sink passes here. Returns 0 or -ENOMEM. */
int stat_watch_event(struct stat_watch *, const struct event *);
/* Is it time to print? True only once for each time. */
bool stat_watch_due(struct stat_watch *, uint64_t now_ns);
/* Have counts come since the printing was due? */
bool stat_watch_ready(struct stat_watch *);
/* Writes what stands before the tables. On a terminal the new tables replace the old ones. */
void stat_watch_head(struct stat_watch *, struct out *);
/* Puts the counts of ended processes into a new book. Returns 0 or -errno. */
int stat_watch_again(struct stat_watch *, struct book *);

#endif
