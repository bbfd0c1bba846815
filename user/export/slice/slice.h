/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slice.h - what an event is on a timeline, the same for every format that has tracks: which track it
 * lies on, from when to when, its category and its name. How that is written down, and what else a
 * format says of the event, is the format's. Knows no format.
 */
#ifndef CT_SLICE_H
#define CT_SLICE_H

#include "../../flow/about.h"

enum slice_track {
	SLICE_NOWHERE, /* the event is not shown on a timeline */
	SLICE_THREAD,
	SLICE_RANGES, /* of a thread: ranges and marks that the program named */
	SLICE_SPANS,  /* ranges that may end in another thread: these need not nest */
	SLICE_OVERHEAD,
	SLICE_STREAM,
	SLICE_WAITS, /* of the host, for a stream or a context */
	SLICE_MEMORY,
	SLICE_MANAGED,
	SLICE_EVENTS, /* of a device */
	SLICE_LOST,
	SLICE_MUTED,
	SLICE_TRACKS
};

struct slice {
	enum slice_track track;
	bool instant;
	bool no_time; /* it would be shown, but the device gave no time */
	bool row;     /* it counts as a row of the output */
	uint64_t start_ns, end_ns;
	uint32_t tid;		 /* of what belongs to a thread */
	uint32_t device, stream; /* of what belongs to a device */
	/* untrusted bytes, valid as long as the event and this struct */
	const char *category, *name;
	size_t category_len, name_len;
	char text[ABOUT_SCOPE_MAX];
};

void slice_of(struct slice *, const struct sink_opts *, const struct event *);

#endif
