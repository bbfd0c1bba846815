/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress.h - one line on the terminal for what takes longer than a second: how much of it is
 * done, and how long the rest will take. Nothing where standard error is no terminal, or with -q.
 */
#ifndef CT_PROGRESS_H
#define CT_PROGRESS_H

#include "../types.h"

struct progress {
	const char *what;	     /* "reading run.ctrace" */
	uint64_t begun_ns, shown_ns; /* shown_ns 0: nothing stands there */
	bool on;
};

/* what is kept by pointer. */
void progress_open(struct progress *, const char *what);
/* So much of all is done. May be called often. NULL: nobody watches. */
void progress_at(struct progress *, uint64_t done, uint64_t all);
/* Takes the line away. */
void progress_close(struct progress *);
/* The line; returns buf. left_ns: what the rest will take, if it goes on as it went. */
const char *progress_text(char *buf, size_t size, const char *what, uint64_t done, uint64_t all,
			  uint64_t took_ns);

#endif
