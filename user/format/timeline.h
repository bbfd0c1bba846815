/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline.h - puts what happened in the order that a track of a timeline wants: by time, each span
 * inside the one that it began in, an end before a begin at the same moment.
 *
 * Spans come when they are over, those inside another before or after it, device work when its
 * buffer comes. They are held for TIMELINE_HOLD_NS, less when they take too much memory. A span
 * without a duration is handed on as an instant. What does not fit into what has been handed on
 * already (it came too late, or overlaps another) goes to the next lane: a track of its own beside
 * the first.
 *
 * An arrow leads from a call to its device work. It is drawn only when both ends are: a call is
 * handed on with its arrow when device work of it is held then; device work with its arrow when
 * its call was handed on with it. Knows no format.
 */
#ifndef CT_TIMELINE_H
#define CT_TIMELINE_H

#include "../event/event.h"

#define TIMELINE_HOLD_NS 2000000000ULL
#define TIMELINE_HOLD_BYTES (48u << 20)
#define TIMELINE_LANES 1024 /* of a track */
#define TIMELINE_DEPTH 32   /* spans inside each other on one lane */

enum timeline_what { TIMELINE_SPAN, TIMELINE_INSTANT, TIMELINE_VALUE };
enum timeline_arrow { TIMELINE_NO_ARROW, TIMELINE_FROM, TIMELINE_TO };

struct timeline_span {
	uint64_t start_ns, end_ns;
	uint64_t arrow; /* what the two ends of an arrow share; 0: none */
	/* an arrow's target: held until its call, which ended then, can be handed on */
	uint64_t after_ns;
	uint32_t depth;
	uint32_t len; /* of its bytes */
	uint8_t what; /* enum timeline_what */
	uint8_t end;  /* enum timeline_arrow: which end of the arrow it is */
	size_t at;    /* of its bytes in the track's */
};

/* What tells tracks apart. The sink chooses the kinds; one that arrows come from has
 * TIMELINE_EARLY set. */
#define TIMELINE_EARLY 0x80
struct timeline_key {
	uint32_t kind, pid;
	uint64_t start; /* of the process: a pid alone is reused */
	uint32_t a, b;	/* thread, or device and stream */
};

struct timeline_lane {
	uint64_t last_ns; /* of what was handed on */
	uint64_t own;	  /* the sink's; 0 at first */
};

struct timeline_track {
	struct timeline_key key;
	/* the sink's, zero at first */
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

/* What spans are handed on to. Return 0 or -errno. */
struct timeline_ops {
	int (*begin)(void *ctx, struct timeline_track *, struct timeline_lane *, int lane,
		     const struct timeline_span *, const char *bytes, bool arrow);
	int (*end)(void *ctx, struct timeline_track *, struct timeline_lane *, uint64_t ns);
	/* late: it is older than what was handed on, whose time lane->last_ns is */
	int (*value)(void *ctx, struct timeline_track *, struct timeline_lane *,
		     const struct timeline_span *, const char *bytes, bool late);
};

struct timeline;
struct timeline *timeline_open(const struct timeline_ops *, void *ctx); /* NULL: no memory */
/* what is held is dropped: flush first */
void timeline_close(struct timeline *);

/* The track of a key, made if it is new: valid until the next timeline_track(). NULL: no memory. */
struct timeline_track *timeline_track(struct timeline *, const struct timeline_key *);
/* Takes a span (at is ignored); hands on what is due. Returns 0 or -errno. */
int timeline_add(struct timeline *, struct timeline_track *, const struct timeline_span *,
		 const void *bytes);
/* Hands on all that is held. */
int timeline_flush(struct timeline *);

/* Device work with a known call whose arrow could not be drawn; spans that found no lane. */
uint64_t timeline_no_arrow(const struct timeline *);
uint64_t timeline_dropped(const struct timeline *);

#endif
