/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_counters.c - the rows of `cudatrace counters` from records that nobody should send, and,
 * where CUPTI's headers are, that the helper's declarations are CUPTI's.
 */
#include <math.h>
#include <unistd.h>

#include "../../user/cli/counters_print.h"

#include "unit.h"

#if __has_include("/usr/local/cuda/include/cupti_pmsampling.h")
#define HAVE_CUPTI 1
#include <stddef.h>
typedef int CUptiResult;
#define CUPTIAPI
#define _CUPTI_RESULT_H_
#define __cuda_cuda_h__
#include "/usr/local/cuda/include/cupti_pmsampling.h"
#undef CUPTI_SUCCESS
#include "../../counters/counters_cupti.h"
#endif

static char path[] = "/tmp/cudatrace-unit.XXXXXX";

static struct out out;
static struct counters_print *print;

static void begin(enum counters_format format)
{
	CHECK(!out_open(&out, path, false));
	print = counters_print_open(&out, format, 1000000000);
	CHECK(print != NULL);
}

/* What was printed; the caller frees. */
static char *finish(void)
{
	counters_print_close(print, NULL);
	CHECK(!out_close(&out));
	return unit_read(path);
}

static int metric(uint32_t id, const char *name, size_t name_len, const char *unit)
{
	union {
		struct ct_metric m;
		char room[sizeof(struct ct_metric) + 70000];
	} r;

	memset(&r, 0, sizeof(struct ct_metric) + name_len + 64);
	r.m.h.kind = CT_METRIC;
	r.m.id = id;
	r.m.name_len = (__u16)name_len;
	r.m.unit_len = (__u16)strlen(unit);
	memcpy(r.m.text, name, name_len);
	memcpy(r.m.text + name_len, unit, strlen(unit));
	r.m.h.size = (__u16)((sizeof(r.m) + name_len + strlen(unit) + 7) & ~(size_t)7);
	if (record_check(&r.m, sizeof(r)))
		abort();
	return counters_print_record(print, &r.m.h);
}

static int sample(uint32_t device, uint64_t end_ns, int n, const uint32_t *ids,
		  const double *values, uint32_t flags)
{
	union {
		struct ct_counter c;
		char room[sizeof(struct ct_counter) + 16 * sizeof(struct ct_value)];
	} r = { .c = { .h = { .kind = CT_COUNTER, .end_ns = end_ns },
		       .device = device,
		       .n = (__u32)n } };

	for (int i = 0; i < n; i++) {
		r.c.values[i] = (struct ct_value){ .metric = ids[i], .flags = flags };
		memcpy(&r.c.values[i].bits, &values[i], 8);
	}
	r.c.h.size = (__u16)(sizeof(r.c) + (size_t)n * sizeof(struct ct_value));
	if (record_check(&r.c, sizeof(r)))
		abort();
	return counters_print_record(print, &r.c.h);
}

static void event(uint32_t device, uint32_t type, uint64_t code, const char *text)
{
	union {
		struct ct_event e;
		char room[sizeof(struct ct_event) + 4096];
	} r = { .e = { .h = { .kind = CT_EVENT, .end_ns = 1500000000 },
		       .device = device,
		       .type = type,
		       .code = code } };

	r.e.text_len = (__u32)strlen(text);
	memcpy(r.e.text, text, strlen(text));
	r.e.h.size = (__u16)((sizeof(r.e) + strlen(text) + 7) & ~(size_t)7);
	if (record_check(&r.e, sizeof(r)))
		abort();
	CHECK(counters_print_record(print, &r.e.h) == 0);
}

static void test_units(void)
{
	static const uint32_t ids[] = { 1, 2, 3, 4, 5, 6 };
	static const double values[] = {
		12.34, 3.2714e12, 61234567890.0, 612.34, 0x24, 0.000012345
	};
	char *text;

	begin(COUNTERS_TABLE);
	metric(1, "sm", 2, "%");
	metric(2, "dram_read", 9, "B/s");
	metric(3, "mem_used", 8, "B");
	metric(4, "power", 5, "W");
	metric(5, "throttle", 8, "reasons");
	metric(6, "sm__x.avg", 9, "inst/cycle");
	CHECK(sample(0, 1250000000, 6, ids, values, 0) == 1);
	/* another device has some of them, by another source, and one that cannot be true */
	metric(7, "sm", 2, "%");
	CHECK(sample(1, 1260000000, 1, (const uint32_t[]){ 7 }, (const double[]){ 120 },
		     CT_VALUE_SUSPECT) == 1);
	text = finish();
	CHECK_TEXT("      TIME GPU     sm dram_read mem_used  power throttle  sm__x.avg\n"
		   "         s          %      GB/s      MiB      W  reasons inst/cycle\n"
		   "     0.250   0   12.3   3271.40    58398  612.3 power+thermal 1.2345e-05\n"
		   "     0.260   1 120.0?         -        -      -        -          -\n",
		   text);
	free(text);
	begin(COUNTERS_CSV);
	metric(1, "sm", 2, "%");
	metric(2, "dram_read", 9, "B/s");
	CHECK(sample(0, 1250000000, 2, ids, values, 0) == 1);
	/* a metric that comes later has no column */
	metric(9, "late", 4, "%");
	CHECK(sample(0, 1350000000, 2, (const uint32_t[]){ 9, 2 }, values, 0) == 1);
	text = finish();
	CHECK_TEXT("time [s],gpu,sm [%],dram_read "
		   "[B/s]\n0.250000,0,12.34,3271400000000\n0.350000,0,,3271400000000\n",
		   text);
	free(text);
}

