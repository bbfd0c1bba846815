/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_nvml.c - what NVML tells: which devices there are, readings (power, clocks, ...), GPM,
 * and events.
 *
 * The functions are found by name; one that a driver lacks is as one that answers "not
 * supported". Layouts and numbers are those of nvml.h; NVML keeps them between versions (what
 * changes gets a _vN, or a version in its first word).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "helper.h"

#define NVML_SUCCESS 0
#define NVML_NOT_SUPPORTED 3
#define NVML_NO_PERMISSION 4
#define NVML_DRIVER_NOT_LOADED 9
#define NVML_TIMEOUT 10
#define NVML_GPU_LOST 15
#define NVML_MISMATCH 18

#define NVML_CLOCK_SM 1
#define NVML_CLOCK_MEM 2
#define NVML_TEMPERATURE_GPU 0
#define PCIE_TX_COUNTER 0
#define PCIE_RX_COUNTER 1
/* how often at most; a reading costs tens of microseconds, PCIe's 20 ms */
#define NVML_READ_NS (100 * NS_PER_MS)

/* nvmlEventType* */
#define EVENT_ECC_SINGLE 0x1ULL
#define EVENT_ECC_DOUBLE 0x2ULL
#define EVENT_XID 0x8ULL

struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_process {
	unsigned int pid;
	unsigned long long used; /* all bits set: not known */
	unsigned int gpu_instance, compute_instance;
};
struct nvml_utilization {
	unsigned int gpu, memory;
};
struct nvml_event {
	void *device;
	unsigned long long type, data;
	unsigned int gpu_instance, compute_instance;
};
struct nvml_confidential {
	unsigned int environment, feature, devtools;
};
struct gpm_metric {
	unsigned int id;
	int result;
	double value;
	char *short_name, *long_name, *unit;
};
#define GPM_ROOM 1024 /* more than any nvml.h has: NVML may look at them all */
struct gpm_get {
	unsigned int version, n;
	void *sample1, *sample2;
	struct gpm_metric metrics[GPM_ROOM];
};
struct gpm_support {
	unsigned int version, supported;
};

/* The functions: name, arguments. */
#define NVML_FUNCTIONS(F)                                                            \
	F(nvmlInit_v2, (void))                                                       \
	F(nvmlErrorString, (int))                                                    \
	F(nvmlSystemGetCudaDriverVersion_v2, (int *))                                \
	F(nvmlSystemGetConfComputeState, (struct nvml_confidential *))               \
	F(nvmlDeviceGetCount_v2, (unsigned int *))                                   \
	F(nvmlDeviceGetHandleByIndex_v2, (unsigned int, void **))                    \
	F(nvmlDeviceGetUUID, (void *, char *, unsigned int))                         \
	F(nvmlDeviceGetName, (void *, char *, unsigned int))                         \
	F(nvmlDeviceGetCudaComputeCapability, (void *, int *, int *))                \
	F(nvmlDeviceGetMigMode, (void *, unsigned int *, unsigned int *))            \
	F(nvmlDeviceGetMemoryBusWidth, (void *, unsigned int *))                     \
	F(nvmlDeviceGetMaxClockInfo, (void *, int, unsigned int *))                  \
	F(nvmlDeviceGetMemoryInfo, (void *, struct nvml_memory *))                   \
	F(nvmlDeviceGetComputeRunningProcesses_v3,                                   \
	  (void *, unsigned int *, struct nvml_process *))                           \
	F(nvmlDeviceGetUtilizationRates, (void *, struct nvml_utilization *))        \
	F(nvmlDeviceGetPowerUsage, (void *, unsigned int *))                         \
	F(nvmlDeviceGetClockInfo, (void *, int, unsigned int *))                     \
	F(nvmlDeviceGetTemperature, (void *, int, unsigned int *))                   \
	F(nvmlDeviceGetCurrentClocksEventReasons, (void *, unsigned long long *))    \
	F(nvmlDeviceGetCurrentClocksThrottleReasons, (void *, unsigned long long *)) \
	F(nvmlDeviceGetPcieThroughput, (void *, int, unsigned int *))                \
	F(nvmlDeviceGetSupportedEventTypes, (void *, unsigned long long *))          \
	F(nvmlEventSetCreate, (void **))                                             \
	F(nvmlDeviceRegisterEvents, (void *, unsigned long long, void *))            \
	F(nvmlEventSetWait_v2, (void *, struct nvml_event *, unsigned int))          \
	F(nvmlGpmQueryDeviceSupport, (void *, struct gpm_support *))                 \
	F(nvmlGpmSampleAlloc, (void **))                                             \
	F(nvmlGpmSampleFree, (void *))                                               \
	F(nvmlGpmSampleGet, (void *, void *))                                        \
	F(nvmlGpmMetricsGet, (struct gpm_get *))

