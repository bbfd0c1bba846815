/* SPDX-License-Identifier: BSD-2-Clause */
/* judge.c - see judge.h. */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../api/api.h"
#include "../util/table/array.h"
#include "../util/parse.h"
#include "judge.h"
#include "noise.h"

/* ---- reading an expression ---- */

static const struct {
	const char *word;
	enum judge_op op;
} ops[] = {
	{ ">=", JUDGE_MORE_EQUAL }, { "<=", JUDGE_LESS_EQUAL }, { "==", JUDGE_EQUAL },
	{ "!=", JUDGE_NOT_EQUAL },  { ">", JUDGE_MORE },	{ "<", JUDGE_LESS },
};

#define SAVED_ALL_CALLS (((1u << API_DOMAIN_END) - 1) << SAVED_CALLS_OF)

static const struct {
	const char *word;
	uint32_t sections;
} rooms[] = {
	{ "kernel", 1 << SAVED_KERNELS },  { "copy", 1 << SAVED_COPIES },
	{ "traffic", 1 << SAVED_TRAFFIC }, { "counter", 1 << SAVED_COUNTERS },
	{ "call", SAVED_ALL_CALLS },
};

static const struct {
	const char *word, *key;
} short_keys[] = { { "failed", "failed_calls" }, { "calls", "total_api_calls" } };

#define BAD(...) (snprintf(msg, size, __VA_ARGS__), -EINVAL)

static int unit_of(enum saved_unit unit, const char *word, double *factor)
{
	static const struct {
		enum saved_unit unit;
		const char *word;
		double factor;
	} units[] = {
		{ SAVED_UNIT_NS, "ns", 1 },	      { SAVED_UNIT_NS, "us", 1e3 },
		{ SAVED_UNIT_NS, "ms", 1e6 },	      { SAVED_UNIT_NS, "s", 1e9 },
		{ SAVED_UNIT_BYTES, "B", 1 },	      { SAVED_UNIT_BYTES, "kB", 1e3 },
		{ SAVED_UNIT_BYTES, "KB", 1e3 },      { SAVED_UNIT_BYTES, "MB", 1e6 },
		{ SAVED_UNIT_BYTES, "GB", 1e9 },      { SAVED_UNIT_BYTES, "KiB", 1024 },
		{ SAVED_UNIT_BYTES, "MiB", 1048576 }, { SAVED_UNIT_BYTES, "GiB", 1073741824 },
	};

	*factor = 1;
	if (!*word)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (units[i].unit != unit || strcmp(units[i].word, word))
			continue;
		*factor = units[i].factor;
		return 0;
	}
	return -EINVAL;
}

static int parse_number(struct judge_expr *e, const char *at, char *msg, size_t size)
{
	bool sign = *at == '+' || *at == '-';
	double factor;
	char *end;

	/* strtod() also accepts inf, nan and 0x */
	if (!strspn(at + sign, "0123456789.") ||
	    strspn(at + sign, "0123456789.xX") != strspn(at + sign, "0123456789."))
		return BAD("'%s': a number is missing at the end, as +10%%, 5ms or 0", e->text);
	e->number = strtod(at, &end);
	if (!isfinite(e->number))
		return BAD("'%s': no number that can be", e->text);
	if (!strcmp(end, "%")) {
		if (!sign)
			return BAD("'%s': say which way a percentage goes: +%s or -%s", e->text, at,
				   at);
		e->how = JUDGE_PERCENT;
		e->number /= 100;
		return 0;
	}
	e->how = sign ? JUDGE_CHANGE : JUDGE_VALUE;
	if (unit_of(e->unit, end, &factor))
		return BAD("'%s': '%s' is no unit of what is compared; times have ns, us, ms and "
			   "s, sizes B, KiB, MiB, GiB, kB, MB and GB",
			   e->text, end);
	e->number *= factor;
	return 0;
}

static bool known_function(const char *glob)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (!fnmatch(glob, api_funcs[i].name, 0))
			return true;
	return false;
}

