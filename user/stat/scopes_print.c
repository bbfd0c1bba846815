/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scopes_print.c - see scopes_print.h.
 *
 *   Time of device work by range; it counts for the innermost range around the call
 *   Time%   GPU time  Inclusive   Kernels   Calls  Host time   Count  Name
 *    62.10  1.124 ms   1.402 ms       120     360   2.210 ms      10  forward
 */
#include <stdlib.h>
#include <string.h>

#include "../render/table.h"
#include "scopes_print.h"

#define NAME_BYTES 256

/* What the sums have. */
#define DEVICE 1u
#define CLASSES 2u
#define COLLECTIVES 4u
#define GEMMS 8u

#define COLUMN(name, value)                                 \
	static struct cell name(const struct table_at *at)  \
	{                                                   \
		const struct scope_row *r = at->row;        \
		const struct scope_sums_all *all = at->ctx; \
                                                            \
		(void)all;                                  \
		(void)r;                                    \
		return value;                               \
	}

static struct cell percent(double part, double whole)
{
	return cell_real(whole > 0 ? 100.0 * part / whole : 0.0);
}

/* GB/s, 10^9 bytes. */
static double rate(double bytes, uint64_t ns)
{
	return ns ? bytes / (double)ns : 0;
}

static double teraflops(const struct gemm_sums *g)
{
	return g->ns ? g->flop / (double)g->ns / 1e3 : 0;
}

static bool has_peak(const struct gemm_sums *g)
{
	return g->ns && !g->unknown;
}

static const char *scopes_print_type_of(const struct gemm_sums *g, uint8_t type)
{
	return g->called > 0 && gemm_type(g->like.a_type) && gemm_type(g->like.d_type)
		       ? gemm_type(type)
		       : NULL;
}

/* A member only where it is not 0, or where a condition holds. */
static struct cell number_if(bool is, uint64_t n)
{
	return is ? cell_number(n) : cell_none();
}

static struct cell real_if(bool is, double v)
{
	return is ? cell_real(v) : cell_none();
}

static struct cell word_if(const char *word)
{
	return word ? cell_string(word) : cell_none();
}

COLUMN(sums_share, all->device ? percent((double)r->work_ns, (double)all->work_ns)
			       : percent((double)r->calls_ns, (double)all->calls_ns))
COLUMN(sums_time, cell_number(all->device ? r->work_ns : r->calls_ns))
COLUMN(sums_inclusive,
       number_if(r->what == SCOPE_ROW_NAMED, all->device ? r->inclusive_ns : r->inclusive_calls_ns))
COLUMN(sums_inclusive_calls, number_if(r->what == SCOPE_ROW_NAMED, r->inclusive_calls_ns))
COLUMN(sums_inclusive_work, number_if(r->what == SCOPE_ROW_NAMED, r->inclusive_ns))
COLUMN(sums_exposed, real_if(r->moved.kernels_ns,
			     100 * (double)r->moved.exposed_ns / (double)r->moved.kernels_ns))
COLUMN(sums_exposed_ns, number_if(r->moved.kernels_ns, r->moved.exposed_ns))
COLUMN(sums_min_bytes, number_if(r->moved.bytes, r->moved.smallest))
COLUMN(sums_max_bytes, number_if(r->moved.bytes, r->moved.largest))
COLUMN(sums_moved_ns, number_if(r->moved.bytes, r->moved.moved_ns))
COLUMN(sums_alg_rate, real_if(r->moved.bytes, rate((double)r->moved.bytes, r->moved.moved_ns)))
COLUMN(sums_bus_rate, real_if(r->moved.bytes, rate(r->moved.bus_bytes, r->moved.moved_ns)))
COLUMN(sums_gigaflop, real_if((r->gemm.ns ? r->gemm.flop : r->gemm.called) > 0,
			      (r->gemm.ns ? r->gemm.flop : r->gemm.called) / 1e9))
COLUMN(sums_flop_rate, real_if(r->gemm.ns && r->gemm.flop > 0, teraflops(&r->gemm)))
COLUMN(sums_peak,
       real_if(has_peak(&r->gemm) && r->gemm.flop > 0, 100 * r->gemm.flop / r->gemm.possible))
COLUMN(sums_shape_m, number_if(r->gemm.like.flags &CT_GEMM_SHAPE, r->gemm.like.m))
COLUMN(sums_shape_n, number_if(r->gemm.like.flags &CT_GEMM_SHAPE, r->gemm.like.n))
COLUMN(sums_shape_k, number_if(r->gemm.like.flags &CT_GEMM_SHAPE, r->gemm.like.k))
COLUMN(sums_batch, number_if(r->gemm.like.flags &CT_GEMM_SHAPE, r->gemm.like.batch))
COLUMN(sums_a_type, word_if(scopes_print_type_of(&r->gemm, r->gemm.like.a_type)))
COLUMN(sums_d_type, word_if(scopes_print_type_of(&r->gemm, r->gemm.like.d_type)))
COLUMN(sums_called_flop, real_if(r->gemm.called > 0, r->gemm.called))
COLUMN(sums_flop, real_if(r->gemm.ns, r->gemm.flop))
COLUMN(sums_tflops, real_if(r->gemm.ns, teraflops(&r->gemm)))
COLUMN(sums_peak_share,
       real_if(has_peak(&r->gemm) && r->gemm.possible > 0, r->gemm.flop / r->gemm.possible))

