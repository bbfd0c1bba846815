/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * advise_print.c - see advise_print.h.
 *
 *   1. Memory allocated and freed in a loop                    serious    412.0 ms, 11.7 %
 *      alloc-in-loop, python3 4242
 *      320 times ...
 */
#include <stdio.h>
#include <string.h>

#include "../format/json_text.h"
#include "advise_print.h"
#include "rule.h"

#define WIDTH 100
#define STACK_LINES 6

/* Words of a text, in lines of WIDTH columns that begin with `indent`. Bytes of UTF-8 count as
 * columns each. */
static void wrap(struct out *o, const char *indent, const char *s, size_t n)
{
	size_t at = strlen(indent), i = 0;

	out_str(o, indent);
	while (i < n) {
		size_t len = 0;

		while (i + len < n && s[i + len] != ' ')
			len++;
		if (at + 1 + len > WIDTH && i) {
			out_char(o, '\n');
			out_str(o, indent);
			at = strlen(indent);
		} else if (i) {
			out_char(o, ' ');
			at++;
		}
		for (size_t done = 0; done < len; done += 4096)
			out_mem(o, s + i + done, len - done < 4096 ? len - done : 4096);
		at += len;
		i += len + 1;
	}
	out_char(o, '\n');
}

static void wrap_str(struct out *o, const char *indent, const char *label, const char *s)
{
	struct text t = { .s = NULL };

	text_str(&t, label);
	text_str(&t, s);
	wrap(o, indent, t.s ? t.s : "", t.len);
	text_free(&t);
}

static void cost(char *buf, size_t size, const struct advise_finding *f)
{
	if (f->cost_ns)
		snprintf(buf, size, "%s, %.1f %%", rule_time((double)f->cost_ns), f->share * 100);
	else if (f->bytes)
		snprintf(buf, size, "%s", rule_bytes((double)f->bytes));
	else
		snprintf(buf, size, "no known time");
}

/* Seconds after the trace's begin; of what lies before it, which clocks that were brought
 * together can give, too. */
static double after(const struct advise_print *p, uint64_t ns)
{
	return (double)(int64_t)(ns - p->start_ns) / 1e9;
}

static void title(struct out *o, const struct advise_print *p)
{
	struct text t = { .s = NULL };

	text_plain(&t, p->title ? p->title : "", p->title ? 4096 : 0);
	out_mem(o, t.s ? t.s : "", t.len);
	text_free(&t);
}

static void totals(struct out *o, const struct advise_print *p)
{
	struct advise_totals t;

	advise_totals(p->advice, &t);
	out_fmt(o,
		"%zu %s; looked at %llu %s and %llu %s of device work of %u %s over %s, with %u "
		"rules.\n",
		p->n, p->n == 1 ? "finding" : "findings", (unsigned long long)t.calls,
		t.calls == 1 ? "call" : "calls", (unsigned long long)t.work,
		t.work == 1 ? "record" : "records", t.processes,
		t.processes == 1 ? "process" : "processes", rule_time((double)t.span_ns), t.rules);
}

/* The calls that were counted and not recorded, "" when there were none. */
static const char *sampled(const struct advise_print *p, char *buf, size_t size)
{
	buf[0] = '\0';
	return p->muted_calls ? muted_clause(buf, size, p->muted_calls, NULL) : buf;
}

