/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare_print.c - a comparison as text for people, markdown for a merge request, JSON for
 * programs and JUnit's XML for CI. Names are untrusted bytes, of a program and of a file: each
 * format escapes them in its way.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../util/io/json.h"
#include "../util/text.h"
#include "compare_words.h"

#define TEXT_ROWS 20
#define NAME_MAX_BYTES 4096

static const char *change(char *buf, size_t size, double c)
{
	if (isnan(c))
		snprintf(buf, size, "-");
	else if (isinf(c))
		snprintf(buf, size, "new");
	else if (c == 0)
		snprintf(buf, size, "same");
	else
		snprintf(buf, size, "%+.2f %%", c * 100);
	return buf;
}

/* How far the runs of a side lie from their median: of the side where it is more. */
static const char *spread(char *buf, size_t size, const struct judge_change *c)
{
	double s = isnan(c->base.spread)  ? c->now.spread
		   : isnan(c->now.spread) ? c->base.spread
					  : fmax(c->base.spread, c->now.spread);

	if (isnan(s))
		snprintf(buf, size, "-");
	else
		snprintf(buf, size, "%.2f %%", s * 100);
	return buf;
}

static const char *chance(char *buf, size_t size, double p)
{
	if (isnan(p))
		snprintf(buf, size, "-");
	else if (p < 0.0001)
		snprintf(buf, size, "<0.0001");
	else
		snprintf(buf, size, "%.4f", p);
	return buf;
}

/* What neither side has, or has any of, is not worth a line to read. */
static bool is_empty(const struct judge_change *k)
{
	return (!k->base.n || k->base.most == 0) && (!k->now.n || k->now.most == 0);
}

static const char *verdict(const struct judge_result *r)
{
	return r->unknown ? "unknown" : r->hit ? "FAIL" : r->noise ? "noise" : "ok";
}

static const char *verdict_text(const struct judge_result *r)
{
	return r->unknown ? (r->estimate ? "cannot be told: the number is an estimate"
					 : "not known of both")
	       : r->hit	  ? "FAIL"
	       : r->noise ? "ok, not more than noise"
			  : "ok";
}

/* With the bytes that a terminal must not see made harmless; markdown: and what a table would
 * take for its own. */
static void name_text(struct out *o, const char *name, bool markdown)
{
	struct text t = { 0 };

	text_plain(&t, name, NAME_MAX_BYTES);
	for (size_t i = 0; i < t.len && !t.bad; i++) {
		if (markdown && strchr("|`<>*_[]&", t.s[i]))
			out_fmt(o, "&#%d;", t.s[i]);
		else
			out_char(o, t.s[i]);
	}
	text_free(&t);
}

static void plain_name(struct out *o, const char *name)
{
	name_text(o, name, false);
}

static void markdown_name(struct out *o, const char *name)
{
	name_text(o, name, true);
}

/* ---- text ---- */

static void text_changes(struct out *o, const struct compare *c)
{
	char a[32], b[32], d[32], s[32], p[32];
	bool any = false;

	out_str(o, " What changed\n");
	words_changes(o, c, "  ", plain_name);
	out_fmt(o, "\n %-24s %12s %12s %10s %9s %8s  %s\n", "Summary", "Base", "New", "Change",
		"Noise", "p", "In --fail-if");
	for (size_t i = 0; i < c->nkeys; i++) {
		const struct judge_change *k = &c->keys[i];

		if (is_empty(k))
			continue;
		out_fmt(o, " %-24s %12s %12s %10s %9s %8s  %s\n", saved_key_words(k->name),
			words_value(a, sizeof(a), k->unit, k->base.median),
			words_value(b, sizeof(b), k->unit, k->now.median),
			change(d, sizeof(d), k->change), spread(s, sizeof(s), k),
			chance(p, sizeof(p), words_chance(k)), k->name);
	}
	for (size_t i = 0; i < c->nrows && i < TEXT_ROWS; i++) {
		const struct compare_row *row = &c->rows[i];
		char calls[80];

		if (!any)
			out_fmt(o, "\n %17s %12s %12s %10s %9s %8s  Name\n", "Calls", "Base", "New",
				"Change", "Noise", "p");
		any = true;
		words_value(a, sizeof(a), SAVED_UNIT_NUMBER, row->calls.base.median);
		words_value(b, sizeof(b), SAVED_UNIT_NUMBER, row->calls.now.median);
		if (strcmp(a, b))
			snprintf(calls, sizeof(calls), "%s -> %s", a, b);
		else
			snprintf(calls, sizeof(calls), "%s", a);
		out_fmt(o, " %17s %12s %12s %10s %9s %8s  ", calls,
			words_value(a, sizeof(a), SAVED_UNIT_NS, row->time.base.median),
			words_value(b, sizeof(b), SAVED_UNIT_NS, row->time.now.median),
			change(d, sizeof(d), row->time.change), spread(s, sizeof(s), &row->time),
			chance(p, sizeof(p), words_chance(&row->time)));
		name_text(o, row->time.name, false);
		out_char(o, '\n');
	}
	if (c->nrows + c->nothers > TEXT_ROWS)
		out_fmt(o, " and %zu more\n", c->nrows + c->nothers - TEXT_ROWS);
}