static int parse_key(struct judge_expr *e, const char *key, char *msg, size_t size)
{
	struct parse_nearest near = { .n = 0 };
	char text[256];

	e->sections = 1 << SAVED_SUMMARY;
	e->field = SAVED_VALUE;
	for (size_t i = 0; i < ARRAY_LEN(short_keys); i++)
		if (!strcmp(short_keys[i].word, key))
			key = short_keys[i].key;
	key = saved_key_of(key);
	for (unsigned int i = 0; saved_key(i); i++) {
		if (!strcmp(saved_key(i), key)) {
			e->unit = saved_key_unit(key);
			e->name = strdup(key);
			return e->name ? 0 : BAD("'%s': no memory", e->text);
		}
		parse_nearest_add(&near, key, saved_key(i));
	}
	if (known_function(key))
		return BAD("'%s': say what of it: %s.calls, .failed, .time, .avg, .median, .p99, "
			   ".min, .max or .bytes",
			   e->text, key);
	return BAD("'%s': there is no number '%s'%s", e->text, key,
		   near.n ? parse_nearest_text(&near, text, sizeof(text))
			  : "; 'cudatrace compare BASE NEW' prints those that there are");
}

static int parse_field(struct judge_expr *e, const char *name, size_t len, char *msg, size_t size)
{
	int f = saved_field_find(name, len);

	if (f < 0)
		return BAD("'%s': '%.*s' is nothing that calls have; calls, failed, time, avg, "
			   "median, p90, p99, min, max, stddev, bytes, occupancy or bandwidth",
			   e->text, (int)(len < 40 ? len : 40), name);
	e->field = (enum saved_field)f;
	e->unit = saved_field_unit(e->field);
	return 0;
}

static int parse_function(struct judge_expr *e, char *subject, char *msg, size_t size)
{
	struct parse_nearest near = { .n = 0 };
	char text[256];

	/* totals: the word before the dot is a section's */
	for (int i = SAVED_CALLS_OF; i <= SAVED_SYNC; i++) {
		if (strcmp(saved_section_name((enum saved_section)i), subject))
			continue;
		e->sections = 1u << i;
		*subject = '\0';
		return 0;
	}
	e->sections = SAVED_ALL_CALLS;
	if (known_function(subject))
		return 0;
	for (int i = 0; i < api_nfuncs; i++)
		parse_nearest_add(&near, subject, api_funcs[i].name);
	return BAD("'%s': no function of CUDA is called '%s'%s", e->text, subject,
		   parse_nearest_text(&near, text, sizeof(text)));
}

/* The part before the operator. A kernel's name may have dots, brackets and operators itself. */
static int parse_metric(struct judge_expr *e, char *metric, char *msg, size_t size)
{
	char *paren = strchr(metric, '('), *close = strrchr(metric, ')'), *dot;

	if (paren && close > paren) {
		size_t i;

		*paren = *close = '\0';
		for (i = 0; i < ARRAY_LEN(rooms) && strcmp(rooms[i].word, metric); i++)
			;
		if (i == ARRAY_LEN(rooms))
			return BAD("'%s': '%s(...)' is not one of kernel(), copy(), traffic(), "
				   "counter() and call()",
				   e->text, metric);
		e->sections = rooms[i].sections;
		e->name = strdup(paren + 1);
		if (!e->name)
			return BAD("'%s': no memory", e->text);
		if (e->sections == 1 << SAVED_COUNTERS && !close[1])
			return 0;
		if (close[1] != '.')
			return BAD(
				"'%s': say what of it after the bracket: .calls, .time, .avg, ...",
				e->text);
		return parse_field(e, close + 2, strlen(close + 2), msg, size);
	}
	dot = strrchr(metric, '.');
	if (!dot)
		return parse_key(e, metric, msg, size);
	*dot = '\0';
	if (parse_field(e, dot + 1, strlen(dot + 1), msg, size) ||
	    parse_function(e, metric, msg, size))
		return -EINVAL;
	if (!*metric && e->field == SAVED_BYTES && e->sections != 1 << SAVED_COPIES)
		return BAD("'%s': bytes of calls that copy, allocate and free have no sum; say "
			   "which, as in 'traffic(HtoD).bytes' or 'cudaMalloc.bytes'",
			   e->text);
	e->name = strdup(metric);
	return e->name ? 0 : BAD("'%s': no memory", e->text);
}

