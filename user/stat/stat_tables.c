/* SPDX-License-Identifier: BSD-2-Clause */
/* stat_tables.c - see stat_tables.h. Knows no source. */
#include <stdio.h>
#include <string.h>

#include "../util/units.h"
#include "stat_tables.h"

#define COLUMN(name, type, value)                          \
	static struct cell name(const struct table_at *at) \
	{                                                  \
		const type *r = at->row;                   \
                                                           \
		return value;                              \
	}

/* ---- calls and device work ---- */

/* What a section is about. */
#define KERNELS 1u
#define COPIES 2u
#define DEVICE 4u /* one of these two */
#define HISTOGRAMS 8u

static bool is_timed(const struct section_row *s)
{
	return s->n->timed;
}

static bool has_hist(const struct section_row *s)
{
	return s->n->timed && s->r && s->r->hist;
}

/* Of the sum of all rows only the time and the number mean something. */
static struct cell of_one(const struct section_row *s, bool known, struct cell cell)
{
	return !s->r ? cell_bytes("", 0, true) : known ? cell : cell_none();
}

static struct cell number_if(bool is, uint64_t n)
{
	return is ? cell_number(n) : cell_none();
}

COLUMN(row_section, struct section_row, cell_word(report_section_name(r->section)))
COLUMN(row_label, struct section_row, cell_bytes(r->r->label.s, r->r->label.len, false))
COLUMN(row_name, struct section_row, cell_bytes(r->name->s, r->name->len, true))
COLUMN(row_total, struct section_row, number_if(is_timed(r), r->n->ns))
COLUMN(row_mean, struct section_row,
       of_one(r, is_timed(r), cell_real(r->r ? book_mean_ns(r->n) : 0)))
COLUMN(row_median, struct section_row,
       of_one(r, has_hist(r), cell_number(r->r ? r->r->median_ns : 0)))
COLUMN(row_p99, struct section_row, of_one(r, has_hist(r), cell_number(r->r ? r->r->p99_ns : 0)))
COLUMN(row_min, struct section_row, of_one(r, is_timed(r), cell_number(r->n->min_ns)))
COLUMN(row_max, struct section_row, of_one(r, is_timed(r), cell_number(r->n->max_ns)))
COLUMN(row_deviation, struct section_row,
       of_one(r, is_timed(r), cell_real(r->r ? book_deviation_ns(r->n) : 0)))
/* bytes of copies, allocations and frees have no sum: the table of traffic has one for each direction */
COLUMN(row_bytes_if, struct section_row, of_one(r, r->n->bytes, cell_number(r->n->bytes)))
COLUMN(row_share, struct section_row, of_one(r, true, cell_real(r->r ? r->r->share : 0)))
COLUMN(row_quantile_50, struct section_row, number_if(r->r->hist, r->r->median_ns))
COLUMN(row_quantile_90, struct section_row, number_if(r->r->hist, r->r->p90_ns))
COLUMN(row_quantile_99, struct section_row, number_if(r->r->hist, r->r->p99_ns))
COLUMN(row_estimated, struct section_row, cell_number(muted_unseen(r->unseen)))
COLUMN(row_error, struct section_row, cell_number(muted_error(r->unseen)))

/* What is an estimate, at least in part, begins with `~` or `>=`. */
static const char *show_total(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct section_row *r = at->row;
	char number[32], time[32];
	const char *mark = muted_number(number, sizeof(number), r->n->calls, r->unseen);
	double ns = (double)r->n->ns;

	if (*mark == '>')
		ns *= (double)muted_at_least(r->n->calls, r->unseen) / (double)r->n->calls;
	snprintf(buf, TABLE_CELL, "%.*s%s", (int)strspn(mark, "~>="), mark,
		 r->n->timed ? print_duration(time, sizeof(time), ns) : "-");
	return buf;
}

static const char *show_calls(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct section_row *r = at->row;

	return muted_number(buf, TABLE_CELL, r->n->calls, r->unseen);
}

static const char *show_failed(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct section_row *r = at->row;

	return muted_failures(buf, TABLE_CELL, r->n->failed, r->unseen);
}

