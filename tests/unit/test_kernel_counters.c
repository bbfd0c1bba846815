/* SPDX-License-Identifier: BSD-2-Clause */
/* test_kernel_counters.c - which samples are a kernel's, and what comes of them. */
#include "../../user/event/kernel_counters.h"

#include "unit.h"

#define MS 1000000ULL

static struct kernel_counters_table *table;
static struct devices devices;

static void give(const struct ct_hdr *rec, size_t room)
{
	if (record_check(rec, room) || devices_record(&devices, rec) ||
	    kernel_counters_record(table, rec))
		CHECK(!"a record is refused");
}

static void device(uint32_t pid, uint32_t id, uint8_t uuid)
{
	struct ct_device d = { .h = { .size = sizeof(d), .kind = CT_DEVICE, .pid = pid },
			       .id = id };

	memset(d.uuid, uuid, sizeof(d.uuid));
	give(&d.h, sizeof(d));
}

static void metric(uint32_t id, const char *name)
{
	union {
		struct ct_metric m;
		char room[sizeof(struct ct_metric) + 64];
	} r = {
		.m = { .h = { .kind = CT_METRIC }, .id = id, .unit_len = 1, .source = CT_METRIC_PM }
	};
	size_t n = strlen(name);

	r.m.name_len = (__u16)n;
	memcpy(r.m.text, name, n);
	r.m.text[n] = '%';
	r.m.h.size = (__u16)((sizeof(r.m) + n + 1 + 7) & ~7u);
	give(&r.m.h, sizeof(r));
}

/* Metrics 1 sm, 2 dram, 3 l2_hit, 4 another; a value below 0 is left out, one over 100 is marked
 * as suspect. */
static void sample(uint32_t gpu, uint64_t start_ns, uint64_t end_ns, double sm, double dram,
		   double l2)
{
	union {
		struct ct_counter c;
		char room[sizeof(struct ct_counter) + 4 * sizeof(struct ct_value)];
	} r = { .c = { .h = { .kind = CT_COUNTER, .start_ns = start_ns, .end_ns = end_ns },
		       .device = gpu } };
	double values[4] = { sm, dram, l2, 55 };

	for (uint32_t i = 0; i < 4; i++) {
		struct ct_value *v = &r.c.values[r.c.n];

		if (values[i] < 0)
			continue;
		*v = (struct ct_value){ .metric = i + 1,
					.flags = values[i] > 100 ? CT_VALUE_SUSPECT : 0 };
		memcpy(&v->bits, &values[i], sizeof(v->bits));
		r.c.n++;
	}
	r.c.h.size = (__u16)(sizeof(r.c) + r.c.n * sizeof(struct ct_value));
	give(&r.c.h, sizeof(r));
}

static const struct kernel_counters *kernel(uint32_t pid, uint32_t dev, uint64_t start_ns,
					    uint64_t end_ns)
{
	static struct ct_kernel k;

	k = (struct ct_kernel){ .w = { .h = { .size = sizeof(k),
					      .kind = CT_KERNEL,
					      .pid = pid,
					      .start_ns = start_ns,
					      .end_ns = end_ns },
				       .device = dev } };
	return kernel_counters_of(table, &k);
}

/* "40.0 20.0 - (3)" */
static const char *text(const struct kernel_counters *k)
{
	static char buf[128];
	size_t n = 0;

	if (!k)
		return "none";
	for (int i = 0; i < KERNEL_COUNTER_END; i++)
		n += (size_t)(k->known[i]
				      ? snprintf(buf + n, sizeof(buf) - n, "%.1f ", k->percent[i])
				      : snprintf(buf + n, sizeof(buf) - n, "- "));
	snprintf(buf + n, sizeof(buf) - n, "(%u)", k->samples);
	return buf;
}

static void begin(void)
{
	devices_open(&devices);
	table = kernel_counters_open(&devices);
	device(0, 0, 0xaa);
	device(0, 1, 0xbb);
	metric(1, "sm");
	metric(2, "dram");
	metric(3, "l2_hit");
	metric(4, "power");
	/* Process 7 sees the second GPU alone: its device 0. */
	device(7, 0, 0xbb);
}

