/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pmsampling.c - a libcupti that has PM sampling alone, for the GPUs of nvml.c, and the little of
 * libcuda that says in which order CUDA has them: the other way round. Samples come at the interval
 * that was asked for, on CLOCK_REALTIME; their values are always the same. By the environment:
 *   STANDIN_PM_ERROR=N        listing the counters fails with the CUptiResult N
 *   STANDIN_PM_ENABLE=N       so does enabling
 *   STANDIN_PM_CHIP=NAME      GH100 otherwise; TU102 has no trigger by time
 *   STANDIN_PM_OVERFLOW=N     the hardware's buffer overflows at the Nth decoding
 *   STANDIN_PM_FAIL=N         the Nth decoding fails for good
 *   STANDIN_PM_MANY=1         all samples that are due come at a decoding, not one
 *   STANDIN_PM_SUSPECT=1      sm is over 100 %
 *   STANDIN_PM_CLOCK=WORD     monotonic: times on that clock; own: on one that nobody knows
 * Every struct's size is checked as CUPTI checks it: a wrong one is an invalid parameter.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../counters/counters_cupti.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_SAMPLES 100000
#define CHECKED(p, type, last)                          \
	if ((p)->size != SIZE(type, last) || (p)->priv) \
	return CUPTI_INVALID_PARAMETER

static uint64_t (*callback)(void);

static uint64_t now_ns(void)
{
	const char *clock = getenv("STANDIN_PM_CLOCK");
	struct timespec ts;

	if (callback)
		return callback();
	clock_gettime(clock ? CLOCK_MONOTONIC : CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec +
	       (clock && !strcmp(clock, "own") ? 1ull << 50 : 0);
}

static int knob(const char *env)
{
	const char *v = getenv(env);

	return v ? atoi(v) : 0;
}

static const char *chip(void)
{
	const char *v = getenv("STANDIN_PM_CHIP");

	return v ? v : "GH100";
}

/* ---- libcuda ---- */

EXPORT int cuInit(unsigned int flags)
{
	return (int)flags;
}

EXPORT int cuDeviceGetCount(int *n)
{
	*n = getenv("STANDIN_NVML_DEVICES") ? knob("STANDIN_NVML_DEVICES") : 2;
	return 0;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

/* CUDA's first is NVML's last. */
static int nvml_index(int ordinal)
{
	int n;

	cuDeviceGetCount(&n);
	return n - 1 - ordinal;
}

EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
	static const unsigned char base[16] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
						0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xe0 };

	memcpy(uuid, base, sizeof(base));
	uuid[15] = (unsigned char)(0xe0 | nvml_index(device));
	return 0;
}

/* ---- the host profiler ---- */

/* What the chip has: a name's beginning, the passes that it needs, its value; a value below 0: a
 * sum, of so much a second. */
static const struct known {
	const char *name;
	size_t passes;
	double value;
	const char *dimension;
} known[] = {
	{ "gr__cycles_active", 1, 50, "percent" },
	{ "sm__cycles_active", 1, 40, "percent" },
	{ "TPC.TriageCompute.tpc__warps_active_realtime", 1, 30, "percent" },
	{ "sm__pipe_tensor_cycles_active", 4, 0, "percent" },
	{ "dram__throughput", 1, 25, "percent" },
	{ "dram__bytes_read", 1, -1e9, "byte" },
	{ "dram__bytes_write", 1, -2e9, "byte" },
	{ "lts__average_t_sector_hit_rate_realtime", 1, 75, "percent" },
	{ "pcie__read_bytes", 1, -3e9, "byte" },
	{ "pcie__write_bytes", 1, -4e9, "byte" },
	{ "sm__inst_executed", 1, 7, "inst" },
	{ "sm__throughput", 19, 0, "percent" },
};

static const struct known *find(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].name);

		if (!strncmp(name, known[i].name, n) && (name[n] == '.' || !name[n]))
			return &known[i];
	}
	return NULL;
}

struct host_object {
	size_t passes;
};

