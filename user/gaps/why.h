/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * why.h - where the time goes in which a device has nothing to do: each gap is split along the thread that
 * launched what ended it, and what that thread waited for is split along the threads that it waited for.
 * Without device work the time of each launching thread between its launches is split instead. Every step
 * divides a stretch of time, so that the parts of a gap add up to it exactly.
 *
 * Takes events as they come, live or of a recording, and answers at the end: gaps become known when the
 * device's records have come. Knows no source and no form of output. Memory is bounded: what finds no room
 * is counted, and the time that it would have explained is a line of its own.
 */
#ifndef CT_WHY_H
#define CT_WHY_H

#include "../event/event.h"
#include "../util/text.h"

/* What a cause is: its word is the id of the finding. Append-only. */
enum why_kind {
	WHY_RUNNING,	 /* the program's own code */
	WHY_GC,		 /* Python collects garbage */
	WHY_PAGE_FAULTS, /* on the CPU, in the kernel, for pages */
	WHY_KERNEL,	 /* on the CPU, in a system call */
	WHY_CALL,	 /* inside a call of CUDA */
	WHY_FILE,	 /* reads or writes a file */
	WHY_FILE_SYNC,	 /* fsync */
	WHY_PAGE_READ,	 /* a page of a mapped file */
	WHY_PIPE,	 /* these four: by whom it was ended is not known */
	WHY_SOCKET,
	WHY_POLL,
	WHY_LOCK,
	WHY_GIL, /* Python's lock, whose holder is not known */
	WHY_SLEEP,
	WHY_CHILD,	  /* the end of a process */
	WHY_DEVICE_FILE,  /* a driver, a terminal */
	WHY_SYSTEM_CALL,  /* another one */
	WHY_THROTTLED,	  /* cpu.max */
	WHY_DISPLACED,	  /* another one had the CPU */
	WHY_LATE,	  /* woken, and not yet on a CPU */
	WHY_LATENCY,	  /* from the launch to the begin on the device */
	WHY_DEVICE,	  /* launched before the gap began: the device's own order */
	WHY_NOT_LAUNCHED, /* the launch was not seen */
	WHY_NOT_TRACED,	  /* the thread was not */
	WHY_LOST,	  /* records are missing */
	WHY_OTHER_DEVICE, /* its stream waited for work of another device */
	WHY_GRAPH,	  /* between the nodes of a graph */
	WHY_WORK,	  /* the device works: of the critical path and of steps, not of gaps */
	WHY_KINDS
};
const char *why_word(enum why_kind);
/* Is time with this cause explained? */
static inline bool why_known(enum why_kind k)
{
	return k < WHY_NOT_LAUNCHED || k > WHY_LOST;
}

struct why_cause {
	enum why_kind kind;
	const char *text; /* the whole chain; safe to print */
	const char *line; /* the innermost place of it; NULL: none is known */
	uint64_t ns;	  /* of `ns` parts were sampled: estimated */
	uint64_t sampled_ns;
	uint64_t samples; /* these are the samples of its pools */
	uint64_t n;	  /* stretches of time */
	uint32_t pid;	  /* of the thread in which the chain begins, as users see it */
	char comm[CT_COMM_LEN];
};

#define WHY_SLOW 3 /* steps that are shown beside those of median length */
#define WHY_MORE 3 /* what each of them had more of */
struct why_slow {
	uint64_t number, start_ns, ns;
	uint64_t more_ns; /* than the median */
	struct why_more {
		enum why_kind kind;
		const char *text;
		uint64_t ns;
	} more[WHY_MORE]; /* the most first */
	size_t nmore;
};
/* The steps of the process (sums/steps.h). */
struct why_steps {
	size_t n;	 /* 0: none were found */
	const char *how; /* "launches" */
	uint64_t median_ns, mean_ns;
	struct why_slow slow[WHY_SLOW]; /* the slowest first */
	size_t nslow;
};

/* A device, or, without device work, a thread that launches. */
struct why_part {
	bool is_device;
	uint32_t device; /* number, or the thread's */
	uint32_t pid;	 /* of the first work, as users see it */
	char comm[CT_COMM_LEN];
	uint64_t from_ns, to_ns; /* first work to last; of a thread its first launch to the last */
	uint64_t busy_ns, idle_ns, gaps;
	uint64_t known_ns;	  /* of idle_ns */
	struct why_cause *causes; /* the longest first; they add up to idle_ns */
	size_t ncauses;
	/* The critical path: what came one after the other, each of which the next one waited for, on the
	 * device and on the host, from the first work to the last; these add up to that time. If one
	 * of them took no time, the whole would take less by its time at most. Of a device only. */
	struct why_cause *path;
	size_t npath;
	uint64_t least_ns;		    /* the work of the busiest stream */
	uint64_t copies_ns, collectives_ns; /* of busy_ns: while nothing computed */
	struct why_steps steps;
};

struct why_totals {
	uint64_t segments, samples, work, calls, threads;
	uint64_t no_room;	   /* records that found no room */
	uint64_t no_time;	   /* device work of which the time is not known */
	uint64_t threads_left_out; /* that launch, and are no part */
	bool host;		   /* there were segments */
};

struct why;
struct why *why_open(void); /* NULL: no memory */
void why_close(struct why *);
/* Returns 1 if it looks at this kind of event, 0 if not, or -ENOMEM. */
int why_event(struct why *, const struct event *);
/* No more events come. holes: what was not seen; NULL: not known. The parts live until why_close(). NULL: no memory. */
struct holes;
const struct why_part *why_finish(struct why *, const struct holes *, size_t *n);
void why_totals(const struct why *, struct why_totals *);

#endif
