/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_counters.h - what the hardware counters said while a kernel ran: the samples of its device
 * that lie inside it, joined by the device's UUID and by time. They are the device's as a whole:
 * what ran beside the kernel is in them.
 *
 * Call kernel_counters_record() with every record, in the order in which the session merges
 * them, and kernel_counters_of() for a kernel when its own record comes: the samples inside it
 * end before it does, and so came before it.
 */
#ifndef CT_KERNEL_COUNTERS_H
#define CT_KERNEL_COUNTERS_H

#include "event.h"

enum kernel_counter {
	KERNEL_COUNTER_SM,
	KERNEL_COUNTER_DRAM,
	KERNEL_COUNTER_L2_HIT,
	KERNEL_COUNTER_END
};

struct kernel_counters {
	double percent[KERNEL_COUNTER_END]; /* means over time */
	bool known[KERNEL_COUNTER_END];	    /* false: no sample had it, or none that can be true */
	uint32_t samples;		    /* inside the kernel, at least 1 */
};

struct kernel_counters_table;
struct kernel_counters_table *kernel_counters_open(void); /* NULL: no memory */
void kernel_counters_close(struct kernel_counters_table *);
/* Learns from CT_DEVICE, CT_METRIC, CT_COUNTER, and forgets at CT_EXIT and CT_EXEC; others are
 * ignored. Returns 0 or -ENOMEM. */
int kernel_counters_record(struct kernel_counters_table *, const struct ct_hdr *);
/* NULL: the kernel took less than two intervals, or no sample lies inside it, or its device is
 * not known. Valid until the next call. */
const struct kernel_counters *kernel_counters_of(struct kernel_counters_table *,
						 const struct ct_kernel *);

/* The same as fields, for the end of a kernel's: "device_sm", "device_dram", "device_l2_hit"
 * (percent). Returns their number, at most KERNEL_COUNTER_END; 0 for NULL. */
int kernel_counters_fields(const struct kernel_counters *, struct field *out, int max);

#endif
