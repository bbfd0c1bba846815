/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose_text.c - see expose.h: Prometheus' text format 0.0.4 and OpenMetrics 1.0.0, and the choice
 * between them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "expose.h"

const char *expose_type(enum expose_format format)
{
	return format == EXPOSE_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- Accept (RFC 9110, 12.5.1) ---- */

static const char *skip_blanks(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	return s;
}

static bool is_word(const char *s, const char *end, const char *word)
{
	while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (size_t)(end - s) == strlen(word) && !strncasecmp(s, word, (size_t)(end - s));
}

/* Thousandths of a q-value, 0 to 1000; 0 if it is not a valid one. */
static int quality(const char *s, const char *end)
{
	int q = 0, digits = 0;

	if (s == end || (*s != '0' && *s != '1'))
		return 0;
	q = (*s++ - '0') * 1000;
	if (s < end && *s == '.')
		s++;
	for (int unit = 100; s < end && *s >= '0' && *s <= '9' && digits < 3;
	     s++, unit /= 10, digits++)
		q += (*s - '0') * unit;
	return skip_blanks(s, end) == end && q <= 1000 ? q : 0;
}

struct range {
	int specific; /* 3: the type, 2: type and any subtype, 1: any; 0: none of ours */
	bool open;    /* OpenMetrics */
	int q;
};

static struct range range_of(const char *s, const char *end)
{
	const char *semi = memchr(s, ';', (size_t)(end - s)), *type_end = semi ? semi : end;
	struct range r = { .q = 1000 };
	bool good = true;

	if (is_word(s, type_end, "application/openmetrics-text"))
		r = (struct range){ 3, true, 1000 };
	else if (is_word(s, type_end, "text/plain"))
		r = (struct range){ 3, false, 1000 };
	else if (is_word(s, type_end, "application/*"))
		r = (struct range){ 2, true, 1000 };
	else if (is_word(s, type_end, "text/*"))
		r = (struct range){ 2, false, 1000 };
	else if (is_word(s, type_end, "*/*"))
		r = (struct range){ 1, false, 1000 };
	while (semi) {
		const char *at = skip_blanks(semi + 1, end),
			   *next = at < end ? memchr(at, ';', (size_t)(end - at)) : NULL,
			   *stop = next ? next : end;

		if (stop - at > 2 && (*at == 'q' || *at == 'Q') && at[1] == '=')
			r.q = quality(at + 2, stop);
		/* a version of OpenMetrics that is not supported here */
		if (r.open && r.specific == 3 && stop - at > 8 && !strncasecmp(at, "version=", 8))
			good = is_word(at + 8, stop, "1.0.0") ||
			       is_word(at + 8, stop, "\"1.0.0\"") || is_word(at + 8, stop, "0.0.1");
		semi = next;
	}
	if (!good)
		r.specific = 0;
	return r;
}

/* The most specific range gives the weight of a format. If both formats have the same weight, it
 * is the text format. */
enum expose_format expose_wants(const char *accept)
{
	int q[2] = { 0, 0 }, how[2] = { 0, 0 };
	const char *at = accept, *end;

	while (at && *at) {
		struct range r;

		end = strchr(at, ',');
		end = end ? end : at + strlen(at);
		r = range_of(skip_blanks(at, end), end);
		for (int open = 0; open < 2; open++) {
			/* two versions of one type: the better one */
			bool better = r.specific > how[open] ||
				      (r.specific == how[open] && r.q > q[open]);

			if (!r.specific || (r.specific > 1 && r.open != (bool)open) || !better)
				continue;
			how[open] = r.specific;
			q[open] = r.q;
		}
		at = *end ? end + 1 : NULL;
	}
	return q[1] > q[0] || (q[1] && q[1] == q[0] && how[1] > how[0]) ? EXPOSE_OPENMETRICS
									: EXPOSE_TEXT;
}

/* ---- text ---- */

struct text_walk {
	struct out *o;
	enum expose_format format;
};

/* In OpenMetrics a counter's family is named without _total and its samples with it; in the
 * older format both have it. */
static void family_head(const struct text_walk *t, const struct expose_family *f)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram" };
	const char *total = f->kind == EXPOSE_COUNTER && t->format == EXPOSE_TEXT ? "_total" : "";

	out_fmt(t->o, "# HELP %s%s %s\n# TYPE %s%s %s\n", f->name, total, f->help, f->name, total,
		kinds[f->kind]);
	if (f->unit && t->format == EXPOSE_OPENMETRICS)
		out_fmt(t->o, "# UNIT %s %s\n", f->name, f->unit);
}

static void labels(struct out *o, const struct expose_point *p, const char *le)
{
	if (!p->nlabels && !le)
		return;
	out_char(o, '{');
	for (int i = 0; i < p->nlabels; i++) {
		if (i)
			out_char(o, ',');
		out_str(o, p->labels[i].key);
		out_mem(o, "=\"", 2);
		for (const char *s = p->labels[i].value; *s; s++) {
			if (*s == '"' || *s == '\\')
				out_char(o, '\\');
			out_char(o, *s);
		}
		out_char(o, '"');
	}
	if (le)
		out_fmt(o, "%sle=\"%s\"", p->nlabels ? "," : "", le);
	out_char(o, '}');
}

/* The form of Go's client, which OpenMetrics requires: 1.0, 0.001024, 1.048576e+06. */
static const char *bound(double v, char *buf, size_t size)
{
	char e[40];
	int digits, exp;

	for (digits = 0; digits < 17; digits++) {
		snprintf(e, sizeof(e), "%.*e", digits, v);
		if (strtod(e, NULL) == v)
			break;
	}
	exp = atoi(strchr(e, 'e') + 1);
	if (exp < -4 || exp >= 6)
		snprintf(buf, size, "%s", e);
	else
		snprintf(buf, size, "%.*f", digits > exp ? digits - exp : 1, v);
	return buf;
}

static void histogram(const struct text_walk *t, const struct expose_family *f,
		      const struct expose_point *p)
{
	uint64_t sum = 0;
	char buf[48];

	for (int i = 0; i <= p->nbounds; i++) {
		sum += p->counts[i];
		out_str(t->o, f->name);
		out_str(t->o, "_bucket");
		labels(t->o, p, i < p->nbounds ? bound(p->bounds[i], buf, sizeof(buf)) : "+Inf");
		out_fmt(t->o, " %llu\n", (unsigned long long)sum);
	}
	out_str(t->o, f->name);
	out_str(t->o, "_sum");
	labels(t->o, p, NULL);
	out_char(t->o, ' ');
	out_double(t->o, p->sum);
	out_char(t->o, '\n');
	out_str(t->o, f->name);
	out_str(t->o, "_count");
	labels(t->o, p, NULL);
	out_fmt(t->o, " %llu\n", (unsigned long long)p->count);
}

static void write_point(void *ctx, const struct expose_family *f, const struct expose_point *p)
{
	const struct text_walk *t = ctx;

	if (!p) {
		family_head(t, f);
	} else if (f->kind == EXPOSE_HISTOGRAM) {
		histogram(t, f, p);
	} else {
		out_str(t->o, f->name);
		if (f->kind == EXPOSE_COUNTER)
			out_str(t->o, "_total");
		labels(t->o, p, NULL);
		out_char(t->o, ' ');
		out_double(t->o, p->value);
		out_char(t->o, '\n');
	}
}

void expose_write(struct expose *x, enum expose_format format, const struct expose_about *about,
		  struct out *o)
{
	struct text_walk t = { o, format };

	expose_walk(x, about, write_point, &t);
	if (format == EXPOSE_OPENMETRICS)
		out_str(o, "# EOF\n");
}
