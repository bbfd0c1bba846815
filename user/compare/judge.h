/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge.h - the differences of two saved files, and the user's conditions for a failure:
 * 'cudaMalloc.calls>+10%'. Knows no format and no file.
 */
#ifndef CT_JUDGE_H
#define CT_JUDGE_H

#include "saved.h"

enum judge_op {
	JUDGE_MORE,
	JUDGE_MORE_EQUAL,
	JUDGE_LESS,
	JUDGE_LESS_EQUAL,
	JUDGE_EQUAL,
	JUDGE_NOT_EQUAL
};
enum judge_how {
	JUDGE_VALUE,   /* >5ms: of every run of NEW */
	JUDGE_CHANGE,  /* >+5ms: of the medians */
	JUDGE_PERCENT, /* >+5% */
};

/* METRIC OP [+-]NUMBER[UNIT|%] */
struct judge_expr {
	const char *text;  /* the caller's */
	uint32_t sections; /* bits: where its rows are */
	char *name;	   /* glob(7), or "" for the total of a section, or a key of the summary */
	bool glob;
	enum saved_field field;
	enum saved_unit unit;
	enum judge_op op;
	enum judge_how how;
	double number; /* percent: a share */
};
/* 0, or -EINVAL with a sentence in msg. judge_free() in any case. */
int judge_parse(struct judge_expr *, const char *text, char *msg, size_t size);
void judge_free(struct judge_expr *);

struct judge_side {
	double median, spread; /* NAN: not known */
	double least, most;
	/* by how much it may be wrong, at 95 %, because a part of it is an estimate; 0: each
	 * call was counted */
	double error;
	size_t n; /* runs that have the number */
};

/* One number of one row, on both sides. */
struct judge_change {
	enum saved_section section;
	const char *name; /* as in struct saved_row */
	enum saved_field field;
	enum saved_unit unit;
	struct judge_side base, now;
	/* of the medians, as a share of BASE's; INFINITY: BASE's is 0 and the other is not; NAN:
	 * not known */
	double change;
	/* the chance that nothing but noise causes such a rise, such a fall; NAN: too few runs */
	double p_more, p_less;
};

/* Runs of each side that a test of noise needs: with fewer only the thresholds decide. */
#define JUDGE_RUNS_MIN 4
/* 0, or -ENOMEM. */
int judge_change(struct judge_change *, const struct saved *base, const struct saved *now,
		 enum saved_section, const char *name, enum saved_field, enum saved_unit);

/* One expression against one row. */
struct judge_result {
	const struct judge_expr *expr;
	struct judge_change c;
	double p;      /* in the direction that the expression asks about; NAN: not tested */
	bool beyond;   /* the threshold */
	bool noise;    /* the limit is exceeded, but not by more than noise */
	bool hit;      /* the expression is true: a regression */
	bool estimate; /* a side's number is an estimate, in part */
	/* a side does not have the number, or an estimate is not good enough to decide */
	bool unknown;
};
struct judge_results {
	struct judge_result *r; /* by expression */
	size_t n;
	double level;
	size_t tested;
	/* corrected for the number of tests, by Holm's method; false: too few runs for that */
	bool corrected;
};
/*
 * All expressions against all rows that they match. An expression about a row that neither side
 * has gives a result that is unknown. The chance of at least one false alarm among those that are
 * tested is `level`. Returns 0 or -ENOMEM. judge_results_free() in any case.
 */
int judge_all(struct judge_results *, const struct judge_expr *, size_t nexprs,
	      const struct saved *base, const struct saved *now, double level);
void judge_results_free(struct judge_results *);

#endif