static void text_checks(struct out *o, const struct compare *c)
{
	char a[32], b[32], d[32], p[32];

	if (c->results.n)
		out_str(o, "\n Conditions\n");
	for (size_t i = 0; i < c->results.n; i++) {
		const struct judge_result *r = &c->results.r[i];

		out_fmt(o, " %-8s %s: ", verdict(r), r->expr->text);
		words_of(o, &r->c, plain_name);
		out_fmt(o, " %s -> %s (%s", words_value(a, sizeof(a), r->c.unit, r->c.base.median),
			words_value(b, sizeof(b), r->c.unit, r->c.now.median),
			change(d, sizeof(d), r->c.change));
		if (!isnan(r->p))
			out_fmt(o, ", p %s", chance(p, sizeof(p), r->p));
		out_str(o, r->unknown && r->estimate
				   ? ", cannot be told: the number is an estimate)\n"
				   : ")\n");
	}
}

static void how_tested(struct out *o, const struct compare *c)
{
	if (c->no_verdict)
		out_fmt(o,
			"One run on each side: what differs may be noise, so there is no verdict. "
			"One "
			"needs %d runs or more on each side ('cudatrace stat --runs %d --save FILE "
			"-- "
			"CMD'), or --fail-if.\n",
			JUDGE_RUNS_MIN, JUDGE_RUNS_MIN);
	else if (c->results.tested)
		out_fmt(o,
			"A change counts where noise alone would make it with a chance of at most "
			"%g%s (rank test, one-sided%s).\n",
			c->results.level,
			c->results.corrected ? " in all conditions together"
					     : " in each condition by itself",
			c->results.corrected ? ", Holm's correction"
					     : "; too few runs for a correction");
	else if (c->base->nruns < JUDGE_RUNS_MIN || c->now->nruns < JUDGE_RUNS_MIN)
		out_fmt(o,
			"Fewer than %d runs on a side: thresholds alone decide, and noise may pass "
			"for a change.\n",
			JUDGE_RUNS_MIN);
}

static void files(struct out *o, const struct compare *c, bool markdown)
{
	name_text(o, c->base->path, markdown);
	out_fmt(o, " (%zu run%s) -> ", c->base->nruns, c->base->nruns == 1 ? "" : "s");
	name_text(o, c->now->path, markdown);
	out_fmt(o, " (%zu run%s)%s\n", c->now->nruns, c->now->nruns == 1 ? "" : "s",
		c->by_step ? ", sums of one step" : "");
}

static bool missing(const struct compare *c)
{
	return c->base->lost || c->now->lost || c->base->unseen || c->now->unseen;
}

static void text_lost(struct out *o, const struct compare *c, const char *before)
{
	if (c->base->lost || c->now->lost) {
		out_fmt(o, "%srecords were lost: %llu of BASE, %llu of NEW", before,
			(unsigned long long)c->base->lost, (unsigned long long)c->now->lost);
		before = "; ";
	}
	if (c->base->unseen || c->now->unseen)
		out_fmt(o,
			"%scalls or device work were not seen in %llu runs of BASE and %llu of "
			"NEW, so that their sums are too small",
			before, (unsigned long long)c->base->unseen,
			(unsigned long long)c->now->unseen);
}

