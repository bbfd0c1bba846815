/* SPDX-License-Identifier: BSD-2-Clause */
/* links_util.h - shared by links_tracefs.c and links_perf.c. */
#ifndef CT_LINKS_UTIL_H
#define CT_LINKS_UTIL_H

struct perf_event_attr;

/*
 * perf_event_open(2) for all processes, on the first CPU that is online: a program set on a
 * uprobe event runs on all CPUs whichever CPU the event is on. Returns the descriptor
 * (close-on-exec) or -errno.
 */
int links_perf_event(struct perf_event_attr *);

#endif
