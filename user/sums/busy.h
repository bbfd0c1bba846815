/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * busy.h - for how long at least one kernel ran on a device: the union of the times in records,
 * which need not come quite in order (spans.h). A device is a GPU of the trace (pid 0), or a device by its
 * process's number. Knows no record.
 */
#ifndef CT_BUSY_H
#define CT_BUSY_H

#include "spans.h"

#define BUSY_DEVICES 64

struct busy_device {
	uint32_t pid, device;
	struct spans spans;
};

struct busy {
	struct busy_device *devices;
	size_t ndevices;
	uint64_t left_out; /* kernels of devices beyond BUSY_DEVICES, or without memory for them */
};

void busy_add(struct busy *, uint32_t pid, uint32_t device, uint64_t start_ns, uint64_t end_ns);
uint64_t busy_ns(const struct busy *); /* the sum over all devices */
void busy_close(struct busy *);

#endif
