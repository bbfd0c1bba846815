/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare.h - one saved file against another: the summary, the rows that changed, and the
 * results of the conditions; printed as text, markdown, JSON or JUnit's XML. Knows no command.
 */
#ifndef CT_COMPARE_H
#define CT_COMPARE_H

#include "../util/io/out.h"
#include "judge.h"

/* A function, a kernel, a kind of copy. */
struct compare_row {
	struct judge_change calls, time;
};

struct compare {
	const struct saved *base, *now;
	bool by_step;		   /* the sums are of one step */
	struct judge_change *keys; /* all that saved_key() knows, in its order */
	size_t nkeys;
	struct compare_row *rows; /* what changed most, by time; at most COMPARE_ROWS */
	size_t nrows, nothers;	  /* nothers: further rows that changed */
	struct judge_results results;
	size_t regressions; /* conditions that are true for a row */
	size_t unknown;	    /* conditions that could not be decided */
	bool no_verdict; /* there are no conditions: with a run on each side nobody asked for one */
};
#define COMPARE_ROWS 1000

/* Returns 0 or -ENOMEM. compare_close() in any case. The files and expressions stay the caller's. */
int compare_open(struct compare *, const struct saved *base, const struct saved *now,
		 const struct judge_expr *, size_t nexprs, double level);
void compare_close(struct compare *);

/*
 * Makes the sums of each run those of one step: of the metric of an expression there is one in
 * each step, or there are `steps` steps in a run (the metric NULL). Returns 0, or -EINVAL after
 * one message, or -ENOMEM.
 */
int compare_by_step(struct saved *, const struct judge_expr *metric, double steps);

enum compare_format { COMPARE_TEXT, COMPARE_MARKDOWN, COMPARE_JSON, COMPARE_JUNIT };
void compare_print(struct out *, enum compare_format, const struct compare *, size_t n,
		   const struct judge_expr *, size_t nexprs, const char *version);

#endif
