/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread.h - starts a thread, with all signals blocked: they are the main thread's. Knows no
 * domain.
 */
#ifndef CT_THREAD_H
#define CT_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* name: at most 15 bytes, as ps(1) and /proc show it. stack: bytes; 0: the default. thread: for
 * pthread_join(); NULL: nobody waits for it. Returns 0 or -errno. */
int thread_start(pthread_t *thread, const char *name, size_t stack, void *(*fn)(void *), void *arg);

#endif
