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

#include "../event/holes/holes.h"
#include "../findings/findings.h"
#include "../flow/json_text.h"
#include "advise_print.h"
#include "alike.h"
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
	if (f->one.cost_ns)
		snprintf(buf, size, "%s, %.1f %%", rule_time((double)f->one.cost_ns),
			 f->one.share * 100);
	else if (f->one.bytes)
		snprintf(buf, size, "%s", rule_bytes((double)f->one.bytes));
	else
		snprintf(buf, size, "no known time");
}

/* ---- the form that all findings have (user/findings) ---- */

struct in_form {
	struct finding f;
	char evidence[192], next[96], not_judged[HOLES_TEXT];
};

/* The function of the most costly place, if it is one that -e takes. */
static const char *function_of(const struct advise_finding *f)
{
	for (unsigned int k = 0; k < f->nplaces; k++)
		for (int i = 0; i < api_nfuncs; i++)
			if (strlen(api_funcs[i].name) == f->places[k].name.len &&
			    !memcmp(api_funcs[i].name, f->places[k].name.s, f->places[k].name.len))
				return api_funcs[i].name;
	return NULL;
}

static void in_form(struct in_form *form, const struct advise_print *p,
		    const struct advise_finding *f)
{
	const char *func = function_of(f);
	const struct text *stack = f->nplaces ? &f->places[0].stack : NULL;
	const char *line = stack && stack->len ? memchr(stack->s, '\n', stack->len) : NULL;
	struct advise_totals t;

	advise_totals(p->advice, &t);
	form->f = (struct finding){ .id = f->rule->name,
				    .claim = f->rule->title,
				    .pid = f->one.pid,
				    .process = f->comm.s ? f->comm.s : "",
				    .process_len = f->comm.len,
				    .rank = f->one.rank == CT_UNKNOWN ? FINDING_UNKNOWN
								      : (int64_t)f->one.rank,
				    .device = FINDING_UNKNOWN,
				    .share = f->one.share,
				    .share_error = FINDING_UNKNOWN,
				    .confidence = p->losses && losses_total(p->losses)
							  ? FINDING_ESTIMATED
							  : FINDING_MEASURED };
	if (stack && stack->len) {
		form->f.line = stack->s;
		form->f.line_len = line ? (size_t)(line - stack->s) : stack->len;
	}
	snprintf(form->evidence, sizeof(form->evidence), "cudatrace %s-p %u%s%s%s",
		 p->recorded ? "replay " : "", f->one.pid, func ? " -e " : "", func ? func : "",
		 p->recorded ? " FILE" : "");
	form->f.evidence = form->evidence;
	if (!t.stacks) {
		snprintf(form->next, sizeof(form->next), "cudatrace advise -k -p %u -d 10",
			 f->one.pid);
		form->f.next = form->next;
	}
	if (p->losses && holes_text(p->losses->holes, p->start_ns, "Not seen: ", ".",
				    form->not_judged, sizeof(form->not_judged)))
		form->f.not_judged = form->not_judged;
}

bool advise_finding_fails(const struct advise_print *p, size_t i, const char *const *conditions)
{
	struct in_form form;

	in_form(&form, p, &p->findings[i]);
	return finding_fails(&form.f, conditions);
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
		"%s.\n",
		p->n, p->n == 1 ? "finding" : "findings", (unsigned long long)t.calls,
		t.calls == 1 ? "call" : "calls", (unsigned long long)t.work,
		t.work == 1 ? "record" : "records", t.processes,
		t.processes == 1 ? "process" : "processes", rule_time((double)t.span_ns), t.rules,
		t.rules == 1 ? "rule" : "rules");
}

/* The calls that were counted and not recorded, "" when there were none. */
static const char *sampled(const struct advise_print *p, char *buf, size_t size)
{
	buf[0] = '\0';
	return p->muted_calls ? muted_clause(buf, size, p->muted_calls, NULL) : buf;
}