void stat_put_estimate(struct json *j, uint64_t calls, const struct ct_estimated *e)
{
	if (!muted_unseen(e) && !muted_error(e))
		return;
	json_put_u64(j, "estimated", muted_unseen(e));
	json_put_u64(j, "error", muted_error(e));
	if (muted_is_floor(calls, e))
		json_put_u64(j, "at_least", muted_at_least(calls, e));
}

static void put_estimate(struct json *j, const struct table_at *at)
{
	const struct section_row *r = at->row;

	stat_put_estimate(j, r->n->calls, r->unseen);
}

static void stat_tables_put_sizes(struct json *j, const struct table_at *at)
{
	const struct section_row *r = at->row;
	const struct table t = stat_sizes_table();

	if (r->r->sizes)
		table_json_members(&t, j, r->r);
}

static void put_occupancy(struct json *j, const struct table_at *at)
{
	const struct section_row *r = at->row;
	const struct print_about *a = at->ctx;
	double share = a->device && r->r->what == BOOK_KERNEL
			       ? report_occupancy(&r->r->shape, a->device)
			       : -1;

	if (share >= 0)
		json_put_real(j, "occupancy", 4, share);
}

static void put_histogram(struct json *j, const struct table_at *at)
{
	const struct ct_hist *h = ((const struct section_row *)at->row)->r->hist;

	if (!h)
		return;
	json_open_array(j, "histogram_ns");
	for (int i = 0; i < CT_HIST_BUCKETS; i++) {
		if (!h->n[i])
			continue;
		json_open_array(j, NULL);
		json_put_u64(j, NULL, book_bucket_ns((uint32_t)i));
		json_put_u64(j, NULL, h->n[i]);
		json_end(j);
	}
	json_end(j);
}

/* Times that are not known (for example of calls without return probes) are left out of files. */
#define SUMS(of) TABLE_THROUGH(struct section_row, n, struct ct_sums, of)
/* clang-format off */
static const struct table_column section_columns[] = {
	{ .key = "section", .csv = 1, .no_json = true, .get = row_section },
	{ .key = "name", .csv = 2, .get = row_label },
	{ .head = "Name", .text = 20, .unless = COPIES, .get = row_name },
	{ .head = "Operation", .text = 20, .needs = COPIES, .get = row_name },
	{ .key = "calls", .csv = 3, SUMS(calls) },
	{ .head = "Calls", .text = 3, .width = 11, .unless = DEVICE, .show = show_calls },
	{ .head = "Instances", .text = 3, .width = 11, .needs = KERNELS, .show = show_calls },
	{ .head = "Count", .text = 3, .width = 11, .needs = COPIES, .show = show_calls },
	{ .key = "failed", .csv = 4, SUMS(failed) },
	{ .head = "Failed", .text = 4, .width = 7, .unless = DEVICE, .show = show_failed },
	{ .key = "total_ns", .csv = 5, .get = row_total },
	{ .head = "Total", .text = 2, .width = 10, .show = show_total },
	{ .key = "avg_ns", .csv = 7, .head = "Avg", .text = 5, .width = 9, .unit = TABLE_NS, .json_digits = 1, .get = row_mean },
	{ .key = "median_ns", .csv = 8, .no_json = true, .head = "Med", .text = 6, .width = 9, .unit = TABLE_NS, .get = row_median },
	{ .key = "p99_ns", .csv = 9, .no_json = true, .head = "P99", .text = 7, .width = 9, .unit = TABLE_NS, .get = row_p99 },
	{ .key = "min_ns", .csv = 10, .head = "Min", .text = 8, .width = 9, .unit = TABLE_NS, .get = row_min },
	{ .key = "max_ns", .csv = 11, .head = "Max", .text = 9, .width = 9, .unit = TABLE_NS, .get = row_max },
	{ .key = "stddev_ns", .csv = 12, .head = "StdDev", .text = 10, .width = 9, .unit = TABLE_NS, .json_digits = 1,
	  .get = row_deviation },
	{ .key = "bytes", .csv = 13, SUMS(bytes) },
	{ .head = "Bytes", .text = 11, .width = 10, .unit = TABLE_BYTES, .none = "", .unless = DEVICE, .get = row_bytes_if },
	{ .put = put_estimate },
	{ .key = "share", .csv = 6, .head = "Time%", .text = 1, .width = 6, .unit = TABLE_SHARE, .digits = 2, .json_digits = 6,
	  .get = row_share },
	{ .key = "median_ns", .get = row_quantile_50 },
	{ .key = "p90_ns", .get = row_quantile_90 },
	{ .key = "p99_ns", .get = row_quantile_99 },
	{ .key = "estimated", .csv = 14, .no_json = true, .get = row_estimated },
	{ .key = "error", .csv = 15, .no_json = true, .get = row_error },
	{ .put = stat_tables_put_sizes },
	{ .put = put_occupancy },
	{ .needs = HISTOGRAMS, .put = put_histogram },
};
/* clang-format on */

