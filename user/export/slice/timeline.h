/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline.h - puts spans and values into the order that a track of a timeline needs: by time, each
 * span inside the one in which it began, and an end before a begin at the same moment.
 *
 * A span comes when it is over: a nested one before or after the outer one, device work when its
 * buffer comes. Spans are held for TIMELINE_HOLD_NS, or for less time if they take too much memory.
 * A span without a duration is handed on as an instant. A span that does not fit what has been
 * handed on already (it came too late, or overlaps another) goes to the next lane: a separate track
 * beside the first.
 *
 * An arrow leads from a call to its device work. It is drawn only if both ends are drawn: a call is
 * handed on with its arrow if device work of it is held at that moment; device work is handed on
 * with its arrow if its call was handed on with it. Knows no format.
 */
#ifndef CT_TIMELINE_H
#define CT_TIMELINE_H

#include "../../event/event.h"

#define TIMELINE_HOLD_NS 2000000000ULL
#define TIMELINE_HOLD_BYTES (48u << 20)
#define TIMELINE_LANES 1024 /* lanes of a track */
#define TIMELINE_DEPTH 32   /* how deep spans may be nested on one lane */

enum timeline_what { TIMELINE_SPAN, TIMELINE_INSTANT, TIMELINE_VALUE };
enum timeline_arrow { TIMELINE_NO_ARROW, TIMELINE_FROM, TIMELINE_TO };

struct timeline_span {
	uint64_t start_ns, end_ns;
	uint64_t arrow; /* the number that both ends of an arrow have; 0: none */
	/* for an arrow's target: the end of its call; the target is held until the call can be
	 * handed on */
	uint64_t after_ns;
	uint32_t depth;
	uint32_t len; /* of its bytes */
	uint8_t what; /* enum timeline_what */
	uint8_t end;  /* enum timeline_arrow: which end of the arrow it is */
	size_t at;    /* offset of its bytes in the track's bytes */
};

/* Identifies a track. The sink chooses the kinds; a kind from which arrows start has
 * TIMELINE_EARLY set. */
#define TIMELINE_EARLY 0x80
struct timeline_key {
	uint32_t kind, pid;
	uint64_t start; /* start of the process, because a pid may be reused */
	uint32_t a, b;	/* thread, or device and stream */
};

struct timeline_lane {
	uint64_t last_ns; /* time of the latest that was handed on */
	uint64_t own;	  /* for use by the sink; 0 at first */
};

struct timeline_track {
	struct timeline_key key;
	/* for use by the sink; zero at first */
	uint64_t own;
	int64_t sum;
	bool introduced;
	char name[CT_COMM_LEN + 1];

	struct timeline_span *spans;
	uint32_t nspans, cap;
	char *bytes;
	size_t len, room;
	struct timeline_lane *lanes;
	int nlanes;
	bool unsorted;
};

/* The functions to which spans are handed on. Return 0 or -errno. */
struct timeline_ops {
	int (*begin)(void *ctx, struct timeline_track *, struct timeline_lane *, int lane,
		     const struct timeline_span *, const char *bytes, bool arrow);
	int (*end)(void *ctx, struct timeline_track *, struct timeline_lane *, uint64_t ns);
	/* late: the value is older than the latest one that was handed on, at lane->last_ns */
	int (*value)(void *ctx, struct timeline_track *, struct timeline_lane *,
		     const struct timeline_span *, const char *bytes, bool late);
};

struct timeline;
struct timeline *timeline_open(const struct timeline_ops *, void *ctx); /* NULL: no memory */
/* drops what is held: call timeline_flush() first */
void timeline_close(struct timeline *);

/* Finds or makes the track of a key. Valid until the next timeline_track(). NULL: no memory. */
struct timeline_track *timeline_track(struct timeline *, const struct timeline_key *);
/* Takes a span (`at` is ignored), and hands on what is due. Returns 0 or -errno. */
int timeline_add(struct timeline *, struct timeline_track *, const struct timeline_span *,
		 const void *bytes);
/* Hands on all that is held. */
int timeline_flush(struct timeline *);

/* Return how many pieces of device work with a known call got no arrow, and for how many spans
 * there was no lane. */
uint64_t timeline_no_arrow(const struct timeline *);
uint64_t timeline_dropped(const struct timeline *);

#endif
