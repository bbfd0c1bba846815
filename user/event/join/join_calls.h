/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_calls.h - inside join: the recent calls of each thread. A call is found by a moment at which
 * it was under way.
 */
#ifndef CT_JOIN_CALLS_H
#define CT_JOIN_CALLS_H

#include "../event.h"

#define JOIN_CALLS_MAX (1u << 20) /* calls remembered, of all threads */
#define JOIN_THREADS_MAX (1u << 16)

/* What is remembered about a call. */
struct join_call {
	uint64_t start_ns, end_ns;
	uint32_t number, stack; /* 0: none */
	uint32_t scope;		/* around it, as call_scope() says it */
	uint16_t func;
	uint8_t depth;
	bool open_end;	 /* its end is not known: it lasts until the next one's start */
	uint8_t expects; /* kinds of device records that it may have, JOIN_EXPECTS_*; 0: none */
	bool worked;	 /* one of them came */
	bool launches;	 /* it is a launch of one kernel that expects its record */
	uint8_t makes;	 /* kinds of device records that calls of its function have */
};
enum { JOIN_EXPECTS_KERNEL = 1, JOIN_EXPECTS_COPY = 2, JOIN_EXPECTS_SET = 4 };

struct join_calls;
struct join_calls *join_calls_open(void); /* NULL: no memory */
void join_calls_close(struct join_calls *);
/* `process` distinguishes processes with the same pid. Returns 0 or -ENOMEM. */
int join_calls_add(struct join_calls *, uint32_t process, uint32_t tid, const struct join_call *);
/* A moment, and the thread that is meant. */
struct join_moment {
	uint64_t at_ns;
	/* each call that began before it has a record: one with an open end lasts until the next
	 * one's start */
	bool seen;
};
/* Finds the outermost call that was under way then, or the outermost shown one if there is any.
 * *whole: no other call can be the one, because the call that the program itself made was found.
 * worked: all calls that were under way have a device record. NULL: none. Valid until the next
 * add. */
const struct join_call *join_calls_at(struct join_calls *, uint32_t process, uint32_t tid,
				      const struct join_moment *, bool worked, bool *whole);
/* A stretch of time, and the kind of device record whose call is looked for. */
struct join_span {
	uint64_t from_ns, to_ns;
	uint8_t kinds; /* JOIN_EXPECTS_* */
};
/* Finds the last call that began and ended in the stretch and whose function has such records; of
 * nested calls the outermost, or the outermost shown one. Looks at no more than JOIN_INSIDE_MAX
 * calls. *whole: all calls in the stretch have come. worked: the call has a device record. NULL:
 * none. Valid until the next add. */
#define JOIN_INSIDE_MAX 4096
const struct join_call *join_calls_inside(struct join_calls *, uint32_t process, uint32_t tid,
					  const struct join_span *, bool worked, bool *whole);
/* Finds the call of a row that began exactly then. */
const struct join_call *join_calls_begun(struct join_calls *, uint32_t process, uint32_t tid,
					 uint64_t start_ns, uint16_t func);
/* Notes that the same call has a device record. */
void join_calls_worked(struct join_calls *, uint32_t process, uint32_t tid, uint64_t start_ns,
		       uint16_t func);
/*
 * Counts the calls of a process that expect device records of these kinds, began and ended in a
 * stretch of time, and have no device record. For each thread it counts only calls that began at
 * most JOIN_TAIL_NS before its latest call with a device record: the records of earlier calls will
 * never come.
 */
#define JOIN_TAIL_NS 1000000000ULL
uint64_t join_calls_tail(const struct join_calls *, uint32_t process, uint8_t expects,
			 uint64_t from_ns, uint64_t to_ns);
/* Counts the calls of a process that expect a device record, have none, and began in a stretch of
 * time. */
uint64_t join_calls_awaited(const struct join_calls *, uint32_t process, uint64_t from_ns,
			    uint64_t to_ns);
/* Counts the calls of a process that began in a stretch of time and expect a kernel's record, without
 * launches of graphs. */
uint64_t join_calls_launched(const struct join_calls *, uint32_t process, uint64_t from_ns,
			     uint64_t to_ns);
/* When the first call of the thread began that is remembered; UINT64_MAX: none is. */
uint64_t join_calls_first(struct join_calls *, uint32_t process, uint32_t tid);
/* Notes that CUPTI saw a call of the thread begin then. Returns 0 or -ENOMEM. */
int join_calls_caused(struct join_calls *, uint32_t process, uint32_t tid, uint64_t start_ns);
/* The earliest of these; UINT64_MAX: there is none. */
uint64_t join_calls_first_caused(struct join_calls *, uint32_t process, uint32_t tid);
size_t join_calls_bytes(const struct join_calls *);

#endif
