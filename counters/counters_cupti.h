/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_cupti.h - what is used of CUPTI's PM sampling and host profiler interfaces, declared
 * here: CUPTI's own cupti_profiler_host.h cannot be included in C. Layouts as in CUPTI 12.6 to
 * 13.0. Every struct begins with its size, which ends behind its last member, not behind the
 * padding: SIZE().
 */
#ifndef CT_COUNTERS_CUPTI_H
#define CT_COUNTERS_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#define SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))
/* Each struct in a line, as a table. */
/* clang-format off */
#define HEAD size_t size; void *priv

enum { /* CUptiResult */
	CUPTI_SUCCESS = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_OUT_OF_MEMORY = 8,
	CUPTI_HARDWARE_BUSY = 26,
	CUPTI_NOT_SUPPORTED = 27,
	CUPTI_VIRTUALIZED = 33,
	CUPTI_PRIVILEGES = 35,
	CUPTI_VIRTUALIZED_PRIVILEGES = 40,
	CUPTI_CONFIDENTIAL = 41,
	CUPTI_CMP = 42,
	CUPTI_MIG = 43,
	CUPTI_SLI = 44,
	CUPTI_WSL = 45,
	CUPTI_CHIP = 46,
};
enum { HOST_PM_SAMPLING = 1 };					   /* CUpti_ProfilerType */
enum { HOST_COUNTER = 0, HOST_RATIO = 1, HOST_THROUGHPUT = 2, HOST_TYPES = 3 }; /* CUpti_MetricType */
enum { TRIGGER_SYSCLK = 0, TRIGGER_TIME = 1 };			   /* CUpti_PmSampling_TriggerMode */

struct cupti_initialize { HEAD; };
struct cupti_chip_name { HEAD; size_t device; const char *name; };
struct host_initialize { HEAD; int type; const char *chip; const uint8_t *availability; void *host; };
struct host_deinitialize { HEAD; void *host; };
struct host_base_metrics { HEAD; void *host; int type; const char **names; size_t n; };
struct host_properties { HEAD; void *host; const char *name, *description, *unit, *dimension; int type; };
struct host_add { HEAD; void *host; const char **names; size_t n; };
struct host_image_size { HEAD; void *host; size_t bytes; };
struct host_image { HEAD; void *host; size_t bytes; uint8_t *image; };
struct host_passes { HEAD; size_t bytes; uint8_t *image; size_t passes; };
struct host_evaluate { HEAD; void *host; const uint8_t *data; size_t bytes, sample; const char **names; size_t n; double *values; };
struct pm_availability { HEAD; size_t device, bytes; uint8_t *image; };
struct pm_enable { HEAD; size_t device; void *object; };
struct pm_object { HEAD; void *object; }; /* disable, start, stop */
struct pm_config {
	HEAD;
	void *object;
	size_t bytes;
	const uint8_t *image;
	size_t buffer_bytes;
	uint64_t interval;
	int trigger, append;
};
struct pm_decode { HEAD; void *object; uint8_t *data; size_t bytes; int stop_reason; uint8_t overflow; };
struct pm_data_size { HEAD; void *object; const char **names; size_t n; uint32_t samples; size_t bytes; };
struct pm_data_init { HEAD; void *object; size_t bytes; uint8_t *data; };
struct pm_data_info { HEAD; const uint8_t *data; size_t bytes, total, populated, completed; };
struct pm_sample_info { HEAD; void *object; const uint8_t *data; size_t bytes, sample; uint64_t start, end; };

#define CUPTI_FUNCTIONS(F)                                                                                             \
	F(cuptiProfilerInitialize, (struct cupti_initialize *))                                                        \
	F(cuptiDeviceGetChipName, (struct cupti_chip_name *))                                                          \
	F(cuptiActivityRegisterTimestampCallback, (uint64_t(*)(void)))                                                 \
	F(cuptiGetVersion, (uint32_t *))                                                                               \
	F(cuptiProfilerHostInitialize, (struct host_initialize *))                                                     \
	F(cuptiProfilerHostDeinitialize, (struct host_deinitialize *))                                                 \
	F(cuptiProfilerHostGetBaseMetrics, (struct host_base_metrics *))                                               \
	F(cuptiProfilerHostGetMetricProperties, (struct host_properties *))                                            \
	F(cuptiProfilerHostConfigAddMetrics, (struct host_add *))                                                      \
	F(cuptiProfilerHostGetConfigImageSize, (struct host_image_size *))                                             \
	F(cuptiProfilerHostGetConfigImage, (struct host_image *))                                                      \
	F(cuptiProfilerHostGetNumOfPasses, (struct host_passes *))                                                     \
	F(cuptiProfilerHostEvaluateToGpuValues, (struct host_evaluate *))                                              \
	F(cuptiPmSamplingGetCounterAvailability, (struct pm_availability *))                                           \
	F(cuptiPmSamplingEnable, (struct pm_enable *))                                                                 \
	F(cuptiPmSamplingDisable, (struct pm_object *))                                                                \
	F(cuptiPmSamplingSetConfig, (struct pm_config *))                                                              \
	F(cuptiPmSamplingStart, (struct pm_object *))                                                                  \
	F(cuptiPmSamplingStop, (struct pm_object *))                                                                   \
	F(cuptiPmSamplingDecodeData, (struct pm_decode *))                                                             \
	F(cuptiPmSamplingGetCounterDataSize, (struct pm_data_size *))                                                  \
	F(cuptiPmSamplingCounterDataImageInitialize, (struct pm_data_init *))                                          \
	F(cuptiPmSamplingGetCounterDataInfo, (struct pm_data_info *))                                                  \
	F(cuptiPmSamplingCounterDataGetSampleInfo, (struct pm_sample_info *))
/* clang-format on */

#define DECLARE_CUPTI(name, args) int(*name) args;
struct cupti {
	CUPTI_FUNCTIONS(DECLARE_CUPTI)
};
extern struct cupti cupti; /* counters_pm.c; all there once pm_load() returned NULL */

/* ---- counters_host.c: what needs no device ---- */

struct host {
	void *object;
	uint8_t *image; /* of the configuration */
	size_t image_bytes, passes;
};
/* Configures the metrics for a chip. 0 with host_close() due, or a CUptiResult;
 * CUPTI_INVALID_PARAMETER: a name that the chip does not have. */
int host_open(struct host *, const char *chip, const uint8_t *availability, const char **names,
	      size_t n);
void host_close(struct host *);
/* "byte", "percent"...; NULL: not known. */
const char *host_dimension(const struct host *, const char *name);
bool host_knows(const char *chip);
/* Lists the chip's metrics that fit one pass. */
void host_help(const char *chip);

#endif
