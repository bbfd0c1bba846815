/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * muted.h - calls that were not recorded one by one, because there were so many of them: what a
 * CT_MUTED record says, sums of several, and how people and programs are told. The one place for
 * all outputs.
 *
 * For people an estimated number begins with `~`: "~288500 ±2 %". Where the upper end of its
 * interval says little, the lower one is shown: ">=670960 (at most 153206119)". For programs
 * `estimated` is the part of a number that is an estimate, `error` by how much the number may be
 * wrong, at 95 %, and `at_least` the lower end where people are told that alone.
 */
#ifndef CT_MUTED_H
#define CT_MUTED_H

#include "../api/api.h"

/* The row of the function; -1: it is not known here. */
int muted_func(const struct ct_muted *);
/* Writes the function's name behind the record, and the record's size and kind. There must be
 * room for 512 bytes. */
void muted_name(struct ct_muted *, int func);

/* Calls of one or several functions. */
struct muted_sum {
	uint64_t counted;	    /* in windows, each */
	struct ct_estimated unseen; /* beside these; signed, while it is added up */
	uint64_t failed, timed, ns; /* of those counted */
};
void muted_add(struct muted_sum *, const struct ct_muted *);
void muted_add_sum(struct muted_sum *, const struct muted_sum *);
void muted_add_unseen(struct ct_estimated *, const struct ct_estimated *);

/* All calls of a CT_TALLY, counted and estimated: the time, bytes and threads of those that
 * nothing counted have the mean of the others, and failures are those that were counted. With
 * what this gave for the record before, no sum is less than it was, although an estimate may be;
 * NULL: none. */
struct ct_sums muted_tally(const struct ct_tally *, const struct ct_sums *before);
/* Calls that nothing counted: 0 or more. */
uint64_t muted_unseen(const struct ct_estimated *);
/* By how much a number that they are part of may be wrong, at 95 %, in either direction. */
uint64_t muted_error(const struct ct_estimated *);
/* All calls: counted and estimated. */
uint64_t muted_calls(const struct muted_sum *);
/* The time of all, with the mean of those whose time is known. ns */
uint64_t muted_ns(const struct muted_sum *);
/* A whole number, 2^60 at most. */
uint64_t muted_whole(long double);
/* Is the lower end of a number's interval all that is worth telling? The number is wrong by more
 * than itself, or by more than a half and upwards alone. */
bool muted_is_floor(uint64_t number, const struct ct_estimated *);
/* The lower end: so many calls there were, at 95 %. */
uint64_t muted_at_least(uint64_t number, const struct ct_estimated *);
/* "288500", "~288500" or ">=670960". Returns buf. */
const char *muted_number(char *buf, size_t size, uint64_t number, const struct ct_estimated *);
/* So many calls failed. Failures are not estimated: of calls that nothing counted they are not known,
 * and the number then begins with ">=". */
const char *muted_failures(char *buf, size_t size, uint64_t failed, const struct ct_estimated *);
/* What follows the number, " ±2 %" or " (at most 153206119)"; "" when it is exact. Returns buf. */
const char *muted_margin(char *buf, size_t size, uint64_t number, const struct ct_estimated *);
/* A clause of it: "~288500 ±2 % calls of cudaGetDevice, cuCtxGetDevice"; where no name is known
 * "... calls". `names`: NULL-terminated, or NULL. "" when there were none. Returns buf. */
const char *muted_clause(char *buf, size_t size, const struct muted_sum *,
			 const char *const *names);

#endif
