/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_text.c - a report for people:
 *
 *   Runtime API calls
 *    Time%      Total     Calls  Failed       Avg       Med       P99       Min       Max    StdDev      Bytes  Name
 *    97.13   1.124 ms        10       0  112.4 us   98.1 us  201.3 us   90.0 us  203.0 us   34.2 us    1.0 MiB  cudaMalloc
 *
 * Knows no source.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "print.h"

const char *print_duration(char *buf, size_t size, double ns)
{
	static const struct {
		double unit;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" } };

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		double v = ns / units[i].unit;

		if (v < 1)
			continue;
		snprintf(buf, size, "%.*f %s", v < 10 ? 3 : v < 100 ? 2 : v < 10000 ? 1 : 0, v, units[i].name);
		return buf;
	}
	snprintf(buf, size, "%.0f ns", ns);
	return buf;
}

const char *print_bytes(char *buf, size_t size, double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t i = 0;

	while (bytes >= 1024 && i + 1 < ARRAY_LEN(units)) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, size, "%.*f %s", i ? 1 : 0, bytes, units[i]);
	return buf;
}

/* A time in its column; "-" where it is not known. */
static void column(struct out *o, double ns, bool known)
{
	char text[32];

	out_fmt(o, " %9s", known ? print_duration(text, sizeof(text), ns) : "-");
}

/* Eighths of a block: the taller, the more. */
static void histogram(struct out *o, const struct report_row *row, bool utf8)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char ascii[] = " .:-=+*#@";
	uint64_t octaves[CT_HIST_BUCKETS / 8] = { 0 }, most = 0;
	char from[32], to[32];
	int first = -1, last = 0;

	for (int i = 0; i < CT_HIST_BUCKETS; i++)
		octaves[i / 8] += row->hist->n[i];
	for (int i = 0; i < CT_HIST_BUCKETS / 8; i++) {
		if (!octaves[i])
			continue;
		first = first < 0 ? i : first;
		last = i;
		most = octaves[i] > most ? octaves[i] : most;
	}
	if (first < 0)
		return;
	out_fmt(o, "%16s%s ", "", print_duration(from, sizeof(from), first ? (double)(8ULL << first) : 0));
	for (int i = first; i <= last; i++) {
		/* what is there at all is seen */
		int level = octaves[i] ? (int)ceil(8.0 * (double)octaves[i] / (double)most) : 0;

		if (utf8)
			out_str(o, blocks[level]);
		else
			out_char(o, ascii[level]);
	}
	out_fmt(o, " %s\n", print_duration(to, sizeof(to), (double)(16ULL << last)));
}

static void section(struct out *o, const struct report *r, enum report_section s, const struct print_about *a)
{
	bool device = s == REPORT_KERNELS || s == REPORT_COPIES;
	char text[32];

	if (!r->nrows[s])
		return;
	out_fmt(o, "%s\n", report_section_title(s));
	out_fmt(o, " %6s %10s %9s", "Time%", "Total", device ? "Instances" : "Calls");
	if (!device)
		out_fmt(o, " %7s", "Failed");
	out_fmt(o, " %9s %9s %9s %9s %9s %9s %10s  Name\n", "Avg", "Med", "P99", "Min", "Max", "StdDev", "Bytes");
	for (size_t i = 0; i < r->nrows[s]; i++) {
		const struct report_row *row = &r->rows[s][i];
		bool timed = row->n.timed, hist = timed && row->hist;

		out_fmt(o, " %6.2f %10s %9llu", row->share * 100,
			timed ? print_duration(text, sizeof(text), (double)row->n.ns) : "-",
			(unsigned long long)row->n.calls);
		if (!device)
			out_fmt(o, " %7llu", (unsigned long long)row->n.failed);
		column(o, book_mean_ns(&row->n), timed);
		column(o, (double)row->median_ns, hist);
		column(o, (double)row->p99_ns, hist);
		column(o, (double)row->n.min_ns, timed);
		column(o, (double)row->n.max_ns, timed);
		column(o, book_deviation_ns(&row->n), timed);
		out_fmt(o, " %10s  ", row->n.bytes ? print_bytes(text, sizeof(text), (double)row->n.bytes) : "");
		out_mem(o, row->label.s, row->label.len);
		out_char(o, '\n');
		if (a->hist && row->hist)
			histogram(o, row, a->utf8);
	}
	out_char(o, '\n');
}

