/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare_print.c - a comparison as text for people, markdown for a merge request, JSON for
 * programs and JUnit's XML for CI. Names are untrusted bytes, of a program and of a file: each
 * format escapes them in its way.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../render/table.h"
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

/* Returns how far the runs of a side lie from their median, of the side where they lie farther. */
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

/* A number that neither side has, or that is 0 on both, is not worth a line. */
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
	if (markdown)
		table_markdown_text(o, t.s, t.len);
	else
		out_mem(o, t.s, t.len);
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

/* ---- tables ---- */

/* What a table is about, and for. */
#define SUMMARY 1u
#define ROWS 2u
#define CONDITIONS 4u
#define MARKDOWN 8u
#define ROWS_MARKDOWN 16u

struct change_row {
	const struct judge_change *k;
	const struct compare_row *row; /* of ROWS; NULL: another */
	const struct judge_result *r;  /* of CONDITIONS; NULL: another */
};

static const char *result_word(const struct judge_result *r)
{
	static const char *const words[] = { "pass", "fail", "noise", "unknown" };

	return words[r->unknown ? 3 : r->hit ? 1 : r->noise ? 2 : 0];
}

static const char *unit_word(enum saved_unit unit)
{
	static const char *const units[] = {
		[SAVED_UNIT_NUMBER] = "",     [SAVED_UNIT_NS] = "ns",
		[SAVED_UNIT_BYTES] = "bytes", [SAVED_UNIT_SHARE] = "share",
		[SAVED_UNIT_GBS] = "GB/s",
	};

	return units[unit];
}

static const char *json_name(const struct judge_change *k)
{
	return k->section == SAVED_SUMMARY ? saved_key_json(k->name) : k->name;
}

static double chance_of(const struct change_row *c)
{
	return c->r ? c->r->p : words_chance(c->k);
}

#define COLUMN(name, value)                                \
	static struct cell name(const struct table_at *at) \
	{                                                  \
		const struct change_row *c = at->row;      \
                                                           \
		return value;                              \
	}
#define SHOW(name, value)                                                        \
	static const char *name(const struct table_at *at, char buf[TABLE_CELL]) \
	{                                                                        \
		const struct change_row *c = at->row;                            \
                                                                                 \
		(void)buf;                                                       \
		return value;                                                    \
	}

COLUMN(change_base, cell_real(c->k->base.median))
COLUMN(change_new, cell_real(c->k->now.median))
COLUMN(change_share, cell_real(c->k->change))
COLUMN(change_base_noise, cell_real(c->k->base.spread))
COLUMN(change_new_noise, cell_real(c->k->now.spread))
COLUMN(change_chance, cell_real(chance_of(c)))
COLUMN(change_name, cell_string(c->k->name))
COLUMN(condition_text, cell_string(c->r->expr->text))
COLUMN(condition_section, cell_string(saved_section_name(c->k->section)))
COLUMN(condition_name, cell_string(json_name(c->k)))
COLUMN(condition_field, cell_string(saved_field_name(c->k->field)))
COLUMN(condition_unit, cell_string(unit_word(c->r->expr->unit)))
COLUMN(condition_result, cell_string(result_word(c->r)))
COLUMN(condition_estimate, cell_flag(c->r->unknown && c->r->estimate))
SHOW(show_base, words_value(buf, TABLE_CELL, c->k->unit, c->k->base.median))
SHOW(show_new, words_value(buf, TABLE_CELL, c->k->unit, c->k->now.median))
SHOW(show_change, change(buf, TABLE_CELL, c->k->change))
SHOW(show_noise, spread(buf, TABLE_CELL, c->k))
SHOW(show_chance, chance(buf, TABLE_CELL, chance_of(c)))
SHOW(show_key, saved_key_words(c->k->name))
SHOW(show_key_name, c->k->name)
SHOW(show_calls_base, words_value(buf, TABLE_CELL, SAVED_UNIT_NUMBER, c->row->calls.base.median))
SHOW(show_calls_new, words_value(buf, TABLE_CELL, SAVED_UNIT_NUMBER, c->row->calls.now.median))
SHOW(show_result, verdict_text(c->r))

static const char *show_calls(const struct table_at *at, char buf[TABLE_CELL])
{
	char a[32], b[32];

	words_value(a, sizeof(a), SAVED_UNIT_NUMBER,
		    ((const struct change_row *)at->row)->row->calls.base.median);
	words_value(b, sizeof(b), SAVED_UNIT_NUMBER,
		    ((const struct change_row *)at->row)->row->calls.now.median);
	if (strcmp(a, b))
		snprintf(buf, TABLE_CELL, "%s -> %s", a, b);
	else
		snprintf(buf, TABLE_CELL, "%s", a);
	return buf;
}

static void write_what(struct out *o, const struct table_at *at)
{
	words_of(o, ((const struct change_row *)at->row)->k, markdown_name);
}