static void test_hostile(void)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY, 1e300, -1e300, 5e-324 };
	static const uint32_t ids[] = { 1, 2, 3, 4, 4000000000u, 1 };
	char *longest = malloc(60000), *text;

	memset(longest, 'x', 60000);
	for (int format = COUNTERS_TABLE; format <= COUNTERS_CSV; format++) {
		begin((enum counters_format)format);
		CHECK(metric(0, "zero", 4, "%") == 0);
		CHECK(metric(4000000000u, "far", 3, "%") == 0);
		CHECK(metric(1, "\033[31m,\"\n", 8, "\t\"") == 0);
		CHECK(metric(2, longest, 60000, "%") == 0);
		CHECK(metric(3, "", 0, "") == 0);
		CHECK(metric(4, "sum\0x", 5, "B/s") == 0);
		CHECK(metric(1, "again", 5, "%") == 0);
		for (uint32_t i = 0; i < 3000; i++)
			metric(i, "same", 4, "reasons");
		CHECK(sample(0, 0, 6, ids, odd, CT_VALUE_SUSPECT) == 1);
		CHECK(sample(CT_UNKNOWN, UINT64_MAX, 6, ids, odd, 0) == 1);
		CHECK(sample(0, 5, 1, (const uint32_t[]){ 700 }, (const double[]){ -1e300 }, 0) ==
		      1);
		CHECK(sample(0, 5, 0, NULL, NULL, 0) == 1);
		event(CT_UNKNOWN, 77, UINT64_MAX, "\033[2Jtext\n");
		event(3, CT_EVENT_XID, 13, "");
		text = finish();
		CHECK(!strchr(text, '\033'));
		free(text);
	}
	free(longest);
}

#ifdef HAVE_CUPTI
#define SAME(ours, last, theirs)                                \
	CHECK(SIZE(struct ours, last) == theirs##_STRUCT_SIZE); \
	CHECK(sizeof(struct ours) == sizeof(theirs))
#define AT(ours, member, theirs, their) \
	CHECK(offsetof(struct ours, member) == offsetof(theirs, their))

static void test_layouts(void)
{
	SAME(pm_config, append, CUpti_PmSampling_SetConfig_Params);
	AT(pm_config, buffer_bytes, CUpti_PmSampling_SetConfig_Params, hardwareBufferSize);
	AT(pm_config, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
	AT(pm_config, trigger, CUpti_PmSampling_SetConfig_Params, triggerMode);
	SAME(pm_enable, object, CUpti_PmSampling_Enable_Params);
	SAME(pm_object, object, CUpti_PmSampling_Disable_Params);
	SAME(pm_object, object, CUpti_PmSampling_Start_Params);
	SAME(pm_object, object, CUpti_PmSampling_Stop_Params);
	SAME(pm_decode, overflow, CUpti_PmSampling_DecodeData_Params);
	AT(pm_decode, stop_reason, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
	SAME(pm_availability, image, CUpti_PmSampling_GetCounterAvailability_Params);
	SAME(pm_data_size, bytes, CUpti_PmSampling_GetCounterDataSize_Params);
	AT(pm_data_size, samples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
	SAME(pm_data_init, data, CUpti_PmSampling_CounterDataImage_Initialize_Params);
	SAME(pm_data_info, completed, CUpti_PmSampling_GetCounterDataInfo_Params);
	SAME(pm_sample_info, end, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
	AT(pm_sample_info, sample, CUpti_PmSampling_CounterData_GetSampleInfo_Params, sampleIndex);
	CHECK((int)TRIGGER_TIME == (int)CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
}
#endif

/* What a spreadsheet would take as a formula. */
static void test_formulas(void)
{
	const uint32_t ids[] = { 1, 2, 3, 4, 5 };
	const double values[] = { -1, 2, 3, 4, 5 };
	char *text;

	begin(COUNTERS_CSV);
	CHECK(!metric(1, "=1+1", 4, "%"));
	CHECK(!metric(2, "@x", 2, "W"));
	CHECK(!metric(3, "-x", 2, "W"));
	CHECK(!metric(4, "+x", 2, "W"));
	CHECK(!metric(5, "x=y", 3, "W"));
	CHECK(sample(0, 2000000000, 5, ids, values, 0) == 1);
	text = finish();
	CHECK_TEXT(
		"time [s],gpu,'=1+1 [%],'@x [W],'-x [W],'+x [W],x=y [W]\n1.000000,0,-1,2,3,4,5\n",
		text);
	free(text);
}

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		abort();
	close(fd);
	RUN(test_units);
	RUN(test_formulas);
	RUN(test_hostile);
#ifdef HAVE_CUPTI
	RUN(test_layouts);
#endif
	unlink(path);
	return unit_end();
}
