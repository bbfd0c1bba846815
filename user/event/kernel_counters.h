/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_counters.h - the values of the hardware counters while a kernel ran: the samples of its
 * device between its start and its end, joined by the device's UUID and by time. The samples are of
 * the whole device, so they include what ran beside the kernel.
 *
 * Call kernel_counters_record() with every record, in the order in which the session merges them,
 * and kernel_counters_of() for a kernel when its own record comes: the samples inside it end before
 * the kernel does, so their records have come before.
 */
#ifndef CT_KERNEL_COUNTERS_H
#define CT_KERNEL_COUNTERS_H

#include "gpus.h"

enum kernel_counter {
	KERNEL_COUNTER_SM,
	KERNEL_COUNTER_DRAM,
	KERNEL_COUNTER_L2_HIT,
	KERNEL_COUNTER_END
};

struct kernel_counters {
	double percent[KERNEL_COUNTER_END]; /* means over time */
	/* false: no sample had a value, or no value that can be true */
	bool known[KERNEL_COUNTER_END];
	uint32_t samples; /* number of samples inside the kernel, at least 1 */
};

struct kernel_counters_table;
/* devices: those of processes, which somebody else lets learn first. NULL: no memory. */
struct kernel_counters_table *kernel_counters_open(const struct devices *);
void kernel_counters_close(struct kernel_counters_table *);
/* Learns from CT_DEVICE of the machine, CT_METRIC and CT_COUNTER; others are ignored. Returns 0 or -ENOMEM. */
int kernel_counters_record(struct kernel_counters_table *, const struct ct_hdr *);
/* NULL: the kernel took less than two intervals, or no sample lies inside it, or its device is
 * not known. Valid until the next call. */
const struct kernel_counters *kernel_counters_of(struct kernel_counters_table *,
						 const struct ct_kernel *);

/* Writes them as fields, to be appended to the fields of a kernel: "device_sm", "device_dram",
 * "device_l2_hit" (percent). Returns their number, at most KERNEL_COUNTER_END; 0 for NULL. */
int kernel_counters_fields(const struct kernel_counters *, struct field *out, int max);

#endif
