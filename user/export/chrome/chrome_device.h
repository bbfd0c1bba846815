/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chrome_device.h - inside the chrome sink: the reported devices, in the form of Kineto's
 * deviceProperties, and what follows from them for a kernel: blocks and warps per multiprocessor,
 * and occupancy.
 */
#ifndef CT_CHROME_DEVICE_H
#define CT_CHROME_DEVICE_H

#include "../../flow/row.h"
#include "../../flow/sink.h"

struct chrome_devices;
struct chrome_devices *chrome_devices_open(void); /* NULL: no memory */
void chrome_devices_close(struct chrome_devices *);
/* Learns a device of a process from the event of its CT_DEVICE. Returns 0 or -ENOMEM. */
int chrome_devices_record(struct chrome_devices *, const struct event *);
/* Writes the objects of a JSON list, separated by commas: the devices of process `pid` (0: of
 * all processes), each GPU once. */
void chrome_devices_put(const struct chrome_devices *, uint32_t pid, struct row *);

struct chrome_load {
	double blocks, warps; /* per multiprocessor */
	int occupancy;	      /* percent, estimated */
};
/* False: the device is not known. */
bool chrome_devices_load(const struct chrome_devices *, const struct event *, struct chrome_load *);

#endif