static void test_samples_inside(void)
{
	begin();
	for (uint64_t i = 0; i < 10; i++)
		sample(1, i * MS, (i + 1) * MS, (double)i * 10, 50, i == 4 ? 80 : -1);
	sample(0, 0, 1 * MS, 99, 99, 99);
	/* 2.5 to 6.5 ms: the samples of 3, 4 and 5 */
	CHECK_TEXT("40.0 50.0 80.0 (3)", text(kernel(7, 0, 2500000, 6500000)));
	/* from edge to edge, both belong */
	CHECK_TEXT("35.0 50.0 80.0 (2)", text(kernel(7, 0, 3 * MS, 5 * MS)));
	CHECK_TEXT("15.0 50.0 - (2)", text(kernel(7, 0, 1 * MS, 3 * MS)));
	CHECK_TEXT("45.0 50.0 80.0 (10)", text(kernel(7, 0, 0, 10 * MS)));
	/* longer than what was sampled */
	CHECK_TEXT("85.0 50.0 - (2)", text(kernel(7, 0, 8 * MS, 100 * MS)));
	kernel_counters_close(table);
	devices_close(&devices);
}

static void test_none(void)
{
	struct ct_kernel no_time = { .w = { .h = { .size = sizeof(no_time),
						   .kind = CT_KERNEL,
						   .flags = CT_F_NO_TIME,
						   .pid = 7,
						   .end_ns = 10 * MS } } };

	begin();
	CHECK_TEXT("none", text(kernel(7, 0, 0, 10 * MS)));
	for (uint64_t i = 0; i < 10; i++)
		sample(1, i * MS, (i + 1) * MS, 10, 20, 30);
	/* shorter than two intervals, though a sample lies inside */
	CHECK_TEXT("none", text(kernel(7, 0, 3 * MS, 4900000)));
	CHECK_TEXT("none", text(kernel(7, 0, 3500000, 3600000)));
	/* after all samples, before all */
	CHECK_TEXT("none", text(kernel(7, 0, 20 * MS, 40 * MS)));
	CHECK_TEXT("none", text(kernel(7, 0, 9500000, 40 * MS)));
	/* another process, another device, nobody */
	CHECK_TEXT("none", text(kernel(8, 0, 0, 10 * MS)));
	CHECK_TEXT("none", text(kernel(7, 1, 0, 10 * MS)));
	CHECK_TEXT("none", text(kernel(0, 1, 0, 10 * MS)));
	/* times that cannot be */
	CHECK_TEXT("none", text(kernel(7, 0, 9 * MS, 3 * MS)));
	CHECK(!kernel_counters_of(table, &no_time));
	kernel_counters_close(table);
	devices_close(&devices);
}

static void test_suspects(void)
{
	begin();
	sample(1, 0, MS, 40, 130, 10);
	sample(1, MS, 2 * MS, 200, 130, 10);
	sample(1, 2 * MS, 3 * MS, 60, 130, 10);
	CHECK_TEXT("50.0 - 10.0 (3)", text(kernel(7, 0, 0, 3 * MS)));
	kernel_counters_close(table);
	devices_close(&devices);
}

static void test_weights(void)
{
	begin();
	sample(1, 0, 3 * MS, 10, 0, 0);
	sample(1, 3 * MS, 4 * MS, 50, 0, 0);
	CHECK_TEXT("20.0 0.0 0.0 (2)", text(kernel(7, 0, 0, 6 * MS)));
	kernel_counters_close(table);
	devices_close(&devices);
}

