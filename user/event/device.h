/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h - the words for device work, and the fields of its records.
 */
#ifndef CT_DEVICE_H
#define CT_DEVICE_H

#include "event.h"

/* "HtoD", "pageable", "command_buffer_full", "stream", "cpu_page_faults", "xid"; "unknown" for a
 * value that has no name. */
const char *device_copy_kind(uint32_t);
const char *device_memory_kind(uint32_t);
const char *device_overhead_kind(uint32_t);
const char *device_sync_type(uint32_t);
const char *device_managed_kind(uint32_t);
/* Is the value of such a record a size? */
bool device_managed_is_size(uint32_t);
const char *device_event_type(uint32_t);

/* Fields of the kinds from CT_KERNEL to CT_STREAM and of CT_METRIC: part of event_fields(). max:
 * at least DEVICE_FIELDS_MIN. */
#define DEVICE_FIELDS_MIN 32
int device_fields(const struct event *, struct field *out, int max);

/* Fields of a call of a library for collectives: part of device_fields(). */
void collective_fields(struct field **at, const struct ct_scope *, const struct ct_collective *);

/* The same of a call for products of matrices; nothing for other scopes. */
/* What a row says of a product of matrices: of a call for one, or of a kernel that computes one. */
struct product {
	const struct ct_gemm *gemm; /* what is not known of it is CT_UNKNOWN, or 0 */
	uint64_t flop;		    /* 0: not known */
	/* of a kernel: FLOP a second, and as a share of what the device can do at most; negative: not
	 * known */
	double rate, share;
};
/* False: it is no such row. */
bool product_of(const struct event *, struct product *);
void product_fields(struct field **at, const struct event *); /* of a kernel of one */
/* Copies the shapes and types of an operator's arguments (event/scopes/shapes.h). Returns the length; 0:
 * it is no operator, or they were not read. */
#define INPUTS_MAX 256
size_t scope_inputs(const struct ct_hdr *, char text[INPUTS_MAX]);
void gemm_fields(struct field **at, const struct ct_scope *);
/* What XLA says in the text of a range (event/scopes/xla.h), and in the ranges around device work: the
 * module and the operation that was compiled. */
void xla_scope_fields(struct field **at, const char *text, size_t len);
void xla_work_fields(struct field **at, const struct event *);

/* ---- the names of metrics (event/metrics.c), from CT_METRIC records ---- */
struct metric {
	const char *name, *unit; /* printable ASCII, at most 127 bytes */
	uint32_t id, source;	 /* enum ct_metric_source */
};
struct metric_table;
struct metric_table *metric_table_open(void); /* NULL: no memory */
void metric_table_close(struct metric_table *);
/* Learns from CT_METRIC; other records are ignored. Returns 0 or -ENOMEM. */
int metric_table_record(struct metric_table *, const struct ct_hdr *);
/* NULL: not known */
const struct metric *metric_table_find(const struct metric_table *, uint32_t id);

#endif
