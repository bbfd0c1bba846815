/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model.h - what `top` shows: for each process, and its functions, kernels and threads, what was
 * added since the last refresh. Knows records; no terminal, no key and no source.
 *
 * The kernel side's counts are of all calls so far, so what is shown is the difference of two
 * readings: a refresh is model_begin(), a CT_CALL_COUNT for each count there is, model_end(). If
 * one is missed, the next one's period is longer. Device work comes between refreshes and belongs
 * to the current period. A process that has ended is shown once more, in the period in which it
 * ended. Memory is bounded: counts that found no room are in `no_room`.
 *
 * Processes are in no event/registry: a count of the kernel side says by pid and start whose it is, the last one
 * comes behind the CT_EXIT, and by then another process may have the pid, and is shown beside the one that ended.
 */
#ifndef CT_TOP_MODEL_H
#define CT_TOP_MODEL_H

#include "../event/event.h"

enum top_view { TOP_PROCESSES, TOP_FUNCTIONS, TOP_KERNELS, TOP_THREADS, TOP_VIEW_END };

/* What rows are sorted by; all but the first two: the largest first. */
enum top_sort {
	TOP_BY_PID,
	TOP_BY_NAME,
	TOP_BY_CALLS,
	TOP_BY_LAUNCHES,
	TOP_BY_API,
	TOP_BY_SYNC,
	TOP_BY_HTOD,
	TOP_BY_DTOH,
	TOP_BY_MEMORY,
	TOP_BY_FAILED,
	TOP_BY_GPU,
	TOP_BY_BUSY,
	TOP_SORT_END
};

struct top_sums {
	uint64_t calls, failed, launches;
	/* inside calls that returned in the period, and of that in those that wait */
	uint64_t api_ns, sync_ns;
	uint64_t htod, dtoh; /* bytes */
	uint64_t gpu_ns;     /* kernels, copies and memsets, added up */
	/* time with at least one of them; too little where records come in another order */
	uint64_t busy_ns;
	uint64_t estimated; /* of the calls */
	/* of a total: by how much its calls may be wrong, at 95 % */
	uint64_t error;
};
void top_sums_add(struct top_sums *, const struct top_sums *);

struct top_row {
	uint32_t pid, start; /* which process, as the CT_CALL_COUNT has it */
	uint32_t id;	     /* the pid as users see it; a function's row; a thread's id */
	/* process, function, kernel: safe to print. Owned by the model, valid until its next
	 * call */
	const char *label;
	/* of a process, safe to print; "" where not known */
	const char *command, *user, *container;
	struct top_sums period, total;
	/* device memory allocated minus freed since the trace began, bytes */
	int64_t memory;
	bool has_memory; /* that is known */
	bool ended;
};

struct top_gpu {
	uint32_t index;
	char name[64];		    /* safe to print */
	double util, memory, power; /* %, bytes, W; below 0: not known */
	uint64_t memory_bytes;
	bool suspect; /* util cannot be true */
};

struct top_model {
	uint64_t interval_ns;	       /* of what is shown; 0: there was no refresh yet */
	struct top_sums period, total; /* of all processes */
	unsigned int nprocs;	       /* that are shown */
	uint64_t no_room;	       /* counts that found no room, at the last refresh */
	bool device;		       /* device work was reported at least once */
	/* counts include memory that was allocated and freed (sink_opts.memory) */
	bool count_memory;
	struct top_gpu *gpus;
	unsigned int ngpus;
	struct top_state *state;
};

/* max: counts at most; 0: a default. NULL: no memory. */
struct top_model *model_open(uint64_t now_ns, size_t max);
void model_close(struct top_model *);
/* Returns 1 when it took the event, 0 when it is not of its kinds, or -ENOMEM. */
int model_event(struct top_model *, const struct event *);
void model_begin(struct top_model *);
void model_end(struct top_model *, uint64_t now_ns);
/* Are there calls that no refresh has shown yet? */
bool model_pending(const struct top_model *);
/* Returns how long ago the last refresh was. */
uint64_t model_since(const struct top_model *, uint64_t now_ns);

/* Which rows: of a view, of one process in all but the first. */
struct top_query {
	enum top_view view;
	uint32_t pid, start;
	enum top_sort sort;
	bool reverse;
	const char *filter; /* rows whose label has this, in any case; NULL or "": all */
};
/* Makes the rows; *rows is the caller's, NULL at first, grown as needed. Returns their number,
 * or -ENOMEM. */
long model_rows(struct top_model *, const struct top_query *, struct top_row **rows);

/* A value of the period as a rate: per second. Of nanoseconds: the share of the time, in percent. */
double model_rate(const struct top_model *, uint64_t value);
double model_percent(const struct top_model *, uint64_t ns);

#endif