static void print_one(struct out *o, const struct compare *c, size_t nexprs)
{
	files(o, c, false);
	out_char(o, '\n');
	text_changes(o, c);
	text_checks(o, c);
	out_char(o, '\n');
	how_tested(o, c);
	if (!c->no_verdict)
		out_fmt(o, "%zu of %zu conditions failed", c->regressions, nexprs);
	text_lost(o, c, c->no_verdict ? "Note that " : "; ");
	if (!c->no_verdict || missing(c))
		out_str(o, ".\n");
}

/* ---- markdown ---- */

static void markdown_one(struct out *o, const struct compare *c, size_t nexprs)
{
	char a[32], b[32], d[32], s[32], p[32];

	out_str(o, "### cudatrace: ");
	files(o, c, true);
	if (c->no_verdict)
		out_str(o, "\n**No verdict.**\n");
	else
		out_fmt(o, "\n**%zu of %zu conditions failed.**\n", c->regressions, nexprs);
	if (c->results.n)
		out_str(o, "\n| Condition | What | Base | New | Change | p | Result "
			   "|\n|---|---|--:|--:|--:|--:|---|\n");
	for (size_t i = 0; i < c->results.n; i++) {
		const struct judge_result *r = &c->results.r[i];

		out_str(o, "| ");
		name_text(o, r->expr->text, true);
		out_str(o, " | ");
		words_of(o, &r->c, markdown_name);
		out_fmt(o, " | %s | %s | %s | %s | %s |\n",
			words_value(a, sizeof(a), r->c.unit, r->c.base.median),
			words_value(b, sizeof(b), r->c.unit, r->c.now.median),
			change(d, sizeof(d), r->c.change), chance(p, sizeof(p), r->p),
			verdict_text(r));
	}
	out_str(o, "\nWhat changed:\n\n");
	words_changes(o, c, "- ", markdown_name);
	out_str(o, "\n| Summary | Base | New | Change | Noise | p | In --fail-if |\n"
		   "|---|--:|--:|--:|--:|--:|---|\n");
	for (size_t i = 0; i < c->nkeys; i++) {
		const struct judge_change *k = &c->keys[i];

		if (!is_empty(k))
			out_fmt(o, "| %s | %s | %s | %s | %s | %s | %s |\n",
				saved_key_words(k->name),
				words_value(a, sizeof(a), k->unit, k->base.median),
				words_value(b, sizeof(b), k->unit, k->now.median),
				change(d, sizeof(d), k->change), spread(s, sizeof(s), k),
				chance(p, sizeof(p), words_chance(k)), k->name);
	}
	if (c->nrows)
		out_str(o, "\n| Name | Calls, base | Calls, new | Time, base | Time, new | Change "
			   "| Noise | p |\n"
			   "|---|--:|--:|--:|--:|--:|--:|--:|\n");
	for (size_t i = 0; i < c->nrows && i < TEXT_ROWS; i++) {
		const struct compare_row *row = &c->rows[i];

		out_str(o, "| ");
		name_text(o, row->time.name, true);
		out_fmt(o, " | %s | %s",
			words_value(a, sizeof(a), SAVED_UNIT_NUMBER, row->calls.base.median),
			words_value(b, sizeof(b), SAVED_UNIT_NUMBER, row->calls.now.median));
		out_fmt(o, " | %s | %s | %s | %s | %s |\n",
			words_value(a, sizeof(a), SAVED_UNIT_NS, row->time.base.median),
			words_value(b, sizeof(b), SAVED_UNIT_NS, row->time.now.median),
			change(d, sizeof(d), row->time.change), spread(s, sizeof(s), &row->time),
			chance(p, sizeof(p), words_chance(&row->time)));
	}
	out_char(o, '\n');
	how_tested(o, c);
}

/* ---- JSON ---- */

