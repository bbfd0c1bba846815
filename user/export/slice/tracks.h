/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracks.h - the tracks of a timeline, numbered from 0 in the order in which they are found, with their names for people:
 * "thread 12345", "GPU 0, stream 7". What tracks there are is in tracks.def. Knows no format.
 */
#ifndef CT_TRACKS_H
#define CT_TRACKS_H

#include "../../util/table/hash_map.h"
#include "../../util/text.h"
#include "slice.h"

#define TRACKS_MAX 65536
#define TRACKS_NONE UINT32_MAX

struct track {
	struct {
		uint32_t page; /* its kind: the page's number of it */
		uint32_t pid;  /* process_unique(); 0: the track belongs to no process */
		/* thread id as shown; the GPU's number in the trace and the stream
		 * (CT_UNKNOWN: not known) */
		uint32_t first, second;
	} key;
	uint32_t shown_pid;
	uint8_t track; /* enum slice_track: the first one that was found, where several are one on the page */
	char comm[CT_COMM_LEN];
	/* name of the thread, if it is not its process's leader; "": not known */
	char thread[CT_COMM_LEN];
	char whom[96]; /* text from about_whom(), and the rank */
	bool whom_known;
};

struct tracks {
	struct hash_map all; /* struct track, by their numbers */
	uint32_t last;	     /* the track that was found last */
	uint64_t no_room;    /* number of records for which there was no room */
};
static inline const struct track *tracks_at(const struct tracks *t, uint32_t i)
{
	return hash_map_at(&t->all, i);
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
