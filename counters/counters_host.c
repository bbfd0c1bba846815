/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_host.c - which metrics a chip has, in how many passes, in what unit: CUPTI's host
 * profiler, which needs neither a GPU nor a driver.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"
#include "counters_cupti.h"

static int configure(struct host *h, const char **names, size_t n)
{
	struct host_add add = {
		.size = SIZE(struct host_add, n), .host = h->object, .names = names, .n = n
	};
	struct host_image_size size = { .size = SIZE(struct host_image_size, bytes),
					.host = h->object };
	struct host_image image = { .size = SIZE(struct host_image, image), .host = h->object };
	struct host_passes passes = { .size = SIZE(struct host_passes, passes) };
	int err = cupti.cuptiProfilerHostConfigAddMetrics(&add);

	if (err)
		return err;
	err = cupti.cuptiProfilerHostGetConfigImageSize(&size);
	if (err)
		return err;
	h->image = calloc(1, size.bytes ? size.bytes : 1);
	if (!h->image)
		return CUPTI_OUT_OF_MEMORY;
	h->image_bytes = image.bytes = passes.bytes = size.bytes;
	image.image = passes.image = h->image;
	err = cupti.cuptiProfilerHostGetConfigImage(&image);
	if (!err)
		err = cupti.cuptiProfilerHostGetNumOfPasses(&passes);
	h->passes = passes.passes;
	return err;
}

int host_open(struct host *h, const char *chip, const uint8_t *availability, const char **names,
	      size_t n)
{
	struct host_initialize init = { .size = SIZE(struct host_initialize, host),
					.type = HOST_PM_SAMPLING,
					.chip = chip,
					.availability = availability };
	int err;

	memset(h, 0, sizeof(*h));
	err = cupti.cuptiProfilerHostInitialize(&init);
	if (err)
		return err;
	h->object = init.host;
	err = n ? configure(h, names, n) : 0;
	if (err)
		host_close(h);
	return err;
}

void host_close(struct host *h)
{
	struct host_deinitialize d = { .size = SIZE(struct host_deinitialize, host),
				       .host = h->object };

	if (h->object)
		cupti.cuptiProfilerHostDeinitialize(&d);
	free(h->image);
	memset(h, 0, sizeof(*h));
}

static bool properties(const struct host *h, const char *name, struct host_properties *p)
{
	*p = (struct host_properties){ .size = SIZE(struct host_properties, type),
				       .host = h->object,
				       .name = name };
	return !cupti.cuptiProfilerHostGetMetricProperties(p);
}

const char *host_dimension(const struct host *h, const char *name)
{
	struct host_properties p;

	return properties(h, name, &p) ? p.dimension : NULL;
}

/* ---- help ---- */

/* The roll-up that a metric's passes are counted with, and what it may be followed by. */
static const struct {
	const char *heading, *first, *second;
} types[HOST_TYPES] = {
	[HOST_COUNTER] = { "Counters: add .sum, .avg, .min or .max, and to these .per_second, "
			   ".pct_of_peak_sustained_elapsed",
			   ".sum", ".avg" },
	[HOST_RATIO] = { "Ratios: add .pct or .ratio", ".pct", ".ratio" },
	[HOST_THROUGHPUT] = { "Throughputs: add .avg.pct_of_peak_sustained_elapsed",
			      ".avg.pct_of_peak_sustained_elapsed", "" },
};

static void help_metric(const struct host *h, const char *chip, const char *base, int type)
{
	char name[400], unit_room[80];
	const char *names[1] = { name };
	struct host_properties p;
	struct host one;
	int err;

	snprintf(name, sizeof(name), "%s%s", base, types[type].first);
	err = host_open(&one, chip, NULL, names, 1);
	if (err) {
		snprintf(name, sizeof(name), "%s%s", base, types[type].second);
		err = host_open(&one, chip, NULL, names, 1);
	}
	if (err)
		return;
	if (one.passes == 1 && properties(h, base, &p))
		send_text(COUNTERS_LINE, "  %-60s %-8s %s", base,
			  metric_unit(name, p.dimension, unit_room, sizeof(unit_room)),
			  p.description ? p.description : "");
	host_close(&one);
}

bool host_knows(const char *chip)
{
	struct host h;

	if (host_open(&h, chip, NULL, NULL, 0))
		return false;
	host_close(&h);
	return true;
}

void host_help(const char *chip)
{
	struct host h;

	if (host_open(&h, chip, NULL, NULL, 0))
		return;
	send_text(COUNTERS_LINE, "%s", "");
	send_text(COUNTERS_LINE, "CUPTI's metrics of %s that fit one pass, each for itself:", chip);
	for (int type = 0; type < HOST_TYPES && send_alive(); type++) {
		struct host_base_metrics base = { .size = SIZE(struct host_base_metrics, n),
						  .host = h.object,
						  .type = type };

		if (cupti.cuptiProfilerHostGetBaseMetrics(&base) || !base.n)
			continue;
		send_text(COUNTERS_LINE, "%s", "");
		send_text(COUNTERS_LINE, "%s", types[type].heading);
		for (size_t i = 0; i < base.n && send_alive(); i++)
			help_metric(&h, chip, base.names[i], type);
	}
	host_close(&h);
}
