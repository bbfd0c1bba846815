/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracks.h - finds the track of a timeline to which a record belongs: a thread, a stream, a device.
 * Tracks are numbered from 0 in the order in which they are found. Knows no format.
 */
#ifndef CT_TRACKS_H
#define CT_TRACKS_H

#include "../../flow/sink.h"
#include "../../util/table/keyed.h"
#include "../../util/text.h"

#define TRACKS_MAX 65536
#define TRACKS_NONE UINT32_MAX

enum track_kind {
	TRACK_MARKERS,	   /* ranges and marks of a thread */
	TRACK_THREAD,	   /* calls of a thread */
	TRACK_OVERHEAD,	   /* overhead of the driver on a thread */
	TRACK_STREAM,	   /* work of a stream: kernels, copies, sets, graphs */
	TRACK_WAITS,	   /* synchronizations of a stream or a context */
	TRACK_MEMORY,	   /* memory of a device that is taken, given back and moved */
	TRACK_EVENTS,	   /* events of a device, by the machine's number */
	TRACK_OPERATORS,   /* of a thread, as are the two that follow: a framework's operators */
	TRACK_COLLECTIVES, /* calls of a library for collectives */
	TRACK_PRODUCTS,	   /* calls that multiply matrices */
	TRACK_HOLES,	   /* what was not seen of a process, or of the machine */
};
struct track {
	struct {
		uint32_t kind; /* enum track_kind */
		uint32_t pid;  /* process_unique(); 0: the track belongs to no process */
		/* thread id as shown; the GPU's number in the trace and the stream
		 * (CT_UNKNOWN: not known) */
		uint32_t first, second;
	} key;
	uint32_t shown_pid;
	char comm[CT_COMM_LEN];
	/* name of the thread, if it is not its process's leader; "": not known */
	char thread[CT_COMM_LEN];
	char whom[96]; /* text from about_whom(), and the rank */
	bool whom_known;
};

struct tracks {
	struct keyed all; /* struct track, by their numbers */
	uint32_t last;	  /* the track that was found last */
	uint64_t no_room; /* number of records for which there was no room */
};
static inline const struct track *tracks_at(const struct tracks *t, uint32_t i)
{
	return keyed_at(&t->all, i);
}

void tracks_init(struct tracks *);
void tracks_free(struct tracks *);
/* Returns TRACKS_NONE if the record has no place on a timeline, or if there is no room. */
uint32_t tracks_find(struct tracks *, const struct event *);
/* "thread 12345", "GPU 0, stream 7" */
void tracks_name(struct text *, const struct track *);
/* "train (12345)", "train (12345 on node-b, rank 3)"; "" if it belongs to no process */
void tracks_process(struct text *, const struct track *);

#endif
