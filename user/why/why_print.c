/* SPDX-License-Identifier: BSD-2-Clause */
/* why_print.c - see why_print.h. Each cause is a finding (user/findings). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "why_print.h"
#include "../event/holes/holes.h"
#include "../findings/findings.h"
#include "../flow/json_text.h"

/* What stands behind a number of samples lies within so many standard deviations. */
#define SURE 2.0

static double of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static uint64_t window(const struct why_part *p)
{
	return p->to_ns - p->from_ns;
}

/* ---- a cause as a finding ---- */

struct found {
	struct finding f;
	char evidence[96], next[96], not_judged[HOLES_TEXT];
};

static const char *next_of(enum why_kind kind)
{
	switch (kind) {
	case WHY_CALL:
	case WHY_DEVICE: return "cudatrace advise --gpu -k -p %u -d 10";
	case WHY_NOT_LAUNCHED:
	case WHY_NOT_TRACED: return "cudatrace why --gpu -p %u -d 30";
	default: return NULL;
	}
}

static void fill_finding(struct found *found, const struct why_print *p,
			 const struct why_part *part, const struct why_cause *c)
{
	const char *next = next_of(c->kind);

	found->f = (struct finding){ .id = why_word(c->kind),
				     .claim = c->text,
				     .pid = c->pid,
				     .process = c->comm,
				     .process_len = strnlen(c->comm, sizeof(c->comm)),
				     .rank = FINDING_UNKNOWN,
				     .device = part->is_device ? (int64_t)part->device
							       : FINDING_UNKNOWN,
				     .line = c->line && *c->line ? c->line : NULL,
				     .share = of(c->ns, window(part)),
				     .confidence = c->sampled_ns	? FINDING_ESTIMATED
						   : why_known(c->kind) ? FINDING_MEASURED
									: FINDING_INFERRED };
	found->f.line_len = found->f.line ? strlen(found->f.line) : 0;
	/* n samples of a share: the square root of n is their deviation */
	found->f.share_error =
		c->samples	? SURE * of(c->sampled_ns, window(part)) / sqrt((double)c->samples)
		: c->sampled_ns ? FINDING_UNKNOWN
				: 0;
	snprintf(found->evidence, sizeof(found->evidence),
		 p->recorded ? "cudatrace export --to perfetto -o FILE.pftrace FILE"
			     : "cudatrace record --host --gpu -o FILE -p %u",
		 c->pid);
	found->f.evidence = found->evidence;
	if (next) {
		snprintf(found->next, sizeof(found->next), next, c->pid);
		found->f.next = found->next;
	}
	if (p->losses && holes_text(p->losses->holes, p->start_ns, "Not seen: ", ".",
				    found->not_judged, sizeof(found->not_judged)))
		found->f.not_judged = found->not_judged;
}

bool why_print_fails(const struct why_print *p, const char *const *conditions)
{
	struct found found;

	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->parts[i].ncauses; k++) {
			fill_finding(&found, p, &p->parts[i], &p->parts[i].causes[k]);
			if (finding_fails(&found.f, conditions))
				return true;
		}
	return false;
}

/* ---- text ---- */

static void plain(struct out *o, const char *s, size_t most)
{
	struct text t = { .s = NULL };

	text_plain(&t, s, most);
	out_mem(o, t.s ? t.s : "", t.len);
	text_free(&t);
}

/* What of its busy time a device spent on something else than to compute. */
static void busy_parts(struct out *o, const struct why_part *p)
{
	double copies = of(p->copies_ns, window(p)), collectives = of(p->collectives_ns, window(p));

	if (copies < 0.0005 && collectives < 0.0005)
		return;
	out_str(o, " (");
	if (copies >= 0.0005)
		out_fmt(o, "%.1f %% copies while nothing computed", copies * 100);
	if (collectives >= 0.0005)
		out_fmt(o, "%s%.1f %% collectives while nothing computed",
			copies >= 0.0005 ? ", " : "", collectives * 100);
	out_char(o, ')');
}

