/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slice.h - what an event is on a timeline, the same for every format that has tracks: which track it lies on, from when to
 * when, its category and its name, and which end of an arrow it is. It follows from the rows of slices.def and tracks.def.
 * How that is written down, and what else a format says of the event, is the format's. Knows no format.
 */
#ifndef CT_SLICE_H
#define CT_SLICE_H

#include "../../flow/about.h"
#include "timeline.h"

enum slice_track {
	SLICE_NOWHERE, /* the event is not shown on a timeline */
#define T(id, of, name, stream, page, perfetto, parent, keeps) SLICE_##id,
#include "tracks.def"
#undef T
	SLICE_TRACKS
};

/* What a track belongs to. GPU: a device of the machine; DEVICE: one of a process. */
enum slice_of { OF_MACHINE, OF_GPU, OF_PROCESS, OF_THREAD, OF_DEVICE, OF_STREAM };
enum slice_keeps { KEEPS_NOTHING, KEEPS_PROCESS, KEEPS_A };

struct slice_track_row {
	const char *name, *stream, *perfetto;
	uint8_t of;	/* enum slice_of */
	uint8_t page;	/* NO_PAGE: none */
	uint8_t parent; /* enum slice_track */
	uint8_t keeps;	/* enum slice_keeps */
};
#define NO_PAGE 255
extern const struct slice_track_row slice_tracks[SLICE_TRACKS];

enum slice_flag {
	SLICE_ROW = 0x1,     /* counts as a row of the output */
	SLICE_INSTANT = 0x2, /* a moment and not a stretch of time */
	SLICE_NESTS =
		0x4, /* speedscope shows it: on its track such slices lie inside each other or beside */
	SLICE_PAGE = 0x8, /* only the page shows it */
	/* nsys, which has a table for each kind that it knows, has it as a range in a domain that is called as the category */
	SLICE_RANGE = 0x10,
};

/* How the page draws it: the numbers of KINDS in html/timeline.html. */
enum slice_page {
	PAGE_CALL,
	PAGE_KERNEL,
	PAGE_COPY,
	PAGE_SET,
	PAGE_SYNC,
	PAGE_GRAPH,
	PAGE_OVERHEAD,
	PAGE_MEMORY,
	PAGE_MANAGED,
	PAGE_RANGE,
	PAGE_EVENT,
	PAGE_LOST, /* this one, and those after the counter: html_holes.c */
	PAGE_COUNTER,
	PAGE_MUTED,
	PAGE_UNPROBED,
	PAGE_HOLE
};

struct slice;
struct slice_row {
	const char *category;
	const char *kineto; /* NULL: chrome does not show the kind */
	uint8_t track, page, flags;
	void (*fill)(struct slice *, const struct sink_opts *, const struct event *);
};
/* NULL: the kind has no place on a timeline. */
const struct slice_row *slice_row(uint16_t kind);
/* The track of the event, whose kind has a row; of a scope by what it is. */
enum slice_track slice_track(const struct event *);
/* False: the record is there because others need it, or it comes again when more is known. */
bool slice_is_shown(const struct ct_hdr *);

struct slice {
	enum slice_track track;
	bool instant;
	bool loose;	/* it may end in another thread: such slices need not nest */
	bool no_time;	/* it would be shown, but the device gave no time */
	bool row;	/* it counts as a row of the output */
	uint8_t arrow;	/* enum timeline_arrow: from a call to its work */
	uint32_t depth; /* of a call inside calls */
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
