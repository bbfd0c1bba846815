/* SPDX-License-Identifier: BSD-2-Clause */
/* confine.h - what reads files that others wrote does that without privileges, and with few
 * system calls. */
#ifndef CT_CONFINE_H
#define CT_CONFINE_H

#include "../types.h"

/* What is allowed beside reading files, and writing to those that are open. */
#define CONFINE_FILES 1	  /* making, renaming and removing files */
#define CONFINE_NETWORK 2 /* connections to others */
#define CONFINE_CHILD 4	  /* what is said to a child that runs already, and its end */

/*
 * From here on this process executes no program and calls of the kernel what the list in
 * confine.c has; what else it calls fails with EPERM. Of the capabilities those stay with which
 * root opens other users' files: until confine_drop(). To be called before there are threads,
 * and after the commands of -o have been started, which keep what they have. The first call
 * counts, later ones do nothing.
 */
void confine(unsigned allow);
/* All files are open, or will be opened as what we are: no capability stays. */
void confine_drop(void);

#endif