#define DECLARE(name, args) int(*name) args;
static struct {
	NVML_FUNCTIONS(DECLARE)
} nvml;

/* A call of a function that may not be there. */
#define CALL(name, ...) (nvml.name ? nvml.name(__VA_ARGS__) : NVML_NOT_SUPPORTED)

static const char *nvml_error(int err)
{
	const char *(*text)(int) = (const char *(*)(int))(void *)nvml.nvmlErrorString;
	const char *s = text ? text(err) : NULL;

	return s ? s : "unknown error";
}

/* What to do about it, as the end of a sentence. */
static const char *nvml_remedy(int err)
{
	switch (err) {
	case NVML_DRIVER_NOT_LOADED:
		return ": load the kernel module (modprobe nvidia), or run where a GPU is";
	case NVML_NO_PERMISSION:
		return ": run as root, or give this user read and write access to /dev/nvidiactl "
		       "and /dev/nvidia*";
	case NVML_MISMATCH:
		return ": the driver was updated under the loaded kernel module; reload it or "
		       "reboot";
	default: return "";
	}
}

bool nvml_open(void)
{
	static const char *const paths[] = { "libnvidia-ml.so.1",
					     "/usr/lib/wsl/lib/libnvidia-ml.so.1",
					     "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
					     "/run/opengl-driver/lib/libnvidia-ml.so.1" };
	void *lib = NULL;
	int err;

	for (size_t i = 0; i < ARRAY_LEN(paths) && !lib; i++)
		lib = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		send_text(COUNTERS_ERROR, "no counters: libnvidia-ml.so.1 (NVML) was not found; it "
					  "is part of NVIDIA's driver, and in a container needs "
					  "the 'utility' driver capability");
		return false;
	}
#define RESOLVE(name, args) *(void **)&nvml.name = dlsym(lib, #name);
	NVML_FUNCTIONS(RESOLVE)
	err = CALL(nvmlInit_v2);
	if (err) {
		send_text(COUNTERS_ERROR, "no counters: NVML does not start (%s)%s",
			  nvml_error(err), nvml_remedy(err));
		return false;
	}
	return true;
}

int nvml_cuda_version(void)
{
	int v = 0;

	return CALL(nvmlSystemGetCudaDriverVersion_v2, &v) ? 0 : v;
}

/* ---- devices ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* "GPU-01234567-89ab-...": 32 digits. */
static void parse_uuid(const char *text, uint8_t uuid[16])
{
	uint8_t out[16] = { 0 };
	int n = 0;

	text = strchr(text, '-');
	for (; text && *text && n < 32; text++) {
		int d = hex(*text);

		if (d < 0)
			continue;
		out[n / 2] = (uint8_t)(out[n / 2] << 4 | d);
		n++;
	}
	if (n == 32)
		memcpy(uuid, out, sizeof(out));
}

