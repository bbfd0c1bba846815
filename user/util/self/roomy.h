/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roomy.h - a stack of a known size. Libraries that read debugging information put arrays on the
 * stack whose sizes a file says; under `ulimit -s 128`, and in threads that were started then, that
 * ends in a crash.
 */
#ifndef CT_ROOMY_H
#define CT_ROOMY_H

#define ROOMY_BYTES (8u << 20) /* the usual limit of a process's stack */

/* Runs fn on a stack of at least ROOMY_BYTES, and returns its result. Threads that are started
 * later get as much. If there is no memory for that, fn runs on the present stack. */
int roomy_run(int (*fn)(int argc, char **argv), int argc, char **argv);

#endif
