/* SPDX-License-Identifier: BSD-2-Clause */
/* stat_print.h - a report as text, JSON or CSV. Knows reports and where they are written to. */
#ifndef CT_STAT_PRINT_H
#define CT_STAT_PRINT_H

#include "../format/sink.h"
#include "report.h"

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

#endif