static struct cell sums_name(const struct table_at *at)
{
	const struct scope_row *r = at->row;

	return r->what == SCOPE_ROW_NAMED  ? cell_string(r->name)
	       : r->what == SCOPE_ROW_NONE ? cell_bytes("(none)", 6, true)
					   : cell_bytes("(unknown)", 9, true);
}

static void put_scope_name(struct json *j, const struct table_at *at)
{
	const struct scope_row *r = at->row;

	if (r->what == SCOPE_ROW_NAMED)
		json_put_str(j, "name", r->name);
	else
		json_put_bool(j, r->what == SCOPE_ROW_NONE ? "none" : "unknown", true);
}

static void scopes_print_put_sizes(struct json *j, const struct table_at *at)
{
	const struct scope_row *r = at->row;

	if (!r->moved.bytes)
		return;
	json_open_array(j, "sizes");
	for (int i = 1; i < COLLECTIVE_SIZES; i++) {
		if (!r->moved.sizes[i])
			continue;
		json_open_object(j, NULL);
		json_put_u64(j, "from_bytes", 1ULL << (i - 1));
		json_put_u64(j, "count", r->moved.sizes[i]);
		json_end(j);
	}
	json_end(j);
}

#define OF(of) TABLE_AT(struct scope_row, of)
/* clang-format off */
static const struct table_column columns[] = {
	{ .head = "Name", .text = 20, .most = NAME_BYTES, .get = sums_name, .put = put_scope_name },
	{ .head = "Time%", .text = 1, .width = 6, .unit = TABLE_FIXED, .digits = 2, .get = sums_share },
	{ .head = "GPU time", .text = 2, .width = 10, .unit = TABLE_NS, .needs = DEVICE, .get = sums_time },
	{ .head = "GPU time", .text = 2, .width = 10, .unit = TABLE_NS, .needs = CLASSES, .unless = DEVICE, .get = sums_time },
	{ .head = "Host time", .text = 2, .width = 10, .unit = TABLE_NS, .unless = DEVICE | CLASSES, .get = sums_time },
	{ .head = "Inclusive", .text = 3, .width = 10, .unit = TABLE_NS, .unless = CLASSES, .get = sums_inclusive },
	{ .key = "count", .head = "Count", .width = 9, .needs = CLASSES, .unless = DEVICE, OF(kernels) },
	{ .key = "count", .head = "Count", .text = 4, .width = 9, .needs = CLASSES | DEVICE, OF(kernels) },
	{ .key = "gpu_ns", .needs = CLASSES, OF(work_ns) },
	{ .key = "count", .head = "Count", .text = 7, .width = 9, .unless = CLASSES, OF(scopes) },
	{ .key = "duration_ns", .unless = CLASSES, OF(scopes_ns) },
	{ .key = "calls", .head = "Calls", .text = 5, .width = 9, .unless = CLASSES, OF(calls) },
	{ .key = "calls_ns", .unless = CLASSES, OF(calls_ns) },
	{ .head = "Host time", .text = 6, .width = 10, .unit = TABLE_NS, .needs = DEVICE, .unless = CLASSES, OF(calls_ns) },
	{ .key = "inclusive_calls_ns", .unless = CLASSES, .get = sums_inclusive_calls },
	{ .key = "kernels", .head = "Kernels", .text = 4, .width = 9, .needs = DEVICE, .unless = CLASSES, OF(kernels) },
	{ .key = "gpu_ns", .needs = DEVICE, .unless = CLASSES, OF(work_ns) },
	{ .key = "inclusive_gpu_ns", .needs = DEVICE, .unless = CLASSES, .get = sums_inclusive_work },
	{ .head = "Exposed%", .text = 8, .width = 9, .unit = TABLE_FIXED, .digits = 2, .needs = COLLECTIVES, .get = sums_exposed },
	{ .key = "exposed_ns", .needs = COLLECTIVES, .get = sums_exposed_ns },
	{ .key = "bytes", .head = "Bytes", .text = 9, .width = 10, .unit = TABLE_BYTES, .needs = COLLECTIVES, OF(moved.bytes), .if_any = true },
	{ .key = "min_bytes", .needs = COLLECTIVES, .get = sums_min_bytes },
	{ .key = "max_bytes", .needs = COLLECTIVES, .get = sums_max_bytes },
	{ .key = "moved_ns", .needs = COLLECTIVES, .get = sums_moved_ns },
	{ .key = "alg_gbps", .head = "Alg GB/s", .text = 10, .width = 9, .unit = TABLE_FIXED, .digits = 2, .json_digits = 3,
	  .needs = COLLECTIVES, .get = sums_alg_rate },
	{ .key = "bus_gbps", .head = "Bus GB/s", .text = 11, .width = 9, .unit = TABLE_FIXED, .digits = 2, .json_digits = 3,
	  .needs = COLLECTIVES, .get = sums_bus_rate },
	{ .needs = COLLECTIVES, .put = scopes_print_put_sizes },
	{ .head = "GFLOP", .text = 12, .width = 10, .unit = TABLE_DIGITS, .digits = 4, .needs = GEMMS, .get = sums_gigaflop },
	{ .head = "TFLOP/s", .text = 13, .width = 9, .unit = TABLE_FIXED, .digits = 2, .needs = GEMMS, .get = sums_flop_rate },
	{ .head = "Peak%", .text = 14, .width = 7, .unit = TABLE_FIXED, .digits = 1, .needs = GEMMS, .get = sums_peak },
	{ .key = "m", .needs = GEMMS, .get = sums_shape_m },
	{ .key = "n", .needs = GEMMS, .get = sums_shape_n },
	{ .key = "k", .needs = GEMMS, .get = sums_shape_k },
	{ .key = "batch", .needs = GEMMS, .get = sums_batch },
	{ .key = "a_type", .needs = GEMMS, .get = sums_a_type },
	{ .key = "d_type", .needs = GEMMS, .get = sums_d_type },
	{ .key = "called_flop", .needs = GEMMS, .get = sums_called_flop },
	{ .key = "flop", .needs = GEMMS, .get = sums_flop },
	{ .key = "flop_ns", .needs = GEMMS, OF(gemm.ns), .if_any = true },
	{ .key = "tflops", .json_digits = 3, .needs = GEMMS, .get = sums_tflops },
	{ .key = "peak_share", .json_digits = 4, .needs = GEMMS, .get = sums_peak_share },
};
/* clang-format on */