EXPORT int cuptiProfilerHostInitialize(struct host_initialize *p)
{
	CHECKED(p, struct host_initialize, host);
	if (p->type != HOST_PM_SAMPLING || strcmp(p->chip, chip()))
		return CUPTI_CHIP;
	p->host = calloc(1, sizeof(struct host_object));
	return CUPTI_SUCCESS;
}

EXPORT int cuptiProfilerHostDeinitialize(struct host_deinitialize *p)
{
	CHECKED(p, struct host_deinitialize, host);
	free(p->host);
	return CUPTI_SUCCESS;
}

EXPORT int cuptiProfilerHostGetBaseMetrics(struct host_base_metrics *p)
{
	static const char *names[sizeof(known) / sizeof(known[0])];

	CHECKED(p, struct host_base_metrics, n);
	p->names = names;
	p->n = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && p->type == HOST_COUNTER; i++)
		names[p->n++] = known[i].name;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiProfilerHostGetMetricProperties(struct host_properties *p)
{
	const struct known *k = find(p->name);

	CHECKED(p, struct host_properties, type);
	if (!k)
		return CUPTI_INVALID_PARAMETER;
	p->description = "as the stand-in has it";
	p->unit = "unit";
	p->dimension = k->dimension;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiProfilerHostConfigAddMetrics(struct host_add *p)
{
	struct host_object *h = p->host;

	CHECKED(p, struct host_add, n);
	h->passes = 1;
	for (size_t i = 0; i < p->n; i++) {
		const struct known *k = find(p->names[i]);

		if (!k || !strchr(p->names[i], '.'))
			return CUPTI_INVALID_PARAMETER;
		if (k->passes > h->passes)
			h->passes = k->passes;
	}
	return CUPTI_SUCCESS;
}

EXPORT int cuptiProfilerHostGetConfigImageSize(struct host_image_size *p)
{
	CHECKED(p, struct host_image_size, bytes);
	p->bytes = sizeof(size_t);
	return CUPTI_SUCCESS;
}

EXPORT int cuptiProfilerHostGetConfigImage(struct host_image *p)
{
	CHECKED(p, struct host_image, image);
	memcpy(p->image, &((struct host_object *)p->host)->passes, sizeof(size_t));
	return CUPTI_SUCCESS;
}

EXPORT int cuptiProfilerHostGetNumOfPasses(struct host_passes *p)
{
	CHECKED(p, struct host_passes, passes);
	memcpy(&p->passes, p->image, sizeof(size_t));
	return CUPTI_SUCCESS;
}

/* ---- PM sampling ---- */

struct data { /* the counter data image */
	void *object;
	size_t n;
	uint64_t start[MAX_SAMPLES], end[MAX_SAMPLES];
};
struct object {
	bool enabled, configured, started, overflowed;
	uint64_t interval, at;
	uint32_t slots;
	int decoded;
} objects[8];

EXPORT int cuptiProfilerInitialize(struct cupti_initialize *p)
{
	CHECKED(p, struct cupti_initialize, priv);
	return CUPTI_SUCCESS;
}

EXPORT int cuptiGetVersion(uint32_t *v)
{
	*v = 130001;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*fn)(void))
{
	callback = fn;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiDeviceGetChipName(struct cupti_chip_name *p)
{
	CHECKED(p, struct cupti_chip_name, name);
	p->name = chip();
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingGetCounterAvailability(struct pm_availability *p)
{
	CHECKED(p, struct pm_availability, image);
	p->bytes = 8;
	return knob("STANDIN_PM_ERROR");
}

EXPORT int cuptiPmSamplingEnable(struct pm_enable *p)
{
	CHECKED(p, struct pm_enable, object);
	if (knob("STANDIN_PM_ENABLE"))
		return knob("STANDIN_PM_ENABLE");
	if (objects[p->device].enabled)
		return 7;
	objects[p->device] =
		(struct object){ .enabled = true, .decoded = objects[p->device].decoded };
	p->object = &objects[p->device];
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingDisable(struct pm_object *p)
{
	CHECKED(p, struct pm_object, object);
	((struct object *)p->object)->enabled = false;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingSetConfig(struct pm_config *p)
{
	struct object *o = p->object;
	size_t passes;

	/* An older CUPTI's: without the last member. */
	CHECKED(p, struct pm_config, trigger);
	memcpy(&passes, p->image, sizeof(passes));
	if (passes != 1 || (p->trigger == TRIGGER_TIME && !strncmp(chip(), "TU", 2)))
		return CUPTI_NOT_SUPPORTED;
	/* A system clock of 1.2 GHz. */
	o->interval = p->trigger == TRIGGER_TIME ? p->interval : p->interval * 10 / 12;
	o->configured = true;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingStart(struct pm_object *p)
{
	struct object *o = p->object;

	CHECKED(p, struct pm_object, object);
	if (!o->configured || o->started)
		return 7;
	o->started = true;
	o->at = now_ns();
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingStop(struct pm_object *p)
{
	CHECKED(p, struct pm_object, object);
	((struct object *)p->object)->started = false;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingGetCounterDataSize(struct pm_data_size *p)
{
	CHECKED(p, struct pm_data_size, bytes);
	if (p->samples > MAX_SAMPLES)
		return CUPTI_OUT_OF_MEMORY;
	((struct object *)p->object)->slots = p->samples;
	p->bytes = sizeof(struct data);
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingCounterDataImageInitialize(struct pm_data_init *p)
{
	struct data *d = (struct data *)p->data;

	CHECKED(p, struct pm_data_init, data);
	d->object = p->object;
	d->n = 0;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingDecodeData(struct pm_decode *p)
{
	struct object *o = p->object;
	struct data *d = (struct data *)p->data;
	uint64_t now = now_ns();

	CHECKED(p, struct pm_decode, overflow);
	p->overflow = 0;
	o->decoded++;
	if (o->decoded == knob("STANDIN_PM_OVERFLOW"))
		o->overflowed = true;
	if (o->decoded == knob("STANDIN_PM_FAIL"))
		return 999;
	if (o->overflowed) {
		p->overflow = 1;
		return CUPTI_OUT_OF_MEMORY;
	}
	/* One without any time, as comes at a stop; then one a decoding, so that each is the
	 * latest when NVML is read. */
	d->start[0] = d->end[0] = o->at;
	d->n = 1;
	while (o->at + o->interval <= now && d->n < (getenv("STANDIN_PM_MANY") ? o->slots : 2)) {
		d->start[d->n] = o->at;
		o->at += o->interval;
		d->end[d->n++] = o->at;
	}
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingGetCounterDataInfo(struct pm_data_info *p)
{
	CHECKED(p, struct pm_data_info, completed);
	p->total = MAX_SAMPLES;
	p->populated = p->completed = ((const struct data *)p->data)->n;
	return CUPTI_SUCCESS;
}

EXPORT int cuptiPmSamplingCounterDataGetSampleInfo(struct pm_sample_info *p)
{
	const struct data *d = (const struct data *)p->data;

	CHECKED(p, struct pm_sample_info, end);
	if (p->sample >= d->n)
		return CUPTI_INVALID_PARAMETER;
	p->start = d->start[p->sample];
	p->end = d->end[p->sample];
	return CUPTI_SUCCESS;
}

EXPORT int cuptiProfilerHostEvaluateToGpuValues(struct host_evaluate *p)
{
	const struct data *d = (const struct data *)p->data;

	CHECKED(p, struct host_evaluate, values);
	if (p->sample >= d->n)
		return CUPTI_INVALID_PARAMETER;
	for (size_t i = 0; i < p->n; i++) {
		const struct known *k = find(p->names[i]);
		double v = k ? k->value : 0;

		/* GPU 1 of NVML, CUDA's first, has one more of everything. */
		if (v >= 0)
			v += d->object == &objects[0];
		else
			v = -v * (double)(d->end[p->sample] - d->start[p->sample]) / 1e9;
		if (k == &known[1] && getenv("STANDIN_PM_SUSPECT"))
			v = 130;
		p->values[i] = v;
	}
	return CUPTI_SUCCESS;
}
