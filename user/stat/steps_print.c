/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps_print.c - see steps_print.h.
 *
 *   Steps of python3 (31583): 20, by ranges ProfilerStep#N; the slowest first
 *         Step     Length    Compute    Exposed     Copies       Idle   Kernels
 *            7   32.10 ms   14.00 ms       0 ns    1.10 ms   17.00 ms       120
 */
#include <stdlib.h>

#include "../util/io/json.h"
#include "../util/text.h"
#include "../util/units.h"
#include "steps_print.h"

#define SLOWEST 10
#define SLOW 1.25 /* times the median: what was different is said then */

static const char *const classes[] = { [OVERLAP_COMPUTE] = "compute",
				       [OVERLAP_COLLECTIVE] = "exposed communication",
				       [OVERLAP_COPY] = "copies",
				       [OVERLAP_IDLE] = "idle" };

static const char *duration(char text[32], uint64_t ns)
{
	return print_duration(text, 32, (double)ns);
}

static void plain(struct out *o, const char *s)
{
	struct text t = { 0 };

	text_plain(&t, s, 256);
	out_mem(o, t.s, t.len);
	text_free(&t);
}

static void columns(struct out *o, const struct steps_of *p, uint64_t ns, const struct step *sum)
{
	double use = steps_use(p, sum->least_ns, ns);
	char text[32];

	out_fmt(o, " %10s", duration(text, ns));
	for (int i = 0; i < OVERLAP_END && p->device; i++)
		out_fmt(o, " %10s", duration(text, sum->ns[i]));
	if (p->device)
		out_fmt(o, " %9llu", (unsigned long long)sum->kernels);
	if (p->products)
		out_fmt(o, " %10.4g", sum->flop / 1e12);
	if (p->products && use >= 0)
		out_fmt(o, " %6.1f", 100 * use);
	else if (p->products)
		out_fmt(o, " %6s", "-");
	out_char(o, '\n');
}

/* What the slowest step had more of than the others. */
static void different(const struct steps *s, struct out *o, const struct steps_of *p, size_t at)
{
	const struct step *one = &p->list[at];
	uint64_t ns = one->end_ns - one->start_ns;
	struct steps_more more;
	char text[32];

	if (p->n < 3 || (double)ns < SLOW * (double)p->median_ns || steps_compare(s, p, at, &more))
		return;
	out_fmt(o, " Step %llu took %.2f times as long as the median",
		(unsigned long long)one->number, (double)ns / (double)p->median_ns);
	if (more.class_ns)
		out_fmt(o, "; %s more of it %s", duration(text, more.class_ns),
			more.class == OVERLAP_IDLE ? "idle" : "in ");
	if (more.class_ns && more.class != OVERLAP_IDLE)
		out_str(o, classes[more.class]);
	if (more.op) {
		out_fmt(o, "; %s more in the operator ", duration(text, more.op_ns));
		plain(o, more.op);
	}
	if (more.work) {
		out_fmt(o, "; %s more on the device in ", duration(text, more.work_ns));
		plain(o, more.work);
	}
	out_str(o, " than in the other steps on average.\n");
}

static void reported_by(struct out *o, const struct steps_of *p)
{
	switch (p->how) {
	case STEPS_RANGE: out_str(o, "by ranges of this name"); break;
	case STEPS_PROFILER: out_str(o, "by ranges ProfilerStep#N"); break;
	case STEPS_OPTIMIZER: out_str(o, "from the end of an optimizer's step to the next"); break;
	case STEPS_OPERATORS:
	case STEPS_LAUNCHES:
		out_fmt(o, "by the period of %llu %s, confidence %.2f",
			(unsigned long long)p->period,
			p->how == STEPS_LAUNCHES ? "launches" : "operators", p->confidence);
		break;
	case STEPS_NONE:
	case STEPS_HOW_END: break;
	}
}

static void head(struct out *o, const struct steps_of *p)
{
	out_str(o, "Steps of ");
	plain(o, p->comm);
	out_fmt(o, " (%u", p->shown_pid);
	if (p->rank != CT_UNKNOWN)
		out_fmt(o, ", rank %u", p->rank);
	out_str(o, "): ");
}

