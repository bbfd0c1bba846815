/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.h - the stretch of a trace that is shown: from a time, a call or a signal on until
 * another (--delay, --start-on, --stop-on). What records teach is learnt outside of it too.
 * Knows records, no source and no sink.
 */
#ifndef CT_WINDOW_H
#define CT_WINDOW_H

#include "../event/event.h"

struct window;

struct window_opts {
	uint64_t delay_ns;		/* 0: none */
	const char *start_on, *stop_on; /* "signal", a function or GLOB, GLOB:N; NULL: none */
};

/* Is `text` what option `name` (--start-on or --stop-on) may have? 0, or -EINVAL after one message. */
int window_check(const char *name, const char *text);
/* Returns 0 with *w NULL when all is to be shown; -errno after one message. */
int window_open(struct window **w, const struct window_opts *);
void window_close(struct window *);

/* The rows whose calls begin or end it: to be captured, whatever else is. */
void window_rows(const struct window *, uint64_t *set);
/* Signals are waited for. */
bool window_wants_signals(const struct window *);

/* Time begins here: --delay is counted from it. */
void window_begin(struct window *, uint64_t now_ns);
/* A call, before it is decided on: it may begin or end the window. */
void window_call(struct window *, const struct ct_call *);
/* SIGUSR1 (start) or SIGUSR2. */
void window_signal(struct window *, bool start, uint64_t now_ns);

/* Is the record within? Definitions and losses always are. */
bool window_has(const struct window *, const struct ct_hdr *);
/* It has begun, whether or not it has ended. */
bool window_begun(const struct window *);
/* It has ended and cannot begin again. */
bool window_over(const struct window *);

#endif