static void json_change(struct json *j, const char *key, const struct judge_change *c)
{
	json_open_object(j, key);
	json_put_digits(j, "base", 12, c->base.median);
	json_put_digits(j, "new", 12, c->now.median);
	json_put_digits(j, "change", 12, c->change);
	json_put_digits(j, "base_noise", 12, c->base.spread);
	json_put_digits(j, "new_noise", 12, c->now.spread);
	json_put_digits(j, "p", 12, words_chance(c));
	json_end(j);
}

static void json_file(struct json *j, const char *key, const struct saved *s)
{
	json_open_object(j, key);
	json_put_str(j, "file", s->path);
	json_put_u64(j, "runs", s->nruns);
	json_put_u64(j, "lost", s->lost);
	json_put_u64(j, "runs_with_unseen", s->unseen);
	json_end(j);
}

static void json_condition(struct json *j, const struct judge_result *r)
{
	static const char *const words[] = { "pass", "fail", "noise", "unknown" };
	static const char *const units[] = {
		[SAVED_UNIT_NUMBER] = "",     [SAVED_UNIT_NS] = "ns",
		[SAVED_UNIT_BYTES] = "bytes", [SAVED_UNIT_SHARE] = "share",
		[SAVED_UNIT_GBS] = "GB/s",
	};

	json_line(j, " ");
	json_open_object(j, NULL);
	json_put_str(j, "expression", r->expr->text);
	json_put_str(j, "section", saved_section_name(r->c.section));
	json_put_str(j, "name",
		     r->c.section == SAVED_SUMMARY ? saved_key_json(r->c.name) : r->c.name);
	json_put_str(j, "field", saved_field_name(r->c.field));
	json_put_str(j, "unit", units[r->expr->unit]);
	json_put_digits(j, "base", 12, r->c.base.median);
	json_put_digits(j, "new", 12, r->c.now.median);
	json_put_digits(j, "change", 12, r->c.change);
	json_put_digits(j, "p", 12, r->p);
	json_put_str(j, "result", words[r->unknown ? 3 : r->hit ? 1 : r->noise ? 2 : 0]);
	if (r->unknown && r->estimate)
		json_put_bool(j, "estimate", true);
	json_end(j);
}

static void json_one(struct json *j, const struct compare *c)
{
	json_line(j, "");
	json_open_object(j, NULL);
	json_file(j, "base", c->base);
	json_file(j, "new", c->now);
	json_put_u64(j, "regressions", c->regressions);
	if (c->no_verdict)
		json_put_bool(j, "no_verdict", true);
	if (c->by_step)
		json_put_bool(j, "by_step", true);
	json_put_bool(j, "tested", c->results.tested);
	json_put_bool(j, "corrected", c->results.tested && c->results.corrected);
	json_line(j, "");
	json_open_object(j, "metrics");
	for (size_t i = 0; i < c->nkeys; i++) {
		json_line(j, " ");
		json_change(j, saved_key_json(c->keys[i].name), &c->keys[i]);
	}
	json_end(j);
	json_line(j, "");
	json_open_array(j, "rows");
	for (size_t i = 0; i < c->nrows; i++) {
		json_line(j, " ");
		json_open_object(j, NULL);
		json_put_str(j, "section", saved_section_name(c->rows[i].time.section));
		json_put_str(j, "name", c->rows[i].time.name);
		json_change(j, "calls", &c->rows[i].calls);
		json_change(j, "time_ns", &c->rows[i].time);
		json_end(j);
	}
	json_end(j);
	json_line(j, "");
	json_put_u64(j, "rows_left_out", c->nothers);
	json_line(j, "");
	json_open_array(j, "conditions");
	for (size_t i = 0; i < c->results.n; i++)
		json_condition(j, &c->results.r[i]);
	json_end(j);
	json_end(j);
}

static void print_as_json(struct out *o, const struct compare *c, size_t n, const char *version)
{
	struct json j = json_to(o);

	json_open_object(&j, NULL);
	json_put_str(&j, "schema", "cudatrace-compare");
	json_put_u64(&j, "version", 2);
	json_put_str(&j, "cudatrace", version);
	json_put_digits(&j, "level", 6, n ? c[0].results.level : 0);
	json_open_array(&j, "comparisons");
	for (size_t i = 0; i < n; i++)
		json_one(&j, &c[i]);
	json_end(&j);
	json_end(&j);
	out_char(o, '\n');
}

