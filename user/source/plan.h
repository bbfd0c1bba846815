/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plan.h - the capture plan: all that sources see of what the user asked for.
 *
 * The session joins the user's filter with the needs of the stages and the sink into one plan.
 */
#ifndef CT_PLAN_H
#define CT_PLAN_H

#include "../util/types.h"

struct target;
struct inject_thread;

#define PLAN_WORDS (CT_MAX_FUNCS / 64)

enum plan_stack {
	PLAN_STACK_NONE,
	PLAN_STACK_COPY,      /* its memory, to be unwound */
	PLAN_STACK_ADDRESSES, /* what frame pointers lead to */
};

/* What the agent in the target is to tell of the device (cupti/agent/agent.h names the bits). */
struct plan_device {
	uint32_t kinds;			/* enum agent_kind; 0: nothing */
	bool graphs;			/* whole graphs instead of their nodes */
	uint32_t clock;			/* enum agent_clock */
	uint32_t buffer_bytes, buffers; /* CUPTI's buffers in host memory */
	/* path of the libcupti to use when the program has none loaded; NULL: found */
	const char *cupti;
};

struct capture_plan {
	uint64_t capture[PLAN_WORDS]; /* rows to attach */
	uint64_t shown[PLAN_WORDS];   /* rows the user asked for; a subset of capture */
	/* rows whose calls somebody waits for: past all filters; a subset of capture */
	uint64_t awaited[PLAN_WORDS];
	uint64_t named[PLAN_WORDS]; /* rows that -e names one by one: never muted */
	/* with count: functions that are called often have their probes for a part of the time
	 * alone, 0 to 1; 0: only very frequent ones of class query, as the sampler sees fit */
	double duty;
	/* with count: what the probes may cost, of the CPU time of the traced processes, 0 to 1;
	 * 0: there is no limit */
	double max_cost;
	/* of max_cost: where probes of the kind cannot come and go, all goes on without it */
	bool max_cost_optional;
	/* with one of the two: rows whose probes may go, beside those of class query */
	uint64_t on_duty[PLAN_WORDS];

	/* as the user gave them (the tracer's own namespace); npids 0: the whole machine */
	const pid_t *pids;
	int npids;
	bool follow;	    /* children of the traced processes too, those of cmd included */
	uint64_t cgroup_id; /* 0: off; the cgroup and all below it */
	char *const *cmd;   /* a program to start; NULL: none */
	const char *user;   /* run cmd as this user; NULL: as we are */
	/* changes to cmd's environment, "VAR=VAL" or "VAR" to unset; NULL-terminated or NULL */
	char *const *env;

	/* the user stack of every shown call; with `threads` only of those that pending() hands
	 * out */
	enum plan_stack stack;
	bool python;		 /* with stack: Python frames too */
	bool enter;		 /* entry records too */
	bool nested;		 /* calls inside calls too */
	bool no_return;		 /* entry probes only */
	struct ct_filter filter; /* may be applied in the kernel */
	/* calls are counted in the kernel (tallies()) and not sent, but for those that name
	 * kernels */
	bool count;
	uint8_t count_by; /* enum ct_by */
	uint8_t hist;	  /* with count: histograms of durations too: enum ct_hist_by */
	bool sizes;	  /* with count: histograms of what launches and copies ask for */
	bool memory;	  /* with count: what calls free, by what they took */
	/* of them, that one process may have for kinds told apart by kernel, thread...; 0: all */
	uint32_t tallies_each;
	/* entries that the counts may take, a tenth of them `sizes`; 0: a default */
	uint32_t tallies_max;
	bool threads;	  /* threads() will be asked for, and what completes does not matter */
	bool keep_chatty; /* capture each call, however often a function is called */
	bool one_thread;  /* of one thread alone calls are shown */

	struct plan_device device;
	/* The frames of a thread by which the agent is to come into a process that runs
	 * (inject.h); NULL: they are not known. */
	int (*frames)(void *ctx, struct target *, const struct inject_thread *, uint64_t *ips,
		      int max, uint64_t *lost_sp);
	void *frames_ctx;
	bool calls_by_agent; /* no kernel side: the agents have the calls too */
	const char *file;    /* replay: the recording */
	int file_fd;	     /* replay: of it, where it is open already; 0: it is not */
	/* replay: of it, this time after its begin; to_ns UINT64_MAX: to the end */
	uint64_t from_ns, to_ns;

	uint64_t counters_interval_ns; /* of the counters' samples; 0: no counters */
	const char *counters_metrics;  /* a comma list; NULL: the usual ones */
	/* libcupti, or its directory; NULL: the best that is found */
	const char *cupti;
	bool counters_optional; /* without them all goes on, after one message */

	/* sinks write files that are not open yet, maybe in folders of other users */
	bool opens_files;
	const char *library; /* probe this file only; NULL: whatever is mapped */
	uint32_t ring_bytes; /* a power of two */
	/* NULL: the best the kernel has; "session", "multi", "tracefs", "perf" */
	const char *probe_kind;
};

/* Is any function in the set of PLAN_WORDS words? */
static inline bool plan_any(const uint64_t *set)
{
	uint64_t any = 0;

	for (int i = 0; i < PLAN_WORDS; i++)
		any |= set[i];
	return any;
}

static inline bool plan_has(const uint64_t *set, int func)
{
	return set[func / 64] >> (func % 64) & 1;
}
static inline void plan_add(uint64_t *set, int func)
{
	set[func / 64] |= 1ULL << (func % 64);
}
static inline void plan_remove(uint64_t *set, int func)
{
	set[func / 64] &= ~(1ULL << (func % 64));
}

#endif