/* Removes the blanks at both ends. */
static char *trimmed(const char *s, size_t n)
{
	while (n && (*s == ' ' || *s == '\t')) {
		s++;
		n--;
	}
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	return strndup(s, n);
}

int judge_parse(struct judge_expr *e, const char *text, char *msg, size_t size)
{
	size_t len = strlen(text), at = len, begin;
	char *metric, *number;
	int err = -EINVAL;

	*e = (struct judge_expr){ .text = text };
	while (at && !strchr("<>=!", text[at - 1]))
		at--;
	/* the operator is the last one: at most two letters */
	begin = at ? at - 1 : 0;
	if (begin && text[begin] == '=' && strchr("<>=!", text[begin - 1]))
		begin--;
	metric = trimmed(text, begin);
	number = trimmed(text + at, len - at);
	for (size_t i = 0; at && i < ARRAY_LEN(ops) && err; i++) {
		if (strlen(ops[i].word) == at - begin &&
		    !strncmp(ops[i].word, text + begin, at - begin)) {
			e->op = ops[i].op;
			err = 0;
		}
	}
	if (!metric || !number)
		err = BAD("'%s': no memory", text);
	else if (err || !*metric)
		err = BAD("'%s' is no condition: a name, one of > >= < <= == !=, and a number, as "
			  "cudaMalloc.calls>+10%%",
			  text);
	else
		err = parse_metric(e, metric, msg, size);
	if (!err)
		err = parse_number(e, number, msg, size);
	if (!err)
		e->glob = strpbrk(e->name, "*?[") != NULL;
	free(metric);
	free(number);
	return err;
}

void judge_free(struct judge_expr *e)
{
	free(e->name);
	e->name = NULL;
}

/* ---- changes ---- */

static void side(struct judge_side *s, const double *v, size_t n)
{
	*s = (struct judge_side){ noise_median(v, n), noise_spread(v, n), NAN, NAN, 0, n };
	for (size_t i = 0; i < n; i++) {
		s->least = i && s->least < v[i] ? s->least : v[i];
		s->most = i && s->most > v[i] ? s->most : v[i];
	}
}

/* By how much a number may be wrong because a part of its calls is an estimate: the largest value
 * of all runs. 0: each call was counted. */
static double error_of(const struct saved *s, enum saved_section section, const char *name,
		       enum saved_field field, double median)
{
	bool summary = section == SAVED_SUMMARY && !strcmp(name, "total_api_calls");
	const struct saved_row *row = saved_find(s, section, summary ? "error" : name),
			       *calls = saved_find(s, section, name);
	double most = 0, part = 1;

	if (!row || (section == SAVED_SUMMARY
			     ? !summary
			     : field != SAVED_CALLS && field != SAVED_TIME && field != SAVED_ERROR))
		return 0;
	for (size_t i = 0; i < s->nruns; i++) {
		double v = row->values[i * SAVED_FIELD_END + (summary ? SAVED_VALUE : SAVED_ERROR)];
		double n = calls ? calls->values[i * SAVED_FIELD_END + SAVED_CALLS] : NAN;

		part = field == SAVED_TIME && n > 0 ? median / n : 1;
		most = !isnan(v) && v * part > most ? v * part : most;
	}
	return field == SAVED_ERROR ? 0 : most;
}

int judge_change(struct judge_change *c, const struct saved *base, const struct saved *now,
		 enum saved_section section, const char *name, enum saved_field field,
		 enum saved_unit unit)
{
	double *v = calloc(base->nruns + now->nruns + 1, sizeof(*v)),
	       *w = v ? v + base->nruns : NULL;
	size_t n, m;

	*c = (struct judge_change){ section,	   name,	  field,	unit,
				    .change = NAN, .p_more = NAN, .p_less = NAN };
	if (!v)
		return -ENOMEM;
	n = saved_values(base, saved_find(base, section, name), section, field, v);
	m = saved_values(now, saved_find(now, section, name), section, field, w);
	side(&c->base, v, n);
	side(&c->now, w, m);
	c->base.error = error_of(base, section, name, field, c->base.median);
	c->now.error = error_of(now, section, name, field, c->now.median);
	if (n && m) {
		double difference = c->now.median - c->base.median;

		c->change = difference == 0 ? 0 : difference / c->base.median;
	}
	if (n >= JUDGE_RUNS_MIN && m >= JUDGE_RUNS_MIN) {
		c->p_more = noise_p_above(v, n, w, m);
		c->p_less = noise_p_above(w, m, v, n);
	}
	free(v);
	return 0;
}