/* What was not seen, and that such stretches of time are not judged. */
static void unseen(struct out *o, const struct advise_print *p)
{
	char text[HOLES_TEXT];

	if (!holes_text(p->losses->holes, p->start_ns, "Not seen: ", ".\n", text, sizeof(text)))
		return;
	out_str(o, text);
	out_str(o, "Gaps and steps with such a stretch of time are not judged.\n");
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
	if (p->n && !t.stacks)
		out_str(o,
			"No line of code is named, because no call has a stack: record with -k, or "
			"with --stack=python, which has only Python's lines.\n");
	if (lost)
		out_fmt(o, "%llu record%s lost: there may be more than is said here.\n",
			(unsigned long long)lost, lost == 1 ? " was" : "s were");
	if (p->losses)
		unseen(o, p);
	for (int i = 0; p->muted && p->muted[i]; i++)
		out_fmt(o, "%s%s%s",
			i ? ", " : "Of these not all calls were seen, since they were very many: ",
			p->muted[i], p->muted[i + 1] ? "" : ".\n");
	if (*sampled(p, clause, sizeof(clause)))
		out_fmt(o,
			"Counted in short windows and not looked at one by one: %s. What is said "
			"of queries rests on the others.\n",
			clause);
	if (t.odd_sizes)
		out_fmt(o,
			t.odd_sizes == 1
				? "%llu call has a size that cannot be, of 256 TiB or more: it is "
				  "in no sum.\n"
				: "%llu calls have sizes that cannot be, of 256 TiB or more: "
				  "they are in no sum.\n",
			(unsigned long long)t.odd_sizes);
	if (t.no_room)
		out_fmt(o,
			"%llu event%s of more processes, threads or devices than are looked at.\n",
			(unsigned long long)t.no_room, t.no_room == 1 ? " was" : "s were");
	if (t.steps_no_room)
		out_fmt(o,
			"Steps were looked for until there was no room for more. The rules about "
			"steps did not look at %llu operators, launches and pieces of device "
			"work.\n",
			(unsigned long long)t.steps_no_room);
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
	if (at->took_ns)
		out_fmt(o, "; the longest at %.6f s: %s", after(p, at->at_ns),
			rule_time((double)at->took_ns));
	else
		out_fmt(o, "; the first at %.6f s", after(p, at->at_ns));
}

static void rank(struct out *o, const struct advise_finding *f)
{
	if (f->one.rank != CT_UNKNOWN)
		out_fmt(o, " (rank %u)", f->one.rank);
}

static void text_finding(struct out *o, const struct advise_print *p, size_t i)
{
	const struct advise_finding *f = &p->findings[i];
	struct in_form form;
	struct text others = { .s = NULL };
	char buf[96];

	cost(buf, sizeof(buf), f);
	out_fmt(o, "\n%zu. %-58s %-8s %s\n   %s, ", i + 1, f->rule->title,
		advise_severity_name(f->severity), buf, f->rule->name);
	out_mem(o, f->comm.s ? f->comm.s : "", f->comm.len);
	out_fmt(o, " %u", f->one.pid);
	rank(o, f);
	out_char(o, '\n');
	wrap(o, "   ", f->evidence.s ? f->evidence.s : "", f->evidence.len);
	alike_say(f, &others);
	if (others.len)
		wrap(o, "   ", others.s, others.len);
	text_free(&others);
	wrap_str(o, "   ", "Cost: ", f->rule->cost);
	wrap_str(o, "   ", "Do: ", f->rule->todo);
	for (unsigned int k = 0; k < f->nplaces; k++) {
		out_str(o, "   - ");
		place_line(o, p, &f->places[k]);
		out_char(o, '\n');
		stack_lines(o, "       ", &f->places[k].stack);
	}
	in_form(&form, p, f);
	finding_text(o, "   ", &form.f);
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
	struct text others = { .s = NULL };
	char buf[96];

	cost(buf, sizeof(buf), f);
	out_fmt(o, "\n## %zu. %s\n\n**%s**, %s, `%s`, ", i + 1, f->rule->title,
		advise_severity_name(f->severity), buf, f->rule->name);
	marked(o, f->comm.s ? f->comm.s : "", f->comm.len);
	out_fmt(o, " %u", f->one.pid);
	rank(o, f);
	out_str(o, "\n\n");
	marked(o, f->evidence.s ? f->evidence.s : "", f->evidence.len);
	alike_say(f, &others);
	out_str(o, others.len ? "\n\n" : "");
	marked(o, others.s, others.len);
	text_free(&others);
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
			at->took_ns ? rule_time((double)at->took_ns) : "the first",
			after(p, at->at_ns));
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

static void json_place(struct json *j, const struct advise_print *p, const struct advise_place *at)
{
	const char *s = at->stack.s;
	size_t left = at->stack.len;

	json_open_object(j, NULL);
	json_put_bytes(j, "name", at->name.s, at->name.len);
	json_put_u64(j, "count", at->n);
	json_put_u64(j, "cost_ns", at->cost_ns);
	json_put_u64(j, "bytes", at->bytes);
	json_put_i64(j, "longest_at_ns", (int64_t)(at->at_ns - p->start_ns));
	json_put_u64(j, "longest_ns", at->took_ns);
	json_open_array(j, "stack");
	while (left) {
		const char *end = memchr(s, '\n', left);
		size_t n = end ? (size_t)(end - s) : left;

		json_put_bytes(j, NULL, s, n);
		left -= n + (end != NULL);
		s += n + (end != NULL);
	}
	json_end(j);
	json_end(j);
}

