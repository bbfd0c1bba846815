/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plan.h - the capture plan: everything that sources know about the user's options.
 *
 * The session joins the user's filter with the needs of the stages and the sink into one plan.
 */
#ifndef CT_PLAN_H
#define CT_PLAN_H

#include "../util/types.h"
#include "../../wire/cudatrace.h"
#include "../../wire/control.h"

struct target;
struct inject_thread;
struct owners;

#define PLAN_WORDS (CT_MAX_FUNCS / 64)

enum plan_stack {
	PLAN_STACK_NONE,
	PLAN_STACK_COPY,      /* its memory, to be unwound */
	PLAN_STACK_ADDRESSES, /* what frame pointers lead to */
	PLAN_STACK_PYTHON,    /* only Python's frames */
	PLAN_STACK_AUTO,      /* only Python's frames where a thread runs Python, else as COPY */
};

/* What the agent in the target must report about the device (wire/agent_wire.h names the
 * bits). */
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
	/* rows whose calls a part of cudatrace waits for: no filter applies to them; a subset of
	 * capture */
	uint64_t awaited[PLAN_WORDS];
	uint64_t named[PLAN_WORDS]; /* rows that -e names one by one: never muted */
	/* with count: the share of the time, 0 to 1, in which functions that are called often have
	 * their probes. 0: the sampler decides, and only for very frequent functions of class
	 * query */
	double duty;
	/* with count: the maximum cost of the probes, as a share of the CPU time of the traced
	 * processes, 0 to 1; 0: there is no limit */
	double max_cost;
	/* about max_cost: if this kind of probe cannot be switched on and off, tracing continues
	 * without the limit */
	bool max_cost_optional;
	/* with duty or max_cost: rows whose probes may be switched off, in addition to those of
	 * class query */
	uint64_t on_duty[PLAN_WORDS];
	bool inlined; /* layers that are a part of programs' own code are recorded */

	/* as the user gave them (the tracer's own namespace); npids 0: the whole machine */
	const pid_t *pids;
	int npids;
	/* also trace children of the traced processes, including those of cmd */
	bool follow;
	uint64_t cgroup_id; /* 0: off; the cgroup and all below it */
	char *const *cmd;   /* a program to start; NULL: none */
	pid_t program;	    /* its number, once the source that starts it is open; 0: not yet */
	bool host;	    /* what threads wait for, too */
	const char *user;   /* run cmd as this user; NULL: as we are */
	/* changes to cmd's environment, "VAR=VAL" or "VAR" to unset; NULL-terminated or NULL */
	char *const *env;

	/* the user stack of every shown call; with `threads` only of those that pending() hands
	 * out */
	enum plan_stack stack;
	bool python;		 /* with stack: Python frames too */
	bool enter;		 /* entry records too */
	bool nested;		 /* calls inside calls too */
	bool shapes;		 /* shapes and types of operators' tensors too */
	bool no_return;		 /* entry probes only */
	struct ct_filter filter; /* may be applied in the kernel */
	/* calls are counted in the kernel (counts()) and not sent, except calls that name
	 * kernels */
	bool count;
	uint8_t count_by; /* enum ct_by */
	uint8_t hist;	  /* with count: histograms of durations too: enum ct_hist_by */
	bool sizes;	  /* with count: histograms of what launches and copies ask for */
	/* with count: the size that calls free, from the calls that allocated it */
	bool memory;
	/* how many entries one process may use for keys with a kernel, a thread and so on; 0:
	 * all */
	uint32_t call_counts_each;
	/* entries that the counts may take, a tenth of them `sizes`; 0: a default */
	uint32_t call_counts_max;
	bool threads;	/* threads() will be called, and completed calls do not matter */
	bool on_demand; /* with threads: only the functions that probe() names get probes */
	/* called once the source has the rights only that it keeps, before it looks for files; NULL: not */
	int (*loaded)(void *ctx);
	void *loaded_ctx;
	bool keep_chatty; /* capture each call, however often a function is called */
	bool one_thread;  /* calls of only one thread are shown */

	struct plan_device device;
	/* Finds the frames of a thread through which the agent is injected into a process that
	 * already runs (inject.h); NULL: they cannot be found. */
	int (*frames)(void *ctx, struct target *, const struct inject_thread *, uint64_t *ips,
		      int max, uint64_t *lost_sp);
	void *frames_ctx;
	/* Two sources of calls run beside each other: whose the calls of each process are. NULL: one source has all. */
	struct owners *owners;
	/* with owners: probes in the place of hooks where hooks see only a part of the calls of some functions */
	bool complete;
	/* only links for single processes are of use: others would lie on functions that are hooked */
	bool apart;
	/* To be called at short intervals while a source begins and waits for one program: others wait for
	 * answers meanwhile. NULL: nobody does. */
	void (*meanwhile)(void *ctx);
	void *meanwhile_ctx;
	bool calls_by_agent; /* there is no kernel side: the agents also record the calls */
	const char *file;    /* replay: the recording */
	/* replay: the recording's descriptor if it is already open; 0: it is not open */
	int file_fd;
	/* replay: the part of the recording to read, from its begin; to_ns UINT64_MAX: to the
	 * end */
	uint64_t from_ns, to_ns;

	uint64_t counters_interval_ns; /* of the counters' samples; 0: no counters */
	const char *counters_metrics;  /* a comma list; NULL: the usual ones */
	/* libcupti, or its directory; NULL: the best that is found */
	const char *cupti;
	bool counters_optional; /* if there are no counters, tracing continues after one message */

	/* sinks write files that are not open yet, which may be in folders of other users */
	bool opens_files;
	bool kernel_log;     /* sinks read the kernel's log */
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

/* enum ct_python_only: of which calls the native stack is taken too. */
static inline uint8_t plan_python_only(const struct capture_plan *p)
{
	return p->stack == PLAN_STACK_PYTHON ? CT_PY_ALONE
	       : p->stack == PLAN_STACK_AUTO ? CT_PY_FIRST
					     : CT_PY_AND_NATIVE;
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