/* What was not looked at, and why: nothing that is not said is claimed to be good. */
static void limits(struct out *o, const struct advise_print *p)
{
	uint64_t lost = p->losses ? losses_total(p->losses) : 0;
	struct advise_totals t;
	char clause[256];
	bool any = false;

	advise_totals(p->advice, &t);
	for (unsigned int i = 0; advise_rule_at(i); i++) {
		const struct advise_rule *r = advise_rule_at(i);

		if (!advise_wanted(p->advice, r) || advise_checked(p->advice, r))
			continue;
		out_fmt(o, "%s%s", any ? ", " : "Not checked: ", r->name);
		any = true;
	}
	if (any)
		out_str(o, t.have & ADVISE_DEVICE
				   ? ": they need calls.\n"
				   : ": they need what the device did (record with --gpu).\n");
	if (lost)
		out_fmt(o, "%llu records were lost: there may be more than is said here.\n",
			(unsigned long long)lost);
	for (int i = 0; p->muted && p->muted[i]; i++)
		out_fmt(o, "%s%s%s",
			i ? ", " : "Of these not all calls were seen, since they were very many: ",
			p->muted[i], p->muted[i + 1] ? "" : ".\n");
	if (*sampled(p, clause, sizeof(clause)))
		out_fmt(o,
			"Counted in short windows and not looked at one by one: %s. What is said "
			"of queries rests on the others.\n",
			clause);
	if (t.no_room)
		out_fmt(o,
			"%llu events were of more processes, threads or devices than are looked "
			"at.\n",
			(unsigned long long)t.no_room);
}

/* ---- text ---- */

static void stack_lines(struct out *o, const char *indent, const struct text *stack)
{
	const char *s = stack->s;
	size_t left = stack->len;

	for (int i = 0; i < STACK_LINES && left; i++) {
		const char *end = memchr(s, '\n', left);
		size_t n = end ? (size_t)(end - s) : left;

		out_str(o, indent);
		out_mem(o, s, n);
		out_char(o, '\n');
		left -= n + (end != NULL);
		s += n + (end != NULL);
	}
	if (left)
		out_fmt(o, "%s...\n", indent);
}

static void place_line(struct out *o, const struct advise_print *p, const struct advise_place *at)
{
	out_fmt(o, "%llu x ", (unsigned long long)at->n);
	out_mem(o, at->name.s ? at->name.s : "", at->name.len);
	if (at->cost_ns)
		out_fmt(o, ", %s", rule_time((double)at->cost_ns));
	if (at->bytes)
		out_fmt(o, ", %s", rule_bytes((double)at->bytes));
	out_fmt(o, "; the longest at %.6f s: %s", after(p, at->at_ns),
		rule_time((double)at->took_ns));
}

static void text_finding(struct out *o, const struct advise_print *p, size_t i)
{
	const struct advise_finding *f = &p->findings[i];
	char buf[96];

	cost(buf, sizeof(buf), f);
	out_fmt(o, "\n%zu. %-58s %-8s %s\n   %s, ", i + 1, f->rule->title,
		advise_severity_name(f->severity), buf, f->rule->name);
	out_mem(o, f->comm.s ? f->comm.s : "", f->comm.len);
	out_fmt(o, " %u\n", f->pid);
	wrap(o, "   ", f->evidence.s ? f->evidence.s : "", f->evidence.len);
	wrap_str(o, "   ", "Cost: ", f->rule->cost);
	wrap_str(o, "   ", "Do: ", f->rule->todo);
	for (unsigned int k = 0; k < f->nplaces; k++) {
		out_str(o, "   - ");
		place_line(o, p, &f->places[k]);
		out_char(o, '\n');
		stack_lines(o, "       ", &f->places[k].stack);
	}
}

void advise_print_text(struct out *o, const struct advise_print *p)
{
	if (p->title) {
		title(o, p);
		out_str(o, ": ");
	}
	totals(o, p);
	for (size_t i = 0; i < p->n; i++)
		text_finding(o, p, i);
	if (p->n)
		out_char(o, '\n');
	limits(o, p);
}

/* ---- Markdown ---- */

/* What Markdown takes for marks is escaped. */
static void marked(struct out *o, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strchr("\\`*_{}[]<>()#+!|~&", s[i]) && s[i])
			out_char(o, '\\');
		out_char(o, s[i]);
	}
}

static void marked_str(struct out *o, const char *s)
{
	marked(o, s, strlen(s));
}