static void head(struct out *o, const struct why_part *p)
{
	double all = (double)window(p);

	out_fmt(o, "%.1f s of ", all / 1e9);
	plain(o, p->comm, sizeof(p->comm));
	out_fmt(o, " %u", p->pid);
	if (!p->is_device)
		out_fmt(o, ", thread %u", p->device);
	if (p->steps.n)
		out_fmt(o, " (%zu %s of %.1f ms)", p->steps.n, p->steps.n == 1 ? "step" : "steps",
			(double)p->steps.median_ns / 1e6);
	if (p->is_device) {
		out_fmt(o, ": GPU %u busy %.1f %%", p->device, of(p->busy_ns, window(p)) * 100);
		busy_parts(o, p);
		out_fmt(o, ", idle %.1f %% in %llu %s", of(p->idle_ns, window(p)) * 100,
			(unsigned long long)p->gaps, p->gaps == 1 ? "gap" : "gaps");
	} else
		out_fmt(o, ": inside launches %.1f %%, between launches %.1f %%",
			of(p->busy_ns, window(p)) * 100, of(p->idle_ns, window(p)) * 100);
	out_fmt(o, "; %.1f %% of %s explained\n",
		p->idle_ns ? of(p->known_ns, p->idle_ns) * 100 : 100.0,
		p->is_device ? "the idle time" : "that time");
}

/* Milliseconds in each step. */
static double a_step(const struct why_part *p, uint64_t ns)
{
	return of(ns, window(p)) * (double)p->steps.mean_ns / 1e6;
}

static void lines(struct out *o, const struct why_print *p, const struct why_part *part)
{
	uint64_t rest = 0;
	size_t more = 0;

	for (size_t i = 0; i < part->ncauses; i++) {
		const struct why_cause *c = &part->causes[i];
		struct found found;

		if (p->top && i >= p->top) {
			rest += c->ns;
			more++;
			continue;
		}
		fill_finding(&found, p, part, c);
		out_fmt(o, " %5.1f %%  ", found.f.share * 100);
		out_str(o, c->text);
		if (c->samples && found.f.share_error >= 0.0005)
			out_fmt(o, "  (+- %.1f)", found.f.share_error * 100);
		if (part->steps.n && a_step(part, c->ns) >= 0.1)
			out_fmt(o, "  %.1f ms a step", a_step(part, c->ns));
		out_char(o, '\n');
	}
	if (more)
		out_fmt(o, " %5.1f %%  %zu other causes (--top 0 shows all)\n",
			of(rest, window(part)) * 100, more);
}

/* The slowest steps beside those of median length. */
static void slow_steps(struct out *o, const struct why_part *p)
{
	for (size_t i = 0; i < p->steps.nslow; i++) {
		const struct why_slow *s = &p->steps.slow[i];

		out_fmt(o, "Step %llu: %.1f ms more than the median", (unsigned long long)s->number,
			(double)s->more_ns / 1e6);
		for (size_t k = 0; k < s->nmore; k++) {
			out_fmt(o, "%s%.1f ", k ? ", " : ", of it ", (double)s->more[k].ns / 1e6);
			out_str(o, s->more[k].text);
		}
		out_str(o, ".\n");
	}
}

/* The causes that a program can do something about. */
static bool helps(enum why_kind k)
{
	return why_known(k) && k != WHY_LATENCY && k != WHY_LATE;
}

/* By how much it would be over earlier at most without a cause: of a device, by what the cause has of the critical
 * path, and never below the time that the busiest stream's work takes. */
static uint64_t bound(const struct why_part *p, const struct why_cause *c)
{
	uint64_t rest = window(p) - p->least_ns;

	return p->is_device && c->kind != WHY_WORK && c->ns > rest ? rest : c->ns;
}

