/* SPDX-License-Identifier: BSD-2-Clause */
/* confine.h - code that reads files which others wrote runs without privileges and with few
 * system calls. */
#ifndef CT_CONFINE_H
#define CT_CONFINE_H

#include "../types.h"

/* What is allowed in addition to reading files, and writing to those that are open. */
#define CONFINE_FILES 1	  /* making, renaming and removing files */
#define CONFINE_NETWORK 2 /* connections to others */
#define CONFINE_CHILD 4	  /* signals to a child that already runs, and waiting for its end */

/*
 * From this call on, this process executes no program and may make only the system calls that the
 * list in confine.c has; others fail with EPERM. It keeps the capabilities with which root opens
 * other users' files, until confine_drop(). Call it before there are threads, and after the
 * commands of -o have been started, which keep their rights. Only the first call has an effect.
 */
void confine(unsigned allow);
/* To be called when all files are open, or when the rest needs no privileges: gives up all
 * capabilities. */
void confine_drop(void);

#endif