static void device_facts(struct device *d)
{
	struct nvml_confidential cc = { 0 };
	struct nvml_memory mem = { 0 };
	unsigned int mig = 0, pending, width = 0, clock = 0;
	char uuid[96] = "";

	if (!CALL(nvmlDeviceGetUUID, d->nvml, uuid, sizeof(uuid)))
		parse_uuid(uuid, d->uuid);
	if (CALL(nvmlDeviceGetName, d->nvml, d->name, sizeof(d->name)))
		strcpy(d->name, "GPU");
	CALL(nvmlDeviceGetCudaComputeCapability, d->nvml, &d->major, &d->minor);
	if (!CALL(nvmlDeviceGetMemoryInfo, d->nvml, &mem))
		d->memory_bytes = mem.total;
	/* Two transfers a clock. */
	if (!CALL(nvmlDeviceGetMemoryBusWidth, d->nvml, &width) &&
	    !CALL(nvmlDeviceGetMaxClockInfo, d->nvml, NVML_CLOCK_MEM, &clock))
		d->bandwidth = (uint64_t)width / 8 * clock * 1000000 * 2;
	d->mig = !CALL(nvmlDeviceGetMigMode, d->nvml, &mig, &pending) && mig == 1;
	d->confidential = !CALL(nvmlSystemGetConfComputeState, &cc) && cc.feature && !cc.devtools;
}

static void send_device(const struct device *d)
{
	union {
		struct ct_device d;
		char room[sizeof(struct ct_device) + sizeof(d->name)];
	} r;
	unsigned int clock = 0;

	memset(&r, 0, sizeof(r));
	r.d.h.kind = CT_DEVICE;
	r.d.h.start_ns = r.d.h.end_ns = clock_ns(CLOCK_MONOTONIC);
	r.d.id = d->index;
	memcpy(r.d.uuid, d->uuid, sizeof(d->uuid));
	r.d.memory_bytes = d->memory_bytes;
	r.d.bandwidth = d->bandwidth;
	r.d.major = (uint32_t)d->major;
	r.d.minor = (uint32_t)d->minor;
	if (!CALL(nvmlDeviceGetMaxClockInfo, d->nvml, NVML_CLOCK_SM, &clock))
		r.d.clock_khz = clock * 1000;
	r.d.name_len = (uint32_t)strlen(d->name);
	memcpy(r.d.name, d->name, r.d.name_len);
	r.d.h.size = (__u16)((sizeof(r.d) + r.d.name_len + 7) & ~(size_t)7);
	send_definition(&r.d);
}

int nvml_devices(struct device *devices, int max)
{
	unsigned int count = 0;
	int n = 0, err = CALL(nvmlDeviceGetCount_v2, &count);

	for (unsigned int i = 0; !err && i < count && n < max; i++) {
		struct device *d = &devices[n];
		int e;

		memset(d, 0, sizeof(*d));
		d->index = i;
		d->ordinal = -1;
		e = CALL(nvmlDeviceGetHandleByIndex_v2, i, &d->nvml);
		if (e) {
			send_text(COUNTERS_WARN, "GPU %u is left out: NVML does not open it (%s)%s",
				  i, nvml_error(e), nvml_remedy(e));
			continue;
		}
		device_facts(d);
		send_device(d);
		n++;
	}
	if (err)
		send_text(COUNTERS_ERROR, "no counters: NVML does not count the GPUs (%s)%s",
			  nvml_error(err), nvml_remedy(err));
	else if (!n)
		send_text(COUNTERS_ERROR, "no counters: NVML finds no GPU that this user may use");
	return n;
}

/* ---- readings ---- */

/* Reasons that hold clocks below what was asked for: not idle, not the user's own setting, not
 * the display's. */
#define REASONS_SLOW 0x6fcULL