static void markdown_finding(struct out *o, const struct advise_print *p, size_t i)
{
	const struct advise_finding *f = &p->findings[i];
	char buf[96];

	cost(buf, sizeof(buf), f);
	out_fmt(o, "\n## %zu. %s\n\n**%s**, %s, `%s`, ", i + 1, f->rule->title,
		advise_severity_name(f->severity), buf, f->rule->name);
	marked(o, f->comm.s ? f->comm.s : "", f->comm.len);
	out_fmt(o, " %u\n\n", f->pid);
	marked(o, f->evidence.s ? f->evidence.s : "", f->evidence.len);
	out_str(o, "\n\n- Cost: ");
	marked_str(o, f->rule->cost);
	out_str(o, "\n- Do: ");
	marked_str(o, f->rule->todo);
	out_char(o, '\n');
	if (f->nplaces)
		out_str(o, "\n| where | times | cost | bytes | the longest "
			   "|\n|---|---:|---:|---:|---|\n");
	for (unsigned int k = 0; k < f->nplaces; k++) {
		const struct advise_place *at = &f->places[k];
		const char *line = at->stack.s ? memchr(at->stack.s, '\n', at->stack.len) : NULL;

		out_str(o, "| ");
		marked(o, at->name.s ? at->name.s : "", at->name.len);
		if (at->stack.len) {
			out_str(o, " in ");
			marked(o, at->stack.s, line ? (size_t)(line - at->stack.s) : at->stack.len);
		}
		out_fmt(o, " | %llu | %s | %s | %s at %.6f s |\n", (unsigned long long)at->n,
			at->cost_ns ? rule_time((double)at->cost_ns) : "",
			at->bytes ? rule_bytes((double)at->bytes) : "",
			rule_time((double)at->took_ns), after(p, at->at_ns));
	}
}

void advise_print_markdown(struct out *o, const struct advise_print *p)
{
	struct text t = { .s = NULL };

	out_str(o, "# What could be better");
	if (p->title) {
		text_plain(&t, p->title, 4096);
		out_str(o, ": ");
		marked(o, t.s ? t.s : "", t.len);
		text_free(&t);
	}
	out_str(o, "\n\n");
	totals(o, p);
	for (size_t i = 0; i < p->n; i++)
		markdown_finding(o, p, i);
	if (p->n)
		out_char(o, '\n');
	limits(o, p);
}

/* ---- JSON ---- */

static void string(struct out *o, const char *s, size_t n)
{
	struct text t = { .s = NULL };
	char *copy = NULL;

	/* what is safe for a terminal is so here; the text's own marks are not */
	n = s ? n : 0;
	text_mem(&t, s ? s : "", n);
	text_mem(&t, "", 1);
	copy = t.bad ? NULL : t.s;
	if (copy) {
		struct text json = { .s = NULL };

		text_json(&json, copy, n);
		for (size_t done = 0; done < json.len; done += 4096)
			out_mem(o, json.s + done, json.len - done < 4096 ? json.len - done : 4096);
		text_free(&json);
	} else {
		out_str(o, "\"\"");
	}
	text_free(&t);
}

static void member(struct out *o, const char *name, const char *value)
{
	out_fmt(o, ",\"%s\":", name);
	string(o, value, strlen(value));
}

static void json_place(struct out *o, const struct advise_print *p, const struct advise_place *at)
{
	const char *s = at->stack.s;
	size_t left = at->stack.len;

	out_str(o, "{\"name\":");
	string(o, at->name.s, at->name.len);
	out_fmt(o,
		",\"count\":%llu,\"cost_ns\":%llu,\"bytes\":%llu,\"longest_at_ns\":%lld,\"longest_"
		"ns\":%llu,"
		"\"stack\":[",
		(unsigned long long)at->n, (unsigned long long)at->cost_ns,
		(unsigned long long)at->bytes, (long long)(at->at_ns - p->start_ns),
		(unsigned long long)at->took_ns);
	while (left) {
		const char *end = memchr(s, '\n', left);
		size_t n = end ? (size_t)(end - s) : left;

		string(o, s, n);
		left -= n + (end != NULL);
		s += n + (end != NULL);
		if (left)
			out_char(o, ',');
	}
	out_str(o, "]}");
}

