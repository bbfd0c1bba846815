/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.h - waits for descriptors and timers. Wraps libevent, whose struct event is not ours. */
#ifndef CT_LOOP_H
#define CT_LOOP_H

#include "../types.h"

struct loop;
struct loop_watch;
typedef void (*loop_fn)(void *ctx);

/* Returns NULL and sets errno if there is no memory, or if too few descriptors are left. */
struct loop *loop_open(void);
void loop_close(struct loop *);

struct event_base;
/* Returns libevent's base, for code with events of its own, such as an HTTP server. */
struct event_base *loop_base(struct loop *);

/* Calls fn whenever fd is readable. NULL: no memory. */
struct loop_watch *loop_fd(struct loop *, int fd, loop_fn, void *ctx);
void loop_pause(struct loop_watch *);
void loop_resume(struct loop_watch *);

/* A timer, not running until it is set; fires once after each setting. NULL: no memory. */
struct loop_watch *loop_timer(struct loop *, loop_fn, void *ctx);
void loop_timer_set(struct loop_watch *, uint64_t ns);

/* Returns 0 after loop_stop(), or -EIO. */
int loop_run(struct loop *);
void loop_stop(struct loop *);

#endif
