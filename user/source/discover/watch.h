/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.h - the kernel's word that some process has mapped a file for execution, and, if asked
 * for, that processes and threads begin, execute a program and end. No polling: a perf event on
 * every CPU, whose ring carries nothing but these records.
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

/* Of a process or thread; numbers are in our namespace, times CLOCK_MONOTONIC. */
enum watch_what {
	WATCH_FORK,  /* tid of pid has begun, made by thread parent_tid of process parent */
	WATCH_FLAGS, /* the flags of clone(2) with which parent_tid made what it made last */
	WATCH_EXEC,  /* pid executes another program, and is named comm */
	WATCH_EXIT   /* tid of pid has ended */
};
struct watch_task {
	enum watch_what what;
	pid_t pid, tid, parent, parent_tid;
	uint64_t time_ns, flags;
	const char *comm; /* untrusted; valid during the call */
};
typedef void (*watch_task_fn)(void *ctx, const struct watch_task *);

/* Returns 0, or -errno where perf events may not be had (a container, CAP_PERFMON missing). */
int watch_open(struct watch **);
/* The same with the records of processes and threads, for who drains it at least ten times a second. The
 * descriptor is readable when a ring is half full. Without CAP_SYS_ADMIN there is no WATCH_FLAGS. */
int watch_open_tasks(struct watch **);
/* One descriptor for all CPUs: readable when there are records. */
int watch_fd(const struct watch *);
/* Hands out all records. Returns 0, or 1 when the kernel dropped some: then everything has to be
 * looked at. */
int watch_drain(struct watch *, watch_fn, void *ctx);
/* The records of each CPU come in their order, one CPU after the other. */
int watch_drain_tasks(struct watch *, watch_fn, watch_task_fn, void *ctx);
void watch_close(struct watch *);

#endif
