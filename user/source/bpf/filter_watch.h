/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filter_watch.h - the kernel says to processes that they are setting a filter of their system calls
 * (bpf/filters.bpf.c), in words that they map. Knows no connection and no hooks.
 */
#ifndef CT_FILTER_WATCH_H
#define CT_FILTER_WATCH_H

#include <stdbool.h>

struct filter_watch;

/* NULL: the kernel does not tell, or does not let us ask. */
struct filter_watch *filter_watch_open(void);
/* All take NULL. */
void filter_watch_close(struct filter_watch *);
/* Of the words of all processes, FILTER_BYTES: they can be mapped and read, and not be written; -1: none. The
 * descriptor stays ours. */
int filter_watch_fd(const struct filter_watch *);
/* The process of this descriptor gets a place. Returns its number, or -1: it has none. */
int filter_watch_add(struct filter_watch *, int pidfd);
/* Has the process at this place forbidden system calls to all its threads, or is it about to? */
bool filter_watch_all(const struct filter_watch *, int place);
/* What is said of that process from here on goes nowhere. */
void filter_watch_remove(struct filter_watch *, int pidfd, int place);

#endif