static void help(struct out *o, const struct why_part *p)
{
	const struct why_cause *list = p->is_device ? p->path : p->causes;
	size_t len = p->is_device ? p->npath : p->ncauses;
	int n = 0;

	for (size_t i = 0; i < len && n < 2; i++) {
		const struct why_cause *c = &list[i];

		if (!helps(c->kind) || of(bound(p, c), window(p)) < 0.01)
			continue;
		out_fmt(o, "%s%s (up to -%.1f %%)",
			n ? ", then: " : "What would help most: less of: ", c->text,
			of(bound(p, c), window(p)) * 100);
		n++;
	}
	if (n)
		out_str(o, ".\n");
}

/* What was not looked at, and why. */
static void limits(struct out *o, const struct why_print *p)
{
	char text[HOLES_TEXT];
	struct why_totals t;
	bool device = p->n && p->parts[0].is_device;

	why_totals(p->why, &t);
	if (!p->n)
		out_str(o, "No thread made two launches: there is no time between launches to "
			   "explain.\n");
	else if (!device)
		out_str(o, "What the devices did is not known (--gpu): this is the time between "
			   "launches and inside waits, not the time in which a GPU was idle.\n");
	if (!t.host)
		out_str(o, p->recorded ? "What threads waited for is not in the recording: record "
					 "with --host.\n"
				       : "What threads waited for was not seen.\n");
	if (t.threads_left_out)
		out_fmt(o, "%llu other threads launch less, and are left out.\n",
			(unsigned long long)t.threads_left_out);
	if (t.no_room)
		out_fmt(o, "%llu records found no room: their time is among what is not known.\n",
			(unsigned long long)t.no_room);
	if (t.no_time)
		out_fmt(o, "%llu pieces of device work have no known time: gaps may be shorter.\n",
			(unsigned long long)t.no_time);
	if (p->losses &&
	    holes_text(p->losses->holes, p->start_ns, "Not seen: ", ".\n", text, sizeof(text)))
		out_str(o, text);
}

void why_print_text(struct out *o, const struct why_print *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (i)
			out_char(o, '\n');
		head(o, &p->parts[i]);
		lines(o, p, &p->parts[i]);
		slow_steps(o, &p->parts[i]);
		help(o, &p->parts[i]);
	}
	limits(o, p);
}

/* ---- folded ---- */

/* Text as frames: each thread of a chain is one. A text has no frame's end of its own. */
static void frames(struct out *o, const char *s)
{
	static const char next[] = " <- ";

	for (; *s; s++)
		if (!strncmp(s, next, sizeof(next) - 1)) {
			out_char(o, ';');
			s += sizeof(next) - 2;
		} else
			out_char(o, *s == ';' ? ',' : *s);
}

void why_print_folded(struct out *o, const struct why_print *p)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->parts[i].ncauses; k++) {
			const struct why_part *part = &p->parts[i];
			struct text comm = { .s = NULL };

			text_plain(&comm, part->comm, sizeof(part->comm));
			text_mem(&comm, "", 1);
			frames(o, comm.s && !comm.bad ? comm.s : "?");
			text_free(&comm);
			out_fmt(o, " %u;%s %u;", part->pid, part->is_device ? "GPU" : "thread",
				part->device);
			frames(o, part->causes[k].text);
			out_fmt(o, " %llu\n", (unsigned long long)part->causes[k].ns);
		}
}

/* ---- JSON ---- */