/* ---- expressions against rows ---- */

static bool judge_compare(enum judge_op op, double a, double b)
{
	switch (op) {
	case JUDGE_MORE: return a > b;
	case JUDGE_MORE_EQUAL: return a >= b;
	case JUDGE_LESS: return a < b;
	case JUDGE_LESS_EQUAL: return a <= b;
	case JUDGE_EQUAL: return a == b;
	default: return a != b;
	}
}

/* A bound must hold for every run, so the worst run of NEW decides. */
static bool beyond_value(const struct judge_expr *e, const struct judge_side *now)
{
	if (e->op == JUDGE_EQUAL)
		return now->least == e->number || now->most == e->number;
	return judge_compare(e->op,
			     e->op == JUDGE_LESS || e->op == JUDGE_LESS_EQUAL ? now->least
									      : now->most,
			     e->number) ||
	       (e->op == JUDGE_NOT_EQUAL && now->least != e->number);
}

/* True if the result depends on where in their intervals the true numbers are. Then the condition
 * cannot be decided. */
static bool rests_on_estimate(struct judge_result *r)
{
	const struct judge_expr *e = r->expr;
	const struct judge_side *b = &r->c.base, *n = &r->c.now;
	bool met = false, unmet = false;

	double least = INFINITY, most = -INFINITY;

	r->estimate = n->error > 0 || (e->how != JUDGE_VALUE && b->error > 0);
	for (int i = 0; i < 4 && r->estimate; i++) {
		double base = fmax(b->median + (i & 1 ? b->error : -b->error), 0), v,
		       now = n->median;
		bool is;

		/* a bound holds for every run */
		if (e->how == JUDGE_VALUE && e->op != JUDGE_EQUAL && e->op != JUDGE_NOT_EQUAL)
			now = e->op == JUDGE_LESS || e->op == JUDGE_LESS_EQUAL ? n->least : n->most;
		now = fmax(now + (i & 2 ? n->error : -n->error), 0);
		v = e->how == JUDGE_VALUE     ? now
		    : e->how == JUDGE_PERCENT ? (now - base) / base
					      : now - base;
		is = judge_compare(e->op, v, e->number);
		met |= is;
		unmet |= !is;
		least = fmin(least, v);
		most = fmax(most, v);
	}
	/* not equal at either end, but possibly in between */
	if ((e->op == JUDGE_EQUAL || e->op == JUDGE_NOT_EQUAL) && least < e->number &&
	    e->number < most)
		met = unmet = true;
	if (met && unmet)
		r->beyond = false;
	return met && unmet;
}

static void judge_judge(struct judge_result *r)
{
	const struct judge_expr *e = r->expr;
	const struct judge_change *c = &r->c;

	r->p = NAN;
	if (!c->now.n || (e->how != JUDGE_VALUE && !c->base.n)) {
		r->unknown = true;
		return;
	}
	if (e->how == JUDGE_VALUE) {
		r->beyond = beyond_value(e, &c->now);
		r->unknown = rests_on_estimate(r);
		return;
	}
	r->beyond = judge_compare(
		e->op, e->how == JUDGE_PERCENT ? c->change : c->now.median - c->base.median,
		e->number);
	/* From several runs it can be seen how much their numbers vary, but not how far a lower bound is from the
	 * true number. */
	if (isnan(c->p_more) || c->base.error > c->base.median || c->now.error > c->now.median)
		r->unknown = rests_on_estimate(r);
	if (isnan(c->p_more) || r->unknown || e->op == JUDGE_EQUAL)
		return;
	if (e->op == JUDGE_NOT_EQUAL)
		r->p = fmin(1, 2 * fmin(c->p_more, c->p_less));
	else
		r->p = e->op == JUDGE_MORE || e->op == JUDGE_MORE_EQUAL ? c->p_more : c->p_less;
}

static int by_p(const void *pa, const void *pb)
{
	const struct judge_result *a = *(struct judge_result *const *)pa,
				  *b = *(struct judge_result *const *)pb;

	return a->p < b->p ? -1 : a->p > b->p;
}