#define DIGITS .json_digits = 12, .significant = true
/* clang-format off */
static const struct table_column columns[] = {
	{ .key = "expression", .head = "Condition", .text = 1, .needs = CONDITIONS, .get = condition_text },
	{ .key = "section", .needs = CONDITIONS, .get = condition_section },
	{ .key = "name", .needs = CONDITIONS, .get = condition_name },
	{ .key = "field", .needs = CONDITIONS, .get = condition_field },
	{ .key = "unit", .needs = CONDITIONS, .get = condition_unit },
	{ .head = "What", .text = 2, .needs = CONDITIONS, .write = write_what },
	{ .head = "Summary", .text = 1, .width = -24, .needs = SUMMARY, .show = show_key },
	{ .head = "Calls", .text = 1, .width = 17, .needs = ROWS, .unless = MARKDOWN, .show = show_calls },
	{ .head = "Name", .text = 1, .needs = ROWS_MARKDOWN, .get = change_name },
	{ .head = "Calls, base", .text = 2, .width = 12, .needs = ROWS_MARKDOWN, .show = show_calls_base },
	{ .head = "Calls, new", .text = 3, .width = 12, .needs = ROWS_MARKDOWN, .show = show_calls_new },
	{ .head = "Time, base", .text = 4, .width = 12, .needs = ROWS_MARKDOWN, .show = show_base },
	{ .head = "Time, new", .text = 5, .width = 12, .needs = ROWS_MARKDOWN, .show = show_new },
	{ .key = "base", .head = "Base", .text = 4, .width = 12, DIGITS, .unless = ROWS_MARKDOWN, .get = change_base, .show = show_base },
	{ .key = "new", .head = "New", .text = 5, .width = 12, DIGITS, .unless = ROWS_MARKDOWN, .get = change_new, .show = show_new },
	{ .key = "change", .head = "Change", .text = 6, .width = 10, DIGITS, .get = change_share, .show = show_change },
	{ .head = "Noise", .text = 7, .width = 9, .unless = CONDITIONS, .show = show_noise },
	{ .key = "base_noise", DIGITS, .unless = CONDITIONS, .get = change_base_noise },
	{ .key = "new_noise", DIGITS, .unless = CONDITIONS, .get = change_new_noise },
	{ .key = "p", .head = "p", .text = 8, .width = 8, DIGITS, .get = change_chance, .show = show_chance },
	{ .key = "result", .head = "Result", .text = 9, .needs = CONDITIONS, .get = condition_result, .show = show_result },
	{ .key = "estimate", .needs = CONDITIONS, .get = condition_estimate },
	{ .head = "In --fail-if", .text = 9, .needs = SUMMARY, .show = show_key_name },
	{ .head = "Name", .text = 9, .needs = ROWS, .unless = MARKDOWN, .get = change_name },
};
/* clang-format on */

static struct table table_of(uint32_t have)
{
	return (struct table)TABLE_OF(
		columns,
		have | ((have & (ROWS | MARKDOWN)) == (ROWS | MARKDOWN) ? ROWS_MARKDOWN : 0), NULL);
}

/* ---- text ---- */

static void text_changes(struct out *o, const struct compare *c)
{
	const struct table summary = table_of(SUMMARY), rows = table_of(ROWS);

	out_str(o, " What changed\n");
	words_changes(o, c, "  ", plain_name);
	out_char(o, '\n');
	table_text_heads(&summary, o);
	for (size_t i = 0; i < c->nkeys; i++)
		if (!is_empty(&c->keys[i]))
			table_text_row(&summary, o, &(struct change_row){ .k = &c->keys[i] });
	if (c->nrows) {
		out_char(o, '\n');
		table_text_heads(&rows, o);
	}
	for (size_t i = 0; i < c->nrows && i < TEXT_ROWS; i++)
		table_text_row(&rows, o,
			       &(struct change_row){ .k = &c->rows[i].time, .row = &c->rows[i] });
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
			"One needs %d runs or more on each side ('cudatrace stat --runs %d --save "
			"FILE -- CMD'), or --fail-if.\n",
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

static bool compare_print_missing(const struct compare *c)
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
	if (!c->no_verdict || compare_print_missing(c))
		out_str(o, ".\n");
}

/* ---- markdown ---- */

static void markdown_one(struct out *o, const struct compare *c, size_t nexprs)
{
	const struct table conditions = table_of(CONDITIONS | MARKDOWN),
			   summary = table_of(SUMMARY | MARKDOWN), rows = table_of(ROWS | MARKDOWN);

	out_str(o, "### cudatrace: ");
	files(o, c, true);
	if (c->no_verdict)
		out_str(o, "\n**No verdict.**\n");
	else
		out_fmt(o, "\n**%zu of %zu conditions failed.**\n", c->regressions, nexprs);
	if (c->results.n) {
		out_char(o, '\n');
		table_markdown_heads(&conditions, o);
	}
	for (size_t i = 0; i < c->results.n; i++)
		table_markdown_row(&conditions, o,
				   &(struct change_row){ .k = &c->results.r[i].c,
							 .r = &c->results.r[i] });
	out_str(o, "\nWhat changed:\n\n");
	words_changes(o, c, "- ", markdown_name);
	out_char(o, '\n');
	table_markdown_heads(&summary, o);
	for (size_t i = 0; i < c->nkeys; i++)
		if (!is_empty(&c->keys[i]))
			table_markdown_row(&summary, o, &(struct change_row){ .k = &c->keys[i] });
	if (c->nrows) {
		out_char(o, '\n');
		table_markdown_heads(&rows, o);
	}
	for (size_t i = 0; i < c->nrows && i < TEXT_ROWS; i++)
		table_markdown_row(&rows, o,
				   &(struct change_row){ .k = &c->rows[i].time,
							 .row = &c->rows[i] });
	out_char(o, '\n');
	how_tested(o, c);
}

/* ---- JSON ---- */

static void json_change(struct json *j, const char *key, const struct judge_change *k)
{
	const struct table t = table_of(0);

	json_open_object(j, key);
	table_json_members(&t, j, &(struct change_row){ .k = k });
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

static void json_one(struct json *j, const struct compare *c)
{
	const struct table conditions = table_of(CONDITIONS);

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
		table_json_row(&conditions, j, " ",
			       &(struct change_row){ .k = &c->results.r[i].c,
						     .r = &c->results.r[i] });
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
		"compare\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
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
