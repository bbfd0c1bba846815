/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fold.h - calls added up by process, stack and function: a tree of frames. The root's children are
 * the processes, and the leaves are the calls, or, for launches, the kernels. Or device work, by
 * the stack of the call that caused it. The folded, flame and speedscope sinks print it; it knows
 * none of them.
 *
 * Memory is bounded: what finds no room any more is added to the line "[other]".
 */
#ifndef CT_FOLD_H
#define CT_FOLD_H

#include "../../util/strings.h"
#include "../../flow/sink.h"
#include "../../util/text.h"

enum fold_kind {
	FOLD_PROCESS,
	FOLD_NATIVE,
	FOLD_PYTHON,
	FOLD_UNKNOWN,
	FOLD_CALL,
	FOLD_KERNEL,
	FOLD_OTHER,
	FOLD_DEVICE,
	FOLD_KIND_END
};

/* The text of a frame. Safe to print: well-formed UTF-8 that a terminal shows as it is, no ';'
 * and no newline. Never empty. Valid until the next event. */
struct fold_name {
	const char *text;
	/* with `places`: the source file; else, and where it is not known, NULL */
	const char *file;
	uint32_t line; /* with `places`; 0: not known */
	enum fold_kind kind;
};

/* Index 0 is the root, which has no name. An index of 0 elsewhere: none. */
struct fold_node {
	uint32_t parent, child,
		next; /* child: the first one; next: the next one of the same parent */
	uint32_t name;
	uint64_t self;	 /* weight of the calls or the work that end here: calls, ns or bytes */
	uint64_t second; /* the other sum: ns if each weighs 1, otherwise how many there are */
};

struct fold {
	const struct sink_opts *opts;
	/* separate frames by source file and line too; set it before the first event */
	bool places;
	struct fold_node *nodes;
	uint32_t nnodes;
	struct strings names;  /* names for fold_name(); 0 is the root's */
	uint32_t other;	       /* the node [other] */
	uint64_t without_size; /* calls that have no weight in bytes */
	uint64_t odd_sizes;    /* calls with an impossible size (CT_SIZE_MOST) */
	uint64_t no_room;      /* calls in [other] */
	uint64_t counted;      /* events that have their weight in the tree */
	struct fold_index *index;
};

/* max_nodes: frames of the tree at most; 0: as many as there is room for by default. NULL: no
 * memory. */
struct fold *fold_open(const struct sink_opts *, uint32_t max_nodes);
void fold_close(struct fold *);
struct fold_name fold_name(const struct fold *, uint32_t i);
/* Returns 1 when the event is counted: a call, or with SINK_WEIGHT_GPU device work that took
 * time. 0 when not. */
int fold_event(struct fold *, const struct event *);
/* Call it once, after all events: sorts every node's children by name. Returns 0 or -ENOMEM. */
int fold_finish(struct fold *);
/* Returns the node after `at` in an order in which parents come first, and changes *depth to its
 * depth (the root's is 0). Returns 0 at the end. */
uint32_t fold_next(const struct fold *, uint32_t at, uint32_t *depth);
/* Returns the node's own weight in the unit that is printed: calls, microseconds (at least 1 if
 * it took any time) or bytes; for device work nanoseconds. */
uint64_t fold_weight(const struct fold *, const struct fold_node *);
/* Returns the node's other sum: microseconds if the weight is calls, otherwise the number of
 * calls or of pieces of device work. */
uint64_t fold_second(const struct fold *, const struct fold_node *);
/* Appends the first `max` bytes of s as they may stand in a name: what no terminal shows becomes
 * '?', and, where it is to stand in a line of frames, ';' becomes ':'. */
void fold_clean(struct text *, const char *s, size_t max, bool in_line);
/* What is not in the graph, as a sentence each, to stderr. */
void fold_notes(const struct fold *);

#endif