struct table stat_section_table(enum report_section s, const struct print_about *a)
{
	return (struct table)TABLE_OF(section_columns,
				      (s == REPORT_KERNELS  ? KERNELS | DEVICE
				       : s == REPORT_COPIES ? COPIES | DEVICE
							    : 0) |
					      (a->hist ? HISTOGRAMS : 0),
				      a);
}

/* ---- the same operations by their sizes ---- */

COLUMN(sizes_total, struct report_row, cell_number(r->sizes->n.ns))
COLUMN(sizes_count, struct report_row, cell_number(r->sizes->n.calls))
COLUMN(sizes_mean, struct report_row, cell_real(book_mean_ns(&r->sizes->n)))
COLUMN(sizes_min, struct report_row, cell_number(r->sizes->n.min_ns))
COLUMN(sizes_max, struct report_row, cell_number(r->sizes->n.max_ns))
COLUMN(sizes_deviation, struct report_row, cell_real(book_deviation_ns(&r->sizes->n)))
COLUMN(label, struct report_row, cell_bytes(r->label.s, r->label.len, true))

/* clang-format off */
static const struct table_column sizes_columns[] = {
	{ .head = "Total", .text = 1, .width = 10, .unit = TABLE_BYTES, .get = sizes_total },
	{ .head = "Count", .text = 2, .width = 11, .get = sizes_count },
	{ .key = "avg_bytes", .head = "Avg", .text = 3, .width = 10, .unit = TABLE_BYTES, .json_digits = 1, .get = sizes_mean },
	{ .key = "median_bytes", .head = "Med", .text = 4, .width = 10, .unit = TABLE_BYTES, TABLE_AT(struct report_row, median_bytes) },
	{ .key = "min_bytes", .head = "Min", .text = 5, .width = 10, .unit = TABLE_BYTES, .get = sizes_min },
	{ .key = "max_bytes", .head = "Max", .text = 6, .width = 10, .unit = TABLE_BYTES, .get = sizes_max },
	{ .key = "stddev_bytes", .head = "StdDev", .text = 7, .width = 10, .unit = TABLE_BYTES, .json_digits = 1, .get = sizes_deviation },
	{ .head = "Operation", .text = 8, .get = label },
};
/* clang-format on */

struct table stat_sizes_table(void)
{
	return (struct table)TABLE_OF(sizes_columns, 0, NULL);
}

/* ---- occupancy ---- */

static struct cell occupancy(const struct table_at *at)
{
	return cell_real(report_occupancy(&((const struct report_row *)at->row)->shape,
					  ((const struct print_about *)at->ctx)->device));
}

/* clang-format off */
static const struct table_column occupancy_columns[] = {
	{ .head = "Occ.%", .text = 1, .width = 6, .unit = TABLE_SHARE, .digits = 1, .get = occupancy },
	{ .head = "Block", .text = 2, .width = 6, TABLE_AT(struct report_row, shape.block) },
	{ .head = "Registers", .text = 3, .width = 10, TABLE_AT(struct report_row, shape.registers) },
	{ .head = "Shared", .text = 4, .width = 10, TABLE_AT(struct report_row, shape.shared) },
	{ .head = "Name", .text = 5, .get = label },
};
/* clang-format on */

struct table stat_occupancy_table(const struct print_about *a)
{
	return (struct table)TABLE_OF(occupancy_columns, 0, a);
}

/* ---- hardware counters ---- */

static struct cell real_if(bool is, double v)
{
	return is ? cell_real(v) : cell_none();
}

COLUMN(gauge_uuid, struct gauge, *r->uuid ? cell_string(r->uuid) : cell_none())
COLUMN(gauge_avg, struct gauge, real_if(r->samples, gauge_mean(r)))
COLUMN(gauge_min, struct gauge, real_if(r->samples, r->least))
COLUMN(gauge_max, struct gauge, real_if(r->samples, r->most))