static void json_finding(struct out *o, const struct advise_print *p,
			 const struct advise_finding *f)
{
	out_str(o, "{\"rule\":");
	string(o, f->rule->name, strlen(f->rule->name));
	member(o, "title", f->rule->title);
	member(o, "severity", advise_severity_name(f->severity));
	out_fmt(o, ",\"pid\":%u,\"comm\":", f->pid);
	string(o, f->comm.s, f->comm.len);
	out_fmt(o, ",\"count\":%llu,\"cost_ns\":%llu,\"share\":%.6f,\"bytes\":%llu,\"evidence\":",
		(unsigned long long)f->n, (unsigned long long)f->cost_ns, f->share,
		(unsigned long long)f->bytes);
	string(o, f->evidence.s, f->evidence.len);
	member(o, "cost", f->rule->cost);
	member(o, "todo", f->rule->todo);
	out_str(o, ",\"places\":[");
	for (unsigned int k = 0; k < f->nplaces; k++) {
		out_str(o, k ? "," : "");
		json_place(o, p, &f->places[k]);
	}
	out_str(o, "]}");
}

/* Calls that were counted in windows and not looked at one by one; nothing where there were none. */
static void json_muted(struct out *o, const struct advise_print *p)
{
	const struct ct_estimated *e = p->muted_calls ? &p->muted_calls->unseen : NULL;
	uint64_t calls = e ? muted_calls(p->muted_calls) : 0;

	if (p->muted && p->muted[0]) {
		out_str(o, ",\"muted\":[");
		for (int i = 0; p->muted[i]; i++) {
			out_str(o, i ? "," : "");
			string(o, p->muted[i], strlen(p->muted[i]));
		}
		out_char(o, ']');
	}
	if (!calls && (!e || !muted_error(e)))
		return;
	out_fmt(o, ",\"muted_calls\":%llu,\"estimated\":%llu,\"error\":%llu",
		(unsigned long long)calls, (unsigned long long)muted_unseen(e),
		(unsigned long long)muted_error(e));
	if (muted_is_floor(calls, e))
		out_fmt(o, ",\"at_least\":%llu", (unsigned long long)muted_at_least(calls, e));
}

void advise_print_json(struct out *o, const struct advise_print *p)
{
	char unprobed[JSON_UNPROBED_MAX] = "";
	struct advise_totals t;
	bool any = false;

	advise_totals(p->advice, &t);
	if (p->losses)
		json_unprobed(unprobed, sizeof(unprobed), &p->losses->unprobed);
	out_str(o, "{\"type\":\"advice\"");
	member(o, "version", p->version ? p->version : "");
	member(o, "title", p->title ? p->title : "");
	out_fmt(o,
		",\"calls\":%llu,\"work\":%llu,\"processes\":%u,\"span_ns\":%llu,\"lost\":%llu,"
		"\"not_looked_at\":%llu%s,"
		"\"findings\":[",
		(unsigned long long)t.calls, (unsigned long long)t.work, t.processes,
		(unsigned long long)t.span_ns,
		(unsigned long long)(p->losses ? losses_total(p->losses) : 0),
		(unsigned long long)t.no_room, unprobed);
	for (size_t i = 0; i < p->n; i++) {
		out_str(o, i ? ",\n" : "\n");
		json_finding(o, p, &p->findings[i]);
	}
	out_char(o, ']');
	json_muted(o, p);
	out_str(o, ",\"not_checked\":[");
	for (unsigned int i = 0; advise_rule_at(i); i++) {
		const struct advise_rule *r = advise_rule_at(i);

		if (!advise_wanted(p->advice, r) || advise_checked(p->advice, r))
			continue;
		out_str(o, any ? "," : "");
		string(o, r->name, strlen(r->name));
		any = true;
	}
	out_str(o, "]}\n");
}
