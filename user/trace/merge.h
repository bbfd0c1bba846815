/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * merge.h - several recordings as one: of several recorders of a host, or of several hosts. Times
 * are brought to the first one's clock, numbers that would collide are kept apart. Memory is
 * bounded for each input, whatever its size.
 *
 * A record that is in several inputs of one boot is taken once: a file that is given twice,
 * dumps of a flight recorder that overlap, a merged file beside one of its parts. It is the same
 * if everything in it is: process, thread, function, arguments, both times to the nanosecond.
 * Two recorders of one call never have equal times. A record is found among the newest
 * MERGE_SAME at least.
 */
#ifndef CT_TRACE_MERGE_H
#define CT_TRACE_MERGE_H

#include "writer.h"

#define MERGE_MAX 256 /* recordings */
#define MERGE_SAME (1u << 20)

struct merge;
struct merge *merge_open(void); /* NULL: no memory */
void merge_close(struct merge *);

/* Adds an input. Returns 0, or an error as reader_open() has it; -ENOTSUP: its clocks are not
 * known, so that it cannot be placed beside those of other hosts. */
int merge_add(struct merge *, const char *path);

/* How an input was placed. */
struct merge_placed {
	const char *path, *host; /* untrusted bytes */
	bool same_host;		 /* as the first: its times are right as they are */
	int64_t shift_ns;	 /* of its begin */
	/* what the readings and the hosts' own word for their clocks allow */
	uint64_t error_ns;
	uint64_t drift_ns; /* of the two clocks of the day within the recordings */
	/* one of the two hosts does not say how good its clock is: the error may be any */
	bool unsynced;
};
int merge_count(const struct merge *);
void merge_placed(const struct merge *, int i, struct merge_placed *);

/* The head of the result; the caller frees. NULL: no memory. */
char *merge_head(const struct merge *);
/* Writes all records and the end. Returns 0 or -errno (of reading or writing). */
int merge_write(struct merge *, struct writer *);
/* Records that were left out because another input had them, so far. */
uint64_t merge_same(const struct merge *);
/* Records that could not be read from the inputs, so far. */
uint64_t merge_lost(const struct merge *);

#endif
