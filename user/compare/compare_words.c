/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_words.c - see compare_words.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../util/types.h"
#include "../util/units.h"
#include "compare_words.h"

const char *words_value(char *buf, size_t size, enum saved_unit unit, double v)
{
	if (isnan(v))
		snprintf(buf, size, "-");
	else if (unit == SAVED_UNIT_NS)
		print_duration(buf, size, v);
	else if (unit == SAVED_UNIT_BYTES)
		print_bytes(buf, size, v);
	else if (unit == SAVED_UNIT_SHARE)
		snprintf(buf, size, "%.2f %%", v * 100);
	else if (unit == SAVED_UNIT_GBS)
		snprintf(buf, size, "%.2f GB/s", v);
	else
		snprintf(buf, size, "%.*f", v == floor(v) ? 0 : 2, v);
	return buf;
}

double words_chance(const struct judge_change *c)
{
	return isnan(c->p_more) ? NAN : fmin(1, 2 * fmin(c->p_more, c->p_less));
}

/* ---- the number that a condition is about ---- */

static const char *const field_words[SAVED_FIELD_END] = {
	[SAVED_CALLS] = "calls of",
	[SAVED_FAILED] = "failed calls of",
	[SAVED_TIME] = "time of",
	[SAVED_AVG] = "mean time of",
	[SAVED_MEDIAN] = "median time of",
	[SAVED_P90] = "90th percentile of the times of",
	[SAVED_P99] = "99th percentile of the times of",
	[SAVED_MIN] = "shortest time of",
	[SAVED_MAX] = "longest time of",
	[SAVED_STDDEV] = "standard deviation of the times of",
	[SAVED_BYTES] = "bytes of",
	[SAVED_OCCUPANCY] = "occupancy of",
	[SAVED_BANDWIDTH] = "bandwidth of",
	[SAVED_ERROR] = "possible error of the calls of",
};

static bool is_call(enum saved_section s)
{
	return s >= SAVED_CALLS_OF && s < SAVED_KERNELS;
}

/* What a section's sum is the sum of. */
static void section_words(struct out *o, enum saved_section s)
{
	if (s == SAVED_KERNELS)
		out_str(o, "all kernels");
	else if (s == SAVED_COPIES)
		out_str(o, "all copies and sets of the device");
	else if (s == SAVED_SYNC)
		out_str(o, "all calls that wait");
	else
		out_fmt(o, "all calls of the %s", saved_section_name(s));
}

void words_of(struct out *o, const struct judge_change *c, words_name *name)
{
	const char *key = c->section == SAVED_SUMMARY ? saved_key_words(c->name) : NULL;

	if (key) {
		out_str(o, key);
		return;
	}
	if (c->section == SAVED_COUNTERS)
		out_str(o, "hardware counter ");
	else if (field_words[c->field])
		out_fmt(o, "%s ", field_words[c->field]);
	if (*c->name)
		name(o, c->name);
	else
		section_words(o, c->section);
}

/* ---- sentences ---- */

struct teller {
	struct out *o;
	const struct compare *c;
	const char *before;
	words_name *name;
	unsigned int told;
	bool noise; /* something changed, and not by more than noise */
};

/* True if the change is larger than noise and than the error of estimates, as far as these are known. */
static bool is_change(struct teller *t, const struct judge_change *k)
{
	double by = fabs(k->now.median - k->base.median), p = words_chance(k);
	char a[32], b[32];

	/* the numbers show this anyway */
	if (isnan(by) || !strcmp(words_value(a, sizeof(a), k->unit, k->base.median),
				 words_value(b, sizeof(b), k->unit, k->now.median)))
		return false;
	if (by > k->base.error + k->now.error && (p <= t->c->results.level || isnan(p)))
		return true;
	t->noise = true;
	return false;
}

static const char *each(const struct compare *c)
{
	return c->by_step ? " a step" : c->base->nruns > 1 || c->now->nruns > 1 ? " a run" : "";
}

