/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * muted.h - calls that were not recorded one by one, because there were too many of them: what a
 * CT_MUTED record says, sums of several records, and how both are shown to people and programs. All
 * outputs use these functions.
 *
 * For people an estimated number begins with `~`: "~288500 ±2 %". If the upper end of its interval
 * is too high to be useful, the lower end is shown: ">=670960 (at most 153206119)". For programs
 * `estimated` is the estimated part of a number, `error` is by how much the number may be wrong, at
 * 95 % confidence, and `at_least` is the lower end, in the cases in which people see only that.
 */
#ifndef CT_MUTED_H
#define CT_MUTED_H

#include "../api/api.h"

/* The row of the function; -1: this version does not know it. */
int muted_func(const struct ct_muted *);
/* Writes the function's name behind the record, and the record's size and kind. There must be
 * room for 512 bytes. */
void muted_name(struct ct_muted *, int func);

/* Calls of one or several functions. */
struct muted_sum {
	uint64_t counted; /* each counted, in windows */
	/* estimated calls in addition to these; signed while sums are made */
	struct ct_estimated unseen;
	uint64_t failed, timed, ns; /* for the counted calls only */
};
void muted_add(struct muted_sum *, const struct ct_muted *);
void muted_add_sum(struct muted_sum *, const struct muted_sum *);
void muted_add_unseen(struct ct_estimated *, const struct ct_estimated *);

/* All calls of a CT_CALL_COUNT, counted and estimated. Estimated calls get the mean time, bytes and
 * threads of the counted ones; failures are only the counted ones. `before` is the result for
 * the previous record: with it no sum becomes smaller, although an estimate may. NULL: there is
 * none. */
struct ct_sums muted_call_count(const struct ct_call_count *, const struct ct_sums *before);
/* The estimated number of calls that were not counted: 0 or more. */
uint64_t muted_unseen(const struct ct_estimated *);
/* By how much a number that includes these calls may be wrong, in either direction, at 95 %
 * confidence. */
uint64_t muted_error(const struct ct_estimated *);
/* All calls: counted and estimated. */
uint64_t muted_calls(const struct muted_sum *);
/* The time of all calls in ns: calls whose time is not known get the mean of the others. */
uint64_t muted_ns(const struct muted_sum *);
/* A whole number, 2^60 at most. */
uint64_t muted_whole(long double);
/* True if only the lower end of the number's interval is worth showing: the possible error is
 * more than the number itself, or it is more than half of the number and only upwards. */
bool muted_is_floor(uint64_t number, const struct ct_estimated *);
/* The lower end: there were at least this many calls, at 95 % confidence. */
uint64_t muted_at_least(uint64_t number, const struct ct_estimated *);
/* "288500", "~288500" or ">=670960". Returns buf. */
const char *muted_number(char *buf, size_t size, uint64_t number, const struct ct_estimated *);
/* How many calls failed. Failures are not estimated: of the calls that nothing counted it is not known
 * whether they failed, and the number then begins with ">=". Returns buf. */
const char *muted_failures(char *buf, size_t size, uint64_t failed, const struct ct_estimated *);
/* The text after the number: " ±2 %" or " (at most 153206119)"; "" when it is exact. Returns
 * buf. */
const char *muted_margin(char *buf, size_t size, uint64_t number, const struct ct_estimated *);
/* The number as part of a sentence: "~288500 ±2 % calls of cudaGetDevice, cuCtxGetDevice"; if no
 * name is known, "... calls". `names`: NULL-terminated, or NULL. "" when there were none.
 * Returns buf. */
const char *muted_clause(char *buf, size_t size, const struct muted_sum *,
			 const char *const *names);

#endif