static void json_one(struct json *j, const struct advise_one *one, bool has_it)
{
	json_open_object(j, NULL);
	json_put_u64(j, "pid", one->pid);
	if (one->rank != CT_UNKNOWN)
		json_put_u64(j, "rank", one->rank);
	if (has_it) {
		json_put_u64(j, "count", one->n);
		json_put_u64(j, "cost_ns", one->cost_ns);
		json_put_real(j, "share", 6, one->share);
		json_put_u64(j, "bytes", one->bytes);
		json_put_bool(j, "stands_out", one->stands_out);
	}
	json_end(j);
}

/* The other processes of the program; nothing where there are none. */
static void json_others(struct json *j, const struct advise_finding *f)
{
	if (f->nall) {
		json_open_array(j, "processes");
		for (size_t i = 0; i < f->nall; i++)
			json_one(j, &f->all[i], true);
		json_end(j);
	}
	if (f->nwithout) {
		json_open_array(j, "without");
		for (size_t i = 0; i < f->nwithout; i++)
			json_one(j, &f->without[i], false);
		json_end(j);
	}
}

static void json_finding(struct json *j, const struct advise_print *p,
			 const struct advise_finding *f)
{
	struct in_form form;

	in_form(&form, p, f);
	json_open_object(j, NULL);
	json_put_str(j, "rule", f->rule->name);
	json_put_str(j, "title", f->rule->title);
	json_put_str(j, "severity", advise_severity_name(f->severity));
	json_put_u64(j, "pid", f->one.pid);
	json_put_bytes(j, "process", f->comm.s, f->comm.len);
	if (f->one.rank != CT_UNKNOWN)
		json_put_u64(j, "rank", f->one.rank);
	json_put_u64(j, "count", f->one.n);
	json_put_u64(j, "cost_ns", f->one.cost_ns);
	json_put_real(j, "share", 6, f->one.share);
	json_put_u64(j, "bytes", f->one.bytes);
	json_put_bytes(j, "evidence", f->evidence.s, f->evidence.len);
	json_put_str(j, "cost", f->rule->cost);
	json_put_str(j, "todo", f->rule->todo);
	json_others(j, f);
	json_open_array(j, "places");
	for (unsigned int k = 0; k < f->nplaces; k++)
		json_place(j, p, &f->places[k]);
	json_end(j);
	json_open_object(j, "finding");
	finding_json(j, &form.f);
	json_end(j);
	json_end(j);
}

/* Calls that were counted in windows and not looked at one by one; nothing where there were none. */
static void json_muted(struct json *j, const struct advise_print *p)
{
	const struct ct_estimated *e = p->muted_calls ? &p->muted_calls->unseen : NULL;
	uint64_t calls = e ? muted_calls(p->muted_calls) : 0;

	if (p->muted && p->muted[0]) {
		json_open_array(j, "muted");
		for (int i = 0; p->muted[i]; i++)
			json_put_str(j, NULL, p->muted[i]);
		json_end(j);
	}
	if (!calls && (!e || !muted_error(e)))
		return;
	json_put_u64(j, "muted_calls", calls);
	json_put_u64(j, "estimated", muted_unseen(e));
	json_put_u64(j, "error", muted_error(e));
	if (muted_is_floor(calls, e))
		json_put_u64(j, "at_least", muted_at_least(calls, e));
}

void advise_print_json(struct out *o, const struct advise_print *p)
{
	struct json j = json_to(o);
	struct advise_totals t;

	advise_totals(p->advice, &t);
	json_open_object(&j, NULL);
	json_put_str(&j, "type", "advice");
	json_put_str(&j, "schema", "cudatrace-advice");
	json_put_u64(&j, "version", 2);
	json_put_str(&j, "cudatrace", p->version ? p->version : "");
	json_put_str(&j, "title", p->title ? p->title : "");
	json_put_u64(&j, "calls", t.calls);
	json_put_u64(&j, "work", t.work);
	json_put_u64(&j, "processes", t.processes);
	json_put_u64(&j, "span_ns", t.span_ns);
	if (t.odd_sizes)
		json_put_u64(&j, "impossible_sizes", t.odd_sizes);
	json_put_u64(&j, "lost", p->losses ? losses_total(p->losses) : 0);
	json_put_u64(&j, "not_looked_at", t.no_room);
	json_put_u64(&j, "steps_not_looked_at", t.steps_no_room);
	if (p->losses)
		json_put_holes(&j, p->losses->holes);
	json_open_array(&j, "findings");
	for (size_t i = 0; i < p->n; i++) {
		json_line(&j, "");
		json_finding(&j, p, &p->findings[i]);
	}
	json_end(&j);
	json_muted(&j, p);
	json_open_array(&j, "not_checked");
	for (unsigned int i = 0; advise_rule_at(i); i++) {
		const struct advise_rule *r = advise_rule_at(i);

		if (advise_wanted(p->advice, r) && !advise_checked(p->advice, r))
			json_put_str(&j, NULL, r->name);
	}
	json_end(&j);
	json_end(&j);
	out_char(o, '\n');
}
