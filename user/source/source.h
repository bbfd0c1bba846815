/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - a source makes records. It knows the capture plan and nothing of stages, sinks or
 * commands.
 */
#ifndef CT_SOURCE_H
#define CT_SOURCE_H

#include "../event/event.h"
#include "../flow/plan.h"

struct source;
struct snapshot;

/* A stored trace's own begin, length and end, which a sink shows instead of those of this run. */
struct source_recorded {
	uint64_t start_ns;	     /* CLOCK_MONOTONIC of its host */
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC then */
	uint64_t boottime_offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	uint64_t uptime_ns;
	const char *reason;	 /* why it ended: "finished", "killed"... */
	const char *host, *boot; /* its name and its boot id; NULL: not known, or several */
	int program; /* wait(2) status of the program that was started, if it had ended; else -1 */
	bool gpu;    /* device work was recorded */
	bool whole;  /* the program was started by the recorder: no call of it was missed */
	bool places; /* every call that changes a thread's device or context was captured */
};

struct source_ops {
	const char *name;
	/* May be NULL. Called before any source of the session opens: adds to the plan what this
	 * source needs, for example variables in the program's environment. Returns 0 or -errno
	 * after one message. close() follows if it set priv. */
	int (*prepare)(struct source *, struct capture_plan *);
	/* Prepares the source; the program of plan->cmd is started but has not run an
	 * instruction of its own. Returns 0 or -errno after one message. */
	int (*open)(struct source *, const struct capture_plan *);
	/* From here on records may come; a started program runs. Into processes that run already a
	 * source that adds to the calls is started before that of the calls (but see begin), and
	 * returns when it is ready there. Returns 0 or -errno after one message. */
	int (*start)(struct source *);
	/* Of a source of calls for which that takes long, so that others would have much to say
	 * meanwhile: it is started first, and sees no calls before this is called. NULL: it begins at
	 * its start. */
	void (*begin)(struct source *);
	/* While the session begins, at short intervals: answers the programs that wait for us, and hands
	 * out nothing. NULL: none does. */
	void (*answer)(struct source *);
	/* The descriptors that the loop waits on; when one is readable, call drain(). The first is
	 * the record stream's. When few records come, the loop checks that one by a timer only.
	 * Returns the number of descriptors. With `asked` a program waits for what comes by the first
	 * one too, so that it is never left to the timer. */
	bool asked;
	int (*fds)(struct source *, int *fd, int max);
	/* Hands out the records that are ready, or a limited number of them. They have passed
	 * record_check(), and hdr.lost is unchanged (the session makes a CT_LOST from it). Returns
	 * 0 idle or paused, 1 finished (all targets ended), or -errno (also emit's: after it the
	 * record counts as consumed). */
	int (*drain)(struct source *, emit_fn, void *ctx);
	/* All records of what ended before this moment (CLOCK_MONOTONIC, ns) have been handed out, but
	 * for some milliseconds in which threads had no processor. It never goes back. NULL: a source
	 * whose records nobody waits for. */
	uint64_t (*complete)(struct source *);
	/* Stop making records (detach); what is already there can still be drained. A source
	 * that is not the session's first is drained until it says 1, at most for some seconds. */
	void (*stop)(struct source *);
	/* After stop(), for a source in which that takes time: waits until no more records are made. What came
	 * meanwhile is drained after it. NULL: that is so when stop() returns. */
	void (*ended)(struct source *);
	/* Adds to what is there. */
	void (*losses)(struct source *, struct losses *);
	/* Each of the next ones may be NULL. The wait(2) status of plan->cmd once drain()
	 * returned 1; -1: it has none. */
	int (*status)(struct source *);
	/* After stop(): the moment (CLOCK_MONOTONIC, ns) from which on no call was seen to
	 * begin. 0: it never saw any. */
	uint64_t (*stopped)(struct source *);
	/* After open(): the number of the program of plan->cmd; 0: it starts none. */
	pid_t (*program)(struct source *);
	/* Sends a signal to the program of plan->cmd. */
	void (*signal)(struct source *, int sig);
	/* Hands out the calls that have not returned for min_age_ns, with CT_F_PENDING. Each call
	 * of pending() hands out all of them again. Returns 0 or -errno. */
	int (*pending)(struct source *, uint64_t min_age_ns, emit_fn, void *ctx);
	/* Reports where the threads are in the processes that have mapped CUDA's code
	 * (plan->threads). `all` and `only` of the snapshot say of which. Returns 0 or -errno;
	 * snapshot_free() in any case. */
	int (*threads)(struct source *, struct snapshot *);
	/* Places probes on these functions (a bitmap; plan->on_demand), in files that are known now and in
	 * others when they are found. Returns 0 or -errno. */
	int (*probe)(struct source *, const uint64_t *funcs);
	/* Hands out what the kernel side has counted so far (plan->count) as CT_CALL_COUNT records,
	 * one for each entry; those of a process that has ended for the last time, with
	 * CT_F_LAST. Returns 0 or -errno. */
	int (*call_counts)(struct source *, emit_fn, void *ctx);
	/* From now on the counters are kept by this key (enum ct_by). Only if the plan's count_by
	 * is CT_BY_ASKED. */
	void (*count_by)(struct source *, uint8_t by);
	/* Turns on or off, from now on, records of the driver's launches inside runtime launches
	 * (as hidden records). */
	void (*nested)(struct source *, bool on);
	/* The number of calls that unload kernels that have begun so far. */
	uint64_t (*forgets)(struct source *);
	/* As discover_recent(); NULL: it knows no files. */
	bool (*recent)(struct source *, uint64_t ino, char *name, size_t size);
	/* Names of the functions muted so far, NULL-terminated; owned by the source, valid until
	 * close. */
	const char *const *(*muted)(struct source *);
	/* For a stored trace: the begin is valid after open(), the rest after drain() returned 1.
	 * NULL: the source's records happen now. */
	void (*recorded)(struct source *, struct source_recorded *);
	/* For a stored trace: all records that drain() has not handed out yet have their place
	 * (event_place_ns) at this moment or later. The first call may take as long as reading the
	 * trace. It ends early when *stop is not 0, and the next call starts again. NULL, or 0: not
	 * known. */
	uint64_t (*settled)(struct source *, const volatile int *stop);
	/* For a stored trace: how many bytes of how many have been read. */
	void (*progress)(struct source *, uint64_t *done, uint64_t *all);
	void (*close)(struct source *); /* safe after a failed open */
	/* Of a source to which programs themselves hand their records, and may do so after stop():
	 * which layer these belong to. 0: what is there at stop() is all that comes. */
	enum ct_hole_layer endless;
};

struct source {
	const struct source_ops *ops;
	void *priv;
	/* True while a drain must return soon although more records are ready: the session must
	 * handle the time or a signal. drain() checks it between two records. NULL: never. */
	const bool *paused;
	/* True while the outputs take nothing more: drain() does what programs wait for and hands out no
	 * records, which stay where they are. *paused is true, too. NULL: never. */
	const bool *full;
};

static inline bool source_paused(const bool *paused)
{
	return paused && *paused;
}

extern const struct source_ops source_bpf, source_replay;
/* Those that add to the calls. */
#define A(name, takes_part) extern const struct source_ops source_##name;
#include "added.def"
#undef A

#endif
