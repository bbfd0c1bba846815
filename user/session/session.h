/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - one trace from beginning to end: options become a capture plan, sources make
 * records of it, the stages (stages.h) pass them on, sinks print them.
 */
#ifndef CT_SESSION_H
#define CT_SESSION_H

#include "../cli/options/opts.h"
#include "../source/source.h"

#define SESSION_SOURCES 4

/* Runs until the targets of the first source end, or -d, -n, a signal or the output's end stops
 * it. The first source has the calls; the others add to them. Returns the exit status of
 * cudatrace. */
int session_run(const struct opts *, const struct source_ops *const *, int nsources);
/* Was the last one ended by a signal to cudatrace? */
bool session_interrupted(void);

#endif
