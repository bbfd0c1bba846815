/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.h - inside discover: the kernel's word that some process has mapped a file for
 * execution. No polling: a perf event on every CPU, whose ring carries nothing but these
 * records.
 */
#ifndef CT_WATCH_H
#define CT_WATCH_H

#include "../../util/types.h"

struct watch;

struct watch_map {
	pid_t pid; /* in our namespace */
	uint64_t addr, len;
	uint32_t major, minor;	  /* as stat(2) has them: overlayfs shows its own */
	uint64_t ino, generation; /* generation 0: the file system has none */
	uint64_t time_ns;	  /* CLOCK_MONOTONIC */
	const char *name;	  /* untrusted; valid during the call */
};
typedef void (*watch_fn)(void *ctx, const struct watch_map *);

/* Returns 0, or -errno where perf events may not be had (a container, CAP_PERFMON missing). */
int watch_open(struct watch **);
/* One descriptor for all CPUs: readable when there are records. */
int watch_fd(const struct watch *);
/* Hands out all records. Returns 0, or 1 when the kernel dropped some: then everything has to be
 * looked at. */
int watch_drain(struct watch *, watch_fn, void *ctx);
void watch_close(struct watch *);

#endif
