/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat_watch.h - inside stat, for --watch: when the sums so far are printed, and the counts of
 * processes that have ended. The kernel side hands out all counts at each reading, but those of a
 * process that has ended once only.
 */
#ifndef CT_STAT_WATCH_H
#define CT_STAT_WATCH_H

#include "book.h"
#include "../util/io/out.h"

struct stat_watch;

/* NULL: no memory. */
struct stat_watch *stat_watch_open(uint64_t interval_ns);
void stat_watch_close(struct stat_watch *);
/* Each event of the sink passes here. Returns 0 or -ENOMEM. */
int stat_watch_event(struct stat_watch *, const struct event *);
/* Is it time to print? True only once for each time. */
bool stat_watch_due(struct stat_watch *, uint64_t now_ns);
/* Have counts come since it was due? */
bool stat_watch_ready(struct stat_watch *);
/* What stands before tables: on a terminal they replace those before. */
void stat_watch_head(struct stat_watch *, struct out *);
/* Puts the counts of ended processes into a new book. Returns 0 or -errno. */
int stat_watch_again(struct stat_watch *, struct book *);

#endif
