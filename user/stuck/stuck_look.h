/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck_look.h - which threads are inside a call of CUDA, at repeated looks.
 *
 * Calls whose begin a probe saw are in the source's in-flight store. Any other call on a thread's
 * stack began before the probes were there. At the next look its frame shows that it is the same
 * call: if the thread had left the call and entered it again, a probe would have seen that.
 * Knows the source by source_ops; prints nothing.
 */
#ifndef CT_STUCK_LOOK_H
#define CT_STUCK_LOOK_H

#include "../event/event.h"
#include "../source/source.h"

struct stuck_row {
	/* the record: before, by_scan, func, times and process are explained there */
	struct ct_call *call;
	struct ct_user_stack *stack; /* from the caller on; NULL: not known */
	struct ct_process about;     /* h.size 0: the source has announced it */
	pid_t shown_pid, shown_tid;  /* in our namespace; 0: not known */
	/* of a call that began before: what distinguishes it from another one */
	uint64_t sp;
	bool sp_exact;	   /* as for snapshot_began() */
	uint64_t switches; /* the thread has not run while it has these; 0: not known */
	bool shown;	   /* for the caller: has been reported */
	bool unsure;	   /* the last look could not decide: it may be gone */
	bool gone;	   /* the last look did not find it any more */
};

/* A thread that may be inside a call that began before the probes were there: this cannot be
 * decided. */
struct stuck_undecided {
	struct ct_process about;    /* h.size 0: the source has announced it */
	pid_t shown_pid, shown_tid; /* as in struct stuck_row */
	uint32_t pid, tid;	    /* as in records */
	uint64_t since_ns, at_ns;   /* between these looks nothing excluded it */
	/* the call that it was seen inside of at an earlier look; CT_NO_FUNC: none was seen */
	uint16_t func;
	/* it was seen on its way out of a call; else it could not be examined, since it ran and
	 * stopped all the time */
	bool leaving;
};

struct stuck_look;

struct objects;
int stuck_look_open(struct stuck_look **, struct source *, struct objects *);
void stuck_look_close(struct stuck_look *); /* takes NULL */

/* Looks now. Afterwards *rows are the calls that threads are inside of (call->h.end_ns: now),
 * one for a thread, and, once, those that the look before had and this one has not. Valid until
 * the next look. Returns their number or -errno. */
int stuck_look_now(struct stuck_look *, struct stuck_row **rows);
/* Only calls of these functions (a bitmap, the caller's) have probes from now on, and what was found before does
 * not count. NULL: all have. */
void stuck_look_anew(struct stuck_look *, const uint64_t *probed);
/* The threads that the last look could not decide about. Returns how many; valid until the next
 * look. */
int stuck_look_undecided(const struct stuck_look *, const struct stuck_undecided **);
/* The source reported that a call returned: its row needs no further message. Returns the row
 * (gone from the next look on), or NULL. */
struct stuck_row *stuck_look_returned(struct stuck_look *, const struct ct_call *);

#endif
