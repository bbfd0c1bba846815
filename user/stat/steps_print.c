/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps_print.c - see steps_print.h.
 *
 *   Steps of python3 (31583): 20, by ranges ProfilerStep#N; the slowest first
 *         Step     Length    Compute    Exposed     Copies       Idle   Kernels
 *            7   32.10 ms   14.00 ms       0 ns    1.10 ms   17.00 ms       120
 */
#include <stdlib.h>

#include "../render/table.h"
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

/* What the steps of a process have. */
#define DEVICE 1u
#define PRODUCTS 2u

/* The sum of all steps is a row, too. */
#define ALL_STEPS UINT64_MAX

#define COLUMN(name, value)                                \
	static struct cell name(const struct table_at *at) \
	{                                                  \
		const struct step *one = at->row;          \
		const struct steps_of *p = at->ctx;        \
                                                           \
		(void)p;                                   \
		return value;                              \
	}

static struct cell use_of(const struct steps_of *p, const struct step *one, double times)
{
	double use = steps_use(p, one->least_ns, one->end_ns - one->start_ns);

	return use >= 0 ? cell_real(times * use) : cell_none();
}

COLUMN(step_number,
       one->number == ALL_STEPS ? cell_bytes("all", 3, true) : cell_number(one->number))
COLUMN(step_begin, cell_number(one->start_ns - p->list[0].start_ns))
COLUMN(step_length, cell_number(one->end_ns - one->start_ns))
COLUMN(step_teraflop, cell_real(one->flop / 1e12))
COLUMN(step_use_percent, use_of(p, one, 100))
COLUMN(step_use, use_of(p, one, 1))

/* clang-format off */
static const struct table_column columns[] = {
	{ .key = "step", .head = "Step", .text = 1, .width = 10, .get = step_number },
	{ .key = "begin_ns", .get = step_begin },
	{ .key = "duration_ns", .head = "Length", .text = 2, .width = 10, .unit = TABLE_NS, .get = step_length },
	{ .key = "compute_ns", .head = "Compute", .text = 3, .width = 10, .unit = TABLE_NS, .needs = DEVICE, TABLE_AT(struct step, ns[OVERLAP_COMPUTE]) },
	{ .key = "exposed_ns", .head = "Exposed", .text = 4, .width = 10, .unit = TABLE_NS, .needs = DEVICE, TABLE_AT(struct step, ns[OVERLAP_COLLECTIVE]) },
	{ .key = "copy_ns", .head = "Copies", .text = 5, .width = 10, .unit = TABLE_NS, .needs = DEVICE, TABLE_AT(struct step, ns[OVERLAP_COPY]) },
	{ .key = "idle_ns", .head = "Idle", .text = 6, .width = 10, .unit = TABLE_NS, .needs = DEVICE, TABLE_AT(struct step, ns[OVERLAP_IDLE]) },
	{ .key = "kernels", .head = "Kernels", .text = 7, .width = 9, .needs = DEVICE, TABLE_AT(struct step, kernels) },
	{ .head = "TFLOP", .text = 8, .width = 10, .unit = TABLE_DIGITS, .digits = 4, .needs = PRODUCTS, .get = step_teraflop },
	{ .key = "flop", .needs = PRODUCTS, TABLE_AT(struct step, flop) },
	{ .head = "MFU%", .text = 9, .width = 6, .unit = TABLE_FIXED, .digits = 1, .needs = PRODUCTS, .get = step_use_percent },
	{ .key = "mfu", .json_digits = 4, .needs = PRODUCTS, .get = step_use },
};
/* clang-format on */

static struct table table_of(const struct steps_of *p)
{
	return (struct table)TABLE_OF(columns,
				      (p->device ? DEVICE : 0) | (p->products ? PRODUCTS : 0), p);
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

static void steps_head(struct out *o, const struct steps_of *p)
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
	struct step sum = { .number = ALL_STEPS };
	const struct table t = table_of(p);
	size_t *order, n;

	steps_head(o, p);
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
	out_str(o, "; the slowest first\n");
	table_text_heads(&t, o);
	n = most ? most : SLOWEST;
	n = n < p->n ? n : p->n;
	for (size_t i = 0; i < n; i++)
		table_text_row(&t, o, &p->list[order[i]]);
	for (size_t i = 0; i < p->n; i++) {
		const struct step *one = &p->list[i];

		sum.end_ns += one->end_ns - one->start_ns;
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
	table_text_row(&t, o, &sum);
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

void steps_json(const struct steps *s, struct out *o)
{
	const struct steps_of *p;
	struct json j = json_to(o);
	struct table t;
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
		t = table_of(&p[i]);
		for (size_t k = 0; k < p[i].n; k++)
			table_json_row(&t, &j, "  ", &p[i].list[k]);
		json_end(&j);
		json_end(&j);
	}
	json_end(&j);
	if (steps_no_room(s))
		json_put_u64(&j, "no_room", steps_no_room(s));
	json_end(&j);
	out_char(o, '\n');
}
