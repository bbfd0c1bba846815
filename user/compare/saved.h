/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * saved.h - reads what `stat --save` wrote: one JSON object for each run of a program, all
 * runs side by side. The files are untrusted: their size, depth and number of rows are bounded.
 * Knows no comparison.
 */
#ifndef CT_SAVED_H
#define CT_SAVED_H

#include "../api/domain.h"
#include "../util/types.h"

enum saved_section {
	SAVED_SUMMARY,	/* keys with a number each */
	SAVED_CALLS_OF, /* of each library: SAVED_CALLS_OF + its enum api_domain */
	SAVED_KERNELS = SAVED_CALLS_OF + API_DOMAIN_END,
	SAVED_COPIES,
	SAVED_SYNC,
	SAVED_TRAFFIC,	/* by direction */
	SAVED_COUNTERS, /* by device and metric: the mean is the value */
	SAVED_SECTION_END
};
const char *saved_section_name(enum saved_section); /* as the file has it: "runtime" */

enum saved_unit {
	SAVED_UNIT_NUMBER,
	SAVED_UNIT_NS,
	SAVED_UNIT_BYTES,
	SAVED_UNIT_SHARE /* 0 to 1 */,
	SAVED_UNIT_GBS
};

/* The numbers of a row. A key of the summary has only SAVED_VALUE. */
enum saved_field {
	SAVED_VALUE,
	SAVED_CALLS,
	SAVED_FAILED,
	SAVED_TIME,
	SAVED_AVG,
	SAVED_MEDIAN,
	SAVED_P90,
	SAVED_P99,
	SAVED_MIN,
	SAVED_MAX,
	SAVED_STDDEV,
	SAVED_BYTES,
	SAVED_OCCUPANCY,
	SAVED_BANDWIDTH,
	/* by how much `calls` may be wrong, at 95 %, if a part of them is an estimate */
	SAVED_ERROR,
	SAVED_FIELD_END
};
const char *saved_field_name(enum saved_field); /* "calls" */
enum saved_unit saved_field_unit(enum saved_field);
int saved_field_find(const char *name, size_t len); /* -1: there is none */

/* The keys of the summary that are known; NULL after the last. */
#define SAVED_VERSION 2 /* of `stat --save`; 1 is read too */

const char *saved_key(unsigned int i);
enum saved_unit saved_key_unit(const char *key);
const char *saved_key_json(const char *key);  /* its name in JSON, with the unit */
const char *saved_key_of(const char *json);   /* the key of a name in JSON; others are their own */
const char *saved_key_words(const char *key); /* "time in CUDA calls"; NULL: not known */

struct saved_row {
	enum saved_section section;
	const char *name; /* "": the section's total; untrusted bytes */
	double *values;	  /* run * SAVED_FIELD_END + field; NAN: not known */
};

struct saved {
	const char *path; /* the caller's */
	size_t nruns;
	struct saved_row *rows; /* by section and name */
	size_t nrows;
	bool device;   /* every run has device work */
	uint64_t lost; /* of all runs */
	uint64_t unseen; /* runs in which calls or device work were not seen, it is not known how many */
	struct saved_room *room;
};

/* Reads an open file, whose path is for messages. Returns 0, or -errno after one message.
 * saved_close() is safe in any case. */
int saved_open(struct saved *, int fd, const char *path);
void saved_close(struct saved *);

/* NULL: no run has it. */
const struct saved_row *saved_find(const struct saved *, enum saved_section, const char *name);
/* The numbers of a field, one for each run that knows it, into v (of nruns). `row` NULL:
 * nothing was called: 0 calls, and no time in them. Returns how many. */
size_t saved_values(const struct saved *, const struct saved_row *row, enum saved_section,
		    enum saved_field, double *v);

/* Divides the sums of each run by its number (of nruns, above 0): what remains is of one step. */
void saved_divide(struct saved *, const double *by);

#endif
