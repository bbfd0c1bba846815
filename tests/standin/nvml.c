/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvml.c - a libnvidia-ml.so.1 that needs no driver: GPUs with readings that are always the same.
 * By the environment:
 *   STANDIN_NVML_INIT=N       nvmlInit_v2 fails with N
 *   STANDIN_NVML_DEVICES=N    so many GPUs; 2 otherwise
 *   STANDIN_NVML_GPM=WORD     off: not supported, denied: no permission, ends: fails after three
 *                             samples
 *   STANDIN_NVML_MODE=WORD    mig, cc: all GPUs are in that mode
 *   STANDIN_NVML_XID=N        GPU 1 has XID error N once, when the events are waited for
 *   STANDIN_NVML_REASONS=HEX  why clocks are held back
 *   STANDIN_NVML_PID=N       this process uses the GPUs
 *   STANDIN_NVML_HANG=1       nvmlDeviceGetPowerUsage never returns
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SUCCESS 0
#define INVALID 2
#define NOT_SUPPORTED 3
#define NO_PERMISSION 4
#define TIMEOUT 10
#define MAX_DEVICES 8

struct device {
	unsigned int index;
} devices[MAX_DEVICES];

static int is(const char *env, const char *word)
{
	const char *v = getenv(env);

	return v && !strcmp(v, word);
}

static unsigned int ndevices(void)
{
	const char *v = getenv("STANDIN_NVML_DEVICES");

	return v ? (unsigned int)atoi(v) : 2;
}

EXPORT int nvmlInit_v2(void)
{
	const char *v = getenv("STANDIN_NVML_INIT");

	for (unsigned int i = 0; i < MAX_DEVICES; i++)
		devices[i].index = i;
	return v ? atoi(v) : SUCCESS;
}

EXPORT const char *nvmlErrorString(int err)
{
	return err == 9		      ? "Driver Not Loaded"
	       : err == NO_PERMISSION ? "Insufficient Permissions"
				      : "Unknown Error";
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *v)
{
	*v = 13000;
	return SUCCESS;
}

EXPORT int nvmlSystemGetConfComputeState(unsigned int *state)
{
	state[0] = 0;
	state[1] = (unsigned int)is("STANDIN_NVML_MODE", "cc");
	state[2] = 0;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *n)
{
	*n = ndevices();
	return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, struct device **d)
{
	if (i >= ndevices() || i >= MAX_DEVICES)
		return INVALID;
	*d = &devices[i];
	return SUCCESS;
}

/* The last digit is the index: pmsampling.c has the same. */
EXPORT int nvmlDeviceGetUUID(struct device *d, char *text, unsigned int size)
{
	return snprintf(text, size, "GPU-01234567-89ab-cdef-0123-456789abcde%u", d->index) <
			       (int)size
		       ? SUCCESS
		       : 7;
}

