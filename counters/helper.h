/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper.h - what the parts of the counters' helper share.
 *
 * The helper is a small program of its own, because a static program must not load libraries. It
 * links nothing but the C library (no symbol of it newer than 2.17) and finds NVML, the driver
 * and CUPTI by name when it runs. It knows nothing of cudatrace but its wire (wire/cudatrace.h,
 * counters_wire.h).
 */
#ifndef CT_COUNTERS_H
#define CT_COUNTERS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../wire/cudatrace.h"
#include "../wire/counters_wire.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define COUNTERS_DEVICES 64 /* at most */
#define COUNTERS_METRICS 64 /* of one device at most */
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

/* ---- sending (counters_send.c) ---- */

void send_open(int fd);
/* Queues a complete record for the next send_flush(). From any thread. Never blocks: records that
 * do not fit are counted and reported later with a CT_LOST. */
void send_record(const void *rec);
void send_flush(void);
/* The same for definitions, to which later records refer: waits for room, at most one second. */
void send_definition(const void *rec);
/* A message for people, one sentence. Waits for room, a second at most. */
void send_text(enum counters_level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void send_kind(enum counters_kind);
/* `n` samples were lost; the next send_record() reports them. */
void send_lost(uint64_t n, enum ct_loss);
/* False once cudatrace is gone: there is nobody to sample for. */
bool send_alive(void);

uint64_t clock_ns(int clock);
/* CLOCK_REALTIME - CLOCK_MONOTONIC, the reading bracketed; *error_ns: at most so far off. */
int64_t clock_offset_ns(uint64_t *error_ns);

/* ---- which metrics (counters_metrics.c) ---- */

/* PER_SECOND: a sum over the sample, divided by its duration */
enum scale { SCALE_NONE, SCALE_PER_SECOND };
enum nvml_value { /* what NVML is asked for */
		  NVML_NOT,
		  NVML_GPU,
		  NVML_MEMORY_BUSY,
		  NVML_PCIE_RX,
		  NVML_PCIE_TX,
		  NVML_POWER,
		  NVML_SM_CLOCK,
		  NVML_MEM_CLOCK,
		  NVML_TEMPERATURE,
		  NVML_MEM_USED,
		  NVML_REASONS,
		  NVML_MEM_PROCESS, /* of each process: samples of their own */
};

struct metric_row {
	const char *name, *unit;
	const char *help;
	/* CUPTI's names, the first that the chip has is taken; NULL: none; NULL-terminated */
	const char *const *pm;
	enum scale pm_scale;
	uint16_t gpm; /* nvmlGpmMetricId_t; 0: none */
	double gpm_factor;
	enum nvml_value nvml;
};
extern const struct metric_row metric_rows[];
extern const int metric_nrows;

/* One of the metrics that were asked for. */
struct wanted {
	const struct metric_row *row; /* NULL: one of CUPTI's own, by its name */
	const char *name;
	/* the user named it: it is an error if CUPTI has it but the hardware has no room for it */
	bool asked;
};
extern struct wanted wanted[COUNTERS_METRICS];
extern int nwanted;
/* Takes `list` apart ("": the usual ones; "default" in it stands for them). False after an error
 * was sent. */
bool metrics_parse(const char *list);
/* The trace's number of a metric by a source; the CT_METRIC is sent with the first. 0: no room. */
uint32_t metric_id(const char *name, const char *unit, enum ct_metric_source);
/* The unit of one of CUPTI's own metrics. */
const char *metric_unit(const char *pm_name, const char *dimension, char *buf, size_t size);
/* CT_VALUE_*: whether a value of that unit can be true. `most`: a bound that is known, or 0. */
uint32_t metric_doubt(const char *unit, double value, double most);

/* ---- devices ---- */

struct pm;
struct gpm;
struct device {
	uint32_t index; /* NVML's */
	void *nvml;	/* nvmlDevice_t */
	int ordinal;	/* CUDA's; -1: CUDA does not know it */
	uint8_t uuid[16];
	char name[96];
	uint64_t memory_bytes, bandwidth; /* bytes/s */
	int major, minor;
	bool mig, confidential;
	struct pm *pm;
	struct gpm *gpm;
	uint64_t reasons; /* why the clocks are held back, as last told */
	bool reasons_known;
	uint64_t given;	    /* bit i: PM sampling or GPM gives wanted[i] */
	uint64_t read_ns;   /* when NVML was last read; 0: never */
	uint64_t start_ns;  /* of the sample under way, where it is ours to make */
	uint64_t due_ns;    /* when it ends */
	uint64_t period_ns; /* between two samples */
};

/* A sample under way. */
union sample {
	struct ct_counter c;
	char room[sizeof(struct ct_counter) + COUNTERS_METRICS * sizeof(struct ct_value)];
};
void sample_begin(union sample *, const struct device *, uint64_t start_ns, uint64_t end_ns);
void sample_add(union sample *, uint32_t id, double value, uint32_t flags);
void sample_send(union sample *);

/* ---- NVML (counters_nvml.c) ---- */

/* Loads and starts NVML. False after an error was sent. */
bool nvml_open(void);
int nvml_devices(struct device *, int max);
/* CUDA's version from the driver, for example 13000. 0: not known. */
int nvml_cuda_version(void);
/* Returns whether NVML has wanted[i] on this device; if so, sends its CT_METRIC. */
void nvml_announce(struct device *, int i);
/* Adds the wanted metrics that only NVML gives; at most every 100 ms. */
void nvml_add(struct device *, union sample *);
/* Events of all devices, in a thread of their own, until the process ends. */
void nvml_events(const struct device *, int n);

/* NULL: not to be had; *why: the end of a sentence */
struct gpm *gpm_open(struct device *, const char **why);
/* Begins a sample with the metrics since the last call. False: there are none, and the sample
 * was not begun. */
bool gpm_add(struct device *, union sample *);
int gpm_failed(const struct device *); /* how often in a row */

/* ---- CUPTI (counters_pm.c, counters_find.c) ---- */

/* Loads CUPTI and the driver. `path`: as the user gave it, or "". NULL when all is well, or why
 * there is none. */
const char *pm_load(const char *path, int cuda_version);
/* CUDA's ordinals of the devices, by UUID. */
void pm_ordinals(struct device *, int n);
/* Starts sampling and sets d->pm, or *why says why not. Returns false if a metric that the user
 * named is not available: an error was sent. */
bool pm_open(struct device *, uint64_t interval_ns, const char **why);
/* Sends the CT_METRIC of wanted[i], which PM sampling gives. */
void pm_announce(struct device *, int i);
/* From here on there are samples. False: there are none, a message was sent, and d->pm is NULL. */
bool pm_start(struct device *);
void pm_close(struct device *);
/* Sends what was sampled since the last call; the NVML values go with the last. d->pm is NULL
 * when it was the last call. */
void pm_drain(struct device *);
/* The list of metrics of a chip (NULL: the first device's). False after an error was sent. */
bool pm_help(const char *chip, const struct device *, int n);

struct cupti_found {
	char path[512];
	void *handle;
};
/* Finds and loads libcupti, with libnvperf_host of the same directory before it. NULL, or why not. */
const char *cupti_find(struct cupti_found *, const char *path, int cuda_major);

#endif
