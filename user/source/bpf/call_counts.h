/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_counts.h - inside the bpf source: reads the kernel side's counters, and frees the entries of
 * processes that have ended.
 */
#ifndef CT_CALL_COUNTS_H
#define CT_CALL_COUNTS_H

#include "../../event/event.h"
#include "../../flow/plan.h"

#define CALL_COUNTS_MAX 65536 /* entries by default */

struct call_counts;

/* What the kernel side counts in. */
struct call_counts_maps {
	int call_counts_fd, entries_fd, freed_fd, hists_fd, sizes_fd, held_fd;
	int shares_fd;				   /* -1: processes have none */
	uint32_t entries_max, held_max, hists_max; /* that there is room for */
	/* the kernel side's variables: how many of the entries were ever used; how many places
	 * were given back */
	uint64_t *used, *freed;
	/* CT_HISTS_MAX: free places in hists, and how many were put there so far */
	uint32_t *hist_places;
	uint64_t *hists_given;
};

/* The maps stay the caller's. NULL: no memory. */
struct call_counts *call_counts_open(const struct capture_plan *, const struct call_counts_maps *);
void call_counts_close(struct call_counts *);
/* The kernel side's entries, mapped; owned by the call_counts. */
const struct ct_entry *call_counts_entries(const struct call_counts *);
struct sampler;
/* The sampler, which estimates how many calls of a function nothing counted; the caller keeps
 * it. */
void call_counts_sampler(struct call_counts *, struct sampler *);
/* Process pid has ended at this time (CLOCK_MONOTONIC): its entries are freed after the next
 * reading. */
void call_counts_ended(struct call_counts *, uint32_t pid, uint64_t at_ns);
/* Of two processes of one number: had the one whose key says `start` begun when the other one
 * ended? Told by the low 42 bits of nanoseconds, so of processes that ran for less than 36
 * minutes. */
bool call_counts_is_older(uint32_t start, uint64_t ended_boottime_ns);
/* Some ends of processes may not have been reported: the next reading checks which processes still
 * run. tasks: rows of ct_tasks; valid during that reading only. */
typedef ssize_t (*call_counts_tasks_fn)(void *ctx, void **tasks);
void call_counts_sweep(struct call_counts *, call_counts_tasks_fn, void *ctx);
/* Calls are counted from this time on; without it since call_counts_open(). */
void call_counts_begin(struct call_counts *, uint64_t now_ns);
/* Hands out every entry, as counted until until_ns. Returns 0 or -errno (emit's too). */
int call_counts_read(struct call_counts *, uint64_t until_ns, emit_fn, void *ctx);

#endif
