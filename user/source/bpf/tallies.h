/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tallies.h - inside the bpf source: reads the kernel side's counters, and frees the entries of
 * processes that have ended.
 */
#ifndef CT_TALLIES_H
#define CT_TALLIES_H

#include "../../event/event.h"
#include "../plan.h"

#define TALLIES_MAX 65536 /* entries by default */

struct tallies;

/* What the kernel side counts in. */
struct tallies_maps {
	int tallies_fd, entries_fd, freed_fd, hists_fd, sizes_fd, held_fd;
	int shares_fd;			/* -1: processes have none */
	uint32_t entries_max, held_max; /* that there is room for */
	/* the kernel side's variables: how many of the entries were ever used; how many places
	 * were given back */
	uint64_t *used, *freed;
	/* CT_HISTS_MAX, free places in hists, and how many were put there so far */
	uint32_t *hist_places;
	uint64_t *hists_given;
};

/* The maps stay the caller's. NULL: no memory. */
struct tallies *tallies_open(const struct capture_plan *, const struct tallies_maps *);
void tallies_close(struct tallies *);
/* The kernel side's entries, mapped; owned by the tallies. */
const struct ct_entry *tallies_entries(const struct tallies *);
struct sampler;
/* The sampler, which estimates how many calls of a function nothing counted; the caller keeps
 * it. */
void tallies_sampler(struct tallies *, struct sampler *);
/* Process pid has ended at this time (CLOCK_MONOTONIC): its entries are freed after the next
 * reading. */
void tallies_ended(struct tallies *, uint32_t pid, uint64_t at_ns);
/* Of two processes of one number: had the one whose key says `start` begun when the other one
 * ended? Told by the low 42 bits of nanoseconds, so of processes that ran for less than 36
 * minutes. */
bool tallies_is_older(uint32_t start, uint64_t ended_boottime_ns);
/* Some ends of processes may not have been reported: the next reading checks which processes still
 * run. tasks: rows of ct_tasks; valid during that reading only. */
typedef ssize_t (*tallies_tasks_fn)(void *ctx, void **tasks);
void tallies_sweep(struct tallies *, tallies_tasks_fn, void *ctx);
/* Hands out every entry. Returns 0 or -errno (emit's too). */
int tallies_read(struct tallies *, emit_fn, void *ctx);

#endif
