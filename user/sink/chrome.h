/* SPDX-License-Identifier: BSD-2-Clause */
/* chrome.h - inside the chrome sink: the events of a file, and the arguments of one. */
#ifndef CT_CHROME_H
#define CT_CHROME_H

#include "chrome_device.h"
#include "row.h"
#include "sink.h"

/* A file of the format: all processes, or one of them. */
struct chrome_file {
	struct out own, *out; /* out: where to; `own` when the sink made the file */
	uint32_t pid;	      /* 0: all processes */
	uint64_t start;	      /* of the process */
	uint32_t processes;   /* met so far: their numbers keep correlation ids apart */
	struct chrome_tid {
		uint32_t pid, tid;
	} *tids;	      /* taken on devices */
	uint32_t ntids, next_tid;
	bool begun;	      /* an event was written */
};

/* The args of a call or of device work: "\"name\":...,\"cat\":...,\"args\":{...}". correlation 0: none. */
void chrome_call_body(struct row *, const struct sink_opts *, const struct event *, uint64_t correlation);
void chrome_work_body(struct row *, const struct sink_opts *, const struct chrome_devices *, const struct event *,
		      uint64_t correlation);
void chrome_foreign_body(struct row *, const struct ct_foreign *);
void chrome_marker_body(struct row *, const struct ct_marker *);
/* Nanoseconds as microseconds with three decimals; they may be negative. */
char *chrome_us(char *p, int64_t ns);

#endif