static const char *reason_word(uint64_t bit)
{
	static const struct {
		uint64_t bit;
		const char *word;
	} words[] = {
		{ 0x4, "power cap" },		{ 0x8, "hardware slowdown" },
		{ 0x10, "sync boost" },		{ 0x20, "thermal (software)" },
		{ 0x40, "thermal (hardware)" }, { 0x80, "power brake" },
		{ 0x200, "board limit" },	{ 0x400, "reliability" },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (words[i].bit == bit)
			return words[i].word;
	return "unknown";
}

static void send_event(uint32_t device, enum ct_event_type type, uint64_t code, const char *text)
{
	union {
		struct ct_event e;
		char room[sizeof(struct ct_event) + 256];
	} r;
	size_t len = strnlen(text, 248);

	memset(&r, 0, sizeof(r));
	r.e.h.kind = CT_EVENT;
	r.e.h.size = (__u16)((sizeof(r.e) + len + 7) & ~(size_t)7);
	r.e.h.start_ns = r.e.h.end_ns = clock_ns(CLOCK_MONOTONIC);
	r.e.device = device;
	r.e.type = type;
	r.e.code = code;
	r.e.text_len = (uint32_t)len;
	memcpy(r.e.text, text, len);
	send_record(&r.e);
	send_flush();
}

/* An event when what holds the clocks back has changed; the first reading only if something does. */
static void watch_reasons(struct device *d, uint64_t all)
{
	uint64_t now = all & REASONS_SLOW, before = d->reasons_known ? d->reasons : 0;
	char text[248];
	size_t n;

	d->reasons = now;
	d->reasons_known = true;
	if (now == before)
		return;
	n = (size_t)snprintf(text, sizeof(text),
			     now ? "clocks are held back by" : "clocks are no longer held back");
	for (uint64_t bit = 1; bit <= 0x400; bit <<= 1)
		if (now & bit && n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s",
					      now & (bit - 1) ? "," : "", reason_word(bit));
	send_event(d->index, CT_EVENT_CLOCK, now, text);
}

/* False: not to be had. */
static bool reading(struct device *d, enum nvml_value what, double *value)
{
	struct nvml_utilization use;
	struct nvml_memory mem;
	unsigned long long reasons;
	unsigned int u;

	switch (what) {
	case NVML_GPU:
	case NVML_MEMORY_BUSY:
		if (CALL(nvmlDeviceGetUtilizationRates, d->nvml, &use))
			return false;
		*value = what == NVML_GPU ? use.gpu : use.memory;
		return true;
	case NVML_PCIE_RX:
	case NVML_PCIE_TX:
		if (CALL(nvmlDeviceGetPcieThroughput, d->nvml,
			 what == NVML_PCIE_RX ? PCIE_RX_COUNTER : PCIE_TX_COUNTER, &u))
			return false;
		*value = u * 1000.0; /* KB/s */
		return true;
	case NVML_POWER:
		if (CALL(nvmlDeviceGetPowerUsage, d->nvml, &u))
			return false;
		*value = u / 1000.0;
		return true;
	case NVML_SM_CLOCK:
	case NVML_MEM_CLOCK:
		if (CALL(nvmlDeviceGetClockInfo, d->nvml,
			 what == NVML_SM_CLOCK ? NVML_CLOCK_SM : NVML_CLOCK_MEM, &u))
			return false;
		*value = u;
		return true;
	case NVML_TEMPERATURE:
		if (CALL(nvmlDeviceGetTemperature, d->nvml, NVML_TEMPERATURE_GPU, &u))
			return false;
		*value = u;
		return true;
	case NVML_MEM_USED:
		if (CALL(nvmlDeviceGetMemoryInfo, d->nvml, &mem))
			return false;
		*value = (double)mem.used;
		return true;
	case NVML_REASONS:
		if (CALL(nvmlDeviceGetCurrentClocksEventReasons, d->nvml, &reasons) &&
		    CALL(nvmlDeviceGetCurrentClocksThrottleReasons, d->nvml, &reasons))
			return false;
		watch_reasons(d, reasons);
		*value = (double)reasons;
		return true;
	default: return false;
	}
}

#define PROCESSES 256 /* of a device */

/* What each process has of the device: a sample for each. False: it is not to be had. */
static bool processes(const struct device *d, uint32_t id, uint64_t now)
{
	struct nvml_process list[PROCESSES];
	unsigned int n = PROCESSES;
	union sample s;

	if (CALL(nvmlDeviceGetComputeRunningProcesses_v3, d->nvml, &n, list))
		return false;
	for (unsigned int i = 0; id && i < n && i < PROCESSES; i++) {
		if (list[i].used == ~0ULL || !list[i].pid)
			continue;
		sample_begin(&s, d, now, now);
		s.c.h.pid = list[i].pid;
		sample_add(&s, id, (double)list[i].used, 0);
		sample_send(&s);
	}
	return true;
}

void nvml_announce(struct device *d, int i)
{
	const struct metric_row *row = wanted[i].row;
	double value;

	if (row && row->nvml == NVML_MEM_PROCESS) {
		if (processes(d, 0, 0))
			metric_id(row->name, row->unit, CT_METRIC_NVML);
		return;
	}

	if (row && row->nvml && reading(d, row->nvml, &value))
		metric_id(row->name, row->unit, CT_METRIC_NVML);
}

void nvml_add(struct device *d, union sample *s)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (d->read_ns && now < d->read_ns + NVML_READ_NS)
		return;
	/* A little less than a period: readings that are to come every 100 ms do not lose every
	 * second one to jitter. */
	d->read_ns = now - NVML_READ_NS / 10;
	for (int i = 0; i < nwanted; i++) {
		const struct metric_row *row = wanted[i].row;
		double value;

		if (row && row->nvml == NVML_MEM_PROCESS) {
			processes(d, metric_id(row->name, row->unit, CT_METRIC_NVML), now);
			continue;
		}
		if (!row || !row->nvml || d->given >> i & 1 || !reading(d, row->nvml, &value))
			continue;
		sample_add(s, metric_id(row->name, row->unit, CT_METRIC_NVML), value,
			   metric_doubt(row->unit, value,
					row->nvml == NVML_MEM_USED ? (double)d->memory_bytes : 0));
	}
}

