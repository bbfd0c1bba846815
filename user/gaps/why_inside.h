/* SPDX-License-Identifier: BSD-2-Clause */
/* why_inside.h - what the files of this room share: the threads, the places, and the book of causes. */
#ifndef CT_WHY_INSIDE_H
#define CT_WHY_INSIDE_H

#include "../sums/steps.h"
#include "../util/table/chains.h"
#include "../util/table/hash_map.h"
#include "why.h"

#define WHY_TEXT 512
#define WHY_DEPTH 6 /* threads of a chain */

/* A stretch off the CPU. `place` is a number of why_places. */
struct why_segment {
	uint64_t run_ns, start_ns, end_ns, wake_ns;
	uint32_t other_tid;
	uint32_t place, object, other; /* object, other: texts */
	uint8_t state, reason, by;
};
struct why_sample {
	uint64_t ns;
	uint32_t place;
	uint8_t reason;
};
struct why_call {
	uint64_t start_ns, end_ns;
	uint16_t func;
	bool launches, waits; /* waits: for the device */
};

struct why_thread {
	struct chain_link link; /* hash: tid */
	uint32_t tid, pid;
	uint32_t shown_pid, shown_tid;
	char comm[CT_COMM_LEN]; /* of the thread */
	char process[CT_COMM_LEN];
	struct why_segment *segments;
	struct why_sample *samples;
	struct why_call *calls;
	size_t nsegments, nsamples, ncalls;
	bool sorted;
};

/* Texts that are safe to print, each once, by number. 0: "". */
struct why_texts {
	struct chains by_text, by_stack; /* of struct why_text, struct why_seen */
	struct why_text **list;
	size_t n;
};
struct why_text {
	struct chain_link link;
	uint32_t number;
	char text[];
};
int why_texts_open(struct why_texts *);
void why_texts_close(struct why_texts *);
/* 0: no memory, or "". */
uint32_t why_texts_add(struct why_texts *, const char *text);
/* The place that a stack shows, by its id; the stack may be NULL. */
uint32_t why_texts_place(struct why_texts *, uint32_t id, const struct stack *);
static inline const char *why_texts_get(const struct why_texts *t, uint32_t number)
{
	return t->list[number]->text;
}

/* What has been found of a part, by the text of the chain. */
struct why_entry {
	struct chain_link link;
	enum why_kind kind;
	uint32_t text, line, tid;
	uint64_t ns, sampled_ns, samples, n;
};
/* Time on the CPU that is divided at the end, by the samples that lie in it. */
struct why_pool {
	struct chain_link link;
	const struct why_thread *thread;
	uint32_t prefix, tid;
	uint64_t ns, n;
	struct why_count {
		uint32_t place;
		uint8_t reason;
		uint64_t n;
	} * counts;
	size_t ncounts;
};
struct why_book {
	struct chains entries, pools;
	bool bad; /* no memory */
};

struct why_walk {
	struct why_texts *texts;
	const struct chains *threads;
	struct why_book *book;
	uint32_t tid; /* of the thread in which the walk began */
	/* between the launches of one thread: what its launches did is none of the gap */
	const struct why_thread *path[WHY_DEPTH + 1];
};
/* Divides from..to of a thread; NULL: the thread is not known. */
void why_walk(struct why_walk *, const struct why_thread *, uint64_t from, uint64_t to,
	      const char *prefix, int depth);
/* Adds a stretch to a cause. */
void why_book_add(struct why_walk *, enum why_kind, const char *text, uint32_t line, uint64_t ns);
/* Divides the pools. */
void why_book_close_pools(struct why_walk *);
/* What a pool that is not divided yet is mostly, and its text. */
enum why_kind why_pool_text(const struct why_walk *, const struct why_pool *, char *text,
			    size_t size, uint32_t *place);
void why_book_free(struct why_book *);
struct why_thread *why_thread_find(const struct chains *threads, uint32_t tid);

/* ---- devices ---- */

struct why_work {
	uint64_t start_ns, end_ns;
	uint64_t call_ns, call_end_ns; /* 0: not known */
	uint32_t pid, tid;
	uint32_t stream; /* place in the device's list */
	uint32_t name;	 /* text */
	uint8_t kind, class;
};
struct why_stream {
	struct why_stream_key {
		uint32_t pid, context, stream;
	} key;
	uint32_t last;	  /* while a list is walked: the place of its last work + 1 */
	uint64_t busy_ns; /* of all its work */
	uint64_t *waits;  /* when calls told it to wait for an event */
	size_t nwaits;
};
struct why_device {
	uint64_t key;
	uint32_t number, pid, shown_pid;
	char comm[CT_COMM_LEN];
	struct hash_map streams; /* of struct why_stream */
	struct why_work *work;	 /* by start, when no more comes */
	size_t nwork;
	uint32_t *before; /* of each: the place of the work before it in its stream + 1 */
	struct why_ended {
		uint64_t ns;
		uint32_t place;
	} * by_end;
};

/* A time without work, of a device or, with `thread`, between two launches of a thread. */
struct why_gap {
	uint64_t from_ns, to_ns;
	size_t work; /* the place of that which ends it */
};
/* What a part is made of. */
struct why_gaps {
	const struct why_device *device;
	const struct why_thread *thread;
	struct why_gap *list;
	size_t n;
};

#define WHY_DEVICES 64
#define WHY_THREADS 64 /* without device work: those that launch most */
struct why {
	struct why_texts texts;
	struct chains threads; /* of struct why_thread */
	struct why_device devices[WHY_DEVICES];
	unsigned int ndevices;
	struct steps *steps;
	struct why_totals totals;
	struct why_part *parts;
	struct why_book *books, *paths; /* of each part */
	size_t nparts;
};

static inline uint64_t why_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
static inline uint64_t why_most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
/* The end of a launch, by the thread's calls where the join did not keep it. */
uint64_t why_launch_end(const struct why_thread *, const struct why_work *);
/* Divides that part of a gap that lies within from..to. */
void why_gap_divide(const struct why *, struct why_walk *, const struct why_gaps *,
		    const struct why_gap *, uint64_t from, uint64_t to);
/* The entries of a book as causes, the longest first; they add up to *sum. The caller frees the list. NULL: no memory. */
struct why_cause *why_causes(const struct why *, const struct why_part *, struct why_book *,
			     size_t *n);
/* The critical path of a device from `from` to `to`, into the walk's book. */
void why_path(const struct why *, struct why_walk *, const struct why_device *, uint64_t from,
	      uint64_t to);
/* Fills in the steps of a process, and what the slow ones had more of. Returns 0 or -ENOMEM. */
int why_steps_find(struct why *, const struct why_gaps *, uint32_t pid, struct why_part *);

#endif