EXPORT int nvmlDeviceGetName(struct device *d, char *text, unsigned int size)
{
	(void)d;
	return snprintf(text, size, "Stand-in GPU") < (int)size ? SUCCESS : 7;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(struct device *d, int *major, int *minor)
{
	(void)d;
	*major = 9;
	*minor = 0;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetMigMode(struct device *d, unsigned int *now, unsigned int *pending)
{
	(void)d;
	*now = *pending = (unsigned int)is("STANDIN_NVML_MODE", "mig");
	return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryBusWidth(struct device *d, unsigned int *bits)
{
	(void)d;
	*bits = 5120;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetMaxClockInfo(struct device *d, int type, unsigned int *mhz)
{
	(void)d;
	*mhz = type == 2 ? 3200 : 1980;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryInfo(struct device *d, unsigned long long *m)
{
	m[0] = 8ULL << 30;
	m[2] = (d->index + 1ULL) << 30;
	m[1] = m[0] - m[2];
	return SUCCESS;
}

struct process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

/* The process has 1 GiB of the first device and 256 MiB of each other one. */
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, unsigned int *n,
						   struct process *list)
{
	const char *pid = getenv("STANDIN_NVML_PID");
	unsigned int most = *n;

	*n = pid != NULL;
	if (*n > most)
		return 7;
	if (pid)
		list[0] = (struct process){ (unsigned int)atoi(pid),
					    d->index ? 256ULL << 20 : 1ULL << 30, 0, 0 };
	return SUCCESS;
}

EXPORT int nvmlDeviceGetUtilizationRates(struct device *d, unsigned int *use)
{
	if (is("STANDIN_NVML_MODE", "mig"))
		return NOT_SUPPORTED;
	use[0] = 87 + d->index;
	use[1] = 12;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetPowerUsage(struct device *d, unsigned int *mw)
{
	while (getenv("STANDIN_NVML_HANG"))
		pause();
	*mw = 250500 + 1000 * d->index;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetClockInfo(struct device *d, int type, unsigned int *mhz)
{
	(void)d;
	*mhz = type == 2 ? 2619 : 1755;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned int *c)
{
	if (sensor)
		return INVALID;
	*c = 45 + d->index;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *d, unsigned long long *reasons)
{
	const char *v = getenv("STANDIN_NVML_REASONS");

	(void)d;
	*reasons = v ? strtoull(v, NULL, 16) : 0;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetPcieThroughput(struct device *d, int which, unsigned int *kb)
{
	(void)d;
	*kb = which ? 2000000 : 1000000;
	return SUCCESS;
}

/* ---- events ---- */

struct event {
	struct device *device;
	unsigned long long type, data;
	unsigned int gpu_instance, compute_instance;
};

EXPORT int nvmlDeviceGetSupportedEventTypes(struct device *d, unsigned long long *types)
{
	(void)d;
	*types = 0x1f;
	return SUCCESS;
}

EXPORT int nvmlEventSetCreate(void **set)
{
	*set = devices;
	return SUCCESS;
}

EXPORT int nvmlDeviceRegisterEvents(struct device *d, unsigned long long types, void *set)
{
	return d && types == (0x1 | 0x2 | 0x8) && set == devices ? SUCCESS : INVALID;
}

EXPORT int nvmlEventSetWait_v2(void *set, struct event *e, unsigned int ms)
{
	static int reported;
	const char *v = getenv("STANDIN_NVML_XID");
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	(void)set;
	if (v && !reported++) {
		*e = (struct event){ &devices[1], 8, strtoull(v, NULL, 10), ~0u, ~0u };
		return SUCCESS;
	}
	nanosleep(&ts, NULL);
	return TIMEOUT;
}

/* ---- GPM ---- */

struct gpm_metric {
	unsigned int id;
	int result;
	double value;
	char *text[3];
};
struct gpm_get {
	unsigned int version, n;
	uint64_t *sample[2];
	struct gpm_metric metrics[];
};

EXPORT int nvmlGpmQueryDeviceSupport(struct device *d, unsigned int *support)
{
	(void)d;
	if (support[0] != 1)
		return INVALID;
	support[1] = !is("STANDIN_NVML_GPM", "off");
	return SUCCESS;
}

EXPORT int nvmlGpmSampleAlloc(uint64_t **sample)
{
	*sample = calloc(1, sizeof(**sample));
	return SUCCESS;
}

EXPORT int nvmlGpmSampleFree(uint64_t *sample)
{
	free(sample);
	return SUCCESS;
}

EXPORT int nvmlGpmSampleGet(struct device *d, uint64_t *sample)
{
	static unsigned int n;

	(void)d;
	if (is("STANDIN_NVML_GPM", "denied"))
		return NO_PERMISSION;
	if (is("STANDIN_NVML_GPM", "ends") && n >= 3)
		return 999;
	*sample = ++n;
	return SUCCESS;
}

/* The value of a metric is its number; the memory's would be over 100 %. */
EXPORT int nvmlGpmMetricsGet(struct gpm_get *g)
{
	if (g->version != 1 || !*g->sample[0] || *g->sample[1] <= *g->sample[0])
		return INVALID;
	for (unsigned int i = 0; i < g->n; i++) {
		g->metrics[i].result = g->metrics[i].id == 5 ? NOT_SUPPORTED : SUCCESS;
		g->metrics[i].value = g->metrics[i].id == 10 ? 110 : g->metrics[i].id;
	}
	return SUCCESS;
}