/* ---- JUnit ---- */

/* XML has no way to write most control characters: they are harmless here already. */
static void xml_text(struct out *o, const char *s)
{
	struct text t = { 0 };

	text_plain(&t, s, NAME_MAX_BYTES);
	for (size_t i = 0; i < t.len && !t.bad; i++) {
		if (strchr("<>&\"'", t.s[i]))
			out_fmt(o, "&#%d;", t.s[i]);
		else
			out_char(o, t.s[i]);
	}
	text_free(&t);
}

static void junit_case(struct out *o, const struct compare *c, const struct judge_expr *e)
{
	bool hit = false, known = false;
	char a[32], b[32], d[32], p[32];

	for (size_t i = 0; i < c->results.n; i++) {
		hit |= c->results.r[i].expr == e && c->results.r[i].hit;
		known |= c->results.r[i].expr == e && !c->results.r[i].unknown;
	}
	out_str(o, "  <testcase classname=\"cudatrace.compare\" name=\"");
	xml_text(o, e->text);
	out_str(o, "\">\n");
	if (hit)
		out_str(o, "   <failure message=\"regression\">");
	else if (!known)
		out_str(o, "   <error message=\"not known of both sides\">");
	else
		out_str(o, "   <system-out>");
	for (size_t i = 0; i < c->results.n; i++) {
		const struct judge_result *r = &c->results.r[i];

		if (r->expr != e || (hit && !r->hit))
			continue;
		words_of(o, &r->c, xml_text);
		out_fmt(o, " %s -&gt; %s (%s, p %s): %s\n",
			words_value(a, sizeof(a), r->c.unit, r->c.base.median),
			words_value(b, sizeof(b), r->c.unit, r->c.now.median),
			change(d, sizeof(d), r->c.change),
			isnan(r->p)	? "-"
			: r->p < 0.0001 ? "below 0.0001"
					: chance(p, sizeof(p), r->p),
			verdict_text(r));
	}
	out_fmt(o, "</%s>\n  </testcase>\n", hit ? "failure" : known ? "system-out" : "error");
}

static void junit(struct out *o, const struct compare *c, size_t n, const struct judge_expr *exprs,
		  size_t nexprs)
{
	size_t failed = 0, unknown = 0, tests = 0;

	for (size_t i = 0; i < n; i++) {
		tests += c[i].no_verdict ? 0 : nexprs;
		failed += c[i].regressions;
		unknown += c[i].unknown;
	}
	out_fmt(o,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"cudatrace "
		"compare\" tests=\"%zu\" failures=\"%zu\" "
		"errors=\"%zu\">\n",
		tests, failed, unknown);
	for (size_t i = 0; i < n; i++) {
		size_t ntests = c[i].no_verdict ? 0 : nexprs;

		out_str(o, " <testsuite name=\"");
		xml_text(o, c[i].base->path);
		out_str(o, " -&gt; ");
		xml_text(o, c[i].now->path);
		out_fmt(o, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n", ntests,
			c[i].regressions, c[i].unknown);
		for (size_t k = 0; k < ntests; k++)
			junit_case(o, &c[i], &exprs[k]);
		out_str(o, " </testsuite>\n");
	}
	out_str(o, "</testsuites>\n");
}

void compare_print(struct out *o, enum compare_format format, const struct compare *c, size_t n,
		   const struct judge_expr *exprs, size_t nexprs, const char *version)
{
	if (format == COMPARE_JUNIT) {
		junit(o, c, n, exprs, nexprs);
		return;
	}
	if (format == COMPARE_JSON) {
		print_as_json(o, c, n, version);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (i)
			out_char(o, '\n');
		if (format == COMPARE_MARKDOWN)
			markdown_one(o, &c[i], nexprs);
		else
			print_one(o, &c[i], nexprs);
	}
}
