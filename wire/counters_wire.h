/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_wire.h - what the counters' helper says to cudatrace beside the records of
 * wire/cudatrace.h, and how it is started. Both sides include it; it is never on disk, and both come
 * from one build, so that it needs no version.
 *
 * The socket is a SOCK_SEQPACKET pair: one message is one or more whole records. What cudatrace
 * writes is one byte, of any value, when sampling is to begin; when it shuts its end for
 * writing, the helper ends. A helper that could not be executed sends the errno, an int, and
 * nothing else.
 */
#ifndef CT_COUNTERS_WIRE_H
#define CT_COUNTERS_WIRE_H

#include "cudatrace.h"

/* Kinds that are not in enum ct_kind: far above it. */
enum counters_kind {
	/* struct ct_hdr alone: set up; every CT_DEVICE and CT_METRIC has come */
	COUNTERS_READY = 0x4000,
	COUNTERS_TEXT = 0x4001, /* struct counters_text */
	/* struct ct_hdr alone, the last record: the helper ends because it was told to, or is
	 * done */
	COUNTERS_BYE = 0x4002,
};

enum counters_level {
	COUNTERS_ERROR = 0, /* why there is nothing to come */
	COUNTERS_WARN = 1,
	COUNTERS_NOTE = 2,
	COUNTERS_VERBOSE = 3,
	COUNTERS_LINE = 4, /* a line of what was asked for (help) */
};

#define COUNTERS_TEXT_MAX 1024
struct counters_text {
	struct ct_hdr h;
	__u32 level; /* enum counters_level */
	__u32 len;   /* of text[], at most COUNTERS_TEXT_MAX */
	char text[];
};
CT_ASSERT_SIZE(struct counters_text, 40);

#define COUNTERS_MESSAGE_MAX 65536 /* bytes of one message */

/* What the helper is started with: argv[1] to argv[COUNTERS_ARGC - 1], all decimal or text; ""
 * where not given. */
enum counters_arg {
	COUNTERS_ARG_FD = 1,	   /* the socket */
	COUNTERS_ARG_MODE = 2,	   /* "sample" or "help" */
	COUNTERS_ARG_INTERVAL = 3, /* nanoseconds */
	COUNTERS_ARG_METRICS = 4,  /* a comma list; "": the usual ones */
	COUNTERS_ARG_CUPTI = 5,	   /* path of libcupti, or of the directory that it is in */
	COUNTERS_ARG_CHIP = 6,	   /* help: of this chip instead of the first device's */
	COUNTERS_ARGC = 7,
};

/* 100 us: the shortest that PM sampling was seen to hold */
#define COUNTERS_INTERVAL_MIN_NS 100000ULL

#endif
