/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.h - the window: the part of a trace that is shown. It begins at a time, a call, a
 * scope or a signal, and ends at one of the last three (--delay, --start-on, --stop-on). cudatrace learns from
 * records outside the window too. Knows records; knows no source and no sink.
 */
#ifndef CT_WINDOW_H
#define CT_WINDOW_H

#include "../event/event.h"

struct window;

struct window_opts {
	uint64_t delay_ns; /* 0: none */
	/* "signal", a function or GLOB, GLOB:N, LAYER:NAME; NULL: none. Valid until the close. */
	const char *start_on, *stop_on;
};

/* Checks `text`, the value of option `name` (--start-on or --stop-on). Returns 0, or -EINVAL after
 * one message. */
int window_check(const char *name, const char *text);
/* The layer that such a text waits for, a bit 1 << (domain - API_FIRST_LAYER); 0: none. */
uint32_t window_layer(const char *text);
/* Returns 0, and *w is NULL if everything is shown; or -errno after one message. */
int window_open(struct window **w, const struct window_opts *);
void window_close(struct window *);

/* Adds to `set` the functions whose calls begin or end the window: they must be captured in any
 * case. */
void window_rows(const struct window *, uint64_t *set);
/* Whether a signal begins or ends the window. */
bool window_wants_signals(const struct window *);

/* The trace begins: --delay is counted from now_ns. */
void window_begin(struct window *, uint64_t now_ns);
/* Takes a call, before window_has() is asked about it: it may begin or end the window. */
void window_call(struct window *, const struct ct_call *);
/* The same for a scope's begin or end. */
void window_scope(struct window *, const struct ct_scope *);
/* Takes a signal: SIGUSR1 (`start` is true) or SIGUSR2. */
void window_signal(struct window *, bool start, uint64_t now_ns);

/* Whether the record is within the window. Definitions and losses always are. */
bool window_has(const struct window *, const struct ct_hdr *);
/* The window has begun, and may have ended since. */
bool window_begun(const struct window *);
/* The window has ended and cannot begin again. */
bool window_over(const struct window *);

#endif
