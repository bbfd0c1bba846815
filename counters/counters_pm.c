/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_pm.c - CUPTI PM sampling: the GPU itself takes a sample of its counters every so often
 * into a buffer, which is decoded here. One pass, so that not every set of metrics fits; one
 * sampler at a time on a device; no CUDA context.
 *
 * What was learnt of it: the counter data image must hold all samples of one decoding (what does
 * not fit is lost), it has to be initialised anew after each, and a hardware buffer that overflowed
 * gives no sample any more until sampling is begun anew.
 *
 * Sample times are CLOCK_REALTIME unless a timestamp callback is registered. They are brought to
 * CLOCK_MONOTONIC by the difference of the two clocks at the time of decoding.
 * CUDATRACE_COUNTERS_CLOCK=callback registers one instead, for tests that compare the two.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "helper.h"
#include "counters_cupti.h"

/* the hardware's longest interval; longer ones are combined from several */
#define PERIOD_MAX_NS (100 * NS_PER_MS)
#define SAMPLE_BYTES 16384 /* of the hardware buffer at most for one sample */
#define BUFFER_MIN (8u << 20)
#define BUFFER_MAX (256u << 20)
#define BUFFER_NS (2 * NS_PER_S)   /* what the buffer should hold */
#define SLOTS_NS (200 * NS_PER_MS) /* what the image should hold; it is decoded every 50 ms */
#define CLOCK_NEAR_NS (60 * NS_PER_S)

struct cupti cupti;

struct pm_metric {
	const char *name; /* CUPTI's */
	uint32_t id;
	enum scale scale;
	bool sum;    /* of several samples: added, not averaged */
	double most; /* a bound that is known; 0: none */
	char unit[32];
	double total, weight;
};

struct pm {
	struct host host;
	void *object;
	char chip[32];
	struct pm_metric metrics[COUNTERS_METRICS];
	const char *names[COUNTERS_METRICS];
	int n;
	uint8_t *availability, *data;
	size_t data_bytes;
	uint64_t hardware_ns; /* the hardware's period */
	int trigger;
	uint32_t slots;
	/* a sample of the user's interval, made of `parts` of the hardware's */
	uint32_t parts, have;
	uint64_t start_ns, end_ns;
	uint64_t last_end; /* of the previous one, on CUPTI's clock */
	int restarts;
	bool reported_clock, closing;
};

static char why_text[768];

/* What a CUptiResult means for the user. */
static const char *why_not(const char *what, int err)
{
	switch (err) {
	case CUPTI_HARDWARE_BUSY:
		return "another program samples its counters (DCGM, Nsight, another cudatrace): "
		       "end it, or 'dcgmi profile --pause'";
	case CUPTI_PRIVILEGES:
	case CUPTI_VIRTUALIZED_PRIVILEGES:
		return "the driver lets only administrators profile: run as root, or load the "
		       "module with NVreg_RestrictProfilingToAdminUsers=0";
	case CUPTI_VIRTUALIZED:
		return "it is a virtual GPU without profiling: let the host enable it for the vGPU";
	case CUPTI_CONFIDENTIAL:
		return "confidential computing hides its counters: switch the GPU to devtools mode";
	case CUPTI_MIG:
		return "it is in MIG mode, where its counters belong to no one: ask on a GPU "
		       "without MIG";
	case CUPTI_WSL: return "counters cannot be sampled under WSL";
	case CUPTI_SLI:
	case CUPTI_CMP:
	case CUPTI_NOT_SUPPORTED: return "CUPTI does not sample this GPU";
	case CUPTI_CHIP:
		return "this CUPTI does not know the chip: give a newer one with --cupti PATH";
	default:
		snprintf(why_text, sizeof(why_text), "CUPTI fails (%s: error %d)", what, err);
		return why_text;
	}
}

/* ---- loading ---- */