static void text_proc(const struct steps *s, struct out *o, const struct steps_of *p, uint64_t most)
{
	struct step sum = { 0 };
	uint64_t all = 0;
	size_t *order, n;

	head(o, p);
	if (!p->n && p->unseen + p->entered) {
		out_fmt(o,
			"%zu, and in each of them something was not seen%s: none can be judged\n\n",
			p->unseen + p->entered,
			p->entered ? ", or the agent of --gpu came in" : "");
		return;
	}
	if (!p->n) {
		out_str(o, "none found");
		if (!p->how && p->beats)
			out_fmt(o, "; the best period has a confidence of %.2f", p->confidence);
		out_str(o, "\n\n");
		return;
	}
	order = steps_slowest(p);
	if (!order)
		return;
	out_fmt(o, "%zu, ", p->n);
	reported_by(o, p);
	out_fmt(o, "; the slowest first\n %10s %10s", "Step", "Length");
	if (p->device)
		out_fmt(o, " %10s %10s %10s %10s %9s", "Compute", "Exposed", "Copies", "Idle",
			"Kernels");
	if (p->products)
		out_fmt(o, " %10s %6s", "TFLOP", "MFU%");
	out_char(o, '\n');
	n = most ? most : SLOWEST;
	n = n < p->n ? n : p->n;
	for (size_t i = 0; i < n; i++) {
		const struct step *one = &p->list[order[i]];

		out_fmt(o, " %10llu", (unsigned long long)one->number);
		columns(o, p, one->end_ns - one->start_ns, one);
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct step *one = &p->list[i];

		all += one->end_ns - one->start_ns;
		sum.kernels += one->kernels;
		sum.flop += one->flop;
		sum.least_ns = one->least_ns < 0 || sum.least_ns < 0 ? -1
								     : sum.least_ns + one->least_ns;
		for (int c = 0; c < OVERLAP_END; c++)
			sum.ns[c] += one->ns[c];
	}
	if (n < p->n)
		out_fmt(o, " and %zu more\n", p->n - n);
	if (p->unseen)
		out_fmt(o, " %zu further steps are not judged, because something was not seen in them\n",
			p->unseen);
	if (p->entered)
		out_fmt(o,
			" %zu further step%s not judged, because the agent of --gpu came into the "
			"program in %s\n",
			p->entered, p->entered == 1 ? " is" : "s are",
			p->entered == 1 ? "it" : "them");
	out_fmt(o, " %10s", "all");
	columns(o, p, all, &sum);
	different(s, o, p, order[0]);
	out_char(o, '\n');
	free(order);
}

void steps_text(const struct steps *s, struct out *o, uint64_t most)
{
	const struct steps_of *p;
	bool device = false;
	size_t n;

	p = steps_list(s, &n);
	for (size_t i = 0; i < n; i++) {
		text_proc(s, o, &p[i], most);
		device |= p[i].device;
	}
	if (!n)
		out_str(o, "No steps were found.\n");
	if (!device)
		out_str(o, "There is no device work in this: --gpu records it.\n");
}

static void json_step(struct json *j, const struct steps_of *p, const struct step *one)
{
	json_line(j, "  ");
	json_open_object(j, NULL);
	json_put_u64(j, "step", one->number);
	json_put_u64(j, "begin_ns", one->start_ns - p->list[0].start_ns);
	json_put_u64(j, "duration_ns", one->end_ns - one->start_ns);
	if (p->device) {
		json_put_u64(j, "compute_ns", one->ns[OVERLAP_COMPUTE]);
		json_put_u64(j, "exposed_ns", one->ns[OVERLAP_COLLECTIVE]);
		json_put_u64(j, "copy_ns", one->ns[OVERLAP_COPY]);
		json_put_u64(j, "idle_ns", one->ns[OVERLAP_IDLE]);
		json_put_u64(j, "kernels", one->kernels);
	}
	if (p->products) {
		double use = steps_use(p, one->least_ns, one->end_ns - one->start_ns);

		json_put_real(j, "flop", 0, one->flop);
		if (use >= 0)
			json_put_real(j, "mfu", 4, use);
	}
	json_end(j);
}

void steps_json(const struct steps *s, struct out *o)
{
	const struct steps_of *p;
	struct json j = json_to(o);
	size_t n;

	p = steps_list(s, &n);
	json_open_object(&j, NULL);
	json_put_str(&j, "by", "step");
	json_open_array(&j, "processes");
	for (size_t i = 0; i < n; i++) {
		json_line(&j, " ");
		json_open_object(&j, NULL);
		json_put_u64(&j, "pid", p[i].shown_pid);
		json_put_str(&j, "process", p[i].comm);
		if (p[i].rank != CT_UNKNOWN)
			json_put_u64(&j, "rank", p[i].rank);
		json_put_str(&j, "found_by", steps_how_word(p[i].how));
		if (p[i].beats && p[i].how != STEPS_RANGE && p[i].how != STEPS_PROFILER &&
		    p[i].how != STEPS_OPTIMIZER)
			json_put_real(&j, "confidence", 4, p[i].confidence);
		if (p[i].period)
			json_put_u64(&j, "period", p[i].period);
		json_put_u64(&j, "median_ns", p[i].median_ns);
		if (p[i].unseen + p[i].entered)
			json_put_u64(&j, "steps_not_judged", p[i].unseen + p[i].entered);
		json_open_array(&j, "steps");
		for (size_t k = 0; k < p[i].n; k++)
			json_step(&j, &p[i], &p[i].list[k]);
		json_end(&j);
		json_end(&j);
	}
	json_end(&j);
	if (steps_no_room(s))
		json_put_u64(&j, "no_room", steps_no_room(s));
	json_end(&j);
	out_char(o, '\n');
}
