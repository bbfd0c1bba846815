/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gauges.h - the values of the devices' hardware counters over the run: for each metric the mean
 * over time, the minimum and the maximum. Knows CT_COUNTER and the names of metrics.
 */
#ifndef CT_GAUGES_H
#define CT_GAUGES_H

#include "../event/device.h"

#define GAUGES_MAX 1024

struct gauge {
	uint32_t device, metric; /* the GPU's number in the trace; as CT_COUNTER has it */
	char uuid[48];		 /* "GPU-..."; "": not known */
	char name[128], unit[32];
	double sum, ns; /* value times nanoseconds */
	double least, most;
	uint64_t samples;
	/* number of samples that cannot be true; the other members do not include them */
	uint64_t suspect;
};

struct gauges {
	struct gauge *list; /* by device and metric */
	size_t n;
	uint64_t no_room;
};

/* Returns 1 if it was counted, 0 if it is not a sample, or -ENOMEM. */
int gauges_event(struct gauges *, const struct event *);
static inline double gauge_mean(const struct gauge *g)
{
	return g->ns > 0 ? g->sum / g->ns : 0;
}
void gauges_close(struct gauges *);

#endif