static void traffic(struct out *o, const struct report *r)
{
	bool any = false;
	char text[32];

	for (int w = 0; w < REPORT_WAY_END; w++)
		any |= r->traffic[w].copies != 0;
	if (!any)
		return;
	out_fmt(o, "Memory traffic (%s)\n %-12s %9s %10s %10s %10s\n", r->device ? "on the device" : "as calls asked for it",
		"Direction", "Count", "Total", "Avg", "GB/s");
	for (int w = 0; w < REPORT_WAY_END; w++) {
		const struct report_traffic *t = &r->traffic[w];

		if (!t->copies)
			continue;
		out_fmt(o, " %-12s %9llu", report_way_name((enum report_way)w), (unsigned long long)t->copies);
		out_fmt(o, " %10s", print_bytes(text, sizeof(text), (double)t->bytes));
		out_fmt(o, " %10s", print_bytes(text, sizeof(text), (double)t->bytes / (double)t->copies));
		if (t->ns)
			out_fmt(o, " %10.2f\n", (double)t->bytes / (double)t->ns);
		else
			out_fmt(o, " %10s\n", "-");
	}
	out_char(o, '\n');
}

static void launches(struct out *o, const struct report *r)
{
	char text[32];

	if (!r->launches && !r->graph_launches)
		return;
	out_str(o, "Launches\n");
	out_fmt(o, " %-34s %llu", "kernel launches", (unsigned long long)r->launches);
	if (r->span_ns)
		out_fmt(o, "  (%.1f a second)", (double)r->launches * 1e9 / (double)r->span_ns);
	out_char(o, '\n');
	if (r->launches) {
		out_fmt(o, " %-34s %.1f %%\n", "on streams of the program's own",
			100.0 * (double)r->on_streams / (double)r->launches);
		if (r->threads)
			out_fmt(o, " %-34s %.0f\n", "threads a launch", (double)r->threads / (double)r->launches);
		out_fmt(o, " %-34s %s\n", "dynamic shared memory a block",
			print_bytes(text, sizeof(text), (double)r->shared_bytes / (double)r->launches));
	}
	out_fmt(o, " %-34s %llu\n\n", "graph launches", (unsigned long long)r->graph_launches);
}

static void profile(struct out *o, const struct report *r, const struct print_about *a)
{
	uint64_t compute = r->totals[REPORT_KERNELS].ns, copy = r->totals[REPORT_COPIES].ns;
	uint64_t calls = r->totals[REPORT_RUNTIME].ns + r->totals[REPORT_DRIVER].ns;
	char text[32], other[32];

	out_str(o, "Profile\n");
	out_fmt(o, " %-34s %s\n", "observed", print_duration(text, sizeof(text), (double)r->span_ns));
	if (calls)
		out_fmt(o, " %-34s %.1f %%\n", "of the time in calls: waiting", 100.0 * (double)r->totals[REPORT_SYNC].ns / (double)calls);
	if (r->moves)
		out_fmt(o, " %-34s %.1f %%\n", "copies and memsets: asynchronous", 100.0 * (double)r->moves_async / (double)r->moves);
	if (r->device) {
		out_fmt(o, " %-34s %s / %s", "compute / copy on the device", print_duration(text, sizeof(text), (double)compute),
			print_duration(other, sizeof(other), (double)copy));
		if (copy)
			out_fmt(o, "  (%.2f)", (double)compute / (double)copy);
		out_char(o, '\n');
	}
	if (a->peak_bytes)
		out_fmt(o, " %-34s %s\n", "peak of device memory", print_bytes(text, sizeof(text), (double)a->peak_bytes));
	out_char(o, '\n');
}

static void occupancy(struct out *o, const struct report *r, const struct print_about *a)
{
	bool head = false;

	for (size_t i = 0; a->device && i < r->nrows[REPORT_KERNELS]; i++) {
		const struct report_row *row = &r->rows[REPORT_KERNELS][i];
		double share = report_occupancy(&row->shape, a->device);

		if (share < 0)
			continue;
		if (!head)
			out_fmt(o, "Theoretical occupancy\n %6s %6s %10s %10s  Name\n", "Occ.%", "Block", "Registers", "Shared");
		head = true;
		out_fmt(o, " %6.1f %6u %10u %10u  ", share * 100, row->shape.block, row->shape.registers, row->shape.shared);
		out_mem(o, row->label.s, row->label.len);
		out_char(o, '\n');
	}
	if (head)
		out_char(o, '\n');
}

void print_text(struct out *o, const struct report *r, const struct print_about *a)
{
	for (int s = 0; s < REPORT_SECTION_END; s++)
		section(o, r, (enum report_section)s, a);
	traffic(o, r);
	launches(o, r);
	occupancy(o, r, a);
	profile(o, r, a);
}