/* ---- GPM: counters without CUPTI, Hopper and newer ---- */

struct gpm {
	void *samples[2]; /* the earlier and the later */
	uint64_t at_ns;	  /* of the earlier; 0: there is none */
	int failed;	  /* in a row */
	struct gpm_get get;
};

static void gpm_close(struct gpm *g)
{
	for (int i = 0; i < 2; i++)
		if (g->samples[i])
			CALL(nvmlGpmSampleFree, g->samples[i]);
	free(g);
}

struct gpm *gpm_open(struct device *d, const char **why)
{
	struct gpm_support support = { .version = 1 };
	struct gpm *g;
	int err = CALL(nvmlGpmQueryDeviceSupport, d->nvml, &support);

	*why = "it is no Hopper or newer";
	if (err || !support.supported) {
		if (err == NVML_NO_PERMISSION)
			*why = "this user may not read it";
		return NULL;
	}
	*why = "no memory";
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	err = CALL(nvmlGpmSampleAlloc, &g->samples[0]);
	if (!err)
		err = CALL(nvmlGpmSampleAlloc, &g->samples[1]);
	if (!err)
		err = CALL(nvmlGpmSampleGet, d->nvml, g->samples[0]);
	if (err) {
		*why = err == NVML_NO_PERMISSION ? "this user may not read it" : nvml_error(err);
		gpm_close(g);
		return NULL;
	}
	g->at_ns = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < nwanted; i++)
		if (wanted[i].row && wanted[i].row->gpm)
			d->given |= 1ULL << i;
	return g;
}

bool gpm_add(struct device *d, union sample *s)
{
	struct gpm *g = d->gpm;
	uint64_t before = clock_ns(CLOCK_MONOTONIC), after, at, start = g->at_ns;
	void *earlier = g->samples[0];
	unsigned int n = 0;

	if (CALL(nvmlGpmSampleGet, d->nvml, g->samples[1])) {
		g->failed++;
		return false;
	}
	after = clock_ns(CLOCK_MONOTONIC);
	at = before + (after - before) / 2;
	g->samples[0] = g->samples[1];
	g->samples[1] = earlier;
	g->at_ns = at;
	g->get.version = 1;
	g->get.sample1 = earlier;
	g->get.sample2 = g->samples[0];
	for (int i = 0; i < nwanted; i++)
		if (wanted[i].row && wanted[i].row->gpm)
			g->get.metrics[n++] = (struct gpm_metric){ .id = wanted[i].row->gpm };
	g->get.n = n;
	sample_begin(s, d, start, at);
	if (n && CALL(nvmlGpmMetricsGet, &g->get)) {
		g->failed++;
		return false;
	}
	g->failed = 0;
	n = 0;
	for (int i = 0; i < nwanted; i++) {
		const struct metric_row *row = wanted[i].row;
		double value;

		if (!row || !row->gpm)
			continue;
		value = g->get.metrics[n].value * row->gpm_factor;
		if (!g->get.metrics[n++].result)
			sample_add(s, metric_id(row->name, row->unit, CT_METRIC_GPM), value,
				   metric_doubt(row->unit, value, 0));
	}
	return true;
}

