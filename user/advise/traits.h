/* SPDX-License-Identifier: BSD-2-Clause */
/* traits.h - what a function is to the rules: made once for each row of the table of functions,
 * by its class and name. */
#ifndef CT_TRAITS_H
#define CT_TRAITS_H

#include "../api/api.h"
#include "../stat/report.h"

#define TR_COPY 0x1
#define TR_SET 0x2
#define TR_LAUNCH 0x4 /* of a kernel */
#define TR_GRAPH 0x8  /* launch of a graph */
#define TR_ASYNC 0x10
#define TR_SYNC 0x20  /* waits for the device */
#define TR_ALLOC 0x40 /* of device memory or pinned host memory, not ordered by a stream */
#define TR_FREE 0x80
#define TR_EVENT_CREATE 0x100
#define TR_EVENT_DESTROY 0x200
#define TR_STREAM_CREATE 0x400
#define TR_STREAM_DESTROY 0x800
#define TR_POLL 0x1000	   /* asks whether something is done */
#define TR_LOAD 0x2000	   /* of device code */
#define TR_ERROR 0x4000	   /* asks for the last error */
#define TR_MEMORY 0x8000   /* device memory that api_memory() tells of */
#define TR_LINEAR 0x10000  /* a copy whose first words are where to and where from */
#define TR_CHECKED 0x20000 /* of a class whose failures are told */
#define TR_WORK (TR_COPY | TR_SET | TR_LAUNCH | TR_GRAPH)

/* Fills traits[CT_MAX_FUNCS]. */
void traits_make(uint32_t *traits);
/* Which way the copy goes, as the call says it; REPORT_UNTOLD. */
enum report_way traits_way(const struct ct_call *);

#endif
