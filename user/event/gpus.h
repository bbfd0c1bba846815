/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpus.h - which GPU of a trace a process's device is. A process numbers its devices by itself:
 * device 0 of two processes may be two GPUs, of one host or of two, and device 1 of one may be
 * device 0 of the other. The UUID tells. Every output that speaks of a GPU across processes
 * takes its number from here.
 */
#ifndef CT_GPUS_H
#define CT_GPUS_H

#include "event.h"

#define GPUS_MAX 1024 /* of a trace; what is beyond has no number */

struct gpu {
	/* in this trace, from 0 on: the number that a process or the machine gives it, where no
	 * other GPU has that */
	uint32_t number;
	/* process_host() of whoever told of it first, and what that calls it */
	uint32_t host, device;
	uint8_t uuid[16];
	char text[48]; /* "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"; "": its UUID is not known */
};

struct gpu_table;
struct gpu_table *gpu_table_open(void); /* NULL: no memory */
void gpu_table_close(struct gpu_table *);
/* Learns from CT_DEVICE, of a process or of the machine (pid 0); other records are ignored. */
void gpu_table_record(struct gpu_table *, const struct process *, const struct ct_hdr *);
/* The GPU that a process calls `device`; NULL: it was not told, or is CT_UNKNOWN. Owned by the
 * table, as long as that lives. */
const struct gpu *gpu_table_find(const struct gpu_table *, const struct process *, uint32_t device);
/* The same by process_unique(). */
const struct gpu *gpu_table_named(const struct gpu_table *, uint32_t process, uint32_t device);
/* The same of device work, which is sure to have one: without a CT_DEVICE it is the device of
 * that number of its host. NULL: too many, or CT_UNKNOWN. */
const struct gpu *gpu_table_worked(struct gpu_table *, const struct process *, uint32_t device);
/* The GPU that the machine gives this number: that of a CT_DEVICE, CT_COUNTER or CT_EVENT with
 * pid 0. NULL: not told. */
const struct gpu *gpu_table_machine(const struct gpu_table *, uint32_t device);

/* "GPU-00010203-0405-..." */
void gpu_uuid_text(const uint8_t uuid[16], char text[48]);

#endif