/* "2.100 ms more a step"; `of`: "", " a step" */
static void amount(struct teller *t, const struct judge_change *k, const char *noun, const char *of)
{
	double by = k->now.median - k->base.median;
	char v[32];

	out_fmt(t->o, "%s%s%s%s%s %s%s", t->before, words_value(v, sizeof(v), k->unit, fabs(by)),
		*noun ? " " : "", noun, *noun && fabs(by) != 1 ? "s" : "", by > 0 ? "more" : "less",
		of);
	t->told++;
}

static void now_and_before(struct teller *t, const struct judge_change *k)
{
	char a[32], b[32];

	out_fmt(t->o, "%s, was %s", words_value(a, sizeof(a), k->unit, k->now.median),
		words_value(b, sizeof(b), k->unit, k->base.median));
}

/* "; 12 calls, as before" */
static void how_often(struct teller *t, const struct judge_change *calls)
{
	const char *one = is_call(calls->section) ? "call" : "time";
	double base = calls->base.median, now = calls->now.median;
	char a[32], b[32];

	if (isnan(base) || isnan(now))
		return;
	words_value(a, sizeof(a), SAVED_UNIT_NUMBER, now);
	words_value(b, sizeof(b), SAVED_UNIT_NUMBER, base);
	out_fmt(t->o, "; %s %s%s, ", a, one, now == 1 ? "" : "s");
	if (!strcmp(a, b))
		out_str(t->o, "as before");
	else
		out_fmt(t->o, "was %s", b);
}

static bool compare_words_waits(const struct compare *c, const char *name)
{
	return saved_find(c->base, SAVED_SYNC, name) || saved_find(c->now, SAVED_SYNC, name);
}

/* Where the time of a row is spent. */
static void compare_words_place(struct teller *t, const struct judge_change *k)
{
	out_str(t->o, k->section == SAVED_KERNELS	   ? " on the device in the kernel "
		      : k->section == SAVED_COPIES	   ? " on the device in "
		      : compare_words_waits(t->c, k->name) ? " waiting in "
							   : " in ");
	t->name(t->o, k->name);
}

static void tell_row(struct teller *t, const struct compare_row *row)
{
	if (is_change(t, &row->time)) {
		amount(t, &row->time, "", each(t->c));
		compare_words_place(t, &row->time);
		out_str(t->o, " (");
		now_and_before(t, &row->time);
		how_often(t, &row->calls);
		out_str(t->o, ")\n");
	} else if (is_change(t, &row->calls)) {
		amount(t, &row->calls, is_call(row->calls.section) ? "call" : "time", each(t->c));
		out_str(t->o, " of ");
		t->name(t->o, row->calls.name);
		out_str(t->o, " (");
		now_and_before(t, &row->calls);
		out_str(t->o, ")\n");
	}
}

/* The keys of the summary that have a sentence, and what it says after the amount. */
static const struct {
	const char *key, *noun, *rest;
	bool sum;
} of_all[] = {
	{ "span_ns", "", "from beginning to end", true },
	{ "failed_calls", "call", "that failed", true },
	{ "bytes_moved", "", "moved by copies and sets", true },
	{ "peak_bytes", "", "of device memory at the peak", false },
	{ "kernel_utilization", "", "of the time in which a kernel ran", false },
};

static void tell_key(struct teller *t, size_t i)
{
	for (size_t k = 0; k < t->c->nkeys; k++) {
		const struct judge_change *key = &t->c->keys[k];

		if (strcmp(key->name, of_all[i].key) || !is_change(t, key))
			continue;
		amount(t, key, of_all[i].noun, of_all[i].sum ? each(t->c) : "");
		out_fmt(t->o, " %s (", of_all[i].rest);
		now_and_before(t, key);
		out_str(t->o, ")\n");
	}
}

void words_changes(struct out *o, const struct compare *c, const char *before, words_name *name)
{
	struct teller t = { o, c, before, name, 0, false };

	tell_key(&t, 0);
	for (size_t i = 0; i < c->nrows && t.told < WORDS_MAX; i++)
		tell_row(&t, &c->rows[i]);
	for (size_t i = 1; i < ARRAY_LEN(of_all); i++)
		tell_key(&t, i);
	if (!t.told)
		out_fmt(o, "%snothing%s\n", before, t.noise ? " by more than noise" : "");
}
