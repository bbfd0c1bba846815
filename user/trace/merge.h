/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * merge.h - merges several recordings into one. They may be from several recorders of a host, or
 * from several hosts. Times are converted to the clock of the first recording, and numbers that
 * would collide are replaced. The memory for each input is bounded, whatever its size.
 *
 * A record that is in several inputs of one boot is taken once. This happens if a file is given
 * twice, if dumps of a flight recorder overlap, or if a merged file is given together with one of
 * its parts. Two records are the same if everything in them is equal: process, thread, function,
 * arguments, and both times to the nanosecond. If two recorders record one call, their times are
 * never equal. A record is compared with at least the newest MERGE_SAME records.
 */
#ifndef CT_TRACE_MERGE_H
#define CT_TRACE_MERGE_H

#include "../util/whole/progress.h"
#include "writer.h"

#define MERGE_MAX 256 /* recordings */
#define MERGE_SAME (1u << 20)

struct merge;
struct merge *merge_open(void); /* NULL: no memory */
void merge_close(struct merge *);

/* Adds an input. Returns 0 or an error of reader_open(). -ENOTSUP: the input has no clock records,
 * so its times cannot be compared with those of other hosts. */
int merge_add(struct merge *, const char *path);

/* How the times of an input were converted. */
struct merge_placed {
	const char *path, *host; /* untrusted bytes */
	/* the same host as the first input: its times need no conversion */
	bool same_host;
	int64_t shift_ns; /* by how much its begin was shifted */
	/* largest error of the shift, from the clock readings and from what the hosts report about
	 * their clocks */
	uint64_t error_ns;
	uint64_t drift_ns; /* how far the two times of day drifted within the recordings */
	/* one of the two hosts does not report how accurate its clock is: the error may have any
	 * size */
	bool unsynced;
};
int merge_count(const struct merge *);
void merge_placed(const struct merge *, int i, struct merge_placed *);

/* Returns the head of the result, which the caller frees. NULL: no memory. */
char *merge_head(const struct merge *);
/* Writes all records and the end. Returns 0 or -errno (of reading or writing). */
/* shown: how far it has come. */
int merge_write(struct merge *, struct writer *, struct progress *shown);
/* Number of records left out so far because another input had them. */
uint64_t merge_same(const struct merge *);
/* Number of records that could not be read from the inputs so far. */
uint64_t merge_lost(const struct merge *);

#endif