int gpm_failed(const struct device *d)
{
	return d->gpm->failed;
}

/* ---- events ---- */

static struct {
	void *set;
	const struct device *devices;
	int n;
} events;

/* What NVIDIA's list of XID errors says of those that are met most. */
static const char *xid_text(uint64_t xid)
{
	static const struct {
		uint16_t xid;
		const char *text;
	} rows[] = {
		{ 13, "graphics engine exception: a kernel's bad access or instruction" },
		{ 31, "memory page fault: a kernel's bad address" },
		{ 32, "invalid or corrupted push buffer" },
		{ 38, "driver firmware error" },
		{ 43, "a program's work was stopped" },
		{ 45, "a program's work was removed, most often after another error" },
		{ 48, "double bit ECC error" },
		{ 61, "internal micro-controller breakpoint" },
		{ 62, "internal micro-controller halt" },
		{ 63, "a memory row was remapped, or a page retired" },
		{ 64, "a memory row could not be remapped, or a page not retired" },
		{ 69, "graphics engine class error" },
		{ 74, "NVLink error" },
		{ 79, "the GPU has fallen off the bus" },
		{ 92, "many single bit ECC errors" },
		{ 94, "contained memory error" },
		{ 95, "uncontained memory error" },
		{ 109, "context switch timed out" },
		{ 119, "the GPU system processor does not answer" },
		{ 120, "error of the GPU system processor" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].xid == xid)
			return rows[i].text;
	return "see NVIDIA's list of XID errors";
}

static void tell_event(const struct nvml_event *e)
{
	uint32_t device = CT_UNKNOWN;

	for (int i = 0; i < events.n; i++)
		if (events.devices[i].nvml == e->device)
			device = events.devices[i].index;
	if (e->type == EVENT_XID)
		send_event(device, CT_EVENT_XID, e->data, xid_text(e->data));
	else if (e->type == EVENT_ECC_DOUBLE)
		send_event(device, CT_EVENT_ECC, 2, "double bit ECC error");
	else if (e->type == EVENT_ECC_SINGLE)
		send_event(device, CT_EVENT_ECC, 1, "single bit ECC error, corrected");
}

static void *events_main(void *unused)
{
	int failed = 0;

	(void)unused;
	while (send_alive() && failed < 5) {
		struct nvml_event e = { 0 };
		int err = CALL(nvmlEventSetWait_v2, events.set, &e, 500);

		if (!err) {
			failed = 0;
			tell_event(&e);
		} else if (err == NVML_GPU_LOST) {
			send_event(CT_UNKNOWN, CT_EVENT_XID, 79, xid_text(79));
			failed = 5;
		} else if (err != NVML_TIMEOUT) {
			nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
			failed++;
		}
	}
	if (send_alive())
		send_text(COUNTERS_WARN,
			  "XID errors are no longer seen: NVML does not wait for events any more");
	return NULL;
}

void nvml_events(const struct device *devices, int n)
{
	pthread_t thread;
	int registered = 0;

	if (CALL(nvmlEventSetCreate, &events.set))
		return;
	events.devices = devices;
	events.n = n;
	for (int i = 0; i < n; i++) {
		unsigned long long types = 0;

		if (CALL(nvmlDeviceGetSupportedEventTypes, devices[i].nvml, &types))
			continue;
		types &= EVENT_XID | EVENT_ECC_DOUBLE | EVENT_ECC_SINGLE;
		if (types && !CALL(nvmlDeviceRegisterEvents, devices[i].nvml, types, events.set))
			registered++;
		else
			send_text(COUNTERS_VERBOSE,
				  "GPU %u: XID errors are not told of: NVML does not register for "
				  "them",
				  devices[i].index);
	}
	if (registered && !pthread_create(&thread, NULL, events_main, NULL))
		pthread_detach(thread);
}
