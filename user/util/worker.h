/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.h - a thread that does one job at a time while its owner goes on. Where no thread can be had, the
 * owner does the job. Knows no domain.
 */
#ifndef CT_WORKER_H
#define CT_WORKER_H

struct worker;

/* name: as in thread_start(). NULL: no memory. */
struct worker *worker_open(const char *name);
/* Waits for the job that is under way. Takes NULL. */
void worker_close(struct worker *);
/* Waits for the job before, and begins this one: fn(arg), which returns 0 or -errno. What it uses is its own until
 * the next call of worker_begin() or worker_wait(). Returns what worker_wait() does; if that is not 0, the job is
 * not begun. */
int worker_begin(struct worker *, int (*fn)(void *), void *arg);
/* Waits for the job that is under way. Returns 0, or what a job since the last call returned. */
int worker_wait(struct worker *);

#endif