static void json_steps(struct json *j, const struct why_steps *s)
{
	json_open_object(j, "steps");
	json_put_u64(j, "count", s->n);
	json_put_str(j, "found_by", s->how);
	json_put_u64(j, "median_ns", s->median_ns);
	json_put_u64(j, "mean_ns", s->mean_ns);
	json_open_array(j, "slowest");
	for (size_t i = 0; i < s->nslow; i++) {
		const struct why_slow *slow = &s->slow[i];

		json_open_object(j, NULL);
		json_put_u64(j, "number", slow->number);
		json_put_u64(j, "start_ns", slow->start_ns);
		json_put_u64(j, "ns", slow->ns);
		json_put_u64(j, "more_ns", slow->more_ns);
		json_open_array(j, "causes");
		for (size_t k = 0; k < slow->nmore; k++) {
			json_open_object(j, NULL);
			json_put_str(j, "id", why_word(slow->more[k].kind));
			json_put_str(j, "claim", slow->more[k].text);
			json_put_u64(j, "more_ns", slow->more[k].ns);
			json_end(j);
		}
		json_end(j);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void json_path(struct json *j, const struct why_part *p)
{
	json_open_array(j, "critical_path");
	for (size_t i = 0; i < p->npath; i++) {
		json_open_object(j, NULL);
		json_put_str(j, "id", why_word(p->path[i].kind));
		json_put_str(j, "claim", p->path[i].text);
		json_put_u64(j, "ns", p->path[i].ns);
		json_put_u64(j, "bound_ns", bound(p, &p->path[i]));
		json_end(j);
	}
	json_end(j);
}

static void json_part(struct json *j, const struct why_print *p, const struct why_part *part)
{
	json_open_object(j, NULL);
	if (part->is_device)
		json_put_u64(j, "device", part->device);
	else
		json_put_u64(j, "thread", part->device);
	json_put_u64(j, "pid", part->pid);
	json_put_str(j, "process", part->comm);
	json_put_u64(j, "window_ns", window(part));
	json_put_u64(j, "busy_ns", part->busy_ns);
	json_put_u64(j, "idle_ns", part->idle_ns);
	json_put_u64(j, "gaps", part->gaps);
	json_put_u64(j, "explained_ns", part->known_ns);
	if (part->is_device) {
		json_put_u64(j, "copies_alone_ns", part->copies_ns);
		json_put_u64(j, "collectives_alone_ns", part->collectives_ns);
		json_put_u64(j, "busiest_stream_ns", part->least_ns);
	}
	if (part->steps.n)
		json_steps(j, &part->steps);
	json_open_array(j, "findings");
	for (size_t i = 0; i < part->ncauses; i++) {
		const struct why_cause *c = &part->causes[i];
		struct found found;

		fill_finding(&found, p, part, c);
		json_line(j, " ");
		json_open_object(j, NULL);
		finding_json(j, &found.f);
		json_put_u64(j, "ns", c->ns);
		json_put_u64(j, "count", c->n);
		json_put_u64(j, "samples", c->samples);
		json_end(j);
	}
	json_end(j);
	if (part->is_device)
		json_path(j, part);
	json_end(j);
}

void why_print_json(struct out *o, const struct why_print *p)
{
	struct json j = json_to(o);
	struct why_totals t;

	why_totals(p->why, &t);
	json_open_object(&j, NULL);
	json_put_str(&j, "type", "why");
	json_put_str(&j, "schema", "cudatrace-why");
	json_put_u64(&j, "version", 1);
	json_put_u64(&j, "findings_version", FINDINGS_VERSION);
	json_put_str(&j, "cudatrace", p->version ? p->version : "");
	json_put_str(&j, "title", p->title ? p->title : "");
	json_put_u64(&j, "segments", t.segments);
	json_put_u64(&j, "samples", t.samples);
	json_put_u64(&j, "work", t.work);
	json_put_u64(&j, "threads", t.threads);
	json_put_u64(&j, "not_looked_at", t.no_room + t.no_time);
	json_put_u64(&j, "threads_left_out", t.threads_left_out);
	if (p->losses)
		json_put_holes(&j, p->losses->holes);
	json_open_array(&j, "parts");
	for (size_t i = 0; i < p->n; i++) {
		json_line(&j, "");
		json_part(&j, p, &p->parts[i]);
	}
	json_end(&j);
	json_end(&j);
	out_char(o, '\n');
}
