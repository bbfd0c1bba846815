/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - runs one trace from beginning to end. The options become a capture plan, the sources
 * make records according to it, the stages (stages.h) pass the records on, and the sinks print
 * them.
 */
#ifndef CT_SESSION_H
#define CT_SESSION_H

#include "../request/request.h"
#include "../source/source.h"

/* How many sources a session may have: one of calls, and each that adds to them. */
#define A(name, takes_part) +1
enum {
	SESSION_SOURCES = 1
#include "../source/added.def"
};
#undef A

/* Runs until the targets of the first source have ended, or until -d, -n, a signal or a closed
 * output stops it. The first source delivers the calls; the others, at most SESSION_SOURCES with it, add records
 * to them. Returns the exit status of cudatrace. */
int session_run(const struct request *, const struct source_ops *const *, int nsources);
/* Whether a signal to cudatrace ended the last session. */
bool session_interrupted(void);

#endif
