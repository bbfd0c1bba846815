/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roomy.h - a stack of a size that is known. Libraries that read debugging information put arrays
 * on the stack by what a file says; under `ulimit -s 128`, and in threads started then, that ends
 * in a crash.
 */
#ifndef CT_ROOMY_H
#define CT_ROOMY_H

#define ROOMY_BYTES (8u << 20) /* the usual limit of a process's stack */

/* Runs fn on a stack of at least ROOMY_BYTES, and returns what it returns. Threads that are started
 * later have as much. Where there is no memory for that, fn runs on the stack that there is. */
int roomy_run(int (*fn)(int argc, char **argv), int argc, char **argv);

#endif