static const char *show_metric(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct gauge *g = at->row;
	bool unit = g->samples && *g->unit;
	int n = snprintf(buf, TABLE_CELL, "%s%s%s%s", g->name, unit ? " (" : "",
			 unit ? g->unit : "", unit ? ")" : "");

	if (g->suspect && n > 0 && n < TABLE_CELL)
		snprintf(buf + n, (size_t)(TABLE_CELL - n), "; %llu that cannot be true left out",
			 (unsigned long long)g->suspect);
	return buf;
}

/* clang-format off */
static const struct table_column gauge_columns[] = {
	{ .key = "device", .head = "Device", .text = 1, .width = 6, TABLE_AT(struct gauge, device) },
	{ .key = "gpu_uuid", .get = gauge_uuid },
	{ .key = "name", TABLE_CHARS_AT(struct gauge, name) },
	{ .key = "unit", TABLE_CHARS_AT(struct gauge, unit) },
	{ .key = "samples", .head = "Samples", .text = 2, .width = 9, TABLE_AT(struct gauge, samples) },
	{ .key = "suspect", TABLE_AT(struct gauge, suspect) },
	{ .key = "avg", .head = "Avg", .text = 3, .width = 12, .unit = TABLE_DIGITS, .digits = 6, .json_digits = TABLE_EXACT, .get = gauge_avg },
	{ .key = "min", .head = "Min", .text = 4, .width = 12, .unit = TABLE_DIGITS, .digits = 6, .json_digits = TABLE_EXACT, .get = gauge_min },
	{ .key = "max", .head = "Max", .text = 5, .width = 12, .unit = TABLE_DIGITS, .digits = 6, .json_digits = TABLE_EXACT, .get = gauge_max },
	{ .head = "Metric", .text = 6, .show = show_metric },
};
/* clang-format on */

struct table stat_gauges_table(void)
{
	return (struct table)TABLE_OF(gauge_columns, 0, NULL);
}

/* ---- traffic ---- */

COLUMN(traffic_way, struct traffic_row, cell_string(report_way_name(r->way)))
COLUMN(traffic_copies, struct traffic_row, cell_number(r->t->copies))
COLUMN(traffic_bytes, struct traffic_row, cell_number(r->t->bytes))
COLUMN(traffic_ns, struct traffic_row, cell_number(r->t->ns))
COLUMN(traffic_mean, struct traffic_row, cell_real((double)r->t->bytes / (double)r->t->copies))
COLUMN(traffic_rate, struct traffic_row, real_if(r->t->ns, (double)r->t->bytes / (double)r->t->ns))

TABLE_SAY(show_way, struct traffic_row, r, report_way_name(r->way))

static const char *show_copies(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct traffic_row *r = at->row;

	return muted_number(buf, TABLE_CELL, r->t->copies, &r->t->unseen);
}

static const char *show_traffic(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct traffic_row *r = at->row;

	*buf = '~';
	print_bytes(buf + 1, TABLE_CELL - 1, (double)r->t->bytes);
	return buf + !muted_unseen(&r->t->unseen);
}

static void put_traffic_estimate(struct json *j, const struct table_at *at)
{
	const struct traffic_row *r = at->row;

	stat_put_estimate(j, r->t->copies, &r->t->unseen);
}

/* clang-format off */
static const struct table_column traffic_columns[] = {
	{ .key = "direction", .get = traffic_way },
	{ .head = "Direction", .text = 1, .width = -12, .show = show_way },
	{ .key = "count", .get = traffic_copies },
	{ .head = "Count", .text = 2, .width = 9, .show = show_copies },
	{ .key = "bytes", .get = traffic_bytes },
	{ .head = "Total", .text = 3, .width = 10, .show = show_traffic },
	{ .key = "device_ns", .get = traffic_ns },
	{ .head = "Avg", .text = 4, .width = 10, .unit = TABLE_BYTES, .get = traffic_mean },
	{ .head = "GB/s", .text = 5, .width = 10, .unit = TABLE_FIXED, .digits = 2, .get = traffic_rate },
	{ .put = put_traffic_estimate },
};
/* clang-format on */

struct table stat_traffic_table(void)
{
	return (struct table)TABLE_OF(traffic_columns, 0, NULL);
}