static void test_process_ids_again(void)
{
	struct ct_exit gone = { .h = { .size = sizeof(gone), .kind = CT_EXIT, .pid = 7 } };
	struct ct_process next = { .h = { .size = sizeof(next), .kind = CT_PROCESS, .pid = 7 },
				   .start_boottime_ns = 1 };

	begin();
	sample(0, 0, MS, 10, 10, 10);
	sample(1, 0, MS, 20, 20, 20);
	CHECK_TEXT("20.0 20.0 20.0 (1)", text(kernel(7, 0, 0, 2 * MS)));
	CHECK(!devices_record(&devices, &gone.h));
	CHECK_TEXT("20.0 20.0 20.0 (1)", text(kernel(7, 0, 0, 2 * MS))); /* its last kernels */
	CHECK(!devices_record(&devices, &next.h));
	CHECK_TEXT("none", text(kernel(7, 0, 0, 2 * MS)));
	device(7, 0, 0xaa);
	CHECK_TEXT("10.0 10.0 10.0 (1)", text(kernel(7, 0, 0, 2 * MS)));
	kernel_counters_close(table);
	devices_close(&devices);
}

/* More than are remembered: the newest are there, in order, and memory is bounded. */
static void test_many(void)
{
	begin();
	for (uint64_t i = 0; i < 100000; i++)
		sample(1, i * MS, (i + 1) * MS, i % 2 ? 100 : 0, 0, 0);
	CHECK_TEXT("50.0 0.0 0.0 (65536)", text(kernel(7, 0, 0, 200000 * MS)));
	CHECK_TEXT("50.0 0.0 0.0 (10)", text(kernel(7, 0, 99990 * MS, 100000 * MS)));
	CHECK_TEXT("none", text(kernel(7, 0, 0, 100 * MS)));
	/* late ones and hostile ones change nothing */
	sample(1, 5 * MS, 6 * MS, 77, 77, 77);
	sample(1, 300000 * MS, 300000 * MS, 77, 77, 77);
	sample(99, 0, MS, 77, 77, 77);
	metric(4000000000u, "sm");
	CHECK_TEXT("50.0 0.0 0.0 (10)", text(kernel(7, 0, 99990 * MS, 100000 * MS)));
	for (uint32_t i = 0; i < 10000; i++)
		device(i + 100, 0, 0xaa);
	CHECK_TEXT("none", text(kernel(100, 0, 99990 * MS, 100000 * MS)));
	kernel_counters_close(table);
	devices_close(&devices);
}

static void test_fields(void)
{
	struct kernel_counters k = { .percent = { 12.5, 0, 99 },
				     .known = { true, false, true },
				     .samples = 4 };
	struct field f[3];

	CHECK(kernel_counters_fields(NULL, f, 3) == 0);
	CHECK(kernel_counters_fields(&k, f, 3) == 2);
	CHECK_TEXT("device_sm", f[0].name);
	CHECK(f[0].type == FIELD_FLOAT && f[0].f == 12.5 && !f[0].absent);
	CHECK_TEXT("device_l2_hit", f[1].label);
	CHECK(f[1].f == 99);
	CHECK(kernel_counters_fields(&k, f, 1) == 1);
}

/* They stand at the end of a kernel's fields. */
static void test_kernel_row(void)
{
	struct kernel_counters k = { .percent = { 12.34, 50, 0 },
				     .known = { true, true, false },
				     .samples = 4 };
	struct ct_kernel rec = { .w = { .h = { .size = sizeof(rec), .kind = CT_KERNEL, .pid = 7 },
					.func = CT_NO_FUNC } };
	struct event ev = { .rec = &rec.w.h, .counters = &k };
	struct field f[EVENT_MAX_FIELDS];
	int with = event_fields(&ev, f, EVENT_MAX_FIELDS), without;

	CHECK_TEXT("device_sm", f[with - 2].name);
	CHECK(f[with - 2].f == 12.3);
	CHECK_TEXT("device_dram", f[with - 1].name);
	ev.counters = NULL;
	without = event_fields(&ev, f, EVENT_MAX_FIELDS);
	CHECK(with == without + 2);
}

int main(void)
{
	RUN(test_kernel_row);
	RUN(test_samples_inside);
	RUN(test_none);
	RUN(test_suspects);
	RUN(test_weights);
	RUN(test_process_ids_again);
	RUN(test_many);
	RUN(test_fields);
	kernel_counters_close(NULL);
	return unit_end();
}
