/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpus.h - finds the GPU that a device number of a process means. A process numbers its devices by
 * itself: device 0 of two processes may be two GPUs, of one host or of two, and device 1 of one may
 * be device 0 of the other. The UUID identifies a GPU. Every output that refers to a GPU across
 * processes takes the GPU's number from here.
 */
#ifndef CT_GPUS_H
#define CT_GPUS_H

#include "event.h"
#include "registry.h"

#define GPUS_MAX 1024 /* GPUs in a trace; further ones get no number */

struct gpu {
	/* number in this trace, from 0: the number that a process or the machine gives it, if no
	 * other GPU has that number */
	uint32_t number;
	/* process_host() of the first one that reported it, and the number that it uses */
	uint32_t host, device;
	uint8_t uuid[16];
	char text[48]; /* "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"; "": its UUID is not known */
};

struct gpu_table;
struct gpu_table *gpu_table_open(void); /* NULL: no memory */
void gpu_table_close(struct gpu_table *);
/* Learns from CT_DEVICE, of a process or of the machine (pid 0), and from CT_EXIT; other records are ignored. */
void gpu_table_record(struct gpu_table *, const struct process *, const struct ct_hdr *);
/* The GPU that a process calls `device`; NULL: it was not reported, or `device` is CT_UNKNOWN.
 * The table owns it; it is valid as long as the table. */
const struct gpu *gpu_table_find(const struct gpu_table *, const struct process *, uint32_t device);
/* The same as gpu_table_find(), by process_unique(). */
const struct gpu *gpu_table_named(const struct gpu_table *, uint32_t process, uint32_t device);
/* The same for device work, which always ran on a GPU: without a CT_DEVICE record it is the
 * device with that number on its host. NULL: there are too many GPUs, or the device is
 * CT_UNKNOWN. */
const struct gpu *gpu_table_worked(struct gpu_table *, const struct process *, uint32_t device);
/* The GPU to which the machine gives this number, as in a CT_DEVICE, CT_COUNTER or CT_EVENT
 * record with pid 0. NULL: not reported. */
const struct gpu *gpu_table_machine(const struct gpu_table *, uint32_t device);

/* What each process said of its devices, for as long as it runs and its last records come. */
struct devices {
	struct registry processes;
};
struct device_facts {
	uint32_t id; /* the process's number of it */
	uint32_t major, minor, multiprocessors, clock_khz;
	uint8_t uuid[16];
};
void devices_open(struct devices *);
void devices_close(struct devices *);
/* Learns from CT_DEVICE of a process, and forgets processes that have ended. 0 or -ENOMEM. */
int devices_record(struct devices *, const struct ct_hdr *);
/* NULL: it was not reported. Valid until the next record. */
const struct device_facts *devices_find(const struct devices *, uint32_t pid, uint32_t id);

/* "GPU-00010203-0405-..." */
void gpu_uuid_text(const uint8_t uuid[16], char text[48]);

#endif
