/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lanes.h - puts spans of time in the order that a track of a timeline wants: begins and ends by time, each span inside
 * the one that it began in, an end before a begin at the same moment.
 *
 * Spans come when they are over, those inside another before or after it. They are held until the outermost one (depth 0)
 * is there and the next one begins after it, or until there are too many. What does not fit into what has been handed on
 * already (it came too late, or overlaps another) goes to the next lane: a track of its own beside the first.
 *
 * A set of lanes is a thread; a stream of a device will be one. Knows no format.
 */
#ifndef CT_LANES_H
#define CT_LANES_H

#include "text.h"

#define LANES_MAX 4   /* lanes of a set */
#define LANES_DEPTH 32 /* spans inside each other on one lane */
#define LANES_HOLD (256u << 10) /* bytes held at most, but for one span */

struct lanes_span {
	uint64_t start_ns, end_ns;
	uint32_t depth, len;
	size_t at; /* of its bytes in lanes.bytes */
	bool instant;
};

struct lanes {
	struct lanes_span *spans;
	uint32_t nspans, cap;
	struct text bytes;    /* what belongs to the spans, which the caller adds before lanes_add() */
	uint64_t end_ns;      /* the latest end of what is held */
	bool rooted;	      /* an outermost span is held */
	uint64_t last_ns[LANES_MAX]; /* of what was handed on */
	uint8_t used;	      /* a bit for each lane that something was handed on to */
};

/* What the lanes are handed on to. Return 0 or -errno. */
struct lanes_ops {
	int (*begin)(void *ctx, struct lanes *, int lane, const struct lanes_span *, const char *bytes);
	int (*end)(void *ctx, struct lanes *, int lane, uint64_t ns);
};

/* To be called before the bytes of a span are added: hands on what is complete when a span begins at start_ns. */
int lanes_before(struct lanes *, uint64_t start_ns, const struct lanes_ops *, void *ctx);
/* A span whose `len` bytes are the last ones in lanes.bytes. Returns 0 or -ENOMEM (the span is dropped). */
int lanes_add(struct lanes *, uint64_t start_ns, uint64_t end_ns, uint32_t depth, bool instant, size_t len);
/* Hands on all. *dropped is raised by the spans that found no lane. */
int lanes_flush(struct lanes *, const struct lanes_ops *, void *ctx, uint64_t *dropped);
void lanes_free(struct lanes *);

#endif
