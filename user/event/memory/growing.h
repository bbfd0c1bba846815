/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growing.h - streams, events, graphs, modules and host memory of which a process has more and more:
 * they are made throughout the trace, and most of them are never given back. Knows calls; of which
 * process they are, and where they were made, is kept by those who ask: `mem` and `advise`.
 */
#ifndef CT_GROWING_H
#define CT_GROWING_H

#include "../event.h"

#define GROWING_BUCKETS 16 /* of time; when they are full, two become one */

enum growing_kind {
	GROWING_STREAMS,
	GROWING_EVENTS,
	GROWING_GRAPHS,
	GROWING_MODULES,
	GROWING_PINNED,
	GROWING_MAPPED,
	GROWING_END
};

/* Of one process; all zero: it has made none. */
struct growing {
	uint64_t first_ns, bucket_ns;
	struct growing_of {
		uint64_t made, given;
		/* made minus given back in each stretch of time */
		int64_t grown[GROWING_BUCKETS];
	} of[GROWING_END];
};

/* "streams" */
const char *growing_word(enum growing_kind);
/* Which handles a call that has not failed makes or gives back; GROWING_END: none. */
enum growing_kind growing_kind_of(const struct ct_call *, bool *makes);
/* Counts one. first_ns: when the process's time begins, which is used at the first. */
void growing_add(struct growing *, uint64_t first_ns, uint64_t at_ns, enum growing_kind,
		 bool makes);
/* In each quarter of the process's time until then there came to be more of them. */
bool growing_grows(struct growing *, uint64_t until_ns, enum growing_kind);

#endif
