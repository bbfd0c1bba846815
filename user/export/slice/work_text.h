/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_text.h - the names of device work in the formats of other programs, which look at the
 * beginnings of names: "Memcpy HtoD (Pageable -> Device)". And the names of metrics, which are
 * reported once.
 */
#ifndef CT_WORK_TEXT_H
#define CT_WORK_TEXT_H

#include "../../flow/sink.h"

#define WORK_TEXT_MAX 96

/* The name of kernel `k`, in the form that the options ask for. */
const char *work_kernel(const struct sink_opts *, const struct kernel_name *k);
/* The name of device work that is not a kernel; NULL: the record is of another kind. Returns buf
 * or a constant. */
const char *work_text(const struct ct_hdr *, char buf[WORK_TEXT_MAX]);
const char *work_copy_kind(uint8_t);	   /* "HtoD"; enum ct_copy_kind */
const char *work_memory_kind(uint8_t);	   /* "Pageable"; enum ct_memory_kind */
const char *work_sync_type(uint32_t type); /* "Stream Synchronize"; enum ct_sync_type */
const char *work_event(uint32_t type);	   /* enum ct_event_type */

struct work_metrics;
struct work_metric {
	char name[96], unit[24]; /* untrusted bytes, cut where they are longer */
	bool known;
};
struct work_metrics *work_metrics_open(void); /* NULL: no memory */
void work_metrics_close(struct work_metrics *);
void work_metrics_record(struct work_metrics *, const struct ct_metric *);
/* NULL: no metric of this number was reported. */
const struct work_metric *work_metrics_find(const struct work_metrics *, uint32_t id);

#endif
