/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gone.h - inside discover: a file that a process mapped which has ended since. There is no
 * mapping left to open it through, only the name that the process knew it by.
 */
#ifndef CT_GONE_H
#define CT_GONE_H

#include "../../util/types.h"

/* A descriptor (O_PATH) of the file of this name, if it is, in our own view of the file systems,
 * the regular file dev, ino (dev as maps_dev() has it), and can be had without waiting: no file
 * system of a program's (FUSE) or of another machine is asked. -errno otherwise. The name is
 * untrusted. */
int gone_open(const char *name, uint64_t dev, uint64_t ino);

#endif