static uint64_t monotonic(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

const char *pm_load(const char *path, int cuda_version)
{
	const char *clock = getenv("CUDATRACE_COUNTERS_CLOCK");
	struct cupti_found found = { .handle = NULL };
	const char *err = cupti_find(&found, path, cuda_version / 1000), *missing = NULL;
	uint32_t version = 0;

	if (err)
		return err;
#define RESOLVE_CUPTI(name, args)                           \
	*(void **)&cupti.name = dlsym(found.handle, #name); \
	missing = cupti.name ? missing : #name;
	CUPTI_FUNCTIONS(RESOLVE_CUPTI)
	if (missing) {
		snprintf(why_text, sizeof(why_text), "%s has no %s", found.path, missing);
		return why_text;
	}
	if (clock && !strcmp(clock, "callback") &&
	    cupti.cuptiActivityRegisterTimestampCallback(monotonic))
		send_text(COUNTERS_WARN, "CUPTI takes no timestamp callback");
	cupti.cuptiGetVersion(&version);
	send_text(COUNTERS_VERBOSE, "CUPTI %u from %s", version, found.path);
	return NULL;
}

void pm_ordinals(struct device *devices, int n)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int (*init)(unsigned int), (*count)(int *), (*get)(int *, int), (*uuid)(char *, int);
	int ndevices = 0, device;

	if (!lib)
		return;
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&count = dlsym(lib, "cuDeviceGetCount");
	*(void **)&get = dlsym(lib, "cuDeviceGet");
	*(void **)&uuid = dlsym(lib, "cuDeviceGetUuid_v2");
	if (!uuid)
		*(void **)&uuid = dlsym(lib, "cuDeviceGetUuid");
	if (!init || !count || !get || !uuid || init(0) || count(&ndevices))
		return;
	for (int i = 0; i < ndevices; i++) {
		char id[16];

		if (get(&device, i) || uuid(id, device))
			continue;
		for (int k = 0; k < n; k++)
			if (!memcmp(devices[k].uuid, id, sizeof(id)))
				devices[k].ordinal = i;
	}
}

static int chip_of(const struct device *d, char *chip, size_t size)
{
	struct cupti_initialize init = { .size = SIZE(struct cupti_initialize, priv) };
	struct cupti_chip_name name = { .size = SIZE(struct cupti_chip_name, name),
					.device = (size_t)d->ordinal };
	int err = cupti.cuptiProfilerInitialize(&init);

	if (!err)
		err = cupti.cuptiDeviceGetChipName(&name);
	if (!err)
		snprintf(chip, size, "%s", name.name);
	return err;
}

/* ---- which metrics ---- */

/* The passes that the metrics so far and this one need; 0: the chip does not have it. */
static size_t passes_with(struct pm *p, const char *name)
{
	struct host h;
	size_t passes;

	p->names[p->n] = name;
	if (host_open(&h, p->chip, p->availability, p->names, (size_t)p->n + 1))
		return 0;
	passes = h.passes;
	host_close(&h);
	return passes;
}

static void counters_pm_take(struct pm *p, const struct device *d, const struct wanted *w,
			     const char *name)
{
	struct pm_metric *m = &p->metrics[p->n];
	size_t len = strlen(name);

	m->name = p->names[p->n] = name;
	m->scale = w->row ? w->row->pm_scale : SCALE_NONE;
	m->sum = m->scale == SCALE_PER_SECOND || (len > 4 && !strcmp(name + len - 4, ".sum"));
	if (w->row)
		snprintf(m->unit, sizeof(m->unit), "%s", w->row->unit);
	if (w->row && !strncmp(w->row->name, "dram_", 5))
		m->most = (double)d->bandwidth;
	p->n++;
}

/* The name that the chip has and that fits; NULL: none. *passes: of the best that does not fit;
 * 0: the chip has none. */
static const char *counters_pm_choose(struct pm *p, const struct wanted *w, size_t *passes)
{
	const char *own[2] = { w->name, NULL };
	const char *const *names = w->row ? w->row->pm : own;

	*passes = 0;
	for (int i = 0; names && names[i]; i++) {
		size_t n = passes_with(p, names[i]);

		if (n == 1)
			return names[i];
		if (n && (!*passes || n < *passes))
			*passes = n;
	}
	return NULL;
}

/* Chooses the wanted metrics that the hardware can sample in one pass. False: a metric that the
 * user named does not fit. */
static bool choose_all(struct device *d, struct pm *p)
{
	for (int i = 0; i < nwanted; i++) {
		const struct wanted *w = &wanted[i];
		size_t passes;
		const char *name;

		if (w->row && !w->row->pm)
			continue;
		name = counters_pm_choose(p, w, &passes);
		if (name) {
			counters_pm_take(p, d, w, name);
			d->given |= 1ULL << i;
		} else if (w->asked && passes) {
			send_text(COUNTERS_ERROR,
				  "--metrics: with '%s' the list needs %zu passes on %s, and "
				  "samples have one: leave it out, or ask for it alone",
				  w->name, passes, p->chip);
			return false;
		} else if (!w->row) {
			send_text(COUNTERS_ERROR,
				  "--metrics: %s has no metric '%s'; 'cudatrace counters --metrics "
				  "help' lists them",
				  p->chip, w->name);
			return false;
		} else {
			send_text(COUNTERS_VERBOSE,
				  passes ? "GPU %u (%s): '%s' does not fit one pass with the others"
					 : "GPU %u (%s): the chip has no counter for '%s'",
				  d->index, p->chip, w->name);
		}
	}
	return true;
}

/* Which of p->metrics gives wanted[i]: both are in one order. */
static struct pm_metric *metric_of(const struct device *d, int i)
{
	return &d->pm->metrics[__builtin_popcountll(d->given & ((1ULL << i) - 1))];
}

void pm_announce(struct device *d, int i)
{
	struct pm_metric *m = metric_of(d, i);
	char unit[32];

	if (!wanted[i].row)
		snprintf(m->unit, sizeof(m->unit), "%s",
			 metric_unit(m->name, host_dimension(&d->pm->host, m->name), unit,
				     sizeof(unit)));
	m->id = metric_id(wanted[i].name, m->unit, CT_METRIC_PM);
}

/* ---- sampling ---- */

static int fresh_image(struct pm *p)
{
	struct pm_data_init init = { .size = SIZE(struct pm_data_init, data),
				     .object = p->object,
				     .bytes = p->data_bytes,
				     .data = p->data };

	return cupti.cuptiPmSamplingCounterDataImageInitialize(&init);
}

static int set_config(struct pm *p, int trigger, uint64_t interval)
{
	uint64_t bytes = (BUFFER_NS / p->hardware_ns + 1) * SAMPLE_BYTES;
	struct pm_config c = { .size = SIZE(struct pm_config, append),
			       .object = p->object,
			       .bytes = p->host.image_bytes,
			       .image = p->host.image,
			       .interval = interval,
			       .trigger = trigger };
	int err;

	c.buffer_bytes = bytes < BUFFER_MIN ? BUFFER_MIN : bytes > BUFFER_MAX ? BUFFER_MAX : bytes;
	err = cupti.cuptiPmSamplingSetConfig(&c);
	if (err != CUPTI_INVALID_PARAMETER)
		return err;
	/* A CUPTI whose struct ends before `append` takes no longer one. */
	c.size = SIZE(struct pm_config, trigger);
	return cupti.cuptiPmSamplingSetConfig(&c);
}

/* Turing and GA100 have no trigger by time. */
static int set_trigger(struct pm *p, const struct device *d)
{
	/* 1.2 GHz: the system clock's usual order; the samples tell their length */
	uint64_t cycles = p->hardware_ns * 12 / 10;
	bool sysclk = !strncmp(p->chip, "TU", 2) || !strcmp(p->chip, "GA100");
	int err = sysclk ? CUPTI_NOT_SUPPORTED : set_config(p, TRIGGER_TIME, p->hardware_ns);

	p->trigger = TRIGGER_TIME;
	if (!err || err == CUPTI_HARDWARE_BUSY || err == CUPTI_PRIVILEGES)
		return err;
	p->trigger = TRIGGER_SYSCLK;
	err = set_config(p, TRIGGER_SYSCLK, cycles);
	if (!err)
		send_text(COUNTERS_NOTE,
			  "GPU %u (%s): samples are triggered by the system clock, which varies: "
			  "their length does too",
			  d->index, p->chip);
	return err;
}

/* All that comes before the start. */
static int counters_pm_begin(struct pm *p, const struct device *d)
{
	struct pm_enable enable = { .size = SIZE(struct pm_enable, object),
				    .device = (size_t)d->ordinal };
	struct pm_data_size size = { .size = SIZE(struct pm_data_size, bytes),
				     .names = p->names,
				     .n = (size_t)p->n,
				     .samples = p->slots };
	int err = cupti.cuptiPmSamplingEnable(&enable);

	if (err)
		return err;
	p->object = size.object = enable.object;
	err = set_trigger(p, d);
	if (!err)
		err = cupti.cuptiPmSamplingGetCounterDataSize(&size);
	if (err)
		return err;
	free(p->data);
	p->data = malloc(size.bytes);
	p->data_bytes = size.bytes;
	if (!p->data)
		return CUPTI_OUT_OF_MEMORY;
	return fresh_image(p);
}

static int counters_pm_start(struct pm *p)
{
	struct pm_object o = { .size = SIZE(struct pm_object, object), .object = p->object };

	p->last_end = 0;
	return cupti.cuptiPmSamplingStart(&o);
}

static void end(struct pm *p)
{
	struct pm_object o = { .size = SIZE(struct pm_object, object), .object = p->object };

	if (!p->object)
		return;
	cupti.cuptiPmSamplingStop(&o);
	cupti.cuptiPmSamplingDisable(&o);
	p->object = NULL;
}

static void pm_free(struct pm *p)
{
	end(p);
	host_close(&p->host);
	free(p->availability);
	free(p->data);
	free(p);
}

/* The raw counters that this device has; if the driver does not say, all of the chip's. */
static int availability(struct pm *p, const struct device *d)
{
	struct pm_availability a = { .size = SIZE(struct pm_availability, image),
				     .device = (size_t)d->ordinal };
	int err = cupti.cuptiPmSamplingGetCounterAvailability(&a);

	if (err)
		return err;
	p->availability = calloc(1, a.bytes ? a.bytes : 1);
	if (!p->availability)
		return CUPTI_OUT_OF_MEMORY;
	a.image = p->availability;
	return cupti.cuptiPmSamplingGetCounterAvailability(&a);
}

static const char *refusal(const struct device *d)
{
	if (d->mig)
		return why_not("", CUPTI_MIG);
	if (d->confidential)
		return why_not("", CUPTI_CONFIDENTIAL);
	if (d->ordinal < 0)
		return "CUDA does not open it (libcuda.so.1 is missing, or the device is not in "
		       "this container)";
	return NULL;
}

bool pm_open(struct device *d, uint64_t interval_ns, const char **reason)
{
	struct pm *p;
	int err;

	*reason = refusal(d);
	if (*reason)
		return true;
	p = calloc(1, sizeof(*p));
	*reason = "no memory";
	if (!p)
		return true;
	p->parts = (uint32_t)((interval_ns + PERIOD_MAX_NS - 1) / PERIOD_MAX_NS);
	p->hardware_ns = interval_ns / p->parts;
	p->slots = (uint32_t)(SLOTS_NS / p->hardware_ns) + 64;
	*reason = NULL;
	err = chip_of(d, p->chip, sizeof(p->chip));
	if (!err)
		err = availability(p, d);
	if (err) {
		*reason = why_not("its counters cannot be listed", err);
		pm_free(p);
		return true;
	}
	if (!choose_all(d, p)) {
		d->given = 0;
		pm_free(p);
		return false;
	}
	if (!p->n) {
		*reason = ""; /* nothing that was asked for is its to give */
		pm_free(p);
		return true;
	}
	err = host_open(&p->host, p->chip, p->availability, p->names, (size_t)p->n);
	if (!err)
		err = counters_pm_begin(p, d);
	if (err) {
		*reason = why_not("sampling does not begin", err);
		d->given = 0;
		pm_free(p);
		return true;
	}
	d->pm = p;
	d->period_ns = interval_ns;
	return true;
}

void pm_close(struct device *d)
{
	struct pm_object o = { .size = SIZE(struct pm_object, object) };

	if (!d->pm)
		return;
	d->pm->closing = true;
	o.object = d->pm->object;
	cupti.cuptiPmSamplingStop(&o);
	pm_drain(d);
	cupti.cuptiPmSamplingDisable(&o);
	d->pm->object = NULL;
	pm_free(d->pm);
	d->pm = NULL;
}

/* ---- decoding ---- */

/* The difference to subtract from CUPTI's times to get CLOCK_MONOTONIC. */
static int64_t offset_of(struct pm *p, const struct device *d, uint64_t at)
{
	uint64_t error, now = clock_ns(CLOCK_MONOTONIC);
	int64_t offset = clock_offset_ns(&error);
	int64_t behind = (int64_t)(now - at);

	if (behind > -(int64_t)CLOCK_NEAR_NS && behind < (int64_t)CLOCK_NEAR_NS)
		offset = 0;
	else if (behind + offset < -(int64_t)CLOCK_NEAR_NS ||
		 behind + offset > (int64_t)CLOCK_NEAR_NS)
		/* no clock of ours: the time of decoding is the best there is */
		offset = (int64_t)(at - now);
	if (!p->reported_clock) {
		p->reported_clock = true;
		if (offset == (int64_t)(at - now))
			send_text(COUNTERS_WARN,
				  "GPU %u: CUPTI's sample times are on no clock of this machine: "
				  "samples carry the time when they were read",
				  d->index);
		else
			send_text(
				COUNTERS_VERBOSE,
				"GPU %u: CUPTI's sample times are CLOCK_%s, read to within %llu ns",
				d->index, offset ? "REALTIME" : "MONOTONIC",
				(unsigned long long)error);
	}
	return offset;
}

/* The sample is complete: `s` gets it. */
static void flush_parts(struct pm *p, const struct device *d, union sample *s)
{
	sample_begin(s, d, p->start_ns, p->end_ns);
	for (int i = 0; i < p->n; i++) {
		struct pm_metric *m = &p->metrics[i];
		double value = m->total;

		if (m->weight > 0) {
			if (m->scale == SCALE_PER_SECOND)
				value = m->total * 1e9 / m->weight;
			else if (!m->sum)
				value = m->total / m->weight;
			sample_add(s, m->id, value, metric_doubt(m->unit, value, m->most));
		}
		m->total = m->weight = 0;
	}
	p->have = 0;
}

static void add_part(struct pm *p, const double *values, uint64_t start_ns, uint64_t end_ns)
{
	double ns = (double)(end_ns - start_ns);

	if (!p->have++)
		p->start_ns = start_ns;
	p->end_ns = end_ns;
	for (int i = 0; i < p->n; i++) {
		struct pm_metric *m = &p->metrics[i];

		if (values[i] - values[i] != 0) /* no number: nothing to divide by */
			continue;
		m->total += m->sum ? values[i] : values[i] * ns;
		m->weight += ns;
	}
}

/* One sample of the hardware. True: `s` is complete. */
static bool one(struct pm *p, const struct device *d, size_t index, union sample *s)
{
	struct pm_sample_info info = { .size = SIZE(struct pm_sample_info, end),
				       .object = p->object,
				       .data = p->data,
				       .bytes = p->data_bytes,
				       .sample = index };
	double values[COUNTERS_METRICS] = { 0 };
	struct host_evaluate eval = { .size = SIZE(struct host_evaluate, values),
				      .host = p->host.object,
				      .data = p->data,
				      .bytes = p->data_bytes,
				      .sample = index,
				      .names = p->names,
				      .n = (size_t)p->n,
				      .values = values };
	int64_t offset;

	/* The first ones after an overflow, and the last after a stop, cover no time. */
	if (cupti.cuptiPmSamplingCounterDataGetSampleInfo(&info) || !info.start ||
	    info.end <= info.start)
		return false;
	if (p->last_end && info.start > p->last_end + p->hardware_ns / 2)
		send_lost((info.start - p->last_end + p->hardware_ns / 2) / p->hardware_ns,
			  CT_LOSS_DEVICE);
	if (p->last_end && info.end <= p->last_end)
		return false;
	p->last_end = info.end;
	if (cupti.cuptiProfilerHostEvaluateToGpuValues(&eval)) {
		send_lost(1, CT_LOSS_DEVICE);
		return false;
	}
	offset = offset_of(p, d, info.end);
	add_part(p, values, (uint64_t)((int64_t)info.start - offset),
		 (uint64_t)((int64_t)info.end - offset));
	if (p->have < p->parts)
		return false;
	flush_parts(p, d, s);
	return true;
}

/* Ends PM sampling for this device; the caller must use another source. */
static void give_up(struct device *d, const char *what, int err)
{
	send_text(COUNTERS_WARN, "GPU %u: no more samples by CUPTI PM sampling: %s", d->index,
		  why_not(what, err));
	pm_free(d->pm);
	d->pm = NULL;
	d->given = 0;
}

/* The hardware buffer overflowed: it gives no more samples. */
static void restart(struct device *d)
{
	struct pm *p = d->pm;
	uint64_t last_end = p->last_end;
	int err;

	end(p);
	err = counters_pm_begin(p, d);
	if (!err)
		err = counters_pm_start(p);
	if (err) {
		give_up(d, "sampling does not begin anew", err);
		return;
	}
	p->last_end = last_end; /* so that what is missing is counted */
	if (!p->restarts++)
		send_text(COUNTERS_WARN,
			  "GPU %u: samples were lost, the hardware's buffer was full: give a "
			  "longer --interval, or fewer --metrics",
			  d->index);
}

bool pm_start(struct device *d)
{
	int err = counters_pm_start(d->pm);

	if (err)
		give_up(d, "sampling does not start", err);
	return !err;
}

void pm_drain(struct device *d)
{
	struct pm *p = d->pm;
	struct pm_decode decode = { .size = SIZE(struct pm_decode, overflow),
				    .object = p->object,
				    .data = p->data,
				    .bytes = p->data_bytes };
	struct pm_data_info info = { .size = SIZE(struct pm_data_info, completed),
				     .data = p->data,
				     .bytes = p->data_bytes };
	int err = cupti.cuptiPmSamplingDecodeData(&decode);
	union sample last, s;
	bool pending = false;

	if (err && p->closing)
		return;
	if (err && !decode.overflow && err != CUPTI_OUT_OF_MEMORY) {
		give_up(d, "samples cannot be decoded", err);
		return;
	}
	if (!cupti.cuptiPmSamplingGetCounterDataInfo(&info)) {
		for (size_t i = 0; i < info.completed && i < p->slots; i++) {
			if (!one(p, d, i, &s))
				continue;
			if (pending)
				sample_send(&last);
			last = s;
			pending = true;
		}
		/* What NVML reads now belongs to the latest. */
		if (pending) {
			nvml_add(d, &last);
			sample_send(&last);
		}
	}
	if (p->closing)
		return;
	if (decode.overflow || err == CUPTI_OUT_OF_MEMORY)
		restart(d);
	else if (info.populated && fresh_image(p))
		restart(d);
}

/* CUPTI's names for cudatrace's metrics on a chip, for those that fit into one pass together. */
static void help_rows(const char *chip)
{
	struct pm *p = calloc(1, sizeof(*p));
	struct device d = { .index = 0 };

	if (!p)
		return;
	snprintf(p->chip, sizeof(p->chip), "%s", chip);
	send_text(COUNTERS_LINE, "%s", "");
	send_text(COUNTERS_LINE, "On %s these are, as far as they fit one pass together:", chip);
	for (int i = 0; i < metric_nrows; i++) {
		const struct wanted w = { &metric_rows[i], metric_rows[i].name, false };
		const char *name;
		size_t passes;

		if (!w.row->pm)
			continue;
		name = counters_pm_choose(p, &w, &passes);
		if (name)
			counters_pm_take(p, &d, &w, name);
		send_text(COUNTERS_LINE, "  %-14s %s", w.name,
			  name	   ? name
			  : passes ? "- (does not fit)"
				   : "-");
	}
	free(p);
}

static bool help_chip(const char *chip)
{
	if (!host_knows(chip)) {
		send_text(COUNTERS_ERROR,
			  "CUPTI knows no chip '%s'; chips are called GH100, GA100, AD102", chip);
		return false;
	}
	help_rows(chip);
	host_help(chip);
	return true;
}

bool pm_help(const char *chip, const struct device *devices, int n)
{
	char name[32];

	if (*chip)
		return help_chip(chip);
	for (int i = 0; i < n; i++)
		if (devices[i].ordinal >= 0 && !chip_of(&devices[i], name, sizeof(name)))
			return help_chip(name);
	send_text(COUNTERS_WARN, "CUPTI's own metrics are not listed: no GPU is here to ask; name "
				 "a chip with --chip, as GH100");
	return true;
}
