/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose.h - counts as Prometheus reads them: what processes called since cudatrace began, added up by what a process is
 * (name, container, pod), never by process id, so that the number of series is bounded. Knows no HTTP.
 */
#ifndef CT_EXPOSE_H
#define CT_EXPOSE_H

#include "../event/event.h"
#include "../util/out.h"

#define EXPOSE_GROUPS 256 /* kinds of processes told apart; the others are "other" */

struct expose;

struct expose_opts {
	const char *version; /* of cudatrace */
	unsigned int groups; /* kinds of processes at most; 0: EXPOSE_GROUPS */
	unsigned int kernels; /* kernels told apart by name; the others are "other"; 0: kernels are not exposed */
};

/* NULL: no memory. */
struct expose *expose_open(const struct expose_opts *);
void expose_close(struct expose *);

/* Before the sums of all processes that run are handed in anew. */
void expose_begin(struct expose *);
/* CT_TALLY, CT_COUNTER, CT_DEVICE, CT_PROCESS_INFO. Returns 0 or -ENOMEM. */
int expose_event(struct expose *, const struct event *);

enum expose_format { EXPOSE_TEXT /* 0.0.4 */, EXPOSE_OPENMETRICS /* 1.0.0 */ };
const char *expose_type(enum expose_format); /* the Content-Type */
/* What an Accept header asks for; NULL: none was sent. */
enum expose_format expose_wants(const char *accept);

struct expose_about {
	const struct losses *losses;
	uint64_t scrapes;	 /* answered before this one */
	double scrape_seconds;	 /* that they took together */
	double start_time_s;	 /* of cudatrace, since the epoch */
};
void expose_write(struct expose *, enum expose_format, const struct expose_about *, struct out *);

#endif