/* Holm's method: the smallest p against level / k, the next against level / (k - 1), until one
 * is too large. */
static int decide(struct judge_results *all)
{
	struct judge_result **tested = calloc(all->n + 1, sizeof(*tested));
	bool noise = false;
	double least = 0;

	if (!tested)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++) {
		struct judge_result *r = &all->r[i];

		r->hit = r->beyond;
		if (isnan(r->p))
			continue;
		least = fmax(least, noise_p_least(r->c.base.n, r->c.now.n));
		tested[all->tested++] = r;
	}
	qsort(tested, all->tested, sizeof(*tested), by_p);
	all->corrected = least * (double)all->tested <= all->level;
	for (size_t i = 0; i < all->tested; i++) {
		noise = tested[i]->p >
				all->level / (all->corrected ? (double)(all->tested - i) : 1) ||
			(noise && all->corrected);
		tested[i]->noise = tested[i]->beyond && noise;
		tested[i]->hit = tested[i]->beyond && !noise;
	}
	free(tested);
	return 0;
}

static bool matches(const struct judge_expr *e, const struct saved_row *row)
{
	static const char *const after[] = { "memcpy ", "/", "  " };
	const char *name = row->name;

	if (!(e->sections & 1u << row->section))
		return false;
	if (!*e->name || !*name)
		return !*e->name && !*name;
	for (size_t i = 0; i <= ARRAY_LEN(after) && name; i++) {
		if (!strcmp(e->name, name) || (e->glob && !fnmatch(e->name, name, 0)))
			return true;
		if (i == ARRAY_LEN(after) || (i == 1 && row->section != SAVED_COUNTERS))
			continue;
		name = strstr(row->name, after[i]);
		name = name ? name + strlen(after[i]) : row->name;
	}
	return false;
}

static int add_result(struct judge_results *all, const struct judge_expr *e,
		      const struct saved *base, const struct saved *now, enum saved_section section,
		      const char *name)
{
	struct judge_result *r;
	int err;

	r = array_add(all->r, all->n);
	if (!r)
		return -ENOMEM;
	r->expr = e;
	err = judge_change(&r->c, base, now, section, name, e->field, e->unit);
	if (!err)
		judge_judge(r);
	return err;
}

static int judge_one(struct judge_results *all, const struct judge_expr *e,
		     const struct saved *base, const struct saved *now)
{
	size_t before = all->n;
	int err = 0;

	for (size_t i = 0; i < base->nrows && !err; i++)
		if (matches(e, &base->rows[i]))
			err = add_result(all, e, base, now, base->rows[i].section,
					 base->rows[i].name);
	for (size_t i = 0; i < now->nrows && !err; i++)
		if (matches(e, &now->rows[i]) &&
		    !saved_find(base, now->rows[i].section, now->rows[i].name))
			err = add_result(all, e, base, now, now->rows[i].section,
					 now->rows[i].name);
	if (err || all->n > before)
		return err;
	/* a function that exists and was never called, or nothing at all */
	return add_result(all, e, base, now, (enum saved_section)__builtin_ctz(e->sections),
			  e->name);
}

/* A name that matches nothing may be mistyped. */
static bool may_be_missing(const struct judge_expr *e)
{
	return e->sections & SAVED_ALL_CALLS && known_function(e->name);
}

int judge_all(struct judge_results *all, const struct judge_expr *exprs, size_t nexprs,
	      const struct saved *base, const struct saved *now, double level)
{
	*all = (struct judge_results){ .level = level };
	for (size_t i = 0; i < nexprs; i++) {
		size_t before = all->n;
		int err = judge_one(all, &exprs[i], base, now);
		struct judge_result *r = &all->r[before];

		if (err)
			return err;
		if (all->n == before + 1 && *exprs[i].name && !may_be_missing(&exprs[i]) &&
		    !saved_find(base, r->c.section, r->c.name) &&
		    !saved_find(now, r->c.section, r->c.name))
			r->unknown = true, r->beyond = false, r->p = NAN;
	}
	return decide(all);
}

void judge_results_free(struct judge_results *all)
{
	free(all->r);
	*all = (struct judge_results){ 0 };
}
