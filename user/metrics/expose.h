/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose.h - counters as metrics: what processes called since cudatrace began, what devices do, and
 * the state of cudatrace itself. Calls are added up by the kind of process (name, container, pod)
 * and never by process id, so that the number of series is bounded. Knows no HTTP and no source.
 *
 *   CT_CALL_COUNT, CT_COUNTER... -> expose.c adds up -> expose_walk.c: families and points ->
 *   expose_text.c, or OTLP (otlp_metrics.c)
 */
#ifndef CT_EXPOSE_H
#define CT_EXPOSE_H

#include "../event/event.h"
#include "../util/io/out.h"

/* kinds of processes shown separately at a time; the others are "other" */
#define EXPOSE_GROUPS 256
#define EXPOSE_KERNELS_MAX 1000

struct expose;

struct expose_opts {
	const char *version; /* of cudatrace */
	const char *host;    /* of this machine; NULL: not known */
	unsigned int groups; /* kinds of processes at most; 0: EXPOSE_GROUPS */
	/* number of kernels shown by name; the others are "other"; 0: kernels are not exposed */
	unsigned int kernels;
	bool memory;	  /* the counters include memory taken and given back */
	bool collectives; /* calls of NCCL are recorded */
	/* number of entries that the kernel side's counters have room for; 0: not known */
	uint64_t entries;
};

/* NULL: no memory. */
struct expose *expose_open(const struct expose_opts *);
void expose_close(struct expose *);

/* Call it before the counters of the kernel side are handed in again. */
void expose_begin(struct expose *, uint64_t now_ns);
/* Takes CT_CALL_COUNT, CT_COUNTER, CT_DEVICE, CT_NAME, CT_PROCESS, CT_EXEC, CT_PROCESS_INFO, and CT_SCOPE_BEGIN and CT_SCOPE_END of
 * collectives.
 * Returns 0 or -ENOMEM. */
int expose_event(struct expose *, const struct event *);

/* ---- families and their points (expose_walk.c) ---- */

enum expose_kind { EXPOSE_COUNTER, EXPOSE_GAUGE, EXPOSE_HISTOGRAM };
struct expose_family {
	enum expose_kind kind;
	const char *name; /* Prometheus', without _total */
	const char *otel; /* OpenTelemetry's */
	const char *unit; /* the last word of `name` if that is a unit: "bytes"; NULL: none */
	const char *ucum; /* the same in OpenTelemetry's words: "By" */
	const char *help;
};

struct expose_label {
	const char *key, *value; /* the value is printable ASCII */
};
#define EXPOSE_LABELS 8
#define EXPOSE_BOUNDS 32
struct expose_point {
	struct expose_label labels[EXPOSE_LABELS];
	int nlabels;
	double value;
	/* for a histogram: the number in each bucket, not cumulative; the last bucket,
	 * counts[nbounds], has no upper end */
	int nbounds;
	const double *bounds;
	const uint64_t *counts;
	uint64_t count;
	double sum;
};

struct expose_about {
	const struct losses *losses;
	uint64_t scrapes;	     /* number of scrapes answered before this one */
	double scrape_seconds;	     /* time that they took together */
	uint64_t shut;		     /* connections closed to make room for others */
	uint64_t denied;	     /* requests without the right name and password */
	uint64_t handshakes_refused; /* TLS handshakes, as there were too many */
	double start_time_s;	     /* start of cudatrace, since the epoch */
	uint64_t now_ns;	     /* CLOCK_MONOTONIC */
	/* hardware counters were asked for, at this interval; 0: they were not */
	uint64_t counters_ns;
	bool no_queries; /* no function of class query is probed */
};
/* The function that is called for each family: first without a point (NULL), then with each of
 * its points. */
typedef void (*expose_fn)(void *ctx, const struct expose_family *, const struct expose_point *);
void expose_walk(struct expose *, const struct expose_about *, expose_fn, void *ctx);
/* True if there is a recent sample of the hardware counters. */
bool expose_counters_up(const struct expose *, const struct expose_about *);

/* ---- Prometheus' text (expose_text.c) ---- */

enum expose_format { EXPOSE_TEXT /* 0.0.4 */, EXPOSE_OPENMETRICS /* 1.0.0 */ };
const char *expose_type(enum expose_format); /* the Content-Type */
/* The format that an Accept header asks for; NULL: no header was sent. */
enum expose_format expose_wants(const char *accept);
void expose_write(struct expose *, enum expose_format, const struct expose_about *, struct out *);

#endif
