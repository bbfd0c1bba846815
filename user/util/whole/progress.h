/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress.h - one line on the terminal for work that takes longer than a second: how much of it is
 * done, and how long the rest will take. Nothing is shown if standard error is no terminal, or with
 * -q.
 */
#ifndef CT_PROGRESS_H
#define CT_PROGRESS_H

#include "../types.h"

struct progress {
	const char *what;	     /* "reading run.ctrace" */
	uint64_t begun_ns, shown_ns; /* shown_ns 0: the line is not shown */
	bool on;
};

/* `what` is kept by pointer. */
void progress_open(struct progress *, const char *what);
/* Says how much of all is done. May be called often. NULL: nothing is shown. */
void progress_at(struct progress *, uint64_t done, uint64_t all);
/* Removes the line. */
void progress_close(struct progress *);
/* Writes the line; returns buf. left_ns: how long the rest will take at the speed so far. */
const char *progress_text(char *buf, size_t size, const char *what, uint64_t done, uint64_t all,
			  uint64_t took_ns);

#endif
