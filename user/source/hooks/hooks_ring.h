/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_ring.h - the area that the hooks of one process write to, as its reader has it. Whatever is
 * in it is another user's: it is copied before it is looked at, lengths, kinds and ids are checked,
 * and a reading is bounded. Knows no socket.
 */
#ifndef CT_HOOKS_RING_READER_H
#define CT_HOOKS_RING_READER_H

#include "../../event/event.h"
#include "../../../wire/hooks_wire.h"
#include "hooks_clock.h"
#include "hooks_pack.h"

struct agent_tids;
struct hooks_ring;

/* Records of several processes, in the order of their ends. */
struct hooks_batch;
struct hooks_batch *hooks_batch_open(void);
void hooks_batch_close(struct hooks_batch *);
bool hooks_batch_full(const struct hooks_batch *);
/* Copies a record. 0 or -ENOMEM. */
int hooks_batch_add(struct hooks_batch *, const struct ct_hdr *);
/* Hands all out and empties it; after an error of emit it goes on with the next. */
int hooks_batch_emit(struct hooks_batch *, emit_fn, void *ctx);

struct hooks_ring_opts {
	uint32_t threads, ring_bytes;
	uint32_t cells; /* 0: nothing is counted there */
	pid_t pid;
	struct agent_tids *tids;
	const struct hooks_clock *clock; /* NULL: times are ns already, of the process's clock */
	int64_t ahead_ns;		 /* which is ahead of ours by this */
	bool layers;			 /* some functions are of layers */
};
/* *fd: of the area, to be sent to the process; the caller closes it. NULL: -errno in *fd. */
struct hooks_ring *hooks_ring_open(const struct hooks_ring_opts *, int *fd);
void hooks_ring_close(struct hooks_ring *);

struct hooks_ring_counts {
	uint64_t received, lost, malformed, folded, filtered, deep, no_block, no_cell, forgets;
	uint64_t no_stack;   /* calls whose stack is missing */
	uint64_t unfinished; /* counted calls that did not return */
	uint64_t left;	     /* calls whose recording a signal handler left by a jump */
	uint64_t scopes_dropped, scopes_unbegun;
	uint64_t interrupted; /* functions whose hooks were off for a time */
};
void hooks_ring_counts(const struct hooks_ring *, struct hooks_ring_counts *);
/* When the process found that its connection was gone, and took its hooks off, as it says; 0: it did
 * not. */
uint64_t hooks_ring_gone_ns(const struct hooks_ring *);
/* Functions whose hooks were off for a time. */
uint64_t hooks_ring_interrupted(const struct hooks_ring *);
/* Has a child of vfork(2) made calls? */
bool hooks_ring_in_vfork(const struct hooks_ring *);

/* Calls of the muted function with this number, which are only counted: HOOKS_CALLS_MAX at most, because a
 * process may write any number. */
#define HOOKS_CALLS_MAX (UINT64_MAX >> 4)
uint64_t hooks_ring_muted(const struct hooks_ring *, uint32_t number);

void hooks_ring_phase(struct hooks_ring *, enum ct_phase);
/* Wakes the object's thread in the process, which waits at the area and not at its socket: to be called
 * after each message to it, and when the connection is closed. NULL: does nothing. */
void hooks_ring_bell(const struct hooks_ring *);
void hooks_ring_nested(struct hooks_ring *, bool on);
/* Tells the process how long a tick of the clock is; to be called now and then. */
void hooks_ring_tick(struct hooks_ring *);
void hooks_ring_count_by(struct hooks_ring *, uint8_t by); /* enum ct_by */
pid_t hooks_ring_pid(const struct hooks_ring *);
/* Calls fn for each cell of the area, with ids as ours. What it gets is a copy of the cell; `more`
 * still changes. */
typedef void (*hooks_cell_fn)(void *ctx, const struct ct_entry *, const union hooks_extra *more);
void hooks_ring_cells(struct hooks_ring *, hooks_cell_fn fn, void *ctx);

/* Records go two steps. They are moved out of the rings, packed, by one thread at a time (whichever it
 * is); then they are taken, in the order in which they were moved, by the thread that does all else
 * here. A block is a thread's part of the area. */
/* The first one from this one on that has been in use; UINT32_MAX: there is none. */
uint32_t hooks_ring_block(const struct hooks_ring *, uint32_t from);
uint32_t hooks_ring_size(const struct hooks_ring *); /* bytes of each of its rings */
/* Moves records of a block, as many as are there and find room, but no more than a ring holds; last:
 * nobody writes any more. `to` is aligned to 8 bytes and has room for HOOKS_PACKED_MAX() of the largest
 * record. Returns the bytes. */
size_t hooks_ring_move(struct hooks_ring *, uint32_t block, bool last, void *to, size_t room);
/* Notes what a block has now; and whether some of that has not been moved: no room was left, or its thread has begun
 * an entry and found no processor to complete it. */
void hooks_ring_mark(struct hooks_ring *, uint32_t block);
bool hooks_ring_behind(const struct hooks_ring *, uint32_t block);
/* Checks what one hooks_ring_move() has moved, and adds it to the batch. 0; -EBADMSG: it makes no sense;
 * -ENOMEM. */
int hooks_ring_take(struct hooks_ring *, uint32_t block, const void *, size_t bytes,
		    struct hooks_batch *);
/* What is in the area makes no sense, and is not moved again. */
bool hooks_ring_broken(const struct hooks_ring *);
/* The same, once: for a message. */
bool hooks_ring_turned_bad(struct hooks_ring *);

/* Both steps: what is there into the batch, at most until that is full. 0; 1: there is more; -EBADMSG:
 * the area makes no sense, and is not to be read again; -ENOMEM. */
int hooks_ring_read(struct hooks_ring *, struct hooks_batch *, bool last);
/* What to do with what a thread has left: 0: it is moved; 1: not yet; or -errno. */
typedef int (*hooks_rest_fn)(void *ctx, struct hooks_ring *, uint32_t block);
/* As such a function: into the batch that ctx is. */
int hooks_ring_rest(void *ctx, struct hooks_ring *, uint32_t block);
/* Gives back the blocks of threads that have ended, at most once a second; their calls under way
 * become records in a batch of their own, which may be the same one. */
int hooks_ring_sweep(struct hooks_ring *, hooks_rest_fn rest, void *ctx,
		     struct hooks_batch *under_way);
/* The calls under way, as records with these flags that end at end_ns: those of at least min_age_ns.
 * thread: one block; -1: all. */
int hooks_ring_inflight(struct hooks_ring *, uint16_t with, uint64_t min_age_ns, uint64_t end_ns,
			int thread, struct hooks_batch *);
/* How many threads are in calls that began less than this before. */
int hooks_ring_returning(struct hooks_ring *, uint64_t age_ns);

#endif