static struct table table_of(const struct scope_sums_all *all)
{
	return (struct table)TABLE_OF(columns,
				      (all->device ? DEVICE : 0) | (all->classes ? CLASSES : 0) |
					      (all->collectives ? COLLECTIVES : 0) |
					      (all->gemms ? GEMMS : 0),
				      all);
}

void scope_sums_text(struct scope_sums *s, struct out *o, const char *word, uint64_t most)
{
	struct scope_sums_all all;
	struct scope_row **rows;
	struct table t;
	size_t n;

	rows = scope_sums_rows(s, &all);
	if (!rows)
		return;
	t = table_of(&all);
	n = most && most < all.nrows ? most : all.nrows;
	if (all.classes)
		out_fmt(o, "Time of device work by %s, as the names of kernels say it\n", word);
	else
		out_fmt(o, "%s by %s; it counts for the innermost %s around the call\n",
			all.device ? "Time of device work" : "Time of calls", word, word);
	table_text_heads(&t, o);
	for (size_t i = 0; i < n; i++)
		table_text_row(&t, o, rows[i]);
	if (n < all.nrows)
		out_fmt(o, " and %zu more\n", all.nrows - n);
	if (!all.device)
		out_str(o, "There is no device work in this: --gpu records it.\n");
	if (all.late)
		out_fmt(o, "%llu kernels were reported too late to count for what is exposed.\n",
			(unsigned long long)all.late);
	out_char(o, '\n');
	free(rows);
}

void scope_sums_json(struct scope_sums *s, struct out *o, const char *word)
{
	struct json j = json_to(o);
	struct scope_sums_all all;
	struct scope_row **rows;
	struct table t;

	rows = scope_sums_rows(s, &all);
	if (!rows)
		return;
	t = table_of(&all);
	json_open_object(&j, NULL);
	json_put_str(&j, "by", word);
	if (!all.classes) {
		json_put_u64(&j, "calls", all.calls);
		json_put_u64(&j, "calls_ns", all.calls_ns);
		if (scope_sums_no_room(s))
			json_put_u64(&j, "no_room", scope_sums_no_room(s));
	}
	if (all.device) {
		json_put_u64(&j, all.classes ? "count" : "kernels", all.kernels);
		json_put_u64(&j, "gpu_ns", all.work_ns);
	}
	if (all.late)
		json_put_u64(&j, "late_kernels", all.late);
	json_open_array(&j, "rows");
	for (size_t i = 0; i < all.nrows; i++)
		table_json_row(&t, &j, "  ", rows[i]);
	json_end(&j);
	json_end(&j);
	out_char(o, '\n');
	free(rows);
}
