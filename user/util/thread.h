/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread.h - starts a thread in which all signals are blocked, because the main thread handles
 * them; and a worker. Knows no domain.
 */
#ifndef CT_THREAD_H
#define CT_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* name: at most 15 bytes, as ps(1) and /proc show it. stack: bytes; 0: the default. thread: for
 * pthread_join(); NULL: nobody waits for it. Returns 0 or -errno. */
int thread_start(pthread_t *thread, const char *name, size_t stack, void *(*fn)(void *), void *arg);

/* ---- a thread that does one job at a time while its owner goes on; without a thread, the owner does it ---- */

struct worker;

/* name: as in thread_start(). NULL: no memory. */
struct worker *worker_open(const char *name);
/* Waits for the job that is under way. Takes NULL. */
void worker_close(struct worker *);
/* Waits for the job before this one and begins this one: fn(arg), which returns 0 or -errno.
 * What the job uses belongs to it until the next call of worker_begin() or worker_wait().
 * Returns the result of worker_wait(); if that is not 0, the job is not begun. */
int worker_begin(struct worker *, int (*fn)(void *), void *arg);
/* Waits for the job that is under way. Returns 0, or the error of a job since the last call. */
int worker_wait(struct worker *);

#endif
